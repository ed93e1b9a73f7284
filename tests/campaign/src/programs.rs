//! What campaigns run: `ftrun` and an example, built with the profile of the campaign itself, and two scripts.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// As `ssh` does it: what follows the host is joined with blanks and given to a shell.
const EXEC: &str = "shift; exec sh -c \"exec $*\"";

/// A folder for all runs, with the scripts in it, and where `ftrun` is.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) ftrun: PathBuf,
    all: TempDir,
}

impl Programs {
    /// Takes `ftrun` from there, with examples beside it, or builds them.
    pub(crate) fn new(ftrun: Option<PathBuf>) -> Result<Self, String> {
        let ftrun = ftrun.map_or_else(build, Ok)?;
        let ftrun = ftrun.canonicalize().map_err(|error| format!("{}: {error}", ftrun.display()))?;
        let example = ftrun.with_file_name("examples").join("resilient");
        if !example.is_file() {
            return Err(format!("there is no {}", example.display()));
        }
        let all = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
        // Some jobs are another user's.
        std::fs::set_permissions(all.path(), std::fs::Permissions::from_mode(0o711))
            .map_err(|error| format!("{}: {error}", all.path().display()))?;
        script(&all.path().join("exec"), EXEC)?;
        // It says more than a pipe holds before it begins.
        script(&all.path().join("own"), &format!("seq 1 20000\nexec '{}'", example.display()))?;
        Ok(Self { ftrun, all })
    }

    /// A file of `ftrun` in a folder of its own, which a run may remove or replace.
    pub(crate) fn copy(&self) -> Result<(TempDir, PathBuf), String> {
        let folder = self.folder()?;
        let copy = folder.path().join("ftrun");
        std::fs::hard_link(&self.ftrun, &copy)
            .or_else(|_| std::fs::copy(&self.ftrun, &copy).map(drop))
            .map_err(|error| format!("{}: {error}", copy.display()))?;
        Ok((folder, copy))
    }

    /// A folder for one run, beside the scripts.
    pub(crate) fn folder(&self) -> Result<TempDir, String> {
        tempfile::tempdir_in(self.all.path()).map_err(|error| format!("a temporary folder: {error}"))
    }
}

/// Where cargo puts `ftrun`, after it has built it.
fn build() -> Result<PathBuf, String> {
    let here = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = here.parent().ok_or("the campaign is in no folder")?;
    let profile = match folder.file_name().and_then(OsStr::to_str) {
        Some("debug") => "dev",
        Some(profile) => profile,
        None => return Err(format!("{} is in no folder of a build", here.display())),
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--bin", "ftrun", "--example", "resilient", "--profile", profile])
        .args(["-p", "ft-apps", "-p", "ft-checkpoint"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .status()
        .map_err(|error| format!("cargo cannot be started: {error}"))?;
    if status.success() { Ok(folder.join("ftrun")) } else { Err("the programs cannot be built".into()) }
}

pub(crate) fn script(path: &Path, text: &str) -> Result<(), String> {
    let written = std::fs::write(path, format!("#!/bin/sh\n{text}\n"))
        .and_then(|()| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)));
    written.map_err(|error| format!("{}: {error}", path.display()))
}
