//! What the ranks have to say, as people see it.
//!
//! Once the job is over, ranks that stumble over its end tend to say the same; a line that was printed to
//! standard error by one of them is not printed again for another.

use std::collections::{HashMap, HashSet};
use std::os::fd::BorrowedFd;

use super::console::{Console, Stream};
use ft_proto::rank::{PeerId, Rank};
use ft_proto::wire::agent::Held;

#[derive(Debug)]
pub(super) struct Output {
    console: Console,
    /// Processes that are no spares.
    ranks: HashMap<PeerId, Rank>,
    all_to_stderr: bool,
    tagged: bool,
    /// Lines said since the job was over.
    said: Option<HashSet<Vec<u8>>>,
}

impl Output {
    pub(super) fn new(console: Console, all_to_stderr: bool, tagged: bool) -> Self {
        Self { console, ranks: HashMap::new(), all_to_stderr, tagged, said: None }
    }

    /// A process has this rank from now on.
    pub(super) fn seat(&mut self, peer: PeerId, rank: Rank) {
        self.ranks.insert(peer, rank);
    }

    pub(super) fn job_is_over(&mut self) {
        self.said.get_or_insert_with(HashSet::new);
    }

    /// What of what processes print nobody reads; and what becomes readable when that may have changed.
    pub(super) fn held(&self) -> (Held, BorrowedFd<'_>) {
        let relief = self.console.relief();
        let is_full = |is_error| self.console.is_full(self.stream(is_error));
        (Held { output: is_full(false), error: is_full(true) }, relief)
    }

    /// Where processes' standard error goes, or their standard output.
    fn stream(&self, is_error: bool) -> Stream {
        if is_error || self.all_to_stderr { Stream::Error } else { Stream::Output }
    }

    /// Prints whole lines of a process.
    pub(super) fn print(&mut self, peer: PeerId, error: bool, lines: &[u8]) {
        let label = self.tagged.then(|| match self.ranks.get(&peer) {
            Some(rank) => format!("[{rank}] "),
            None => "[spare] ".to_owned(),
        });
        let mut text = Vec::with_capacity(lines.len());
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            if let (true, Some(said)) = (error, &mut self.said)
                && !said.insert(line.to_vec())
            {
                continue;
            }
            text.extend_from_slice(label.as_deref().unwrap_or_default().as_bytes());
            text.extend_from_slice(line);
        }
        self.console.print(self.stream(error), text);
    }

    /// Prints what the command that starts things on `host` has to say.
    pub(super) fn note(&self, host: &str, lines: &[u8]) {
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            self.console.print(Stream::Error, [b"ftrun: ", host.as_bytes(), b": ", line].concat());
        }
    }
}
