//! Standard output and standard error of the launcher, which others than the thread that keeps the job write to.
//!
//! A reader may pause for as long as it likes (`| less`, the terminal's stop key, a slow network), and whoever writes to it
//! waits so long. So what is printed goes into a queue, and a thread writes it; the job is led meanwhile. A queue that is
//! full says so: then the output of ranks stays in their pipes, where they wait as with any pipe. A stream that takes
//! nothing more (its reader has gone, its disk is full) is no reason to end a job: what was to go there is lost, and
//! that is known at the end ([`Console::finish`]).

use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::Signal;

use super::boundary::caught;
use super::line_merger::{LineMerger, Source};
use super::process::GRACE;
use super::signals::{Signals, reset_signals, what_it_did};
use ft_comm::limits;
use ft_comm::time::Clock;
use ft_comm::transport::timespec;

/// Bytes that wait for the reader of a stream; with more, what ranks print stays in their pipes.
const BACKLOG_MAX: usize = 1 << 20;
/// Memory for a thread that does nothing but write.
const STACK_BYTES: usize = 64 << 10;

/// Where something is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

impl std::fmt::Display for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Output => "standard output",
            Self::Error => "standard error",
        })
    }
}

/// Not all of what was printed has found a reader.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// A stream took nothing more.
    #[error("what was printed to {stream} is not all there: {}", limits::explain(.error))]
    Lost {
        /// Which.
        stream: Stream,
        /// Why.
        error: Error,
    },
    /// The reader paused, and a signal has ended the wait for it.
    #[error("what was printed is not all read: {}", what_it_did(*.0))]
    Interrupted(Signal),
}

/// Standard output and standard error of the launcher, written by threads of their own. Clones are the same console.
#[derive(Clone, Debug)]
pub struct Console {
    output: Arc<Lane>,
    /// The same if both streams lead to the same place, so that lines stay in their order.
    error: Arc<Lane>,
    /// Rung when a queue gets shorter.
    moved: Arc<OwnedFd>,
    signals: Arc<Signals>,
}

/// A queue, and the thread that writes what is in it.
#[derive(Debug, Default)]
struct Lane {
    state: Mutex<State>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<(Stream, Vec<u8>)>,
    /// Bytes that are not written yet.
    waiting: usize,
    /// Puts lines of several sources together.
    merger: LineMerger,
    /// Streams that take nothing more, and why.
    lost: Vec<(Stream, Option<Error>)>,
}

impl Console {
    /// The streams of this process. Signals that end a process do not end this one from now on: [`launch`](super::launch)
    /// and [`Console::finish`] heed them.
    ///
    /// # Errors
    /// The operating system refuses a thread.
    pub fn new() -> Result<Self> {
        reset_signals();
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        let moved = Arc::new(rustix::event::eventfd(0, flags)?);
        let output = Lane::start(&moved)?;
        let error = if is_one_place() { output.clone() } else { Lane::start(&moved)? };
        Ok(Self { output, error, moved, signals: Arc::new(Signals::new()?) })
    }

    /// Prints `bytes` of the launcher in their turn; never waits.
    pub fn print(&self, stream: Stream, bytes: impl AsRef<[u8]>) {
        self.print_of(Source::Launcher, stream, b"", bytes.as_ref());
    }

    /// Draws on the terminal that standard error is: the display of progress, which makes room for
    /// what is printed.
    pub fn draw(&self, bytes: impl AsRef<[u8]>) {
        self.print_of(Source::Display, Stream::Error, b"", bytes.as_ref());
    }

    /// Prints `bytes` of a source, `label` before each of their lines.
    pub(super) fn print_of(&self, source: Source, stream: Stream, label: &[u8], bytes: &[u8]) {
        let lane = self.lane(stream);
        let mut state = lane.lock();
        let mut text = Vec::with_capacity(bytes.len());
        state.merger.merge(source, label, bytes, &mut text);
        state.waiting += text.len();
        state.queue.push_back((stream, text));
        lane.filled.notify_one();
    }

    /// Whether a rank has printed the beginning of a line that has not ended, such as a prompt.
    pub fn has_open_line(&self, stream: Stream) -> bool {
        self.lane(stream).lock().merger.is_open()
    }

    /// Prints a line to standard error.
    pub fn say(&self, line: impl std::fmt::Display) {
        self.print(Stream::Error, format!("{line}\n"));
    }

    /// Whether so much of a stream is not read yet that nothing should be added which can wait.
    pub fn is_full(&self, stream: Stream) -> bool {
        self.lane(stream).lock().waiting >= BACKLOG_MAX
    }

