//! Erasure codes over byte slices: lose some blocks, compute them back from the others.
//!
//! A *stripe* is `k` *shards*, one from each data member, and `m` *redundant blocks* computed from them.
//! Any `m` of the `k + m` blocks may be lost. Redundant blocks are computed all at once where the shards are in one place
//! ([`Code::encode`]), or one shard at a time, so that they never need to be ([`Code::accumulate`]). What a lost block is
//! computed from, and how, is a [`Combination`].
//!
//! ```
//! use ft_encoders::{Code, ReedSolomon};
//!
//! let code = ReedSolomon::new(3, 2)?;
//! let data: [&[u8]; 3] = [b"north", b"south", b"east."];
//! let (mut p, mut q) = ([0; 5], [0; 5]);
//! code.encode(&data, &mut [&mut p, &mut q])?;
//!
//! // Blocks 0, 1, 2 are data, 3 and 4 redundant; the second shard and the first redundant block are lost.
//! let present = [true, false, true, false, true];
//! let combination = code.combination(&present, 1)?;
//! assert!(combination.sources().map(|(index, _)| index).eq([0, 2, 4]));
//! let mut south = [0; 5];
//! combination.rebuild(&[data[0], data[2], &q], &mut south)?;
//! assert_eq!(&south, b"south");
//!
//! // One loss too many is refused.
//! let error = code.combination(&[false, false, true, false, true], 1).unwrap_err();
//! assert_eq!(error.to_string(), "3 of 5 blocks lost, this code (3+2) survives at most 2");
//! # Ok::<(), ft_encoders::CodeError>(())
//! ```
//!
//! # The codes
//!
//! | code | losses survived | extra memory | cost per byte of data | exact or rounded |
//! |---|---|---|---|---|
//! | [`Mirror`] | `m` of `1 + m` | `m` times the data | `m` copies | exact |
//! | [`Xor`] | 1 of `k + 1` | `1 / k` of the data | 1 XOR | exact |
//! | [`ReedSolomon`] | `m` of `k + m`, `k + m <= 256` | `m / k` of the data | `m` products and XORs | exact |
//! | [`Checksum`] | `m` of `k + m`, `k <= 60`, `m <= 4` | `m / k` of the data | `m / 8` products and sums of doubles | rounded, with a bound |
//!
//! Every code here is *systematic* (the shards are stored as they are), *maximum distance separable*
//! (no code survives more losses with as much memory) and *linear*: the parity of a
//! difference is the difference of the parities, so a shard that changed in a few places can be updated in the
//! redundant blocks ([`Code::update`]).
//!
//! The others are a [`Code`] over bytes; [`Checksum`] is one over slices of doubles, with calls of the same names. It is **never for
//! integers: bits are not kept**. What it rebuilds is rounded, and comes with the most that it can be off ([`Bound`]): of data whose
//! members are of one magnitude the last few digits of sixteen, of a small member beside a large one possibly all.
//!
//! What is not here: finding out *that* a block is damaged (a wrong block is an input like any other, so check
//! blocks before and after with a checksum), and knowing where blocks are stored.
//!
//! # How they are computed
//!
//! All is one operation, `into[j] (^)= XOR_i weight(j, i) * sources[i]` over GF(2^8), which reads every source once for up to four
//! blocks. The instructions for it are chosen when the process first needs them: see [`Kernel`]. With GFNI a product by a
//! constant is an affine map of bits, of 64 bytes an instruction and for any polynomial; with AVX2, SSSE3 and NEON it is the sum of
//! two tables of 16 bytes, looked up by shuffles; elsewhere it is done bit by bit in words of 8 bytes. Data beyond the caches is asked for
//! ahead of time, and blocks that will not fit into them are written past them, so the same call is fastest for
//! segments that are still in the cache: encode data as it arrives rather than all of it at the end.
//! `benches/results` has the figures, beside those of ISA-L.
//!
//! # Sources
//!
//! - I. S. Reed and G. Solomon, Polynomial codes over certain finite fields, Journal of the SIAM 8(2), 1960.
//! - D. A. Patterson, G. Gibson and R. H. Katz, A case for redundant arrays of inexpensive disks (RAID),
//!   SIGMOD 1988: level 1 is [`Mirror`], the parity of levels 3 to 5 is [`Xor`].
//! - R. M. Roth and A. Lempel, On MDS codes via Cauchy matrices, IEEE Transactions on Information Theory 35(6), 1989, and J. Blömer,
//!   M. Kalfane, R. Karp, M. Karpinski, M. Luby and D. Zuckerman, An XOR-based erasure-resilient coding scheme, ICSI TR-95-048, 1995:
//!   Cauchy matrices, those of [`ReedSolomon::new`].
//! - J. S. Plank, A tutorial on Reed-Solomon coding for fault-tolerance in RAID-like systems, Software: Practice
//!   and Experience 27(9), 1997, to be read with J. S. Plank and Y. Ding, Note: correction to the 1997 tutorial
//!   on Reed-Solomon coding, same journal 35(2), 2005: the matrix of the tutorial does not survive every `m`
//!   losses, that of the note does, and is that of [`ReedSolomon::vandermonde`].
//! - J. S. Plank, K. M. Greenan and E. L. Miller, Screaming fast Galois field arithmetic using Intel SIMD instructions, FAST 2013: products
//!   by shuffles.
//! - Intel, Galois Field New Instructions (GFNI) technology guide, and the library ISA-L (`isa-l`): products by affine maps; the matrix and
//!   the bytes of [`ReedSolomon::new`] are those of its `gf_gen_cauchy1_matrix`.
//! - J. S. Plank, Y. Kim and J. J. Dongarra, Algorithm-based diskless checkpointing for fault tolerant matrix operations, FTCS-25, 1995, and
//!   Fault-tolerant matrix operations for networks of workstations using diskless checkpointing, Journal of Parallel and Distributed
//!   Computing 43(2), 1997: checksums in floating point, [`Checksum`].
//! - Z. Chen and J. Dongarra, Numerically stable real number codes based on random matrices, ICCS 2005, LNCS 3514, and Z. Chen, Optimal real number codes
//!   for fault tolerant matrix operations, SC 2009: why every square part of the weights has to be well conditioned, and Vandermonde's are not.
//! - E. H. Bareiss, Sylvester's identity and multistep integer-preserving Gaussian elimination, Mathematics of Computation 22, 1968: the equations
//!   of [`Recovery`], solved without rounding.
//! - N. J. Higham, Accuracy and stability of numerical algorithms, 2nd edition, SIAM 2002: `gamma(n)` and sums (chapters 3 and 4), the condition number of Skeel and
//!   the scaling that attains it (chapter 7).

mod checksum;
mod code;
mod combination;
mod error;
mod field;
mod kernel;
mod mirror;
mod reed_solomon;
mod shape;
mod xor;

pub use checksum::{Bound, Checksum, ChecksumError, Drift, Recovery, add_product, largest};
pub use code::{Code, accumulate, combine, copy_past_caches};
pub use combination::{Combination, Combinations};
pub use error::CodeError;
pub use kernel::{Kernel, KernelError};
pub use mirror::Mirror;
pub use reed_solomon::ReedSolomon;
pub use xor::Xor;
