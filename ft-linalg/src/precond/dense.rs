//! Dense factorizations, for blocks that are small: exact, and so the strongest block solver there is.
//!
//! `cholesky` factorises `L L^T`, column by column, for symmetric positive definite blocks; `lu` forms the inverse by LU
//! with partial pivoting, for any regular block. Cost of the setup: `n^3 / 3` and `2 n^3` flops; of a use: `2 n^2`.
//!
//! Source: Golub, Van Loan: Matrix Computations, 4th edition, 2013, sections 3.4 and 4.2.

use nalgebra::DMatrix;

use super::block::{Bad, CANCELLED, Fault, Solve};
use super::compact::Compact;
use crate::vector::axpy;

fn dense(block: &Compact) -> DMatrix<f64> {
    let mut dense = DMatrix::zeros(block.len(), block.len());
    for (i, (cols, vals)) in block.rows().enumerate() {
        cols.iter().zip(vals).for_each(|(&col, &val)| dense[(i, col as usize)] = val);
    }
    dense
}

/// `L L^T`, columns one after the other.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cholesky {
    n: usize,
    columns: Vec<f64>,
}

impl Cholesky {
    pub(super) fn new(block: &Compact) -> Result<Self, Bad> {
        Self::of(block.len(), dense(block).as_mut_slice().to_vec())
    }

    /// Of a matrix by columns, of which the lower triangle is read.
    pub(super) fn of(n: usize, mut columns: Vec<f64>) -> Result<Self, Bad> {
        for j in 0..n {
            let (done, rest) = columns.split_at_mut(j * n);
            let column = &mut rest[..n];
            let diagonal = column[j];
            for k in 0..j {
                axpy(-done[k * n + j], &done[k * n + j..(k + 1) * n], &mut column[j..]);
            }
            let pivot = column[j];
            if !(pivot > CANCELLED * diagonal
                && pivot > 0.0
                && pivot.is_finite()
                && (1.0 / pivot).is_finite())
            {
                return Err(Bad { row: j, what: Fault::Pivot { value: pivot, shifts: 0 } });
            }
            let root = pivot.sqrt();
            column[j..].iter_mut().for_each(|value| *value /= root);
        }
        Ok(Self { n, columns })
    }
}

impl Solve for Cholesky {
    fn solve(&self, r: &[f64], z: &mut [f64]) {
        z.copy_from_slice(r);
        for j in 0..self.n {
            let column = &self.columns[j * self.n..(j + 1) * self.n];
            z[j] /= column[j];
            axpy(-z[j], &column[j + 1..], &mut z[j + 1..]);
        }
        for j in (0..self.n).rev() {
            let column = &self.columns[j * self.n..(j + 1) * self.n];
            z[j] = (z[j] - crate::dot::block_dot(&column[j + 1..], &z[j + 1..])) / column[j];
        }
    }

    fn solve_transpose(&self, r: &[f64], z: &mut [f64]) {
        self.solve(r, z);
    }
}

/// The inverse.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Inverse(DMatrix<f64>);

impl Inverse {
    pub(super) fn new(block: &Compact) -> Result<Self, Bad> {
        let a = dense(block);
        let largest: Vec<f64> = a.column_iter().map(|column| column.amax()).collect();
        let lu = a.lu();
        let u = lu.u();
        let bad = |row: usize| Bad { row, what: Fault::Pivot { value: u[(row, row)], shifts: 0 } };
        let is_good = |k: usize| {
            let pivot: f64 = u[(k, k)].abs();
            pivot > CANCELLED * largest[k] && pivot.is_finite() && (1.0 / pivot).is_finite()
        };
        if let Some(row) = (0..block.len()).find(|&k| !is_good(k)) {
            return Err(bad(row));
        }
        Ok(Self(lu.try_inverse().ok_or_else(|| bad(0))?))
    }
}

impl Solve for Inverse {
    fn solve(&self, r: &[f64], z: &mut [f64]) {
        z.fill(0.0);
        self.0.column_iter().zip(r).for_each(|(column, r)| axpy(*r, column.as_slice(), z));
    }

    fn solve_transpose(&self, r: &[f64], z: &mut [f64]) {
        let columns = self.0.column_iter();
        z.iter_mut().zip(columns).for_each(|(z, column)| *z = crate::dot::block_dot(column.as_slice(), r));
    }
}
