//! Words and lines of the format.

use std::io::{BufRead, Read};

use ft_files::{Unpacked, unpack};

use super::{Duplicates, MIRRORED};
use crate::{
    MatrixMarketError,
    error::MatrixMarketErrorKind as Kind,
    triplets::{Triplet, triplet},
};

/// Longest line that is read, in bytes. The format says 1024.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// Most rows or columns of a matrix, whatever is in it.
const DIMENSION_MAX: u64 = 1 << 32;
/// Rows or columns above this number need an entry for at least every 16th of them: else a file of a few bytes
/// could make its reader set aside gigabytes for row pointers and vectors.
const DIMENSION_SPARSE_MAX: u64 = 1 << 24;

/// What a file says of its entries before they come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Header {
    format: Format,
    field: Field,
    symmetry: Symmetry,
    pub(super) rows: u64,
    pub(super) cols: u64,
    /// Entries to come.
    pub(super) announced: u64,
}

/// An entry of a file; its place is known at once in the coordinate format only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stored {
    pub(super) place: Option<(u64, u64)>,
    pub(super) value: f64,
}

impl Header {
    /// The header of a matrix.
    pub(super) fn matrix(lines: &mut Lines<'_>, duplicates: Duplicates) -> Result<Self, MatrixMarketError> {
        let banner = lines.banner()?;
        let format = banner.format()?;
        let fields = match format {
            Format::Coordinate => &[Field::Real, Field::Integer, Field::Pattern][..],
            Format::Array => &[Field::Real, Field::Integer],
        };
        let (field, symmetry) = (banner.field(fields)?, banner.symmetry()?);
        let (rows, cols, entries) = match format {
            Format::Coordinate => {
                let [rows, cols, entries] = lines.sizes("three integers: rows, columns, entries")?;
                (rows, cols, u128::from(entries))
            }
            Format::Array => {
                let [rows, cols] = lines.sizes("two integers: rows, columns")?;
                (rows, cols, triangle(symmetry, rows, cols))
            }
        };
        let is_list = format == Format::Coordinate && duplicates == Duplicates::Sum;
        let too_many = !is_list && entries > u128::from(rows) * u128::from(cols);
        let not_square = symmetry != Symmetry::General && rows != cols;
        let announced = u64::try_from(entries);
        match announced {
            Ok(announced) if rows.max(cols) <= DIMENSION_MAX && !too_many && !not_square => {
                Ok(Self { format, field, symmetry, rows, cols, announced })
            }
            _ => {
                let entries = announced.unwrap_or(u64::MAX);
                Err(lines.error(Kind::SizeLimit { rows, cols, entries }))
            }
        }
    }

    /// The header of a vector.
    pub(super) fn vector(lines: &mut Lines<'_>) -> Result<Self, MatrixMarketError> {
        let banner = lines.banner()?;
        if banner.words[2] != "array" {
            return Err(banner.unsupported("format", 2, "array"));
        }
        let field = banner.field(&[Field::Real, Field::Integer])?;
        let symmetry = banner.symmetry()?;
        if symmetry != Symmetry::General {
            return Err(banner.unsupported("symmetry", 4, "general"));
        }
        let [rows, cols] = lines.sizes("two integers: rows, columns")?;
        if cols != 1 {
            return Err(lines.error(Kind::NotAVector { cols }));
        }
        if rows > DIMENSION_MAX {
            return Err(lines.error(Kind::SizeLimit { rows, cols, entries: rows }));
        }
        Ok(Self { format: Format::Array, field, symmetry, rows, cols, announced: rows })
    }

    /// What the line of an entry says.
    pub(super) fn entry(&self, text: &str) -> Result<Stored, Kind> {
        if self.format == Format::Array {
            let [value, ..] = split_fields(text, 1)?;
            return Ok(Stored { place: None, value: self.field.parse(value)? });
        }
        let expected = if self.field == Field::Pattern { 2 } else { 3 };
        let [row, col, value] = split_fields(text, expected)?;
        let (row, col) = (parse_index(row, "row", self.rows)?, parse_index(col, "column", self.cols)?);
        let value = self.field.parse(value)?;
        if self.symmetry == Symmetry::SkewSymmetric && row == col {
            return Err(Kind::SkewDiagonal { row: row + 1 });
        }
        Ok(Stored { place: Some((row, col)), value })
    }

    /// Hands over entry `index` of the file, which stands on `line`, and what it stands for in a symmetric matrix. Zeros
    /// of an array are no entries: it has no pattern.
    pub(super) fn spread(&self, index: u64, stored: Stored, line: u64, mut put: impl FnMut(Triplet)) {
        let Stored { place, value } = stored;
        if place.is_none() && value == 0.0 {
            return;
        }
        let (row, col) = place.unwrap_or_else(|| self.place(index));
        put(triplet(row as usize, col as usize, line, value));
        let mut put_mirrored = |value| put(triplet(col as usize, row as usize, line | MIRRORED, value));
        match self.symmetry {
            Symmetry::General => {}
            _ if row == col => {}
            Symmetry::Symmetric => put_mirrored(value),
            Symmetry::SkewSymmetric => put_mirrored(-value),
        }
    }

