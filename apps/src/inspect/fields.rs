//! Fields of the state in files: listed, and one taken out.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use ft_checkpoint::{Array, Element, SavedArray, SavedField, SavedPiece, SavedSet, SavedSets, StatePart};
use ft_comm::limits;
use ft_linalg::npy;
use serde_json::{Value, json};

use crate::words::bytes;

/// The fields of checkpoint `number`, a line each, or why they are not known.
pub(super) fn in_words(sets: &SavedSets, number: u32) -> Vec<String> {
    let fields = match sets.fields(number) {
        Ok(fields) => fields,
        Err(error) => return vec![format!("    {error}")],
    };
    let row = |field: &SavedField| {
        let what = field.joined().map_or_else(|| field.type_name.clone(), |array| shown(&array));
        [field.name.clone(), part(field).into(), field.spread.name().into(), what, bytes(field.bytes())]
    };
    let rows: Vec<[String; 5]> = fields.iter().map(row).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 4] = std::array::from_fn(width);
    let line = |[name, part, spread, what, size]: &[String; 5]| {
        let [a, b, c, d] = widths;
        format!("    {name:<a$}  {part:<b$}  {spread:<c$}  {what:<d$}  {size}")
    };
    rows.iter().map(line).collect()
}

/// The fields of a checkpoint; none if they are not known.
pub(super) fn in_json(sets: &SavedSets, set: &SavedSet) -> Value {
    let Some(fields) = set.is_whole().then(|| sets.fields(set.number).ok()).flatten() else {
        return Value::Null;
    };
    let piece = |piece: &Option<SavedPiece>| {
        let lengths = |piece: &SavedPiece| piece.array.as_ref().map(|array| array.lengths.clone());
        piece.as_ref().map(|piece| json!({ "bytes": piece.bytes, "lengths": lengths(piece) }))
    };
    let field = |field: &SavedField| {
        let array = field.joined();
        json!({
            "name": field.name,
            "part": part(field),
            "spread": field.spread.name(),
            "type": field.type_name,
            "element": array.as_ref().map(|array| array.element.name()),
            "lengths": array.map(|array| array.lengths),
            "bytes": field.bytes(),
            "ranks": field.ranks.iter().map(piece).collect::<Vec<_>>(),
        })
    };
    fields.iter().map(field).collect()
}

fn part(field: &SavedField) -> &'static str {
    if field.part == StatePart::Constant { "constant" } else { "variable" }
}

/// "f64", "f64 [100, 3]".
fn shown(Array { element, lengths, .. }: &Array) -> String {
    match lengths[..] {
        [] => element.name().into(),
        _ => format!("{} {lengths:?}", element.name()),
    }
}

/// Writes a field of the newest checkpoint that is whole to a file; gives a line that says so.
pub(super) fn take_out(
    sets: &SavedSets,
    found: &[SavedSet],
    name: &str,
    rank: Option<usize>,
    file: &Path,
) -> Result<String, String> {
    let Some(set) = found.iter().find(|set| set.is_whole()) else {
        let folder = sets.folder().display();
        return Err(format!(
            "no checkpoint to take {name} from is whole in {folder}: see ftrun inspect without --field"
        ));
    };
    let array = sets.field(set.number, name, rank).map_err(|error| error.to_string())?;
    write(&array, file)?;
    let steps = set.steps.map_or(String::new(), |steps| format!(", after step {steps}"));
    Ok(format!("{}: {} of checkpoint {}{steps}\n", file.display(), shown(&array.array), set.number))
}

/// Writes an array under another name first: a file that is there stays if not all of the array can
/// be read or written.
fn write(array: &SavedArray<'_>, file: &Path) -> Result<(), String> {
    if file.exists() && !file.is_file() {
        return write_to(array, file); // a pipe, or a device
    }
    let failed = |error: io::Error| format!("{}: {}", file.display(), limits::explain(&error));
    let file = if file.exists() { file.canonicalize().map_err(failed)? } else { file.to_owned() };
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = file.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written = write_to(array, &unfinished).and_then(|()| {
        std::fs::rename(&unfinished, &file).map_err(|error| format!("{}: {error}", file.display()))
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    written
}

fn write_to(array: &SavedArray<'_>, file: &Path) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {}", file.display(), limits::explain(&error));
    let mut out = BufWriter::new(File::create(file).map_err(failed)?);
    out.write_all(&npy::head(numpy_name(array.array.element), &array.array.lengths)).map_err(failed)?;
    for piece in array.pieces() {
        let piece = piece.map_err(|error| error.to_string())?;
        out.write_all(&piece).map_err(failed)?;
    }
    out.flush().map_err(failed)
}

/// What NumPy calls it, with the order of bytes that this processor has.
fn numpy_name(element: Element) -> &'static str {
    let [little, big] = match element {
        Element::Bool => ["|b1"; 2],
        Element::U8 => ["|u1"; 2],
        Element::I8 => ["|i1"; 2],
        Element::U16 => ["<u2", ">u2"],
        Element::U32 => ["<u4", ">u4"],
        Element::U64 => ["<u8", ">u8"],
        Element::I16 => ["<i2", ">i2"],
        Element::I32 => ["<i4", ">i4"],
        Element::I64 => ["<i8", ">i8"],
        Element::F32 => ["<f4", ">f4"],
        Element::F64 => ["<f8", ">f8"],
    };
    if cfg!(target_endian = "little") { little } else { big }
}
