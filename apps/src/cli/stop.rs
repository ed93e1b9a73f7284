//! The end of a command line that asks for nothing to run: with help, or with a complaint.

use std::process::ExitCode;

use clap::error::ErrorKind;

use super::tips;
use crate::say;

/// Exit status for bad usage or input.
pub(super) const USAGE: u8 = 2;

/// Why there is nothing to run: help was asked for, or the command line is wrong.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(super) status: u8,
    pub(super) text: String,
}

impl Stop {
    /// Prints the help to stdout or the complaint to stderr, and gives the status to end with.
    pub(crate) fn print(&self) -> ExitCode {
        match self.status {
            0 => say::page(format!("{}\n", self.text)),
            status => {
                say::complain(&self.text);
                ExitCode::from(status)
            }
        }
    }

    /// A command line that is wrong: the complaint, and what to do.
    pub(super) fn usage(complaint: &str, hint: &str) -> Self {
        Self { status: USAGE, text: format!("{complaint}\n{hint}") }
    }
}

impl Stop {
    /// Shortens what clap says of the words of a `command` to its first line, and a hint.
    pub(super) fn of(error: &clap::Error, command: &str) -> Self {
        if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
            return Self { status: 0, text: error.render().ansi().to_string().trim_end().to_owned() };
        }
        let (text, hint) = (error.render().to_string(), tips::on(error, command));
        let mut lines = text.strip_prefix("error: ").unwrap_or(&text).lines();
        let mut complaint = lines.next().unwrap_or_default().to_owned();
        let details = lines.take_while(|line| !line.trim().is_empty());
        // A first line that ends in a colon says nothing without the others; elsewhere they are the syntax of a value.
        let glue = if complaint.ends_with(':') { " " } else { "\n" };
        for line in details {
            complaint += glue;
            complaint += if glue == " " { line.trim() } else { line };
        }
        Self::usage(&complaint, &hint)
    }
}
