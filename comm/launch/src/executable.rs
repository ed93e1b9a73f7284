//! Executable files that stay available to the end of the job, whatever becomes of their names.
//!
//! A build, an upgrade or `rm` may remove or replace the file of a running program. A replacement
//! must run the file that the job began with:
//!
//! - This program, which every rank starts as, is executed through [`SELF`].
//! - The program that a rank then becomes is held open by the launcher, and on other hosts by the
//!   keeper. Every rank inherits the descriptor, whose number is in its environment
//!   ([`ENV_EXECUTABLE`]). While the path still names that file, the rank executes the path, so
//!   that the program finds its usual name in `argv[0]`. Otherwise it executes the descriptor.
//!
//! A file that is overwritten in place is the same file with other content, which nothing here
//! prevents. The kernel refuses that for binaries that run (`ETXTBSY`).

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::FdFlags;

use ft_comm::inherited;

/// The file of this program, whatever has become of its name.
pub const SELF: &str = "/proc/self/exe";
/// Environment of a rank: the number of the open file that it executes in its place.
pub(super) const ENV_EXECUTABLE: &str = "FTRUN_EXECUTABLE";

/// Opens a file for ranks to execute. None if it cannot be opened: the ranks, which execute its
/// path then, report why.
pub(super) fn hold(path: &Path) -> Option<OwnedFd> {
    // A file that is open to be read stays on file servers as well. One that may only be executed
    // is opened as a path.
    let flags = OFlags::CLOEXEC | OFlags::NONBLOCK;
    let open = |flags| rustix::fs::open(path, flags, Mode::empty());
    let file = open(OFlags::RDONLY | flags).or_else(|_| open(OFlags::PATH | flags)).ok()?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file).ok()?.st_mode);
    kind.is_file().then_some(file)
}

/// Replaces this process, which the launcher has started as a rank, by the program at `path`, or by
/// the file that was there when the job began. Returns only if that fails.
pub fn become_program(path: &Path, args: &[OsString]) -> io::Error {
    let number = std::env::var(ENV_EXECUTABLE).ok();
    match number.and_then(|number| inherited::take_executable(&number)) {
        Some(held) => become_held(path, args, &held),
        None => command(path, path, args).exec(),
    }
}

fn become_held(path: &Path, args: &[OsString], held: &OwnedFd) -> io::Error {
    if names(path, held.as_fd()) {
        let error = command(path, path, args).exec();
        // It may have gone since.
        if error.kind() != ErrorKind::NotFound {
            return error;
        }
    }
    // The interpreter of a script opens it by this name, so it must stay open.
    match rustix::io::fcntl_setfd(held, FdFlags::empty()) {
        Ok(()) => command(&by_number(held.as_fd()), path, args).exec(),
        Err(error) => error.into(),
    }
}

fn command(file: &Path, name: &Path, args: &[OsString]) -> Command {
    let mut command = Command::new(file);
    command.arg0(name).args(args).env_remove(ENV_EXECUTABLE);
    command
}

/// Returns `true` if `path` names the open file.
fn names(path: &Path, file: BorrowedFd<'_>) -> bool {
    let there = rustix::fs::stat(path);
    let held = rustix::fs::fstat(file);
    there.is_ok_and(|there| held.is_ok_and(|held| (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino)))
}

fn by_number(file: BorrowedFd<'_>) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn script(path: &Path, text: &str) {
        std::fs::write(path, format!("#!/bin/sh\necho {text} \"$@\"\n")).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    #[test]
    fn path_names_the_held_file_until_another_file_replaces_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        script(&path, "old");
        let held = hold(&path).unwrap();
        assert!(names(&path, held.as_fd()));
        let new = folder.path().join("new");
        script(&new, "new");
        std::fs::rename(&new, &path).unwrap();
        assert!(!names(&path, held.as_fd()));
        std::fs::remove_file(&path).unwrap();
        assert!(!names(&path, held.as_fd()));
    }

    #[test]
    fn held_file_that_was_removed_still_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        script(&path, "old");
        let held = hold(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        // The child opens the script by its number.
        rustix::io::fcntl_setfd(&held, FdFlags::empty()).unwrap();
        let output = command(&by_number(held.as_fd()), &path, &["and".into()]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "old and\n");
    }

    #[test]
    fn hold_of_what_is_no_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        assert!(hold(folder.path()).is_none());
        assert!(hold(&folder.path().join("missing")).is_none());
    }
}
