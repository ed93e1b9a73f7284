//! MINRES, for symmetric `A` that need not be definite, and may be singular where `b` allows it; `M` symmetric positive definite.
//!
//! ```text
//! v = b - A x,  z = M^-1 v,  gamma = sqrt(z.v),  eta = gamma,  c = c' = 1,  s = s' = 0,  w = w' = v' = 0
//! until |eta| is small:
//!     z = z / gamma
//!     delta = z . A z
//!     v, v' = A z - (delta / gamma) v - (gamma / gamma') v', v          v' and gamma' are those before v and gamma
//!     z', z = z, M^-1 v
//!     gamma_next = sqrt(z.v)
//!     a0 = c delta - c' s gamma,  a1 = hypot(a0, gamma_next),  a2 = s delta + c' c gamma,  a3 = s' gamma
//!     c', c = c, a0 / a1,  s', s = s, gamma_next / a1
//!     w, w' = (z' - a3 w' - a2 w) / a1, w
//!     x = x + c eta w
//!     eta = -s eta
//! ```
//!
//! `|eta|` is `||r||` in the norm of `M^-1`, which MINRES minimizes, and which stopping rules look at. One product and two
//! reductions per iteration, six vectors, 160 bytes per row and iteration besides those of the product.
//!
//! Sources: Paige, Saunders: Solution of sparse indefinite systems of linear equations, SIAM J. Numer. Anal. 12, 1975; Elman,
//! Silvester, Wathen: Finite Elements and Fast Iterative Solvers, Oxford, 2005, algorithm 6.1.

use ft_checkpoint::{Protect, Redistribute};
use ft_comm::Communicator;

use super::{Beginning, Course, Solver, Step, System, begin, require, residual_of};
use crate::dot::block_dot;
use crate::parallel::elements;
use crate::precond::Pointwise;
use crate::stop::Quantity;
use crate::vector::{axpy, divide};
use crate::{LinalgError, StopCriteria, Sums, Workspace};

/// MINRES.
#[derive(Clone, Debug, Default, Protect, Redistribute)]
pub struct Minres {
    #[protect(distributed)]
    x: Vec<f64>,
    /// Lanczos vector, not scaled.
    #[protect(distributed)]
    v: Vec<f64>,
    /// The one before.
    #[protect(distributed)]
    v_old: Vec<f64>,
    /// `M^-1 v`.
    #[protect(distributed)]
    z: Vec<f64>,
    /// Direction.
    #[protect(distributed)]
    w: Vec<f64>,
    /// The one before.
    #[protect(distributed)]
    w_old: Vec<f64>,
    /// `sqrt(z . v)`, and the one before.
    #[protect(replicated)]
    gamma: [f64; 2],
    #[protect(replicated)]
    eta: f64,
    /// Cosines of the last two rotations, the last first.
    #[protect(replicated)]
    c: [f64; 2],
    /// Their sines.
    #[protect(replicated)]
    s: [f64; 2],
    /// Follows `|eta|`, measured by the norm of `b`.
    #[protect(nested, replicated)]
    course: Course,
}

impl Solver for Minres {
    type Options = StopCriteria;

