//! `ftrun top`: how a job is, drawn again every second on a terminal. Where there is none it is said once.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use ft_launch::{Inquiry, InquiryError};

use super::Refusal;
use super::words::{self, Line};
use crate::say::{can_draw, page};

/// From one look to the next.
const PAUSE: Duration = Duration::from_secs(1);
/// Size of a terminal that does not say how large it is.
const ROWS_AND_COLUMNS: (usize, usize) = (24, 80);
/// The cursor goes to the first column of the first line (ECMA-48).
const HOME: &str = "\x1b[H";
/// What is behind the cursor in its line is erased.
const ERASE_LINE: &str = "\x1b[K";
/// What is behind the cursor on the screen is erased.
const ERASE_REST: &str = "\x1b[J";

/// Draws until the job has ended.
pub(super) fn run(mut inquiry: Inquiry) -> Result<ExitCode, Refusal> {
    if !can_draw(std::io::stdout()) {
        return Ok(page(words::text(&words::status(&inquiry.status()?))));
    }
    loop {
        match look(&mut inquiry) {
            Ok(true) => {}
            Ok(false) => return Ok(ExitCode::SUCCESS), // nobody looks any more
            Err(ended @ InquiryError::Ended { .. }) => return Ok(page(format!("{ended}\n"))),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Draws once, and stays for a while; false if the terminal is gone.
fn look(inquiry: &mut Inquiry) -> Result<bool, InquiryError> {
    let status = inquiry.status()?;
    if !can_draw(std::io::stdout()) {
        // In the background, or too narrow for now.
        return inquiry.stay(PAUSE).map(|()| true);
    }
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    let size = size.map(|size| (usize::from(size.ws_row), usize::from(size.ws_col)));
    let size = size.filter(|(rows, columns)| *rows > 0 && *columns > 0).unwrap_or(ROWS_AND_COLUMNS);
    let colored = AutoStream::choice(&std::io::stdout()) != ColorChoice::Never;
    let drawn = drawing(words::status(&status), size, colored);
    let mut stdout = std::io::stdout().lock();
    if stdout.write_all(drawn.as_bytes()).and_then(|()| stdout.flush()).is_err() {
        return Ok(false);
    }
    inquiry.stay(PAUSE).map(|()| true)
}

/// What draws these lines over those of before. Lines that are too long are cut, and the last line says how many do not fit.
fn drawing(mut lines: Vec<Line>, (rows, columns): (usize, usize), colored: bool) -> String {
    // One line is left for the cursor.
    let room = rows.saturating_sub(1).max(1);
    if lines.len() > room {
        let more = lines.len() - (room - 1);
        lines.truncate(room - 1);
        lines.push(Line { style: Default::default(), text: format!("... and {more} lines more") });
    }
    let line = |Line { style, text }: Line| {
        let text: String = text.chars().take(columns).collect();
        match colored {
            true => format!("{style}{text}{style:#}{ERASE_LINE}\n"),
            false => format!("{text}{ERASE_LINE}\n"),
        }
    };
    let drawn: String = lines.into_iter().map(line).collect();
    format!("{HOME}{drawn}{ERASE_REST}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_for_the_screen_is_cut() {
        let line = |text: &str| Line { style: Default::default(), text: text.into() };
        let lines = || vec![line("one two"), line("three"), line("four"), line("five")];
        let bare = |text: String| text.replace(ERASE_LINE, "").replace("\n", "|");
        let all = bare(drawing(lines(), (24, 80), false));
        assert_eq!(all, format!("{HOME}one two|three|four|five|{ERASE_REST}"));
        let some = bare(drawing(lines(), (4, 3), false));
        assert_eq!(some, format!("{HOME}one|thr|...|{ERASE_REST}"));
        assert!(bare(drawing(lines(), (4, 80), false)).contains("|... and 2 lines more|"));
        assert!(bare(drawing(lines(), (0, 80), true)).contains("... and 4 lines more|"));
    }
}
