//! Reader for Matrix Market files, plain or gzip (told by the first two bytes, not by the name).
//!
//! Matrices: `coordinate` with field `real`, `integer` or `pattern` (value 1) and symmetry `general`, `symmetric`
//! or `skew-symmetric`. Vectors: `array` with field `real` or `integer`, one column. Three decisions:
//!
//! * **explicit zeros are kept**: they are part of the pattern, which files of one family share;
//! * **duplicates are refused**: whether they should be added or replaced is not said by the format, and guessing
//!   wrong changes the problem silently. The same holds for a symmetric file that stores both triangles;
//! * **values must be finite**: `nan` and `inf` are refused. Fortran's `1.0D+3` is read. Integers are rounded to
//!   the nearest `f64`.
//!
//! The reader never panics, whatever the bytes, and allocates for what it has read, not for what a file announces.
//! It is not collective: a file is read by every rank, or by one that passes the result on.
//!
//! Source: Boisvert, Pozo, Remington: The Matrix Market exchange formats, NISTIR 5935, 1996.

use std::{
    fs::File,
    io::{BufRead, BufReader, Cursor, Read},
    ops::Range,
    path::Path,
};

use flate2::bufread::MultiGzDecoder;

use crate::{CsrRows, LinalgError, MatrixMarketError, error::MatrixMarketErrorKind as Kind};

/// Longest line that is read, in bytes. The format says 1024.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// Most rows or columns of a matrix, whatever is in it.
const DIMENSION_MAX: u64 = 1 << 32;
/// Rows or columns above this number need an entry for at least every 16th of them: else a file of a few bytes
/// could make its reader set aside gigabytes for row pointers and vectors.
const DIMENSION_SPARSE_MAX: u64 = 1 << 24;
/// Entries for which memory is set aside before they are read.
const RESERVE_MAX: u64 = 1 << 16;

/// A whole sparse matrix as a list of entries, sorted by row, then column, each place once.
#[derive(Clone, Debug, PartialEq)]
pub struct Coordinates {
    rows: usize,
    cols: usize,
    entries: Vec<Entry>,
}

/// One stored entry. Indices from 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// Row.
    pub row: u64,
    /// Column.
    pub col: u64,
    /// Value, finite.
    pub value: f64,
}

impl Coordinates {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// All entries, those of the mirrored triangle of a symmetric file included.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The value at (`row`, `col`), if one is stored. O(log nnz).
    pub fn get(&self, row: u64, col: u64) -> Option<f64> {
        let place = self.entries.binary_search_by_key(&(row, col), |entry| (entry.row, entry.col));
        place.ok().map(|place| self.entries[place].value)
    }

    /// Checks that there are as many columns as rows and returns the number.
    ///
    /// # Errors
    /// [`LinalgError::NotSquare`].
    pub fn require_square(&self) -> Result<usize, LinalgError> {
        let (rows, cols) = (self.rows, self.cols);
        if rows == cols { Ok(rows) } else { Err(LinalgError::NotSquare { rows, cols }) }
    }

    /// Checks that a(i,j) and a(j,i) are equal as numbers, for all i and j. A missing entry counts as 0.
    ///
    /// Exact equality is meant: a matrix that is symmetric up to rounding makes conjugate gradients converge to
    /// something else than its solution, and whoever wants that can symmetrise it first. O(nnz log nnz).
    ///
    /// # Errors
    /// [`LinalgError::NotSquare`], or [`LinalgError::NotSymmetric`] with the first pair, by rows, that differs.
    pub fn require_symmetric(&self) -> Result<(), LinalgError> {
        self.require_square()?;
        // An entry below the diagonal whose mirror is missing belongs to a pair that starts in its column's row.
        let differing = self.entries.iter().filter_map(|entry| {
            let mirrored = self.get(entry.col, entry.row).unwrap_or(0.0);
            let upper = (entry.row, entry.col, entry.value, mirrored);
            let lower = (entry.col, entry.row, mirrored, entry.value);
            (mirrored != entry.value).then_some(if entry.row < entry.col { upper } else { lower })
        });
        match differing.min_by_key(|(row, col, ..)| (*row, *col)) {
            None => Ok(()),
            Some((row, col, value, mirrored)) => {
                Err(LinalgError::NotSymmetric { row: row as usize, col: col as usize, value, mirrored })
            }
        }
    }

