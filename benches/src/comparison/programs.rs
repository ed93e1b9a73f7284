//! Programs of all sides: where they are, and peers that are compiled on the way.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ft_tools::harness::{Children, HarnessError};
use ft_tools::recovery::FreshFolder;

/// Longest time to compile one.
const LIMIT: Duration = Duration::from_secs(120);

/// The folder of this program, where the others of this project are.
///
/// # Errors
/// The operating system does not say.
pub(crate) fn folder() -> Result<PathBuf, HarnessError> {
    let program = std::env::current_exe().map_err(|error| HarnessError::Folder(error.to_string()))?;
    Ok(program.parent().unwrap_or(Path::new(".")).to_owned())
}

/// A program of this project, by its place below [`folder`]; `from` are the words of `cargo build` that make it.
///
/// # Errors
/// It is not there.
pub(crate) fn built(folder: &Path, name: &str, from: &str) -> Result<PathBuf, HarnessError> {
    there(folder.join(name), || format!("`cargo build --release {from}` makes it"))
}

/// The file, or what to do to get it.
pub(crate) fn there(path: PathBuf, remedy: impl FnOnce() -> String) -> Result<PathBuf, HarnessError> {
    match path.is_file() {
        true => Ok(path),
        false => Err(missing(&path.display().to_string(), remedy())),
    }
}

pub(crate) fn missing(what: &str, remedy: String) -> HarnessError {
    HarnessError::Missing { what: what.to_owned(), remedy }
}

/// Programs that were compiled; they go with this.
pub(crate) struct Compiled(FreshFolder);

impl Compiled {
    /// Compiles programs of C, given by name and text, each with `words` behind its source. What has a name that ends in `.h` is there to
    /// be included.
    ///
    /// # Errors
    /// The folder for them cannot be made, or the compiler fails.
    pub(crate) fn new(
        compiler: &Path,
        sources: &[(&str, &str)],
        words: &[&str],
        children: &Children<'_>,
    ) -> Result<Self, HarnessError> {
        let folder = FreshFolder::new().map_err(|error| HarnessError::Folder(error.to_string()))?;
        for (name, text) in sources {
            let is_header = name.ends_with(".h");
            let source = folder.path().join(if is_header { (*name).to_owned() } else { format!("{name}.c") });
            let unwritten =
                |error| HarnessError::Folder(format!("cannot write {}: {error}", source.display()));
            std::fs::write(&source, text).map_err(unwritten)?;
            if is_header {
                continue;
            }
            let mut command = Command::new(compiler);
            command.args(["-O3", "-o"]).arg(folder.path().join(name)).arg(&source).args(words);
            children.run(command, LIMIT)?;
        }
        Ok(Self(folder))
    }

    /// Where a program is, or another file of this name beside it.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}
