//! Files that all ranks write together: rank 0 has the file, the others send it their bytes, rank after rank, in pieces.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::{Compression, write::GzEncoder};
use ft_comm::{Communicator, Tag};

use crate::{LinalgError, error::agree};

/// Tag of the messages here, high enough to stay clear of a program's own.
const TAG: Tag = 0x4c41_0003;
/// Bytes at which a piece is sent.
pub(crate) const PIECE_BYTES: usize = 1 << 20;

/// Writes `head`, then what `piece` of each rank gives until it gives nothing; gzip if the name ends in `.gz`. Collective.
///
/// # Errors
/// On every rank when rank 0 cannot write: [`LinalgError::Write`] there, [`LinalgError::OtherRank`] on the others.
/// [`LinalgError::Comm`].
pub(crate) fn write(
    path: &Path,
    head: &[u8],
    mut piece: impl FnMut() -> Vec<u8>,
    comm: &Communicator,
) -> Result<(), LinalgError> {
    let failed = |error: io::Error| LinalgError::Write { path: path.to_owned(), error };
    let file = if comm.rank() == 0 { create(path).map(Some).map_err(failed) } else { Ok(None) };
    let Some(mut file) = agree(file, comm)? else {
        loop {
            let bytes = piece();
            comm.send(&[bytes.len() as u64], 0, TAG)?;
            if bytes.is_empty() {
                return agree(Ok(()), comm);
            }
            comm.send(&bytes, 0, TAG)?;
        }
    };
    let mut written = file.write_all(head);
    loop {
        let bytes = piece();
        if bytes.is_empty() {
            break;
        }
        written = written.and_then(|()| file.write_all(&bytes));
    }
    // Whatever becomes of the file, the others send all they have.
    for rank in 1..comm.size() {
        loop {
            let mut len = [0u64];
            comm.recv(&mut len, rank, TAG)?;
            if len == [0] {
                break;
            }
            let mut bytes = vec![0u8; len[0] as usize];
            comm.recv(&mut bytes, rank, TAG)?;
            written = written.and_then(|()| file.write_all(&bytes));
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
