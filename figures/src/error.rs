//! What can go wrong between a drawing and a file.

use std::io;
use std::path::PathBuf;

/// Why a picture was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FigureError {
    /// The name of the file does not say what kind of picture it is to be.
    #[error("{path:?} ends in neither .svg nor .png, the two kinds of picture written here; name it so")]
    UnknownKind {
        /// The name as it was given.
        path: PathBuf,
    },

    /// The file would lie in a directory that is not there.
    #[error("directory {directory:?} for the picture {path:?} does not exist; create it or name another")]
    NoDirectory {
        /// The directory that is missing.
        directory: PathBuf,
        /// The name as it was given.
        path: PathBuf,
    },

    /// The operating system refused.
    #[error("picture {path:?} was not written: {source}; an older file of that name is as it was")]
    Write {
        /// The name as it was given.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },

    /// The drawing could not be turned into pixels.
    #[error("drawing of {width} x {height} px could not be made into pixels: {what}; save it as .svg")]
    Raster {
        /// Width of the drawing in px.
        width: u32,
        /// Height of the drawing in px.
        height: u32,
        /// What the rasteriser or the encoder said.
        what: String,
    },
}
