//! Conjugate gradients, with or without a preconditioner, for symmetric positive definite `A`.
//!
//! ```text
//! r = b - A x,  z = M^-1 r,  p = z,  rz = r.z
//! until ||r|| is small:
//!     q = A p
//!     alpha = rz / p.q
//!     x = x + alpha p
//!     r = r - alpha q
//!     z = M^-1 r
//!     beta = r.z / rz,  rz = r.z
//!     p = z + beta p
//! ```
//!
//! Two reductions per iteration: `p.q`, then `r.z` together with `r.r`. The loop runs block by block (the blocks of
//! [`crate::partition`]), so that vectors are still in cache when the next line of the algorithm reads them; per row
//! and iteration, memory sees 72 bytes besides those of the product (without a preconditioner).
//!
//! Everything that the next iteration depends on is in [`CgState`]; scratch space is not, so a state that comes out
//! of a checkpoint goes on with the same bits.
//!
//! Sources: Hestenes, Stiefel: Methods of conjugate gradients for solving linear systems, J. Research NBS 49, 1952;
//! Saad: Iterative Methods for Sparse Linear Systems, 2nd edition, SIAM, 2003, algorithm 9.1.

use ft_checkpoint::{Protect, Protection, Redistribute};
use ft_comm::{Communicator, World};

use super::protected::{Preconditioning, Problem, Protected};
use super::{Solution, Step, residual_norm};
use crate::{
    DistMatrix, DistVector, LinalgError, Partition, Preconditioner, StopCriteria, StopReason,
    dot::{Reducer, block_dot},
    halo::HaloBuffers,
    precond::Coupling,
    stop::{Quantity, relative},
    vector::{axpy, xpby},
};

/// What a checkpoint of conjugate gradients has to hold. Vectors are local parts, one element for each own row.
#[derive(Clone, Debug, Default, Protect, Redistribute)]
pub struct CgState {
    /// Approximate solution.
    #[protect(distributed)]
    pub x: Vec<f64>,
    /// Residual `b - A x`, as the recurrence carries it.
    #[protect(distributed)]
    pub r: Vec<f64>,
    /// Search direction.
    #[protect(distributed)]
    pub p: Vec<f64>,
    /// `r . z` of the preconditioned residual `z`.
    #[protect(replicated)]
    pub rz: f64,
    /// `r . r`.
    #[protect(replicated)]
    pub rr: f64,
    /// `||b||`.
    #[protect(constant, replicated)]
    pub b_norm: f64,
    /// Finished iterations.
    #[protect(replicated)]
    pub iteration: u64,
    /// When to stop.
    #[protect(nested, replicated)]
    pub stop: StopCriteria,
    /// Scratch space. Not checkpointed; an empty one (`default()`) grows as needed.
    #[protect(derived)]
    pub scratch: CgScratch,
}

/// Vectors and buffers without a value worth keeping between two steps.
#[derive(Clone, Debug, Default)]
pub struct CgScratch {
    /// `A p`.
    q: Vec<f64>,
    /// `M^-1 r`; empty where `M = 1`.
    z: Vec<f64>,
    /// Per-block sums of one and of two dot products.
    one: Vec<[f64; 1]>,
    two: Vec<[f64; 2]>,
    reducer: Option<Reducer>,
    halo: HaloBuffers,
}

impl CgScratch {
    fn fit(&mut self, part: &Partition, coupling: Coupling) {
        self.q.resize(part.local_len(), 0.0);
        self.z.resize(if coupling == Coupling::Identity { 0 } else { part.local_len() }, 0.0);
        self.one.resize(part.blocks_of(part.rank()).len(), [0.0]);
        self.two.resize(self.one.len(), [0.0; 2]);
        if self.reducer.as_ref().is_none_or(|reducer| reducer.part() != part) {
            self.reducer = Some(Reducer::new(part));
        }
    }
}

