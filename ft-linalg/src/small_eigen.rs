//! Eigenvalues of small symmetric matrices, which every rank holds: projections onto a subspace.
//!
//! All calls of nalgebra for them are here, because nalgebra panics for an empty matrix and never
//! returns if an element is not finite.

use nalgebra::{DMatrix, SymmetricEigen};

/// Eigenvalues of a symmetric matrix, ascending, with orthonormal eigenvectors as columns in the
/// same order.
#[derive(Clone, Debug)]
pub(crate) struct SmallEigen {
    pub(crate) values: Vec<f64>,
    pub(crate) vectors: DMatrix<f64>,
}

impl SmallEigen {
    /// Returns those of a symmetric matrix, which may be empty; `None` if an element is not finite,
    /// or if the iteration does not converge.
    pub(crate) fn of(matrix: DMatrix<f64>) -> Option<Self> {
        let size = matrix.nrows();
        if matrix.iter().any(|value| !value.is_finite()) {
            return None;
        }
        if size == 0 {
            return Some(Self { values: vec![], vectors: matrix });
        }
        let rounds = 100 * (size + 1);
        let SymmetricEigen { eigenvectors, eigenvalues } =
            SymmetricEigen::try_new(matrix, f64::EPSILON, rounds)?;
        let mut order: Vec<usize> = (0..size).collect();
        order.sort_by(|i, j| eigenvalues[*i].total_cmp(&eigenvalues[*j]));
        Some(Self {
            values: order.iter().map(|at| eigenvalues[*at]).collect(),
            vectors: eigenvectors.select_columns(&order),
        })
    }

    /// Returns the places of up to `count` eigenvalues at one end, from the outermost on.
    pub(crate) fn outermost(&self, count: usize, largest: bool) -> Vec<usize> {
        let size = self.values.len();
        (0..size.min(count)).map(|at| if largest { size - 1 - at } else { at }).collect()
    }

    /// Returns the largest modulus of an eigenvalue.
    pub(crate) fn modulus(&self) -> f64 {
        self.values.iter().fold(0.0, |most, value| most.max(value.abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eigenvalues_of_two_rows_ascend_at_any_scale() {
        for scale in [1.0, 1e-200, 1e200] {
            let matrix = DMatrix::from_row_slice(2, 2, &[2.0 * scale, -scale, -scale, 2.0 * scale]);
            let eigen = SmallEigen::of(matrix).unwrap();
            for (value, expected) in eigen.values.iter().zip([1.0, 3.0]) {
                assert!((value / scale - expected).abs() < 1e-14, "{scale:e}: {value:e}");
            }
            assert_eq!(eigen.modulus(), eigen.values[1]);
            assert_eq!((eigen.outermost(1, false), eigen.outermost(3, true)), (vec![0], vec![1, 0]));
        }
    }

    #[test]
    fn an_empty_matrix_has_no_eigenvalues() {
        let eigen = SmallEigen::of(DMatrix::zeros(0, 0)).unwrap();
        assert_eq!((eigen.values.len(), eigen.modulus()), (0, 0.0));
        assert!(eigen.outermost(2, true).is_empty());
    }

    #[test]
    fn a_matrix_that_is_not_finite_is_refused() {
        for bad in [f64::NAN, f64::INFINITY] {
            assert!(SmallEigen::of(DMatrix::from_element(2, 2, bad)).is_none());
        }
    }
}
