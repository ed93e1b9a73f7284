//! What this program itself says to people: in colors on a terminal, unless `NO_COLOR` or `CLICOLOR=0` says otherwise. An end of
//! a stream is an error, and never a panic. While a job runs, its console prints.

use std::fmt::Display;
use std::io::{IsTerminal, Write as _};
use std::os::fd::AsFd;
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use clap::builder::styling::{AnsiColor, Style};
use ft_comm::limits;

const WRONG: Style = AnsiColor::Red.on_default().bold();
const NEWS: Style = Style::new().bold();

/// Fewest columns of a terminal that is drawn on. A new pseudo-terminal has 0 columns until its
/// size is set, as in containers and under `ssh -tt` without a terminal.
const COLUMNS_LEAST: u16 = 20;

/// Returns `true` if lines of this stream can be drawn over: it is a terminal that can move its
/// cursor and is wide enough, and this process is not in the background of it.
pub(crate) fn can_draw(stream: impl AsFd + IsTerminal) -> bool {
    let columns = rustix::termios::tcgetwinsize(&stream).map_or(0, |size| size.ws_col);
    let is_dumb = std::env::var_os("TERM").is_some_and(|kind| kind == "dumb");
    // A terminal that controls no session has no background.
    let foreground = rustix::termios::tcgetpgrp(&stream);
    let is_behind = foreground.is_ok_and(|group| group != rustix::process::getpgrp());
    stream.is_terminal() && !is_dumb && columns >= COLUMNS_LEAST && !is_behind
}

/// A line for standard error: something went wrong.
pub(crate) fn wrong(text: impl Display) -> String {
    line(WRONG, &text)
}

/// A line for standard error: something has happened.
pub(crate) fn news(text: impl Display) -> String {
    line(NEWS, &text)
}

fn line(style: Style, text: &dyn Display) -> String {
    match AutoStream::choice(&std::io::stderr()) {
        ColorChoice::Never => anstream::adapter::strip_str(&format!("ftrun: {text}")).to_string(),
        _ => format!("{style}ftrun:{style:#} {text}"),
    }
}

/// Says on standard error that something went wrong. If nobody listens, the exit status still tells.
pub(crate) fn complain(text: impl Display) {
    let _ = writeln!(std::io::stderr(), "{}", wrong(text));
}

/// Says the same as a rank, whose lines the launcher tells from its own.
pub(crate) fn as_rank(text: impl Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Prints to standard output.
///
/// # Errors
/// It takes nothing more.
pub(crate) fn print(text: impl AsRef<[u8]>) -> Result<(), String> {
    let mut stdout = anstream::stdout().lock();
    let result = stdout.write_all(text.as_ref()).and_then(|()| stdout.flush());
    result.map_err(|error| {
        format!("what was printed to standard output is not all there: {}", limits::explain(&error))
    })
}

/// Prints a page that was asked for; the status to end with.
pub(crate) fn page(text: impl AsRef<[u8]>) -> ExitCode {
    match print(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(complaint) => {
            complain(complaint);
            ExitCode::FAILURE
        }
    }
}
