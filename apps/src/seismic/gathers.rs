//! Gathers as files: each is there whole or not at all.
//!
//! A gather is written under a name of its own writer and then renamed, so that no reader ever sees half of one. A shot
//! that is run again after a failure gives the same bytes; renaming it again changes nothing. What a rank that died in
//! the middle has left is removed at the end, and before the next run.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use ft_comm::limits;
use ft_seismic::gather::{Gather, WriteError};
use ft_seismic::segy::write_segy;
use ft_seismic::su::write_su;

/// How the names of unfinished files begin and end.
const UNFINISHED: (&str, &str) = (".shot_", ".part");

/// A gather could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {cause}", path.display())]
pub(super) struct GatherError {
    path: PathBuf,
    cause: String,
}

impl GatherError {
    fn new(path: &Path, cause: impl Error + 'static) -> Self {
        Self { path: path.to_owned(), cause: limits::explain(&cause) }
    }
}

/// The file of a shot's gather; `extension` is `sgy`, `su` or `png`.
pub(super) fn path(out: &Path, number: u32, extension: &str) -> PathBuf {
    out.join(format!("shot_{number:04}.{extension}"))
}

/// Makes the folder for gathers, tries it, and removes what an earlier run has left unfinished.
pub(super) fn prepare(out: &Path) -> Result<(), String> {
    let wrong = |error: io::Error| format!("cannot write to {}: {error}", out.display());
    if !out.is_dir() {
        fs::create_dir(out).map_err(wrong)?;
    }
    let trial = out.join(format!("{}try{}", UNFINISHED.0, UNFINISHED.1));
    File::create(trial).map_err(wrong)?;
    clean(out).map_err(|error| error.to_string())
}

/// Removes what ranks that died while writing have left.
pub(super) fn clean(out: &Path) -> Result<(), GatherError> {
    let wrong = |error: io::Error| GatherError::new(out, error);
    for entry in fs::read_dir(out).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(UNFINISHED.0) && name.ends_with(UNFINISHED.1) {
            fs::remove_file(entry.path()).map_err(wrong)?;
        }
    }
    Ok(())
}

/// Writes the gather as SEG-Y, or Seismic Unix. `writer` is a name that no other process has; `halfway` is called when
/// half of the file is written.
pub(super) fn write<E: From<GatherError>>(
    gather: &Gather<'_>,
    path: &Path,
    su: bool,
    writer: &str,
    halfway: impl FnOnce() -> Result<(), E>,
) -> Result<(), E> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = path.with_file_name(format!(".{name}.{writer}{}", UNFINISHED.1));
    let written = write_to(gather, su, &unfinished, halfway)
        .and_then(|()| fs::rename(&unfinished, path).map_err(|error| GatherError::new(path, error).into()));
    if written.is_err() {
        // Nothing half done is left behind; that it could not be written is said already.
        let _ = fs::remove_file(&unfinished);
    }
    written
}

fn write_to<E: From<GatherError>>(
    gather: &Gather<'_>,
    su: bool,
    path: &Path,
    halfway: impl FnOnce() -> Result<(), E>,
) -> Result<(), E> {
    let wrong = |error: WriteError| GatherError::new(path, error);
    let mut bytes = Vec::new();
    let encoded = if su { write_su(gather, &mut bytes) } else { write_segy(gather, &mut bytes) };
    encoded.map_err(wrong)?;
    let wrong = |error: io::Error| GatherError::new(path, error);
    let mut file = BufWriter::new(File::create(path).map_err(wrong)?);
    let (first, second) = bytes.split_at(bytes.len() / 2);
    file.write_all(first).and_then(|()| file.flush()).map_err(wrong)?;
    halfway()?;
    file.write_all(second).and_then(|()| file.flush()).map_err(wrong)?;
    Ok(())
}

/// BLAKE3 hash of a gather's file.
pub(super) fn hash(path: &Path) -> Result<[u8; 32], GatherError> {
    let mut hasher = blake3::Hasher::new();
    let hashed =
        ft_files::open(path).map_err(io::Error::from).and_then(|file| hasher.update_reader(file).map(|_| ()));
    hashed.map_err(|error| GatherError::new(path, error))?;
    Ok(*hasher.finalize().as_bytes())
}
