//! Where ranks belong: on which host they were at the start, and where they stand now.

use ft_comm::binding::Binding;
use ft_proto::rank::Rank;
use ft_proto::wire::agent::{CoreShare, Standing};

/// See the module. Hosts have numbers.
#[derive(Debug)]
pub(super) struct Places {
    /// The host of each rank at the start.
    first: Vec<usize>,
    /// By rank the host where it is now, and its number among the ranks there.
    seats: Vec<(usize, u32)>,
    /// Ranks that compute.
    size: usize,
    binding: Binding,
}

impl Places {
    /// The start: `first` is the host of each rank.
    pub(super) fn new(first: Vec<usize>, size: usize, binding: Binding) -> Self {
        let before = |rank: Rank, at: &usize| first[..rank].iter().filter(|other| *other == at).count();
        let seats = first.iter().enumerate().map(|(rank, at)| (*at, before(rank, at) as u32)).collect();
        Self { first, seats, size, binding }
    }

    /// The host of a rank at the start.
    pub(super) fn first(&self, rank: Rank) -> usize {
        self.first[rank]
    }

    /// The host where a rank was last.
    pub(super) fn last(&self, rank: Rank) -> usize {
        self.seats[rank].0
    }

    /// The cores of a rank, if it is bound: on its first host only.
    pub(super) fn share(&self, rank: Rank, at: usize) -> Option<CoreShare> {
        if self.binding == Binding::None || self.first[rank] != at {
            return None;
        }
        let count = |ranks: &[usize]| ranks.iter().filter(|home| **home == at).count() as u32;
        Some(CoreShare { index: count(&self.first[..rank]), count: count(&self.first) })
    }

    /// Ranks whose first host is one of these.
    pub(super) fn count(&self, is_one: impl Fn(usize) -> bool) -> u32 {
        self.first.iter().filter(|host| is_one(**host)).count() as u32
    }

    /// Where a rank stands that has come to host `at`: there it gets the lowest number that no other rank has, but keeps the
    /// one that it had there already.
    pub(super) fn stand(&mut self, rank: Rank, at: usize) -> Standing {
        if self.seats[rank].0 != at {
            let is_free = |number: &u32| !self.seats.contains(&(at, *number));
            let local = (0..).find(is_free).expect("a host has fewer than 2^32 ranks");
            self.seats[rank] = (at, local);
        }
        Standing { rank: rank as u32, size: self.size as u32, local: self.seats[rank].1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_that_moves_gets_the_lowest_free_number() {
        let mut places = Places::new(vec![0, 1, 0, 1], 3, Binding::None);
        let mut stand = |rank, at| places.stand(rank, at).local;
        assert_eq!([0, 1, 2, 3].map(|rank| stand(rank, rank % 2)), [0, 0, 1, 1]);
        assert_eq!((stand(2, 1), stand(2, 1)), (2, 2));
        assert_eq!((places.first(2), places.last(2)), (0, 1));
        let mut stand = |rank, at| places.stand(rank, at).local;
        assert_eq!((stand(1, 0), stand(2, 0)), (1, 2), "rank 1 has taken what rank 2 had");
        assert_eq!(places.stand(0, 0), Standing { rank: 0, size: 3, local: 0 });
    }

    #[test]
    fn cores_are_shared_by_those_who_started_there() {
        let bound = Places::new(vec![0, 1, 0, 0], 4, Binding::Auto);
        assert_eq!(bound.share(2, 0), Some(CoreShare { index: 1, count: 3 }));
        assert_eq!(bound.share(1, 0), None, "it comes from elsewhere");
        assert_eq!((bound.count(|host| host == 0), bound.count(|_| true)), (3, 4));
        assert_eq!(Places::new(vec![0, 0], 2, Binding::None).share(1, 0), None);
    }
}
