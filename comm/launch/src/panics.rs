//! Panics of programs on standard error. A program that panics on one rank tends to do so on all of
//! them, and again when it is replaced: each panic is shown with its message, but a backtrace only
//! where no process has printed the same panic before.

use std::collections::{HashMap, HashSet};

use ft_proto::rank::PeerId;

/// What Rust prints of a panic: where, the message, and then the backtrace, whose lines are
/// indented.
const THREAD: &[u8] = b"thread '";
const PANICKED: &[u8] = b" panicked at ";
const BACKTRACE: &[u8] = b"stack backtrace:\n";
const NOTE: &[u8] = b"note: ";
/// In the place of a backtrace.
const ABOVE: &[u8] = b"stack backtrace: as printed before for the same panic\n";
/// Panics that are told apart.
const PANICS_MAX: usize = 1000;

/// What the next line of a process belongs to.
#[derive(Debug)]
enum State {
    /// The message of a panic at this place.
    Place(Vec<u8>),
    /// More of the message, or the backtrace: of a panic that is known already, or not.
    Message { is_known: bool },
    /// A backtrace.
    Trace { is_known: bool },
}

/// The panics that processes have printed.
#[derive(Debug, Default)]
pub(super) struct Panics {
    known: HashSet<Vec<u8>>,
    /// Of processes that are about to print a panic.
    states: HashMap<PeerId, State>,
}

impl Panics {
    /// Whole lines of a process, without backtraces that were shown before.
    pub(super) fn without_repeats(&mut self, peer: PeerId, lines: Vec<u8>) -> Vec<u8> {
        if !self.states.contains_key(&peer) && !contains(&lines, PANICKED) {
            return lines; // as nearly always
        }
        let mut shown = Vec::with_capacity(lines.len());
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            self.line(peer, line, &mut shown);
        }
        shown
    }

    /// The process has ended.
    pub(super) fn ended(&mut self, peer: PeerId) {
        self.states.remove(&peer);
    }

    fn line(&mut self, peer: PeerId, line: &[u8], shown: &mut Vec<u8>) {
        if line.starts_with(THREAD) && contains(line, PANICKED) {
            // The number of the thread before it is another each time.
            let place = line.windows(PANICKED.len()).position(|part| part == PANICKED).unwrap_or(0);
            self.states.insert(peer, State::Place(line[place..].to_vec()));
            return shown.extend_from_slice(line);
        }
        let state = self.states.remove(&peer);
        let next = match state {
            None => None,
            Some(State::Place(mut panic)) => {
                panic.extend_from_slice(line);
                let is_known = self.known.contains(&panic);
                if !is_known && self.known.len() < PANICS_MAX {
                    self.known.insert(panic);
                }
                Some(State::Message { is_known })
            }
            Some(State::Message { is_known }) if line == BACKTRACE => {
                self.states.insert(peer, State::Trace { is_known });
                return shown.extend_from_slice(if is_known { ABOVE } else { line });
            }
            Some(State::Message { is_known: true } | State::Trace { is_known: true })
                if line.starts_with(NOTE) =>
            {
                return; // how to get a backtrace, or a longer one
            }
            Some(State::Message { .. }) if line.starts_with(NOTE) => None,
            Some(State::Message { is_known }) => Some(State::Message { is_known }),
            Some(State::Trace { is_known }) if line.starts_with(b" ") => {
                self.states.insert(peer, State::Trace { is_known });
                return shown.extend_from_slice(if is_known { b"" } else { line });
            }
            Some(State::Trace { .. }) => None,
        };
        next.into_iter().for_each(|next| _ = self.states.insert(peer, next));
        shown.extend_from_slice(line);
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panic(thread: u32, message: &str) -> String {
        format!("thread 'main' ({thread}) panicked at src/main.rs:3:5:\n{message}\n")
    }

    const TRACE: &str = "stack backtrace:\n   0: main::step\n             at ./src/main.rs:3:5\n";
    const NOTES: &str = "note: Some details are omitted\n";

    #[test]
    fn a_backtrace_is_shown_once_and_each_message_always() {
        let mut panics = Panics::default();
        let mut show = |peer: u32, text: &str| {
            String::from_utf8(panics.without_repeats(PeerId(peer), text.into())).unwrap()
        };
        assert_eq!(show(1, "step 7\n"), "step 7\n");
        let first = panic(1, "out of bounds") + TRACE + NOTES;
        assert_eq!(show(1, &format!("step 8\n{first}")), format!("step 8\n{first}"));
        // Of another rank, in pieces, with lines of other processes between them.
        let again = panic(9, "out of bounds");
        assert_eq!(show(2, &again), again);
        assert_eq!(show(3, "step 9\n"), "step 9\n");
        assert_eq!(show(2, "stack backtrace:\n   0: main::step\n").as_bytes(), ABOVE);
        assert_eq!(show(2, "             at ./src/main.rs:3:5\n"), "");
        assert_eq!(show(2, NOTES), "");
        assert_eq!(show(2, "note: ours\n"), "note: ours\n");
        // Another message at the same place.
        let other = panic(1, "not a number") + TRACE + NOTES;
        assert_eq!(show(2, &other), other);
    }

    #[test]
    fn what_is_no_backtrace_is_never_left_out() {
        let mut panics = Panics::default();
        let text = panic(1, "x")
            + "note: run with `RUST_BACKTRACE=1`\n"
            + " indented\nstack backtrace:\n  not one\n";
        let shown = panics.without_repeats(PeerId(1), text.clone().into());
        assert_eq!(String::from_utf8_lossy(&shown), text);
        let again = String::from_utf8(panics.without_repeats(PeerId(2), text.into())).unwrap();
        assert!(again.contains(" indented\nstack backtrace:\n  not one\n"), "{again}");
        let cut = panic(1, "x");
        panics.without_repeats(PeerId(3), cut[..20].into());
        panics.ended(PeerId(3));
        assert_eq!(panics.without_repeats(PeerId(3), b" indented\n".to_vec()), b" indented\n");
    }
}
