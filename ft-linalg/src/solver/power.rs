//! Power iteration: the eigenvalue of largest modulus, and its vector, of any `A` where it is real and the only one.
//!
//! ```text
//! x = b / ||b||
//! until ||q - theta x|| is small:
//!     q = A x,  theta = x.q,  x = q / ||q||
//! ```
//!
//! One product and two reductions per iteration, two vectors. The stopping rules look at `||A x - theta x||`, measured by
//! `|theta|`; for symmetric `A` an eigenvalue is that near to `theta`. The error falls by `|lambda_2 / lambda_1|` each time.
//!
//! Sources: von Mises, Pollaczek-Geiringer: Praktische Verfahren der Gleichungsauflosung, ZAMM 9, 1929; Saad: Numerical Methods
//! for Large Eigenvalue Problems, 2nd edition, SIAM, 2011, algorithm 4.1.

use ft_checkpoint::{Protect, Redistribute};
use ft_comm::Communicator;

use super::{Course, Solver, Step, System, norm2, require};
use crate::parallel::elements;
use crate::stop::Quantity;
use crate::vector::divide;
use crate::{LinalgError, StopCriteria, StopReason, Workspace};

/// Power iteration.
#[derive(Clone, Debug, Default, Protect, Redistribute)]
pub struct Power {
    /// The vector so far, of norm 1.
    #[protect(distributed)]
    x: Vec<f64>,
    /// `A x`.
    #[protect(distributed)]
    q: Vec<f64>,
    /// `x . q`, `q . q`.
    #[protect(replicated)]
    sums: [f64; 2],
    /// Follows `||A x - theta x||`.
    #[protect(nested, replicated)]
    course: Course,
}

impl Power {
    /// The eigenvalue so far.
    pub fn eigenvalue(&self) -> f64 {
        self.sums[0]
    }

    /// `q = A x`, and its sums. Collective.
    fn multiply(
        &mut self,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<f64, LinalgError> {
        system.a.apply(&self.x, &mut self.q, comm, work)?;
        self.sums = work.dots(system.a.part(), [(&self.x, &self.q), (&self.q, &self.q)], comm)?;
        self.residual_norm(system, comm, work)
    }

    fn residual_norm(
        &self,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<f64, LinalgError> {
        let mut r = work.take(self.x.len());
        let theta = self.eigenvalue();
        elements(r.len(), &mut r[..], |rows, r| {
            let (q, x) = (&self.q[rows.clone()], &self.x[rows]);
            r.iter_mut().zip(q).zip(x).for_each(|((r, q), x)| *r = q - theta * x);
        });
        let [rr] = work.dots(system.a.part(), [(&r, &r)], comm)?;
        work.give(r);
        Ok(rr.sqrt())
    }
}

impl Solver for Power {
    type Options = StopCriteria;

    /// Starts from `b`. One product, three reductions.
    fn start(
        stop: &StopCriteria,
        system: &System<'_>,
        x: &[f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Self, LinalgError> {
        require(system, x, comm)?;
        let norm = norm2(system.a.part(), system.b, comm)?;
        let mut power = Self { x: system.b.to_vec(), q: vec![0.0; x.len()], ..Self::default() };
        power.course = Course::new(*stop, 1.0, f64::MAX);
        if power.course.need_nonzero(Quantity::Start, norm).is_some() {
            let _ = power.course.need_finite(Quantity::Start, system.a.part(), system.b, comm)?;
            return Ok(power);
        }
        divide(&mut power.x, norm);
        let residual = power.multiply(system, comm, work)?;
        power.course = Course::new(*stop, power.eigenvalue().abs(), residual);
        if !power.sums[1].is_finite() {
            let quantity = Quantity::Product;
            let _ = power.course.end(StopReason::Breakdown { iterations: 0, quantity });
            let _ = power.course.need_finite(quantity, system.a.part(), &power.q, comm)?;
        }
        Ok(power)
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
        let norm = self.sums[1].sqrt();
        if let Some(done) = self.course.need_nonzero(Quantity::NextDirection, norm) {
            return Ok(done);
        }
        let q = &self.q;
        elements(q.len(), &mut self.x[..], |rows, x| {
            x.iter_mut().zip(&q[rows]).for_each(|(x, q)| *x = q / norm);
        });
        let residual = self.multiply(system, comm, work)?;
        self.course.measure_by(self.eigenvalue().abs());
        Ok(self.course.advance(residual))
    }

    /// The eigenvector.
    fn x(&self) -> &[f64] {
        &self.x
    }

    fn course(&self) -> &Course {
        &self.course
    }

    /// `||A x - theta x||`, from a product of its own.
    fn true_norm(
        &self,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<f64, LinalgError> {
        let mut copy = self.clone();
        system.a.apply(&self.x, &mut copy.q, comm, work)?;
        copy.residual_norm(system, comm, work)
    }
}
