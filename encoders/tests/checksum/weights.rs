//! The tables of weights: that they are the same ones for ever, and that no part of them is near to singular.

use ft_encoders::Checksum;

use crate::samples::{encoded, subsets};

/// The worst condition number and the worst growth of errors over all patterns of losses.
fn worst(code: &Checksum) -> (f64, f64) {
    let (data, redundant) = (code.data(), code.redundant());
    let patterns = subsets(data + redundant, redundant).into_iter().filter(|lost| lost.len() == redundant);
    patterns.filter(|lost| lost[0] < data).fold((0.0, 0.0), |worst, lost| {
        let present: Vec<bool> = (0..data + redundant).map(|index| !lost.contains(&index)).collect();
        let recovery = code.recovery(&present, &lost[..1]).unwrap();
        (recovery.condition().max(worst.0), recovery.growth().max(worst.1))
    })
}

/// The worst of `|A^-1| |W|` over all square parts `A` of a table, by elimination with pivots.
fn worst_growth(table: &[Vec<f64>]) -> f64 {
    let (blocks, members) = (table.len(), table[0].len());
    let sums: Vec<f64> = table.iter().map(|row| row.iter().map(|weight| weight.abs()).sum()).collect();
    let mut worst = 0.0_f64;
    for lost in subsets(members, blocks).into_iter().skip(1) {
        for rows in subsets(blocks, lost.len()).into_iter().filter(|rows| rows.len() == lost.len()) {
            let part = rows.iter().map(|row| lost.iter().map(|member| table[*row][*member]).collect());
            let inverse = inverse(part.collect());
            let grown = |row: &Vec<f64>| rows.iter().zip(row).map(|(j, c)| c.abs() * sums[*j]).sum::<f64>();
            worst = inverse.iter().map(grown).fold(worst, f64::max);
        }
    }
    worst
}

/// By Gauss and Jordan with partial pivoting.
pub(crate) fn inverse(mut a: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let n = a.len();
    for (i, row) in a.iter_mut().enumerate() {
        row.extend((0..n).map(|j| f64::from(u8::from(i == j))));
    }
    for column in 0..n {
        let pivot = (column..n).max_by(|x, y| a[*x][column].abs().total_cmp(&a[*y][column].abs())).unwrap();
        a.swap(column, pivot);
        let scale = a[column][column];
        a[column].iter_mut().for_each(|value| *value /= scale);
        let pivot = a[column].clone();
        for (_, row) in a.iter_mut().enumerate().filter(|(row, _)| *row != column) {
            let factor = row[column];
            row.iter_mut().zip(&pivot).for_each(|(value, other)| *value -= factor * other);
        }
    }
    a.into_iter().map(|row| row[n..].to_vec()).collect()
}

/// Rows of blocks, columns of members.
pub(crate) fn table(code: &Checksum) -> Vec<Vec<f64>> {
    let row = |block| (0..code.data()).map(|member| code.weight(block, member)).collect();
    (0..code.redundant()).map(row).collect()
}

/// Members, blocks, worst condition number, worst growth: they are in the documentation of `Checksum`.
const WORST: &[(usize, usize, f64, f64)] = &[
    (4, 1, 1.0, 4.0),
    (4, 2, 4.561, 9.125),
    (4, 3, 5.800, 10.78),
    (4, 4, 9.284, 12.60),
    (8, 1, 1.0, 8.0),
    (8, 2, 9.703, 32.76),
    (8, 3, 21.23, 53.90),
    (8, 4, 59.24, 115.0),
    (16, 1, 1.0, 16.0),
    (16, 2, 19.32, 123.0),
    (16, 3, 77.25, 359.7),
    (16, 4, 515.7, 1890.0),
    (32, 1, 1.0, 32.0),
    (32, 2, 39.36, 499.0),
    (32, 3, 380.5, 3006.0),
    (32, 4, 4892.0, 38_730.0),
    (60, 1, 1.0, 60.0),
    (60, 2, 80.33, 1836.0),
    (60, 3, 1406.0, 23_600.0),
    (60, 4, 45_434.0, 606_430.0),
];

#[test]
fn no_pattern_of_losses_is_ill_conditioned() {
    for &(data, redundant, condition, growth) in WORST {
        let code = Checksum::new(data, redundant).unwrap();
        let found = worst(&code);
        println!("{code:?}: {found:.3?}");
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-3;
        assert!(near(found.0, condition) && near(found.1, growth), "{code:?}: {found:?}");
        let at_most = 1.5 * f64::EPSILON * (data + 2) as f64 * growth;
        assert!(code.error_max() >= at_most && code.error_max() < 1.05 * at_most, "{code:?}");
    }
}

