//! Lanczos with full reorthogonalization: the smallest or the largest eigenvalues of a symmetric `A`, and their vectors.
//!
//! ```text
//! v_1 = b / ||b||
//! for j = 1, 2, ...:
//!     w = A v_j,  alpha_j = v_j.w
//!     beta_j v_{j+1} = w made orthogonal to v_1..v_j
//!     theta, S = eigenpairs of the tridiagonal matrix of alpha and beta
//!     stop if beta_j |s_j| is small for all that are wanted        this is ||A y - theta y|| for y = V s
//! ```
//!
//! One product and two reductions per iteration, sometimes three; the `j`-th reads the basis four
//! times: 32 j bytes per row. The state has a vector more after each iteration: `iterations_max`
//! bounds them. The stopping rules look at the largest residual bound of the wanted eigenpairs,
//! measured by the largest modulus of an eigenvalue of the tridiagonal matrix, whose elements are
//! at most the norm of `A`: it is less than three times that norm, whatever rounding does. In the
//! end the residual of each pair is computed from its vector. The small problem is solved by every
//! rank, from the same numbers; beyond 16 vectors only in every fourth iteration. Of a multiple
//! eigenvalue it finds one vector.
//!
//! Sources: Lanczos: An iteration method for the solution of the eigenvalue problem of linear differential and integral
//! operators, J. Research NBS 45, 1950; Saad: Numerical Methods for Large Eigenvalue Problems, 2nd edition, SIAM, 2011,
//! algorithm 6.5.

use ft_checkpoint::{Protect, Redistribute};
use ft_comm::Communicator;
use nalgebra::DMatrix;

use super::eigenpairs::{Measured, require_count};
use super::gram_schmidt::orthogonalize;
use super::{Course, Solver, Step, System, norm2, require};
use crate::small_eigen::SmallEigen;
use crate::stop::Quantity;
use crate::vector::divide;
use crate::{LinalgError, MultiVector, StopCriteria, StopReason, Workspace};

/// An eigenvalue of the tridiagonal matrix, and its eigenvector.
type RitzPair = (f64, Vec<f64>);

/// What Lanczos leaves open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LanczosOptions {
    /// When to stop.
    pub stop: StopCriteria,
    /// How many eigenpairs are wanted, at least 1.
    pub count: usize,
    /// The largest ones; else the smallest.
    pub largest: bool,
}

impl Default for LanczosOptions {
    /// The largest one; at most 300 iterations, as memory grows with them.
    fn default() -> Self {
        Self { stop: StopCriteria { iterations_max: 300, ..StopCriteria::DEFAULT }, count: 1, largest: true }
    }
}

/// Lanczos' method.
#[derive(Clone, Debug, Default, Protect, Redistribute)]
pub struct Lanczos {
    /// The first of the vectors, once they are formed.
    #[protect(distributed)]
    x: Vec<f64>,
    #[protect(nested, distributed)]
    basis: MultiVector,
    /// The vectors that are wanted, once they are formed.
    #[protect(nested, distributed)]
    vectors: MultiVector,
    /// Diagonal of the tridiagonal matrix.
    #[protect(replicated)]
    alpha: Vec<f64>,
    /// What is beside it; the last one is not part of the matrix.
    #[protect(replicated)]
    beta: Vec<f64>,
    /// Eigenvalues that are wanted, and a bound of the residual of each; in the end its norm.
    #[protect(replicated)]
    values: Vec<(f64, f64)>,
    #[protect(constant, replicated)]
    count: usize,
    #[protect(constant, replicated)]
    largest: bool,
    /// Follows the largest bound.
    #[protect(nested, replicated)]
    course: Course,
}

impl Lanczos {
    /// The eigenvalues that are wanted, from the outermost on, and of each a bound: an eigenvalue
    /// of `A` is that near. Once the last step is done, the bound is the norm of the residual of
    /// its vector.
    pub fn eigenvalues(&self) -> &[(f64, f64)] {
        &self.values
    }

    /// The vector of an eigenvalue, own rows, once the last step is done.
    ///
    /// # Panics
    /// If there is none.
    pub fn eigenvector(&self, at: usize) -> &[f64] {
        self.vectors.column(at)
    }

    /// Eigenvalues of the tridiagonal matrix that are wanted, and their vectors; and the largest
    /// modulus. `None` if they cannot be computed.
    fn ritz(&self) -> Option<(Vec<RitzPair>, f64)> {
        let size = self.alpha.len();
        let mut t = DMatrix::<f64>::zeros(size, size);
        for at in 0..size {
            t[(at, at)] = self.alpha[at];
            if at + 1 < size {
                (t[(at, at + 1)], t[(at + 1, at)]) = (self.beta[at], self.beta[at]);
            }
        }
        let eigen = SmallEigen::of(t)?;
        let pair = |at: usize| (eigen.values[at], eigen.vectors.column(at).iter().copied().collect());
        Some((eigen.outermost(self.count, self.largest).into_iter().map(pair).collect(), eigen.modulus()))
    }

