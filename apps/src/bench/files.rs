//! Files that a measurement writes: looked at before it, written after it.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use ft_comm::limits;

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

/// Opens a file for writing and leaves it as it was.
fn require_writable(file: &Path) -> std::io::Result<()> {
    let is_new = !file.exists();
    OpenOptions::new().append(true).create(true).open(file)?;
    if is_new { std::fs::remove_file(file) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_tried_and_left_as_it_was() {
        let folder = std::env::temp_dir().join(format!("ftrun-bench-test-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("a.csv");
        require_writable(&file).unwrap();
        assert!(!file.exists());
        std::fs::write(&file, "old").unwrap();
        require_writable(&file).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"old");
        assert!(require_writable(&folder).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
