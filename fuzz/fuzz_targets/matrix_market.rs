//! Matrix Market: what is read can be written in the plainest way, and is read as the same; any rows of it can be taken.

#![no_main]

use std::fmt::Write;

use ft_fuzz::{BUFFERS, within};
use ft_linalg::matrix_market::{Coordinates, parse_matrix, parse_vector};
use libfuzzer_sys::fuzz_target;

/// Most rows of which the target makes a list.
const ROWS_MAX: usize = 1 << 16;

fn written(matrix: &Coordinates) -> String {
    let (rows, cols, entries) = (matrix.rows(), matrix.cols(), matrix.entries());
    let mut text =
        format!("%%MatrixMarket matrix coordinate real general\n{rows} {cols} {}\n", entries.len());
    for entry in entries {
        writeln!(text, "{} {} {:e}", entry.row + 1, entry.col + 1, entry.value).expect("memory");
    }
    text
}

fuzz_target!(|bytes: &[u8]| {
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return; // the target gz has these
    }
    let enough = BUFFERS + 256 * bytes.len();
    if let Ok(vector) = within(enough, || parse_vector(bytes)) {
        assert!(vector.iter().all(|value| value.is_finite()));
        let lines: String = vector.iter().map(|value| format!("{value:e}\n")).collect();
        let text = format!("%%MatrixMarket matrix array real general\n{} 1\n{lines}", vector.len());
        assert_eq!(parse_vector(text.as_bytes()).expect("it was a vector"), vector);
        // A vector is a matrix of one column, whose zeros are no entries.
        let matrix = parse_matrix(bytes).expect("it was a vector");
        let nonzeros = vector.iter().filter(|value| **value != 0.0);
        assert!(matrix.entries().iter().map(|entry| &entry.value).eq(nonzeros) && matrix.cols() == 1);
    }
    let Ok(matrix) = within(enough, || parse_matrix(bytes)) else { return };
    let (rows, cols) = (matrix.rows() as u64, matrix.cols() as u64);
    let fits = |row: u64, col: u64, value: f64| row < rows && col < cols && value.is_finite();
    assert!(matrix.entries().iter().all(|entry| fits(entry.row, entry.col, entry.value)));
    let places = matrix.entries().iter().map(|entry| (entry.row, entry.col));
    assert!(places.is_sorted_by(|a, b| a < b));
    assert_eq!(parse_matrix(written(&matrix).as_bytes()).expect("it was a matrix"), matrix);
    // A symmetric matrix has a mirror of each entry, up to rounding.
    if matrix.require_symmetric().is_ok() {
        let largest = matrix.entries().iter().fold(0.0_f64, |most, entry| most.max(entry.value.abs()));
        let mirrored = |entry: &ft_linalg::matrix_market::Entry| {
            let mirror = matrix.get(entry.col, entry.row).unwrap_or(0.0);
            mirror == entry.value || (mirror - entry.value).abs() <= 1e-12 * largest
        };
        assert!(matrix.entries().iter().all(mirrored));
    }
    if matrix.rows() <= ROWS_MAX {
        let (front, back) = (0..matrix.rows() / 2, matrix.rows() / 2..matrix.rows());
        let stored = |range| matrix.to_rows(range).expect("there is memory").nnz();
        assert_eq!(stored(front) + stored(back), matrix.entries().len());
    }
});
