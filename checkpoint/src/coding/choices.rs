//! Which redundant blocks the missing data of a stripe is computed from, where there are more than it takes: all selections, one
//! after the other, as one of the blocks may be damaged in a way that nobody can see.

use crate::layout::{ParityGroup, Stripe};

/// More selections of a stripe are not tried.
const CHOICES_MAX: usize = 1000;

/// What is not to be used of a group, by member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Missing<'a> {
    /// Shards, which are wanted.
    pub(crate) shards: &'a [bool],
    /// Redundant blocks.
    pub(crate) blocks: &'a [bool],
}

impl Missing<'_> {
    /// How many data blocks of a stripe are missing, and the redundant blocks that are there, by their position among these.
    fn of(&self, stripe: &Stripe) -> (usize, Vec<usize>) {
        let wanted = stripe.data.iter().filter(|(member, _)| self.shards[*member]).count();
        let there = (0..stripe.parity.len()).filter(|at| !self.blocks[stripe.parity[*at]]);
        (wanted, there.collect())
    }

    /// By block of the stripe, data first, whether it is used: all data that is there, and the `choice`-th selection of as many
    /// redundant blocks as data is missing. None if nothing is missing, or there are fewer selections.
    pub(crate) fn present(&self, stripe: &Stripe, choice: usize) -> Option<Vec<bool>> {
        let (wanted, there) = self.of(stripe);
        let selection = selection(&there, wanted, choice).filter(|_| wanted > 0)?;
        let data = stripe.data.iter().map(|(member, _)| !self.shards[*member]);
        let redundant = (0..stripe.parity.len()).map(|at| selection.contains(&at));
        Some(data.chain(redundant).collect())
    }

    /// By block of the stripe, data first, whether it is there.
    pub(crate) fn present_of(&self, stripe: &Stripe) -> Vec<bool> {
        let data = stripe.data.iter().map(|(member, _)| !self.shards[*member]);
        data.chain(stripe.parity.iter().map(|member| !self.blocks[*member])).collect()
    }

    /// How many selections are worth a try: as many as the stripe with the most of them has. None if some stripe cannot be decoded.
    pub(crate) fn choices(&self, group: &ParityGroup) -> Option<usize> {
        let of = |stripe: &Stripe| match self.of(stripe) {
            (0, _) => Some(0),
            (wanted, there) => Some(selections(there.len(), wanted)).filter(|count| *count > 0),
        };
        let most = group.stripes.iter().map(of).try_fold(0, |most, count| Some(most.max(count?)));
        most.map(|most| most.min(CHOICES_MAX))
    }
}

/// How many ways there are to take `count` of so many, or `usize::MAX` if that is more.
fn selections(of: usize, count: usize) -> usize {
    if count > of {
        return 0;
    }
    let step = |ways: usize, at: usize| ways.checked_mul(of - at).map(|ways| ways / (at + 1));
    (0..count).try_fold(1, step).unwrap_or(usize::MAX)
}

/// The selection of this number of `count` of `from`, in the order of their first ones.
fn selection(from: &[usize], count: usize, number: usize) -> Option<Vec<usize>> {
    let Some((first, rest)) = from.split_first().filter(|_| count > 0) else {
        return (count == 0 && number == 0).then(Vec::new);
    };
    let with_first = selections(rest.len(), count - 1);
    if number < with_first {
        let rest = selection(rest, count - 1, number)?;
        return Some(std::iter::once(*first).chain(rest).collect());
    }
    selection(rest, count, number - with_first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::GroupLayout;

    #[test]
    fn all_selections_come_once_and_in_order() {
        let all = |from: &[usize], count| -> Vec<Vec<usize>> {
            (0..).map_while(|number| selection(from, count, number)).collect()
        };
        assert_eq!(all(&[4, 7, 9], 2), [vec![4, 7], vec![4, 9], vec![7, 9]]);
        assert_eq!(all(&[4, 7], 1), [[4], [7]]);
        assert_eq!(all(&[4], 2), [[0; 0]; 0]);
        for of in 0..8 {
            for count in 1..=of {
                assert_eq!(all(&(0..of).collect::<Vec<_>>(), count).len(), selections(of, count));
            }
        }
        assert_eq!(selections(200, 100), usize::MAX);
    }

    #[test]
    fn only_what_is_there_is_chosen() {
        let layout = GroupLayout::new("rs:2+3".parse().unwrap(), 5, 0, None).unwrap();
        let group = &layout.groups[0];
        let (shards, blocks) = ([true, true, false, false, false], [true, false, false, false, false]);
        let missing = Missing { shards: &shards, blocks: &blocks };
        for stripe in &group.stripes {
            let wanted = stripe.data.iter().filter(|(member, _)| *member < 2).count();
            let seen: Vec<Vec<bool>> = (0..).map_while(|choice| missing.present(stripe, choice)).collect();
            let there = stripe.parity.iter().filter(|member| **member > 0).count();
            assert_eq!(seen.len(), if wanted == 0 { 0 } else { selections(there, wanted) });
            for present in seen {
                let holders = stripe.data.iter().map(|(member, _)| member).chain(&stripe.parity);
                let used: Vec<usize> =
                    holders.zip(&present).filter(|(_, used)| **used).map(|(member, _)| *member).collect();
                assert_eq!(used.len(), 2, "as many as there are data blocks");
                assert!(!used.contains(&0), "{used:?}");
            }
        }
        assert_eq!(missing.choices(group), Some(3));
        let nothing = Missing { shards: &[false; 5], blocks: &[true; 5] };
        assert_eq!(nothing.choices(group), Some(0));
        let too_much = Missing { shards: &[true, true, true, true, false], blocks: &[true; 5] };
        assert_eq!(too_much.choices(group), None);
    }
}
