//! The frame of a program that compares.

use std::error::Error;
use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use ft_tools::harness::{Files, interruptible, machine_line};
use ft_tools::recovery::Machine;

use super::report::Report;

/// A comparison, as its options on the command line order it.
pub trait Comparison: Parser {
    /// Where its outcome is to be written.
    fn files(&self) -> &Files;

    /// Starts all sides in turns.
    ///
    /// # Errors
    /// Options contradict each other, a program is missing, or the user wants an end.
    fn compare(&self, watch: &Watch<'_>) -> Result<Report, Box<dyn Error>>;
}

/// What a program does that compares, from its command line to its exit status.
pub fn main<C: Comparison>() -> ExitCode {
    let options = C::parse();
    interruptible(C::command().get_name(), |is_interrupted| {
        options.files().require_writable()?;
        let watch =
            Watch { is_interrupted, is_seen: std::io::stderr().is_terminal(), machine: Machine::here() };
        let report = options.compare(&watch).map_err(|error| error.to_string())?;
        report.give(options.files())
    })
}

/// The user, who is told what happens and may want an end, and the machine as it was at the start.
pub struct Watch<'a> {
    pub(crate) is_interrupted: &'a dyn Fn() -> bool,
    is_seen: bool,
    pub(crate) machine: Machine,
}

impl<'a> Watch<'a> {
    #[cfg(test)]
    pub(crate) fn unseen(is_interrupted: &'a dyn Fn() -> bool) -> Self {
        Self { is_interrupted, is_seen: false, machine: Machine::default() }
    }

    /// Where it is measured.
    pub(crate) fn machine_line(&self) -> String {
        machine_line(&self.machine)
    }

    /// Says what comes now, and how much is done.
    pub(crate) fn progress(&self, done: usize, all: usize, next: &str) {
        if self.is_seen {
            eprintln!("{done} of {all}: {next}");
        }
    }
}
