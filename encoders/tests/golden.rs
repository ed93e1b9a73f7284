//! Redundant blocks of fixed inputs, byte by byte.
//!
//! These bytes are what processes of one job exchange and hold for each other. A change here is a change of the
//! format. They were computed apart from this code: by interpolating the polynomial of the module `reed_solomon`, and by ISA-L.

mod common;

use common::redundant;
use ft_encoders::{Code, Mirror, ReedSolomon, Xor};

/// The redundant blocks of the first `k` of five ragged lines, in hexadecimal.
fn blocks(code: &dyn Code) -> Vec<String> {
    let lines: [&[u8]; 5] = [b"diskless", b"fault", b"tolerance", b"", b"\x00\x01\x80\xff"];
    let hex = |block: Vec<u8>| block.iter().map(|byte| format!("{byte:02x}")).collect();
    let lines: Vec<Vec<u8>> = lines[..code.data()].iter().map(|line| line.to_vec()).collect();
    redundant(code, &lines).into_iter().map(hex).collect()
}

#[test]
fn mirror() {
    assert_eq!(blocks(&Mirror::new(2).unwrap()), ["6469736b6c657373", "6469736b6c657373"]);
}

#[test]
fn xor() {
    assert_eq!(blocks(&Xor::new(5).unwrap()), ["7666ea9d6a041d1065"]);
}

#[test]
fn vandermonde() {
    assert_eq!(blocks(&ReedSolomon::vandermonde(2, 1).unwrap()), ["60797f655caf9595"]);
    assert_eq!(
        blocks(&ReedSolomon::vandermonde(3, 2).unwrap()),
        ["76676a626a041d1065", "143d0177e87282ac43"]
    );
    assert_eq!(
        blocks(&ReedSolomon::vandermonde(5, 3).unwrap()),
        ["2b46e7a9797d3d1343", "8718e8c66924f5906a", "da38e5f27a5dd5934c"]
    );
}

/// From ISA-L 2.30: `gf_gen_cauchy1_matrix`, `ec_init_tables` and `ec_encode_data_base`.
#[test]
fn cauchy() {
    assert_eq!(blocks(&ReedSolomon::new(2, 2).unwrap()), ["106e6f9f1abcb7b7", "e4996ee41e23dada"]);
    assert_eq!(blocks(&ReedSolomon::new(3, 2).unwrap()), ["90f602816c42b4b965", "118d8f50e334334b9f"]);
    assert_eq!(
        blocks(&ReedSolomon::new(5, 3).unwrap()),
        ["188473bd782fc01117", "3c044ed242c0f8bc5e", "530a38b8185b8cdcea"]
    );
    assert_eq!(blocks(&ReedSolomon::new(5, 1).unwrap()), blocks(&Xor::new(5).unwrap()));
}
