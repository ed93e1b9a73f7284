//! Test matrices, of any size, with solutions that are known; [`crate::Poisson`] is the simplest of them.
//!
//! | matrix | is | for |
//! |---|---|---|
//! | [`Laplacian27`] | symmetric positive definite, 27 entries a row (HPCG's) | conjugate gradients, multigrid |
//! | [`Elasticity`] | symmetric positive definite, three unknowns a node, assembled from elements | the same, harder |
//! | [`ConvectionDiffusion`] | not symmetric | GMRES, BiCGSTAB |
//! | [`ShiftedPoisson`] | symmetric, indefinite | MINRES |
//! | [`NeumannPoisson`] | symmetric, singular; systems with a solution have many | what solvers say to that |
//! | [`LeastSquares`] | rectangular, of full rank | CGLS, LSQR |
//!
//! But for elasticity, whose elements belong to several rows, each rank makes its own rows and nothing is communicated.

mod convection_diffusion;
mod elasticity;
mod grid;
mod laplacian27;
mod least_squares;
mod neumann;
mod shifted;

pub use convection_diffusion::ConvectionDiffusion;
pub use elasticity::Elasticity;
pub use laplacian27::Laplacian27;
pub use least_squares::LeastSquares;
pub use neumann::NeumannPoisson;
pub use shifted::ShiftedPoisson;

#[cfg(test)]
mod tests;
