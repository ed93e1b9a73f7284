//! The congestion control of this machine, which MPI libraries take as it is.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ft_tools::harness::HarnessError;

const FOLDER: &str = "/proc/sys/net/ipv4";
const CURRENT: &str = "tcp_congestion_control";
const AVAILABLE: &str = "tcp_available_congestion_control";

/// The default of new sockets is another one until this is dropped.
#[derive(Debug)]
pub(super) struct Congestion {
    folder: PathBuf,
    before: String,
}

/// The default of new sockets; empty where it cannot be read.
pub(super) fn current() -> String {
    read(Path::new(FOLDER), CURRENT)
}

/// Whether sockets may ask for it.
pub(super) fn is_available(name: &str) -> bool {
    read(Path::new(FOLDER), AVAILABLE).split(' ').any(|available| available == name)
}

impl Congestion {
    /// Makes `name` the default of new sockets of this machine; takes the rights of an administrator.
    ///
    /// # Errors
    /// The kernel does not have it, or this process may not.
    pub(super) fn switch(name: &str) -> Result<Self, HarnessError> {
        Self::switch_in(Path::new(FOLDER), name)
    }

    fn switch_in(folder: &Path, name: &str) -> Result<Self, HarnessError> {
        let refuse = |why: String| HarnessError::Congestion { name: name.to_owned(), why };
        let available = read(folder, AVAILABLE);
        if !available.split(' ').any(|one| one == name) {
            return Err(refuse(format!("the kernel has {available}")));
        }
        let before = read(folder, CURRENT);
        fs::write(folder.join(CURRENT), name).map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                let file = folder.join(CURRENT);
                refuse(format!(
                    "{} is not to be written ({error}); it takes root with CAP_NET_ADMIN",
                    file.display()
                ))
            }
            _ => refuse(error.to_string()),
        })?;
        let switched = Self { folder: folder.to_owned(), before };
        match read(folder, CURRENT) {
            now if now == name => Ok(switched),
            now => Err(refuse(format!("it is {now} afterwards"))),
        }
    }
}

impl Drop for Congestion {
    fn drop(&mut self) {
        if let Err(error) = fs::write(self.folder.join(CURRENT), &self.before) {
            eprintln!("the congestion control is not {} again: {error}", self.before);
        }
    }
}

fn read(folder: &Path, file: &str) -> String {
    fs::read_to_string(folder.join(file)).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_tools::recovery::FreshFolder;

    #[test]
    fn what_was_before_comes_back() {
        let folder = FreshFolder::new().unwrap();
        fs::write(folder.path().join(CURRENT), "bbr\n").unwrap();
        fs::write(folder.path().join(AVAILABLE), "reno bbr cubic\n").unwrap();
        let now = || read(folder.path(), CURRENT);
        let switched = Congestion::switch_in(folder.path(), "cubic").unwrap();
        assert_eq!(now(), "cubic");
        drop(switched);
        assert_eq!(now(), "bbr");
        let refused = Congestion::switch_in(folder.path(), "vegas").unwrap_err().to_string();
        assert!(refused.ends_with("the kernel has reno bbr cubic"), "{refused}");
        assert_eq!(now(), "bbr");
    }

    #[test]
    fn what_cannot_be_written_is_said() {
        let folder = FreshFolder::new().unwrap();
        fs::write(folder.path().join(AVAILABLE), "reno\n").unwrap();
        fs::create_dir(folder.path().join(CURRENT)).unwrap();
        let refused = Congestion::switch_in(folder.path(), "reno").unwrap_err().to_string();
        assert!(
            refused.starts_with("cannot make reno the congestion control of this machine: "),
            "{refused}"
        );
    }
}