    /// The rows of `range` in compressed form.
    ///
    /// # Errors
    /// [`LinalgError::TooLarge`] when there is no memory for so many rows.
    ///
    /// # Panics
    /// If `range` does not lie within `0..rows`.
    pub fn to_rows(&self, range: Range<usize>) -> Result<CsrRows, LinalgError> {
        assert!(range.start <= range.end && range.end <= self.rows, "rows {range:?} of {}", self.rows);
        let start = self.entries.partition_point(|entry| entry.row < range.start as u64);
        let end = self.entries.partition_point(|entry| entry.row < range.end as u64);
        let entries = &self.entries[start..end];

        let mut row_ptr: Vec<usize> = Vec::new();
        row_ptr
            .try_reserve_exact(range.len() + 1)
            .map_err(|_| LinalgError::TooLarge { what: "list of rows", wanted: range.len() as u128 })?;
        row_ptr.push(0);
        let mut next = 0;
        for row in range {
            while entries.get(next).is_some_and(|entry| entry.row == row as u64) {
                next += 1;
            }
            row_ptr.push(next);
        }
        let cols = entries.iter().map(|entry| entry.col).collect();
        CsrRows::new(row_ptr, cols, entries.iter().map(|entry| entry.value).collect(), self.cols)
    }
}

/// Reads a matrix from a file. See the module for what is accepted.
///
/// # Errors
/// [`MatrixMarketError`] with the path and the line.
pub fn read_matrix(path: impl AsRef<Path>) -> Result<Coordinates, MatrixMarketError> {
    read(path.as_ref(), parse_matrix)
}

/// Reads a vector (an array of one column) from a file.
///
/// # Errors
/// [`MatrixMarketError`] with the path and the line.
pub fn read_vector(path: impl AsRef<Path>) -> Result<Vec<f64>, MatrixMarketError> {
    read(path.as_ref(), parse_vector)
}

fn read<T>(
    path: &Path,
    parse: impl Fn(File) -> Result<T, MatrixMarketError>,
) -> Result<T, MatrixMarketError> {
    open(path)
        .map_err(|kind| MatrixMarketError { path: None, line: 0, kind })
        .and_then(parse)
        .map_err(|error| MatrixMarketError { path: Some(path.to_owned()), ..error })
}

/// A file, which is known to be one before it is opened: a pipe may have nobody at its other end.
fn open(path: &Path) -> Result<File, Kind> {
    if path.metadata()?.is_file() { Ok(File::open(path)?) } else { Err(Kind::NoFile) }
}

/// Reads a matrix from any source of bytes, plain or gzip.
///
/// # Errors
/// [`MatrixMarketError`] with the line.
pub fn parse_matrix(source: impl Read) -> Result<Coordinates, MatrixMarketError> {
    let mut lines = Lines::new(source)?;
    let banner = lines.banner()?;
    let (field, symmetry) =
        (banner.field(&[Field::Real, Field::Integer, Field::Pattern])?, banner.symmetry()?);
    banner.format("coordinate")?;

    let [rows, cols, announced] = lines.sizes("three integers: rows, columns, entries")?;
    let too_many = u128::from(announced) > u128::from(rows) * u128::from(cols);
    let not_square = symmetry != Symmetry::General && rows != cols;
    if rows.max(cols) > DIMENSION_MAX || too_many || not_square {
        return Err(lines.error(Kind::SizeLimit { rows, cols, entries: announced }));
    }

    // Entries and the lines that they stand on, for the message about duplicates.
    let mut entries: Vec<(Entry, u64)> = Vec::with_capacity(announced.min(RESERVE_MAX) as usize);
    for found in 0..announced {
        let fields = lines.announced_fields(found, announced)?;
        let entry = field.parse_entry(&fields, rows, cols).map_err(|kind| lines.error(kind))?;
        entries.push((entry, lines.line));
        let mirrored = symmetry.mirrored(entry).map_err(|kind| lines.error(kind))?;
        entries.extend(mirrored.map(|entry| (entry, lines.line)));
    }
    lines.end(announced)?;
    if rows.max(cols) > DIMENSION_SPARSE_MAX.max(16 * entries.len() as u64) {
        return Err(lines.error(Kind::SizeLimit { rows, cols, entries: announced }));
    }

    entries.sort_by_key(|(entry, line)| (entry.row, entry.col, *line));
    refuse_duplicates(&entries)?;
    let entries = entries.into_iter().map(|(entry, _)| entry).collect();
    Ok(Coordinates { rows: rows as usize, cols: cols as usize, entries })
}

/// Finds the first place that two of the sorted entries have in common.
fn refuse_duplicates(entries: &[(Entry, u64)]) -> Result<(), MatrixMarketError> {
    let place = |(entry, _): &(Entry, u64)| (entry.row, entry.col);
    match entries.windows(2).find(|pair| place(&pair[0]) == place(&pair[1])) {
        Some(&[(Entry { row, col, .. }, first_line), (_, line)]) => {
            let kind = Kind::Duplicate { row: row + 1, col: col + 1, first_line };
            Err(MatrixMarketError { path: None, line, kind })
        }
        _ => Ok(()),
    }
}

