//! What the ranks of a job say to each other and to their launcher, and when, as values.
//!
//! Nothing here knows a socket, a thread, a file or a clock: events go in, effects come out, and time is an argument. `ft-comm` moves the
//! bytes of these state machines over real links, its simulator over made-up ones; both run the same code. Programs use `ft-comm`, which
//! shows what they need of this.
//!
//! - Words: [`rank`], [`error`], [`time`], [`plain`], [`fault`] (failures to inject).
//! - Values: [`layout`] (which elements of a slice a message consists of), [`group`], [`topology`], [`reduction`].
//! - [`wire`]: what the bytes on a link mean.
//! - [`collective`]: algorithms of collective operations, as lists of steps.
//! - Protocols: [`matching`] and [`endpoint`] (a rank's end of its data links), [`ring`] (bytes through shared memory), [`detector`], [`member`] (a rank's side of the membership),
//!   [`arbiter`] (the launcher's side), [`watch`] (the watchdog's account).

#![forbid(unsafe_code)]

pub mod arbiter;
pub mod cells;
pub mod collective;
pub mod detector;
pub mod endpoint;
pub mod error;
pub mod fault;
pub mod group;
pub mod layout;
pub mod lines;
pub mod matching;
pub mod member;
pub mod plain;
#[doc(hidden)]
pub mod planted;
pub mod rank;
pub mod reduction;
pub mod ring;
pub mod settings;
pub mod shared;
pub mod stamp;
pub mod time;
pub mod topology;
mod waits;
pub mod watch;
pub mod wire;
