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

pub mod binding;
pub mod estate;
pub mod inherited;
pub mod lifeline;
pub mod limits;
pub mod service;
pub mod time;
pub mod transport;

mod communicator;
mod core;
mod driver;
mod fork;
mod handover;
mod main_error;
mod request;
mod world;

pub use crate::core::{BUFFERED_BYTES_MAX, Guard};
pub use communicator::{
    Cartesian, CollectiveRecord, CollectiveRequest, Communicator, CommunicatorRecord, Message, Part, Piece,
    Plan, PlanRecord, PlanRequest, Schedule, ScheduleRequest,
};
pub use driver::Spaces;
pub use ft_proto::endpoint::EAGER_BYTES_MAX;
pub use ft_proto::error::{CommError, list};
pub use ft_proto::group::{Comparison, Group, GroupError};
pub use ft_proto::layout::{Layout, LayoutError};
pub use ft_proto::plain::Plain;
pub use ft_proto::rank::{
    Agreement, Generation, Membership, MessageMode, OnFailure, PeerId, Rank, Seat, Source, Status, Tag,
    TagSel,
};
pub use ft_proto::reduction::{
    Custom, LocatedF32, LocatedF64, LocatedI32, LocatedI64, Op, Operation, Reduce,
};
pub use ft_proto::topology::{Graph, Grid, Sub, TopologyError, dims_create};
pub use ft_proto::wire::control::Saved;
pub use ft_proto::{collective, fault, settings};
pub use main_error::MainError;
pub use request::{Completion, Request, RequestRecord, test_any, test_some, wait_all, wait_any, wait_some};
pub use service::alarm::Alarm;
pub use service::ready::ReadyMemory;
pub use service::saves::Saves;
pub use world::{ENV_KEY, ENV_LAUNCHER, ENV_PEER, ENV_REFUSED, Repair, World};

/// What stands in the handbook is a program.
#[cfg(doctest)]
#[doc = include_str!("../../docs/messages.md")]
struct Messages;
