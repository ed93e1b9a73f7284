use std::ops::Range;

use ft_comm::Communicator;
use nalgebra::{DMatrix, DVector};

use super::*;
use crate::{CsrRows, DistRows, DistVector, LinalgError, Partition};

fn dense(n: usize, rows: impl Fn(Range<usize>) -> CsrRows) -> DMatrix<f64> {
    let whole = rows(0..n);
    // Any range is a slice of the whole.
    let part = rows(n / 3..n - n / 4);
    assert!(part.iter().zip(whole.iter().skip(n / 3)).all(|(a, b)| a == b));
    whole.to_dense(n)
}

/// The matrix applied to a vector that is given element by element.
fn image(a: &DMatrix<f64>, x: impl Fn(usize) -> f64) -> DVector<f64> {
    a * DVector::from_fn(a.ncols(), |i, _| x(i))
}

#[test]
fn the_matrix_of_hpcg() {
    let grid = Laplacian27::new(4, 3, 5).unwrap();
    let a = dense(grid.n(), |range| grid.rows(range));
    assert_eq!(a, a.transpose());
    assert_eq!(image(&a, |_| 1.0), DVector::from_fn(60, |row, _| grid.rhs(row)));
    assert!(a.clone().cholesky().is_some());
    // (3 n - 2)^3 entries in a cube.
    assert_eq!(Laplacian27::new(8, 8, 8).unwrap().rows(0..512).nnz(), 22 * 22 * 22);
    assert!(Laplacian27::new(1 << 20, 1 << 20, 2).is_err());
}

#[test]
fn flow_is_not_symmetric_and_does_not_amplify() {
    for flow in [
        ConvectionDiffusion::new_2d(6, 7, 100.0).unwrap(),
        ConvectionDiffusion::new_3d(4, 3, 5, 100.0).unwrap(),
        ConvectionDiffusion::new_2d(6, 7, -100.0).unwrap(),
    ] {
        let a = dense(flow.n(), |range| flow.rows(range));
        assert_ne!(a, a.transpose());
        assert!((0..flow.n()).all(|i| a.row(i).sum() > -1e-12 && a[(i, i)] > 0.0));
        // Inverse-positive: what is put in nowhere makes less.
        assert!(a.try_inverse().unwrap().iter().all(|value| *value > -1e-12));
    }
    let still = ConvectionDiffusion::new_3d(3, 4, 5, 0.0).unwrap();
    assert_eq!(still.rows(0..60), crate::Poisson::new_3d(3, 4, 5).unwrap().rows(0..60));
}

#[test]
fn shifts_move_eigenvalues() {
    for grid in [ShiftedPoisson::new_2d(6, 5, 1.3).unwrap(), ShiftedPoisson::new_3d(4, 3, 3, 2.3).unwrap()] {
        let a = dense(grid.n(), |range| grid.rows(range));
        let modes = [2, 3, 1];
        let (value, vector) = (grid.eigenvalue(modes), |row| grid.eigenvector(modes, row));
        assert!(
            (image(&a, vector) - DVector::from_fn(grid.n(), |row, _| value * vector(row))).amax() < 1e-13
        );
        let spectrum = a.symmetric_eigenvalues();
        assert!(spectrum.min() < 0.0 && spectrum.max() > 0.0);
        assert!((spectrum.min() - grid.eigenvalue([1, 1, 1])).abs() < 1e-12);
    }
}

#[test]
fn without_boundary_values_constants_are_nothing() {
    for grid in [NeumannPoisson::new(6, 5, 1).unwrap(), NeumannPoisson::new(4, 3, 3).unwrap()] {
        let a = dense(grid.n(), |range| grid.rows(range));
        assert_eq!((a.transpose(), image(&a, |_| 1.0).amax()), (a.clone(), 0.0));
        let modes = [2, 1, 0];
        let (value, vector) = (grid.eigenvalue(modes), |row| grid.eigenvector(modes, row));
        assert!(
            (image(&a, vector) - DVector::from_fn(grid.n(), |row, _| value * vector(row))).amax() < 1e-13
        );
        assert_eq!(grid.eigenvalue([0; 3]), 0.0);
        assert_eq!(a.symmetric_eigenvalues().iter().filter(|value| value.abs() < 1e-12).count(), 1);
    }
}

