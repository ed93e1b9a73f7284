//! What solves with the block of a domain.

use super::block::{Bad, Fault, Solve};
use super::compact::Compact;
use super::dense::{Cholesky, Inverse};
use super::ic0::ic0;
use super::ilu0::ilu0;
use super::ssor::ssor;

/// The longest side of a dense block: 128 MiB.
pub(super) const DENSE_MAX: usize = 4096;

/// A solver for the rows and columns of one domain.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Inner {
    /// `ic0`: incomplete Cholesky without fill, shifted where it needs be. Symmetric positive definite.
    #[default]
    Ic0,
    /// `ilu0`: incomplete LU without fill.
    Ilu0,
    /// `ssor=OMEGA`: a symmetric sweep of over-relaxation, `0 < OMEGA < 2`. Symmetric positive definite.
    Ssor(f64),
    /// `cholesky`: dense, exact; for domains of up to 4096 rows. Symmetric positive definite.
    Cholesky,
    /// `lu`: dense, exact; for domains of up to 4096 rows.
    Lu,
}

/// Two entries are each other's mirror that differ by less than this part of their diagonal entries: products that were
/// added up in another order do.
const MIRRORED: f64 = 1e-10;

/// Checks that the block is symmetric, columns ascending. Cost: a pass over the block.
fn require_symmetric(block: &Compact) -> Result<(), Bad> {
    let n = block.len();
    let entry = |row: usize, at: usize| {
        let (cols, vals) = block.row(row);
        (cols.get(at).map_or(n, |&col| col as usize), vals.get(at).copied().unwrap_or(0.0))
    };
    // The first entry of each row that has not been compared yet, from its diagonal on.
    let mut next: Vec<usize> = block
        .rows()
        .enumerate()
        .map(|(i, (cols, _))| cols.partition_point(|&col| (col as usize) <= i))
        .collect();
    let diagonal: Vec<f64> = block.diagonal();
    let differ = |i: usize, j: usize, a: f64, b: f64| {
        // The root is what costs, and nearly all are equal.
        !(a == b || (a - b).abs() <= MIRRORED * (diagonal[i] * diagonal[j]).abs().sqrt())
    };
    let bad = |row, col, value, mirrored| Err(Bad { row, what: Fault::Mirror { col, value, mirrored } });
    for (i, (cols, vals)) in block.rows().enumerate() {
        for (&j, &value) in cols.iter().zip(vals).take_while(|(col, _)| (**col as usize) < i) {
            let j = j as usize;
            // Entries of row j before column i have no mirror.
            while entry(j, next[j]).0 < i {
                let (col, value) = entry(j, next[j]);
                if differ(j, col, value, 0.0) {
                    return bad(j, col, value, 0.0);
                }
                next[j] += 1;
            }
            let (col, mirrored) = entry(j, next[j]);
            let mirrored = if col == i { mirrored } else { 0.0 };
            next[j] += usize::from(col == i);
            if differ(j, i, mirrored, value) {
                return bad(j, i, mirrored, value);
            }
        }
    }
    for (row, next) in next.into_iter().enumerate() {
        let (cols, vals) = block.row(row);
        for (&col, &value) in cols[next..].iter().zip(&vals[next..]) {
            if differ(row, col as usize, value, 0.0) {
                return bad(row, col as usize, value, 0.0);
            }
        }
    }
    Ok(())
}

impl Inner {
    pub(super) fn is_dense(self) -> bool {
        matches!(self, Self::Cholesky | Self::Lu)
    }

    /// Whether it is symmetric, and positive definite, where the block is.
    pub(super) fn is_symmetric(self) -> bool {
        !matches!(self, Self::Ilu0 | Self::Lu)
    }

