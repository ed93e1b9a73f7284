//! Open files that the launcher hands down to a process that it starts, of which the environment has the number.
//!
//! A secret comes in a pipe. The process takes it out and closes the pipe, so that neither its own children nor those who may look
//! into its environment get to know it. Shared memory comes as a file that has its name in `/proc` alone.
//!
//! # Safety
//!
//! A number in the environment is no proof that a file is ours. [`take`] only uses a number that is a pipe in which exactly as
//! many bytes wait as were handed down; nobody else in a process that has just been started has such a pipe. [`take_memory`] only uses
//! one that is memory of the name that was given to it for this purpose. [`take_executable`] only
//! uses one that is a file without close-on-exec: whatever a process opens itself has that flag
//! from the start, so this file was inherited, and nobody owns it yet.
#![expect(unsafe_code, reason = "a file that is inherited has a number and no owner")]

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};

use rustix::fs::FileType;
use rustix::io::FdFlags;
use rustix::pipe::PipeFlags;

/// A pipe with `secret` in it, to be inherited by the process that is started next; close it then.
///
/// # Errors
/// The operating system refuses a pipe.
pub fn hand_down(secret: &[u8]) -> io::Result<OwnedFd> {
    let (pipe, end) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    // It is far shorter than what a pipe holds.
    rustix::io::write(&end, secret)?;
    rustix::io::fcntl_setfd(&pipe, FdFlags::empty())?;
    Ok(pipe)
}

/// The secret of `length` bytes in the pipe of this number, which is closed then. None if there is no such pipe.
pub fn take(number: &str, length: usize) -> Option<Vec<u8>> {
    let number: i32 = number.parse().ok().filter(|number| *number > 2)?;
    // SAFETY: it is only asked what it is; if it is not open, the system says so.
    let unknown = unsafe { BorrowedFd::borrow_raw(number) };
    let stat = rustix::fs::fstat(unknown).ok()?;
    let waiting = rustix::io::ioctl_fionread(unknown).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Fifo || waiting != length as u64 {
        return None;
    }
    // SAFETY: see the module.
    let pipe = unsafe { OwnedFd::from_raw_fd(number) };
    let mut secret = vec![0; length];
    (rustix::io::read(&pipe, &mut secret) == Ok(length)).then_some(secret)
}

/// The memory of this name (`memfd_create`) that is the open file of this number; children of this process do not get it. None if there
/// is no such memory: in a child that has the environment of its parent the number may mean something else.
pub fn take_memory(number: &str, name: &str) -> Option<OwnedFd> {
    let number: i32 = number.parse().ok().filter(|number| *number > 2)?;
    let link = std::fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
    if !link.to_string_lossy().contains(name) {
        return None;
    }
    // SAFETY: see the module.
    let file = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&file, FdFlags::CLOEXEC).ok()?;
    Some(file)
}

/// The file of this number that the launcher has open for this process to execute; it is closed by
/// `exec` from now on. None if there is no such file.
pub fn take_executable(number: &str) -> Option<OwnedFd> {
    let number: i32 = number.parse().ok().filter(|number| *number > 2)?;
    // SAFETY: it is only asked what it is; if it is not open, the system says so.
    let unknown = unsafe { BorrowedFd::borrow_raw(number) };
    let stat = rustix::fs::fstat(unknown).ok()?;
    let is_inherited = !rustix::io::fcntl_getfd(unknown).ok()?.contains(FdFlags::CLOEXEC);
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || !is_inherited {
        return None;
    }
    // SAFETY: see the module.
    let file = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&file, FdFlags::CLOEXEC).ok()?;
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsRawFd, IntoRawFd};

    #[test]
    fn a_secret_is_taken_once_and_by_nobody_who_asks_for_something_else() {
        let pipe = hand_down(b"secret").unwrap();
        let number = pipe.into_raw_fd().to_string();
        assert_eq!(take(&number, 5), None);
        assert_eq!(take(&number, 6).as_deref(), Some(&b"secret"[..]));
        for wrong in ["", "-1", "0", "x", "99999999", "2147483648"] {
            assert_eq!(take(wrong, 6), None, "{wrong}");
        }
    }

    #[test]
    fn executable_is_taken_once_and_only_if_it_was_inherited() {
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let number = file.as_raw_fd().to_string();
        assert!(take_executable(&number).is_none(), "it has an owner");
        rustix::io::fcntl_setfd(&file, FdFlags::empty()).unwrap();
        let _ = file.into_raw_fd();
        let taken = take_executable(&number).unwrap();
        assert!(take_executable(&number).is_none());
        drop(taken);
        for wrong in ["", "0", "x", "99999999"] {
            assert!(take_executable(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_such_pipe_stays_open() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let (empty, _end) = rustix::pipe::pipe().unwrap();
        for number in [file.as_raw_fd(), empty.as_raw_fd()] {
            assert_eq!(take(&number.to_string(), 6), None);
        }
        assert!(rustix::fs::fstat(&file).is_ok() && rustix::fs::fstat(&empty).is_ok());
    }
}
