//! Lines of several sources on their way to one place, where no line is mixed with one of another
//! source.
//!
//! A source that has printed the beginning of a line keeps the line until another source prints
//! something. Then the line is ended for it, and the rest begins with a mark ([`CONTINUED`]).

use std::collections::HashSet;

use ft_proto::rank::PeerId;

/// Stands before the rest of a line that another source has interrupted.
const CONTINUED: &[u8] = b"... ";
/// Goes to the beginning of the line on a terminal, and clears it (ECMA-48).
pub(super) const CLEAR_LINE: &[u8] = b"\r\x1b[2K";

/// The source of some output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    /// The launcher itself.
    Launcher,
    /// Its display of progress on a terminal, which can be cleared and drawn again.
    Display,
    /// Standard output or standard error of a process.
    Process { peer: PeerId, error: bool },
    /// All processes, whose bytes pass unchanged.
    Raw,
}

/// Puts output of several sources together.
#[derive(Debug, Default)]
pub(super) struct LineMerger {
    /// The source whose line has not ended.
    open: Option<Source>,
    /// Sources whose lines were interrupted.
    interrupted: HashSet<Source>,
}

impl LineMerger {
    /// Appends `bytes` of `source` to `text`, `label` before each line of them.
    pub(super) fn merge(&mut self, source: Source, label: &[u8], bytes: &[u8], text: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        match self.open.filter(|open| *open != source) {
            None => {}
            Some(Source::Display) => text.extend_from_slice(CLEAR_LINE),
            Some(open) => {
                text.push(b'\n');
                if matches!(open, Source::Process { .. }) {
                    self.interrupted.insert(open);
                }
            }
        }
        let mut continues = self.open != Some(source) && self.interrupted.remove(&source);
        let mut begins = self.open != Some(source);
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            // The line that it ends was ended by the interruption.
            let is_ended = continues && line == b"\n";
            if begins && !is_ended {
                text.extend_from_slice(label);
                text.extend_from_slice(if continues { CONTINUED } else { b"" });
            }
            text.extend_from_slice(if is_ended { b"" } else { line });
            (begins, continues) = (true, false);
        }
        let is_whole = bytes.ends_with(b"\n") || source == Source::Display && bytes.ends_with(CLEAR_LINE);
        self.open = (!is_whole).then_some(source);
    }

    /// Whether a process has printed the beginning of a line, and nothing since.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.open, Some(Source::Process { .. } | Source::Raw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn rank(number: u32) -> Source {
        Source::Process { peer: PeerId(number), error: false }
    }

    fn merged(pieces: &[(Source, &str, &str)]) -> String {
        let (mut merger, mut text) = (LineMerger::default(), Vec::new());
        pieces.iter().for_each(|(source, label, bytes)| {
            merger.merge(*source, label.as_bytes(), bytes.as_bytes(), &mut text);
        });
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn pieces_of_one_line_stay_together_under_one_label() {
        let pieces = [(rank(0), "[0] ", "N = "), (rank(0), "[0] ", "42\nright\n"), (rank(1), "[1] ", "x")];
        assert_eq!(merged(&pieces), "[0] N = 42\n[0] right\n[1] x");
    }

    #[test]
    fn the_rest_of_an_interrupted_line_is_marked() {
        let pieces = [(rank(0), "", "N = "), (rank(1), "", "one\n"), (rank(0), "", "42\nright\n")];
        assert_eq!(merged(&pieces), "N = \none\n... 42\nright\n");
        let pieces = [(rank(0), "[0] ", "a"), (Source::Launcher, "", "lost\n"), (rank(0), "[0] ", "b")];
        assert_eq!(merged(&pieces), "[0] a\nlost\n[0] ... b");
    }

    #[test]
    fn the_end_of_an_interrupted_line_adds_no_empty_line() {
        let pieces = [(rank(0), "", "a"), (rank(1), "", "b\n"), (rank(0), "", "\n\nc\n")];
        assert_eq!(merged(&pieces), "a\nb\n\nc\n");
    }

    #[test]
    fn bytes_that_pass_unchanged_get_no_mark() {
        let pieces = [(Source::Raw, "", "a"), (Source::Raw, "", "b"), (Source::Launcher, "", "lost\n")];
        assert_eq!(merged(&[&pieces[..], &[(Source::Raw, "", "c\n")]].concat()), "ab\nlost\nc\n");
    }

    #[test]
    fn the_display_of_progress_makes_room_for_lines() {
        let pieces = [(Source::Display, "", "50 %"), (rank(0), "", "x\n"), (Source::Display, "", "60 %")];
        assert_eq!(merged(&pieces), "50 %\r\x1b[2Kx\n60 %");
        let cleared = [(Source::Display, "", "50 %"), (Source::Display, "", "\r\x1b[2K")];
        assert_eq!(merged(&[&cleared[..], &[(rank(0), "", "x\n")]].concat()), "50 %\r\x1b[2Kx\n");
    }
}
