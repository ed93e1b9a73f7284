//! Groups: ordered sets of processes, from which communicators are made (MPI 4.1, section 7.3, "Group management").

use crate::rank::Rank;

/// Distinct processes in an order, each named by its rank in the world. Its place in the order is its rank in
/// the group, `0..size`. It is a value of this process: making one sends no message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    ranks: Vec<Rank>,
    /// (rank in the world, rank in the group), ascending, to search in.
    sorted: Vec<(Rank, Rank)>,
}

/// Why there is no such group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// A process cannot be in a group twice, nor be taken out twice.
    #[error("rank {rank} is named twice")]
    Duplicate {
        /// The rank, as it was named.
        rank: Rank,
    },
    /// The group has no such rank.
    #[error("rank {rank} does not exist in a group of size {size}")]
    RankOutOfRange {
        /// The rank in the group.
        rank: Rank,
        /// Size of the group.
        size: usize,
    },
    /// The steps of a range do not lead from its first rank to its last.
    #[error("no way leads from rank {first} to rank {last} in steps of {stride}")]
    Range {
        /// First rank.
        first: Rank,
        /// Last rank.
        last: Rank,
        /// Step.
        stride: isize,
    },
}

/// How two groups compare (`MPI_Group_compare`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The same processes in the same order.
    Identical,
    /// The same processes in another order.
    Similar,
    /// Other processes.
    Unequal,
}

impl Group {
    /// The group of these processes, by their ranks in the world.
    ///
    /// # Errors
    /// [`GroupError::Duplicate`].
    pub fn new(ranks: Vec<Rank>) -> Result<Self, GroupError> {
        let group = Self::of(ranks);
        match group.sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(GroupError::Duplicate { rank: pair[0].0 }),
            None => Ok(group),
        }
    }

    /// The group of these processes, which are distinct.
    fn of(ranks: Vec<Rank>) -> Self {
        let mut sorted: Vec<(Rank, Rank)> = ranks.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        Self { ranks, sorted }
    }

    /// Number of processes.
    pub fn size(&self) -> usize {
        self.ranks.len()
    }

    /// The processes in order, by their ranks in the world.
    pub fn ranks(&self) -> &[Rank] {
        &self.ranks
    }

    /// Rank in the group of the process with rank `world` in the world; none if it is no member. O(log size).
    pub fn rank_of(&self, world: Rank) -> Option<Rank> {
        let at = self.sorted.binary_search_by_key(&world, |member| member.0).ok()?;
        Some(self.sorted[at].1)
    }

    fn contains(&self, world: Rank) -> bool {
        self.rank_of(world).is_some()
    }

    /// All of this group, then those of the other that are not in it (`MPI_Group_union`).
    pub fn union(&self, other: &Self) -> Self {
        let more = other.ranks.iter().filter(|&&rank| !self.contains(rank));
        Self::of(self.ranks.iter().chain(more).copied().collect())
    }

    /// Those that are in the other group too, in the order of this one (`MPI_Group_intersection`).
    pub fn intersection(&self, other: &Self) -> Self {
        Self::of(self.ranks.iter().copied().filter(|&rank| other.contains(rank)).collect())
    }

    /// Those that are not in the other group, in the order of this one (`MPI_Group_difference`).
    pub fn difference(&self, other: &Self) -> Self {
        Self::of(self.ranks.iter().copied().filter(|&rank| !other.contains(rank)).collect())
    }

    /// The members with these ranks in the group, in the order given (`MPI_Group_incl`).
    ///
    /// # Errors
    /// A rank does not exist or is named twice.
    pub fn include(&self, ranks: &[Rank]) -> Result<Self, GroupError> {
        self.named(ranks)?;
        Ok(Self::of(ranks.iter().map(|&rank| self.ranks[rank]).collect()))
    }

    /// The members without those with these ranks in the group, in their order (`MPI_Group_excl`).
    ///
    /// # Errors
    /// A rank does not exist or is named twice.
    pub fn exclude(&self, ranks: &[Rank]) -> Result<Self, GroupError> {
        let named = self.named(ranks)?;
        let left = self.ranks.iter().zip(named).filter(|(_, named)| !named);
        Ok(Self::of(left.map(|(&rank, _)| rank).collect()))
    }

    /// As [`Group::include`], with the ranks of each range `(first, last, stride)`: `first`, `first + stride`
    /// and so on as far as `last`, backwards if `stride` is negative (`MPI_Group_range_incl`).
    ///
    /// # Errors
    /// A rank does not exist or is named twice, or a range leads nowhere.
    pub fn range_include(&self, ranges: &[(Rank, Rank, isize)]) -> Result<Self, GroupError> {
        self.include(&self.expand(ranges)?)
    }

    /// As [`Group::exclude`], with ranges as in [`Group::range_include`] (`MPI_Group_range_excl`).
    ///
    /// # Errors
    /// As [`Group::range_include`].
    pub fn range_exclude(&self, ranges: &[(Rank, Rank, isize)]) -> Result<Self, GroupError> {
        self.exclude(&self.expand(ranges)?)
    }

    /// The ranks of all ranges; the last of each need not be met, but whatever is met exists.
    fn expand(&self, ranges: &[(Rank, Rank, isize)]) -> Result<Vec<Rank>, GroupError> {
        let mut ranks = Vec::new();
        for &(first, last, stride) in ranges {
            if stride == 0 || (stride > 0 && last < first) || (stride < 0 && last > first) {
                return Err(GroupError::Range { first, last, stride });
            }
            let stride_length = stride.unsigned_abs();
            let steps = first.abs_diff(last) / stride_length;
            // The highest one first, so that no list is made of a range that leads out of the group.
            self.check(if stride > 0 { first + steps * stride_length } else { first })?;
            ranks.extend((0..=steps).map(|step| {
                let way = step * stride_length;
                if stride > 0 { first + way } else { first - way }
            }));
            // A list that is longer than the group names some rank twice, whatever comes.
            if ranks.len() > self.size() {
                break;
            }
        }
        Ok(ranks)
    }

    fn check(&self, rank: Rank) -> Result<(), GroupError> {
        let size = self.size();
        if rank < size { Ok(()) } else { Err(GroupError::RankOutOfRange { rank, size }) }
    }

    /// Which ranks of the group are named; all of them exist and none is named twice.
    fn named(&self, ranks: &[Rank]) -> Result<Vec<bool>, GroupError> {
        let mut named = vec![false; self.size()];
        for &rank in ranks {
            self.check(rank)?;
            if std::mem::replace(&mut named[rank], true) {
                return Err(GroupError::Duplicate { rank });
            }
        }
        Ok(named)
    }

    /// For each of these ranks of this group the rank of the same process in the other; none if it is no member
    /// there, or here (`MPI_Group_translate_ranks`).
    pub fn translate(&self, ranks: &[Rank], other: &Self) -> Vec<Option<Rank>> {
        ranks.iter().map(|&rank| other.rank_of(*self.ranks.get(rank)?)).collect()
    }

    /// Whether the groups have the same processes, and in the same order (`MPI_Group_compare`).
    pub fn compare(&self, other: &Self) -> Comparison {
        let same = |(one, two): (&(Rank, Rank), &(Rank, Rank))| one.0 == two.0;
        if self.ranks == other.ranks {
            Comparison::Identical
        } else if self.size() == other.size() && self.sorted.iter().zip(&other.sorted).all(same) {
            Comparison::Similar
        } else {
            Comparison::Unequal
        }
    }
}

#[cfg(test)]
mod tests;
