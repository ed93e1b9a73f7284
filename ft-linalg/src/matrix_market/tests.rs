use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;

use super::*;

const SYMMETRIC: &str = "%%MatrixMarket matrix coordinate real symmetric\n% a comment\n\n3 3 4\n\
                         1 1 2.0\n2 1 -1.5\n3 3 0\n3 2 1.0D+1\n";

fn error(text: &str) -> String {
    parse_matrix(text.as_bytes()).unwrap_err().to_string()
}

fn with_banner(words: &str, rest: &str) -> String {
    format!("%%MatrixMarket matrix {words}\n{rest}")
}

#[test]
fn a_symmetric_file_is_mirrored_and_keeps_explicit_zeros() {
    let a = parse_matrix(SYMMETRIC.as_bytes()).unwrap();
    let entries: Vec<_> = a.entries().iter().map(|e| (e.row, e.col, e.value)).collect();
    assert_eq!(entries, [(0, 0, 2.0), (0, 1, -1.5), (1, 0, -1.5), (1, 2, 10.0), (2, 1, 10.0), (2, 2, 0.0)]);
    assert!(a.require_symmetric().is_ok());
    let rows = a.to_rows(1..3).unwrap();
    assert_eq!(rows.row(0), (&[0, 2][..], &[-1.5, 10.0][..]));
    assert_eq!(rows.row(1), (&[1, 2][..], &[10.0, 0.0][..]));
}

#[test]
fn gzip_is_told_by_its_first_bytes() {
    let mut gz = GzEncoder::new(Vec::new(), Compression::default());
    gz.write_all(SYMMETRIC.as_bytes()).unwrap();
    let gz = gz.finish().unwrap();
    assert_eq!(parse_matrix(&gz[..]).unwrap(), parse_matrix(SYMMETRIC.as_bytes()).unwrap());
    let cut = parse_matrix(&gz[..gz.len() / 2]).unwrap_err();
    assert!(matches!(cut.kind, Kind::Io(_)), "{cut}");
}

#[test]
fn other_fields_and_symmetries() {
    let pattern =
        parse_matrix(with_banner("coordinate pattern general", "2 3 2\n1 3\n2 1\n").as_bytes()).unwrap();
    assert_eq!((pattern.get(0, 2), pattern.get(1, 0), pattern.get(0, 0)), (Some(1.0), Some(1.0), None));
    assert!(matches!(pattern.require_square(), Err(LinalgError::NotSquare { rows: 2, cols: 3 })));
    let skew =
        parse_matrix(with_banner("coordinate integer skew-symmetric", "2 2 1\r\n2 1 7\r\n").as_bytes())
            .unwrap();
    assert_eq!((skew.get(1, 0), skew.get(0, 1)), (Some(7.0), Some(-7.0)));
    let text = skew.require_symmetric().unwrap_err().to_string();
    assert_eq!(text, "matrix is not symmetric: a(1,2) = -7e0 but a(2,1) = 7e0");
}

#[test]
fn the_first_pair_that_differs_is_named() {
    let text = with_banner("coordinate real general", "3 3 4\n3 1 5\n2 3 1\n3 2 1.0000000000000002\n1 1 1\n");
    let text = parse_matrix(text.as_bytes()).unwrap().require_symmetric().unwrap_err().to_string();
    assert_eq!(text, "matrix is not symmetric: a(1,3) = 0e0 but a(3,1) = 5e0");
}

#[test]
fn vectors() {
    let text = with_banner("array real general", "% c\n3 1\n1\n-2.5e-3\n3\n");
    assert_eq!(parse_vector(text.as_bytes()).unwrap(), [1.0, -2.5e-3, 3.0]);
    let error = |words, rest| parse_vector(with_banner(words, rest).as_bytes()).unwrap_err().to_string();
    assert_eq!(error("array real general", "2 2\n1\n2\n3\n4\n"), "line 2: expected one column, found 2");
    assert_eq!(error("array real general", "2 1\n1\n"), "line 4: file ends after 1 of 2 entries");
    assert_eq!(
        error("array pattern general", "2 1\n"),
        "line 1: field \"pattern\" is not supported, expected real or integer"
    );
}

