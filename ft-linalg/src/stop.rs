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

impl StopCriteria {
    /// The reason to stop after `iterations` with `||r||` and `||b||` as given, if there is one.
    pub fn judge(&self, iterations: u64, residual_norm: f64, b_norm: f64) -> Option<StopReason> {
        if !residual_norm.is_finite() || !b_norm.is_finite() {
            return Some(StopReason::Breakdown { iterations, quantity: Quantity::Residual });
        }
        if residual_norm <= (self.rtol * b_norm).max(self.atol) {
            return Some(StopReason::Converged { iterations });
        }
        (iterations >= self.iterations_max).then_some(StopReason::MaxIterations { iterations })
    }
}

/// Why an iteration ended. `iterations` counts those that were finished.
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
}

/// A scalar of the iteration that decides how it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quantity {
    /// Norm of the residual or of the right-hand side.
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
            | Self::Breakdown { iterations, .. } => iterations,
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
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
        }
        let iterations = self.iterations();
        write!(f, " after {iterations} iteration{}", if iterations == 1 { "" } else { "s" })
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
        assert!(matches!(stop.judge(0, f64::NAN, 1.0), Some(StopReason::Breakdown { .. })));
        assert!(matches!(stop.judge(0, 1.0, f64::INFINITY), Some(StopReason::Breakdown { .. })));
    }

    #[test]
    fn texts() {
        let reason = StopReason::Indefinite { iterations: 2, quantity: Quantity::Curvature, value: -3.0 };
        assert_eq!(reason.to_string(), "matrix is not positive definite: p.Ap = -3e0 after 2 iterations");
    }
}
