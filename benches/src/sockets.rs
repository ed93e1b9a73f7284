//! What sockets leave possible between processes of one host: no headers, no matching, no queues; every receive knows
//! what comes.
//!
//! `examples/raw` times messages with it, `checkpoint_floor` the exchange of a checkpoint.

mod mesh;
mod start;

pub use self::mesh::{Mesh, Sockets, Wait, Wires};
pub use self::start::start;