#[test]
fn every_fault_has_its_line() {
    let real = |rest: &str| error(&with_banner("coordinate real general", rest));
    assert_eq!(error(""), "line 1: banner missing, expected %%MatrixMarket matrix ...");
    assert_eq!(error("3 3 1\n1 1 1\n"), "line 1: banner missing, expected %%MatrixMarket matrix ...");
    assert_eq!(
        error("%%MatrixMarket matrix coordinate complex general\n"),
        "line 1: field \"complex\" is not supported, expected real, integer or pattern"
    );
    assert_eq!(
        error("%%MatrixMarket matrix sparse real general\n"),
        "line 1: format \"sparse\" is not supported, expected coordinate or array"
    );
    assert_eq!(
        error("%%MatrixMarket matrix coordinate real hermitian\n"),
        "line 1: symmetry \"hermitian\" is not supported, expected general, symmetric or skew-symmetric"
    );
    assert_eq!(real("2 2\n"), "line 2: size line needs three integers: rows, columns, entries");
    assert_eq!(real("2 2 2\n1 1 1\n"), "line 4: file ends after 1 of 2 entries");
    assert_eq!(real("2 2 1\n1 3 1\n"), "line 3: column 3 is outside 1..=2");
    assert_eq!(real("2 2 1\n0 1 1\n"), "line 3: row 0 is outside 1..=2");
    assert_eq!(real("2 2 1\n1 1 abc\n"), "line 3: \"abc\" is not a finite number");
    assert_eq!(real("2 2 1\n1 1 nan\n"), "line 3: \"nan\" is not a finite number");
    assert_eq!(real("2 2 1\n1 x 1\n"), "line 3: \"x\" is not an index");
    assert_eq!(real("2 2 1\n1 1\n"), "line 3: entry has 2 fields, expected 3");
    assert_eq!(real("2 2 1\n1 1 1\n% fine\n\n2 2 1\n"), "line 6: data after the last of 1 entries");
    let refused = |rest: &str| {
        let text = with_banner("coordinate real general", rest);
        parse_matrix_with(text.as_bytes(), Duplicates::Refuse).unwrap_err().to_string()
    };
    assert_eq!(refused("2 2 2\n1 1 1\n1 1 2\n"), "line 4: entry (1,1) was given before, on line 3");
    assert_eq!(refused("2 2 5\n"), "line 2: 2 x 2 with 5 entries is impossible or too large");
    assert_eq!(
        real("2 2 3\n1 2 1e308\n1 1 2\n1 2 1e308\n"),
        "line 5: the entries (1,2) from line 3 on add up to no finite number"
    );
    assert_eq!(real("2 2 5\n"), "line 3: file ends after 0 of 5 entries");
    let both = with_banner("coordinate real symmetric", "2 2 2\n2 1 1\n1 2 1\n");
    assert_eq!(error(&both), "line 4: entry (1,2) was given before, on line 3");
    let skew = with_banner("coordinate real skew-symmetric", "2 2 1\n2 2 1\n");
    assert_eq!(error(&skew), "line 3: diagonal entry 2 in a skew-symmetric matrix");
}

#[test]
fn duplicates_are_added() {
    let text = with_banner("coordinate real general", "2 2 6\n1 1 1\n2 1 4\n1 1 -1\n1 1 0.5\n2 2 3\n2 2 0\n");
    let a = parse_matrix(text.as_bytes()).unwrap();
    let entries: Vec<_> = a.entries().iter().map(|e| (e.row, e.col, e.value)).collect();
    assert_eq!(entries, [(0, 0, 0.5), (1, 0, 4.0), (1, 1, 3.0)]);
    let text = with_banner("coordinate real skew-symmetric", "2 2 2\n2 1 1\n2 1 2\n");
    let a = parse_matrix(text.as_bytes()).unwrap();
    assert_eq!((a.get(1, 0), a.get(0, 1)), (Some(3.0), Some(-3.0)));
}

#[test]
fn a_missing_file_is_named() {
    let error = read_matrix("no/such/file.mtx").unwrap_err();
    assert!(error.to_string().starts_with("no/such/file.mtx: "), "{error}");
}

#[test]
fn announced_sizes_cost_no_memory() {
    let most = u64::MAX;
    let text = with_banner("coordinate real general", &format!("4294967296 4294967296 {most}\n1 1 1\n"));
    assert_eq!(error(&text), format!("line 4: file ends after 1 of {most} entries"));
    let text = with_banner("coordinate real general", &format!("{most} 1 1\n1 1 1\n"));
    assert!(error(&text).contains("too large"));
    let text = with_banner("coordinate real general", "99000000 99000000 1\n1 1 1\n");
    assert!(error(&text).contains("too large"));
    let line = "%".repeat(1 << 20);
    assert_eq!(error(&line), "line 1: line is not text or longer than 64 KiB");
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse_matrix(&bytes[..]);
        let _ = parse_vector(&bytes[..]);
        let mut after = SYMMETRIC.as_bytes()[..60].to_vec();
        after.extend(&bytes);
        let _ = parse_matrix(&after[..]);
        let _ = parse_matrix(&[&[0x1f, 0x8b][..], &bytes].concat()[..]);
    }

    #[test]
    fn mutated_files_never_panic(
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = SYMMETRIC.as_bytes().to_vec();
        let at = place.index(bytes.len());
        bytes[at] = byte;
        if let Ok(a) = parse_matrix(&bytes[..]) && a.rows() < 1000 {
            prop_assert!(a.to_rows(0..a.rows()).is_ok());
        }
        let _ = parse_matrix(&bytes[..cut.index(bytes.len())]);
    }
}
