//! Small text files that options name: a host file, a table, settings.

use std::path::Path;

use ft_files::OpenError;

/// Most bytes of such a file; none that anybody writes comes near.
const TEXT_BYTES_MAX: u64 = 4 << 20;

/// Reads all of a file of at most [`TEXT_BYTES_MAX`] bytes.
///
/// # Errors
/// Why it cannot be read, without its name.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    let bytes = ft_files::read(path, TEXT_BYTES_MAX).map_err(|error| match error {
        OpenError::TooLong { limit } => {
            format!("it has more than {} MiB, which is no such file any more", limit >> 20)
        }
        error => error.to_string(),
    })?;
    String::from_utf8(bytes)
        .map_err(|error| format!("it is no text: byte {} is not UTF-8", error.utf8_error().valid_up_to() + 1))
}
