//! Why a state cannot be written or read.

use std::fmt;

use super::DEPTH_MAX;

/// A walk over protected state failed; see [`ProtectErrorKind`] for the cause.
///
/// After a failed load the state is partly overwritten and must be loaded again; a failed save leaves it as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectError {
    /// The path of the field, such as `solver.x`; empty if the failure is not within one field.
    pub field: String,
    /// Bytes into the shard at which the field or the failing piece of it starts.
    pub offset: usize,
    /// What went wrong.
    pub kind: ProtectErrorKind,
}

/// The cause of a [`ProtectError`].
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtectErrorKind {
    /// The shard ends too early, or a length in it is too large for what follows.
    #[error("{wanted} bytes wanted, {left} left")]
    Short {
        /// Bytes that the piece needs (`u64::MAX` if that number itself does not fit).
        wanted: u64,
        /// Bytes between the offset and the end of the shard.
        left: usize,
    },
    /// The state was read whole and bytes were left over: they belong to another type of state.
    #[error("{left} bytes left over at the end")]
    Trailing {
        /// Bytes between the offset and the end of the shard.
        left: usize,
    },
    /// The bytes are no value of the field's type.
    #[error("not a valid {what}")]
    Invalid {
        /// The type that was expected.
        what: &'static str,
    },
    /// Values lie in each other too deep; a list is a `Vec`, not values in boxes.
    #[error("values in values, more than {DEPTH_MAX} deep")]
    Deep,
    /// A field that goes through serde could not be written or read.
    #[error("serde: {0}")]
    Serde(String),
}

impl ProtectError {
    /// Returns an error of `kind` at `offset`, in no field yet.
    pub fn new(offset: usize, kind: ProtectErrorKind) -> Self {
        Self { field: String::new(), offset, kind }
    }

    /// Puts `name` before the path of the field; called by derived code on the way out.
    #[must_use]
    pub fn in_field(mut self, name: &str) -> Self {
        if self.field.is_empty() {
            self.field.push_str(name);
        } else {
            self.field.insert(0, '.');
            self.field.insert_str(0, name);
        }
        self
    }
}

impl fmt::Display for ProtectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "field {}: ", self.field)?;
        }
        write!(f, "{} at byte {} of the shard", self.kind, self.offset)
    }
}

impl std::error::Error for ProtectError {}
