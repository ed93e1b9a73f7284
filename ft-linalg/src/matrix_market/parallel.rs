//! A file read by all ranks together.
//!
//! The lines after the header are cut into *pieces*, in the order of the file; piece `p` is parsed by rank
//! `p mod size`. How many lines and entries each piece has is told to all, and from that follows which line every entry
//! stands on, and what is wrong with the file first, as a single reader would find it. What is wrong with a line is told
//! by sending the line to all ranks, which parse it and so have the same error.

use std::{
    io::{BufReader, Seek, SeekFrom},
    ops::Range,
    path::Path,
};

use ft_comm::{Communicator, Op};

use super::{
    Clash, Duplicates, Kind, MIRRORED, is_same_place, open,
    text::{Header, Lines, Skipped, Stored, has_fields},
};
use crate::{
    DistRows, DistVector, LinalgError, MatrixMarketError, Partition,
    error::agree,
    rows::weigh,
    triplets::{self, Triplet, triplet, value},
};

/// Bytes of text in a piece of a gzip stream.
const PIECE_BYTES: u64 = 1 << 20;

/// Reads a matrix, cut by nonzeros; duplicates are added. See the module above for what is accepted, and who reads what.
/// Collective.
///
/// A rank holds its share of the entries, at no more than 72 bytes each, until they are with the owners of their rows.
///
/// # Errors
/// On every rank what is wrong first, with the path and the line: [`LinalgError::MatrixMarket`]. Where a file is broken
/// for one rank only, the others have [`LinalgError::OtherRank`]. [`LinalgError::Comm`].
pub fn read_rows(path: impl AsRef<Path>, comm: &Communicator) -> Result<DistRows, LinalgError> {
    Ok(read_rows_with(path, Duplicates::default(), comm)?.0)
}

/// Reads a matrix as [`read_rows`] does, with a choice of what happens to duplicates. Also returns how many entries of
/// the file were added to an earlier one, the same number on all ranks. Collective.
///
/// # Errors
/// Those of [`read_rows`].
pub fn read_rows_with(
    path: impl AsRef<Path>,
    duplicates: Duplicates,
    comm: &Communicator,
) -> Result<(DistRows, u64), LinalgError> {
    matrix_in_pieces(path.as_ref(), duplicates, PIECE_BYTES, comm)
}

/// Reads a vector (an array of one column), cut as `part`. Collective, as [`read_rows`].
///
/// # Errors
/// As [`read_rows`]; [`LinalgError::Length`] on every rank when the file has another length.
pub fn read_dist_vector(
    part: &Partition,
    path: impl AsRef<Path>,
    comm: &Communicator,
) -> Result<DistVector, LinalgError> {
    vector_in_pieces(part, path.as_ref(), PIECE_BYTES, comm)
}

fn matrix_in_pieces(
    path: &Path,
    duplicates: Duplicates,
    piece_bytes: u64,
    comm: &Communicator,
) -> Result<(DistRows, u64), LinalgError> {
    let file = Whole::read(path, |lines| Header::matrix(lines, duplicates), piece_bytes, comm)?;
    let (header, end) = (file.header, file.end);
    let mut entries: Vec<Triplet> = Vec::new();
    file.each(|index, stored, line| header.spread(index, stored, line, |entry| entries.push(entry)));
    let mut stored = [entries.len() as u64];
    comm.allreduce(&mut stored, Op::Sum)?;
    header.require_plausible(stored[0], end).map_err(|error| at(path, error))?;

    let part = weigh(header.rows as usize, &entries, comm)?;
    let (row_ptr, sorted) = triplets::by_row(triplets::to_owners(entries, &part, comm)?, &part);
    let clash = Clash::first(&sorted, duplicates).map_or([0; CLASH_WORDS], Clash::words);
    let mut all = vec![0; CLASH_WORDS * comm.size()];
    comm.allgather(&clash, &mut all)?;
    // Ranks hold ascending rows, so the first rank with a clash has the first one.
    if let Some(clash) = all.as_chunks().0.iter().find_map(Clash::from_words) {
        return Err(at(path, clash.error()));
    }
    let is_stored = |entry: &&Triplet| entry[2] & MIRRORED == 0;
    let added = |place: &[Triplet]| place.iter().filter(is_stored).count().saturating_sub(1) as u64;
    let mut added = [sorted.chunk_by(is_same_place).map(added).sum()];
    comm.allreduce(&mut added, Op::Sum)?;
    let rows = triplets::sum(&row_ptr, &sorted);
    Ok((DistRows::new(part, header.cols as usize, rows, comm)?, added[0]))
}

