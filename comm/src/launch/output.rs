//! Forwards the output of the ranks in whole lines.
//!
//! Once the job is over, ranks that stumble over its end tend to say the same; a line that was printed to
//! standard error by one of them is not printed again for another.

use std::collections::HashSet;
use std::io::{ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{ChildStderr, ChildStdout};

use crate::rank::{PeerId, Rank};

/// A line that is longer than this is forwarded in pieces.
const LINE_BYTES_MAX: usize = 64 << 10;

#[derive(Debug)]
struct Stream {
    peer: PeerId,
    /// None while it is a spare's.
    rank: Option<Rank>,
    error: bool,
    fd: OwnedFd,
    partial: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Output {
    streams: Vec<Stream>,
    all_to_stderr: bool,
    tagged: bool,
    /// Lines said since the job was over.
    said: Option<HashSet<Vec<u8>>>,
}

impl Output {
    pub(super) fn new(all_to_stderr: bool, tagged: bool) -> Self {
        Self { streams: vec![], all_to_stderr, tagged, said: None }
    }

    pub(super) fn add(&mut self, peer: PeerId, rank: Option<Rank>, stdout: ChildStdout, stderr: ChildStderr) {
        let stream = |error, fd| Stream { peer, rank, error, fd, partial: vec![] };
        self.streams.push(stream(false, stdout.into()));
        self.streams.push(stream(true, stderr.into()));
    }

    /// A spare has got a rank.
    pub(super) fn seat(&mut self, peer: PeerId, rank: Rank) {
        let streams = self.streams.iter_mut().filter(|stream| stream.peer == peer);
        streams.for_each(|stream| stream.rank = Some(rank));
    }

    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.streams.iter().map(|stream| stream.fd.as_fd())
    }

    pub(super) fn job_is_over(&mut self) {
        self.said.get_or_insert_with(HashSet::new);
    }

    /// Forwards what has come.
    pub(super) fn pump(&mut self) {
        let mut streams = std::mem::take(&mut self.streams);
        streams.retain_mut(|stream| self.forward(stream));
        self.streams = streams;
    }

    /// Forwards the rest; lines that never ended end here.
    pub(super) fn finish(&mut self) {
        self.pump();
        for mut stream in std::mem::take(&mut self.streams) {
            self.end(&mut stream);
        }
    }

    fn forward(&mut self, stream: &mut Stream) -> bool {
        let mut buffer = [0; 16 << 10];
        loop {
            let count = match rustix::io::read(&stream.fd, &mut buffer).map_err(std::io::Error::from) {
                Ok(0) => {
                    self.end(stream);
                    return false;
                }
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            };
            stream.partial.extend_from_slice(&buffer[..count]);
            let whole = stream.partial.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
            let whole = whole.or((stream.partial.len() > LINE_BYTES_MAX).then_some(stream.partial.len()));
            if let Some(whole) = whole {
                let lines: Vec<u8> = stream.partial.drain(..whole).collect();
                self.print(stream, &lines);
            }
        }
    }

    fn end(&mut self, stream: &mut Stream) {
        if !stream.partial.is_empty() {
            let mut line = std::mem::take(&mut stream.partial);
            line.push(b'\n');
            self.print(stream, &line);
        }
    }

    fn print(&mut self, stream: &Stream, lines: &[u8]) {
        let mut text = Vec::with_capacity(lines.len());
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            if let (true, Some(said)) = (stream.error, &mut self.said)
                && !said.insert(line.to_vec())
            {
                continue;
            }
            if self.tagged {
                let label = stream.rank.map_or("spare".to_owned(), |rank| rank.to_string());
                text.extend_from_slice(format!("[{label}] ").as_bytes());
            }
            text.extend_from_slice(line);
        }
        // A closed terminal is no reason to end the job.
        let _ = if stream.error || self.all_to_stderr {
            std::io::stderr().lock().write_all(&text)
        } else {
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(&text).and_then(|()| stdout.flush())
        };
    }
}
