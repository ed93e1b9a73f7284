//! How many threads a process is to have.

use rustix::thread::{CpuSet, sched_getaffinity};

/// Environment: how many threads a process computes with.
pub const ENV_THREADS: &str = "FT_THREADS";

/// More threads than that are no team but a mistake.
const MOST: usize = 1024;

/// `FT_THREADS` is no number of threads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{ENV_THREADS}: '{text}' is no number of threads from 1 to {MOST}")]
pub struct ThreadsError {
    /// What it is set to.
    pub text: String,
}

/// Threads that this process is to compute with: as many as `FT_THREADS` says, or as there are cores that it may run on.
///
/// # Errors
/// [`ThreadsError`] if `FT_THREADS` makes no sense.
pub fn wanted() -> Result<usize, ThreadsError> {
    match std::env::var_os(ENV_THREADS).filter(|text| !text.is_empty()) {
        None => Ok(cores()),
        Some(text) => read(&text.to_string_lossy()),
    }
}

/// Reads a number of threads.
///
/// # Errors
/// [`ThreadsError`] if it makes no sense.
pub fn read(text: &str) -> Result<usize, ThreadsError> {
    let number = text.parse().ok().filter(|number| (1..=MOST).contains(number));
    number.ok_or_else(|| ThreadsError { text: text.to_owned() })
}

/// Cores that this process may run on.
fn cores() -> usize {
    // The standard library's count reads files of control groups, which a replacement is not to open.
    let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (set.count() as usize).clamp(1, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_threads_are_read_strictly() {
        assert_eq!(read("3"), Ok(3));
        for text in ["0", "-1", "two", "1.5", "1025", "3 "] {
            assert_eq!(read(text).unwrap_err().text, text);
        }
        let said = read("two").unwrap_err().to_string();
        assert_eq!(said, "FT_THREADS: 'two' is no number of threads from 1 to 1024");
        assert!(cores() >= 1);
    }
}
