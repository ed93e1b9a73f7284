//! Forwards the launcher's standard input to rank 0, and to its replacement after its death.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug, Default)]
pub(super) struct Forwarder {
    target: Arc<Mutex<Option<File>>>,
    running: bool,
}

impl Forwarder {
    /// Everything that is read from now on goes into this pipe.
    pub(super) fn forward_to(&mut self, stdin: OwnedFd) {
        *self.target.lock().unwrap_or_else(PoisonError::into_inner) = Some(stdin.into());
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

fn forward(target: &Mutex<Option<File>>) {
    let mut buffer = [0; 8 << 10];
    loop {
        let count = std::io::stdin().lock().read(&mut buffer).unwrap_or(0);
        let mut target = target.lock().unwrap_or_else(PoisonError::into_inner);
        if count == 0 {
            *target = None;
            return;
        }
        if let Some(stdin) = &mut *target
            && stdin.write_all(&buffer[..count]).is_err()
        {
            *target = None;
        }
    }
}