/// Words of a [`Clash`] on its way to all ranks.
const CLASH_WORDS: usize = 5;

impl Clash {
    fn words(self) -> [u64; CLASH_WORDS] {
        let Self { row, col, first_line, line, overflows } = self;
        [1 + u64::from(overflows), row, col, first_line, line]
    }

    /// The clash that [`Self::words`] wrote; zeros are none.
    fn from_words(words: &[u64; CLASH_WORDS]) -> Option<Self> {
        let [kind, row, col, first_line, line] = *words;
        (kind > 0).then_some(Self { row, col, first_line, line, overflows: kind == 2 })
    }
}

fn vector_in_pieces(
    part: &Partition,
    path: &Path,
    piece_bytes: u64,
    comm: &Communicator,
) -> Result<DistVector, LinalgError> {
    agree(part.require(comm), comm)?;
    let file = Whole::read(path, Header::vector, piece_bytes, comm)?;
    let (expected, found) = (part.n(), file.header.rows as usize);
    if expected != found {
        return Err(LinalgError::Length { what: "vector", expected, found });
    }
    let mut entries: Vec<Triplet> = Vec::new();
    file.each(|index, stored, _| entries.push(triplet(index as usize, 0, 0, stored.value)));
    let (_, sorted) = triplets::by_row(triplets::to_owners(entries, part, comm)?, part);
    DistVector::from_local(part.clone(), sorted.iter().map(value).collect())
}

fn at(path: &Path, error: MatrixMarketError) -> LinalgError {
    MatrixMarketError { path: Some(path.to_owned()), ..error }.into()
}

/// What one rank has parsed of a piece.
#[derive(Default)]
struct Piece {
    lines: u64,
    /// Each entry with its line, counted from 1 in the piece.
    entries: Vec<(u64, Stored)>,
    /// What ended the piece; its line is the last one.
    failure: Option<Failure>,
}

/// Why a line was the last one of its piece.
enum Failure {
    /// It is no entry.
    Entry(String),
    /// It is not text.
    NotText,
    /// It could not be read.
    Io(std::io::Error),
}

/// What all ranks know of a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Summary {
    lines: u64,
    entries: u64,
    failed: bool,
    /// Whether the line was read, and is text.
    text: bool,
}

/// What is to be said of the whole file.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// All is there.
    Whole,
    /// The file ends too early.
    Truncated { found: u64 },
    /// There is an entry too many: this one of the piece, or, where that is none, the last line of it.
    Trailing { piece: usize, entry: u64 },
    /// The failure of this piece.
    Failed { piece: usize },
}

/// What a single reader would say first.
fn judge(pieces: &[Summary], announced: u64) -> Verdict {
    let mut found = 0;
    for (piece, summary) in pieces.iter().enumerate() {
        let entry = announced - found;
        // The line that failed may be the one too many, if anybody can tell that it is not blank.
        if entry < summary.entries || (entry == summary.entries && summary.failed && summary.text) {
            return Verdict::Trailing { piece, entry };
        }
        if summary.failed {
            return Verdict::Failed { piece };
        }
        found += summary.entries;
    }
    if found < announced { Verdict::Truncated { found } } else { Verdict::Whole }
}

/// A file that is right, as far as single lines and the number of entries go.
struct Whole {
    header: Header,
    /// The line after the last one.
    end: u64,
    /// This rank's pieces, with the lines and the entries before each.
    pieces: Vec<(Piece, u64, u64)>,
}

