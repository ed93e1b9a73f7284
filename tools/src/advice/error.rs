//! Why there is no advice.

use crate::harness::HarnessError;
use crate::recovery::BenchError;

/// Why nothing can be recommended.
#[derive(Debug, thiserror::Error)]
pub enum AdviceError {
    /// A job cannot be started, or there is a signal.
    #[error(transparent)]
    Job(#[from] HarnessError),
    /// The temporary folder cannot be used.
    #[error(transparent)]
    Folder(#[from] BenchError),
    /// A job has failed.
    #[error("'{command}' ended with status {status}: {message}")]
    Failed {
        /// The command.
        command: String,
        /// Its exit status; -1 for a signal.
        status: i32,
        /// What it complained about.
        message: String,
    },
    /// A job did not come to its end.
    #[error(
        "'{command}' was not done after {limit_s:.0} s: it has to run in the resilient loop, and some steps of it have to fit \
         into what --seconds says"
    )]
    Endless {
        /// The command.
        command: String,
        /// The time that it was given.
        limit_s: f64,
    },
    /// The program does not use the loop.
    #[error(
        "{program} takes no checkpoints by itself: it does not run in the resilient loop, so there is nothing to advise"
    )]
    NoLoop {
        /// The program.
        program: String,
    },
    /// A job did not report what was expected.
    #[error("'{command}' gave no report to count on: {why}")]
    Report {
        /// The command.
        command: String,
        /// What is wrong with it.
        why: String,
    },
}

impl AdviceError {
    /// Whether the input is to blame.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Failed { status: 2, .. } | Self::NoLoop { .. })
    }
}
