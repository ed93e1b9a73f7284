//! Reed-Solomon against the crate `reed-solomon-erasure`: block for block the same bytes.
//!
//! Its matrix is the one of [`ReedSolomon::vandermonde`].

mod common;

use common::{data, redundant};
use ft_encoders::ReedSolomon;
use reed_solomon_erasure::galois_8;

#[test]
fn redundant_blocks_are_those_of_the_crate() {
    for (k, m) in [(1, 1), (1, 4), (2, 1), (3, 2), (4, 2), (4, 4), (10, 4), (17, 3), (32, 32), (200, 56)] {
        for length in [1, 2, 7, 64, 1001] {
            let code = ReedSolomon::vandermonde(k, m).unwrap();
            let mut expected = data(&code, length, 4);
            let ours = redundant(&code, &expected);
            expected.extend(vec![vec![0; length]; m]);
            galois_8::ReedSolomon::new(k, m).unwrap().encode(&mut expected).unwrap();
            assert_eq!(ours, expected[k..], "{k}+{m}, {length} bytes");
        }
    }
}