impl Whole {
    /// Collective. Entries are in `pieces` with the numbers of lines and entries before their piece.
    fn read(
        path: &Path,
        header: impl Fn(&mut Lines<'_>) -> Result<Header, MatrixMarketError>,
        piece_bytes: u64,
        comm: &Communicator,
    ) -> Result<Self, LinalgError> {
        let opened = start(path, header);
        let (mut lines, header, bytes) = agree(opened.map_err(|error| at(path, error)), comm)?;
        let first = lines.line;
        let words: Vec<u64> =
            header.words().into_iter().chain([bytes, lines.offset, first, u64::from(lines.gzip)]).collect();
        let mut root = words.clone();
        comm.bcast(&mut root, 0)?;
        let same = if root == words { Ok(()) } else { Err(failed(path, 0, Kind::Differs)) };
        agree(same, comm)?;

        let (rank, size) = (comm.rank(), comm.size());
        let Share { pieces: mine, count, broken } = if lines.gzip {
            inflate(&mut lines, &header, piece_bytes, rank, size)
        } else {
            let (from, rest) = (lines.offset, bytes.saturating_sub(lines.offset));
            let cut = |rank: usize| from + (u128::from(rest) * rank as u128 / size as u128) as u64;
            Share {
                pieces: vec![range(path, cut(rank)..cut(rank + 1), from, &header)],
                count: size,
                broken: None,
            }
        };
        let mut count = [count];
        comm.allreduce(&mut count, Op::Max)?;
        let summaries = summarize(&mine, count[0], comm)?;
        let line_before = |piece: usize| first + summaries[..piece].iter().map(|one| one.lines).sum::<u64>();
        let own = |piece: usize| if piece % size == rank { mine.get(piece / size) } else { None };
        match judge(&summaries, header.announced) {
            Verdict::Whole => {}
            Verdict::Truncated { found } => {
                let kind = Kind::Truncated { announced: header.announced, found };
                return Err(failed(path, line_before(count[0]) + 1, kind));
            }
            Verdict::Trailing { piece, entry } => {
                let line = |own: &Piece| own.entries.get(entry as usize).map_or(own.lines, |(line, _)| *line);
                let mut line = [own(piece).map_or(0, line)];
                comm.bcast(&mut line, piece % size)?;
                let kind = Kind::TrailingData { announced: header.announced };
                return Err(failed(path, line_before(piece) + line[0], kind));
            }
            Verdict::Failed { piece } => {
                let line = line_before(piece) + summaries[piece].lines;
                let failure = own(piece).and_then(|piece| piece.failure.as_ref());
                let kind = match tell(failure, piece % size, comm)? {
                    Told::Entry(text) => header.entry(&text).err().unwrap_or(Kind::NotText),
                    Told::NotText => Kind::NotText,
                    // A broken gzip stream is broken for all of them, a disk for one.
                    Told::Io => match mine.into_iter().find_map(|piece| piece.failure).or(broken) {
                        Some(Failure::Io(error)) => error.into(),
                        _ => return Err(LinalgError::OtherRank { rank: piece % size }),
                    },
                };
                return Err(failed(path, line, kind));
            }
        }
        let (mut line, mut entry) = (first, 0);
        let mut pieces = Vec::with_capacity(mine.len());
        let mut mine = mine.into_iter();
        for (piece, summary) in summaries.iter().enumerate() {
            if piece % size == rank {
                pieces.extend(mine.next().map(|own| (own, line, entry)));
            }
            line += summary.lines;
            entry += summary.entries;
        }
        Ok(Self { header, end: line + 1, pieces })
    }

    /// This rank's entries, each with its index and its line in the file.
    fn each(self, mut entry: impl FnMut(u64, Stored, u64)) {
        for (piece, line_before, entries_before) in self.pieces {
            for (k, (line, stored)) in piece.entries.into_iter().enumerate() {
                entry(entries_before + k as u64, stored, line_before + line);
            }
        }
    }
}

/// Opens the file and reads its header; gives its length, too.
fn start(
    path: &Path,
    header: impl Fn(&mut Lines<'_>) -> Result<Header, MatrixMarketError>,
) -> Result<(Lines<'static>, Header, u64), MatrixMarketError> {
    let io = |kind| MatrixMarketError { path: None, line: 0, kind };
    let file = open(path).map_err(io)?;
    let bytes = file.metadata().map_err(|error| io(error.into()))?.len();
    let mut lines = Lines::new(file)?;
    let header = header(&mut lines)?;
    Ok((lines, header, bytes))
}

fn failed(path: &Path, line: u64, kind: Kind) -> LinalgError {
    at(path, MatrixMarketError { path: None, line, kind })
}

/// A rank's pieces.
struct Share {
    pieces: Vec<Piece>,
    /// Pieces of the file, as far as this rank has read it.
    count: usize,
    /// What ended the stream within a piece of another rank.
    broken: Option<Failure>,
}

impl Piece {
    /// Takes the next line; whether there may be another one.
    fn take(&mut self, lines: &mut Lines<'_>, header: &Header) -> bool {
        let read = lines.next();
        if matches!(read, Ok(None)) {
            return false;
        }
        self.lines += 1;
        self.failure = match read {
            Ok(Some(text)) if has_fields(text) => match header.entry(text) {
                Ok(stored) => {
                    self.entries.push((self.lines, stored));
                    None
                }
                Err(_) => Some(Failure::Entry(text.to_owned())),
            },
            Ok(_) => None,
            Err(MatrixMarketError { kind: Kind::Io(error), .. }) => Some(Failure::Io(error)),
            Err(_) => Some(Failure::NotText),
        };
        self.failure.is_none()
    }
}

/// The lines of a plain file that start within `bytes`; the first line of all starts at `from`.
fn range(path: &Path, bytes: Range<u64>, from: u64, header: &Header) -> Piece {
    let mut piece = Piece::default();
    if let Err(error) = parse_range(path, bytes, from, header, &mut piece) {
        piece.lines += 1;
        piece.failure = Some(Failure::Io(error));
    }
    piece
}

fn parse_range(
    path: &Path,
    bytes: Range<u64>,
    from: u64,
    header: &Header,
    piece: &mut Piece,
) -> std::io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    // The byte before tells whether a line starts here.
    let start = bytes.start - u64::from(bytes.start > from);
    let mut file = ft_files::open(path)?;
    file.seek(SeekFrom::Start(start))?;
    let mut lines = Lines::middle(BufReader::with_capacity(64 << 10, file));
    // A line without an end within the limit is an error of the rank on which it starts.
    if bytes.start > from && lines.skip()? == Skipped::TooLong {
        return Ok(());
    }
    while start + lines.offset < bytes.end && piece.take(&mut lines, header) {}
    Ok(())
}

/// This rank's pieces of a gzip stream that stands after its header.
fn inflate(lines: &mut Lines<'_>, header: &Header, piece_bytes: u64, rank: usize, size: usize) -> Share {
    let from = lines.offset;
    let mut share = Share { pieces: vec![], count: 0, broken: None };
    loop {
        let before = lines.offset;
        let piece = ((before - from) / piece_bytes) as usize;
        share.count = piece + 1;
        if piece % size == rank {
            if share.pieces.len() <= piece / size {
                share.pieces.resize_with(piece / size + 1, Piece::default);
            }
            if !share.pieces[piece / size].take(lines, header) {
                return share;
            }
        } else {
            match lines.skip() {
                Ok(Skipped::Line) => {}
                // The rank that has this piece has the error.
                Ok(Skipped::TooLong | Skipped::End) => return share,
                Err(error) => {
                    share.broken = Some(Failure::Io(error));
                    return share;
                }
            }
        }
    }
}

/// Tells all ranks of the `count` pieces what the others have found in theirs. Collective, an allreduce.
fn summarize(mine: &[Piece], count: usize, comm: &Communicator) -> Result<Vec<Summary>, LinalgError> {
    let mut words = vec![[0u64; 4]; count];
    let own = words.iter_mut().skip(comm.rank()).step_by(comm.size());
    for (words, piece) in own.zip(mine) {
        let is_text = matches!(piece.failure, Some(Failure::Entry(_)));
        let flags = [piece.failure.is_some(), is_text].map(u64::from);
        *words = [piece.lines, piece.entries.len() as u64, flags[0], flags[1]];
    }
    comm.allreduce(words.as_flattened_mut(), Op::Sum)?;
    let summary = |[lines, entries, failed, text]: [u64; 4]| Summary {
        lines,
        entries,
        failed: failed != 0,
        text: text != 0,
    };
    Ok(words.into_iter().map(summary).collect())
}

/// What ranks say of a failure.
enum Told {
    Entry(String),
    NotText,
    Io,
}

/// Tells all what `root` has found. Collective, a broadcast.
fn tell(failure: Option<&Failure>, root: usize, comm: &Communicator) -> Result<Told, LinalgError> {
    let words = failure.map(|failure| match failure {
        Failure::Entry(text) => (0u8, text.clone()),
        Failure::NotText => (1, String::new()),
        Failure::Io(_) => (2, String::new()),
    });
    Ok(match comm.bcast_value(words.as_ref(), root)? {
        (0, text) => Told::Entry(text),
        (1, _) => Told::NotText,
        _ => Told::Io,
    })
}

#[cfg(test)]
mod tests;
