//! IC(0): an incomplete Cholesky factorization `L D L^T` without fill, of a shifted block where need be.
//!
//! ```text
//! for each row i, for each stored a_ij, j < i:   w_j = a_ij - sum over k < j of w_k l_jk,   l_ij = w_j / d_j
//!                                                d_i = (1 + shift) a_ii - sum of w_j l_ij
//! ```
//!
//! It exists for M-matrices; for others a pivot may not be positive. Then the diagonal is multiplied by `1 + shift`,
//! with a shift that doubles until all pivots are positive. Cost: each row once for each of its entries.
//!
//! Sources: Meijerink, van der Vorst: An iterative solution method for linear systems of which the coefficient matrix is
//! a symmetric M-matrix, Math. Comp. 31, 1977; the shift: Manteuffel: An incomplete factorization technique for positive
//! definite linear systems, Math. Comp. 34, 1980; Saad: Iterative Methods for Sparse Linear Systems, 2nd edition, SIAM,
//! 2003, section 10.3.

use super::block::{Bad, Fault};
use super::compact::Compact;
use super::ldu::Ldu;

/// The first shift that is not zero.
const FIRST_SHIFT: f64 = 1e-3;
/// A shift of 1000, to which so many lead, makes any block of use diagonally dominant enough.
const SHIFTS_MAX: u32 = 20;
/// A pivot below this part of its diagonal entry counts as none: its reciprocal would swamp all else.
const SMALLEST_PIVOT: f64 = 1e-6;

/// The factors of a symmetric block, of which the lower triangle is read, and the shift that they needed.
pub(super) fn ic0(block: &Compact) -> Result<(Ldu, f64), Bad> {
    let (mut shift, mut shifts) = (0.0, 0);
    loop {
        match factors(block, shift) {
            Ok(factors) => return Ok((factors, shift)),
            // What is not finite stays so.
            Err(Bad { what: Fault::Pivot { value, .. }, .. }) if value.is_finite() && shifts < SHIFTS_MAX => {
                shift = f64::max(2.0 * shift, FIRST_SHIFT);
                shifts += 1;
            }
            Err(Bad { row, what: Fault::Pivot { value, .. } }) => {
                return Err(Bad { row, what: Fault::Pivot { value, shifts } });
            }
            Err(bad) => return Err(bad),
        }
    }
}

fn factors(block: &Compact, shift: f64) -> Result<Ldu, Bad> {
    let n = block.len();
    let mut lower = Compact::new(n, block.nnz() / 2);
    let mut reciprocals = Vec::with_capacity(n);
    // w of the row under way, zero elsewhere.
    let mut w = vec![0.0; n];
    for (i, (cols, vals)) in block.rows().enumerate() {
        let before = cols.partition_point(|&col| (col as usize) < i);
        let diagonal = if cols.get(before) == Some(&(i as u32)) { vals[before] } else { 0.0 };
        if !(diagonal > 0.0 && diagonal.is_finite()) {
            return Err(Bad { row: i, what: Fault::Diagonal(diagonal) });
        }
        for (&col, &val) in cols[..before].iter().zip(vals) {
            let (row_cols, row_vals) = lower.row(col as usize);
            let known = row_cols.iter().zip(row_vals).map(|(&k, l)| w[k as usize] * l);
            w[col as usize] = known.fold(val, |sum, known| sum - known);
        }
        let mut pivot = diagonal + shift * diagonal;
        for &col in &cols[..before] {
            let value = std::mem::take(&mut w[col as usize]);
            let l = value * reciprocals[col as usize];
            pivot -= value * l;
            lower.push(col, l);
        }
        lower.end_row();
        let reciprocal: f64 = 1.0 / pivot;
        if !(pivot >= SMALLEST_PIVOT * diagonal && pivot.is_finite() && reciprocal.is_finite()) {
            return Err(Bad { row: i, what: Fault::Pivot { value: pivot, shifts: 0 } });
        }
        reciprocals.push(reciprocal);
    }
    let upper = lower.transposed_descending();
    Ok(Ldu { lower, reciprocals, upper })
}
