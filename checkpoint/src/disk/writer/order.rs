//! What the ranks do for a set, and in which order: nothing else makes a set whole at every moment after the first one.

use crate::region::StatePart;

/// One of the things to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The rank's own file, unless it is there.
    Shard(StatePart),
    /// All ranks have written theirs, or the set is given up.
    Await,
    /// What is left of a constant part that was given up would be taken for that of the set.
    Forget,
    /// What makes the files a set; that of a constant part which has one stays.
    Manifest(StatePart),
    /// Sets that are too old are removed.
    Keep,
}

const WRITE: [Step; 2] = [Step::Shard(StatePart::Constant), Step::Shard(StatePart::Variable)];
const COMPLETE: [Step; 5] = [
    Step::Await,
    Step::Forget,
    Step::Manifest(StatePart::Constant),
    Step::Manifest(StatePart::Variable),
    Step::Keep,
];

/// What `rank` does. The others know nothing of what rank 0 does at the end.
pub(super) fn steps(rank: usize) -> impl Iterator<Item = Step> {
    WRITE.into_iter().chain(if rank == 0 { &COMPLETE[..] } else { &[] }.iter().copied())
}
