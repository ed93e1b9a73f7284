//! A checkpoint in a file, so that either the old one or the new one is whole whatever happens.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Bytes of one write.
const PIECE: usize = 4 << 20;

/// The file of one rank.
#[derive(Debug)]
pub(super) struct OwnFile {
    folder: PathBuf,
    file: PathBuf,
}

impl OwnFile {
    pub(super) fn new(folder: &Path, rank: usize) -> Self {
        Self { folder: folder.to_owned(), file: folder.join(format!("rank-{rank}")) }
    }

    /// Writes it under another name, has it on the disk, renames it, and has that on the disk.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let new = self.file.with_extension("new");
        let mut file = File::create(&new)?;
        bytes.chunks(PIECE).try_for_each(|piece| file.write_all(piece))?;
        file.sync_all()?;
        fs::rename(&new, &self.file)?;
        File::open(&self.folder)?.sync_all()
    }

    pub(super) fn holds(&self, bytes: &[u8]) -> io::Result<bool> {
        Ok(fs::read(&self.file)? == bytes)
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        // Whoever named the folder can remove what is left.
        let _ = fs::remove_file(&self.file);
    }
}
