//! ILU(0): an incomplete factorization `(1 + L) D (1 + U)` without fill, for blocks that need not be symmetric.
//!
//! ```text
//! for each row i:  for each stored a_ik, k < i:  l_ik = w_k / d_k,  w_j = w_j - l_ik d_k u_kj  for stored w_j
//!                  d_i = w_i,  u_ij = w_j / d_i
//! ```
//!
//! Cost: each row once for each entry of the rows that read it. For a symmetric positive definite matrix IC(0) is half
//! the work and keeps the symmetry that conjugate gradients need.
//!
//! Source: Saad: Iterative Methods for Sparse Linear Systems, 2nd edition, SIAM, 2003, section 10.3.2, algorithm 10.4.

use super::block::{Bad, CANCELLED, Fault};
use super::compact::Compact;
use super::ldu::Ldu;

/// The factors of a block.
pub(super) fn ilu0(block: &Compact) -> Result<Ldu, Bad> {
    let n = block.len();
    let (mut lower, mut upper) = (Compact::new(n, block.nnz() / 2), Compact::new(n, block.nnz() / 2));
    let mut reciprocals: Vec<f64> = Vec::with_capacity(n);
    // The row under way, where it has entries.
    let (mut w, mut stored) = (vec![0.0; n], vec![false; n]);
    for (i, (cols, vals)) in block.rows().enumerate() {
        for (&col, &val) in cols.iter().zip(vals) {
            (w[col as usize], stored[col as usize]) = (val, true);
        }
        let before = cols.partition_point(|&col| (col as usize) < i);
        for &k in &cols[..before] {
            let value = w[k as usize];
            let (row_cols, row_vals): (&[u32], &[f64]) = upper.row(k as usize);
            for (&col, u) in row_cols.iter().zip(row_vals).filter(|(col, _)| stored[**col as usize]) {
                w[col as usize] -= value * u;
            }
            lower.push(k, value * reciprocals[k as usize]);
        }
        lower.end_row();
        let pivot = if stored[i] { w[i] } else { 0.0 };
        let reciprocal = 1.0 / pivot;
        let largest = vals.iter().fold(0.0, |largest, val: &f64| val.abs().max(largest));
        if !(pivot.abs() > CANCELLED * largest && pivot.is_finite() && reciprocal.is_finite()) {
            return Err(Bad { row: i, what: Fault::Pivot { value: pivot, shifts: 0 } });
        }
        reciprocals.push(reciprocal);
        for &col in cols.iter().rev().take_while(|&&col| col as usize > i) {
            upper.push(col, w[col as usize] * reciprocal);
        }
        upper.end_row();
        cols.iter().for_each(|&col| stored[col as usize] = false);
    }
    Ok(Ldu { lower, reciprocals, upper })
}
