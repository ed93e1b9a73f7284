//! The files that a comparison can be written to.

use std::io::Write as _;
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

fn write(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text)
        .map_err(|error| format!("cannot write {}: {}", file.display(), limits::explain(&error)))
}
