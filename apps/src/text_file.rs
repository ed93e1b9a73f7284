//! Small text files that options name: a host file, a table, settings.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

/// Most bytes of such a file; none that anybody writes comes near.
const TEXT_BYTES_MAX: u64 = 4 << 20;

/// Reads all of a file of at most [`TEXT_BYTES_MAX`] bytes. Pipes and devices are refused unopened, as they may never end,
/// nor even begin.
///
/// # Errors
/// Why it cannot be read, without its name.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    let about = fs::metadata(path).map_err(|error| error.to_string())?;
    if about.is_dir() {
        return Err("it is a folder, a text file is expected".into());
    }
    if !about.is_file() {
        return Err("it is a pipe or a device, a text file is expected".into());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    // One more than allowed, to see that there is more; files of the kernel say nothing of their length.
    file.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        return Err(format!("it has more than {} MiB, which is no such file any more", TEXT_BYTES_MAX >> 20));
    }
    String::from_utf8(bytes)
        .map_err(|error| format!("it is no text: byte {} is not UTF-8", error.utf8_error().valid_up_to() + 1))
}