impl CgState {
    /// Starts from the approximation `x`. Collective: one product, one reduction.
    ///
    /// With `b = 0` the answer is 0, and the first step says so.
    ///
    /// # Errors
    /// [`LinalgError::Comm`], [`LinalgError::Length`], [`LinalgError::NotRebuilt`],
    /// [`LinalgError::WrongCommunicator`].
    pub fn new(
        stop: StopCriteria,
        a: &DistMatrix,
        m: &dyn Preconditioner,
        b: &DistVector,
        x: &DistVector,
        comm: &Communicator,
    ) -> Result<Self, LinalgError> {
        let part = a.part();
        part.require(comm)?;
        part.require_len("right-hand side", b.local().len())?;
        let mut state = Self {
            x: x.local().to_vec(),
            r: b.local().to_vec(),
            p: Vec::new(),
            rz: 0.0,
            rr: 0.0,
            b_norm: b.norm2(comm)?,
            iteration: 0,
            stop,
            scratch: CgScratch::default(),
        };
        if state.b_norm == 0.0 {
            state.x.fill(0.0);
            state.p = vec![0.0; state.x.len()];
            return Ok(state);
        }
        // r = b - A x
        let product = a.multiply(x, comm)?;
        axpy(-1.0, product.local(), &mut state.r);
        state.scratch.fit(part, m.coupling());
        [state.rz, state.rr] = state.precondition(part, m, comm)?;
        // p = z
        state.p = if m.coupling() == Coupling::Identity { &state.r } else { &state.scratch.z }.clone();
        Ok(state)
    }

    /// One iteration. Collective: one product, two reductions. All ranks return the same.
    ///
    /// Once it returns [`Step::Done`], calling it again changes nothing.
    ///
    /// # Errors
    /// [`LinalgError::Comm`], [`LinalgError::NotRebuilt`], [`LinalgError::WrongCommunicator`],
    /// [`LinalgError::Length`]. After the first of them the state may be torn and has to be restored.
    pub fn step(
        &mut self,
        a: &DistMatrix,
        m: &dyn Preconditioner,
        comm: &Communicator,
    ) -> Result<Step, LinalgError> {
        let (part, plan) = (a.part(), a.plan()?);
        part.require(comm)?;
        for (what, vector) in [("x", &self.x), ("r", &self.r), ("p", &self.p)] {
            part.require_len(what, vector.len())?;
        }
        if let Some(reason) = self.reason_to_stop() {
            return Ok(Step::Done(reason));
        }
        self.scratch.fit(part, m.coupling());

        // q = A p, and p.q
        let halo = self.scratch.halo.exchange(plan.halo(), &self.p, comm)?;
        let q = &mut self.scratch.q;
        for (rows, partial) in part.local_blocks().zip(&mut self.scratch.one) {
            plan.product(a.rows(), rows.clone(), &self.p, halo, &mut q[rows.clone()]);
            *partial = [block_dot(&self.p[rows.clone()], &q[rows])];
        }
        let reducer = self.scratch.reducer.as_mut().expect("made by fit");
        let [curvature] = reducer.sum(&self.scratch.one, comm)?;
        if let Some(reason) = self.not_positive(Quantity::Curvature, curvature) {
            return Ok(Step::Done(reason));
        }
        let alpha = self.rz / curvature;

        // x = x + alpha p, r = r - alpha q, z = M^-1 r, and r.z with r.r
        let [rz, rr] = self.update(alpha, part, m, comm)?;
        let beta = rz / self.rz;
        (self.rz, self.rr) = (rz, rr);
        self.iteration += 1;
        let reason = self.reason_to_stop();

        // p = z + beta p
        let z = if m.coupling() == Coupling::Identity { &self.r } else { &self.scratch.z };
        xpby(z, beta, &mut self.p);
        Ok(reason.map_or(Step::Continue, Step::Done))
    }

    /// `||r|| / ||b||`; `||r||` where `b` is zero.
    pub fn relative_residual(&self) -> f64 {
        relative(self.rr.sqrt(), self.b_norm)
    }

    /// What has been reached with `x`, the solution of this state as a vector, once `reason` was given to stop. Collective: one
    /// product, one reduction.
    ///
    /// # Errors
    /// As [`DistMatrix::multiply`].
    pub(super) fn solution(
        &self,
        reason: StopReason,
        a: &DistMatrix,
        x: &DistVector,
        b: &DistVector,
        comm: &Communicator,
    ) -> Result<Solution, LinalgError> {
        let norm = residual_norm(a, x, b, comm)?;
        Ok(Solution {
            reason: self.stop.confirm(reason, norm, self.b_norm),
            recurred_relative_residual: self.relative_residual(),
            relative_residual: relative(norm, self.b_norm),
        })
    }

