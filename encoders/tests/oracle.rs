//! Reed-Solomon as Plank and Ding write it down, by matrices: block for block the same bytes.
//!
//! Nothing here is quick, and nothing is shared with the code under test: products are those of polynomials, quotients are searched
//! for, and the matrix is that of Vandermonde times the inverse of its upper part. It is how the crate `reed-solomon-erasure`
//! makes its matrix, with which the blocks of [`ReedSolomon::vandermonde`] were compared as well.
//!
//! Source: Plank, Ding: Note: Correction to the 1997 tutorial on Reed-Solomon coding, Software: Practice and Experience, 2005.

mod common;

use common::{data, redundant};
use ft_encoders::{Code, ReedSolomon};

/// Multiplication in GF(2^8) with `x^8 = x^4 + x^3 + x^2 + 1`, a bit of `b` at a time.
fn product(a: u8, b: u8) -> u8 {
    let wide = (0..8).filter(|bit| b >> bit & 1 == 1).fold(0u16, |sum, bit| sum ^ u16::from(a) << bit);
    let reduced =
        (8..16).rev().fold(wide, |sum, bit| if sum >> bit & 1 == 1 { sum ^ 0x11d << (bit - 8) } else { sum });
    reduced as u8
}

fn inverse(a: u8) -> u8 {
    (1..=255).find(|b| product(a, *b) == 1).expect("0 has no inverse")
}

fn power(a: u8, exponent: usize) -> u8 {
    (0..exponent).fold(1, |product_so_far, _| product(product_so_far, a))
}

fn dot(row: &[u8], column: impl Iterator<Item = u8>) -> u8 {
    row.iter().zip(column).fold(0, |sum, (a, b)| sum ^ product(*a, b))
}

/// The inverse of a matrix, by Gauss and Jordan.
fn inverted(mut matrix: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let size = matrix.len();
    for (at, row) in matrix.iter_mut().enumerate() {
        row.extend((0..size).map(|column| u8::from(column == at)));
    }
    for at in 0..size {
        let pivot = (at..size).find(|row| matrix[*row][at] != 0).expect("a matrix that can be inverted");
        matrix.swap(at, pivot);
        let scale = inverse(matrix[at][at]);
        matrix[at].iter_mut().for_each(|value| *value = product(*value, scale));
        let pivot = matrix[at].clone();
        for (_, row) in matrix.iter_mut().enumerate().filter(|(row, _)| *row != at) {
            let factor = row[at];
            row.iter_mut().zip(&pivot).for_each(|(value, by)| *value ^= product(*by, factor));
        }
    }
    matrix.into_iter().map(|row| row[size..].to_vec()).collect()
}

/// The weights of `k` members in each of `m` redundant blocks.
fn weights(k: usize, m: usize) -> Vec<Vec<u8>> {
    let vandermonde: Vec<Vec<u8>> =
        (0..k + m).map(|row| (0..k).map(|column| power(row as u8, column)).collect()).collect();
    let upper = inverted(vandermonde[..k].to_vec());
    let systematic = |row: &Vec<u8>| (0..k).map(|column| dot(row, upper.iter().map(|r| r[column]))).collect();
    vandermonde[k..].iter().map(systematic).collect()
}

#[test]
fn redundant_blocks_are_those_of_the_matrix() {
    for (k, m) in [(1, 1), (1, 4), (2, 1), (3, 2), (4, 2), (4, 4), (10, 4), (17, 3), (32, 32), (60, 5)] {
        let (code, weights) = (ReedSolomon::vandermonde(k, m).unwrap(), weights(k, m));
        for length in [1, 2, 7, 64, 301] {
            let shards = data(&code, length, 4);
            let byte = |row: &[u8], at: usize| dot(row, shards.iter().map(|shard| shard[at]));
            let expected: Vec<Vec<u8>> =
                weights.iter().map(|row| (0..length).map(|at| byte(row, at)).collect()).collect();
            assert_eq!(redundant(&code, &shards), expected, "{k}+{m}, {length} bytes");
        }
    }
}

/// As large as the field allows: the weights alone.
#[test]
fn the_largest_matrices_are_right_too() {
    for (k, m) in [(200, 56), (255, 1), (1, 255)] {
        let code = ReedSolomon::vandermonde(k, m).unwrap();
        for (block, row) in weights(k, m).iter().enumerate() {
            let found: Vec<u8> = (0..k).map(|member| code.weight(block, member)).collect();
            assert_eq!(&found, row, "{k}+{m}, block {block}");
        }
    }
}
