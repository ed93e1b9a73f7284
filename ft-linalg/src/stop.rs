//! When an iteration ends, and why.

use std::fmt;

use ft_checkpoint::Protect;

/// When to stop. Norms are Euclidean, of the *unpreconditioned* residual `r = b - A x` that the recurrence carries, unless the
/// method minimizes another.
///
/// The solver judges by the first four, from its state alone. The rest needs a past, a product or a clock: whoever runs the
/// solver judges by those ([`crate::solver::Watch`]).
#[derive(Clone, Copy, Debug, PartialEq, Protect)]
pub struct StopCriteria {
    /// Converged when `||r|| <= rtol ||b||`.
    #[protect(constant)]
    pub rtol: f64,
    /// Converged when `||r|| <= atol`.
    #[protect(constant)]
    pub atol: f64,
    /// Stop after so many iterations in any case.
    #[protect(constant)]
    pub iterations_max: u64,
    /// Diverged when `||r|| > dtol ||b||`; infinity for never. PETSc's default is 1e5.
    #[protect(constant)]
    pub dtol: f64,
    /// Compute the true residual after every so many iterations, and judge it; 0 for never. Converged when it is small
    /// enough; drifted when the recurrence is so far from it that it can lead to no answer any more.
    #[protect(constant)]
    pub true_residual_every: u64,
    /// Stagnated when the best norm of so many iterations is not below `stagnation_factor` times the best before them;
    /// looked at once in so many iterations; 0 for never.
    #[protect(constant)]
    pub stagnation_window: u64,
    /// See `stagnation_window`.
    #[protect(constant)]
    pub stagnation_factor: f64,
    /// Stop after so many seconds of the slowest rank; infinity for never. Not reproducible, and any other value costs a
    /// reduction an iteration. What a failure undoes is not counted.
    #[protect(constant)]
    pub seconds_max: f64,
}

impl StopCriteria {
    /// `rtol` 1e-8, `atol` 0, 10 000 iterations, a stagnation factor of 0.9, and nothing else.
    pub const DEFAULT: Self = Self {
        rtol: 1e-8,
        atol: 0.0,
        iterations_max: 10_000,
        dtol: f64::INFINITY,
        true_residual_every: 0,
        stagnation_window: 0,
        stagnation_factor: 0.9,
        seconds_max: f64::INFINITY,
    };
}

impl Default for StopCriteria {
    /// [`StopCriteria::DEFAULT`].
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// How far a solver has come.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// How many iterations are finished.
    pub iterations: u64,
    /// The norm that the stopping rule looks at, mostly `||r||`.
    pub residual_norm: f64,
    /// What it is measured by, mostly `||b||`.
    pub reference_norm: f64,
}

impl Progress {
    /// The one over the other; the norm itself where the reference is 0.
    pub fn relative_residual(&self) -> f64 {
        relative(self.residual_norm, self.reference_norm)
    }
}

/// Norms below this one are those of vectors whose squares underflow.
const NORM_MIN: f64 = 1.5e-154;

impl StopCriteria {
    /// The reason to stop after `iterations` with `||b||` and `||r||`, the root of a plain sum of squares, if there is one.
    pub fn judge(&self, iterations: u64, residual_norm: f64, b_norm: f64) -> Option<StopReason> {
        for (quantity, norm) in [(Quantity::RightHandSide, b_norm), (Quantity::Residual, residual_norm)] {
            if !norm.is_finite() {
                return Some(StopReason::Breakdown { iterations, quantity });
            }
        }
        let allowed = self.allowed(b_norm);
        if residual_norm <= allowed.max(NORM_MIN) {
            let is_told = allowed >= NORM_MIN || b_norm == 0.0;
            return Some(match is_told {
                true => StopReason::Converged { iterations },
                false => StopReason::Underflow { iterations },
            });
        }
        if b_norm > 0.0 && residual_norm > self.dtol * b_norm {
            let relative_residual = relative(residual_norm, b_norm);
            return Some(StopReason::Diverged { iterations, relative_residual });
        }
        (iterations >= self.iterations_max).then_some(StopReason::MaxIterations { iterations })
    }

