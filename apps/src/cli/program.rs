//! Programs of one's own, as users name them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::stop::Stop;
use super::tips;
use crate::bundled::BUNDLED;
use crate::shell::in_path;

/// The path of a program that is not bundled. One without a `/` is a file here, or else what a shell would find in `$PATH`.
pub(super) fn own_program(name: &OsStr) -> Result<PathBuf, Stop> {
    let path = Path::new(name);
    if name.as_encoded_bytes().contains(&b'/') {
        return Ok(path.to_owned());
    }
    if path.is_file() {
        return Ok(Path::new(".").join(path));
    }
    if let Some(found) = in_path(name) {
        return Ok(found);
    }
    let apps: Vec<&str> = BUNDLED.iter().map(|app| app.name).collect();
    let complaint = format!(
        "'{}' is neither a bundled app nor a file here or in $PATH; bundled apps: {}",
        path.display(),
        apps.join(", ")
    );
    Err(Stop::usage(&complaint, &tips::on_program(name)))
}
