//! What the tests of this folder share.

#[allow(dead_code, reason = "not every test file solves")]
pub(crate) mod problems;

use std::path::PathBuf;

use ft_comm::Communicator;
use ft_linalg::{CsrRows, DistMatrix, Partition, matrix_market::Coordinates};

/// Runs `rank_main` on `size` simulated ranks and returns what they return, by rank.
///
/// The one place where these tests depend on how ranks are started.
pub(crate) fn on_ranks<R: Send>(size: usize, rank_main: impl Fn(&Communicator) -> R + Sync) -> Vec<R> {
    ft_sim::ranks(size, rank_main)
}

/// The file of a matrix of the data folder (`FT_DATA`, else `shared/data` beside the repository); `None`, with a word why,
/// where there is no such file.
#[allow(dead_code, reason = "not every test file reads data")]
pub(crate) fn data_file(name: &str) -> Option<PathBuf> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let folder = std::env::var_os("FT_DATA").map_or_else(beside, PathBuf::from);
    let path = folder.join("matrices").join(format!("{name}.mtx.gz"));
    if !path.exists() {
        eprintln!("skipped: {} is not there, set FT_DATA to the data folder", path.display());
        return None;
    }
    Some(path)
}

/// The matrix in [`data_file`].
#[allow(dead_code, reason = "not every test file reads data")]
pub(crate) fn data_matrix(name: &str) -> Option<Coordinates> {
    let path = data_file(name)?;
    Some(ft_linalg::matrix_market::read_matrix(&path).expect("a data file that can be read"))
}

/// A matrix given by its rows, for systems that can be checked by hand.
#[allow(dead_code, reason = "not every test file has small systems")]
pub(crate) fn dense<const N: usize>(comm: &Communicator, a: [[f64; N]; N]) -> DistMatrix {
    let part = Partition::of(comm, N);
    let (mut row_ptr, mut cols, mut vals) = (vec![0], vec![], vec![]);
    for i in part.range() {
        for (col, &val) in a[i].iter().enumerate().filter(|(_, val)| **val != 0.0) {
            cols.push(col as u64);
            vals.push(val);
        }
        row_ptr.push(cols.len());
    }
    DistMatrix::new(part, CsrRows::new(row_ptr, cols, vals, N).unwrap(), comm).unwrap()
}
