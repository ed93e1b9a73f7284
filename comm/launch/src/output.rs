//! What the ranks have to say, as people see it.
//!
//! Once the job is over, ranks that stumble over its end tend to say the same; a line that was printed to
//! standard error by one of them is not printed again for another.

use std::collections::{HashMap, HashSet};
use std::os::fd::BorrowedFd;

use super::console::{Console, Stream};
use super::line_merger::Source;
use super::spec::OutputForm;
use ft_proto::rank::{PeerId, Rank};
use ft_proto::wire::agent::Held;

#[derive(Debug)]
pub(super) struct Output {
    console: Console,
    /// Processes that are no spares.
    ranks: HashMap<PeerId, Rank>,
    all_to_stderr: bool,
    form: OutputForm,
    /// Lines said since the job was over.
    said: Option<HashSet<Vec<u8>>>,
}

impl Output {
    pub(super) fn new(console: Console, all_to_stderr: bool, form: OutputForm) -> Self {
        Self { console, ranks: HashMap::new(), all_to_stderr, form, said: None }
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

    /// Prints lines of a process, of which the last may be no more than its beginning.
    pub(super) fn print(&mut self, peer: PeerId, error: bool, lines: &[u8]) {
        let stream = self.stream(error);
        let label = match (self.form, self.ranks.get(&peer)) {
            (OutputForm::Raw, _) => return self.console.print_of(Source::Raw, stream, b"", lines),
            (OutputForm::Lines, _) => String::new(),
            (OutputForm::Tagged, Some(rank)) => format!("[{rank}] "),
            (OutputForm::Tagged, None) => "[spare] ".to_owned(),
        };
        let source = Source::Process { peer, error };
        let Some(said) = self.said.as_mut().filter(|_| error) else {
            return self.console.print_of(source, stream, label.as_bytes(), lines);
        };
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            if !line.ends_with(b"\n") || said.insert(line.to_vec()) {
                self.console.print_of(source, stream, label.as_bytes(), line);
            }
        }
    }

    /// Prints a line of the launcher.
    pub(super) fn say(&self, line: impl std::fmt::Display) {
        self.console.say(line);
    }

    /// Prints what the command that starts things on `host`, the process `peer`, has to say.
    pub(super) fn note(&self, peer: PeerId, host: &str, lines: &[u8]) {
        let source = Source::Process { peer, error: true };
        self.console.print_of(source, Stream::Error, format!("ftrun: {host}: ").as_bytes(), lines);
    }
}
