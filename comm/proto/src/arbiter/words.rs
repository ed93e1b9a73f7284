//! The last lines that a process has printed.

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
        let plain: String = line.trim().chars().filter(|char| !char.is_control()).take(CHARS).collect();
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
}
