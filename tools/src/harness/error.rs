//! Why there are no results, or one less.

use std::time::Duration;

use ft_comm::limits;

/// Why something could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum HarnessError {
    /// A program or folder is not there.
    #[error("{what} is missing; {remedy}")]
    Missing {
        /// The file.
        what: String,
        /// How to get it.
        remedy: String,
    },
    /// A program cannot be started.
    #[error("cannot start '{command}': {}", limits::explain(cause))]
    Start {
        /// The command.
        command: String,
        /// The operating system's word.
        cause: std::io::Error,
    },
    /// A program has failed.
    #[error("'{command}' ended with {status}: {message}")]
    Failed {
        /// The command.
        command: String,
        /// Its exit status or signal.
        status: std::process::ExitStatus,
        /// The last line of what it said.
        message: String,
    },
    /// A program did not come to an end and was killed.
    #[error("'{command}' took more than {} s", limit.as_secs())]
    TimedOut {
        /// The command.
        command: String,
        /// The time that it was given.
        limit: Duration,
    },
    /// A program printed something else than measurements.
    #[error("'{command}' printed no measurements: {why}")]
    Output {
        /// The command.
        command: String,
        /// What is wrong.
        why: String,
    },
    /// The congestion control cannot be changed.
    #[error("cannot make {name} the congestion control of this machine: {why}")]
    Congestion {
        /// The one that was asked for.
        name: String,
        /// Why not.
        why: String,
    },
    /// A temporary folder cannot be used.
    #[error("{0}")]
    Folder(String),
    /// Somebody wanted it to end.
    #[error("ended by a signal")]
    Interrupted,
}
