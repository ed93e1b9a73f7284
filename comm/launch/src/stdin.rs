//! Standard input of the launcher on its way to ranks.
//!
//! Input that is no terminal is left to rank 0 if that is on this host: its process inherits it,
//! and takes no more of it than it reads. A terminal would stop such a process, as it is in a
//! process group of its own, and a process elsewhere cannot inherit: what these get is read here,
//! by a thread of its own ([`Forwarder`]).

use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{EventfdFlags, PollFd, PollFlags};
use rustix::io::Errno;

use super::spec::StandardInput;
use ft_proto::rank::Rank;

/// The processes that get standard input, and how they get it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Receivers {
    wanted: StandardInput,
    is_terminal: bool,
    /// Something was read here that a process may not have got yet.
    is_read_here: bool,
}

impl Receivers {
    pub(super) fn new(wanted: StandardInput) -> Self {
        Self { wanted, is_terminal: std::io::stdin().is_terminal(), is_read_here: false }
    }

    /// Whether a process with this rank gets standard input. A spare, which has none, may come to.
    pub(super) fn take(&self, rank: Option<Rank>, is_here: bool) -> bool {
        let is_first = rank.is_none_or(|rank| rank == 0);
        match self.wanted {
            StandardInput::None => false,
            StandardInput::All => true,
            StandardInput::First => is_first,
            StandardInput::FirstHere => is_first && (is_here || self.is_terminal),
        }
    }

    /// Standard input for a process to inherit, if that is how it gets it.
    pub(super) fn inherited(&self, rank: Option<Rank>, is_here: bool) -> Option<OwnedFd> {
        let is_left = !self.is_terminal && !self.is_read_here && self.wanted != StandardInput::All;
        let inherits = is_left && is_here && rank.is_some() && self.take(rank, is_here);
        inherits.then(|| std::io::stdin().as_fd().try_clone_to_owned().ok()).flatten()
    }

    /// A process gets its standard input by a pipe: from now on all do.
    pub(super) fn read_here(&mut self) {
        self.is_read_here = true;
    }
}

/// Whether there is something to read that is not typed at a terminal. What may come later is not
/// known.
pub fn has_input() -> bool {
    let stdin = std::io::stdin();
    !stdin.is_terminal() && rustix::io::ioctl_fionread(&stdin).is_ok_and(|bytes| bytes > 0)
}

/// Reads standard input for processes.
#[derive(Debug)]
pub(super) struct Forwarder {
    /// All processes get all of it, from the beginning.
    to_all: bool,
    mailbox: Arc<Mailbox>,
    is_running: bool,
}

/// Pipes for the thread.
#[derive(Debug)]
struct Mailbox {
    pipes: Mutex<Vec<File>>,
    /// Rung when there are some.
    bell: OwnedFd,
}