    /// Judged from the state alone, so that every rank says the same and a restored state says it again.
    fn reason_to_stop(&self) -> Option<StopReason> {
        self.stop
            .judge(self.iteration, self.rr.sqrt(), self.b_norm)
            .or_else(|| self.not_positive(Quantity::PreconditionedResidual, self.rz))
    }

    fn not_positive(&self, quantity: Quantity, value: f64) -> Option<StopReason> {
        let iterations = self.iteration;
        if !value.is_finite() {
            return Some(StopReason::Breakdown { iterations, quantity });
        }
        (value <= 0.0).then_some(StopReason::Indefinite { iterations, quantity, value })
    }

    /// `x += alpha p`, `r -= alpha q`, then as [`CgState::precondition`], block by block.
    fn update(
        &mut self,
        alpha: f64,
        part: &Partition,
        m: &dyn Preconditioner,
        comm: &Communicator,
    ) -> Result<[f64; 2], LinalgError> {
        let CgScratch { q, z, two, .. } = &mut self.scratch;
        for (rows, partial) in part.local_blocks().zip(two) {
            let r = &mut self.r[rows.clone()];
            axpy(alpha, &self.p[rows.clone()], &mut self.x[rows.clone()]);
            axpy(-alpha, &q[rows.clone()], r);
            *partial = match m.coupling() {
                Coupling::Identity => [block_dot(r, r); 2],
                Coupling::Pointwise => {
                    let z = &mut z[rows.clone()];
                    m.apply(rows, r, z);
                    [block_dot(r, z), block_dot(r, r)]
                }
                Coupling::Rank => continue,
            };
        }
        if m.coupling() == Coupling::Rank {
            return self.precondition(part, m, comm);
        }
        self.scratch.reducer.as_mut().expect("made by fit").sum(&self.scratch.two, comm)
    }

    /// `z = M^-1 r` over all rows, then `[r.z, r.r]`.
    fn precondition(
        &mut self,
        part: &Partition,
        m: &dyn Preconditioner,
        comm: &Communicator,
    ) -> Result<[f64; 2], LinalgError> {
        let CgScratch { z, two, reducer, .. } = &mut self.scratch;
        let z = if m.coupling() == Coupling::Identity {
            &self.r
        } else {
            m.apply(0..self.r.len(), &self.r, z);
            z
        };
        for (rows, partial) in part.local_blocks().zip(&mut *two) {
            let r = &self.r[rows.clone()];
            *partial = [block_dot(r, &z[rows]), block_dot(r, r)];
        }
        reducer.as_mut().expect("made by fit").sum(two, comm)
    }
}

/// Conjugate gradients as one call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cg {
    stop: StopCriteria,
}

impl Cg {
    /// With the default [`StopCriteria`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets when to stop.
    pub fn stop(self, stop: StopCriteria) -> Self {
        Self { stop }
    }

    /// Solves `A x = b`, starting from the contents of `x`. Collective.
    ///
    /// Not converging is not an error: it is in [`Solution::reason`], and `x` holds the last approximation.
    ///
    /// # Errors
    /// As [`CgState::new`] and [`CgState::step`]; `x` is then unchanged.
    pub fn solve(
        &self,
        a: &DistMatrix,
        m: &dyn Preconditioner,
        b: &DistVector,
        x: &mut DistVector,
        comm: &Communicator,
    ) -> Result<Solution, LinalgError> {
        let mut state = CgState::new(self.stop, a, m, b, x, comm)?;
        let reason = loop {
            if let Step::Done(reason) = state.step(a, m, comm)? {
                break reason;
            }
        };
        let answer = DistVector::from_local(a.part().clone(), std::mem::take(&mut state.x))?;
        let solution = state.solution(reason, a, &answer, b, comm)?;
        *x = answer;
        Ok(solution)
    }

    /// A solve that survives failures: a job of its own, from the collective `setup` of the problem to its end.
    pub fn protect<'a>(
        self,
        protection: Protection,
        preconditioning: Preconditioning,
        setup: impl FnMut(&World) -> Result<Problem, LinalgError> + 'a,
    ) -> Protected<'a> {
        Protected::new(self.stop, protection, preconditioning, setup)
    }
}
