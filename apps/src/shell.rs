//! What a shell would find.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The program that a command without a `/` stands for.
pub(crate) fn in_path(name: impl AsRef<OsStr>) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&folders).map(|folder| folder.join(name.as_ref())).find(|path| is_program(path))
}