    /// The eigenvalues that are wanted, as far as the basis has them, and their vectors.
    fn pairs(&self) -> (Vec<f64>, MultiVector) {
        let (mut values, mut vectors) = (vec![], MultiVector::zeros(self.basis.part().clone(), 0));
        for (value, s) in self.ritz().map(|(pairs, _)| pairs).unwrap_or_default() {
            let mut vector = vec![0.0; self.x.len()];
            self.basis.add_to(&s, &mut vector);
            vectors.push(&vector);
            values.push(value);
        }
        (values, vectors)
    }
}

impl Solver for Lanczos {
    type Options = LanczosOptions;

    /// Starts from `b`. One reduction.
    fn start(
        options: &LanczosOptions,
        system: &System<'_>,
        x: &[f64],
        comm: &Communicator,
        _: &mut Workspace,
    ) -> Result<Self, LinalgError> {
        require(system, x, comm)?;
        let (count, largest) = (options.count.max(1), options.largest);
        require_count(count, system)?;
        // Nothing is known yet.
        let course = Course::new(options.stop, 1.0, 1.0);
        let none = MultiVector::zeros(system.a.part().clone(), 0);
        let (basis, vectors) = (none.clone(), none);
        let x = vec![0.0; x.len()];
        let mut lanczos = Self { x, basis, vectors, count, largest, course, ..Self::default() };
        let norm = norm2(system.a.part(), system.b, comm)?;
        if lanczos.course.need_nonzero(Quantity::Start, norm).is_some() {
            let _ = lanczos.course.need_finite(Quantity::Start, system.a.part(), system.b, comm)?;
        } else {
            lanczos.basis.push(system.b);
            divide(lanczos.basis.column_mut(0), norm);
        }
        Ok(lanczos)
    }

    /// One product, two reductions.
    fn step(
        &mut self,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Step, LinalgError> {
        require(system, &self.x, comm)?;
        if let Some(done) = self.course.done() {
            return Ok(done);
        }
        let mut w = work.take(self.x.len());
        system.a.apply(self.basis.column(self.alpha.len()), &mut w, comm, work)?;
        let (taken, beta) = orthogonalize(&self.basis, &mut w, comm, work)?;
        let alpha = taken.last().copied().unwrap_or(0.0);
        let iterations = self.course.progress().iterations;
        if !(alpha.is_finite() && beta.is_finite()) {
            let quantity = Quantity::Product;
            let broken = self.course.end(StopReason::Breakdown { iterations, quantity });
            system.a.apply(self.basis.column(self.alpha.len()), &mut w, comm, work)?;
            return Ok(self.course.need_finite(quantity, system.a.part(), &w, comm)?.unwrap_or(broken));
        }
        self.alpha.push(alpha);
        self.beta.push(beta);
        if beta > 0.0 {
            divide(&mut w, beta);
            self.basis.push(&w);
        }
        work.give(w);

        let size = self.alpha.len();
        let is_last = beta == 0.0 || iterations + 1 >= self.stop().iterations_max;
        let mut norm = self.progress().residual_norm;
        if size <= 16 || size.is_multiple_of(4) || is_last {
            let Some((ritz, modulus)) = self.ritz() else {
                let quantity = Quantity::NextDirection;
                return Ok(self.course.end(StopReason::Breakdown { iterations, quantity }));
            };
            self.values = ritz.iter().map(|(value, s)| (*value, beta * s[size - 1].abs())).collect();
            norm = self.values.iter().fold(0.0, |most: f64, (_, bound)| most.max(*bound));
            self.course.measure_by(modulus);
        }
        // Fewer than are wanted are not enough, however good.
        let is_short = size < self.count;
        let step = match self.course.advance(if is_short { f64::MAX.sqrt() } else { norm }) {
            Step::Continue if beta == 0.0 => {
                let reason =
                    StopReason::Vanished { iterations: iterations + 1, quantity: Quantity::NextDirection };
                self.course.end(reason)
            }
            step => step,
        };
        if step != Step::Continue {
            self.settle(system, comm, work)?;
        }
        Ok(step)
    }

    /// The first eigenvector.
    fn x(&self) -> &[f64] {
        &self.x
    }

    fn course(&self) -> &Course {
        &self.course
    }

    /// Forms the eigenvectors, and computes their residuals.
    fn settle(
        &mut self,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        let (values, vectors) = self.pairs();
        let measured = Measured::of(&vectors, &values, system, comm, work)?;
        self.values = values.into_iter().zip(measured.norms).collect();
        if vectors.columns() > 0 {
            self.x.copy_from_slice(vectors.column(0));
        }
        self.vectors = vectors;
        Ok(())
    }

    /// The largest `||A y - theta y||`, and what the vectors lack of being orthonormal.
    fn true_norm(
        &self,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<f64, LinalgError> {
        let progress = self.course.progress();
        let (values, vectors) = self.pairs();
        if !progress.residual_norm.is_finite() || values.is_empty() {
            return Ok(progress.residual_norm);
        }
        Ok(Measured::of(&vectors, &values, system, comm, work)?.norm(progress.reference_norm))
    }
}
