//! Messages and collectives of `ft-comm` beside raw sockets, MPICH and Open MPI.
//!
//! Every side is a program that times the same list of tests ([`mod@test`]) in the same way ([`batches`]) and prints
//! the same lines ([`Measured`]): `examples/messages.rs` for `ft-comm`, `examples/raw` for sockets without any message
//! layer, `peers/mpi_messages.c` for MPI. [`run`] starts them in turns, round by round, each round in another order;
//! what counts are ratios of medians over rounds, because the machine is in another mood with every start.

mod bars;
pub mod batches;
mod congestion;
mod measured;
mod peers;
mod plan;
mod session;
mod side;
mod summary;
mod tables;
pub mod test;

pub use self::bars::{Bar, Ours, Rival, Subject};
pub use self::congestion::Congestion;
pub use self::measured::Measured;
pub use self::plan::Order;
pub use self::session::{Results, Sample, run};
pub use self::side::Side;
pub use self::summary::{Reading, Summary};
