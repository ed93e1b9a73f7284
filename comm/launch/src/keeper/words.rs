//! What a keeper and its agent say to each other.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

use crate::process::{Change, Order};
use ft_proto::arbiter::Exit;
use ft_proto::rank::PeerId;

/// From the agent to the keeper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ToKeeper {
    /// The launcher has taken the agent for its own: when it dies, another one is to be started.
    Welcome,
    /// Start a process. With it come its three standard streams, the files that it inherits, and what is to be kept of it: where its
    /// output is read, and if it `reads` the pipe to its standard input.
    Start { peer: PeerId, order: Order, folder: OsString, inherited: Vec<String>, reads: bool },
    /// Its standard input ends.
    EndInput { peer: PeerId },
    /// All that is to be known of the end of a process is known.
    Reap { peer: PeerId },
}

/// From the keeper to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum FromKeeper {
    /// First message: what there is. With it comes the memory that outlives processes, if there is
    /// `ground`, and the file that ranks execute in their place, if there is an `executable`.
    Handover {
        invitation: String,
        mark: String,
        ground: bool,
        executable: bool,
        /// So many are described by the next messages.
        processes: usize,
        /// How those have ended that were reaped.
        ended: Vec<(PeerId, Exit)>,
    },
    /// A process, with its standard output and error, its standard input if it `reads`, and its `lifeline`.
    Process { peer: PeerId, pid: u32, reads: bool, lifeline: bool },
    /// The process was started that was last asked for.
    Started { pid: u32 },
    /// It was not, for this reason, which may have a number.
    NotStarted { errno: Option<i32>, why: String },
    /// Something has become of a process.
    Changed { peer: PeerId, change: Change },
}
