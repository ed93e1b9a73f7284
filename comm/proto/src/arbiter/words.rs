//! What a process has printed to standard error that tells why it ended: its last lines, and its
//! last panic.

use std::collections::VecDeque;

/// So many lines, of so many characters each.
const LINES: usize = 4;
const CHARS: usize = 200;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Words {
    lines: VecDeque<String>,
    /// The beginning of a line that has not ended.
    beginning: Vec<u8>,
}

impl Words {
    /// It has printed these lines, of which the last may be no more than its beginning.
    pub(super) fn add(&mut self, lines: &[u8]) {
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let room = (4 * CHARS).saturating_sub(self.beginning.len());
            self.beginning.extend_from_slice(&line[..room.min(line.len())]);
            if line.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.beginning);
        let line = String::from_utf8_lossy(&line);
        let plain = plain(line.trim(), CHARS);
        if plain.is_empty() {
            return;
        }
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(plain);
    }

    /// ": they"; nothing if there are none.
    pub(super) fn end_of_sentence(mut self) -> String {
        self.end_line();
        self.lines.into_iter().enumerate().fold(String::new(), |text, (at, line)| {
            let join = if at == 0 { ": " } else { "; " };
            text + join + &line
        })
    }
}

/// Where Rust prints a panic: `thread 'main' (7) panicked at src/main.rs:3:5:`, and the message in
/// the lines after it.
const PANICKED: &str = " panicked at ";
/// Lines and characters of a message that are kept.
const MESSAGE_LINES: usize = 3;
const MESSAGE_CHARS: usize = 300;

/// The last panic that a process has printed.
#[derive(Debug, Default)]
pub(super) struct LastPanic {
    text: Option<String>,
    /// Lines of its message that may still follow.
    follow: usize,
}

impl LastPanic {
    /// The process has printed these lines.
    pub(super) fn look(&mut self, lines: &[u8]) {
        let text = String::from_utf8_lossy(lines);
        for line in text.lines() {
            let at = line.strip_prefix("thread '").and_then(|line| line.split_once(PANICKED));
            if let Some((_, at)) = at {
                self.text = Some(format!("it panicked at {}", plain(at, CHARS)));
                self.follow = MESSAGE_LINES;
            } else if let Some(panic) = self.text.as_mut().filter(|_| self.follow > 0) {
                let is_message = !line.starts_with("note: ") && line != "stack backtrace:";
                self.follow = if is_message { self.follow - 1 } else { 0 };
                if is_message && panic.chars().count() < MESSAGE_CHARS {
                    panic.push(' ');
                    *panic += &plain(line.trim(), MESSAGE_CHARS);
                }
            }
        }
    }

    /// ": it panicked at src/main.rs:3:5: with this message"; nothing if it has not.
    pub(super) fn end_of_sentence(self) -> String {
        self.text.map_or_else(String::new, |text| format!(": {}", text.trim_end()))
    }
}

/// The first characters that show themselves.
fn plain(text: &str, most: usize) -> String {
    text.chars().filter(|char| !char.is_control()).take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_line_are_one_line() {
        let mut words = Words::default();
        ["  cannot ", "start\nno ", "\n", "\n", "memory"]
            .iter()
            .for_each(|piece| words.add(piece.as_bytes()));
        assert_eq!(words.end_of_sentence(), ": cannot start; no; memory");
    }

    #[test]
    fn the_last_lines_are_kept_and_none_is_long() {
        let mut words = Words::default();
        (0..9).for_each(|number| words.add(format!("{number}\n").as_bytes()));
        (0..99).for_each(|_| words.add(&[b'x'; 100]));
        let long = "x".repeat(CHARS);
        assert_eq!(words.end_of_sentence(), format!(": 6; 7; 8; {long}"));
    }

    #[test]
    fn the_last_panic_is_kept_with_its_message_and_without_its_backtrace() {
        let said = |pieces: &[&str]| {
            let mut panic = LastPanic::default();
            pieces.iter().for_each(|piece| panic.look(piece.as_bytes()));
            panic.end_of_sentence()
        };
        assert_eq!(said(&["step 7\n", "no panic at all\n"]), "");
        let trace = "stack backtrace:\n   0: main\n             at ./src/main.rs:3:5\nnote: Some details\n";
        let first = "thread 'main' (7) panicked at src/main.rs:3:5:\n";
        assert_eq!(
            said(&["step\n", first, "index out of bounds\n", trace]),
            ": it panicked at src/main.rs:3:5: index out of bounds"
        );
        assert_eq!(
            said(&[first, "assertion failed\n  left: 1\n right: 2\n", trace, "bye\n"]),
            ": it panicked at src/main.rs:3:5: assertion failed left: 1 right: 2"
        );
        let second = "thread 'main' (7) panicked at src/b.rs:1:1:\nlast\n";
        assert_eq!(
            said(&[first, "first\n", second, "step\n", trace]),
            ": it panicked at src/b.rs:1:1: last step"
        );
        let long = said(&[first, &"x\u{7}".repeat(10_000)]);
        assert!(long.len() < 400 && long.ends_with("xxx"), "{long}");
    }
}
