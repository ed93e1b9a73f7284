//! Distributed vectors, sparse matrices and solvers whose answer does not depend on the number of ranks.
//!
//! Rows are dealt out in contiguous ranges that are cut at block borders only ([`Partition`]); the blocks depend
//! on the number of rows and on nothing else. Two rules follow from that and hold everywhere in this crate:
//!
//! * a sum over rows (dot product, norm, [`answer_hash`]) is formed per block, in one fixed order, and the blocks
//!   are combined by a tree over the *block index* ([`dot`]);
//! * a sum over a row (matrix product) runs through the row in ascending global column, whether a column is owned
//!   or comes from another rank ([`product`]).
//!
//! So 1 rank and 17 ranks give the same bits, and so does a run that was repaired on the way.
//!
//! | module | what is in it |
//! |---|---|
//! | [`partition`] | who owns which row, global and local indices |
//! | [`csr`], [`rows`] | rows of a sparse matrix, on one rank and on all |
//! | [`assembly`], [`matrix_market`], [`npy`], [`poisson`], [`gallery`] | where they come from |
//! | [`permutation`] | other orders of them |
//! | [`matrix`], [`product`], [`mod@format`], [`halo`] | the distributed matrix, its product, how rows are stored for it, entries needed from other ranks |
//! | [`stencil`] | operators on a grid, without a matrix |
//! | [`parallel`] | loops that the threads of a rank share |
//! | [`operator`], [`workspace`] | whatever a solver can multiply by, and the memory that calls share |
//! | [`vector`], [`multi_vector`], [`dot`], [`rhs`], [`hash`] | vectors, reproducible sums, right-hand sides, the hash of an answer |
//! | [`precond`], [`stop`], [`solver`] | preconditioners, stopping criteria, solvers and what protects them |
//!
//! Functions that take a communicator are collective: every rank calls them, in the same order.
//! State structs ([`DistVector`], [`DistMatrix`], every [`Solver`]) hold plain vectors and scalars, so that they can be
//! checkpointed; what can be made again (halo plan, preconditioner, [`Workspace`]) is none of them.

#![forbid(unsafe_code)]

pub mod assembly;
pub mod csr;
pub mod dot;
pub mod error;
pub mod format;
pub mod gallery;
pub mod halo;
pub mod hash;
mod in_turn;
pub mod matrix;
pub mod matrix_market;
pub mod multi_vector;
pub mod npy;
pub mod operator;
pub mod parallel;
pub mod partition;
pub mod permutation;
pub mod poisson;
pub mod precond;
pub mod product;
pub mod rhs;
pub mod rows;
mod small_eigen;
pub mod solver;
pub mod stencil;
pub mod stop;
mod triplets;
pub mod vector;
pub mod workspace;

pub use assembly::{Assembly, VectorAssembly};
pub use csr::CsrRows;
pub use error::{LinalgError, MatrixMarketError, agree};
pub use format::Format;
pub use hash::answer_hash;
pub use matrix::DistMatrix;
pub use multi_vector::MultiVector;
pub use operator::{LinearOperator, Sums};
pub use partition::{Global, Local, Partition};
pub use permutation::Permutation;
pub use poisson::Poisson;
pub use precond::{Identity, Jacobi, MakePreconditioner, Precond, Preconditioner};
pub use rows::DistRows;
pub use solver::{
    Bicgstab, Cg, Cgls, Chebyshev, Fgmres, Gmres, Lanczos, Lobpcg, Lsqr, Minres, Power, Problem, Protected,
    Richardson, SingleReductionCg, Solution, SolveState, Solved, Solver, Step, System, solve,
    solve_and_monitor, solve_many,
};
pub use stencil::{DistStencil, Stencil};
pub use stop::{Progress, StopCriteria, StopReason};
pub use vector::DistVector;
pub use workspace::Workspace;
