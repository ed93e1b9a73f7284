//! Forwards the launcher's standard input to rank 0, and to its replacement after its death.

use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

use ft_comm::transport::timespec;

/// A process that reads nothing may be replaced meanwhile: it is looked for that so often.
const LOOK: Duration = Duration::from_millis(50);

/// What the thread that reads is to know.
#[derive(Debug, Default)]
struct Target {
    /// Where everything goes that is read from now on, if that has changed.
    next: Option<File>,
    /// Nothing more comes.
    ended: bool,
}

#[derive(Debug, Default)]
pub(super) struct Forwarder {
    target: Arc<Mutex<Target>>,
    running: bool,
}

fn lock(target: &Mutex<Target>) -> MutexGuard<'_, Target> {
    target.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Forwarder {
    /// Everything that is read from now on goes into this pipe. Never waits for who reads the pipe before.
    pub(super) fn forward_to(&mut self, stdin: OwnedFd) {
        // One that would block the thread could not be replaced.
        if rustix::io::ioctl_fionbio(&stdin, true).is_err() {
            return;
        }
        let mut target = lock(&self.target);
        target.next = Some(File::from(stdin)).filter(|_| !target.ended);
        drop(target);
        if !std::mem::replace(&mut self.running, true) {
            if in_background() {
                // Reading the terminal would stop the launcher.
                return;
            }
            let target = self.target.clone();
            // The thread ends with the process: a blocked read of standard input cannot be woken.
            let _ = std::thread::Builder::new().name("stdin".into()).spawn(move || forward(&target));
        }
    }
}

fn in_background() -> bool {
    let stdin = std::io::stdin();
    stdin.is_terminal() && rustix::termios::tcgetpgrp(&stdin).ok() != Some(rustix::process::getpgrp())
}

fn forward(target: &Mutex<Target>) {
    let mut buffer = [0; 8 << 10];
    let mut pipe = None;
    loop {
        let count = std::io::stdin().lock().read(&mut buffer).unwrap_or(0);
        if count == 0 {
            *lock(target) = Target { next: None, ended: true };
            return;
        }
        hand_on(&buffer[..count], &mut pipe, target);
    }
}

/// Writes as much of `bytes` as there is somebody to take it.
fn hand_on(mut bytes: &[u8], pipe: &mut Option<File>, target: &Mutex<Target>) {
    while !bytes.is_empty() {
        let next = lock(target).next.take();
        *pipe = next.or(pipe.take());
        let Some(to) = pipe else { return };
        match to.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let _ = rustix::event::poll(&mut [PollFd::new(to, PollFlags::OUT)], Some(&timespec(LOOK)));
            }
            Err(_) => *pipe = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_reads_nothing_does_not_keep_its_successor_waiting() {
        let mut forwarder = Forwarder { running: true, ..Forwarder::default() };
        let (_old, old_end) = std::io::pipe().unwrap();
        let (mut new, new_end) = std::io::pipe().unwrap();
        forwarder.forward_to(old_end.into());
        let target = forwarder.target.clone();
        // More than both pipes hold.
        let thread = std::thread::spawn(move || hand_on(&[7; 1 << 20], &mut None, &target));
        // What goes to the first one is lost with it; the first one is not read and lives.
        forwarder.forward_to(new_end.into());
        let mut rest = Vec::new();
        new.read_to_end(&mut rest).unwrap();
        thread.join().unwrap();
        assert!(rest.len() >= (1 << 20) - (64 << 10) && rest.iter().all(|byte| *byte == 7), "{}", rest.len());
    }

    #[test]
    fn a_successor_hears_that_nothing_more_comes() {
        let mut forwarder = Forwarder { running: true, ..Forwarder::default() };
        *lock(&forwarder.target) = Target { next: None, ended: true };
        let (mut pipe, end) = std::io::pipe().unwrap();
        forwarder.forward_to(end.into());
        assert_eq!(pipe.read(&mut [0]).unwrap(), 0);
    }
}