/// What processes of one job have to agree on: a change here is a change of the format.
#[test]
fn weights_are_the_same_for_ever() {
    let rows = |data, redundant| table(&Checksum::new(data, redundant).unwrap());
    let ones = vec![1.0; 4];
    assert_eq!(rows(4, 2), [ones.clone(), vec![32.0, -114.0, 114.0, -32.0]]);
    assert_eq!(rows(4, 3), [ones, vec![23.0, 73.0, -107.0, -44.0], vec![102.0, 42.0, -22.0, -71.0]]);
    // FNV-1a over all weights of all codes.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for (data, redundant) in (1..=Checksum::DATA_MAX).flat_map(|data| (1..=4).map(move |m| (data, m))) {
        for weight in rows(data, redundant).concat() {
            hash = (hash ^ u64::from(weight as i8 as u8)).wrapping_mul(0x100_0000_01b3);
        }
    }
    assert_eq!(hash, 0xbc71_5f3a_c4ab_1eae, "{hash:#x}");
}

/// Blocks of fixed inputs, bit by bit, which were computed apart from this code: products and sums are rounded apart, members are added in their order.
#[test]
fn blocks_are_the_same_for_ever() {
    let code = Checksum::new(5, 3).unwrap();
    let shard = |member: usize| -> Vec<f64> { (1..=3).map(|at| 1.0 / (3 * member + at) as f64).collect() };
    let data: Vec<Vec<f64>> = (0..5).map(shard).collect();
    let bits: Vec<Vec<u64>> = encoded(&code, &data)
        .iter()
        .map(|block| block.iter().map(|value| value.to_bits()).collect())
        .collect();
    assert_eq!(
        bits,
        [
            [0x3ff9_1dd1_dd1d_d1dd, 0x3fef_9845_273b_2de1, 0x3fe8_5b05_b05b_05b1],
            [0x4045_727f_27f2_7f27, 0x4039_6269_0f4b_233e, 0x4032_7777_7777_7777],
            [0x405d_4ab9_ab9a_b9ab, 0x404d_ccec_b785_a6e6, 0x4044_293e_93e9_3e93]
        ]
    );
}

#[test]
fn a_smaller_code_is_no_worse_than_the_table_that_it_is_cut_from() {
    for (data, redundant) in [(3_usize, 2), (5, 3), (11, 3), (9, 4)] {
        let class = if data <= 8 { data.next_power_of_two() } else { 16 };
        let (cut, whole) = (
            worst(&Checksum::new(data, redundant).unwrap()),
            worst(&Checksum::new(class, redundant).unwrap()),
        );
        assert!(cut.0 <= whole.0 && cut.1 <= whole.1, "{data}+{redundant}: {cut:?}, {whole:?}");
    }
}

#[test]
fn vandermonde_matrices_are_far_worse() {
    for (data, redundant) in [(4, 2), (4, 4), (8, 3), (16, 2), (16, 4)] {
        let code = Checksum::new(data, redundant).unwrap();
        let power = |j: i32| (1..=data).map(|point| (point as f64).powi(j)).collect();
        let vandermonde: Vec<Vec<f64>> = (0..redundant as i32).map(power).collect();
        let (ours, theirs) = (worst_growth(&table(&code)), worst_growth(&vandermonde));
        println!("{code:?}: growth {ours:.1}, Vandermonde {theirs:.3e}");
        assert!(
            (ours / worst(&code).1 - 1.0).abs() < 1e-9,
            "{code:?}: exact integers and elimination differ"
        );
        assert!(theirs > 2.0 * ours, "{code:?}");
        if (data, redundant) == (16, 4) {
            assert!(theirs > 50.0 * ours);
        }
    }
}

#[test]
fn a_single_block_is_a_plain_sum() {
    for data in [1, 7, Checksum::DATA_MAX] {
        assert_eq!(table(&Checksum::new(data, 1).unwrap()), [vec![1.0; data]]);
        for redundant in 1..=Checksum::REDUNDANT_MAX {
            assert_eq!(table(&Checksum::new(data, redundant).unwrap())[0], vec![1.0; data]);
        }
    }
}
