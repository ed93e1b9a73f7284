//! What can go wrong: a class that does not exist, and an answer that is not the published one.

use thiserror::Error;

use super::Class;

/// Why a class was not understood or a result not accepted.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum EpError {
    /// There is no such class.
    #[error("class '{name}' of EP is unknown, take S, W, A or B")]
    UnknownClass {
        /// What was asked for.
        name: String,
    },
    /// A sum misses the published one. Either blocks are missing or were added twice, or the computer errs: compare
    /// block by block with another one.
    #[error(
        "{name} is {computed:e}, {published:e} is published for class {class}: off by {error:.1e} of it, at most \
         {tolerance:e} is allowed; check that every block was added once"
    )]
    WrongSum {
        /// The class whose blocks were summed.
        class: Class,
        /// `sx` or `sy`.
        name: &'static str,
        /// What was found.
        computed: f64,
        /// What should have been.
        published: f64,
        /// Relative error.
        error: f64,
        /// Largest relative error allowed.
        tolerance: f64,
    },
    /// The sums are right, a count is not.
    #[error(
        "{computed} pairs of size {size}, {published} are published for class {class}; check that every block was \
         added once"
    )]
    WrongCount {
        /// The class whose blocks were summed.
        class: Class,
        /// Index into the counts.
        size: usize,
        /// What was found.
        computed: u64,
        /// What should have been.
        published: u64,
    },
}
