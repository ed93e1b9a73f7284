//! Raw velocity models: 32-bit little endian floats, depth fastest, no header.

use crate::load::{
    ByteOrder, Grid, ModelErrorKind, POINTS_MAX, SampleFormat, Source, fitting_shapes, read_grid,
};

/// Reads a file of `shape`, which it does not say itself.
pub(crate) fn read(mut source: Source, shape: Option<(usize, usize)>) -> Result<Grid, ModelErrorKind> {
    let format = SampleFormat::Ieee32(ByteOrder::Little);
    let Some((nx, nz)) = shape else {
        let bytes = match source.length() {
            Some(length) => length,
            None => source.skip(POINTS_MAX * format.bytes() as u64 + 1)?,
        };
        let whole = bytes.is_multiple_of(format.bytes() as u64);
        let fitting = if whole { fitting_shapes(bytes / format.bytes() as u64, (0, 0)) } else { Vec::new() };
        return Err(ModelErrorKind::ShapeMissing { bytes, fitting });
    };
    let values = read_grid(&mut source, 0, (nx, nz), format)?;
    Ok(Grid { nx, nz, spacing: None, values })
}