/// Reads a vector (an array of one column) from any source of bytes, plain or gzip.
///
/// # Errors
/// [`MatrixMarketError`] with the line.
pub fn parse_vector(source: impl Read) -> Result<Vec<f64>, MatrixMarketError> {
    let mut lines = Lines::new(source)?;
    let banner = lines.banner()?;
    banner.format("array")?;
    let field = banner.field(&[Field::Real, Field::Integer])?;
    if banner.symmetry()? != Symmetry::General {
        return Err(banner.unsupported("symmetry", 4, "general"));
    }
    let [announced, cols] = lines.sizes("two integers: rows, columns")?;
    if cols != 1 {
        return Err(lines.error(Kind::NotAVector { cols }));
    }
    if announced > DIMENSION_MAX {
        return Err(lines.error(Kind::SizeLimit { rows: announced, cols, entries: announced }));
    }
    let mut values = Vec::with_capacity(announced.min(RESERVE_MAX) as usize);
    for found in 0..announced {
        let fields = lines.announced_fields(found, announced)?;
        let [value, ..] = split_fields(&fields, 1).map_err(|kind| lines.error(kind))?;
        values.push(field.parse(value).map_err(|kind| lines.error(kind))?);
    }
    lines.end(announced)?;
    Ok(values)
}

#[derive(Clone, Copy, PartialEq)]
enum Field {
    Real,
    Integer,
    Pattern,
}

impl Field {
    fn name(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Integer => "integer",
            Self::Pattern => "pattern",
        }
    }

    fn parse(self, text: &str) -> Result<f64, Kind> {
        let not = |expected| Kind::NotANumber { found: text.chars().take(40).collect(), expected };
        match self {
            Self::Pattern => Ok(1.0),
            Self::Integer => text.parse::<i64>().map(|value| value as f64).map_err(|_| not("an integer")),
            Self::Real => {
                let value = text.parse::<f64>().or_else(|_| text.replace(['d', 'D'], "e").parse());
                value.ok().filter(|value| value.is_finite()).ok_or_else(|| not("a finite number"))
            }
        }
    }

    /// An entry of a matrix with so many rows and columns.
    fn parse_entry(self, fields: &str, rows: u64, cols: u64) -> Result<Entry, Kind> {
        let expected = if self == Self::Pattern { 2 } else { 3 };
        let [row, col, value] = split_fields(fields, expected)?;
        let (row, col) = (parse_index(row, "row", rows)?, parse_index(col, "column", cols)?);
        Ok(Entry { row, col, value: self.parse(value)? })
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Symmetry {
    General,
    Symmetric,
    SkewSymmetric,
}

impl Symmetry {
    /// The entry of the other triangle that follows from one.
    fn mirrored(self, Entry { row, col, value }: Entry) -> Result<Option<Entry>, Kind> {
        match self {
            Self::General => Ok(None),
            Self::SkewSymmetric if row == col => Err(Kind::SkewDiagonal { row: row + 1 }),
            Self::Symmetric if row == col => Ok(None),
            Self::Symmetric => Ok(Some(Entry { row: col, col: row, value })),
            Self::SkewSymmetric => Ok(Some(Entry { row: col, col: row, value: -value })),
        }
    }
}

/// The words of the first line, in lower case.
struct Banner {
    words: Vec<String>,
}

impl Banner {
    fn unsupported(&self, what: &'static str, word: usize, expected: &'static str) -> MatrixMarketError {
        let found = self.words[word].chars().take(40).collect();
        MatrixMarketError { path: None, line: 1, kind: Kind::Unsupported { what, found, expected } }
    }

    fn format(&self, expected: &'static str) -> Result<(), MatrixMarketError> {
        if self.words[2] == expected { Ok(()) } else { Err(self.unsupported("format", 2, expected)) }
    }

    fn field(&self, accepted: &[Field]) -> Result<Field, MatrixMarketError> {
        let word = if self.words[3] == "double" { "real" } else { &self.words[3] };
        let field = accepted.iter().find(|field| field.name() == word).copied();
        let expected = if accepted.len() == 3 { "real, integer or pattern" } else { "real or integer" };
        field.ok_or_else(|| self.unsupported("field", 3, expected))
    }

    fn symmetry(&self) -> Result<Symmetry, MatrixMarketError> {
        match self.words[4].as_str() {
            "general" => Ok(Symmetry::General),
            "symmetric" => Ok(Symmetry::Symmetric),
            "skew-symmetric" => Ok(Symmetry::SkewSymmetric),
            _ => Err(self.unsupported("symmetry", 4, "general, symmetric or skew-symmetric")),
        }
    }
}

/// Lines of the file with their numbers, after decompression.
struct Lines<'a> {
    source: Box<dyn BufRead + 'a>,
    line: u64,
    bytes: Vec<u8>,
}

