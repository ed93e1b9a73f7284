//! Where the jobs of a user are found: a folder that nobody else may look into, with a socket for each job, which has the number of
//! the launcher's process as its name.
//!
//! A socket gets its name when somebody listens at it. So one at which nobody listens is of a launcher that was killed, and is
//! removed by whoever comes across it.

use std::fs::{DirBuilder, Permissions};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// The folder in that of the session, if there is one.
const NAME: &str = "ftrun";
/// Where the session's own things are (XDG Base Directory Specification).
const ENV_SESSION: &str = "XDG_RUNTIME_DIR";
/// Names the one folder to use in place of these.
const ENV_FOLDER: &str = "FTRUN_JOBS";
/// How often a socket is tried to be made: a job that ends may remove the folder meanwhile.
const TRIES: u32 = 3;

/// A job cannot be asked how it is.
#[derive(Debug, thiserror::Error)]
pub enum DeskError {
    /// There is something in the place of the folder.
    #[error("{} is no folder of this user alone (mode 0700)", .0.display())]
    Foreign(PathBuf),
    /// The operating system refuses.
    #[error("{}: {error}", path.display())]
    System {
        /// What was to be made.
        path: PathBuf,
        /// Why it is not.
        error: Error,
    },
    /// Another launcher has this number, in another space of numbers.
    #[error("{} belongs to another job", .0.display())]
    Taken(PathBuf),
}

/// A socket of this process, at which others find its job. Dropped, it is removed, and the folder if no other is in it.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) listener: UnixListener,
    path: PathBuf,
}

impl Place {
    /// Takes a place in the first folder that will do.
    pub(super) fn take() -> Result<Self, DeskError> {
        let mut result = Err(DeskError::Foreign(PathBuf::from(NAME)));
        for folder in folders() {
            result = Self::take_in(&folder, std::process::id());
            if result.is_ok() {
                break;
            }
        }
        result
    }

    fn take_in(folder: &Path, number: u32) -> Result<Self, DeskError> {
        let path = folder.join(number.to_string());
        let named = |error| DeskError::System { path: path.clone(), error };
        let mut tries = 1..=TRIES;
        loop {
            make(folder)?;
            remove_stale(folder);
            if path.symlink_metadata().is_ok() {
                return Err(DeskError::Taken(path));
            }
            match listen(folder, &path, number) {
                Err(error) if error.kind() == ErrorKind::NotFound && tries.next().is_some() => {}
                result => break result.map_err(named).map(|listener| Self { listener, path: path.clone() }),
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        // Others may be in it.
        let _ = self.path.parent().map(std::fs::remove_dir);
    }
}

/// Listens at a socket, and then gives it its name.
fn listen(folder: &Path, path: &Path, number: u32) -> std::io::Result<UnixListener> {
    let unnamed = folder.join(format!(".{number}"));
    let _ = std::fs::remove_file(&unnamed); // of a launcher of this number that was killed just here
    let listener = UnixListener::bind(&unnamed)?;
    let named = std::fs::set_permissions(&unnamed, Permissions::from_mode(0o600))
        .and_then(|()| listener.set_nonblocking(true))
        .and_then(|()| std::fs::rename(&unnamed, path));
    if named.is_err() {
        let _ = std::fs::remove_file(&unnamed);
    }
    named.map(|()| listener)
}

/// Makes the folder, if it is not there.
fn make(folder: &Path) -> Result<(), DeskError> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(DeskError::System { path: folder.to_owned(), error })
        }
        _ if is_ours(folder) => Ok(()),
        _ => Err(DeskError::Foreign(folder.to_owned())),
    }
}

/// Whether it is a folder of this user that is closed to all others. A link to one is none.
fn is_ours(folder: &Path) -> bool {
    let ours = rustix::process::geteuid().as_raw();
    folder
        .symlink_metadata()
        .is_ok_and(|about| about.is_dir() && about.uid() == ours && about.mode() & 0o077 == 0)
}

