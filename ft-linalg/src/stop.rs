//! When an iteration ends, and why.

use std::fmt;

use ft_checkpoint::Protect;

/// When to stop. Norms are Euclidean, of the *unpreconditioned* residual `r = b - A x` that the recurrence carries.
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
}

impl Default for StopCriteria {
    /// `rtol` 1e-8, `atol` 0, 10 000 iterations.
    fn default() -> Self {
        Self { rtol: 1e-8, atol: 0.0, iterations_max: 10_000 }
    }
}

/// How far a solver has come.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Finished iterations.
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
        (iterations >= self.iterations_max).then_some(StopReason::MaxIterations { iterations })
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
/// PETSc's names for all but the first: `DIVERGED_ITS`; `DIVERGED_INDEFINITE_MAT` and `DIVERGED_INDEFINITE_PC`;
/// `DIVERGED_NANORINF`; the others have none there. One like `DIVERGED_DTOL` is not needed: a residual of conjugate gradients
/// that grows without bounds ends as one of these.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// `quantity` is infinite or not a number: overflow, or such a value in the input. `x` may be unusable.
    Breakdown {
        /// Finished iterations.
        iterations: u64,
        /// The first such quantity that was seen.
        quantity: Quantity,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

impl StopReason {
    /// Whether the answer is good.
    pub fn is_converged(&self) -> bool {
        matches!(self, Self::Converged { .. })
    }

    /// Finished iterations.
    pub fn iterations(&self) -> u64 {
        match *self {
            Self::Converged { iterations }
            | Self::MaxIterations { iterations }
            | Self::Indefinite { iterations, .. }
            | Self::Breakdown { iterations, .. }
            | Self::Underflow { iterations }
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
        })
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Converged { .. } => write!(f, "converged")?,
            Self::MaxIterations { .. } => write!(f, "not converged")?,
            Self::Indefinite { quantity, value, .. } => {
                let whose =
                    if *quantity == Quantity::PreconditionedResidual { "preconditioner" } else { "matrix" };
                write!(f, "{whose} is not positive definite: {quantity} = {value:e}")?;
            }
            Self::Breakdown { quantity, .. } => write!(f, "{quantity} is not finite")?,
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
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn criteria_in_order() {
        let stop = StopCriteria { rtol: 0.1, atol: 0.01, iterations_max: 5 };
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
        let stop = StopCriteria { rtol: 1e-8, atol: 0.0, iterations_max: 5 };
        assert_eq!(stop.judge(2, 0.0, 1e-145), Some(StopReason::Converged { iterations: 2 }));
        assert_eq!(stop.judge(2, 0.0, 1e-147), Some(StopReason::Underflow { iterations: 2 }));
        assert_eq!(stop.judge(2, 0.0, 0.0), Some(StopReason::Converged { iterations: 2 }));
        assert_eq!(stop.judge(2, 1e-150, 1e-147), None);
    }

    #[test]
    fn only_what_has_converged_can_drift() {
        let stop = StopCriteria { rtol: 0.1, atol: 0.0, iterations_max: 5 };
        let converged = StopReason::Converged { iterations: 3 };
        assert_eq!(stop.confirm(converged, 0.39, 2.0), converged);
        let drifted = StopReason::Drifted { iterations: 3, relative_residual: 0.5 };
        assert_eq!(stop.confirm(converged, 1.0, 2.0), drifted);
        assert!(matches!(stop.confirm(converged, f64::NAN, 2.0), StopReason::Drifted { .. }));
        let limit = StopReason::MaxIterations { iterations: 5 };
        assert_eq!(stop.confirm(limit, 1.0, 2.0), limit);
    }

    #[test]
    fn texts() {
        let reason = StopReason::Indefinite { iterations: 2, quantity: Quantity::Curvature, value: -3.0 };
        assert_eq!(reason.to_string(), "matrix is not positive definite: p.Ap = -3e0 after 2 iterations");
    }
}
