use proptest::prelude::*;

use super::*;
use crate::{
    Poisson,
    halo::{by_owner, needed_columns},
};

/// `y = A x` as `size` ranks would form it, in one thread, all rows in `format`.
fn product_on(size: usize, whole: &CsrRows, x: &[f64], format: Option<Format>) -> Vec<f64> {
    let part = |rank| Partition::new(x.len(), size, rank);
    let slice = |range: Range<usize>| {
        CsrRows::build(range, 0, |row, cols, vals| {
            cols.extend(whole.row(row).0);
            vals.extend(whole.row(row).1);
        })
    };
    let needed: Vec<_> =
        (0..size).map(|rank| needed_columns(&slice(part(rank).range()), &part(rank))).collect();
    let mut y = Vec::new();
    for rank in 0..size {
        let (part, rows) = (part(rank), slice(part(rank).range()));
        let mut requests = Vec::new();
        for (asker, cols) in needed.iter().enumerate() {
            let wanted = by_owner(cols, &part).into_iter().find(|(owner, _)| *owner == rank);
            requests.extend(wanted.map(|(_, wanted)| (asker, cols[wanted].to_vec())));
        }
        let halo = HaloPlan::assemble(&part, needed[rank].clone(), &requests).unwrap();
        let plan = ProductPlan::new(&part, &rows, halo, format).unwrap();
        assert!(format.is_none() || plan.format() == format);
        let own = part.range();
        let mut values = vec![f64::NAN; plan.halo.len()];
        for col in needed[rank].iter().copied().chain(plan.halo.copied_cols(&own)) {
            values[plan.halo.place(col, &own)] = x[col as usize];
        }
        // In two pieces, as a blocked loop would, and once more with sums.
        let (mine, halo) = (&x[own.clone()], Halo(&values));
        let cut = part.local_blocks().nth(1).map_or(0, |block| block.start);
        let mut each = vec![f64::NAN; rows.len()];
        plan.product(&rows, 0..cut, mine, halo, &mut each[..cut]);
        plan.product(&rows, cut..rows.len(), mine, halo, &mut each[cut..]);
        let (mut again, mut sums) =
            (vec![f64::NAN; rows.len()], vec![[f64::NAN; 2]; part.local_blocks().count()]);
        plan.product_dot(&rows, mine, halo, mine, &mut again, &mut sums);
        assert_eq!(bits(&again), bits(&each));
        for (block, [wy, yy]) in part.local_blocks().zip(sums) {
            let (w, y) = (&mine[block.clone()], &each[block]);
            assert_eq!(bits(&[wy, yy]), bits(&[block_dot(w, y), block_dot(y, y)]));
        }
        y.extend(each);
    }
    y
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn same_on_any_ranks_in_any_format(a: &CsrRows) {
    let x: Vec<f64> = (0..a.len()).map(|i| 1.0 / (i as f64 + 0.3)).collect();
    let mut y = vec![0.0; a.len()];
    a.product_serial(&x, &mut y);
    for size in 1..=8 {
        for format in Format::ALL {
            assert_eq!(bits(&product_on(size, a, &x, Some(format))), bits(&y), "{size} ranks, {format}");
        }
    }
    assert_eq!(bits(&product_on(2, a, &x, None)), bits(&y));
}

#[test]
fn a_matrix_without_its_plan_says_so() {
    let part = Partition::new(4, 1, 0);
    let rows = Poisson::new_2d(2, 2).unwrap().rows(0..4);
    let mut restored = DistMatrix { part, rows, ..DistMatrix::default() };
    assert!(matches!(restored.plan(), Err(LinalgError::NotRebuilt)));
    assert!(matches!(restored.store_as(None), Err(LinalgError::NotRebuilt)));
}

#[test]
fn a_matrix_keeps_the_format_that_it_was_told() {
    let rows = Poisson::new_2d(10, 10).unwrap().rows(0..100);
    ft_sim::ranks(1, |comm| {
        let mut a = DistMatrix::new(Partition::of(comm, 100), rows.clone(), comm).unwrap();
        for format in Format::ALL {
            a.store_as(Some(format)).unwrap();
            a.rebuild(comm).unwrap();
            assert_eq!(a.plan().unwrap().format(), Some(format));
        }
    });
}

#[test]
#[should_panic(expected = "within a block")]
fn a_range_that_ends_within_a_block_is_refused() {
    let (part, rows) = (Partition::new(100, 1, 0), Poisson::new_2d(10, 10).unwrap().rows(0..100));
    let plan = ProductPlan::new(&part, &rows, HaloPlan::assemble(&part, vec![], &[]).unwrap(), None).unwrap();
    plan.product(&rows, 0..40, &[1.0; 100], Halo(&[]), &mut [0.0; 40]);
}

#[test]
fn product_has_the_bits_of_the_serial_one_on_a_grid_and_on_scattered_columns() {
    same_on_any_ranks_in_any_format(&Poisson::new_3d(9, 7, 10).unwrap().rows(0..630));
    same_on_any_ranks_in_any_format(&CsrRows::build(0..630, 0, |row, cols, vals| {
        for col in (0..630).filter(|col| col * col % 97 == row % 97 || *col == row) {
            cols.push(col as u64);
            vals.push(1.0 / (row + 2 * col + 1) as f64);
        }
    }));
}

/// Rows of all kinds: empty, dense, the pattern of the row before, that pattern moved by one, with the same values or others.
fn rows_of_all_kinds(n: usize, kinds: &[(u8, u32)]) -> CsrRows {
    let mut before: (Vec<u64>, Vec<f64>) = Default::default();
    CsrRows::build(0..n, 4, |row, cols, vals| {
        let (kind, seed) = kinds[row % kinds.len()];
        let value = |k: usize| f64::from(seed.wrapping_mul(2 * k as u32 + 1) % 1009) / 7.0 - 70.0;
        match kind {
            0 => {}
            1 => cols.extend(0..n as u64),
            2 | 3 => cols.extend(&before.0),
            4..=7 if before.0.last().is_none_or(|col| col + 1 < n as u64) => {
                cols.extend(before.0.iter().map(|col| col + 1));
            }
            _ => cols.extend((0..n as u64).filter(|col| (col ^ u64::from(seed)) % 13 < 2)),
        }
        let kept = matches!(kind, 2 | 4 | 5) && cols.len() == before.1.len();
        vals.extend((0..cols.len()).map(|k| if kept { before.1[k] } else { value(k) }));
        before = (cols[cols.len() - vals.len().min(cols.len())..].to_vec(), vals.clone());
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn all_formats_have_the_bits_of_the_serial_product_on_any_number_of_ranks(
        n in 1usize..150,
        kinds in prop::collection::vec((0u8..10, any::<u32>()), 1..60),
    ) {
        same_on_any_ranks_in_any_format(&rows_of_all_kinds(n, &kinds));
    }
}
