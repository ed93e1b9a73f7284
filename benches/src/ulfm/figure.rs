//! What is timed.

use std::fmt;

/// A span of time, in seconds. Those of a recovery begin with the kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// Until the launcher has noticed; ours only.
    Noticed,
    /// Until the last survivor knows of it. Ours is an upper bound: until the launcher has heard that all survivors have
    /// stopped.
    Known,
    /// Until all survivors have a communicator without the dead; theirs only.
    Shrunk,
    /// Until all ranks are there again.
    Repaired,
    /// Until all states and their copies are there again; theirs only, where it is not the end.
    Whole,
    /// Until all ranks go on: ours have their state and redundancy again, theirs have done the first allreduce as well.
    Resumed,
    /// One agreement on a communicator of the living.
    Agree,
    /// One allreduce of 8 bytes on the same.
    Allreduce,
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Noticed => "noticed",
            Self::Known => "known",
            Self::Shrunk => "shrunk",
            Self::Repaired => "repaired",
            Self::Whole => "whole",
            Self::Resumed => "resumed",
            Self::Agree => "agree",
            Self::Allreduce => "allreduce",
        })
    }
}