    /// Row and column of the value `index` of an array: column by column, of a symmetric one what is not above the
    /// diagonal, of a skew-symmetric one what is below it.
    fn place(&self, index: u64) -> (u64, u64) {
        let before = |col: u64| triangle(self.symmetry, self.rows, col);
        // The last column that starts at or before it.
        let (mut col, mut after) = (0, self.cols);
        while after - col > 1 {
            let middle = col + (after - col) / 2;
            if before(middle) <= u128::from(index) { col = middle } else { after = middle }
        }
        let top = match self.symmetry {
            Symmetry::General => 0,
            Symmetry::Symmetric => col,
            Symmetry::SkewSymmetric => col + 1,
        };
        (top + (u128::from(index) - before(col)) as u64, col)
    }

    /// Refuses large matrices that are nearly empty; `line` is the end of the file.
    pub(super) fn require_plausible(&self, entries: u64, line: u64) -> Result<(), MatrixMarketError> {
        let Self { format, rows, cols, announced, .. } = *self;
        // The zeros of an array were in the file too.
        let entries = if format == Format::Array { announced } else { entries };
        if rows.max(cols) <= DIMENSION_SPARSE_MAX.max(entries.saturating_mul(16)) {
            return Ok(());
        }
        let kind = Kind::SizeLimit { rows, cols, entries: announced };
        Err(MatrixMarketError { path: None, line, kind })
    }

    /// The header as words, for comparison.
    pub(super) fn words(&self) -> [u64; 6] {
        let Self { format, field, symmetry, rows, cols, announced } = *self;
        [format as u64, field as u64, symmetry as u64, rows, cols, announced]
    }
}

/// Values of the first `cols` columns of an array with so many rows.
fn triangle(symmetry: Symmetry, rows: u64, cols: u64) -> u128 {
    let (rows, cols) = (u128::from(rows), u128::from(cols));
    let whole = rows * cols;
    match symmetry {
        Symmetry::General => whole,
        Symmetry::Symmetric => whole.saturating_sub(cols * cols.saturating_sub(1) / 2),
        Symmetry::SkewSymmetric => whole.saturating_sub(cols * (cols + 1) / 2),
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Coordinate,
    Array,
}

#[derive(Clone, Copy, Debug, PartialEq)]
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
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Symmetry {
    General,
    Symmetric,
    SkewSymmetric,
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

    fn format(&self) -> Result<Format, MatrixMarketError> {
        match self.words[2].as_str() {
            "coordinate" => Ok(Format::Coordinate),
            "array" => Ok(Format::Array),
            _ => Err(self.unsupported("format", 2, "coordinate or array")),
        }
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

/// What came of leaving a line out.
#[derive(Debug, PartialEq)]
pub(super) enum Skipped {
    /// It is passed.
    Line,
    /// There is none.
    End,
    /// It has not ended within [`LINE_BYTES_MAX`].
    TooLong,
}

/// Lines of the file with their numbers, after decompression.
pub(super) struct Lines<'a> {
    source: Box<dyn BufRead + 'a>,
    /// Number of the line that was read last.
    pub(super) line: u64,
    /// Bytes of all lines so far.
    pub(super) offset: u64,
    /// Whether the bytes came out of a gzip stream.
    pub(super) gzip: bool,
    bytes: Vec<u8>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(source: impl Read + 'a) -> Result<Self, MatrixMarketError> {
        let io = |error: std::io::Error| MatrixMarketError { path: None, line: 0, kind: error.into() };
        let Unpacked { bytes: source, gzip } = unpack(source).map_err(io)?;
        Ok(Self { source, line: 0, offset: 0, gzip, bytes: Vec::new() })
    }

    /// From lines in the middle of a plain file.
    pub(super) fn middle(source: impl BufRead + 'a) -> Self {
        Self { source: Box::new(source), line: 0, offset: 0, gzip: false, bytes: Vec::new() }
    }

    /// Leaves a line out, whatever is in it.
    pub(super) fn skip(&mut self) -> std::io::Result<Skipped> {
        self.line += 1;
        self.bytes.clear();
        let read = self.source.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut self.bytes)? as u64;
        self.offset += read;
        Ok(match self.bytes.last() {
            None => Skipped::End,
            Some(b'\n') => Skipped::Line,
            Some(_) if read == LINE_BYTES_MAX => Skipped::TooLong,
            Some(_) => Skipped::Line,
        })
    }

    pub(super) fn error(&self, kind: Kind) -> MatrixMarketError {
        MatrixMarketError { path: None, line: self.line, kind }
    }

    /// The next line as text without its end, or `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<&str>, MatrixMarketError> {
        self.line += 1;
        self.bytes.clear();
        let read = self.source.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut self.bytes);
        let read = read.map_err(|error| self.error(error.into()))? as u64;
        self.offset += read;
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
    pub(super) fn next_fields(&mut self) -> Result<Option<String>, MatrixMarketError> {
        loop {
            match self.next()? {
                None => return Ok(None),
                Some(text) if !has_fields(text) => {}
                Some(text) => return Ok(Some(text.to_owned())),
            }
        }
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

    pub(super) fn end(&mut self, announced: u64) -> Result<(), MatrixMarketError> {
        match self.next_fields()? {
            None => Ok(()),
            Some(_) => Err(self.error(Kind::TrailingData { announced })),
        }
    }
}

/// Whether a line is neither blank nor a comment.
pub(super) fn has_fields(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('%')
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
