//! What this program itself says to people, in colours where that makes sense: on a terminal, unless `NO_COLOR` or `CLICOLOR=0`
//! says otherwise.

use std::fmt::Display;
use std::io::Write as _;

use clap::builder::styling::{AnsiColor, Style};

const WRONG: Style = AnsiColor::Red.on_default().bold();
const NEWS: Style = Style::new().bold();

/// Says on standard error that something went wrong.
pub(crate) fn complain(text: impl Display) {
    say(WRONG, &text);
}

/// Says on standard error what has happened.
pub(crate) fn tell(text: impl Display) {
    say(NEWS, &text);
}

fn say(style: Style, text: &dyn Display) {
    // If nobody listens, the status still tells.
    let _ = writeln!(anstream::stderr(), "{style}ftrun:{style:#} {text}");
}

/// Prints a page that was asked for.
pub(crate) fn print(page: impl Display) {
    let _ = writeln!(anstream::stdout(), "{page}");
}
