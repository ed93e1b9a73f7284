//! Redundant blocks of fixed inputs, byte by byte.
//!
//! These bytes are what processes of one job exchange and hold for each other. A change here is a change of the
//! format. They were computed apart from this code, by interpolating the polynomial of the module `reed_solomon`.

use ft_encoders::{Code, Mirror, ReedSolomon, Xor, encode};

/// The redundant blocks of the first `k` of five ragged lines, in hexadecimal.
fn blocks(code: &dyn Code) -> Vec<String> {
    let lines: [&[u8]; 5] = [b"diskless", b"fault", b"tolerance", b"", b"\x00\x01\x80\xff"];
    let hex = |block: Vec<u8>| block.iter().map(|byte| format!("{byte:02x}")).collect();
    encode(code, &lines[..code.data()]).unwrap().into_iter().map(hex).collect()
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
fn reed_solomon() {
    assert_eq!(blocks(&ReedSolomon::new(2, 1).unwrap()), ["60797f655caf9595"]);
    assert_eq!(blocks(&ReedSolomon::new(3, 2).unwrap()), ["76676a626a041d1065", "143d0177e87282ac43"]);
    assert_eq!(
        blocks(&ReedSolomon::new(5, 3).unwrap()),
        ["2b46e7a9797d3d1343", "8718e8c66924f5906a", "da38e5f27a5dd5934c"]
    );
}
