use std::ops::Range;

use nalgebra::DMatrix;
use proptest::prelude::*;

use super::*;
use crate::Poisson;

/// The sizes over which bits have to be equal.
const SIZES: [usize; 4] = [2, 3, 4, 7];

/// All rows of `a`, on every rank.
fn whole(a: &DistRows, comm: &Communicator) -> CsrRows {
    let one = Partition::given(a.n_rows(), &starts(comm.size(), a.n_rows()), comm.rank()).unwrap();
    let gathered =
        DistRows::deal_to(one, a.n_cols(), a.entries(|row, col, val| triplet(row, col, 0, val)), comm)
            .unwrap();
    gathered.into_rows()
}

/// All rows on rank 0.
fn starts(size: usize, n: usize) -> Vec<usize> {
    (0..size).map(|rank| if rank == 0 { 0 } else { n }).collect()
}

/// An upper part of a matrix that is neither square nor balanced.
fn lopsided(row: usize, entries: &mut Vec<(usize, f64)>) {
    let len = if row < 40 { 90 } else { row % 3 };
    entries.extend((0..len).rev().map(|k| ((row * 7 + k * 11) % 131, 1.0 / (row + k + 1) as f64)));
}

fn same_on_all_sizes<T: PartialEq + std::fmt::Debug + Send>(run: impl Fn(&Communicator) -> T + Sync) {
    let one = ft_sim::ranks(1, &run).remove(0);
    for size in SIZES {
        assert_eq!(ft_sim::ranks(size, &run).remove(0), one, "{size} ranks");
    }
}

#[test]
fn rows_from_a_function_are_cut_by_nonzeros() {
    same_on_all_sizes(|comm| whole(&DistRows::from_fn(300, 131, comm, lopsided).unwrap(), comm));
    let parts = ft_sim::ranks(3, |comm| {
        let a = DistRows::from_fn(300, 131, comm, lopsided).unwrap();
        assert_eq!(a.rows().len(), a.part().local_len());
        (a.part().range(), a.rows().nnz())
    });
    // The first 40 rows have most of the entries, and are in two blocks.
    let ranges: Vec<Range<usize>> = parts.iter().map(|part| part.0.clone()).collect();
    assert_eq!(ranges, [0..32, 32..64, 64..300]);
}

#[test]
fn transposes_of_any_shape() {
    same_on_all_sizes(|comm| {
        let a = DistRows::from_fn(300, 131, comm, lopsided).unwrap();
        let t = a.transpose(comm).unwrap();
        assert_eq!((t.n_rows(), t.n_cols()), (131, 300));
        assert_eq!(t.transpose(comm).unwrap(), a);
        let (all, turned) = (whole(&a, comm), whole(&t, comm));
        if comm.rank() == 0 {
            assert_eq!(all.to_dense(131).transpose(), turned.to_dense(300));
        }
        turned
    });
    ft_sim::ranks(3, |comm| {
        let part = Partition::given(64, &[0, 32, 32], comm.rank()).unwrap();
        let a = DistRows::new(
            part,
            64,
            Poisson::new_2d(8, 8).unwrap().rows([0..32, 32..32, 32..64][comm.rank()].clone()),
            comm,
        )
        .unwrap();
        assert_eq!(a.transpose(comm).unwrap(), a);
        a.require_symmetric(comm).unwrap();
    });
}

#[test]
fn a_submatrix_has_the_order_of_its_indices() {
    same_on_all_sizes(|comm| {
        let a = DistRows::from_fn(300, 131, comm, lopsided).unwrap();
        let (rows, cols): (Vec<usize>, Vec<usize>) =
            ((0..100).rev().collect(), (0..131).step_by(2).collect());
        let part = a.submatrix(&rows, &cols, comm).unwrap();
        let (all, taken) = (whole(&a, comm), whole(&part, comm));
        if comm.rank() == 0 {
            let expected = DMatrix::from_fn(100, cols.len(), |i, j| all.to_dense(131)[(rows[i], cols[j])]);
            assert_eq!(taken.to_dense(cols.len()), expected);
        }
        for (rows, cols, at) in [(&[0, 300][..], &[][..], 300), (&[], &[5, 6, 5], 5)] {
            let refused = a.submatrix(rows, cols, comm).unwrap_err();
            assert!(matches!(refused, LinalgError::BadSelection { index, .. } if index == at));
        }
        taken
    });
}

