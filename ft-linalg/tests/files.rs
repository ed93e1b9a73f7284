//! Matrices of the data folder: read by all ranks, cut by nonzeros, put into another order, written and read again.

mod common;

use common::{data_file, data_matrix, on_ranks};
use ft_linalg::{
    DistMatrix, DistRows, DistVector, Partition, Permutation,
    matrix_market::{read_rows, write_rows},
};

const NAMES: [&str; 5] = ["494_bus", "1138_bus", "bcsstk13", "bcsstk16", "s1rmq4m1"];

#[test]
fn many_readers_have_the_matrix_of_one() {
    for name in NAMES {
        let (Some(file), Some(whole)) = (data_file(name), data_matrix(name)) else { continue };
        for size in [1, 2, 3, 7] {
            on_ranks(size, |comm| {
                let a = read_rows(&file, comm).unwrap();
                assert_eq!(a.rows(), &whole.to_rows(a.part().range()).unwrap(), "{name}, {size} ranks");
                a.require_symmetric(comm).unwrap();
                // The cut is the one of who has the whole list.
                let other = DistMatrix::from_coordinates(&whole, comm).unwrap();
                assert_eq!(a.part(), other.part());
            });
        }
    }
}

#[test]
fn cuts_by_nonzeros_are_even() {
    for name in NAMES {
        let Some(whole) = data_matrix(name) else { continue };
        let n = whole.rows();
        let rows = whole.to_rows(0..n).unwrap();
        let nnz = |range: std::ops::Range<usize>| rows.row_ptr()[range.end] - rows.row_ptr()[range.start];
        for size in [2, 4, 8] {
            let heaviest = |part: &Partition| (0..size).map(|rank| nnz(part.range_of(rank))).max().unwrap();
            let cut =
                on_ranks(size, |comm| DistMatrix::from_coordinates(&whole, comm).unwrap().part().clone());
            let block = (0..cut[0].blocks()).map(|block| cut[0].weights()[block] as usize).max().unwrap();
            let (even, equal) = (heaviest(&cut[0]), heaviest(&Partition::new(n, size, 0)));
            let ideal = rows.nnz().div_ceil(size);
            println!(
                "{name}, {size} ranks: {:.3} instead of {:.3} of an equal share",
                even as f64 / ideal as f64,
                equal as f64 / ideal as f64
            );
            assert!(even <= ideal + block, "{name}, {size} ranks: {even} of {ideal}");
        }
    }
}

#[test]
fn orders_bring_entries_to_the_diagonal() {
    for name in ["494_bus", "1138_bus", "bcsstk13"] {
        let Some(file) = data_file(name) else { continue };
        let orders: Vec<Permutation> = [1, 3]
            .map(|size| {
                on_ranks(size, |comm| {
                    let a = read_rows(&file, comm).unwrap();
                    let order = Permutation::reverse_cuthill_mckee(&a, comm).unwrap();
                    let b = a.permuted(&order, &order, comm).unwrap();
                    let (before, after) = (a.bandwidth(comm).unwrap(), b.bandwidth(comm).unwrap());
                    assert!(2 * after < before, "{name}: {before}, {after}");
                    order
                })
                .remove(0)
            })
            .into();
        assert_eq!(orders[0], orders[1], "{name}");
    }
}

#[test]
fn a_matrix_comes_back_from_a_file() {
    let Some(file) = data_file("494_bus") else { return };
    let copy = std::env::temp_dir().join(format!("ft-linalg-files-{}.mtx", std::process::id()));
    on_ranks(3, |comm| {
        let a = read_rows(&file, comm).unwrap();
        write_rows(&copy, &a, comm).unwrap();
        comm.barrier().unwrap();
        assert_eq!(read_rows(&copy, comm).unwrap(), a);
    });
    std::fs::remove_file(&copy).unwrap();
}

#[test]
fn a_permuted_system_has_the_permuted_answer() {
    let Some(file) = data_file("bcsstk13") else { return };
    on_ranks(3, |comm| {
        let a = read_rows(&file, comm).unwrap();
        let order = Permutation::nested_bisection(&a, 8, comm).unwrap();
        let b = a.permuted(&order, &order, comm).unwrap();
        let x = DistVector::from_fn(a.part().clone(), |row| (row.0 as f64).sin());
        let there = order.apply(&x, b.part(), comm).unwrap();
        let nnz = |rows: &DistRows| rows.nnz(comm).unwrap();
        assert_eq!(nnz(&a), nnz(&b));
        let (a, b) = (a.into_matrix(comm).unwrap(), b.into_matrix(comm).unwrap());
        let y = b.multiply(&there, comm).unwrap();
        let back = order.undo(&y, a.part(), comm).unwrap();
        let mut plain = a.multiply(&x, comm).unwrap();
        let size = plain.norm2(comm).unwrap();
        plain.axpy(-1.0, &back);
        assert!(plain.norm2(comm).unwrap() <= 1e-14 * size);
    });
}