#[test]
fn the_residual_of_the_fit_is_orthogonal() {
    let fit = LeastSquares::new(40, 3.0).unwrap();
    let a = fit.rows(0..fit.n_rows()).to_dense(fit.n_cols());
    assert_eq!((a.nrows(), a.ncols()), (79, 40));
    let residual = DVector::from_fn(79, |row, _| fit.residual(row));
    assert!((a.transpose() * &residual).amax() < 1e-14 && residual.amax() > 1.0);
    let rhs = DVector::from_fn(79, |row, _| fit.rhs(row));
    let solved = a.svd(true, true).solve(&rhs, 1e-12).unwrap();
    assert!((0..40).all(|col| (solved[col] - fit.solution(col)).abs() < 1e-12));
    assert_eq!(LeastSquares::new(0, 1.0).unwrap().rows(0..0).len(), 0);
    assert!(matches!(LeastSquares::new(usize::MAX, 1.0), Err(LinalgError::TooLarge { .. })));
}

/// The whole of `a`, on every rank.
fn whole(a: &DistRows, comm: &Communicator) -> DMatrix<f64> {
    let n = a.n_cols();
    let columns: Vec<f64> = (0..n)
        .flat_map(|col| {
            let first = a.part().range().start;
            let column = DistVector::from_fn(a.part().clone(), |row| {
                let (cols, vals) = a.rows().row(row.0 - first);
                cols.binary_search(&(col as u64)).map_or(0.0, |at| vals[at])
            });
            column.gather(comm).unwrap()
        })
        .collect();
    DMatrix::from_vec(a.n_rows(), n, columns)
}

#[test]
fn a_free_block_moves_and_turns_for_nothing() {
    ft_sim::ranks(2, |comm| {
        let block = Elasticity::free(2, 1, 2).unwrap();
        let a = block.matrix(comm).unwrap();
        a.require_symmetric(comm).unwrap();
        let a = whole(&a, comm);
        for motion in 0..6 {
            assert!(image(&a, |row| block.rigid_motion(motion, row)).amax() < 1e-14, "motion {motion}");
        }
        let spectrum = a.symmetric_eigenvalues();
        assert_eq!(spectrum.iter().filter(|value| value.abs() < 1e-12).count(), 6);
        assert!(spectrum.min() > -1e-12);
    });
}

#[test]
fn a_clamped_block_is_stiff_in_proportion() {
    ft_sim::ranks(3, |comm| {
        let block = Elasticity::clamped(3, 2, 1).unwrap();
        assert_eq!(block.n(), 3 * 3 * 3 * 2);
        let a = block.matrix(comm).unwrap();
        let dense = whole(&a, comm);
        assert!(dense.clone().cholesky().is_some());
        // A uniform stretch along x needs forces at the end x = 3 only, and across to keep the sides where they are.
        let stretch = |row: usize| if row.is_multiple_of(3) { (row / 3 % 3 + 1) as f64 } else { 0.0 };
        let forces = image(&dense, stretch);
        let along: Vec<f64> = (0..block.n()).step_by(3).map(|row| forces[row]).collect();
        let end: f64 = (2..along.len()).step_by(3).map(|node| along[node]).sum();
        // The modulus of a laterally confined bar, times the cross section of 2 x 1.
        assert!((end - 2.0 * 0.7 / (1.3 * 0.4)).abs() < 1e-13, "{end}");
        assert!((0..along.len()).filter(|node| node % 3 != 2).all(|node| along[node].abs() < 1e-13));
    });
}

#[test]
fn assembled_bits_do_not_depend_on_ranks() {
    let on = |size| {
        ft_sim::ranks(size, |comm| {
            let a = Elasticity::clamped(4, 3, 3).unwrap().matrix(comm).unwrap();
            whole(&a, comm).iter().map(|value| value.to_bits()).collect::<Vec<_>>()
        })
        .remove(0)
    };
    let one = on(1);
    for size in [2, 3, 4, 7] {
        assert_eq!(on(size), one, "{size} ranks");
    }
}

#[test]
fn products_have_the_known_right_hand_side() {
    ft_sim::ranks(3, |comm| {
        let grid = Laplacian27::new(7, 6, 5).unwrap();
        let part = Partition::of(comm, grid.n());
        let rows = grid.rows(part.range());
        let a = DistRows::new(part.clone(), grid.n(), rows, comm).unwrap().into_matrix(comm).unwrap();
        let b = a.multiply(&DistVector::constant(part.clone(), 1.0), comm).unwrap();
        assert_eq!(b, DistVector::from_fn(part, |row| grid.rhs(row.0)));
    });
}