    /// The verdict on a recurrence that says `||r||` where the truth is `true_norm`, in the middle of a solve. A gap between
    /// them does not close again.
    pub fn judge_truth(
        &self,
        iterations: u64,
        true_norm: f64,
        residual_norm: f64,
        b_norm: f64,
    ) -> Option<StopReason> {
        let allowed = self.allowed(b_norm);
        if true_norm <= allowed {
            return Some(StopReason::Converged { iterations });
        }
        let gap = true_norm - residual_norm;
        let is_lost = gap > 2.0 * allowed && gap > 0.5 * true_norm;
        let relative_residual = relative(true_norm, b_norm);
        // Not a number is lost too.
        (is_lost || gap.is_nan()).then_some(StopReason::Drifted { iterations, relative_residual })
    }

    /// The verdict on the norms of all iterations so far, that of the start first.
    pub fn judge_history(&self, norms: &[f64]) -> Option<StopReason> {
        let (iterations, window) = (norms.len().saturating_sub(1), self.stagnation_window as usize);
        if window == 0 || iterations < window || !iterations.is_multiple_of(window) {
            return None;
        }
        let best = |norms: &[f64]| norms.iter().copied().fold(f64::INFINITY, f64::min);
        let (before, last) = norms.split_at(norms.len() - window);
        (best(last) >= self.stagnation_factor * best(before))
            .then_some(StopReason::Stagnated { iterations: iterations as u64 })
    }

    /// The verdict on the time it took.
    pub fn judge_time(&self, iterations: u64, seconds: f64) -> Option<StopReason> {
        (seconds >= self.seconds_max).then_some(StopReason::OutOfTime { iterations })
    }

    /// What is left of `reason` once `||b - A x||` is known: a recurrence may have converged to what is no answer. The gap
    /// between the two residuals, which rounding opens, may be as large as the tolerance.
    pub fn confirm(&self, reason: StopReason, true_norm: f64, b_norm: f64) -> StopReason {
        match reason {
            StopReason::Converged { iterations } => {
                // Not a number is no answer either.
                let is_answer = true_norm <= 2.0 * self.allowed(b_norm);
                let relative_residual = relative(true_norm, b_norm);
                if is_answer { reason } else { StopReason::Drifted { iterations, relative_residual } }
            }
            other => other,
        }
    }

    /// The largest `||r||` of an answer.
    fn allowed(&self, b_norm: f64) -> f64 {
        (self.rtol * b_norm).max(self.atol)
    }
}

/// The norm of a residual over that of the right-hand side, unless that is 0.
pub(crate) fn relative(residual_norm: f64, b_norm: f64) -> f64 {
    if b_norm > 0.0 { residual_norm / b_norm } else { residual_norm }
}

