//! Erasure codes over byte slices: lose some blocks, compute them back from the others.
//!
//! A *stripe* is `k` *shards*, one from each data member, and `m` *redundant blocks* computed from them.
//! Any `m` of the `k + m` blocks may be lost. A redundant block is built one shard at a time with
//! [`Code::accumulate`], so that the shards need never be in one place; [`encode`] is the loop over it
//! for when they are.
//!
//! ```
//! use ft_encoders::{Code, ReedSolomon, encode};
//!
//! let code = ReedSolomon::new(3, 2)?;
//! let data: [&[u8]; 3] = [b"north", b"south", b"east."];
//! let redundant = encode(&code, &data)?;
//!
//! // Three data shards and two redundant blocks; the second shard and the first block are lost.
//! let mut shards: Vec<Option<Vec<u8>>> =
//!     data.iter().map(|shard| shard.to_vec()).chain(redundant.iter().cloned()).map(Some).collect();
//! shards[1] = None;
//! shards[3] = None;
//!
//! code.recover(&mut shards)?;
//! assert_eq!(shards[1].as_deref(), Some(&b"south"[..]));
//! assert_eq!(shards[3].as_ref(), Some(&redundant[0]));
//!
//! // One loss too many is refused, and nothing is changed.
//! shards[0] = None;
//! shards[1] = None;
//! shards[2] = None;
//! let error = code.recover(&mut shards).unwrap_err();
//! assert_eq!(error.to_string(), "3 of 5 blocks lost, this code (3+2) survives at most 2");
//! # Ok::<(), ft_encoders::CodeError>(())
//! ```
//!
//! # The codes
//!
//! | code | losses survived | extra memory | cost per byte of data | exact or rounded |
//! |---|---|---|---|---|
//! | [`Mirror`] | `m` of `1 + m` | `m` times the data | `m` XORs | exact |
//! | [`Xor`] | 1 of `k + 1` | `1 / k` of the data | 1 XOR | exact |
//! | [`ReedSolomon`] | `m` of `k + m`, `k + m <= 256` | `m / k` of the data | `m` table lookups and XORs | exact |
//!
//! Every code here is *systematic* (the shards are stored as they are), *maximum distance separable*
//! (no code survives more losses with as much memory) and *linear* (see [`Code::accumulate`]): the parity of a
//! difference is the difference of the parities, so a shard that changed in a few places can be updated in the
//! redundant blocks by accumulating old XOR new.
//!
//! What is not here: finding out *that* a block is damaged (a wrong block is an input like any other, so check
//! blocks before and after with a checksum), and knowing where blocks are stored.
//!
//! # Sources
//!
//! - I. S. Reed and G. Solomon, Polynomial codes over certain finite fields, Journal of the SIAM 8(2), 1960.
//! - D. A. Patterson, G. Gibson and R. H. Katz, A case for redundant arrays of inexpensive disks (RAID),
//!   SIGMOD 1988: level 1 is [`Mirror`], the parity of levels 3 to 5 is [`Xor`].
//! - J. S. Plank, A tutorial on Reed-Solomon coding for fault-tolerance in RAID-like systems, Software: Practice
//!   and Experience 27(9), 1997, to be read with J. S. Plank and Y. Ding, Note: correction to the 1997 tutorial
//!   on Reed-Solomon coding, same journal 35(2), 2005: the matrix of the tutorial does not survive every `m`
//!   losses, that of the note does, and is the one used here.

mod code;
mod error;
mod mirror;
mod reed_solomon;
mod shape;
mod xor;

pub use code::{Code, encode};
pub use error::CodeError;
pub use mirror::Mirror;
pub use reed_solomon::ReedSolomon;
pub use xor::Xor;
