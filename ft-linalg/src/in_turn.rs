//! Files that all ranks write together: rank 0 has the file, the others send it their bytes, rank after rank, in pieces.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::{Compression, write::GzEncoder};
use ft_comm::{Communicator, Tag};

use crate::LinalgError;

/// Tag of the messages here, high enough to stay clear of a program's own.
const TAG: Tag = 0x4c41_0003;
/// An error that has no number of the system.
const OTHER: i32 = -1;
/// Bytes at which a piece is sent.
pub(crate) const PIECE_BYTES: usize = 1 << 20;

/// Writes `head`, then what `piece` of each rank gives until it gives nothing; gzip if the name ends in `.gz`. Collective.
///
/// # Errors
/// [`LinalgError::Write`] on every rank when rank 0 cannot write; [`LinalgError::Comm`].
pub(crate) fn write(
    path: &Path,
    head: &[u8],
    mut piece: impl FnMut() -> Vec<u8>,
    comm: &Communicator,
) -> Result<(), LinalgError> {
    let mut file = if comm.rank() == 0 { Some(create(path)) } else { None };
    tell(file.as_ref().map_or(Ok(()), |file| file.as_ref().map(|_| ())), path, comm)?;
    let Some(Ok(file)) = &mut file else {
        loop {
            let bytes = piece();
            comm.send(&[bytes.len() as u64], 0, TAG)?;
            if bytes.is_empty() {
                return tell(Ok(()), path, comm);
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
    tell(written.as_ref().copied(), path, comm)
}

/// Rank 0 tells the others what became of the file. Collective.
fn tell(mine: Result<(), &io::Error>, path: &Path, comm: &Communicator) -> Result<(), LinalgError> {
    let code = match mine {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or(OTHER),
    };
    let mut code = [code];
    comm.bcast(&mut code, 0)?;
    let error = match code[0] {
        0 => return Ok(()),
        OTHER => io::Error::other("it could not be written"),
        code => io::Error::from_raw_os_error(code),
    };
    Err(LinalgError::Write { path: path.to_owned(), error })
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

    fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Gzip(file) => {
                file.try_finish()?;
                file.get_mut().flush()
            }
        }
    }
}
