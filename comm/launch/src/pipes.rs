//! What processes of this host print: whole lines, and the beginning of a line whose end is not
//! printed soon.

use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use ft_comm::time::Time;
use ft_proto::rank::PeerId;
use ft_proto::wire::agent::Held;

/// A line that is longer than this is forwarded in pieces. So much memory a stream may take.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Bytes that a pipe takes all at once or not at all. C libraries collect as many before they write
/// to a pipe.
const BLOCK: usize = 4096;
/// How long the beginning of a line waits for the rest: a prompt, or a mark of progress.
const PAUSE: Duration = Duration::from_millis(250);
/// How long the beginning of a line waits since its last byte if it takes several writes: its
/// writer may be starved.
const LONG_PAUSE: Duration = Duration::from_secs(1);

/// How much is read of a process before others have their turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing: it stays where it is.
    None,
    /// What a pipe usually holds.
    One,
    /// More than a pipe holds: the process has died.
    Last,
}

impl Turn {
    /// In pieces of 16 KiB.
    fn pieces(self) -> usize {
        match self {
            Self::None => 0,
            Self::One => 4,
            Self::Last => 128,
        }
    }
}

#[derive(Debug)]
struct Stream {
    peer: PeerId,
    error: bool,
    fd: OwnedFd,
    beginning: Beginning,
}

/// The beginning of a line, which waits for its end.
#[derive(Debug, Default)]
struct Beginning {
    bytes: Vec<u8>,
    /// When its first byte was read, and its last.
    since: Time,
    last: Time,
    /// Bytes of the stream up to here.
    total: u64,
}

/// Lines of a process: the process, whether to standard error, and the lines, each with its end but
/// perhaps the last.
pub(super) type Lines<'a> = &'a mut dyn FnMut(PeerId, bool, Vec<u8>);

#[derive(Debug, Default)]
pub(super) struct Pipes {
    streams: Vec<Stream>,
    /// Bytes are handed on as they are read, whatever they are.
    raw: bool,
}

impl Pipes {
    /// Reads the standard output of a process, and its standard error.
    ///
    /// # Errors
    /// They cannot be read without waiting for them.
    pub(super) fn add(&mut self, peer: PeerId, output: [OwnedFd; 2]) -> std::io::Result<()> {
        for (error, fd) in [false, true].into_iter().zip(output) {
            rustix::io::ioctl_fionbio(&fd, true)?;
            self.streams.push(Stream { peer, error, fd, beginning: Beginning::default() });
        }
        Ok(())
    }

    /// Those of which nothing is held.
    pub(super) fn fds(&self, held: Held) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.streams.iter().filter(move |stream| !held.has(stream.error)).map(|stream| stream.fd.as_fd())
    }

    /// From now on bytes are handed on as they are read: nobody puts lines together.
    pub(super) fn pass_unchanged(&mut self) {
        self.raw = true;
    }

    /// When the beginning of a line has waited long enough, of those streams of which nothing is
    /// held.
    pub(super) fn due(&self, held: Held) -> Option<Time> {
        let streams = self.streams.iter().filter(|stream| !held.has(stream.error));
        streams.filter_map(|stream| stream.beginning.due()).min()
    }

    /// Hands on what has come, of each stream as much as its turn allows: whose it is, and whether it is standard error.
    pub(super) fn pump(&mut self, now: Time, turn: impl Fn(PeerId, bool) -> Turn, lines: Lines<'_>) {
        let raw = self.raw;
        self.streams.retain_mut(|stream| stream.pump(now, turn(stream.peer, stream.error), raw, lines));
    }

    /// Hands on the rest.
    pub(super) fn finish(&mut self, now: Time, lines: Lines<'_>) {
        self.pump(now, |_, _| Turn::Last, lines);
        self.streams.drain(..).for_each(|mut stream| stream.end(lines));
    }
}

impl Stream {
    /// False when there will be no more.
    fn pump(&mut self, now: Time, turn: Turn, raw: bool, lines: Lines<'_>) -> bool {
        let mut buffer = [0; 16 << 10];
        for _ in 0..turn.pieces() {
            match rustix::io::read(&self.fd, &mut buffer).map_err(std::io::Error::from) {
                Ok(0) => {
                    self.end(lines);
                    return false;
                }
                Ok(count) => {
                    let ready = self.beginning.add(now, &buffer[..count], raw);
                    self.hand_on(ready, lines);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.end(lines);
                    return false;
                }
            }
        }
        if turn != Turn::None && self.beginning.due().is_some_and(|due| due <= now) {
            self.end(lines);
        }
        true
    }

    fn hand_on(&self, bytes: Vec<u8>, lines: Lines<'_>) {
        if !bytes.is_empty() {
            lines(self.peer, self.error, bytes);
        }
    }

    /// Hands on the beginning of a line that nothing follows for now.
    fn end(&mut self, lines: Lines<'_>) {
        let beginning = std::mem::take(&mut self.beginning.bytes);
        self.hand_on(beginning, lines);
    }
}

