use super::*;

/// `y = A x` in each format.
fn products(lens: &[u32], cols: &[u32], vals: &[f64], x: &[f64]) -> Vec<Vec<f64>> {
    let stored = Format::ALL.map(|format| Stored::new(format, Entries { lens, cols, vals }));
    let product = |stored: &Stored| {
        let mut y = vec![f64::NAN; lens.len()];
        stored.product(vals, x, &mut y);
        y
    };
    stored.iter().map(product).collect()
}

#[test]
fn a_value_that_is_not_finite_stays_in_its_rows() {
    // Rows 0 and 1 and rows 3 and 4 have the same columns, rows 1 to 3 the same offsets; row 2 is longer than its neighbors.
    let (lens, cols) = ([1, 1, 3, 1, 1], [0, 0, 1, 2, 3, 4, 4]);
    let x = [2.0, f64::INFINITY, 1.0, 1.0, f64::NAN];
    for y in products(&lens, &cols, &[3.0, -1.0, 1.0, 1.0, 1.0, 0.0, 1.0], &x) {
        assert_eq!(y[..3], [6.0, -2.0, f64::INFINITY]);
        assert!(y[3].is_nan() && y[4].is_nan());
    }
}

#[test]
fn zeros_of_both_signs_are_kept_apart() {
    // A sum starts at +0, which a product of -0 does not change; 0 and -0 are not the same value of a run.
    let (x, vals) = ([1.0, 1.0, 1.0], [0.0, -0.0, -0.0]);
    for y in products(&[1, 1, 1], &[0, 1, 2], &vals, &x) {
        assert!(y.iter().all(|y| y.to_bits() == 0));
    }
    let x = [f64::MIN_POSITIVE; 4];
    for y in products(&[2, 2, 0], &[0, 1, 1, 2], &[-0.0, -0.0, 0.0, -0.0], &x) {
        assert!(y.iter().all(|y| y.to_bits() == 0));
    }
}

#[test]
fn equal_rows_along_a_line_are_stored_once() {
    // A chain of 100: first and last row, and those between.
    let lens: Vec<u32> = (0..100).map(|row| 2 + u32::from(row > 0 && row < 99)).collect();
    let cols: Vec<u32> = (0..100u32).flat_map(|row| row.saturating_sub(1)..(row + 2).min(100)).collect();
    let vals: Vec<f64> = (0..100usize).flat_map(|row| vec![2.0; lens[row] as usize]).collect();
    let Stored::Runs(runs) = Stored::new(Format::Runs, Entries { lens: &lens, cols: &cols, vals: &vals })
    else {
        panic!("asked for runs");
    };
    assert_eq!(runs.stored(), (3, 7, 7));
}

#[test]
fn rows_of_a_node_share_their_columns() {
    let (lens, cols) = ([3; 6], [[0, 1, 2]; 6].concat());
    let vals: Vec<f64> = (0..18).map(f64::from).collect();
    let Stored::Inodes(inodes) =
        Stored::new(Format::Inodes, Entries { lens: &lens, cols: &cols, vals: &vals })
    else {
        panic!("asked for inodes");
    };
    assert_eq!(inodes.stored(), (1, 3));
}
