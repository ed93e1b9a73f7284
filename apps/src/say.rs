//! What `ftrun` prints while no job runs: an end of the stream is an error, and never a panic.

use std::fmt::Display;
use std::io::Write as _;

/// Prints to standard output.
///
/// # Errors
/// It takes nothing more.
pub(crate) fn print(text: &str) -> Result<(), String> {
    let mut stdout = std::io::stdout().lock();
    let result = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    result.map_err(|error| format!("what was printed to standard output is not all there: {error}"))
}

/// Prints a line to standard error. If nobody listens, the exit status still tells.
pub(crate) fn complain(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