/// Where jobs may be, the best place first.
fn folders() -> Vec<PathBuf> {
    if let Some(folder) = std::env::var_os(ENV_FOLDER) {
        return vec![folder.into()];
    }
    let ours = rustix::process::geteuid().as_raw();
    let session = std::env::var_os(ENV_SESSION).map(PathBuf::from);
    // Who has become another user may still have the variable of the one before.
    let is_ours =
        |path: &PathBuf| path.is_absolute() && path.metadata().is_ok_and(|about| about.uid() == ours);
    let session = session.filter(is_ours).map(|path| path.join(NAME));
    session.into_iter().chain([PathBuf::from(format!("/tmp/{NAME}-{ours}"))]).collect()
}

/// The jobs of this user on this host: their numbers, and the sockets at which they are asked. Sockets of jobs that are dead are
/// removed.
pub fn jobs() -> Vec<(u32, PathBuf)> {
    let mut jobs: Vec<(u32, PathBuf)> = folders()
        .into_iter()
        .filter(|folder| is_ours(folder))
        .flat_map(|folder| {
            remove_stale(&folder);
            let found = sockets(&folder);
            let _ = std::fs::remove_dir(folder); // if nobody is left in it
            found
        })
        .collect();
    jobs.sort_unstable();
    jobs
}

/// The sockets in a folder, by their numbers.
fn sockets(folder: &Path) -> Vec<(u32, PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path()))).collect()
}

/// Removes the sockets at which nobody listens any more.
fn remove_stale(folder: &Path) {
    for (_, path) in sockets(folder) {
        if reach(&path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A connection to the socket of a job. It is not waited for: a launcher that is stopped accepts none.
pub(super) fn reach(path: &Path) -> std::io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().mode() & 0o777
    }

    /// A folder for a test; it has its own name and is gone in the end.
    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("ft-desk-{name}-{}", std::process::id()));
            std::fs::create_dir(&folder).unwrap();
            Self(folder)
        }

        fn join(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn a_place_is_for_its_user_alone_and_leaves_nothing() {
        let around = Temporary::new("place");
        let folder = around.join("jobs");
        let place = Place::take_in(&folder, 7).unwrap();
        assert_eq!((mode(&folder), mode(&folder.join("7"))), (0o700, 0o600));
        // Whoever listens is left alone.
        assert!(matches!(Place::take_in(&folder, 7), Err(DeskError::Taken(_))));
        let other = Place::take_in(&folder, 8).unwrap();
        drop(place);
        assert_eq!(sockets(&folder), [(8, folder.join("8"))]);
        drop(other);
        assert!(!folder.exists());
    }

    #[test]
    fn what_a_dead_job_has_left_is_removed() {
        let around = Temporary::new("stale");
        let folder = around.join("jobs");
        let alive = Place::take_in(&folder, 7).unwrap();
        drop(UnixListener::bind(folder.join("9")).unwrap());
        std::fs::write(folder.join("notes"), b"").unwrap();
        remove_stale(&folder);
        assert_eq!(sockets(&folder), [(7, folder.join("7"))]);
        // The same number is free again.
        drop(UnixListener::bind(folder.join("9")).unwrap());
        drop(Place::take_in(&folder, 9).unwrap());
        drop(alive);
        assert!(folder.join("notes").exists(), "what is no socket stays");
    }

    #[test]
    fn a_folder_of_others_is_refused() {
        let around = Temporary::new("foreign");
        let folder = around.join("open");
        DirBuilder::new().mode(0o700).create(&folder).unwrap();
        std::fs::set_permissions(&folder, Permissions::from_mode(0o750)).unwrap();
        let link = around.join("link");
        let inside = around.join("inside");
        DirBuilder::new().mode(0o700).create(&inside).unwrap();
        std::os::unix::fs::symlink(&inside, &link).unwrap();
        std::fs::write(around.join("file"), b"").unwrap();
        for name in ["open", "link", "file"] {
            let refused = Place::take_in(&around.join(name), 7);
            assert!(matches!(refused, Err(DeskError::Foreign(_))), "{name}: {refused:?}");
        }
        let missing = Place::take_in(&around.join("no/jobs"), 7);
        assert!(matches!(missing, Err(DeskError::System { .. })), "{missing:?}");
    }
}