/// Why an iteration ended. `iterations` counts those that were finished.
///
/// PETSc's names: `DIVERGED_ITS`; `DIVERGED_INDEFINITE_MAT` and `DIVERGED_INDEFINITE_PC`; `DIVERGED_NANORINF`;
/// `DIVERGED_BREAKDOWN`; `DIVERGED_DTOL`. The others have none there.
#[derive(Clone, Copy, Debug, PartialEq, Protect)]
#[non_exhaustive]
pub enum StopReason {
    /// The residual is small enough.
    Converged {
        /// Finished iterations.
        iterations: u64,
    },
    /// It is not, and no more iterations are allowed. `x` is the best approximation so far.
    MaxIterations {
        /// Finished iterations.
        iterations: u64,
    },
    /// A matrix that has to be positive definite is not: `quantity` came out as `value <= 0`. `x` is the last
    /// approximation before.
    Indefinite {
        /// Finished iterations.
        iterations: u64,
        /// `p . A p` for the matrix, `r . z` for the preconditioner.
        quantity: Quantity,
        /// What it came out as.
        value: f64,
    },
    /// `quantity` is infinite or not a number: overflow, in most cases. `x` may be unusable.
    Breakdown {
        /// Finished iterations.
        iterations: u64,
        /// The first such quantity that was seen.
        quantity: Quantity,
    },
    /// An element of a vector is infinite or not a number before the first iteration: the input has such a value.
    NotFinite {
        /// The vector.
        quantity: Quantity,
        /// The first such row of it.
        row: usize,
    },
    /// `quantity` is 0, or nothing beside rounding, where the method has to divide by it. `x` is the last approximation.
    Vanished {
        /// Finished iterations.
        iterations: u64,
        /// What it is that vanished.
        quantity: Quantity,
    },
    /// The residual has grown beyond what is allowed.
    Diverged {
        /// Finished iterations.
        iterations: u64,
        /// `||r|| / ||b||`.
        relative_residual: f64,
    },
    /// The residual has not become smaller for a while.
    Stagnated {
        /// Finished iterations.
        iterations: u64,
    },
    /// The time that was given is over.
    OutOfTime {
        /// Finished iterations.
        iterations: u64,
    },
    /// The tolerance is so small that squares of residuals within it underflow: nobody knows whether `x` is an answer.
    Underflow {
        /// Finished iterations.
        iterations: u64,
    },
    /// The residual that the recurrence carries is small enough, but that of `x` is not: rounding has led them apart.
    Drifted {
        /// Finished iterations.
        iterations: u64,
        /// `||b - A x|| / ||b||`.
        relative_residual: f64,
    },
}

/// A scalar of the iteration that decides how it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Protect)]
#[non_exhaustive]
pub enum Quantity {
    /// Norm of the right-hand side.
    RightHandSide,
    /// Norm of the residual.
    Residual,
    /// `p . A p`: positive for every direction `p` if the matrix is positive definite.
    Curvature,
    /// `r . z` with `z = M^-1 r`: positive if the preconditioner is positive definite.
    PreconditionedResidual,
    /// Norm of the first approximation.
    FirstApproximation,
    /// Norm of `A x` with a first approximation that is finite: the matrix is not, or overflows.
    Product,
    /// Smallest eigenvalue, or a bound of it.
    SmallestEigenvalue,
    /// Norm of the vector that an eigenvalue problem starts from.
    Start,
    /// Norm of the next vector of a basis: the space that is searched ends here.
    NextDirection,
    /// Diagonal entry of the triangular matrix that a projected system is solved with: it is singular.
    Pivot,
    /// `r* . r` with the shadow residual `r*`.
    Shadow,
    /// `r* . A M^-1 p` with the shadow residual `r*`.
    ShadowCurvature,
    /// The factor by which a smoothing step minimizes the residual.
    Smoothing,
}

impl StopReason {
    /// Whether the answer is good.
    pub fn is_converged(&self) -> bool {
        matches!(self, Self::Converged { .. })
    }

