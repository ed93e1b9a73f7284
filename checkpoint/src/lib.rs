//! Protected state, the placement of its redundancy, and the commit protocol of in-memory checkpoints.
//!
//! A rank's state becomes bytes, its *shard*, by one walk over its fields ([`Protect`], [`save`], [`load`]). A
//! [`Scheme`] and the number of ranks give a [`GroupLayout`]: parity groups, and stripes of a code over the shards of each
//! group. A [`Store`] keeps a rank's own shards and the redundant blocks that it holds for others. A [`Ledger`] says
//! at every moment which epoch is whole and which memory may be overwritten.
//!
//! | scheme | survives, per group | extra memory a rank | sent a rank and checkpoint |
//! |---|---|---|---|
//! | `none` | nothing | 0 | 0 |
//! | `neighbor:C` | any C ranks; more, unless a rank goes with all C that hold its copies | C S | C S |
//! | `xor:G` | any 1 of G | S / (G-1) | S |
//! | `xor:G`, dedicated | any 1 of G-1 and the parity rank | 0; parity rank: S | S |
//! | `rs:K+M` | any M of K+M | M S / K | M S; (K+M-1) S / K if the first holder encodes and forwards |
//! | `rs:K+M`, dedicated | any M of K and the M parity ranks | 0; parity ranks: S | M S |
//! | `disk:DIR` | any number, all ranks at once too | 0; S on the disk | 0; S written ([`disk`]) |
//!
//! S is the size of the longest shard of the group. Extra memory is that of one epoch and comes on top of the rank's
//! own copy, S. Two epochs are kept, since the last committed one must stay whole while the next is staged, so a rank
//! holds twice the sum for the variable part of its state, and once for the constant part.
//!
//! A [`Checkpointer`] takes checkpoints and restores from them over the messages of `ft_comm`; [`run`] is the loop
//! that does all of it for a [`Program`], and a [`Job`] has several of them. What decides is pure: layout, protocol, regions, store.

#![forbid(unsafe_code)]

// Derived code says `::ft_checkpoint`, in here as well.
extern crate self as ft_checkpoint;

pub mod bag;
mod buffer;
mod build;
mod candidates;
mod changes;
pub mod checkpointer;
mod coding;
mod crc;
pub mod disk;
pub mod error;
mod exchange;
mod inspect;
pub mod interval;
pub mod layout;
mod pace;
mod placement;
mod protection;
pub mod protocol;
pub mod redistribution;
pub mod region;
pub mod resilient;
pub mod scheme;
mod settings;
mod spill;
pub mod stats;
pub mod store;
mod trial;
mod worker;

pub use bag::Bag;
pub use build::build_number;
pub use checkpointer::{Checkpointer, RankState, Restored};
pub use disk::{DiskError, SavedSets};
pub use error::CheckpointError;
/// What `main` returns: any error, in words.
#[doc(inline)]
pub use ft_comm::MainError;
pub use inspect::{FieldError, SavedArray, SavedField, SavedPiece, SavedRank, SavedSet};
pub use layout::{BeyondTolerance, CodeSpec, GroupLayout, LayoutError, ParityGroup, Stripe};
pub use pace::{Interval, IntervalReport};
pub use protection::{Checkpoints, Level, Lines, MemoryUse, Protection, Recovery};
pub use protocol::{Choice, Event, Ledger, LedgerError, Report, State, choose};
pub use redistribution::{Redistribute, Redistribution};
pub use region::{
    Array, Distributed, Element, Field, Protect, ProtectError, ProtectErrorKind, Replicated, Spread,
    StatePart, Tracked, Walk, fingerprint, load, save, save_into, size,
};
#[doc(hidden)]
pub use region::{describe_once, describe_plainly};
pub use resilient::{Finished, Flow, Job, Program, RestorePolicy, RunError, run};
pub use scheme::{Scheme, SchemeError};
pub use settings::LoopSettings;
pub use spill::{Resume, Spill, SpillEvery};
pub use stats::{CheckpointSeconds, LevelStats, LineStats, RebuiltDoubles, RestoreSeconds, Stats};
pub use store::{ShardMeta, Slot, Store, StoreError};
pub use trial::Trial;
pub use worker::Worker;

#[doc(hidden)]
pub use bytemuck;
#[doc(hidden)]
pub use ft_comm::CommError;
#[doc(hidden)]
pub use serde;

/// The program in the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