    /// One product, four reductions.
    fn start(
        stop: &StopCriteria,
        system: &System<'_>,
        x: &[f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Self, LinalgError> {
        let Beginning { x, r: v, course } = begin(stop, system, x, comm, work)?;
        let zero = || vec![0.0; v.len()];
        let (z, v_old, w, w_old) = (zero(), zero(), zero(), zero());
        let (c, s) = ([1.0; 2], [0.0; 2]);
        let mut minres = Self { x, v_old, z, w, w_old, v, c, s, course, ..Self::default() };
        if minres.course.done().is_some() {
            return Ok(minres);
        }
        let mut b_norm = minres.course.progress().reference_norm;
        system.m.apply(&minres.v, &mut minres.z, comm, work)?;
        let [vz] = work.dots(system.a.part(), [(&minres.v, &minres.z)], comm)?;
        if system.m.pointwise() != Pointwise::Identity {
            let mut z = work.take(system.b.len());
            system.m.apply(system.b, &mut z, comm, work)?;
            let [bz] = work.dots(system.a.part(), [(system.b, &z)], comm)?;
            b_norm = bz.sqrt();
            work.give(z);
        }
        if minres.course.need_positive(Quantity::PreconditionedResidual, vz).is_none() {
            minres.eta = vz.sqrt();
            minres.gamma = [minres.eta, 1.0];
            minres.course = Course::new(*stop, b_norm, minres.eta);
        }
        Ok(minres)
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
        let part = system.a.part();
        let [gamma, gamma_old] = self.gamma;
        divide(&mut self.z, gamma);

        // q = A z, and delta = z . q
        let mut q = work.take(self.z.len());
        let mut sums = vec![Sums::default(); part.blocks_of(part.rank()).len()];
        let z = &self.z;
        let curvature = |rows: std::ops::Range<usize>, q: &[f64]| [block_dot(&z[rows], q), 0.0, 0.0, 0.0];
        system.a.apply_and_sum(z, &mut q, &curvature, &mut sums, comm, work)?;
        let [delta] = work.sum(part, &sums, comm)?;

        // The next v in the place of the one before, and the next z.
        let v = &self.v;
        elements(q.len(), &mut self.v_old[..], |rows, v_old| {
            for ((v_old, v), q) in v_old.iter_mut().zip(&v[rows.clone()]).zip(&q[rows]) {
                *v_old = q - delta / gamma * v - gamma / gamma_old * *v_old;
            }
        });
        std::mem::swap(&mut self.v, &mut self.v_old);
        let z = std::mem::replace(&mut self.z, q);
        system.m.apply(&self.v, &mut self.z, comm, work)?;
        let [vz] = work.dots(part, [(&self.v, &self.z)], comm)?;
        if !(vz >= 0.0 && vz.is_finite()) {
            // Either is an end.
            return Ok(self
                .course
                .need_positive(Quantity::PreconditionedResidual, vz)
                .unwrap_or(Step::Continue));
        }
        let gamma_next = vz.sqrt();

        // The rotations so far, and a new one.
        let ([c, c_old], [s, s_old]) = (self.c, self.s);
        let a0 = c * delta - c_old * s * gamma;
        let a1 = a0.hypot(gamma_next);
        let a2 = s * delta + c_old * c * gamma;
        let a3 = s_old * gamma;
        let is_nothing = a1 <= 10.0 * f64::EPSILON * (delta.abs() + gamma + gamma_next);
        if let Some(done) = self.course.need_nonzero(Quantity::Pivot, if is_nothing { 0.0 } else { a1 }) {
            return Ok(done);
        }
        (self.c, self.s) = ([a0 / a1, c], [gamma_next / a1, s]);
        let w = &self.w;
        elements(z.len(), &mut self.w_old[..], |rows, w_old| {
            for ((w_old, w), z) in w_old.iter_mut().zip(&w[rows.clone()]).zip(&z[rows]) {
                *w_old = (z - a3 * *w_old - a2 * w) / a1;
            }
        });
        std::mem::swap(&mut self.w, &mut self.w_old);
        axpy(self.c[0] * self.eta, &self.w, &mut self.x);
        self.eta *= -self.s[0];
        self.gamma = [gamma_next, gamma];
        work.give(z);
        Ok(self.course.advance(self.eta.abs()))
    }

    fn x(&self) -> &[f64] {
        &self.x
    }

    fn course(&self) -> &Course {
        &self.course
    }

    /// In the norm of `M^-1`.
    fn true_norm(
        &self,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<f64, LinalgError> {
        let (mut r, mut z) = (work.take(self.x.len()), work.take(self.x.len()));
        residual_of(system.a, &self.x, system.b, &mut r, comm, work)?;
        system.m.apply(&r, &mut z, comm, work)?;
        let [rz] = work.dots(system.a.part(), [(&r, &z)], comm)?;
        work.give(r);
        work.give(z);
        Ok(rz.sqrt())
    }
}
