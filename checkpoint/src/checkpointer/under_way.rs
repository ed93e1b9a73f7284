//! A checkpoint under way: what is known of it so far, and the operation that is not done yet.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use ft_comm::time::Time;
use ft_comm::{CollectiveRequest, Rank, ScheduleRequest};

use crate::buffer::Buffer;
use crate::changes::{Delta, Pages};
use crate::error::CheckpointError;
use crate::exchange::{Account, Round};
use crate::layout::ParityGroup;
use crate::region::StatePart;
use crate::store::{ShardMeta, Split};

/// A checkpoint under way.
pub(super) struct Staging {
    pub(super) epoch: u32,
    pub(super) rank: Rank,
    /// It holds the constant part too.
    pub(super) first: bool,
    /// Whether this rank could write its state down, and there is memory for the redundancy of its group.
    pub(super) copied: Result<(), CheckpointError>,
    /// There is none: nothing is encoded in this group.
    pub(super) is_over_limit: bool,
    /// It is written to files too.
    pub(super) spills: bool,
    /// The epoch since which ranks have the constant part: that of the one which has had it longest, as replacements have it since later.
    pub(super) constant_since: u32,
    /// What has changed of the variable part of this rank's state, if its slot can be renewed by that.
    pub(super) delta: Option<Delta>,
    /// Of all ranks: the epoch of what their slots held before and can be renewed from; 0: of none.
    pub(super) bases: Vec<u32>,
    /// Of all ranks, if one of them has a base: which pages have changed.
    pub(super) pages: Vec<Pages>,
    /// Of all ranks, both parts; also of a constant part that is not in this checkpoint.
    pub(super) metas: Vec<[ShardMeta; 2]>,
    /// Of all ranks, of the variable part, if doubles are kept apart; else empty.
    pub(super) splits: Vec<Split>,
    pub(super) account: Rc<RefCell<Account>>,
    pub(super) started: Time,
    pub(super) copied_at: Time,
    pub(super) exchanged_at: Time,
    /// Time that the program has been held.
    pub(super) held: Duration,
    /// What this rank is to say of its state, and did not say yet.
    pub(super) unsaid: Option<Unsaid>,
    /// What is under way at the line of the rank is fetched, and not waited for until the program receives it.
    pub(super) fetches: bool,
    /// It is at the end of the shard.
    pub(super) is_collected: bool,
}

/// What a rank says of its state with the metadata.
pub(super) struct Unsaid {
    pub(super) metas: [ShardMeta; 2],
    /// The epoch since which what has changed is known; 0: it is not.
    pub(super) base: u32,
    pub(super) split: Option<Split>,
}

impl Staging {
    fn meta(&self, rank: Rank, part: StatePart) -> ShardMeta {
        self.metas[rank][usize::from(part == StatePart::Variable)]
    }

    /// Of this rank.
    pub(super) fn own(&self, part: StatePart) -> ShardMeta {
        self.meta(self.rank, part)
    }

    /// Bytes of the longest part of a state that is in it, of any rank.
    pub(super) fn longest(&self) -> u64 {
        let parts = if self.first { 0..2 } else { 1..2 };
        self.metas
            .iter()
            .flat_map(|parts_of| &parts_of[parts.clone()])
            .map(|meta| meta.len)
            .max()
            .unwrap_or(0)
    }

    /// Whether all members of `group` can renew what they held before, of one epoch, by what has changed.
    pub(super) fn is_increment(&self, group: &ParityGroup) -> bool {
        is_one(group.members.iter().map(|rank| self.bases[*rank]))
    }

    /// Which pages have changed of the variable part of each member of such a group that has a shard.
    pub(super) fn pages_of(&self, group: &ParityGroup) -> Vec<Pages> {
        group.members[..group.computing].iter().map(|rank| self.pages[*rank].clone()).collect()
    }

    /// Of the members of a group that have a shard.
    pub(super) fn metas_of(&self, group: &ParityGroup, part: StatePart) -> Vec<ShardMeta> {
        group.members[..group.computing].iter().map(|rank| self.meta(*rank, part)).collect()
    }
}

impl Staging {
    /// Where the doubles of a part are kept apart, by member of a group.
    pub(super) fn splits_of(&self, group: &ParityGroup, part: StatePart) -> Vec<Split> {
        let members = group.members[..group.computing].iter();
        let of = |rank: &Rank| self.splits.get(*rank).copied();
        if part == StatePart::Variable { members.filter_map(of).collect() } else { vec![] }
    }
}

/// The operation that is not done yet.
pub(super) enum Phase {
    /// How many messages each rank was sent before the lines of the others.
    Drawing(CollectiveRequest<u64>),
    /// What is under way comes.
    Collecting,
    Sharing(CollectiveRequest<u8>),
    /// Which pages have changed.
    Telling(CollectiveRequest<u8>),
    /// Of a part of the state; no request where there is no group.
    Encoding(StatePart, Round, Option<ScheduleRequest<Buffer>>),
    Voting(CollectiveRequest<u8>),
    Committing,
}

/// Whether there is a base, and all have the same.
fn is_one(mut bases: impl Iterator<Item = u32>) -> bool {
    bases.next().is_some_and(|first| first > 0 && bases.all(|base| base == first))
}

#[cfg(test)]
mod tests {
    use super::is_one;

    #[test]
    fn a_group_renews_one_epoch_of_all_or_none() {
        let cases = [
            (&[4, 4, 4][..], true),
            (&[4], true),
            (&[4, 6], false),
            (&[0, 0], false),
            (&[4, 0], false),
            (&[], false),
        ];
        for (bases, due) in cases {
            assert_eq!(is_one(bases.iter().copied()), due, "{bases:?}");
        }
    }
}
