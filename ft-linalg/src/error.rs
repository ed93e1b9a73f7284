//! What can go wrong, with the numbers in it.
//!
//! A collective function that finds fault with its input returns an error on *every* rank, so that none is left
//! waiting: the rank at fault gets the cause, the others get [`LinalgError::OtherRank`].

use std::path::{Path, PathBuf};

use ft_comm::limits;
use ft_comm::{CommError, Communicator, Rank};

/// Errors of this crate. Indices in the fields count from 0, in the texts from 1, as in Matrix Market files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinalgError {
    /// A message could not be sent or received. Contents of the vectors written by the call are unspecified.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// A file could not be read. Nothing else has happened.
    #[error(transparent)]
    MatrixMarket(#[from] MatrixMarketError),
    /// A file could not be written.
    #[error("{}: {}", path.display(), limits::explain(.error))]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        error: std::io::Error,
    },
    /// Rank `rank` refused its part of a collective call and has the cause. No rank's state changed.
    #[error("rank {rank} refused its part of the input")]
    OtherRank {
        /// Lowest rank that refused.
        rank: Rank,
    },
    /// The operation needs as many columns as rows.
    #[error("matrix is {rows} x {cols}, not square")]
    NotSquare {
        /// Number of rows.
        rows: usize,
        /// Number of columns.
        cols: usize,
    },
    /// The operation needs a(i,j) = a(j,i) for all i, j; this is a pair that differs, of a whole matrix the first by rows.
    #[error("matrix is not symmetric: a({},{}) = {value:e} but a({},{}) = {mirrored:e}", .row + 1, .col + 1, .col + 1, .row + 1)]
    NotSymmetric {
        /// Row of the first entry, the smaller index.
        row: usize,
        /// Column of the first entry.
        col: usize,
        /// Value at (row, col); 0 where nothing is stored.
        value: f64,
        /// Value at (col, row); 0 where nothing is stored.
        mirrored: f64,
    },
    /// Rows handed over as CSR arrays contradict themselves.
    #[error("local row {}: {what}", .row + 1)]
    BadRows {
        /// Local row at which it was found.
        row: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A partition was asked for that cannot be: rank `rank` would start at row `row`.
    #[error("rank {rank} cannot start at row {}: {what}", .row + 1)]
    BadCut {
        /// The rank.
        rank: Rank,
        /// Its first row.
        row: usize,
        /// What cuts have to be.
        what: &'static str,
    },
    /// An entry is no finite number; of all such entries, on all ranks, this one is the first by rows.
    #[error("entry ({},{}) is {value}, needs to be finite", .row + 1, .col + 1)]
    NotFinite {
        /// Its row.
        row: usize,
        /// Its column.
        col: usize,
        /// Its value.
        value: f64,
    },
    /// An entry is outside of the matrix; of all such entries, on all ranks, this one is the first by rows.
    #[error("entry ({},{}) is outside of a matrix of {rows} x {cols}", .row + 1, .col + 1)]
    OutsideMatrix {
        /// Its row.
        row: usize,
        /// Its column.
        col: usize,
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        cols: usize,
    },
    /// Rows or columns were asked for, or put into an order, by an index that there is not or that was given before.
    #[error("{what} {} was given before, or is not below {n}", .index + 1)]
    BadSelection {
        /// `row`, `column` or `index`.
        what: &'static str,
        /// The index.
        index: usize,
        /// How many there are.
        n: usize,
    },
    /// A preconditioner needs every diagonal entry to be positive and finite; this is the first row where it is not.
    #[error("diagonal entry of row {} is {value:e}, needs to be positive and finite", .row + 1)]
    BadDiagonal {
        /// Global row.
        row: usize,
        /// Its diagonal value, 0 where nothing is stored.
        value: f64,
    },
    /// A block of a preconditioner has no factors: this is the first row whose pivot cannot be divided by, or is not positive
    /// where it needs to be.
    #[error("pivot of row {} is {value:e}{}, the block around it cannot be factorized", .row + 1, after(*.shifts))]
    BadPivot {
        /// Global row.
        row: usize,
        /// Its pivot, 0 where no diagonal entry is stored.
        value: f64,
        /// How many times the diagonal was made larger before.
        shifts: u32,
    },
    /// Two objects do not fit together. A mistake in the calling program or a file of another problem.
    #[error("{what} has length {found}, expected {expected}")]
    Length {
        /// Which object.
        what: &'static str,
        /// Length that would fit.
        expected: usize,
        /// Length it has.
        found: usize,
    },
    /// The problem does not fit into memory or into an index type.
    #[error("{what} of {wanted} elements is too large")]
    TooLarge {
        /// Which object.
        what: &'static str,
        /// Number of elements asked for.
        wanted: u128,
    },
    /// The matrix was restored from a checkpoint but its halo plan was not made again: call `DistMatrix::rebuild`.
    #[error("matrix has no halo plan, it was not rebuilt after a restore")]
    NotRebuilt,
    /// A solver or a preconditioner needs something that the operator does not have.
    #[error("{what} needs {needs}, which the operator does not have")]
    Unfit {
        /// Who needs it.
        what: &'static str,
        /// What it needs.
        needs: &'static str,
    },
    /// More eigenvalues were asked for than the matrix has.
    #[error("{count} eigenvalues were asked of a matrix of {rows} rows. Ask for at most {rows}")]
    TooManyEigenvalues {
        /// How many were asked for.
        count: usize,
        /// Rows of the matrix.
        rows: usize,
    },
    /// A product with the transpose was asked of an operator, or of a preconditioner, that has none.
    #[error("the operator has no product with its transpose")]
    NoTranspose,
    /// The communicator and the partition of an object differ in size or in rank.
    #[error("object belongs to rank {part_rank} of {part_size}, the communicator is rank {rank} of {size}")]
    WrongCommunicator {
        /// Rank in the partition.
        part_rank: Rank,
        /// Size of the partition.
        part_size: usize,
        /// Rank in the communicator.
        rank: Rank,
        /// Size of the communicator.
        size: usize,
    },
}

