//! The definition of Reed and Solomon (Polynomial codes over certain finite fields, Journal of the SIAM 8(2),
//! 1960), and the matrix of Cauchy, computed with an arithmetic of its own.

mod common;

use common::{bytes, redundant};
use ft_encoders::{Code, ReedSolomon};

/// The product in GF(2^8), as school multiplication of polynomials over GF(2) modulo 0x11d.
fn product(a: u8, b: u8) -> u8 {
    let mut wide = (0..8).filter(|bit| b >> bit & 1 == 1).fold(0, |sum, bit| sum ^ u16::from(a) << bit);
    for bit in (8..15).rev() {
        if wide >> bit & 1 == 1 {
            wide ^= 0x11d << (bit - 8);
        }
    }
    wide as u8
}

/// The value of `c[0] + c[1] x + c[2] x^2 + ..` by Horner's rule.
fn value(coefficients: &[u8], x: u8) -> u8 {
    coefficients.iter().rev().fold(0, |sum, &c| product(sum, x) ^ c)
}

#[test]
fn multiplication_by_hand() {
    assert_eq!(product(3, 7), 9);
    assert_eq!(product(0x80, 2), 0x1d);
    assert_eq!(product(0x53, 1), 0x53);
}

/// The code word is the values of the message's polynomial at the elements of the field. Here the message gives the
/// first `k` values instead of the coefficients, so that the data is stored as it is.
#[test]
fn a_stripe_is_the_values_of_one_polynomial() {
    for (k, m) in [(1, 3), (2, 2), (4, 2), (5, 3), (16, 16), (100, 156)] {
        let code = ReedSolomon::vandermonde(k, m).unwrap();
        let polynomials: Vec<Vec<u8>> = (0..20).map(|i| bytes(k, i)).collect();
        let at = |x: usize| -> Vec<u8> { polynomials.iter().map(|p| value(p, x as u8)).collect() };
        let data: Vec<Vec<u8>> = (0..k).map(at).collect();
        let expected: Vec<Vec<u8>> = (k..k + m).map(at).collect();
        assert_eq!(redundant(&code, &data), expected, "{k}+{m}");
    }
}

/// Two different polynomials of degree below `k` agree in fewer than `k` points, so stripes that differ at all
/// differ in at least `m + 1` blocks.
#[test]
fn one_changed_shard_changes_every_redundant_block() {
    for code in [ReedSolomon::new(6, 4).unwrap(), ReedSolomon::vandermonde(6, 4).unwrap()] {
        for member in 0..6 {
            let mut shards = vec![vec![0]; 6];
            shards[member] = vec![1];
            let blocks = redundant(&code, &shards);
            assert!(blocks.iter().all(|block| block[0] != 0), "member {member}");
        }
    }
}

/// Weights times the difference of the points are 1.
#[test]
fn cauchy_weights_are_inverse_differences() {
    for (k, m) in [(1, 2), (4, 2), (8, 4), (100, 156), (254, 2)] {
        let code = ReedSolomon::new(k, m).unwrap();
        for block in 0..m {
            for member in 0..k {
                assert_eq!(product(code.weight(block, member), ((k + block) ^ member) as u8), 1, "{k}+{m}");
            }
        }
    }
    let single = ReedSolomon::new(9, 1).unwrap();
    assert!((0..9).all(|member| single.weight(0, member) == 1));
}
