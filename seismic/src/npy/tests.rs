use std::io::Cursor;

use proptest::prelude::*;

use super::*;

/// A file of format version `major` with this header and these bytes.
pub(crate) fn npy(major: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = [MAGIC, &[major, 0]].concat();
    match major {
        1 => bytes.extend((header.len() as u16).to_le_bytes()),
        _ => bytes.extend((header.len() as u32).to_le_bytes()),
    }
    bytes.extend(header.bytes());
    bytes.extend(data);
    bytes
}

fn parse(bytes: Vec<u8>) -> Result<Grid, ModelErrorKind> {
    let length = bytes.len() as u64;
    read(Source::new(Cursor::new(bytes), Some(length)).unwrap())
}

fn error(bytes: Vec<u8>) -> String {
    parse(bytes).unwrap_err().to_string()
}

fn dictionary(descr: &str, fortran_order: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': {fortran_order}, 'shape': {shape}, }}   \n")
}

#[test]
fn all_types_orders_and_versions_give_the_same_model() {
    let c = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let fortran = [1.0, 4.0, 2.0, 5.0, 3.0, 6.0];
    for (order, values) in [("False", c), ("True", fortran)] {
        let flat =
            |bytes: &dyn Fn(f64) -> Vec<u8>| values.iter().flat_map(|v| bytes(*v)).collect::<Vec<u8>>();
        for (descr, data) in [
            ("<f4", flat(&|v| (v as f32).to_le_bytes().to_vec())),
            (">f4", flat(&|v| (v as f32).to_be_bytes().to_vec())),
            ("<f8", flat(&|v| v.to_le_bytes().to_vec())),
            (">f8", flat(&|v| v.to_be_bytes().to_vec())),
        ] {
            for major in 1..=3 {
                let grid = parse(npy(major, &dictionary(descr, order, "(2, 3)"), &data)).unwrap();
                assert_eq!((grid.nx, grid.nz, grid.spacing), (2, 3, None));
                assert_eq!(grid.values, c.map(|v| v as f32), "{descr} {order} version {major}");
            }
        }
    }
}

#[test]
fn the_dictionary_may_be_written_otherwise() {
    let header = parse_header(b" {\"shape\":(3,4),\"fortran_order\":True,\"descr\":\">f8\"} ").unwrap();
    let format = SampleFormat::Ieee64(ByteOrder::Big);
    assert_eq!(header, Header { format, fortran_order: true, shape: (3, 4) });
}

#[test]
fn what_is_not_read_is_said() {
    let headed = |descr, order, shape| error(npy(1, &dictionary(descr, order, shape), &[0; 16]));
    assert_eq!(
        error(b"SIMPLE".to_vec()),
        "not a NumPy file, which starts with \\x93NUMPY; name raw floats .bin"
    );
    assert_eq!(error(npy(4, "", b"")), "NumPy format version 4.0 is not known, save with version 1, 2 or 3");
    assert_eq!(
        headed("<i4", "False", "(2, 2)"),
        "array of type \"<i4\" is not read, convert it to <f4, >f4, <f8 or >f8 (numpy: v.astype('<f4'))"
    );
    assert_eq!(headed("<f4", "False", "(4,)"), "array has 1 dimensions, expected 2: x and z");
    assert_eq!(headed("<f4", "False", "(1, 2, 2)"), "array has 3 dimensions, expected 2: x and z");
    assert_eq!(headed("<f4", "False", "(-2, 2)"), "NumPy header has a shape that is not a tuple of sizes");
    assert_eq!(
        headed("<f4", "False", "(0, 2)"),
        "shape 0x2 has no points, give at least 1 in each direction"
    );
    let structured = "{'descr': [('vp', '<f4')], 'fortran_order': False, 'shape': (2, 2)}";
    assert!(error(npy(1, structured, b"")).starts_with("array of type \"[('vp', '<f4')]"));
    let neither = "NumPy header is not a dictionary with descr, fortran_order and shape";
    for header in ["", "{", "{}", "{'descr': '<f4', 'shape': (2, 2)}", "{'extra': 1}", "{'descr': '<f4' 'x'"]
    {
        assert_eq!(error(npy(1, header, b"")), neither, "{header}");
    }
    let whole = npy(1, &dictionary("<f4", "False", "(2, 2)"), &[0; 16]);
    assert_eq!(error(whole[..20].to_vec()), "NumPy header is cut off");
    assert_eq!(error(npy(2, &" ".repeat(70_000), b"")), "NumPy header is longer than 65536 bytes");
}

#[test]
fn data_have_to_be_as_long_as_the_shape_says() {
    let file = |shape| npy(1, &dictionary("<f4", "False", shape), &[0; 48]);
    assert_eq!(
        error(file("(4, 4)")),
        "shape 4x4 needs 64 bytes of 4-byte floats, found 48; 4x3 or 3x4 would fit"
    );
    assert_eq!(error(file("(5, 2)")), "shape 5x2 needs 40 bytes of 4-byte floats, found 48; 6x2 would fit");
    assert_eq!(
        error(file("(3000000000, 5)")),
        "shape 3000000000x5 is too large, at most 2147483648 points are read"
    );
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(bytes);
    }

    #[test]
    fn random_headers_never_panic(header in "[{}()'\",: 0-9<>fFTdeiscraplotunhE_-]{0,80}", data in any::<[u8; 8]>()) {
        let _ = parse(npy(1, &header, &data));
    }

    #[test]
    fn damaged_headers_never_panic(at in 0usize..80, byte in any::<u8>()) {
        let mut bytes = npy(1, &dictionary("<f4", "False", "(2, 2)"), &[0; 16]);
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = parse(bytes);
    }
}
