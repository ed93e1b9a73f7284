//! Matrix Market files, plain or gzip (told by the first two bytes, not by the name): read by all ranks together, or by
//! one; and written.
//!
//! Matrices: `coordinate` with field `real`, `integer` or `pattern` (value 1), or `array` with `real` or `integer`;
//! symmetry `general`, `symmetric` or `skew-symmetric`. Vectors: `array`, one column. Fields and symmetries of
//! complex numbers are refused by name. Four decisions:
//!
//! * **explicit zeros are kept**: they are part of the pattern, which files of one family share. An array has no
//!   pattern, so its zeros are no entries;
//! * **duplicates are added**, in the order of the file, as `scipy.io.mmread` does and as finite element codes write
//!   them; [`Duplicates::Refuse`] makes them an error. The format does not say what they mean. A symmetric file that
//!   stores an entry in both triangles is always refused: adding would double it;
//! * **values must be finite**: `nan` and `inf` are refused. Fortran's `1.0D+3` is read. Integers are rounded to
//!   the nearest `f64`;
//! * **who reads what**: of a plain file each rank reads an equal part of the bytes, cut at ends of lines. A gzip stream
//!   cannot be cut: every rank inflates all of it, piece by piece, and parses every `size`-th piece. Then entries go to
//!   the owners of their rows. No rank holds the file or the matrix, and what is wrong with a line is the error of all
//!   ranks, the same that a single reader finds ([`read_rows`], [`read_dist_vector`]).
//!
//! The readers never panic, whatever the bytes, and allocate for what they have read, not for what a file announces.
//! [`read_matrix`] and [`read_vector`] are not collective: what they return is whole.
//!
//! Source: Boisvert, Pozo, Remington: The Matrix Market exchange formats, NISTIR 5935, 1996.

use std::{fs::File, io::Read, ops::Range, path::Path};

use crate::rows::{is_mirrored, largest_of};
use crate::{
    CsrRows, LinalgError, MatrixMarketError,
    error::MatrixMarketErrorKind as Kind,
    triplets::{self, Triplet, in_row},
};
use text::{Header, Lines, Stored};

mod parallel;
mod text;
mod write;

pub use parallel::{read_dist_vector, read_rows, read_rows_with};
pub use write::{write_rows, write_vector};

