//! Matrices and vectors written by all ranks together: rank 0 has the file, the others send it their lines, rank after
//! rank, in pieces. Values are written such that they are read as the same bits.

use std::{
    fmt::Write as _,
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

use flate2::{Compression, write::GzEncoder};
use ft_comm::{Communicator, Tag};

use super::Kind;
use crate::{DistRows, DistVector, LinalgError, MatrixMarketError, error::agree};

/// Tag of the messages here, high enough to stay clear of a program's own.
const TAG_LINES: Tag = 0x4c41_0003;
/// Bytes of text at which a piece is sent.
const PIECE_BYTES: usize = 1 << 20;

/// Writes a matrix as `coordinate real general`, by rows; gzip if the name ends in `.gz`. Collective. Beside the matrix a
/// rank needs memory for one piece of text, a megabyte.
///
/// # Errors
/// On every rank when rank 0 cannot write: [`LinalgError::MatrixMarket`] there, [`LinalgError::OtherRank`] on the others.
/// [`LinalgError::Comm`].
pub fn write_rows(path: impl AsRef<Path>, a: &DistRows, comm: &Communicator) -> Result<(), LinalgError> {
    agree(a.part().require(comm), comm)?;
    let (rows, cols, nnz) = (a.n_rows(), a.n_cols(), a.nnz(comm)?);
    let head = format!("%%MatrixMarket matrix coordinate real general\n{rows} {cols} {nnz}\n");
    let first = a.part().range().start + 1;
    let lines = a.rows().iter().enumerate().flat_map(|(i, (cols, vals))| {
        cols.iter().zip(vals).map(move |(col, value)| (first + i, col + 1, *value))
    });
    write(path.as_ref(), head, lines, |text, (row, col, value)| writeln!(text, "{row} {col} {value:e}"), comm)
}

/// Writes a vector as an `array real general` of one column. Collective, as [`write_rows`].
///
/// # Errors
/// As there.
pub fn write_vector(path: impl AsRef<Path>, x: &DistVector, comm: &Communicator) -> Result<(), LinalgError> {
    agree(x.part().require(comm), comm)?;
    let head = format!("%%MatrixMarket matrix array real general\n{} 1\n", x.part().n());
    write(path.as_ref(), head, x.local().iter(), |text, value| writeln!(text, "{value:e}"), comm)
}

/// Each rank writes its `lines` by `line`.
fn write<T>(
    path: &Path,
    head: String,
    lines: impl Iterator<Item = T>,
    line: impl Fn(&mut String, T) -> std::fmt::Result,
    comm: &Communicator,
) -> Result<(), LinalgError> {
    let failed = |error: io::Error| {
        LinalgError::from(MatrixMarketError { path: Some(path.to_owned()), line: 0, kind: Kind::Io(error) })
    };
    let mut lines = lines.peekable();
    // A piece of text; empty at the end.
    let mut piece = || {
        let mut text = String::new();
        while text.len() < PIECE_BYTES
            && let Some(next) = lines.next()
        {
            line(&mut text, next).expect("a string takes all");
        }
        text.into_bytes()
    };
    let file = if comm.rank() == 0 { create(path).map(Some).map_err(failed) } else { Ok(None) };
    let Some(mut file) = agree(file, comm)? else {
        loop {
            let text = piece();
            comm.send(&[text.len() as u64], 0, TAG_LINES)?;
            if text.is_empty() {
                return agree(Ok(()), comm);
            }
            comm.send(&text, 0, TAG_LINES)?;
        }
    };
    let mut written = file.write_all(head.as_bytes());
    loop {
        let text = piece();
        if text.is_empty() {
            break;
        }
        written = written.and_then(|()| file.write_all(&text));
    }
    // Whatever becomes of the file, the others send all they have.
    for rank in 1..comm.size() {
        loop {
            let mut bytes = [0u64];
            comm.recv(&mut bytes, rank, TAG_LINES)?;
            if bytes == [0] {
                break;
            }
            let mut text = vec![0u8; bytes[0] as usize];
            comm.recv(&mut text, rank, TAG_LINES)?;
            written = written.and_then(|()| file.write_all(&text));
        }
    }
    let written = written.and_then(|()| file.finish());
    agree(written.map_err(failed), comm)
}

/// A file, compressed or not.
enum Sink {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
}

fn create(path: &Path) -> io::Result<Sink> {
    let file = BufWriter::new(File::create(path)?);
    let gzip = path.extension().is_some_and(|extension| extension == "gz");
    Ok(if gzip { Sink::Gzip(GzEncoder::new(file, Compression::default())) } else { Sink::Plain(file) })
}

impl Sink {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.write_all(bytes),
            Self::Gzip(file) => file.write_all(bytes),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Plain(mut file) => file.flush(),
            Self::Gzip(file) => file.finish()?.flush(),
        }
    }
}
