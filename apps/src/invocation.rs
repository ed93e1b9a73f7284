//! A job, as somebody has ordered it.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::app::AnyApp;
use crate::options::Options;

/// A job to run.
#[derive(Debug)]
pub(crate) struct Invocation {
    /// How to run it.
    pub(crate) options: Options,
    /// What to run.
    pub(crate) program: Program,
    /// The program with its own arguments, in one line: what checkpoints in files are of.
    pub(crate) command: String,
    /// The first word behind a program of the user's that is an option of `ftrun`, unless `--`
    /// before the program says whose words these are.
    pub(crate) misplaced: Option<String>,
}

/// What the ranks run.
#[derive(Debug)]
pub(crate) enum Program {
    /// A bundled app, by its name.
    App(&'static str, Box<dyn AnyApp>),
    /// A program of the user's.
    Own { path: PathBuf, args: Vec<OsString> },
}
