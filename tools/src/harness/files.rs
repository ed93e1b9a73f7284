//! The files that measurements can be written to.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use ft_comm::limits;

/// Options of a command for them.
#[derive(Debug, clap::Args)]
pub struct Files {
    /// Write all measurements, one a row
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

impl Files {
    /// Finds out before the work that a file cannot be written.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn require_writable(&self) -> Result<(), String> {
        [("--csv", &self.csv), ("--markdown", &self.markdown)].into_iter().try_for_each(|(option, file)| {
            file.iter().try_for_each(|file| {
                require_writable(file)
                    .map_err(|error| format!("{option}: cannot write {}: {error}", file.display()))
            })
        })
    }

    /// Prints `text` and writes the files that were asked for. Should one not be written, the text is there.
    ///
    /// # Errors
    /// A file cannot be written, or nobody reads the text.
    pub fn give(&self, text: &str, csv: &str, markdown: &str) -> Result<(), String> {
        let printed = std::io::stdout().write_all(text.as_bytes());
        self.csv.iter().try_for_each(|file| write(file, csv))?;
        self.markdown.iter().try_for_each(|file| write(file, markdown))?;
        printed.map_err(|error| format!("standard output: {error}"))
    }
}

/// Finds out whether a file can be written, for programs that want to know before hours of work.
/// What is there stays as it was. Of pipes and devices nothing is found out: opening them may wait,
/// or have an effect.
///
/// # Errors
/// What the operating system says.
pub fn require_writable(file: &Path) -> std::io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).open(file) {
        Ok(_) => std::fs::remove_file(file),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => match file.metadata() {
            Ok(about) if about.is_dir() => Err(ErrorKind::IsADirectory.into()),
            Ok(about) if about.is_file() => OpenOptions::new().write(true).open(file).map(|_| ()),
            _ => Ok(()),
        },
        Err(error) => Err(error),
    }
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text)
        .map_err(|error| format!("cannot write {}: {}", file.display(), limits::explain(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_tried_and_left_as_it_was() {
        let folder = std::env::temp_dir().join(format!("ft-tools-files-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("a.csv");
        require_writable(&file).unwrap();
        assert!(!file.exists());
        std::fs::write(&file, "old").unwrap();
        require_writable(&file).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"old");
        for (file, kind) in [
            (&*folder, ErrorKind::IsADirectory),
            (&folder.join("missing/a.csv"), ErrorKind::NotFound),
            (&file.join("a.csv"), ErrorKind::NotADirectory),
        ] {
            assert_eq!(require_writable(file).unwrap_err().kind(), kind);
        }
        require_writable(Path::new("/dev/full")).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