    /// Becomes readable when a stream that is full may no longer be. To be asked for before [`Console::is_full`].
    pub(super) fn relief(&self) -> BorrowedFd<'_> {
        let _ = rustix::io::read(&self.moved, &mut [0; 8]);
        self.moved.as_fd()
    }

    fn lane(&self, stream: Stream) -> &Lane {
        match stream {
            Stream::Output => &self.output,
            Stream::Error => &self.error,
        }
    }

    /// Width of the terminal that standard error is, in characters.
    pub fn width(&self) -> Option<u16> {
        rustix::termios::tcgetwinsize(std::io::stderr()).ok().map(|size| size.ws_col)
    }

    /// Waits until everything is written, for as long as the reader takes; a signal ends that. If a signal has come before,
    /// as for a job that was interrupted, it does not wait for long.
    ///
    /// # Errors
    /// Something was not written. What is said afterwards may still be.
    pub fn finish(&self) -> std::result::Result<(), ConsoleError> {
        let interrupted = |signal: &Signal| ConsoleError::Interrupted(*signal);
        let clock = Clock::start();
        let hurry = self.signals.to_end();
        let _ = self.signals.to_stop(); // the job was stopped, and has gone on since
        loop {
            let _ = rustix::io::read(&self.moved, &mut [0; 8]);
            if [&self.output, &self.error].into_iter().all(|lane| lane.lock().waiting == 0) {
                break;
            }
            let left = GRACE.saturating_sub(clock.now().since(ft_comm::time::Time(0)));
            if let (Some(signal), true) = (hurry.first(), left.is_zero()) {
                return Err(interrupted(signal));
            }
            let limit = hurry.first().map(|_| timespec(left));
            let fds = std::iter::once(self.moved.as_fd()).chain(self.signals.fds());
            let mut fds: Vec<PollFd<'_>> =
                fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
            let _ = rustix::event::poll(&mut fds, limit.as_ref());
            if let Some(signal) = self.signals.to_end().first() {
                return Err(interrupted(signal));
            }
            if self.signals.to_stop() {
                let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
            }
        }
        let mut lost = [&self.output, &self.error].into_iter().flat_map(|lane| lane.why_lost());
        lost.next().map_or(Ok(()), |(stream, error)| Err(ConsoleError::Lost { stream, error }))
    }

    /// Prints a last line to standard error, and waits for whoever reads it, though not for long.
    pub fn say_last(&self, line: impl std::fmt::Display) {
        self.say(line);
        let clock = Clock::start();
        while self.error.lock().waiting > 0 {
            let left = GRACE.saturating_sub(clock.now().since(ft_comm::time::Time(0)));
            if left.is_zero() {
                break;
            }
            let mut moved = [PollFd::new(&self.moved, PollFlags::IN)];
            let _ = rustix::event::poll(&mut moved, Some(&timespec(left)));
            let _ = rustix::io::read(&self.moved, &mut [0; 8]);
        }
    }
}

impl Lane {
    fn start(moved: &Arc<OwnedFd>) -> Result<Arc<Self>> {
        let lane = Arc::new(Self::default());
        let (mine, moved) = (lane.clone(), moved.clone());
        // The thread ends with the process: a blocked write cannot be woken.
        let thread = std::thread::Builder::new().name("console".into()).stack_size(STACK_BYTES);
        thread.spawn(move || mine.serve(&moved))?;
        Ok(lane)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, moved: &OwnedFd) {
        loop {
            let mut state = self.lock();
            let (stream, bytes) = loop {
                match state.queue.pop_front() {
                    Some(next) => break next,
                    None => state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner),
                }
            };
            let is_lost = state.lost.iter().any(|(lost, _)| *lost == stream);
            drop(state);
            // If this thread panicked, threads that wait for it would wait forever.
            let result = caught(|| match stream {
                _ if is_lost => Ok(()),
                Stream::Output => write_all(std::io::stdout().as_fd(), &bytes),
                Stream::Error => write_all(std::io::stderr().as_fd(), &bytes),
            });
            let result = result.unwrap_or_else(|why| Err(Error::other(why)));
            let mut state = self.lock();
            state.waiting -= bytes.len();
            state.lost.extend(result.err().map(|error| (stream, Some(error))));
            drop(state);
            let _ = rustix::io::write(moved, &1u64.to_ne_bytes());
        }
    }

    /// Streams that have taken nothing more, each told once.
    fn why_lost(&self) -> Vec<(Stream, Error)> {
        let mut state = self.lock();
        state.lost.iter_mut().filter_map(|(stream, error)| Some((*stream, error.take()?))).collect()
    }
}

/// Whether standard output and standard error lead to the same place.
fn is_one_place() -> bool {
    let place = |fd: BorrowedFd<'_>| rustix::fs::fstat(fd).map(|stat| (stat.st_dev, stat.st_ino));
    let (output, error) = (std::io::stdout(), std::io::stderr());
    place(output.as_fd()).is_ok_and(|output| place(error.as_fd()) == Ok(output))
}

/// Writes all of `bytes`, to a stream that others may have made non-blocking too.
fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let _ = rustix::event::poll(&mut [PollFd::from_borrowed_fd(to, PollFlags::OUT)], None);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn everything_is_written_whatever_the_reader_takes_at_once() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        let bytes: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
        let sent = bytes.clone();
        let thread = std::thread::spawn(move || write_all(writer.as_fd(), &sent));
        let mut got = Vec::new();
        reader.read_to_end(&mut got).unwrap();
        assert!(got == bytes, "{} of {} bytes", got.len(), bytes.len());
        thread.join().unwrap().unwrap();
    }

    #[test]
    fn a_reader_that_has_gone_and_a_full_disk_are_errors() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(write_all(writer.as_fd(), b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        assert_eq!(write_all(full.as_fd(), b"x").unwrap_err().kind(), ErrorKind::StorageFull);
    }
}