impl Mailbox {
    fn take(&self) -> Vec<File> {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        std::mem::take(&mut *self.pipes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Forwarder {
    /// # Errors
    /// The operating system refuses a file.
    pub(super) fn new(wanted: StandardInput) -> std::io::Result<Self> {
        let bell = rustix::event::eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let mailbox = Arc::new(Mailbox { pipes: Mutex::default(), bell });
        Ok(Self { to_all: wanted == StandardInput::All, mailbox, is_running: false })
    }

    /// Another process gets standard input, through this pipe. Never waits for a reader.
    pub(super) fn forward_to(&mut self, pipe: OwnedFd) {
        // A process that does not read must not keep others waiting.
        if rustix::io::ioctl_fionbio(&pipe, true).is_err() {
            return;
        }
        self.mailbox.pipes.lock().unwrap_or_else(PoisonError::into_inner).push(pipe.into());
        let _ = rustix::io::write(&self.mailbox.bell, &1u64.to_ne_bytes());
        if !std::mem::replace(&mut self.is_running, true) {
            if in_background() {
                // Reading the terminal would stop the launcher.
                return;
            }
            let (mailbox, tape) = (self.mailbox.clone(), Tape::new(self.to_all));
            // The thread ends with the process.
            let thread = std::thread::Builder::new().name("stdin".into());
            let _ = thread.spawn(move || forward(&mailbox, tape, std::io::stdin().as_fd()));
        }
    }
}

fn in_background() -> bool {
    let stdin = std::io::stdin();
    stdin.is_terminal() && rustix::termios::tcgetpgrp(&stdin).ok() != Some(rustix::process::getpgrp())
}

/// What was read of standard input, and the processes that get it.
#[derive(Debug)]
struct Tape {
    /// Everything, or what the one process that gets it has not taken yet.
    bytes: Vec<u8>,
    keeps_all: bool,
    targets: Vec<Target>,
    /// Where the next process begins.
    next: usize,
    /// Nothing more follows.
    has_ended: bool,
}

#[derive(Debug)]
struct Target {
    pipe: File,
    position: usize,
}

impl Target {
    /// Writes as much as the pipe takes; false if nobody reads it any more.
    fn feed(&mut self, bytes: &[u8]) -> bool {
        while self.position < bytes.len() {
            match self.pipe.write(&bytes[self.position..]) {
                Ok(count) => self.position += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        true
    }
}

impl Tape {
    fn new(keeps_all: bool) -> Self {
        Self { bytes: vec![], keeps_all, targets: vec![], next: 0, has_ended: false }
    }

    /// Another process: it gets everything if all do, else what its predecessor has left.
    fn add(&mut self, pipe: File) {
        if !self.keeps_all {
            self.next = self.targets.pop().map_or(self.next, |target| target.position);
        }
        self.targets.push(Target { pipe, position: self.next });
    }

    /// Hands on what the processes take, and its end. Another one may get the rest of what nobody
    /// reads.
    fn feed(&mut self) {
        let Self { bytes, keeps_all, targets, next, has_ended } = self;
        targets.retain_mut(|target| {
            let is_read = target.feed(bytes);
            let is_done = *has_ended && target.position == bytes.len();
            if !(*keeps_all || is_read && !is_done) {
                *next = target.position;
            }
            is_read && !is_done
        });
        let is_taken = |target: &Target| target.position == bytes.len();
        if !*keeps_all && (targets.iter().any(is_taken) || targets.is_empty() && *next == bytes.len()) {
            bytes.clear();
            *next = 0;
            targets.iter_mut().for_each(|target| target.position = 0);
        }
    }

    /// Whether a process waits for more.
    fn is_short(&self) -> bool {
        !self.has_ended && self.targets.iter().any(|target| target.position == self.bytes.len())
    }

    /// Pipes that are full.
    fn full(&self) -> impl Iterator<Item = &File> {
        let full = self.targets.iter().filter(|target| target.position < self.bytes.len());
        full.map(|target| &target.pipe)
    }

    /// Reads more.
    fn read(&mut self, input: impl AsFd) {
        let mut buffer = [0; 8 << 10];
        match rustix::io::read(input, &mut buffer) {
            Ok(count) if count > 0 => self.bytes.extend_from_slice(&buffer[..count]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(_) | Err(_) => self.has_ended = true,
        }
    }
}

/// Reads no more than processes wait for.
fn forward(mailbox: &Mailbox, mut tape: Tape, input: impl AsFd) {
    loop {
        mailbox.take().into_iter().for_each(|pipe| tape.add(pipe));
        tape.feed();
        let is_short = tape.is_short();
        let mut fds = vec![PollFd::new(&mailbox.bell, PollFlags::IN)];
        fds.extend(is_short.then(|| PollFd::new(&input, PollFlags::IN)));
        fds.extend(tape.full().map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
        let _ = rustix::event::poll(&mut fds, None);
        let has_input = is_short && !fds[1].revents().is_empty();
        if has_input {
            tape.read(&input);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, Read};

    use rustix::fs::MemfdFlags;

    use super::*;

    fn target(tape: &mut Tape) -> PipeReader {
        let (reader, pipe) = std::io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&pipe, true).unwrap();
        tape.add(OwnedFd::from(pipe).into());
        reader
    }

    fn rest(mut reader: PipeReader) -> Vec<u8> {
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).unwrap();
        rest
    }

    /// Feeds the tape from a file until nothing more is wanted or taken.
    fn run(tape: &mut Tape, input: &File) {
        tape.feed();
        while tape.is_short() {
            tape.read(input);
            tape.feed();
        }
    }

    fn file(bytes: &[u8]) -> File {
        let mut file = File::from(rustix::fs::memfd_create("input", MemfdFlags::CLOEXEC).unwrap());
        file.write_all(bytes).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        file
    }

    #[test]
    fn a_process_that_reads_nothing_does_not_keep_its_successor_waiting() {
        // More than both pipes hold.
        let (input, mut tape) = (file(&[7; 1 << 17]), Tape::new(false));
        let _old = target(&mut tape);
        run(&mut tape, &input);
        assert!(!tape.has_ended, "no more is read than is taken");
        let mut new = target(&mut tape);
        let mut count = 0;
        // What the pipe of the first one holds is lost with it.
        while !tape.targets.is_empty() {
            run(&mut tape, &input);
            let mut piece = [0; 1 << 16];
            count += new.read(&mut piece).unwrap();
        }
        count += rest(new).len();
        assert_eq!(count, (1 << 17) - (1 << 16));
    }

    #[test]
    fn a_successor_hears_that_nothing_more_comes() {
        let (input, mut tape) = (file(b"once"), Tape::new(false));
        let first = target(&mut tape);
        run(&mut tape, &input);
        assert_eq!(rest(first), b"once");
        let second = target(&mut tape);
        run(&mut tape, &input);
        assert_eq!(rest(second), b"");
    }

    #[test]
    fn input_that_a_process_has_not_taken_goes_to_its_successor() {
        let (input, mut tape) = (file(b"left"), Tape::new(false));
        drop(target(&mut tape));
        run(&mut tape, &input);
        let successor = target(&mut tape);
        run(&mut tape, &input);
        assert_eq!(rest(successor), b"left");
    }

    #[test]
    fn all_processes_get_everything_whenever_they_are_started() {
        let (input, mut tape) = (file(b"for all"), Tape::new(true));
        let readers = [target(&mut tape), target(&mut tape)];
        run(&mut tape, &input);
        let later = target(&mut tape);
        run(&mut tape, &input);
        for reader in readers.into_iter().chain([later]) {
            assert_eq!(rest(reader), b"for all");
        }
    }

    #[test]
    fn rank_0_of_this_host_inherits_what_is_no_terminal() {
        let inherits = |wanted, is_terminal, rank, is_here| {
            let receivers = Receivers { wanted, is_terminal, is_read_here: false };
            (receivers.take(rank, is_here), receivers.inherited(rank, is_here).is_some())
        };
        assert_eq!(inherits(StandardInput::FirstHere, false, Some(0), true), (true, true));
        assert_eq!(inherits(StandardInput::FirstHere, false, Some(0), false), (false, false));
        assert_eq!(inherits(StandardInput::FirstHere, true, Some(0), false), (true, false));
        assert_eq!(inherits(StandardInput::FirstHere, true, Some(0), true), (true, false));
        assert_eq!(inherits(StandardInput::FirstHere, false, Some(1), true), (false, false));
        assert_eq!(inherits(StandardInput::FirstHere, false, None, true), (true, false));
        assert_eq!(inherits(StandardInput::First, false, Some(0), false), (true, false));
        assert_eq!(inherits(StandardInput::First, false, Some(0), true), (true, true));
        assert_eq!(inherits(StandardInput::All, false, Some(3), true), (true, false));
        assert_eq!(inherits(StandardInput::None, true, Some(0), true), (false, false));
    }
}
