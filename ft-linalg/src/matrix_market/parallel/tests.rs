use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;

use super::super::{parse_matrix, parse_matrix_with, parse_vector, write_rows, write_vector};
use super::*;

/// A file that is gone with its value.
struct Temporary(PathBuf);

impl Temporary {
    fn new(ending: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("ft-linalg-{}-{count}{ending}", std::process::id())))
    }

    fn with(bytes: &[u8]) -> Self {
        let file = Self::new("");
        std::fs::write(&file.0, bytes).unwrap();
        file
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn zipped(text: &[u8]) -> Vec<u8> {
    let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
    gz.write_all(text).unwrap();
    gz.finish().unwrap()
}

/// What all ranks say of a matrix: its entries as lines, or the error without the path.
fn read_by(size: usize, file: &Temporary, duplicates: Duplicates) -> String {
    let said = ft_sim::ranks(size, |comm| match matrix_in_pieces(&file.0, duplicates, 40, comm) {
        Ok((a, _)) => {
            let first = a.part().range().start as u64;
            let mut mine = format!("{} {}\n", a.n_rows(), a.n_cols());
            for (i, (cols, vals)) in a.rows().iter().enumerate() {
                let line =
                    |(col, val): (&u64, &f64)| format!("{} {col} {:x}\n", first + i as u64, val.to_bits());
                mine.extend(cols.iter().zip(vals).map(line));
            }
            Ok(mine)
        }
        Err(LinalgError::MatrixMarket(error)) => {
            assert_eq!(error.path.as_deref(), Some(&*file.0));
            Err(MatrixMarketError { path: None, ..error }.to_string())
        }
        Err(error) => panic!("{error}"),
    });
    if let Some(Err(error)) = said.iter().find(|said| said.is_err()) {
        assert!(said.iter().all(|said| said.as_ref() == Err(error)), "{said:?}");
        return error.clone();
    }
    let texts = said.into_iter().map(Result::unwrap).enumerate();
    texts
        .map(|(rank, text)| if rank == 0 { text } else { text.split_once('\n').unwrap().1.to_owned() })
        .collect()
}

/// The same of a single reader.
fn read_by_one(bytes: &[u8], duplicates: Duplicates) -> String {
    match parse_matrix_with(bytes, duplicates) {
        Ok(a) => {
            let mut text = format!("{} {}\n", a.rows(), a.cols());
            text.extend(a.entries().iter().map(|e| format!("{} {} {:x}\n", e.row, e.col, e.value.to_bits())));
            text
        }
        Err(error) => error.to_string(),
    }
}

/// Many ranks say what one says, of the plain file and of the compressed one.
fn compare(bytes: &[u8], sizes: &[usize]) {
    for bytes in [bytes.to_vec(), zipped(bytes)] {
        let file = Temporary::with(&bytes);
        for duplicates in [Duplicates::Sum, Duplicates::Refuse] {
            let one = read_by_one(&bytes, duplicates);
            for &size in sizes {
                assert_eq!(read_by(size, &file, duplicates), one, "{size} ranks, {duplicates:?}");
            }
        }
    }
}

const SIZES: [usize; 5] = [1, 2, 3, 4, 7];

fn banner(words: &str, rest: &str) -> Vec<u8> {
    format!("%%MatrixMarket matrix {words}\n{rest}").into_bytes()
}

#[test]
fn what_is_right_is_the_same_for_all() {
    let entries: String =
        (1..=120).map(|k| format!("{} {} {}\n", (k * 7) % 121 + 1, k, 1.0 / f64::from(k))).collect();
    compare(&banner("coordinate real general", &format!("% one\n\n130 121 120\n{entries}")), &SIZES);
    let lower: String = (1..90).map(|k| format!("{} {k} {k}\n\n% c\n", k + 1)).collect();
    compare(&banner("coordinate integer symmetric", &format!("90 90 89\n{lower}")), &SIZES);
    compare(&banner("coordinate integer skew-symmetric", &format!("90 90 89\n{lower}")), &SIZES);
    compare(&banner("coordinate pattern general", "3 2 2\n1 2\r\n3 1"), &SIZES);
    compare(&banner("coordinate real general", "0 0 0\n"), &SIZES);
    let values: String = (0..12).map(|k| format!("{k}\n")).collect();
    compare(&banner("array real general", &format!("4 3\n{values}")), &SIZES);
    compare(&banner("array integer symmetric", "4 4\n1\n2\n0\n4\n5\n6\n7\n8\n9\n10\n"), &SIZES);
    compare(&banner("array real skew-symmetric", "4 4\n1\n2\n3\n4\n5\n6\n"), &SIZES);
}

#[test]
fn arrays_have_their_places() {
    let dense = |words: &str, rest: &str| {
        parse_matrix(&banner(words, rest)[..]).unwrap().to_rows(0..3).unwrap().to_dense(3)
    };
    let general = dense("array real general", "3 3\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    assert_eq!(general.as_slice(), [1., 2., 3., 4., 5., 6., 7., 8., 9.]);
    let symmetric = dense("array real symmetric", "3 3\n1\n2\n3\n4\n5\n6\n");
    assert_eq!(symmetric.as_slice(), [1., 2., 3., 2., 4., 5., 3., 5., 6.]);
    let skew = dense("array real skew-symmetric", "3 3\n1\n2\n3\n");
    assert_eq!(skew.as_slice(), [0., 1., 2., -1., 0., 3., -2., -3., 0.]);
}

#[test]
fn what_is_wrong_first_is_the_error_of_all() {
    let real = |rest: &str| compare(&banner("coordinate real general", rest), &SIZES);
    let lines = |from: u32, to: u32| (from..to).map(|k| format!("{k} {k} 1\n")).collect::<String>();
    compare(b"", &SIZES);
    compare(&banner("coordinate complex hermitian", "2 2 0\n"), &[1, 3]);
    compare(&banner("coordinate real hermitian", "2 2 0\n"), &[1, 3]);
    compare(&banner("sparse real general", "2 2 0\n"), &[1, 3]);
    real("9 9 9 9\n");
    real(&format!("99 99 99\n{}", lines(1, 50)));
    real(&format!("99 99 40\n{}", lines(1, 50)));
    // Two faults: the first one counts, in whatever piece it is.
    real(&format!("99 99 60\n{}7 x 1\n{}100 1 1\n{}", lines(1, 20), lines(20, 40), lines(40, 60)));
    real(&format!("99 99 60\n{}7 7\n", lines(1, 60)));
    // One too many, and it is no entry.
    real(&format!("99 99 49\n{}7 x 1\n", lines(1, 50)));
    real(&format!("99 99 50\n{}7 x 1\n", lines(1, 50)));
    // The same place twice, far apart.
    real(&format!("99 99 60\n{}3 3 1\n2 2 1\n{}", lines(1, 30), lines(30, 59)));
    real("99000000 99000000 1\n1 1 1\n");
    compare(&banner("coordinate real skew-symmetric", "9 9 2\n2 1 1\n3 3 1\n"), &SIZES);
    compare(&banner("array real general", "2 2\n1\n2\n3\n"), &SIZES);
    compare(&banner("array real symmetric", "2 2\n1\n2\n3\n4\n"), &SIZES);
    let mut binary = banner("coordinate real general", &format!("99 99 60\n{}", lines(1, 40)));
    binary.extend([0xff, b'\n']);
    binary.extend(lines(40, 60).bytes());
    compare(&binary, &SIZES);
    let long = format!("99 99 60\n{}{}\n{}", lines(1, 40), "1".repeat(70_000), lines(40, 60));
    real(&long);
    let comment = format!("99 99 59\n{}%{}\n{}", lines(1, 40), "1".repeat(70_000), lines(40, 60));
    real(&comment);
}

/// The same place twice, far apart and on several ranks: the sum has the bits of a single reader.
#[test]
fn duplicates_are_added_in_the_order_of_the_file() {
    let value = |k: i32| 0.1 * f64::from(k) * 10f64.powi(k % 9);
    let entries: String = (0..90).map(|k| format!("{} {} {}\n", k % 7 + 1, k % 5 + 1, value(k))).collect();
    let text = banner("coordinate real general", &format!("7 5 90\n{entries}"));
    compare(&text, &SIZES);
    let file = Temporary::with(&text);
    for size in SIZES {
        ft_sim::ranks(size, |comm| {
            let (a, added) = read_rows_with(&file.0, Duplicates::Sum, comm).unwrap();
            assert_eq!((a.nnz(comm).unwrap(), added), (35, 55), "{size} ranks");
        });
    }
    // Of a symmetric file one triangle is counted, and both are mended.
    let text = banner("coordinate real symmetric", "3 3 4\n2 1 1\n3 3 1\n2 1 0.5\n3 3 2\n");
    compare(&text, &SIZES);
    let file = Temporary::with(&text);
    ft_sim::ranks(2, |comm| {
        let (a, added) = read_rows_with(&file.0, Duplicates::Sum, comm).unwrap();
        assert_eq!((a.nnz(comm).unwrap(), added), (3, 2));
        a.require_symmetric(comm).unwrap();
    });
    compare(&banner("coordinate real symmetric", "3 3 3\n3 1 1\n2 1 1\n1 2 1\n"), &SIZES);
    compare(&banner("coordinate real general", "3 3 3\n3 3 1e308\n1 1 1\n3 3 1e308\n"), &SIZES);
}

#[test]
fn a_broken_gzip_stream_and_a_missing_file_are_errors_of_all() {
    let text: String = (1..2000).map(|k| format!("{k} {k} {}\n", f64::from(k).sqrt())).collect();
    let gz = zipped(&banner("coordinate real general", &format!("2000 2000 1999\n{text}")));
    for cut in [gz.len() / 2, gz.len() - 4] {
        let file = Temporary::with(&gz[..cut]);
        let one = read_by_one(&gz[..cut], Duplicates::Sum);
        for size in SIZES {
            assert_eq!(read_by(size, &file, Duplicates::Sum), one);
        }
    }
    ft_sim::ranks(3, |comm| {
        let error = read_rows("no/such/file.mtx", comm).unwrap_err().to_string();
        assert!(error.starts_with("no/such/file.mtx: "), "{error}");
        let error = read_rows("/", comm).unwrap_err().to_string();
        assert_eq!(error, "/: it is a directory, and a regular file is expected");
    });
}

#[test]
fn zeros_after_gzip_data_are_skipped_by_all() {
    let text: String = (1..200).map(|k| format!("{k} {k} 2\n")).collect();
    let gz = zipped(&banner("coordinate real general", &format!("200 200 199\n{text}")));
    let padded = [&gz[..], &[0; 512]].concat();
    let (file, one) = (Temporary::with(&padded), read_by_one(&gz, Duplicates::Sum));
    for size in SIZES {
        assert_eq!(read_by(size, &file, Duplicates::Sum), one);
    }
    let foreign = Temporary::with(&[&padded[..], b"more"].concat());
    ft_sim::ranks(3, |comm| {
        let error = read_rows(&foreign.0, comm).unwrap_err().to_string();
        assert!(error.ends_with("bytes that are not gzip follow the end of the gzip data"), "{error}");
    });
}

/// No rank looks for the end of a line of terabytes.
#[test]
fn a_sparse_file_is_refused_by_all() {
    let file = Temporary::with(&banner("coordinate real general", "3 3 2\n1 1 2\n2 2 2\n"));
    std::fs::File::options().write(true).open(&file.0).unwrap().set_len(8 << 40).unwrap();
    for size in SIZES {
        ft_sim::ranks(size, |comm| {
            let error = read_rows(&file.0, comm).unwrap_err().to_string();
            assert!(error.ends_with("line 5: line is not text or longer than 64 KiB"), "{error}");
        });
    }
}

#[test]
fn ranks_that_see_other_files_say_so() {
    let files = [1, 2].map(|n| Temporary::with(&banner("array real general", &format!("{n} 1\n"))));
    let said = ft_sim::ranks(2, |comm| read_rows(&files[comm.rank()].0, comm).unwrap_err().to_string());
    assert!(said[1].ends_with("another file than that of rank 0"), "{}", said[1]);
    assert_eq!(said[0], "rank 1 refused its part of the input");
}

#[test]
fn what_is_written_is_read_as_the_same() {
    for ending in [".mtx", ".mtx.gz"] {
        for size in [1, 3] {
            let (file, vector) = (Temporary::new(ending), Temporary::new(ending));
            ft_sim::ranks(size, |comm| {
                let a = DistRows::from_fn(150, 70, comm, |row, entries| {
                    let value = |k: usize| (row as f64 - 70.0).sin() * 10f64.powi(k as i32 * 40 - 150);
                    entries.extend((0..row % 7).map(|k| ((row * 5 + k) % 70, value(k))));
                })
                .unwrap();
                write_rows(&file.0, &a, comm).unwrap();
                comm.barrier().unwrap();
                assert_eq!(read_rows(&file.0, comm).unwrap(), a);
                let part = Partition::weighed(150, vec![5, 1, 1, 1, 1], size, comm.rank()).unwrap();
                let x = DistVector::from_fn(part.clone(), |row| -1.0 / row.0 as f64);
                let refused = write_vector(std::env::temp_dir(), &x, comm);
                assert!(refused.is_err());
                let x = DistVector::from_fn(part.clone(), |row| -1.0 / (row.0 as f64 + 0.1));
                write_vector(&vector.0, &x, comm).unwrap();
                comm.barrier().unwrap();
                assert_eq!(read_dist_vector(&part, &vector.0, comm).unwrap(), x);
                let other = Partition::of(comm, 149);
                let refused = read_dist_vector(&other, &vector.0, comm);
                assert!(matches!(refused, Err(LinalgError::Length { expected: 149, found: 150, .. })));
            });
        }
    }
    let bytes = banner("array real general", "2 2\n1\n2\n3\n4\n");
    let file = Temporary::with(&bytes);
    ft_sim::ranks(2, |comm| {
        let error = read_dist_vector(&Partition::of(comm, 2), &file.0, comm).unwrap_err().to_string();
        assert!(error.ends_with("line 2: expected one column, found 2"), "{error}");
        assert!(parse_vector(&bytes[..]).is_err());
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn many_readers_say_what_one_says(
        entries in proptest::collection::vec((1u32..60, 1u32..60, -9i32..9), 0..60),
        missing in -1i64..3,
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        change in any::<bool>(),
    ) {
        let lines: String = entries.iter().map(|(row, col, value)| format!("{row} {col} {value}\n")).collect();
        let count = (entries.len() as i64 + missing).max(0);
        let mut bytes = banner("coordinate real general", &format!("60 60 {count}\n{lines}"));
        if change {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        compare(&bytes, &[2, 3, 7]);
    }
}
