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
    #[error("`{given}` cannot be read as {form}")]
    Numbers {
        /// The scheme as it was given.
        given: String,
        /// The form that is understood.
        form: &'static str,
    },
}
