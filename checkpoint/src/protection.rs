//! How a program is protected, as a value.

use std::num::NonZero;

use crate::checkpointer::CHECKSUM_LIMIT;
use crate::pace::Interval;
use crate::scheme::Scheme;
use crate::spill::Spill;

/// How a program is protected.
#[derive(Clone, Debug, PartialEq)]
pub struct Protection {
    /// Where the redundancy lies.
    pub scheme: Scheme,
    /// How often checkpoints are taken.
    pub interval: Interval,
    /// Whether the program waits for them.
    pub checkpoints: Checkpoints,
    /// Whether messages may cross checkpoints, and how.
    pub lines: Lines,
    /// Which ranks go back after a failure.
    pub recovery: Recovery,
    /// Bytes of messages that a rank may keep for those that are lost: with more it takes a checkpoint as soon as it can.
    pub log_memory: Option<NonZero<u64>>,
    /// Bytes of a rank's state that an asynchronous checkpoint encodes a second, at most.
    pub throttle: Option<NonZero<u64>>,
    /// Whether what has changed since a checkpoint before is sent alone, where that is little.
    pub incremental: bool,
    /// How much memory checkpoints take.
    pub memory_use: MemoryUse,
    /// Whether ranks look for damage in what they hold, behind the computation.
    pub scrub: bool,
    /// Bytes that checkpoints may keep on a rank, at most.
    pub memory: Option<NonZero<u64>>,
    /// Under a checksum scheme: doubles that can only be rebuilt with errors of more than this, relative to the largest of a rank, are not; the
    /// job ends then. More than the default is never the case, as what could have more is kept exactly.
    pub checksum_limit: f64,
    /// Stronger schemes beside this one, from weak to strong. After a failure that the scheme above does not survive all go back to the
    /// last checkpoint under the first of these that does.
    pub levels: Vec<Level>,
    /// Where checkpoints are written to files too, behind the computation, for a job of which no process is left.
    pub spill: Option<Spill>,
}

impl Protection {
    /// Blocking checkpoints of the whole state with this scheme and interval, and no scrub.
    pub fn new(scheme: Scheme, interval: Interval) -> Self {
        Self {
            scheme,
            interval,
            checkpoints: Checkpoints::Blocking,
            lines: Lines::Meet,
            recovery: Recovery::Global,
            log_memory: None,
            throttle: None,
            incremental: false,
            memory_use: MemoryUse::Fast,
            scrub: false,
            memory: None,
            checksum_limit: CHECKSUM_LIMIT,
            levels: vec![],
            spill: None,
        }
    }
}

/// A level of protection beside the first.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Where its redundancy lies: in the memory of ranks.
    pub scheme: Scheme,
    /// Each checkpoint of the first level whose number is a multiple of this is taken on this level too.
    pub every: NonZero<u64>,
}

/// Whether a program waits for a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checkpoints {
    /// Until it is committed.
    #[default]
    Blocking,
    /// For the copy only; the rest is done in the calls of the steps that follow. The next checkpoint waits for the last one.
    Asynchronous,
}

/// Whether a message may be sent before its sender's state of a checkpoint and received behind its receiver's, or the other way round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lines {
    /// None may. All take a checkpoint after the same step.
    #[default]
    Meet,
    /// All take it after the same step, and go on when what was under way is there; that is kept with the state.
    Drain,
    /// Each rank takes it when it comes by, after a step of its own, and goes on at once. What is under way is kept with the state when it comes, and what was
    /// received too early is not sent again.
    Log,
}

/// Which ranks go back to the last checkpoint after a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// All.
    #[default]
    Global,
    /// Those that were lost. Others keep what they have sent since, and go on where they are; with [`Lines::Log`].
    Local,
}

/// How much memory checkpoints in the memory of ranks take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryUse {
    /// Two copies of the state of a rank, and redundancy of both.
    #[default]
    Fast,
    /// One copy: the state itself is the other while redundancy is made of it. The program waits for each checkpoint, and all of the
    /// state is sent.
    Least,
}
