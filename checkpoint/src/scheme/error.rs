//! Why a text is no scheme.

/// The name of a scheme could not be read.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemeError {
    /// No scheme has this name.
    #[error(
        "unknown scheme `{name}`; there are none, neighbor[:COPIES], xor[:GROUP], rs:K+M, checksum:K+M and disk:DIR"
    )]
    Unknown {
        /// The name as it was given.
        name: String,
    },
    /// The scheme exists, its numbers cannot be read.
    #[error("`{given}` cannot be read as {form}: {numbers}", numbers = numbers(form))]
    Numbers {
        /// The scheme as it was given.
        given: String,
        /// The form that is understood.
        form: &'static str,
    },
}

/// What the numbers of a form mean, with an example.
fn numbers(form: &str) -> &'static str {
    match form.split([':', '[']).next() {
        Some("neighbor") => "COPIES is a number from 1 on, as in neighbor:2",
        Some("xor") => "GROUP is the number of ranks of a group, as in xor:4",
        Some("rs") => "K data and M parity blocks, as in rs:4+2",
        Some("checksum") => "K data and M redundant blocks, as in checksum:4+2",
        Some("disk") => "DIR is a directory that all ranks see, as in disk:/scratch",
        _ => "it takes no numbers",
    }
}
