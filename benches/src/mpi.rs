//! A library of MPI, and the programs that are compiled with it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ft_tools::harness::{Children, HarnessError};
use ft_tools::recovery::FreshFolder;

/// Longest time to compile one of them.
const COMPILE_LIMIT: Duration = Duration::from_secs(120);
/// What Open MPI wants to hear when root starts it.
pub(crate) const AS_ROOT: [(&str, &str); 2] =
    [("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];

/// A library and what was compiled with it; the folder goes with it.
pub(crate) struct Mpi {
    bin: PathBuf,
    programs: FreshFolder,
}

impl Mpi {
    /// Compiles programs, given by name and text, with what is installed in a folder; `get` is its name for pip.
    ///
    /// # Errors
    /// It is not there, or its compiler has failed.
    pub(crate) fn compile(
        prefix: &Path,
        get: &str,
        sources: &[(&str, &str)],
        children: &Children<'_>,
    ) -> Result<Self, HarnessError> {
        // Programs are started from anywhere.
        let bin = std::path::absolute(prefix).unwrap_or_else(|_| prefix.to_owned()).join("bin");
        let remedy = || {
            format!(
                "`python3 -m venv FOLDER && FOLDER/bin/pip install {get}` makes a FOLDER to name here; \
                 of a system's package it is /usr"
            )
        };
        let compiler = there(bin.join("mpicc"), remedy)?;
        there(bin.join("mpiexec"), remedy)?;
        let programs = FreshFolder::new().map_err(|error| HarnessError::Folder(error.to_string()))?;
        for (name, text) in sources {
            let source = programs.path().join(name).with_extension("c");
            std::fs::write(&source, text).map_err(|error| {
                HarnessError::Folder(format!("cannot write {}: {error}", source.display()))
            })?;
            let mut command = Command::new(&compiler);
            command.arg("-O3").arg("-o").arg(programs.path().join(name)).arg(&source);
            children.run(command, COMPILE_LIMIT)?;
        }
        Ok(Self { bin, programs })
    }

    /// One that was compiled.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.programs.path().join(name)
    }

    /// One of the library's own.
    pub(crate) fn bin(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    #[cfg(test)]
    pub(crate) fn without_programs(bin: &str) -> Self {
        Self { bin: bin.into(), programs: FreshFolder::new().unwrap() }
    }
}

/// The file, or what to do to get it.
pub(crate) fn there(path: PathBuf, remedy: impl FnOnce() -> String) -> Result<PathBuf, HarnessError> {
    match path.is_file() {
        true => Ok(path),
        false => Err(HarnessError::Missing { what: path.display().to_string(), remedy: remedy() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said() {
        let children = Children { adopts: false, is_interrupted: &|| false };
        let error =
            Mpi::compile(Path::new("/no/such/prefix"), "mpich", &[], &children).err().unwrap().to_string();
        assert!(
            error.starts_with("/no/such/prefix/bin/mpicc is missing; `python3 -m venv FOLDER"),
            "{error}"
        );
    }
}
