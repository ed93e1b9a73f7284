//! What all methods keep of how they go, and how they begin.

use ft_checkpoint::Protect;
use ft_comm::{Communicator, Op};

use super::{Step, System, norm2, require, residual_of};
use crate::stop::{Progress, Quantity};
use crate::{LinalgError, Partition, StopCriteria, StopReason, Workspace};

/// How a solver goes. Judged from the state alone, so that every rank says the same and a restored state says it again.
#[derive(Clone, Debug, Default, PartialEq, Protect)]
pub struct Course {
    /// When to stop.
    #[protect(nested)]
    stop: StopCriteria,
    /// What the norm is measured by.
    reference_norm: f64,
    /// Finished iterations.
    iterations: u64,
    /// The norm after these.
    norm: f64,
    /// Why it is over, once it is.
    ended: Option<StopReason>,
}

impl Course {
    /// Before the first iteration, with `norm`, mostly `||r||`, measured by `reference_norm`, mostly `||b||`. It may be over
    /// already.
    pub fn new(stop: StopCriteria, reference_norm: f64, norm: f64) -> Self {
        let ended = stop.judge(0, norm, reference_norm);
        Self { stop, reference_norm, iterations: 0, norm, ended }
    }

    /// Over before it begins, with the answer 0.
    fn zero(stop: StopCriteria) -> Self {
        Self::new(stop, 0.0, 0.0)
    }

    /// [`Step::Done`] again if it is over.
    pub fn done(&self) -> Option<Step> {
        self.ended.map(Step::Done)
    }

    /// One more iteration is finished, and leaves `norm`.
    pub fn advance(&mut self, norm: f64) -> Step {
        self.iterations += 1;
        self.correct(norm)
    }

    /// The norm is `norm`, as a better way to compute it says.
    pub fn correct(&mut self, norm: f64) -> Step {
        self.norm = norm;
        self.ended = self.stop.judge(self.iterations, norm, self.reference_norm);
        self.done().unwrap_or(Step::Continue)
    }

    /// The norm is `norm`, from scratch, where it was `before` when the recurrence began: what the recurrence took for an answer and
    /// is none goes on, unless it has not even halved the norm.
    pub(super) fn verify(&mut self, norm: f64, before: f64) -> Step {
        let Some(reason) = self.ended else {
            return self.correct(norm);
        };
        let verdict = self.stop.confirm(reason, norm, self.reference_norm);
        if verdict != reason && norm < 0.5 * before {
            return self.correct(norm);
        }
        self.norm = norm;
        self.end(verdict)
    }

    /// From now on the norm is measured by `reference_norm`.
    pub fn measure_by(&mut self, reference_norm: f64) {
        self.reference_norm = reference_norm;
    }

    /// It is over for a reason of the method.
    pub fn end(&mut self, reason: StopReason) -> Step {
        self.ended = Some(reason);
        Step::Done(reason)
    }

    /// Over if `value`, which has to be positive, is not.
    pub fn need_positive(&mut self, quantity: Quantity, value: f64) -> Option<Step> {
        let iterations = self.iterations;
        if !value.is_finite() {
            return Some(self.end(StopReason::Breakdown { iterations, quantity }));
        }
        (value <= 0.0).then(|| self.end(StopReason::Indefinite { iterations, quantity, value }))
    }

    /// Over if `value`, by which the method divides, is 0 or not finite.
    pub fn need_nonzero(&mut self, quantity: Quantity, value: f64) -> Option<Step> {
        let iterations = self.iterations;
        if !value.is_finite() {
            return Some(self.end(StopReason::Breakdown { iterations, quantity }));
        }
        (value == 0.0).then(|| self.end(StopReason::Vanished { iterations, quantity }))
    }

    /// Over if an element of `vector`, which is spread as `part`, is infinite or not a number on any rank. Collective: one
    /// reduction, so it is asked where a sum over the vector has turned out not to be finite.
    ///
    /// # Errors
    /// A failure.
    pub fn need_finite(
        &mut self,
        quantity: Quantity,
        part: &Partition,
        vector: &[f64],
        comm: &Communicator,
    ) -> Result<Option<Step>, LinalgError> {
        let here = vector.iter().position(|value| !value.is_finite());
        let mut row = [here.map_or(usize::MAX, |at| part.range().start + at)];
        comm.allreduce(&mut row, Op::Min)?;
        let [row] = row;
        Ok((row < usize::MAX).then(|| self.end(StopReason::NotFinite { quantity, row })))
    }

    /// How far it has come.
    pub fn progress(&self) -> Progress {
        Progress {
            iterations: self.iterations,
            residual_norm: self.norm,
            reference_norm: self.reference_norm,
        }
    }

    /// When to stop.
    pub fn stop(&self) -> &StopCriteria {
        &self.stop
    }
}

/// Where most methods begin.
#[derive(Clone, Debug)]
pub struct Beginning {
    /// The first approximation; 0 if `b` is.
    pub x: Vec<f64>,
    /// Its residual `b - A x`.
    pub r: Vec<f64>,
    /// Follows `||r||`, measured by `||b||`.
    pub course: Course,
}

/// Checks the system, and computes the residual of the first approximation. With `b = 0` the answer is 0, and the course is
/// over. Numbers that are not finite are found here, and the course ends with what they were found in. Collective: one
/// product, two reductions.
///
/// # Errors
/// As [`super::Solver::start`].
pub fn begin(
    stop: &StopCriteria,
    system: &System<'_>,
    x: &[f64],
    comm: &Communicator,
    work: &mut Workspace,
) -> Result<Beginning, LinalgError> {
    require(system, x, comm)?;
    let (part, b) = (system.a.part(), system.b);
    let b_norm = norm2(part, b, comm)?;
    let mut r = vec![0.0; b.len()];
    if b_norm == 0.0 {
        return Ok(Beginning { x: vec![0.0; x.len()], r, course: Course::zero(*stop) });
    }
    residual_of(system.a, x, b, &mut r, comm, work)?;
    let [rr] = work.dots(part, [(&r, &r)], comm)?;
    let mut course = Course::new(*stop, b_norm, rr.sqrt());
    if !(rr.is_finite() && b_norm.is_finite()) {
        let _ = course.need_finite(Quantity::Product, part, &r, comm)?;
        let _ = course.need_finite(Quantity::FirstApproximation, system.a.col_part(), x, comm)?;
        let _ = course.need_finite(Quantity::RightHandSide, part, b, comm)?;
    }
    Ok(Beginning { x: x.to_vec(), r, course })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_is_verified() {
        let promised = |norm: f64, before: f64| {
            let mut course = Course::new(StopCriteria::DEFAULT, 1.0, 1.0);
            assert_eq!(course.advance(1e-9), Step::Done(StopReason::Converged { iterations: 1 }));
            (course.verify(norm, before), course.progress().residual_norm)
        };
        let (iterations, relative_residual) = (1, 1e-6);
        assert_eq!(promised(1e-9, 1.0), (Step::Done(StopReason::Converged { iterations }), 1e-9));
        assert_eq!(promised(1e-6, 1.0), (Step::Continue, 1e-6), "a new cycle");
        let drifted = StopReason::Drifted { iterations, relative_residual };
        assert_eq!(promised(1e-6, 1e-6), (Step::Done(drifted), 1e-6), "which would not help");
    }
}
