//! Files that a measurement writes: looked at before it, written after it.

use std::path::{Path, PathBuf};

use ft_comm::limits;
use ft_tools::harness::require_writable;

pub(super) fn write(file: &Path, text: String) -> Result<(), String> {
    std::fs::write(file, text)
        .map_err(|error| format!("cannot write {}: {}", file.display(), limits::explain(&error)))
}

/// Finds out before minutes are spent that the files of some options cannot be written.
pub(super) fn require_all_writable(files: &[(&str, &Option<PathBuf>)]) -> Result<(), String> {
    for (option, file) in files {
        let Some(file) = file else { continue };
        require_writable(file)
            .map_err(|error| format!("{option}: cannot write {}: {error}", file.display()))?;
    }
    Ok(())
}
