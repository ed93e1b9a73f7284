//! Why there are no results.

use ft_comm::limits;

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The launcher cannot be started.
    #[error("cannot start '{command}': {}", limits::explain(cause))]
    Start {
        /// The command.
        command: String,
        /// The operating system's word.
        cause: std::io::Error,
    },
    /// A job has failed.
    #[error("'{command}' ended with status {status}: {message}")]
    Failed {
        /// The command.
        command: String,
        /// Its exit status; -1 for a signal.
        status: i32,
        /// The first line of what it complained about.
        message: String,
    },
    /// A job did not report what was expected.
    #[error("'{command}' gave no report to count on: {why}")]
    Report {
        /// The command.
        command: String,
        /// What is wrong with it.
        why: String,
    },
    /// Protection has changed the answer.
    #[error(
        "{steps} steps with {state_bytes} bytes a rank have the answer {} with {} and {} with {}",
        answers[0], schemes[0], answers[1], schemes[1]
    )]
    Answer {
        /// State of each rank.
        state_bytes: u64,
        /// Steps of the jobs.
        steps: u64,
        /// The two schemes.
        schemes: [String; 2],
        /// Their answers.
        answers: [String; 2],
    },
    /// The temporary folder cannot be used.
    #[error("cannot make the folder {}: {cause}", folder.display())]
    Folder {
        /// The folder.
        folder: std::path::PathBuf,
        /// The operating system's word.
        cause: std::io::Error,
    },
    /// Somebody wanted it to end.
    #[error("ended by a signal")]
    Interrupted,
}