impl<'a> Lines<'a> {
    fn new(mut source: impl Read + 'a) -> Result<Self, MatrixMarketError> {
        let mut magic = Vec::new();
        let io = |error: std::io::Error| MatrixMarketError { path: None, line: 0, kind: error.into() };
        source.by_ref().take(2).read_to_end(&mut magic).map_err(io)?;
        let gzip = magic == [0x1f, 0x8b];
        let whole = BufReader::with_capacity(64 << 10, Cursor::new(magic).chain(source));
        let source: Box<dyn BufRead + 'a> =
            if gzip { Box::new(BufReader::new(MultiGzDecoder::new(whole))) } else { Box::new(whole) };
        Ok(Self { source, line: 0, bytes: Vec::new() })
    }

    fn error(&self, kind: Kind) -> MatrixMarketError {
        MatrixMarketError { path: None, line: self.line, kind }
    }

    /// The next line as text without its end, or `None` at the end of the file.
    fn next(&mut self) -> Result<Option<&str>, MatrixMarketError> {
        self.line += 1;
        self.bytes.clear();
        let read = self.source.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut self.bytes);
        let read = read.map_err(|error| self.error(error.into()))? as u64;
        if read == 0 {
            return Ok(None);
        }
        if read == LINE_BYTES_MAX && self.bytes.last() != Some(&b'\n') {
            return Err(self.error(Kind::NotText));
        }
        match std::str::from_utf8(&self.bytes) {
            Ok(text) => Ok(Some(text.trim())),
            // Comments may be in any encoding.
            Err(_) if self.bytes.first() == Some(&b'%') => Ok(Some("%")),
            Err(_) => Err(MatrixMarketError { path: None, line: self.line, kind: Kind::NotText }),
        }
    }

    /// The next line that is neither blank nor a comment.
    fn next_fields(&mut self) -> Result<Option<String>, MatrixMarketError> {
        loop {
            match self.next()? {
                None => return Ok(None),
                Some(text) if text.is_empty() || text.starts_with('%') => {}
                Some(text) => return Ok(Some(text.to_owned())),
            }
        }
    }

    /// The fields of an entry, of which `found` came before and the file has announced so many.
    fn announced_fields(&mut self, found: u64, announced: u64) -> Result<String, MatrixMarketError> {
        self.next_fields()?.ok_or_else(|| self.error(Kind::Truncated { announced, found }))
    }

    fn banner(&mut self) -> Result<Banner, MatrixMarketError> {
        let text = self.next()?.unwrap_or_default();
        let words: Vec<String> = text.split_ascii_whitespace().map(str::to_ascii_lowercase).collect();
        if words.len() != 5 || words[0] != "%%matrixmarket" || words[1] != "matrix" {
            return Err(self.error(Kind::MissingBanner));
        }
        Ok(Banner { words })
    }

    fn sizes<const N: usize>(&mut self, expected: &'static str) -> Result<[u64; N], MatrixMarketError> {
        let text = self.next_fields()?.unwrap_or_default();
        let sizes: Option<Vec<u64>> = text.split_ascii_whitespace().map(|word| word.parse().ok()).collect();
        sizes.and_then(|sizes| sizes.try_into().ok()).ok_or_else(|| self.error(Kind::BadSize { expected }))
    }

    fn end(&mut self, announced: u64) -> Result<(), MatrixMarketError> {
        match self.next_fields()? {
            None => Ok(()),
            Some(_) => Err(self.error(Kind::TrailingData { announced })),
        }
    }
}

/// The fields of an entry; those above `expected` (at most 3) are empty.
fn split_fields(text: &str, expected: usize) -> Result<[&str; 3], Kind> {
    let mut fields = [""; 3];
    let mut found = 0;
    for word in text.split_ascii_whitespace() {
        if found < expected {
            fields[found] = word;
        }
        found += 1;
    }
    if found == expected { Ok(fields) } else { Err(Kind::FieldCount { expected, found }) }
}

/// An index of the file, counted from 0.
fn parse_index(text: &str, what: &'static str, max: u64) -> Result<u64, Kind> {
    let not = || Kind::NotANumber { found: text.chars().take(40).collect(), expected: "an index" };
    let index: u64 = text.parse().map_err(|_| not())?;
    if (1..=max).contains(&index) { Ok(index - 1) } else { Err(Kind::OutOfRange { what, index, max }) }
}

#[cfg(test)]
mod tests;