/// What happens to several entries of a file that have the same row and column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplicates {
    /// They are added, in the order of the file.
    #[default]
    Sum,
    /// They are an error.
    Refuse,
}

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

    /// Checks that a(i,j) and a(j,i) are equal up to rounding, for all i and j, as
    /// [`crate::DistRows::require_symmetric`] does. A missing entry counts as 0. O(nnz log nnz).
    ///
    /// # Errors
    /// [`LinalgError::NotSquare`], or [`LinalgError::NotSymmetric`] with the first pair, by rows, that differs.
    pub fn require_symmetric(&self) -> Result<(), LinalgError> {
        self.require_square()?;
        let mut largest = vec![0.0; self.rows];
        for row in self.entries.chunk_by(|a, b| a.row == b.row) {
            let values: Vec<f64> = row.iter().map(|entry| entry.value).collect();
            largest[row[0].row as usize] = largest_of(&values);
        }
        // An entry below the diagonal whose mirror is missing belongs to a pair that starts in its column's row.
        let differing = self.entries.iter().filter_map(|entry| {
            let mirrored = self.get(entry.col, entry.row).unwrap_or(0.0);
            let upper = (entry.row, entry.col, entry.value, mirrored);
            let lower = (entry.col, entry.row, mirrored, entry.value);
            let of_both = f64::max(largest[entry.row as usize], largest[entry.col as usize]);
            let is_good = is_mirrored(entry.value, mirrored, of_both);
            (!is_good).then_some(if entry.row < entry.col { upper } else { lower })
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

/// A file that every rank can read, and that ends.
fn open(path: &Path) -> Result<File, Kind> {
    Ok(ft_files::open(path).map_err(std::io::Error::from)?)
}

/// Reads a matrix from any source of bytes, plain or gzip. Duplicates are added.
///
/// # Errors
/// [`MatrixMarketError`] with the line.
pub fn parse_matrix(source: impl Read) -> Result<Coordinates, MatrixMarketError> {
    parse_matrix_with(source, Duplicates::default())
}

/// Reads a matrix as [`parse_matrix`] does, with a choice of what happens to duplicates.
///
/// # Errors
/// [`MatrixMarketError`] with the line.
pub fn parse_matrix_with(
    source: impl Read,
    duplicates: Duplicates,
) -> Result<Coordinates, MatrixMarketError> {
    let mut lines = Lines::new(source)?;
    let header = Header::matrix(&mut lines, duplicates)?;
    let mut entries: Vec<Triplet> = Vec::with_capacity(header.announced.min(RESERVE_MAX) as usize);
    each(&mut lines, &header, |index, stored, line| {
        header.spread(index, stored, line, |entry| entries.push(entry));
    })?;
    header.require_plausible(entries.len() as u64, lines.line)?;

    entries.sort_unstable_by(|a, b| a[0].cmp(&b[0]).then_with(|| in_row(a, b)));
    if let Some(clash) = Clash::first(&entries, duplicates) {
        return Err(clash.error());
    }
    let entry =
        |place: &[Triplet]| Entry { row: place[0][0], col: place[0][1], value: triplets::total(place) };
    let entries = entries.chunk_by(is_same_place).map(entry).collect();
    Ok(Coordinates { rows: header.rows as usize, cols: header.cols as usize, entries })
}

/// Reads a vector (an array of one column) from any source of bytes, plain or gzip.
///
/// # Errors
/// [`MatrixMarketError`] with the line.
pub fn parse_vector(source: impl Read) -> Result<Vec<f64>, MatrixMarketError> {
    let mut lines = Lines::new(source)?;
    let header = Header::vector(&mut lines)?;
    let mut values = Vec::with_capacity(header.announced.min(RESERVE_MAX) as usize);
    each(&mut lines, &header, |_, stored, _| values.push(stored.value))?;
    Ok(values)
}

/// Hands over each entry with its index and line, to the end of the file.
fn each(
    lines: &mut Lines<'_>,
    header: &Header,
    mut entry: impl FnMut(u64, Stored, u64),
) -> Result<(), MatrixMarketError> {
    let announced = header.announced;
    for index in 0..announced {
        let Some(fields) = lines.next_fields()? else {
            return Err(lines.error(Kind::Truncated { announced, found: index }));
        };
        let stored = header.entry(&fields).map_err(|kind| lines.error(kind))?;
        entry(index, stored, lines.line);
    }
    lines.end(announced)
}

/// Set in the key of an entry that stands for its mirror image in a symmetric file. The other bits are its line.
const MIRRORED: u64 = 1 << 63;

fn is_same_place(a: &Triplet, b: &Triplet) -> bool {
    a[..2] == b[..2]
}

/// Entries of one place that cannot be added, or must not be.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Clash {
    row: u64,
    col: u64,
    first_line: u64,
    line: u64,
    /// Whether the sum is too large; otherwise the entries must not be added.
    overflows: bool,
}

impl Clash {
    /// The first clash of `sorted` entries, whose keys are their lines.
    fn first(sorted: &[Triplet], duplicates: Duplicates) -> Option<Self> {
        let several = sorted.chunk_by(is_same_place).filter(|place| place.len() > 1);
        several.filter_map(|place| Self::of(place, duplicates)).next()
    }

    /// The clash of the entries of one place.
    fn of(place: &[Triplet], duplicates: Duplicates) -> Option<Self> {
        let clash = |first: &Triplet, other: &Triplet, overflows| {
            let lines = [first, other].map(|entry| entry[2] & !MIRRORED);
            let (first_line, line) = (lines[0].min(lines[1]), lines[0].max(lines[1]));
            Self { row: first[0], col: first[1], first_line, line, overflows }
        };
        let refused =
            |pair: &&[Triplet]| duplicates == Duplicates::Refuse || (pair[0][2] ^ pair[1][2]) & MIRRORED != 0;
        let refused = place.windows(2).find(refused).map(|pair| clash(&pair[0], &pair[1], false));
        refused.or_else(|| {
            let last = &place[place.len() - 1];
            (!triplets::total(place).is_finite()).then(|| clash(&place[0], last, true))
        })
    }

    fn error(self) -> MatrixMarketError {
        let Self { row, col, first_line, line, overflows } = self;
        let (row, col) = (row + 1, col + 1);
        let kind = match overflows {
            true => Kind::SumOverflow { row, col, first_line },
            false => Kind::Duplicate { row, col, first_line },
        };
        MatrixMarketError { path: None, line, kind }
    }
}

#[cfg(test)]
mod tests;
