//! Distributed vectors, sparse matrices and solvers whose answer does not depend on the number of ranks.
//!
//! Rows are dealt out in contiguous ranges that are cut at block borders only ([`Partition`]); the blocks depend
//! on the number of rows and on nothing else. Two rules follow from that and hold everywhere in this crate:
//!
//! * a sum over rows (dot product, norm, [`answer_hash`]) is formed per block, in one fixed order, and the blocks
//!   are combined by a tree over the *block index* ([`dot`]);
//! * a sum over a row (matrix product) runs through the row in ascending global column, whether a column is owned
//!   or comes from another rank ([`matrix`]).
//!
//! So 1 rank and 17 ranks give the same bits, and so does a run that was repaired on the way.
//!
//! | module | what is in it |
//! |---|---|
//! | [`partition`] | who owns which row, global and local indices |
//! | [`csr`], [`matrix_market`], [`poisson`] | rows of a sparse matrix, and where they come from |
//! | [`stencil`] | operators on a grid, without a matrix |
//! | [`halo`], [`matrix`], [`format`] | entries needed from other ranks, the distributed product, how rows are stored for it |
//! | [`vector`], [`dot`], [`rhs`], [`hash`] | vectors, reproducible sums, right-hand sides, the hash of an answer |
//! | [`precond`], [`stop`], [`solver`] | preconditioners, stopping criteria, conjugate gradients |
//!
//! Functions that take a communicator are collective: every rank calls them, in the same order.
//! State structs ([`DistVector`], [`DistMatrix`], [`CgState`]) hold plain vectors and scalars, so that they can be
//! checkpointed; what can be made again (halo plan, scratch space) is kept in parts of its own.

#![forbid(unsafe_code)]

pub mod csr;
pub mod dot;
pub mod error;
pub mod format;
pub mod halo;
pub mod hash;
pub mod matrix;
pub mod matrix_market;
pub mod partition;
pub mod poisson;
pub mod precond;
pub mod rhs;
pub mod solver;
pub mod stencil;
pub mod stop;
pub mod vector;

pub use csr::CsrRows;
pub use error::{LinalgError, MatrixMarketError, agree};
pub use format::Format;
pub use hash::answer_hash;
pub use matrix::DistMatrix;
pub use partition::{Global, Local, Partition};
pub use poisson::Poisson;
pub use precond::{Identity, Jacobi, Preconditioner};
pub use solver::{Cg, CgState, Preconditioning, Problem, Solution, Solved, Step};
pub use stencil::{DistStencil, Stencil};
pub use stop::{StopCriteria, StopReason};
pub use vector::DistVector;
