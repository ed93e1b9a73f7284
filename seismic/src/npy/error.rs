//! Why a NumPy file was refused.

/// Why a NumPy file was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// The file does not start as NumPy files do.
    #[error("not a NumPy file, which starts with \\x93NUMPY; name raw floats .bin")]
    NotNpy,
    /// A version of the format that is not known.
    #[error("NumPy format version {major}.{minor} is not known, save with version 1, 2 or 3")]
    Version {
        /// First number.
        major: u8,
        /// Second number.
        minor: u8,
    },
    /// The header is damaged.
    #[error("NumPy header {what}")]
    Header {
        /// What is wrong with it.
        what: &'static str,
    },
    /// Numbers of another type.
    #[error(
        "array of type {found:?} is not read, convert it to <f4, >f4, <f8 or >f8 (numpy: v.astype('<f4'))"
    )]
    Type {
        /// Type in the file.
        found: String,
    },
    /// An array that is not a matrix.
    #[error("array has {found} dimensions, expected 2: x and z")]
    Dimensions {
        /// Number of dimensions.
        found: usize,
    },
}
