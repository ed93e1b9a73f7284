//! MINRES, for symmetric `A` that need not be definite, and may be singular where `b` allows it; `M` symmetric positive definite.
//!
//! ```text
//! v = b - A x,  z = M^-1 v,  gamma = sqrt(z.v),  eta = gamma,  c = c' = 1,  s = s' = 0,  w = w' = v' = 0
//! until ||r|| is small:
//!     z = z / gamma
//!     delta = z . A z
//!     v, v' = A z - (delta / gamma) v - (gamma / gamma') v', v          v' and gamma' are those before v and gamma
//!     z', z = z, M^-1 v
//!     gamma_next = sqrt(z.v)
//!     a0 = c delta - c' s gamma,  a1 = hypot(a0, gamma_next),  a2 = s delta + c' c gamma,  a3 = s' gamma
//!     c', c = c, a0 / a1,  s', s = s, gamma_next / a1
//!     w, w' = (z' - a3 w' - a2 w) / a1, w
//!     x = x + c eta w
//!     r = s^2 r - (c eta / a1) v
//!     eta = -s eta
//! ```
//!
//! `|eta|` is the norm of `r` that `M^-1` defines, which MINRES minimizes. The stopping rules look
//! at `||r||`, as with all solvers. Without a preconditioner the two are the same, and `r` is not
//! formed. One product and two reductions per iteration, six vectors, 160 bytes per row and
//! iteration besides those of the product. With a preconditioner there is one vector more, 24 bytes
//! more, and a third reduction in an iteration that makes `||r||` far smaller than what it is the
//! difference of.
//!
//! Sources: Paige, Saunders: Solution of sparse indefinite systems of linear equations, SIAM J.
//! Numer. Anal. 12, 1975; Elman, Silvester, Wathen: Finite Elements and Fast Iterative Solvers,
//! Oxford, 2005, algorithm 6.1. The recurrence of `r` follows from `r = b - A x` and the three
//! terms of `A z`.

use ft_checkpoint::{Protect, Redistribute};
use ft_comm::Communicator;

use super::{Beginning, Course, Solver, Step, System, begin, require};
use crate::dot::block_dot;
use crate::parallel::elements;
use crate::precond::Pointwise;
use crate::stop::Quantity;
use crate::vector::{axpy, divide};
use crate::{LinalgError, StopCriteria, Sums, Workspace};

/// `||r||^2` is summed from scratch where it is less than this part of what it is the difference
/// of.
const CANCELLED: f64 = 1e-4;

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
    /// Residual; empty without a preconditioner.
    #[protect(distributed)]
    r: Vec<f64>,
    /// `r . r`.
    #[protect(replicated)]
    rr: f64,
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
    /// Follows `||r||`.
    #[protect(nested, replicated)]
    course: Course,
}

impl Solver for Minres {
    type Options = StopCriteria;

    /// One product, three reductions.
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
        system.m.apply(&minres.v, &mut minres.z, comm, work)?;
        let [vz] = work.dots(system.a.part(), [(&minres.v, &minres.z)], comm)?;
        if system.m.pointwise() != Pointwise::Identity {
            minres.r = minres.v.clone();
            minres.rr = minres.course.progress().residual_norm.powi(2);
        }
        if minres.course.need_positive(Quantity::PreconditionedResidual, vz).is_none() {
            minres.eta = vz.sqrt();
            minres.gamma = [minres.eta, 1.0];
        }
        Ok(minres)
    }

    /// One product, two reductions, rarely three.
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
        let is_plain = system.m.pointwise() == Pointwise::Identity;
        let [vz, vv, rv] = if is_plain {
            let [vz] = work.dots(part, [(&self.v, &self.z)], comm)?;
            [vz; 3]
        } else {
            work.dots(part, [(&self.v, &self.z), (&self.v, &self.v), (&self.r, &self.v)], comm)?
        };
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
        let (of_r, of_v) = (self.s[0] * self.s[0], -self.c[0] * self.eta / a1);
        self.eta *= -self.s[0];
        self.gamma = [gamma_next, gamma];
        work.give(z);
        if is_plain {
            return Ok(self.course.advance(self.eta.abs()));
        }
        let v = &self.v;
        elements(v.len(), &mut self.r[..], |rows, r| {
            r.iter_mut().zip(&v[rows]).for_each(|(r, v)| *r = of_r * *r + of_v * v);
        });
        let squares = of_r * of_r * self.rr + of_v * of_v * vv;
        self.rr = squares + 2.0 * of_r * of_v * rv;
        if self.rr <= CANCELLED * squares {
            [self.rr] = work.dots(part, [(&self.r, &self.r)], comm)?;
        }
        Ok(self.course.advance(self.rr.sqrt()))
    }

    fn x(&self) -> &[f64] {
        &self.x
    }

    fn course(&self) -> &Course {
        &self.course
    }
}
