//! How large the largest eigenvalue is: a few steps of Lanczos, with the same bits on any number of ranks.
//!
//! ```text
//! v = a vector of pseudo-random numbers by row, normed
//! for each step:  w = S v_j - beta v_(j-1),  alpha = w.v_j,  w = w - alpha v_j,  beta = ||w||,  v_(j+1) = w / beta
//! ```
//!
//! The largest eigenvalue of the tridiagonal matrix of `alpha` and `beta` is below that of `S`, and close to it. Without
//! reorthogonalization, which so few steps do not need.
//!
//! Source: Golub, Van Loan: Matrix Computations, 4th edition, 2013, section 10.1.

use nalgebra::DMatrix;

use crate::small_eigen::SmallEigen;
use crate::{LinalgError, Workspace};

/// Steps; each is a product.
const STEPS: usize = 12;

/// A number between -1 and 1 for each row, by the finalizer of splitmix64.
pub(super) fn start(row: usize) -> f64 {
    let mut bits = (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// An operator is symmetric whose asymmetry is below this part of what it makes of a vector.
const SYMMETRIC: f64 = 1e-10;
/// A remainder below this part of a product is rounding: the space is invariant, and has all that
/// the first vector is made of.
const INVARIANT: f64 = 1e-10;

/// What the steps have found of an operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Largest {
    /// An estimate, from below, of the largest eigenvalue; 0 if there are no rows.
    Of(f64),
    /// There is no such thing: the operator is not symmetric.
    NotSymmetric,
}

/// The largest eigenvalue of the operator that `apply` multiplies by. Collective if `apply` and `dot` are.
///
/// Of a symmetric operator `v_j.S v_(j+1) = v_(j+1).S v_j = beta`. Of another one, the difference
/// in the first step is about `||S - S^T||^2 / (2 n beta)` in the Frobenius norm, as the first
/// vector is random. Rounding leaves `v_(j+1)` a part of `v_j` of about `eps ||S|| / beta`, and
/// makes a difference of that times `||S||`.
pub(super) fn largest_eigenvalue(
    mut v: Vec<f64>,
    mut apply: impl FnMut(&[f64], &mut [f64], &mut Workspace) -> Result<(), LinalgError>,
    mut dot: impl FnMut(&[f64], &[f64]) -> Result<f64, LinalgError>,
    work: &mut Workspace,
) -> Result<Largest, LinalgError> {
    let (mut before, mut w) = (vec![0.0; v.len()], vec![0.0; v.len()]);
    let (mut alphas, mut betas) = (Vec::<f64>::new(), Vec::new());
    let mut beta = dot(&v, &v)?.sqrt();
    let mut scale = 0.0_f64;
    for _ in 0..STEPS {
        if beta <= INVARIANT * scale {
            break;
        }
        v.iter_mut().for_each(|v| *v /= beta);
        apply(&v, &mut w, work)?;
        if !alphas.is_empty() {
            if alphas.len() == 1 {
                let whole = beta + alphas[0].abs();
                let rounding = 100.0 * f64::EPSILON * whole * (whole / beta);
                if (dot(&w, &before)? - beta).abs() > SYMMETRIC * whole + rounding {
                    return Ok(Largest::NotSymmetric);
                }
            }
            crate::vector::axpy(-beta, &before, &mut w);
            betas.push(beta);
        }
        let alpha = dot(&w, &v)?;
        alphas.push(alpha);
        crate::vector::axpy(-alpha, &v, &mut w);
        beta = dot(&w, &w)?.sqrt();
        scale = scale.max(alpha.abs() + beta);
        (before, v, w) = (v, w, before);
    }
    let n = alphas.len();
    if n == 0 {
        return Ok(Largest::Of(0.0));
    }
    let tridiagonal = DMatrix::from_fn(n, n, |i, j| match i.abs_diff(j) {
        0 => alphas[i],
        1 => betas[i.min(j)],
        _ => 0.0,
    });
    let Some(SmallEigen { values, .. }) = SmallEigen::of(tridiagonal) else {
        return Ok(Largest::Of(f64::NAN));
    };
    Ok(Largest::Of(values.into_iter().fold(0.0, f64::max)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_by_its_formula() {
        let n = 200;
        let found = |skew: f64| {
            let apply = |x: &[f64], y: &mut [f64], _: &mut Workspace| {
                for (i, y) in y.iter_mut().enumerate() {
                    let before = if i > 0 { x[i - 1] } else { 0.0 };
                    let after = if i + 1 < n { x[i + 1] } else { 0.0 };
                    *y = 2.0 * x[i] - (1.0 - skew) * before - (1.0 + skew) * after;
                }
                Ok(())
            };
            let dot = |x: &[f64], y: &[f64]| Ok(x.iter().zip(y).map(|(x, y)| x * y).sum());
            largest_eigenvalue((0..n).map(start).collect(), apply, dot, &mut Workspace::default()).unwrap()
        };
        // 4 sin^2(pi n / (2 (n + 1))) is just below 4.
        let Largest::Of(estimate) = found(0.0) else { panic!("it is symmetric") };
        assert!((3.8..4.0).contains(&estimate), "{estimate}");
        assert_eq!(found(1e-4), Largest::NotSymmetric);
    }
}