impl Beginning {
    /// Adds what was read; gives all that is to be handed on: whole lines, and more if there is too
    /// much of a line or with `raw`.
    fn add(&mut self, now: Time, bytes: &[u8], raw: bool) -> Vec<u8> {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map(|at| self.bytes.len() + at + 1);
        if self.bytes.is_empty() || whole.is_some() {
            self.since = now;
        }
        self.last = now;
        self.total += bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        let all = raw || whole.is_none() && self.bytes.len() >= LINE_BYTES_MAX;
        let ready = if all { self.bytes.len() } else { whole.unwrap_or(0) };
        self.bytes.drain(..ready).collect()
    }

    /// When it has waited long enough, if time matters: at the border of a block the rest is likely
    /// to come with the next one.
    fn due(&self) -> Option<Time> {
        match self.bytes.len() {
            0 => None,
            _ if self.total.is_multiple_of(BLOCK as u64) => None,
            count if count < BLOCK => Some(self.since.after(PAUSE)),
            _ => Some(self.last.after(LONG_PAUSE)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{PipeWriter, Write};

    use super::*;

    const PEER: PeerId = PeerId(7);

    fn at(millis: u64) -> Time {
        Time(0).after(Duration::from_millis(millis))
    }

    /// The standard output of a process, and where it writes to.
    fn pipes() -> (Pipes, PipeWriter) {
        let (output, stdout) = std::io::pipe().unwrap();
        let (error, _) = std::io::pipe().unwrap();
        let mut pipes = Pipes::default();
        pipes.add(PEER, [output.into(), error.into()]).unwrap();
        (pipes, stdout)
    }

    fn pumped(pipes: &mut Pipes, now: Time) -> String {
        let mut text = Vec::new();
        pipes.pump(now, |_, _| Turn::One, &mut |_, _, lines| text.extend(lines));
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn the_beginning_of_a_line_is_shown_after_a_pause() {
        let (mut pipes, mut stdout) = pipes();
        stdout.write_all(b"one\nN = ").unwrap();
        assert_eq!(pumped(&mut pipes, at(1000)), "one\n");
        assert_eq!(pipes.due(Held::default()), Some(at(1250)));
        assert_eq!(pipes.due(Held { output: true, error: false }), None, "nobody takes it");
        // Bytes that follow soon do not put it off.
        stdout.write_all(b"?").unwrap();
        assert_eq!(pumped(&mut pipes, at(1200)), "");
        assert_eq!(pumped(&mut pipes, at(1250)), "N = ?");
        assert_eq!(pipes.due(Held::default()), None);
        stdout.write_all(b"42\n").unwrap();
        assert_eq!(pumped(&mut pipes, at(1250)), "42\n");
    }

    #[test]
    fn no_line_end_is_added_at_the_end_of_a_stream() {
        let (mut pipes, mut stdout) = pipes();
        stdout.write_all(b"42").unwrap();
        drop(stdout);
        assert_eq!(pumped(&mut pipes, at(1)), "42");
        assert_eq!(pipes.streams.len(), 0);
    }

    #[test]
    fn long_lines_stay_whole_while_their_writer_is_starved() {
        let (mut pipes, mut stdout) = pipes();
        let half = "x".repeat(30_001);
        stdout.write_all(half.as_bytes()).unwrap();
        assert_eq!(pumped(&mut pipes, at(0)), "");
        assert_eq!(pumped(&mut pipes, at(999)), "");
        stdout.write_all(format!("{half}\n").as_bytes()).unwrap();
        assert_eq!(pumped(&mut pipes, at(999)), format!("{half}{half}\n"));
    }

    #[test]
    fn lines_of_a_program_that_writes_blocks_are_not_cut_where_a_block_ends() {
        let (mut pipes, mut stdout) = pipes();
        let line = format!("{}\n", "x".repeat(2999));
        stdout.write_all(&line.repeat(2).as_bytes()[..BLOCK]).unwrap();
        assert_eq!(pumped(&mut pipes, at(0)), line);
        assert_eq!(pumped(&mut pipes, at(1_000_000)), "");
        stdout.write_all(&line.repeat(2).as_bytes()[BLOCK..]).unwrap();
        assert_eq!(pumped(&mut pipes, at(1_000_000)), line);
    }

    #[test]
    fn a_line_without_an_end_takes_bounded_memory() {
        let mut beginning = Beginning::default();
        let piece = [b'x'; 16 << 10];
        let handed: usize = (0..1000).map(|_| beginning.add(at(0), &piece, false).len()).sum();
        assert!(beginning.bytes.len() < LINE_BYTES_MAX);
        assert_eq!(handed + beginning.bytes.len(), 1000 * piece.len());
    }

    #[test]
    fn bytes_pass_as_they_are_read_where_that_is_wanted() {
        let (mut pipes, mut stdout) = pipes();
        pipes.pass_unchanged();
        stdout.write_all(b"a\rb").unwrap();
        assert_eq!(pumped(&mut pipes, at(0)), "a\rb");
    }
}
