//! Checkpoints beside what this machine can do at best, and beside its disk.
//!
//! - *The floor* (`checkpoint_floor`): processes with sockets that move the bytes of a scheme and compute its blocks, without any
//!   protocol; and files, one a rank.
//! - *Ours* (`examples/checkpoint.rs`, `examples/solver.rs`, `ftrun load`): the same under the launcher.
//! - *MPI-IO* (`peers/mpi_checkpoint.c`): one shared file.
//!
//! [`run`] starts them in turns, round by round; what counts is the median over rounds of the ratio of the two within a round.
//! A checkpoint takes from the first rank's start to the last rank's end, by one clock.

mod job;
mod row;
mod scheme;
mod session;
mod span;
mod summary;

pub use self::job::{Cell, Job, Sizes, Took};
pub use self::row::{Bar, Kind, Row};
pub use self::scheme::{IN_MEMORY, Scheme};
pub use self::session::{Order, Results, Sample, run};
pub use self::span::{now_ns, spans};
pub use self::summary::Reading;
