//! SSOR: a symmetric sweep of successive over-relaxation, `M = (1 + w L D^-1) D (1 + w D^-1 U) / (w (2 - w))`.
//!
//! `L`, `D`, `U` are the strictly lower part, the diagonal and the strictly upper part of the block. `w = 1` is symmetric
//! Gauss-Seidel. Nothing is factorized: the setup is a copy, a use costs as much as one of ILU(0).
//!
//! Source: Saad: Iterative Methods for Sparse Linear Systems, 2nd edition, SIAM, 2003, section 10.2.

use super::block::{Bad, Fault};
use super::compact::Compact;
use super::jacobi::first_bad;
use super::ldu::Ldu;

/// The sweep over a block, with `0 < omega < 2`.
pub(super) fn ssor(block: &Compact, omega: f64) -> Result<Ldu, Bad> {
    let n = block.len();
    let diagonal = block.diagonal();
    if let Some(row) = first_bad(&diagonal) {
        return Err(Bad { row, what: Fault::Diagonal(diagonal[row]) });
    }
    let (mut lower, mut upper) = (Compact::new(n, block.nnz() / 2), Compact::new(n, block.nnz() / 2));
    for (i, (cols, vals)) in block.rows().enumerate() {
        for (&col, val) in cols.iter().zip(vals).take_while(|(col, _)| (**col as usize) < i) {
            lower.push(col, omega * val / diagonal[col as usize]);
        }
        for (&col, val) in cols.iter().zip(vals).rev().take_while(|(col, _)| (**col as usize) > i) {
            upper.push(col, omega * val / diagonal[i]);
        }
        lower.end_row();
        upper.end_row();
    }
    let reciprocals = diagonal.iter().map(|value| omega * (2.0 - omega) / value).collect();
    Ok(Ldu { lower, reciprocals, upper })
}