/// " after 3 shifts of the diagonal", if there were any.
fn after(shifts: u32) -> String {
    if shifts == 0 { String::new() } else { format!(" after {shifts} shifts of the diagonal") }
}

/// Why a Matrix Market file was refused, or could not be written, and where.
#[derive(Debug, thiserror::Error)]
#[error("{}{kind}", place(.path.as_deref(), *.line))]
pub struct MatrixMarketError {
    /// The file, where there is one.
    pub path: Option<PathBuf>,
    /// Line, counted from 1; 0 when the file could not be opened or written.
    pub line: u64,
    /// What is wrong.
    #[source]
    pub kind: MatrixMarketErrorKind,
}

/// "FILE, line 3: ", without what is not known.
fn place(path: Option<&Path>, line: u64) -> String {
    let path = path.map(|path| path.display().to_string());
    let line = (line > 0).then(|| format!("line {line}"));
    let known: Vec<String> = path.into_iter().chain(line).collect();
    if known.is_empty() { String::new() } else { format!("{}: ", known.join(", ")) }
}

/// What is wrong with a line of a Matrix Market file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MatrixMarketErrorKind {
    /// The system or the gzip stream failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Ranks on several hosts were given one name, and it is not the same file everywhere.
    #[error("another file than that of rank 0")]
    Differs,
    /// The first line does not start with `%%MatrixMarket matrix`.
    #[error("banner missing, expected %%MatrixMarket matrix ...")]
    MissingBanner,
    /// Format, field or symmetry that this reader does not do, such as `complex`.
    #[error("{what} {found:?} is not supported, expected {expected}")]
    Unsupported {
        /// Which word of the banner: format, field or symmetry.
        what: &'static str,
        /// The word in the file.
        found: String,
        /// What would be accepted.
        expected: &'static str,
    },
    /// The line with the sizes is missing or malformed.
    #[error("size line needs {expected}")]
    BadSize {
        /// What it should hold.
        expected: &'static str,
    },
    /// More than 2^32 rows, more than 2^24 of which nearly all are empty, more entries than a matrix of that size
    /// has (where duplicates are refused), or a symmetric matrix that is not square.
    #[error("{rows} x {cols} with {entries} entries is impossible or too large")]
    SizeLimit {
        /// Announced rows.
        rows: u64,
        /// Announced columns.
        cols: u64,
        /// Announced entries.
        entries: u64,
    },
    /// An entry has too few or too many fields.
    #[error("entry has {found} fields, expected {expected}")]
    FieldCount {
        /// Fields an entry has in this format.
        expected: usize,
        /// Fields on the line.
        found: usize,
    },
    /// A field is not a finite number, or not an integer where one is needed.
    #[error("{found:?} is not {expected}")]
    NotANumber {
        /// The field, cut to 40 characters.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
    /// An index is outside the announced size.
    #[error("{what} {index} is outside 1..={max}")]
    OutOfRange {
        /// `row` or `column`.
        what: &'static str,
        /// Index in the file, from 1.
        index: u64,
        /// Largest valid index.
        max: u64,
    },
    /// The file ends before all entries were there.
    #[error("file ends after {found} of {announced} entries")]
    Truncated {
        /// Entries announced.
        announced: u64,
        /// Entries found.
        found: u64,
    },
    /// There is more in the file than was announced.
    #[error("data after the last of {announced} entries")]
    TrailingData {
        /// Entries announced.
        announced: u64,
    },
    /// A place is given twice where duplicates are refused, or once in each triangle of a symmetric file.
    #[error("entry ({row},{col}) was given before, on line {first_line}")]
    Duplicate {
        /// Row, from 1.
        row: u64,
        /// Column, from 1.
        col: u64,
        /// Line of the first one.
        first_line: u64,
    },
    /// The sum of the entries of one place is too large for a double.
    #[error("the entries ({row},{col}) from line {first_line} on add up to no finite number")]
    SumOverflow {
        /// Row, from 1.
        row: u64,
        /// Column, from 1.
        col: u64,
        /// Line of the first one.
        first_line: u64,
    },
    /// A skew-symmetric matrix has no diagonal.
    #[error("diagonal entry {row} in a skew-symmetric matrix")]
    SkewDiagonal {
        /// Row, from 1.
        row: u64,
    },
    /// A line is not text or longer than 64 KiB.
    #[error("line is not text or longer than 64 KiB")]
    NotText,
    /// A vector was asked for and the file holds a matrix of several columns.
    #[error("expected one column, found {cols}")]
    NotAVector {
        /// Announced columns.
        cols: u64,
    },
}

