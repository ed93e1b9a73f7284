//! The last lines that a process has printed.

use std::collections::VecDeque;

/// So many lines, of so many characters each.
const LINES: usize = 4;
const CHARS: usize = 200;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Words(VecDeque<String>);

impl Words {
    /// It has printed these lines.
    pub(super) fn add(&mut self, lines: &[u8]) {
        let text = String::from_utf8_lossy(lines);
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if self.0.len() == LINES {
                self.0.pop_front();
            }
            let plain = line.chars().filter(|char| !char.is_control());
            self.0.push_back(plain.take(CHARS).collect());
        }
    }

    /// ": they"; nothing if there are none.
    pub(super) fn end_of_sentence(self) -> String {
        self.0.into_iter().enumerate().fold(String::new(), |text, (at, line)| {
            let join = if at == 0 { ": " } else { "; " };
            text + join + &line
        })
    }
}