#[test]
fn the_first_pair_that_differs_is_named_on_every_rank() {
    for size in [1, 2, 3] {
        ft_sim::ranks(size, |comm| {
            let a = |change: (usize, usize)| {
                DistRows::from_fn(200, 200, comm, |row, entries| {
                    entries.extend([(row, 2.0), ((row + 150) % 200, -1.0), ((row + 50) % 200, -1.0)]);
                    if row == change.0 {
                        entries.push((change.1, 0.5));
                    }
                })
                .unwrap()
            };
            a((190, 190)).require_symmetric(comm).unwrap();
            for change in [(190, 3), (3, 190)] {
                let LinalgError::NotSymmetric { row: 3, col: 190, value, mirrored } =
                    a(change).require_symmetric(comm).unwrap_err()
                else {
                    panic!("another place")
                };
                assert_eq!((value, mirrored), if change.0 == 3 { (0.5, 0.0) } else { (0.0, 0.5) });
            }
            let wide = DistRows::from_fn(2, 3, comm, |_, _| ()).unwrap();
            assert!(matches!(wide.into_matrix(comm), Err(LinalgError::NotSquare { rows: 2, cols: 3 })));
        });
    }
}

/// A row of large entries and one of small ones: what is rounding of the former is a part of the
/// latter.
#[test]
fn entries_that_differ_by_rounding_of_the_larger_row_are_symmetric() {
    for size in [1, 2, 3] {
        ft_sim::ranks(size, |comm| {
            let a = |change: f64, stray: f64| {
                DistRows::from_fn(200, 200, comm, |row, entries| {
                    entries.extend([(row, if row == 150 { 1e6 } else { 1.0 })]);
                    entries.extend((row == 150).then_some((10, 0.1 + change)));
                    entries.extend((row == 10).then_some((150, 0.1)));
                    entries.extend((row == 199).then_some((3, stray)));
                })
                .unwrap()
            };
            a(9e-7, 9e-13).require_symmetric(comm).unwrap();
            let refused = a(2e-6, 0.0).require_symmetric(comm).unwrap_err();
            let LinalgError::NotSymmetric { row: 10, col: 150, value: 0.1, mirrored } = refused else {
                panic!("{refused}")
            };
            assert_eq!(mirrored, 0.1 + 2e-6);
            let refused = a(2e-6, 2e-12).require_symmetric(comm).unwrap_err();
            assert!(matches!(
                refused,
                LinalgError::NotSymmetric { row: 3, col: 199, value: 0.0, mirrored: 2e-12 }
            ));
        });
    }
}

#[test]
fn what_cannot_be_is_refused_on_every_rank() {
    ft_sim::ranks(3, |comm| {
        let refused = |bad: (usize, f64)| {
            DistRows::from_fn(200, 200, comm, |row, entries| {
                entries.push((row, 1.0));
                if row == 150 || row == 180 {
                    entries.push(bad);
                }
            })
            .unwrap_err()
            .to_string()
        };
        assert_eq!(refused((7, f64::NAN)), "entry (151,8) is NaN, needs to be finite");
        assert_eq!(refused((200, 1.0)), "entry (151,201) is outside of a matrix of 200 x 200");
        let part = Partition::of(comm, 200);
        let rows = Poisson::new_2d(20, 10).unwrap().rows(0..10);
        assert!(DistRows::new(part, 200, rows, comm).is_err());
    });
}

#[test]
fn fewer_ranks_have_the_same_matrix() {
    use ft_checkpoint::Redistribute;
    ft_sim::ranks(2, |comm| {
        let a = DistRows::from_fn(300, 131, comm, lopsided).unwrap();
        let all = whole(&a, comm);
        let mut rows = vec![all.nnz()];
        comm.bcast(&mut rows, 0).unwrap();
        // As three ranks had it; the last two fell to the second.
        let weights = a.part().weights().to_vec();
        let old = |rank| Partition::weighed(300, weights.clone(), 3, rank).unwrap();
        let held: Vec<usize> = if comm.rank() == 0 { vec![0] } else { vec![1, 2] };
        let share = |rank: &usize| {
            let made = make(old(*rank).range(), 131, &mut lopsided).0;
            DistRows { part: old(*rank), n_cols: 131, rows: made }
        };
        let shares: Vec<DistRows> = held.iter().map(share).collect();
        let moves = Partition::moves(comm, shares.first().map(DistRows::part), held).unwrap();
        assert_eq!(DistRows::redistribute(shares, &moves).unwrap(), a);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_matrix_is_the_transpose_of_its_transpose(
        rows in 1usize..150,
        cols in 1usize..150,
        places in proptest::collection::vec((any::<u16>(), any::<u16>(), -9i8..9), 0..80),
    ) {
        same_on_all_sizes(|comm| {
            let a = DistRows::from_fn(rows, cols, comm, |row, entries| {
                let mine = places.iter().filter(|place| usize::from(place.0) % rows == row);
                entries.extend(mine.map(|place| (usize::from(place.1) % cols, f64::from(place.2) / 3.0)));
            })
            .unwrap();
            let t = a.transpose(comm).unwrap();
            assert_eq!(whole(&t.transpose(comm).unwrap(), comm), whole(&a, comm));
            whole(&t, comm)
        });
    }
}
