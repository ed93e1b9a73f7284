//! Where a library of MPI is installed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::AS_ROOT;
use crate::comparison::{missing, there};
use ft_tools::harness::{Children, HarnessError};

/// Longest time that a launcher takes to say what it is.
const LIMIT: Duration = Duration::from_secs(10);

/// A library that programs here are compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Library {
    Mpich,
    OpenMpi,
}

impl Library {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mpich => "MPICH",
            Self::OpenMpi => "Open MPI",
        }
    }

    /// What a system calls its programs where it has several libraries.
    fn suffix(self) -> &'static str {
        match self {
            Self::Mpich => "mpich",
            Self::OpenMpi => "openmpi",
        }
    }

    /// What its launcher says of itself.
    fn says(self) -> &'static str {
        match self {
            Self::Mpich => "HYDRA",
            Self::OpenMpi => "Open MPI",
        }
    }
}

/// The programs of a library that others are compiled and started with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Installed {
    pub(super) compiler: PathBuf,
    pub(super) launcher: PathBuf,
}

impl Installed {
    /// In the `bin` of a folder.
    ///
    /// # Errors
    /// They are not there; the text has the `remedy`.
    pub(super) fn at(prefix: &Path, remedy: impl Fn() -> String) -> Result<Self, HarnessError> {
        // Programs are started from anywhere.
        let bin = std::path::absolute(prefix).unwrap_or_else(|_| prefix.to_owned()).join("bin");
        let compiler = there(bin.join("mpicc"), &remedy)?;
        Ok(Self { compiler, launcher: there(bin.join("mpiexec"), &remedy)? })
    }

    /// The first one in the folders of `PATH`.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn found(library: Library, children: &Children<'_>) -> Result<Self, HarnessError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = candidates(&path, library);
        all.into_iter().find(|one| one.said(children).contains(library.says())).ok_or_else(|| {
            let (name, suffix) = (library.name(), library.suffix());
            let what = format!("{name} (mpicc.{suffix} and mpiexec.{suffix}, or mpicc and mpiexec, in PATH)");
            missing(&what, format!("name its folder by --{suffix}, or see benches/README.md"))
        })
    }

    /// What its launcher says of itself; nothing if that fails.
    fn said(&self, children: &Children<'_>) -> String {
        let mut command = Command::new(&self.launcher);
        command.arg("--version").envs(AS_ROOT);
        children.run(command, LIMIT).map(|ended| ended.output).unwrap_or_default()
    }

    /// Its version, if it says one.
    pub(super) fn version(&self, children: &Children<'_>) -> String {
        version(&self.said(children)).unwrap_or("of an unknown version").to_owned()
    }
}

/// Wherever a compiler and a launcher lie side by side under names that the library has.
fn candidates(path: &OsStr, library: Library) -> Vec<Installed> {
    let suffix = library.suffix();
    let names =
        [[format!("mpicc.{suffix}"), format!("mpiexec.{suffix}")], ["mpicc", "mpiexec"].map(str::to_owned)];
    let in_folder = |folder: &PathBuf| {
        names.clone().map(|[compiler, launcher]| Installed {
            compiler: folder.join(compiler),
            launcher: folder.join(launcher),
        })
    };
    let folders: Vec<PathBuf> = std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect();
    let all = folders.iter().flat_map(in_folder);
    all.filter(|one| one.compiler.is_file() && one.launcher.is_file()).collect()
}

/// The first word of digits with dots.
fn version(said: &str) -> Option<&str> {
    let is_version =
        |word: &&str| word.contains('.') && word.starts_with(|first: char| first.is_ascii_digit());
    said.split_whitespace().find(is_version)
}

#[cfg(test)]
mod tests {
    use ft_tools::recovery::FreshFolder;

    use super::*;

    #[test]
    fn own_names_come_first_in_each_folder() {
        let folder = FreshFolder::new().unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|name| folder.path().join(name));
        for (place, names) in [
            (&a, &["mpicc", "mpiexec.mpich"][..]),
            (&b, &["mpicc", "mpiexec", "mpicc.mpich", "mpiexec.mpich"]),
            (&c, &["mpicc", "mpiexec"]),
        ] {
            std::fs::create_dir(place).unwrap();
            names.iter().for_each(|name| std::fs::write(place.join(name), "").unwrap());
        }
        let path = std::env::join_paths([Path::new("."), &a, &b, &c]).unwrap();
        let found =
            |library| candidates(&path, library).into_iter().map(|one| one.launcher).collect::<Vec<_>>();
        assert_eq!(found(Library::Mpich), [b.join("mpiexec.mpich"), b.join("mpiexec"), c.join("mpiexec")]);
        assert_eq!(found(Library::OpenMpi), [b.join("mpiexec"), c.join("mpiexec")]);
    }

    #[test]
    fn versions_as_launchers_say_them() {
        assert_eq!(version("mpiexec (Open MPI) 5.0.11\n\nReport bugs"), Some("5.0.11"));
        assert_eq!(version("HYDRA build details:\n    Version:       4.0.2\n"), Some("4.0.2"));
        assert_eq!(version("nothing"), None);
    }
}
