//! Matrices and vectors written by all ranks together. Values are written such that they are read as the same bits.

use std::{fmt::Write as _, path::Path};

use ft_comm::Communicator;

use crate::in_turn::{self, PIECE_BYTES};
use crate::{DistRows, DistVector, LinalgError, error::agree};

/// Writes a matrix as `coordinate real general`, by rows; gzip if the name ends in `.gz`. Collective. Beside the matrix a
/// rank needs memory for one piece of text, a megabyte.
///
/// # Errors
/// [`LinalgError::Write`] on every rank when rank 0 cannot write; [`LinalgError::Comm`].
pub fn write_rows(path: impl AsRef<Path>, a: &DistRows, comm: &Communicator) -> Result<(), LinalgError> {
    agree(a.part().require(comm), comm)?;
    let (rows, cols, nnz) = (a.n_rows(), a.n_cols(), a.nnz(comm)?);
    let head = format!("%%MatrixMarket matrix coordinate real general\n{rows} {cols} {nnz}\n");
    let first = a.part().range().start + 1;
    let lines = a.rows().iter().enumerate().flat_map(|(i, (cols, vals))| {
        cols.iter().zip(vals).map(move |(col, value)| (first + i, col + 1, *value))
    });
    write(
        path.as_ref(),
        &head,
        lines,
        |text, (row, col, value)| writeln!(text, "{row} {col} {value:e}"),
        comm,
    )
}

/// Writes a vector as an `array real general` of one column. Collective, as [`write_rows`].
///
/// # Errors
/// As there.
pub fn write_vector(path: impl AsRef<Path>, x: &DistVector, comm: &Communicator) -> Result<(), LinalgError> {
    agree(x.part().require(comm), comm)?;
    let head = format!("%%MatrixMarket matrix array real general\n{} 1\n", x.part().n());
    write(path.as_ref(), &head, x.local().iter(), |text, value| writeln!(text, "{value:e}"), comm)
}

/// Each rank writes its `lines` by `line`.
fn write<T>(
    path: &Path,
    head: &str,
    lines: impl Iterator<Item = T>,
    line: impl Fn(&mut String, T) -> std::fmt::Result,
    comm: &Communicator,
) -> Result<(), LinalgError> {
    let mut lines = lines.peekable();
    let piece = || {
        let mut text = String::new();
        while text.len() < PIECE_BYTES
            && let Some(next) = lines.next()
        {
            line(&mut text, next).expect("a string takes all that is written");
        }
        text.into_bytes()
    };
    in_turn::write(path, head.as_bytes(), piece, comm)
}
