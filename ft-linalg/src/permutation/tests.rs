use proptest::prelude::*;

use super::*;
use crate::Poisson;

/// A matrix whose pattern is not symmetric: a grid in shuffled order with some entries left out.
fn shuffled(comm: &Communicator) -> DistRows {
    let grid = Poisson::new_2d(17, 13).unwrap();
    let (n, whole) = (grid.n(), grid.rows(0..grid.n()));
    let place = |row: usize| row * 50 % n;
    let back: Vec<usize> = {
        let mut back = vec![0; n];
        (0..n).for_each(|row| back[place(row)] = row);
        back
    };
    DistRows::from_fn(n, n, comm, |row, entries| {
        let (cols, vals) = whole.row(back[row]);
        let kept = cols.iter().zip(vals).filter(|(col, _)| **col as usize + 1 != back[row]);
        entries.extend(kept.map(|(col, val)| (place(*col as usize), *val)));
    })
    .unwrap()
}

#[test]
fn orders_and_permuted_matrices_do_not_depend_on_ranks() {
    let on = |size| {
        ft_sim::ranks(size, |comm| {
            let a = shuffled(comm);
            let mut found = Vec::new();
            for order in [
                Permutation::reverse_cuthill_mckee(&a, comm).unwrap(),
                Permutation::nested_bisection(&a, 8, comm).unwrap(),
            ] {
                let b = a.permuted(&order, &order, comm).unwrap();
                let x = DistVector::from_fn(a.part().clone(), |row| 1.0 / (row.0 as f64 + 0.7));
                let y = order.apply(&x, b.part(), comm).unwrap();
                assert_eq!(order.undo(&y, a.part(), comm).unwrap(), x);
                // P A P^T P x = P A x.
                let (a, b) = (a.clone().into_matrix(comm).unwrap(), b.into_matrix(comm).unwrap());
                let there = b.multiply(&y, comm).unwrap();
                let back = order.undo(&there, a.part(), comm).unwrap().gather(comm).unwrap();
                let plain = a.multiply(&x, comm).unwrap().gather(comm).unwrap();
                assert!(back.iter().zip(&plain).all(|(a, b)| (a - b).abs() < 1e-14));
                found.push((order, there.gather(comm).unwrap()));
            }
            found
        })
        .remove(0)
    };
    let one = on(1);
    for size in [2, 3, 4, 7] {
        assert_eq!(on(size), one, "{size} ranks");
    }
}

#[test]
fn a_shuffled_grid_gets_its_band_back() {
    ft_sim::ranks(2, |comm| {
        let a = shuffled(comm);
        let order = Permutation::reverse_cuthill_mckee(&a, comm).unwrap();
        let b = a.permuted(&order, &order, comm).unwrap();
        let (before, after) = (a.bandwidth(comm).unwrap(), b.bandwidth(comm).unwrap());
        assert!(before > 100 && after <= 18, "{before} {after}");
    });
}

#[test]
fn bisection_cuts_few_entries() {
    ft_sim::ranks(1, |comm| {
        let grid = Poisson::new_2d(32, 32).unwrap();
        let part = Partition::of(comm, grid.n());
        let rows = grid.rows(part.range());
        let a = DistRows::new(part, grid.n(), rows, comm).unwrap();
        let order = Permutation::nested_bisection(&a, 4, comm).unwrap();
        let b = a.permuted(&order, &order, comm).unwrap();
        let quarter = |row: usize| row / 256;
        let crossing = b.rows().iter().enumerate().map(|(row, (cols, _))| {
            cols.iter().filter(|col| quarter(**col as usize) != quarter(row)).count()
        });
        // Four strips would have 6 * 32 of them; diagonal cuts of the levels are longer than straight ones.
        let crossing: usize = crossing.sum();
        assert!(crossing <= 300, "{crossing}");
    });
}

#[test]
fn no_order_is_no_permutation() {
    for (order, index) in [(vec![0, 0], 0), (vec![1, 2], 2)] {
        let refused = Permutation::from_order(order).unwrap_err();
        assert!(matches!(refused, LinalgError::BadSelection { index: found, .. } if found == index));
    }
    assert!(Permutation::identity(0).unwrap().is_empty());
    ft_sim::ranks(2, |comm| {
        let a = DistRows::from_fn(2, 3, comm, |_, _| ()).unwrap();
        let refused = Permutation::reverse_cuthill_mckee(&a, comm);
        assert!(matches!(refused, Err(LinalgError::NotSquare { rows: 2, cols: 3 })));
        let empty = DistRows::from_fn(0, 0, comm, |_, _| ()).unwrap();
        assert!(Permutation::nested_bisection(&empty, 8, comm).unwrap().is_empty());
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_pattern_has_orders(n in 1usize..60, edges in proptest::collection::vec(any::<u32>(), 0..120)) {
        ft_sim::ranks(2, |comm| {
            let a = DistRows::from_fn(n, n, comm, |row, entries| {
                let mine = edges.iter().filter(|edge| **edge as usize % n == row);
                entries.extend(mine.map(|edge| (*edge as usize / n % n, 1.0)));
            })
            .unwrap();
            for order in [
                Permutation::reverse_cuthill_mckee(&a, comm).unwrap(),
                Permutation::nested_bisection(&a, 8, comm).unwrap(),
            ] {
                let back = order.clone().inverse();
                let there = a.permuted(&order, &order, comm).unwrap();
                let back = there.permuted(&back, &back, comm).unwrap();
                assert_eq!(back, a);
            }
        });
    }
}
