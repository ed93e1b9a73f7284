use ft_checkpoint::{StatePart, load, save};
use proptest::prelude::*;

use super::*;
use crate::{LinearOperator, Poisson, Sums, Workspace, dot::block_dot};

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// The matrix of a rank that has `rows` of `whole`.
fn slice(whole: &CsrRows, part: Partition, comm: &Communicator) -> DistMatrix {
    let mut rows = CsrRows::with_capacity(0, 0);
    rows.append(whole, part.range());
    DistMatrix::new(part, rows, comm).unwrap()
}

/// Product, and sums along the way, in every format, on some numbers of ranks, cut equally and not.
fn same_on_any_ranks_in_any_format(whole: &CsrRows) {
    let n = whole.len();
    let x: Vec<f64> = (0..n).map(|i| 1.0 / (i as f64 + 0.3)).collect();
    let mut y = vec![0.0; n];
    whole.product_serial(&x, &mut y);
    let heavy_first = |rank, size| {
        let probe = Partition::new(n, size, rank);
        let weights = (0..probe.blocks()).map(|block| 100 / (1 + block as u64)).collect();
        Partition::weighed(n, weights, size, rank).unwrap()
    };
    for size in [1, 2, 3, 5, 8] {
        ft_sim::ranks(size, |comm| {
            for part in [Partition::of(comm, n), heavy_first(comm.rank(), size)] {
                let mut a = slice(whole, part.clone(), comm);
                let (mine, expected) = (&x[part.range()], &y[part.range()]);
                for format in [None].into_iter().chain(Format::ALL.map(Some)) {
                    a.store_as(format).unwrap();
                    let (mut got, mut sums) = (vec![f64::NAN; mine.len()], vec![]);
                    sums.resize(part.local_blocks().count(), Sums::default());
                    let dot = |rows: std::ops::Range<usize>, y: &[f64]| {
                        [block_dot(&mine[rows.clone()], y), rows.start as f64, 0.0, 0.0]
                    };
                    let work = &mut Workspace::default();
                    a.apply_and_sum(mine, &mut got, &dot, &mut sums, comm, work).unwrap();
                    assert_eq!(bits(&got), bits(expected), "{size} ranks, {format:?}");
                    let each = part.local_blocks().map(|rows| dot(rows.clone(), &expected[rows]));
                    assert_eq!(bits(sums.as_flattened()), bits(each.collect::<Vec<_>>().as_flattened()));
                }
            }
        });
    }
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
fn whose_rows_are_as_they_were_keeps_its_plan_and_helps_those_who_make_theirs() {
    let whole = Poisson::new_2d(10, 100).unwrap().rows(0..1000);
    let (x, mut serial) = (vec![1.5; 1000], vec![0.0; 1000]);
    whole.product_serial(&x, &mut serial);
    ft_sim::ranks(3, |comm| {
        let mut a = slice(&whole, Partition::of(comm, 1000), comm);
        let (mut constant, mut variable) = (vec![], vec![]);
        save(&mut a, StatePart::Constant, &mut constant).unwrap();
        save(&mut a, StatePart::Variable, &mut variable).unwrap();
        load(&mut a, StatePart::Variable, &variable).unwrap();
        assert!(a.plan().is_ok());
        if comm.rank() == 1 {
            load(&mut a, StatePart::Constant, &constant).unwrap();
            assert!(matches!(a.plan(), Err(LinalgError::NotRebuilt)), "it may be another matrix now");
        }
        let kept = a.plan().ok().map(ProductPlan::place);
        a.rebuild(comm).unwrap();
        assert!(kept.is_none_or(|kept| kept == a.plan().unwrap().place()), "it is the same in memory");
        let part = a.part().clone();
        let mine = DistVector::from_local(part.clone(), x[part.range()].to_vec()).unwrap();
        assert_eq!(a.multiply(&mine, comm).unwrap().local(), &serial[part.range()]);
    });
}

#[test]
fn a_checkpoint_has_the_format() {
    let rows = Poisson::new_2d(10, 10).unwrap().rows(0..100);
    ft_sim::ranks(1, |comm| {
        let mut a = DistMatrix::new(Partition::of(comm, 100), rows.clone(), comm).unwrap();
        for format in Format::ALL {
            a.store_as(Some(format)).unwrap();
            let (mut shard, mut restored) = (Vec::new(), DistMatrix::default());
            save(&mut a, StatePart::Constant, &mut shard).unwrap();
            load(&mut restored, StatePart::Constant, &shard).unwrap();
            restored.rebuild(comm).unwrap();
            assert_eq!(restored.plan().unwrap().format(), Some(format));
        }
    });
}

#[test]
fn rows_that_need_no_others_are_told_from_those_that_do() {
    let whole = Poisson::new_2d(10, 100).unwrap().rows(0..1000);
    let boundary = ft_sim::ranks(4, |comm| {
        let a = slice(&whole, Partition::of(comm, 1000), comm);
        a.plan().unwrap().boundary_rows()
    });
    assert_eq!(boundary, [32, 64, 64, 32]);
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

/// Rows of all kinds: empty, dense, the pattern of the row before, that pattern moved by one, with the same values or
/// others, and patterns of their own.
fn rows_of_all_kinds(n: usize, kinds: &[(u8, u32)]) -> CsrRows {
    let mut rows: Vec<(Vec<u64>, Vec<f64>)> = Vec::new();
    for row in 0..n {
        let (kind, seed) = kinds[row % kinds.len()];
        let (before, values) = rows.last().cloned().unwrap_or_default();
        let cols: Vec<u64> = match kind {
            0 => vec![],
            1 => (0..n as u64).collect(),
            2 | 3 => before,
            4..=7 => before.iter().map(|col| col + 1).filter(|col| *col < n as u64).collect(),
            _ => (0..n as u64).filter(|col| (col ^ u64::from(seed)) % 13 < 2).collect(),
        };
        let value = |k: usize| f64::from(seed.wrapping_mul(2 * k as u32 + 1) % 1009) / 7.0 - 70.0;
        let kept = matches!(kind, 2 | 4 | 5) && cols.len() == values.len();
        let vals = if kept { values } else { (0..cols.len()).map(value).collect() };
        rows.push((cols, vals));
    }
    CsrRows::build(0..n, 4, |row, cols, vals| {
        cols.extend(&rows[row].0);
        vals.extend(&rows[row].1);
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn all_formats_have_the_bits_of_the_serial_product_on_any_number_of_ranks(
        n in 1usize..300,
        kinds in prop::collection::vec((0u8..10, any::<u32>()), 1..60),
    ) {
        same_on_any_ranks_in_any_format(&rows_of_all_kinds(n, &kinds));
    }
}
