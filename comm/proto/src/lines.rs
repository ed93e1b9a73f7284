//! Recovery lines without barriers: each rank saves its state at a step boundary of its own, while messages are under way, and all ranks together can go back to
//! these states.
//!
//! A message that was sent before its sender's line and is received behind its receiver's is *late*: nobody will send it again. One that was sent behind its
//! sender's line and was received before its receiver's is *early*: it will be sent again, and must not come twice. [`log`] keeps the late ones and swallows the early
//! ones (G. Bronevetsky, D. Marques, K. Pingali, P. Stodghill, Automated application-level checkpointing of MPI programs, PPoPP 2003; M. Schulz and others, SC 2004);
//! [`drain`] sees to it that there are none.
//!
//! These are protocols as values; nothing in `ft-comm` uses them yet.

pub mod drain;
pub mod log;

#[cfg(test)]
mod model;
