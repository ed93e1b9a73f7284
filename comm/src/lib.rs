//! MPI-like messages between the ranks of a job that survives the death of any of them.
//!
//! A *job* is a number of ranks, operating-system processes that run the same program. [`World::init`] joins
//! it; [`Communicator`] has the calls that users of MPI know. When a rank dies, every call of the survivors
//! returns [`CommError::PeerFailed`]; [`World::repair`] agrees on who is lost, waits for the replacements that
//! the launcher starts, and gives the world its old size and ranks back. What was in memory of the lost rank
//! is the business of layers above.
//!
//! ```
//! use ft_comm::{Op, World};
//!
//! let mut world = World::init()?; // without the launcher: a job of one rank
//! let mut sum = [world.rank() as u64 + 1];
//! world.comm().allreduce(&mut sum, Op::Sum)?;
//! assert_eq!(sum[0], (1..=world.size() as u64).sum());
//! world.finalize(Vec::new())?;
//! # Ok::<(), ft_comm::CommError>(())
//! ```

pub mod collective;
pub mod fault;
pub mod launch;
#[doc(hidden)]
pub mod planted;
pub mod proto;
pub mod service;
pub mod sim;
pub mod time;
pub mod transport;
pub mod wire;

mod communicator;
mod core;
mod driver;
mod error;
mod plain;
mod rank;
mod request;
mod world;

pub use communicator::{Communicator, Part};
pub use error::{CommError, list};
pub use plain::{Op, Plain, Reduce};
pub use proto::endpoint::EAGER_BYTES_MAX;
pub use proto::watch::WATCHDOG;
pub use rank::{Generation, Membership, PeerId, Rank, Seat, Source, Status, Tag, TagSel};
pub use request::Request;
pub use world::{ENV_KEY, ENV_LAUNCHER, ENV_PEER, Repair, TIMELINE, World};