/// Makes a local verdict the verdict of all ranks, so that none is left waiting for one that gave up. Collective; the cost is an allgather of one byte per rank.
///
/// # Errors
/// The own error where there is one, else [`LinalgError::OtherRank`] when another rank has one.
pub fn agree<T>(verdict: Result<T, LinalgError>, comm: &Communicator) -> Result<T, LinalgError> {
    let mut refused = vec![0u8; comm.size()];
    comm.allgather(&[u8::from(verdict.is_err())], &mut refused)?;
    let value = verdict?;
    match refused.iter().position(|&flag| flag != 0) {
        Some(rank) => Err(LinalgError::OtherRank { rank }),
        None => Ok(value),
    }
}

/// An entry that cannot be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EntryFault {
    pub(crate) row: u64,
    pub(crate) col: u64,
    pub(crate) value: f64,
    /// Whether the matrix has such a place; then it is the value that is wrong.
    pub(crate) inside: bool,
}

impl EntryFault {
    /// Makes the first fault by rows that any rank has the error of all ranks. `rows` and `cols` are the size of the
    /// matrix. Collective, an allgather of five words.
    pub(crate) fn agree(
        mine: Option<Self>,
        rows: usize,
        cols: usize,
        comm: &Communicator,
    ) -> Result<(), LinalgError> {
        let words = mine.map_or([0; 5], |fault| {
            [1, fault.row, fault.col, fault.value.to_bits(), u64::from(fault.inside)]
        });
        let mut all = vec![0; 5 * comm.size()];
        comm.allgather(&words, &mut all)?;
        let (all, _) = all.as_chunks::<5>();
        let Some(first) = all.iter().filter(|words| words[0] == 1).min() else { return Ok(()) };
        let (row, col) = (first[1] as usize, first[2] as usize);
        Err(match first[4] {
            0 => LinalgError::OutsideMatrix { row, col, rows, cols },
            _ => LinalgError::NotFinite { row, col, value: f64::from_bits(first[3]) },
        })
    }
}
