//! NumPy arrays (`.npy`, format versions 1 to 3) of two dimensions as velocity models.
//!
//! Source: NumPy Enhancement Proposal 1, A simple file format for NumPy arrays; `numpy.lib.format`.

use crate::load::{ByteOrder, Grid, ModelErrorKind, SampleFormat, Source, read_grid};

mod error;

pub use error::NpyError;

const MAGIC: &[u8] = b"\x93NUMPY";
/// Longest header that is read, in bytes. NumPy itself trusts 10 000.
const HEADER_BYTES_MAX: usize = 64 << 10;
const NEITHER: NpyError =
    NpyError::Header { what: "is not a dictionary with descr, fortran_order and shape" };

/// Reads the model; its axes are (x, z), whichever order the memory has.
pub(crate) fn read(mut source: Source) -> Result<Grid, ModelErrorKind> {
    let (text, header_bytes) = header_text(&mut source)?;
    let Header { format, fortran_order, shape: (nx, nz) } = parse_header(&text)?;
    let values = read_grid(&mut source, header_bytes, (nx, nz), format)?;
    let values = if fortran_order { transposed(&values, nx, nz) } else { values };
    Ok(Grid { nx, nz, spacing: None, values })
}

/// The header and the number of bytes up to its end.
fn header_text(source: &mut Source) -> Result<(Vec<u8>, u64), ModelErrorKind> {
    let mut start = [0; 8];
    let found = source.fill(&mut start)?;
    if found < start.len() || !start.starts_with(MAGIC) {
        return Err(NpyError::NotNpy.into());
    }
    let (major, minor) = (start[6], start[7]);
    let width = match major {
        1 => 2,
        2 | 3 => 4,
        _ => return Err(NpyError::Version { major, minor }.into()),
    };
    let mut length = [0; 4];
    let cut = NpyError::Header { what: "is cut off" };
    if source.fill(&mut length[..width])? < width {
        return Err(cut.into());
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > HEADER_BYTES_MAX {
        return Err(NpyError::Header { what: "is longer than 65536 bytes" }.into());
    }
    let mut text = vec![0; length];
    if source.fill(&mut text)? < length {
        return Err(cut.into());
    }
    Ok((text, (start.len() + width + length) as u64))
}

#[derive(Debug, PartialEq)]
struct Header {
    format: SampleFormat,
    fortran_order: bool,
    shape: (usize, usize),
}

/// Parses the dictionary, a Python literal such as
/// `{'descr': '<f4', 'fortran_order': False, 'shape': (801, 331), }`.
fn parse_header(text: &[u8]) -> Result<Header, NpyError> {
    let text = std::str::from_utf8(text).map_err(|_| NEITHER)?;
    let mut rest = text.trim().strip_prefix('{').ok_or(NEITHER)?.trim_start();
    let (mut format, mut fortran_order, mut shape) = (None, None, None);
    while !rest.starts_with('}') {
        let (key, after) = quoted(rest).ok_or(NEITHER)?;
        let value = after.trim_start().strip_prefix(':').ok_or(NEITHER)?.trim_start();
        let after = match key {
            "descr" => {
                let (found, after) = type_name(value)?;
                format = Some(found);
                after
            }
            "fortran_order" => {
                let (found, after) = boolean(value).ok_or(NEITHER)?;
                fortran_order = Some(found);
                after
            }
            "shape" => {
                let (found, after) = tuple(value)?;
                shape = Some(found);
                after
            }
            _ => return Err(NEITHER),
        };
        let after = after.trim_start();
        rest = after.strip_prefix(',').unwrap_or(after).trim_start();
        if rest == after && !rest.starts_with('}') {
            return Err(NEITHER);
        }
    }
    let shape = shape.ok_or(NEITHER)?;
    let &[nx, nz] = shape.as_slice() else { return Err(NpyError::Dimensions { found: shape.len() }) };
    Ok(Header {
        format: format.ok_or(NEITHER)?,
        fortran_order: fortran_order.ok_or(NEITHER)?,
        shape: (nx, nz),
    })
}

/// A string in quotes of either kind, and what follows.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|first| matches!(first, '\'' | '"'))?;
    text[1..].split_once(quote)
}

fn type_name(text: &str) -> Result<(SampleFormat, &str), NpyError> {
    let Some((name, rest)) = quoted(text) else {
        return Err(NpyError::Type { found: text.chars().take(40).collect() });
    };
    let format = match name {
        "<f4" => SampleFormat::Ieee32(ByteOrder::Little),
        ">f4" => SampleFormat::Ieee32(ByteOrder::Big),
        "<f8" => SampleFormat::Ieee64(ByteOrder::Little),
        ">f8" => SampleFormat::Ieee64(ByteOrder::Big),
        _ => return Err(NpyError::Type { found: name.chars().take(40).collect() }),
    };
    Ok((format, rest))
}

fn boolean(text: &str) -> Option<(bool, &str)> {
    let of = |word, value| text.strip_prefix(word).map(|rest| (value, rest));
    of("True", true).or_else(|| of("False", false))
}

/// Non-negative integers in parentheses, and what follows.
fn tuple(text: &str) -> Result<(Vec<usize>, &str), NpyError> {
    let unusable = NpyError::Header { what: "has a shape that is not a tuple of sizes" };
    let inner = text.strip_prefix('(').and_then(|text| text.split_once(')'));
    let (inner, rest) = inner.ok_or_else(|| unusable.clone())?;
    let words = inner.split(',').map(str::trim).filter(|word| !word.is_empty());
    let sizes: Result<Vec<usize>, _> = words.map(str::parse).collect();
    Ok((sizes.map_err(|_| unusable)?, rest))
}

/// Values stored with x fastest, brought to z fastest.
fn transposed(values: &[f32], nx: usize, nz: usize) -> Vec<f32> {
    (0..nx).flat_map(|ix| (0..nz).map(move |iz| values[iz * nx + ix])).collect()
}

#[cfg(test)]
mod tests;
