//! Recovery lines without barriers: each rank saves its state at a step boundary of its own, while messages are under way, and all ranks together can go back to
//! these states.
//!
//! A message that was sent before its sender's line and is received behind its receiver's is *late*: nobody will send it again. One that was sent behind its
//! sender's line and was received before its receiver's is *early*: it will be sent again, and must not come twice. [`Lines`] keeps the late ones and swallows the early
//! ones (G. Bronevetsky, D. Marques, K. Pingali, P. Stodghill, Automated application-level checkpointing of MPI programs, PPoPP 2003; M. Schulz and others, SC 2004).
//! Ranks that stop at their line until all late messages are there have no early ones (G. Stellner, CoCheck, IPPS 1996): the same protocol, with a wait in it.
//!
//! An [`crate::endpoint::Endpoint`] has one of these if its messages may cross lines.

mod journal;
mod log;
mod record;
mod words;

#[cfg(test)]
mod model;

pub use journal::{Account, Again, Determinant, Determined, Has, Journal, Luggage, Missing, Nth};
use log::signature;
pub use log::{Astray, Crossings, Lines, Log, Outcome, Phase, Signature, Swallowed};
pub use record::{read, write};
pub use words::{read_account, read_luggage, write_account, write_luggage};

use crate::wire::wait::{CONTEXT_COMPUTE, CONTEXT_DYNAMIC};

/// Whether lines matter to messages with this context: those of a program on the communicator of the ranks that compute, and on those that it has made, and their collectives'.
#[inline]
pub fn cover(context: u32) -> bool {
    context & !1 == CONTEXT_COMPUTE || context >= CONTEXT_DYNAMIC
}
