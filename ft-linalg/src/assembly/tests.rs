use proptest::prelude::*;

use super::*;
use crate::CsrRows;

/// Row pointers, columns and bits of values of all rows, as rank 0 has them.
fn all_bits(a: &DistRows, comm: &Communicator) -> Vec<(usize, u64, u64)> {
    let rows: &CsrRows = a.rows();
    let first = a.part().range().start;
    let mine: Vec<[u64; 3]> = rows
        .iter()
        .enumerate()
        .flat_map(|(i, (cols, vals))| {
            cols.iter().zip(vals).map(move |(col, val)| [(first + i) as u64, *col, val.to_bits()])
        })
        .collect();
    let mut counts = vec![0; comm.size()];
    comm.allgather(&[mine.len()], &mut counts).unwrap();
    let all = comm.gatherv(&mine, &counts, 0).unwrap().unwrap_or_default();
    all.into_iter().map(|[row, col, bits]| (row as usize, col, bits)).collect()
}

#[test]
fn keys_then_values_say_the_order_of_a_sum() {
    let sum = |contributions: &[(u64, f64)]| {
        let found = ft_sim::ranks(2, |comm| {
            let mut a = Assembly::new(1, 1);
            for (k, (key, value)) in contributions.iter().enumerate() {
                if k % 2 == comm.rank() {
                    a.add_keyed(*key, 0, 0, *value);
                }
            }
            all_bits(&a.finish(comm).unwrap(), comm)
        });
        f64::from_bits(found[0][0].2)
    };
    // By keys: (1e16 - 1e16) + 1. By values: (-1e16 + 1) + 1e16, which loses the 1.
    assert_eq!(sum(&[(3, 1.0), (2, -1e16), (1, 1e16)]), 1.0);
    assert_eq!(sum(&[(0, 1.0), (0, -1e16), (0, 1e16)]), 0.0);
    assert_eq!(sum(&[(0, -0.0)]).to_bits(), (-0.0f64).to_bits());
}

#[test]
fn elements_are_added_whole() {
    for size in [1, 2, 3] {
        ft_sim::ranks(size, |comm| {
            let mut a = Assembly::new(40, 40);
            let mut b = VectorAssembly::new(40);
            for element in (comm.rank()..39).step_by(comm.size()) {
                let ends = [element, element + 1];
                a.add_dense(element as u64, &ends, &ends, &[1.0, -1.0, -1.0, 1.0]);
                b.add_keyed(element as u64, element, 0.5);
                b.add(element + 1, 0.25);
            }
            assert_eq!(a.is_empty(), comm.rank() >= 39);
            let a = a.finish(comm).unwrap();
            let b = b.finish_on(a.part().clone(), comm).unwrap();
            let a = a.into_matrix(comm).unwrap();
            let diagonal = DistVector::from_local(a.part().clone(), a.diagonal()).unwrap();
            let diagonal = diagonal.gather(comm).unwrap();
            assert_eq!((diagonal[0], diagonal[39], &diagonal[1..39]), (1.0, 1.0, &[2.0; 38][..]));
            let b = b.gather(comm).unwrap();
            assert_eq!((b[0], b[39], &b[1..39]), (0.5, 0.25, &[0.75; 38][..]));
            // Constants are in the kernel.
            let ones = DistVector::constant(a.part().clone(), 1.0);
            assert!(a.multiply(&ones, comm).unwrap().local().iter().all(|y| *y == 0.0));
        });
    }
}

#[test]
fn what_cannot_be_is_named_on_every_rank() {
    ft_sim::ranks(3, |comm| {
        let refused = |add: &dyn Fn(&mut Assembly)| {
            let mut a = Assembly::new(100, 50);
            a.add(comm.rank(), 0, 1.0);
            if comm.rank() == 1 {
                add(&mut a);
            }
            a.finish(comm).unwrap_err().to_string()
        };
        let nan = |a: &mut Assembly| (4..7).rev().for_each(|row| a.add(row, 9, f64::INFINITY));
        assert_eq!(refused(&nan), "entry (5,10) is inf, needs to be finite");
        let outside = |a: &mut Assembly| a.add(99, 50, 1.0);
        assert_eq!(refused(&outside), "entry (100,51) is outside of a matrix of 100 x 50");
        let overflow = |a: &mut Assembly| (0..2).for_each(|_| a.add(70, 0, f64::MAX));
        assert_eq!(refused(&overflow), "entry (71,1) is inf, needs to be finite");
        let other = Assembly::new(100, 50).finish_on(Partition::of(comm, 99), comm);
        assert!(matches!(other, Err(LinalgError::Length { expected: 100, found: 99, .. })));
        let mut b = VectorAssembly::new(10);
        b.add(10, 1.0);
        assert!(b.finish_on(Partition::of(comm, 10), comm).is_err());
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn same_bits_whoever_adds_what_and_when(
        contributions in proptest::collection::vec((0usize..70, 0usize..5, 0u64..3, -1e9f64..1e9), 0..200),
        seed in any::<u32>(),
    ) {
        let on = |size: usize| {
            ft_sim::ranks(size, |comm| {
                let mut a = Assembly::new(70, 5);
                // Another order and other ranks for each size.
                let mut mine: Vec<_> = contributions
                    .iter()
                    .enumerate()
                    .map(|(k, one)| ((k as u32 + size as u32).wrapping_mul(seed | 1), one))
                    .filter(|(place, _)| *place as usize % size == comm.rank())
                    .collect();
                mine.sort_by_key(|(place, _)| *place);
                for (_, (row, col, key, value)) in mine {
                    a.add_keyed(*key, *row, *col, *value);
                }
                all_bits(&a.finish(comm).unwrap(), comm)
            })
            .remove(0)
        };
        let one = on(1);
        for size in [2, 3, 4, 7] {
            prop_assert_eq!(&on(size), &one);
        }
    }
}