    /// Readies a block, columns ascending.
    pub(super) fn make(self, block: &Compact) -> Result<Box<dyn Solve>, Bad> {
        if matches!(self, Self::Ic0 | Self::Cholesky) {
            require_symmetric(block)?;
        }
        Ok(match self {
            Self::Ic0 => Box::new(ic0(block)?.0),
            Self::Ilu0 => Box::new(ilu0(block)?),
            Self::Ssor(omega) => Box::new(ssor(block, omega)?),
            Self::Cholesky => Box::new(Cholesky::new(block)?),
            Self::Lu => Box::new(Inverse::new(block)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block by rows; zeros are not stored.
    fn block<const N: usize>(a: [[f64; N]; N]) -> Compact {
        let mut block = Compact::new(N, N * N);
        for row in a {
            row.iter()
                .enumerate()
                .filter(|(_, val)| **val != 0.0)
                .for_each(|(j, val)| block.push(j as u32, *val));
            block.end_row();
        }
        block
    }

    /// A tridiagonal matrix has no fill, so that incomplete factorizations of it are exact.
    const CHAIN: [[f64; 4]; 4] =
        [[2.0, -1.0, 0.0, 0.0], [-1.0, 3.0, -1.0, 0.0], [0.0, -1.0, 4.0, -2.0], [0.0, 0.0, -2.0, 5.0]];
    const SKEW: [[f64; 4]; 4] =
        [[2.0, -1.5, 0.0, 0.0], [-1.0, 3.0, -1.0, 0.0], [0.0, -0.5, -4.0, -2.0], [0.0, 0.0, 1.0, 5.0]];

    fn times<const N: usize>(a: [[f64; N]; N], x: &[f64], transposed: bool) -> Vec<f64> {
        let entry = |i: usize, j: usize| if transposed { a[j][i] } else { a[i][j] };
        (0..N).map(|i| (0..N).map(|j| entry(i, j) * x[j]).sum()).collect()
    }

    #[test]
    fn what_has_no_fill_is_solved_exactly() {
        let exact = [1.0, -2.0, 0.5, 3.0];
        for (a, inner) in [
            (CHAIN, Inner::Ic0),
            (CHAIN, Inner::Cholesky),
            (CHAIN, Inner::Ilu0),
            (CHAIN, Inner::Lu),
            (SKEW, Inner::Ilu0),
            (SKEW, Inner::Lu),
        ] {
            let solver = inner.make(&block(a)).unwrap();
            let mut z = [f64::NAN; 4];
            let close = |z: &[f64]| z.iter().zip(exact).all(|(z, exact)| (z - exact).abs() < 1e-14);
            solver.solve(&times(a, &exact, false), &mut z);
            assert!(close(&z), "{inner:?}: {z:?}");
            solver.solve_transpose(&times(a, &exact, true), &mut z);
            assert!(close(&z), "{inner:?} transposed: {z:?}");
        }
    }

    #[test]
    fn a_sweep_is_what_its_formula_says() {
        // M = (D/w + L) (D/w)^-1 (D/w + U) w / (2 - w), by hand for [[2, -1], [-1, 4]] and w = 1.5.
        let (a, w) = ([[2.0, -1.0], [-1.0, 4.0]], 1.5);
        let (d0, d1): (f64, f64) = (2.0 / w, 4.0 / w);
        let m = [[d0, -1.0], [-1.0, 1.0 / d0 + d1]].map(|row| row.map(|value: f64| value / (2.0 - w)));
        let solver = Inner::Ssor(w).make(&block(a)).unwrap();
        let mut z = [f64::NAN; 2];
        solver.solve(&times(m, &[3.0, -1.0], false), &mut z);
        assert!((z[0] - 3.0).abs() < 1e-14 && (z[1] + 1.0).abs() < 1e-14, "{z:?}");
        solver.solve_transpose(&times(m, &[3.0, -1.0], false), &mut z);
        assert!((z[0] - 3.0).abs() < 1e-14 && (z[1] + 1.0).abs() < 1e-14, "{z:?}");
    }

    #[test]
    fn long_rows_are_whole() {
        let n = 40;
        let mut full = Compact::new(n, n * n);
        for i in 0..n {
            (0..n).for_each(|j| {
                full.push(j as u32, if i == j { 50.0 } else { 1.0 / (1 + i.abs_diff(j)) as f64 })
            });
            full.end_row();
        }
        let r: Vec<f64> = (0..n).map(|i| (i as f64).sin()).collect();
        let solved = |inner: Inner| {
            let mut z = vec![0.0; n];
            inner.make(&full).unwrap().solve(&r, &mut z);
            z
        };
        let exact = solved(Inner::Lu);
        for inner in [Inner::Ic0, Inner::Ilu0, Inner::Cholesky] {
            assert!(
                solved(inner).iter().zip(&exact).all(|(z, exact)| (z - exact).abs() < 1e-15),
                "{inner:?}"
            );
        }
    }

    #[test]
    fn bad_pivots_are_named_by_row() {
        let mut a = CHAIN;
        for (value, inners) in [
            (f64::NAN, &[Inner::Ic0, Inner::Ilu0, Inner::Ssor(1.0), Inner::Cholesky, Inner::Lu][..]),
            (-3.0, &[Inner::Ic0, Inner::Ssor(1.0), Inner::Cholesky]),
            (0.5, &[Inner::Ilu0, Inner::Cholesky]),
        ] {
            a[1][1] = value;
            for inner in inners {
                let bad = inner.make(&block(a)).unwrap_err();
                assert_eq!(bad.row, 1, "{inner:?} {value}");
                let (Fault::Diagonal(found) | Fault::Pivot { value: found, .. }) = bad.what else {
                    panic!("{inner:?} {value}: {bad:?}")
                };
                assert!(found.is_nan() || found < 1e-15, "{inner:?} {value}: {found}");
            }
        }
        // A missing diagonal entry counts as zero.
        let missing = block([[1.0, 0.0], [0.0, 0.0]]);
        for inner in [Inner::Ic0, Inner::Ilu0, Inner::Ssor(1.0), Inner::Cholesky, Inner::Lu] {
            assert_eq!(inner.make(&missing).unwrap_err().row, 1, "{inner:?}");
        }
    }

    #[test]
    fn what_is_not_symmetric_is_named() {
        let [mut other, mut missing, mut late] = [CHAIN; 3];
        other[2][3] = -2.5;
        (missing[0][1], missing[1][0]) = (-1.0, 0.0);
        late[3][0] = 0.25;
        let mirror = |row, col, value, mirrored| Bad { row, what: Fault::Mirror { col, value, mirrored } };
        for (a, bad) in [
            (other, mirror(2, 3, -2.5, -2.0)),
            (missing, mirror(0, 1, -1.0, 0.0)),
            (late, mirror(0, 3, 0.0, 0.25)),
        ] {
            for inner in [Inner::Ic0, Inner::Cholesky] {
                assert_eq!(inner.make(&block(a)).unwrap_err(), bad);
            }
            assert!(Inner::Ilu0.make(&block(a)).is_ok());
        }
        let mut rounded = CHAIN;
        rounded[0][1] -= 1e-15;
        assert!(Inner::Ic0.make(&block(rounded)).is_ok());
    }

    #[test]
    fn a_block_that_has_no_incomplete_factor_is_shifted() {
        // Kershaw's matrix: positive definite, but without fill its last pivot is negative.
        let a =
            [[3.0, -2.0, 0.0, 2.0], [-2.0, 3.0, -2.0, 0.0], [0.0, -2.0, 3.0, -2.0], [2.0, 0.0, -2.0, 3.0]];
        assert!(Inner::Cholesky.make(&block(a)).is_ok());
        let (_, shift) = ic0(&block(a)).unwrap();
        assert!((1e-3..1.0).contains(&shift), "{shift}");
        assert_eq!(ic0(&block(CHAIN)).unwrap().1, 0.0);
    }
}
