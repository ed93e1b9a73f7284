//! The engine of all programs that measure ours beside a peer.
//!
//! A program says which jobs are held against each other (`Rounds::cases`), how one is started and what it took, and
//! which rows a reader gets. The engine starts the jobs in turns, round by round, keeps what each took as `Samples`, and knows
//! medians, `Ratio`s, `Bar`s, tables, CSV and pages.

mod bar;
mod command;
mod programs;
mod ratio;
mod report;
mod rounds;
mod samples;

pub(crate) use self::bar::{Bar, Trial, met, verdict};
pub use self::command::{Comparison, Watch, main};
pub(crate) use self::programs::{Compiled, built, folder, missing, there};
pub(crate) use self::ratio::Ratio;
pub use self::report::Report;
pub(crate) use self::report::{beside, table};
pub(crate) use self::rounds::{Failures, Rounds, few_rounds};
pub(crate) use self::samples::{Sample, Samples};