    /// Finished iterations.
    pub fn iterations(&self) -> u64 {
        match *self {
            Self::NotFinite { .. } => 0,
            Self::Converged { iterations }
            | Self::MaxIterations { iterations }
            | Self::Indefinite { iterations, .. }
            | Self::Breakdown { iterations, .. }
            | Self::Underflow { iterations }
            | Self::Vanished { iterations, .. }
            | Self::Diverged { iterations, .. }
            | Self::Stagnated { iterations }
            | Self::OutOfTime { iterations }
            | Self::Drifted { iterations, .. } => iterations,
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RightHandSide => "norm of the right-hand side",
            Self::Residual => "norm of the residual",
            Self::Curvature => "p.Ap",
            Self::PreconditionedResidual => "r.z",
            Self::FirstApproximation => "norm of the first approximation",
            Self::Product => "norm of the product with the matrix",
            Self::SmallestEigenvalue => "smallest eigenvalue",
            Self::Start => "norm of the vector to start from",
            Self::NextDirection => "norm of the next basis vector",
            Self::Pivot => "pivot of the projected system",
            Self::Shadow => "product of residual and shadow residual",
            Self::ShadowCurvature => "product of direction and shadow residual",
            Self::Smoothing => "factor of the smoothing step",
        })
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFinite { quantity, row } => {
                let text = quantity.to_string();
                let vector = text.strip_prefix("norm of ").unwrap_or(&text);
                return write!(f, "element {} of {vector} is not finite", row + 1);
            }
            Self::Converged { .. } => write!(f, "converged")?,
            Self::MaxIterations { .. } => write!(f, "not converged")?,
            Self::Indefinite { quantity, value, .. } => {
                let whose =
                    if *quantity == Quantity::PreconditionedResidual { "preconditioner" } else { "matrix" };
                write!(f, "{whose} is not positive definite: {quantity} = {value:e}")?;
            }
            Self::Breakdown { quantity, .. } => write!(f, "{quantity} is not finite")?,
            Self::Vanished { quantity, .. } => write!(f, "{quantity} has vanished")?,
            Self::Diverged { .. } => write!(f, "diverged")?,
            Self::Stagnated { .. } => write!(f, "stagnated")?,
            Self::OutOfTime { .. } => write!(f, "out of time")?,
            Self::Underflow { .. } => write!(f, "residuals are so small that their squares underflow")?,
            Self::Drifted { .. } => write!(f, "not converged")?,
        }
        let iterations = self.iterations();
        write!(f, " after {iterations} iteration{}", if iterations == 1 { "" } else { "s" })?;
        match self {
            Self::Underflow { .. } => write!(f, ": scale the system up"),
            Self::Drifted { relative_residual, .. } => write!(
                f,
                ": the recurrence has, but rounding leaves the answer a relative residual of {relative_residual:.2e}"
            ),
            Self::Diverged { relative_residual, .. } => {
                write!(f, ": the relative residual is {relative_residual:.2e}")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn criteria_in_order() {
        let stop = StopCriteria { rtol: 0.1, atol: 0.01, iterations_max: 5, ..StopCriteria::DEFAULT };
        assert_eq!(stop.judge(3, 1.0, 1.0), None);
        assert_eq!(stop.judge(3, 0.1, 1.0), Some(StopReason::Converged { iterations: 3 }));
        assert_eq!(stop.judge(3, 0.01, 1e-9), Some(StopReason::Converged { iterations: 3 }));
        assert_eq!(stop.judge(5, 1.0, 1.0), Some(StopReason::MaxIterations { iterations: 5 }));
        assert_eq!(stop.judge(5, 0.1, 1.0), Some(StopReason::Converged { iterations: 5 }));
        let broken = |quantity| Some(StopReason::Breakdown { iterations: 0, quantity });
        assert_eq!(stop.judge(0, f64::NAN, 1.0), broken(Quantity::Residual));
        assert_eq!(stop.judge(0, f64::INFINITY, f64::INFINITY), broken(Quantity::RightHandSide));
    }

    #[test]
    fn what_underflows_has_not_converged() {
        let stop = StopCriteria { rtol: 1e-8, atol: 0.0, iterations_max: 5, ..StopCriteria::DEFAULT };
        assert_eq!(stop.judge(2, 0.0, 1e-145), Some(StopReason::Converged { iterations: 2 }));
        assert_eq!(stop.judge(2, 0.0, 1e-147), Some(StopReason::Underflow { iterations: 2 }));
        assert_eq!(stop.judge(2, 0.0, 0.0), Some(StopReason::Converged { iterations: 2 }));
        assert_eq!(stop.judge(2, 1e-150, 1e-147), None);
    }

    #[test]
    fn only_what_has_converged_can_drift() {
        let stop = StopCriteria { rtol: 0.1, atol: 0.0, iterations_max: 5, ..StopCriteria::DEFAULT };
        let converged = StopReason::Converged { iterations: 3 };
        assert_eq!(stop.confirm(converged, 0.39, 2.0), converged);
        let drifted = StopReason::Drifted { iterations: 3, relative_residual: 0.5 };
        assert_eq!(stop.confirm(converged, 1.0, 2.0), drifted);
        assert!(matches!(stop.confirm(converged, f64::NAN, 2.0), StopReason::Drifted { .. }));
        let limit = StopReason::MaxIterations { iterations: 5 };
        assert_eq!(stop.confirm(limit, 1.0, 2.0), limit);
    }

    #[test]
    fn a_residual_that_grows_diverges() {
        let stop = StopCriteria { dtol: 100.0, ..StopCriteria::DEFAULT };
        assert_eq!(stop.judge(3, 200.0, 2.0), None);
        let diverged = StopReason::Diverged { iterations: 3, relative_residual: 101.0 };
        assert_eq!(stop.judge(3, 202.0, 2.0), Some(diverged));
        assert_eq!(stop.judge(3, 202.0, 0.0), None);
        assert_eq!(StopCriteria::DEFAULT.judge(3, 1e300, 1e-300), None);
    }

    #[test]
    fn the_true_residual_ends_what_has_converged_or_is_lost() {
        let stop = StopCriteria { rtol: 0.1, ..StopCriteria::DEFAULT };
        assert_eq!(stop.judge_truth(4, 0.1, 0.2, 1.0), Some(StopReason::Converged { iterations: 4 }));
        assert_eq!(stop.judge_truth(4, 0.31, 0.12, 1.0), None);
        let drifted = StopReason::Drifted { iterations: 4, relative_residual: 0.35 };
        assert_eq!(stop.judge_truth(4, 0.35, 0.12, 1.0), Some(drifted));
        assert_eq!(stop.judge_truth(4, 100.0, 99.0, 1.0), None);
        assert!(stop.judge_truth(4, f64::NAN, 0.2, 1.0).is_some());
    }

    #[test]
    fn stagnation_is_a_window_without_a_better_norm() {
        let stop = StopCriteria { stagnation_window: 2, stagnation_factor: 0.5, ..StopCriteria::DEFAULT };
        assert_eq!(stop.judge_history(&[8.0, 4.0]), None);
        assert_eq!(stop.judge_history(&[8.0, 9.0, 3.0]), None);
        assert_eq!(stop.judge_history(&[8.0, 9.0, 3.0, 2.0]), None);
        let stagnated = Some(StopReason::Stagnated { iterations: 4 });
        assert_eq!(stop.judge_history(&[8.0, 9.0, 3.0, 2.0, 1.5]), stagnated);
        assert_eq!(stop.judge_history(&[8.0, 9.0, 3.0, 2.0, 1.4]), None);
        assert_eq!(StopCriteria::DEFAULT.judge_history(&[1.0; 99]), None);
    }

    #[test]
    fn time_runs_out() {
        let stop = StopCriteria { seconds_max: 2.0, ..StopCriteria::DEFAULT };
        assert_eq!(stop.judge_time(7, 1.9), None);
        assert_eq!(stop.judge_time(7, 2.0), Some(StopReason::OutOfTime { iterations: 7 }));
    }

    #[test]
    fn texts() {
        let reason = StopReason::Indefinite { iterations: 2, quantity: Quantity::Curvature, value: -3.0 };
        assert_eq!(reason.to_string(), "matrix is not positive definite: p.Ap = -3e0 after 2 iterations");
        let reason = StopReason::NotFinite { quantity: Quantity::RightHandSide, row: 6 };
        assert_eq!(reason.to_string(), "element 7 of the right-hand side is not finite");
    }
}
