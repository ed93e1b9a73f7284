//! Entries of a sparse matrix on their way to the ranks that own their rows.

use std::cmp::Ordering;

use ft_comm::Communicator;

use crate::{CsrRows, Global, LinalgError, Partition, error::EntryFault, parallel};

/// An entry as four words, in which it travels: row, column, key, and the bits of the value.
pub(crate) type Triplet = [u64; 4];

/// Row, column, key and value as a [`Triplet`].
pub(crate) fn triplet(row: usize, col: usize, key: u64, value: f64) -> Triplet {
    [row as u64, col as u64, key, value.to_bits()]
}

/// The value of `entry`.
pub(crate) fn value(entry: &Triplet) -> f64 {
    f64::from_bits(entry[3])
}

/// By column, then key, then value (`f64::total_cmp`): of entries of one row any two that differ in anything.
pub(crate) fn in_row(a: &Triplet, b: &Triplet) -> Ordering {
    (a[1], a[2]).cmp(&(b[1], b[2])).then_with(|| value(a).total_cmp(&value(b)))
}

/// The first of `entries`, by row and column, that is outside of `rows` x `cols` or no finite number.
pub(crate) fn fault(entries: &[Triplet], rows: usize, cols: usize) -> Option<EntryFault> {
    let inside = |entry: &Triplet| entry[0] < rows as u64 && entry[1] < cols as u64;
    let bad = entries.iter().filter(|entry| !inside(entry) || !value(entry).is_finite());
    let first = bad.min_by(|a, b| a[0].cmp(&b[0]).then_with(|| in_row(a, b)))?;
    Some(EntryFault { row: first[0], col: first[1], value: value(first), inside: inside(first) })
}

/// Sends all entries to the ranks that own their rows; they come in the order of the ranks that had them. Collective: an
/// alltoall of counts, and one message for each pair of ranks that has entries to exchange; twice the memory of the
/// entries for a time. Nothing is done on one rank.
///
/// # Panics
/// If an entry has no row of `part`.
pub(crate) fn to_owners(
    entries: Vec<Triplet>,
    part: &Partition,
    comm: &Communicator,
) -> Result<Vec<Triplet>, LinalgError> {
    let size = comm.size();
    if size == 1 {
        return Ok(entries);
    }
    let mut counts = vec![0usize; size];
    // Entries often come row by row: the owner of the last one is asked first.
    let (mut owner, mut range) = (0, part.range_of(0));
    let mut owner_of = |entry: &Triplet| {
        if !range.contains(&(entry[0] as usize)) {
            owner = part.owner(Global(entry[0] as usize));
            range = part.range_of(owner);
        }
        owner
    };
    entries.iter().for_each(|entry| counts[owner_of(entry)] += 1);
    let mut places: Vec<usize> = counts
        .iter()
        .scan(0, |end, count| {
            *end += count;
            Some(*end - count)
        })
        .collect();
    let mut out = vec![[0; 4]; entries.len()];
    for entry in entries {
        let place = &mut places[owner_of(&entry)];
        out[*place] = entry;
        *place += 1;
    }
    let mut incoming = vec![0; size];
    comm.alltoall(&counts, &mut incoming)?;
    let mut mine = vec![[0; 4]; incoming.iter().sum()];
    comm.alltoallv(&out, &counts, &mut mine, &incoming)?;
    Ok(mine)
}

/// What the sorting of a row takes, about, in operations on elements.
const OPERATIONS: usize = 50;

/// Entries of the rows of this rank of `part`, row by row, each row in the order of [`in_row`]; and where each row
/// starts. O(entries + rows), and the sorting of each row; twice the memory of the entries for a time.
pub(crate) fn by_row(entries: Vec<Triplet>, part: &Partition) -> (Vec<usize>, Vec<Triplet>) {
    let range = part.range();
    let local = |entry: &Triplet| entry[0] as usize - range.start;
    let mut row_ptr = vec![0; range.len() + 1];
    entries.iter().for_each(|entry| row_ptr[local(entry) + 1] += 1);
    (0..range.len()).for_each(|row| row_ptr[row + 1] += row_ptr[row]);
    let mut places = row_ptr.clone();
    let mut sorted = vec![[0; 4]; entries.len()];
    for entry in entries {
        let place = &mut places[local(&entry)];
        sorted[*place] = entry;
        *place += 1;
    }
    // Some rows at a time on each thread, about equally many entries.
    let piece = sorted.len().div_ceil(parallel::pieces(sorted.len().max(1))).max(1);
    let (mut rest, mut parts, mut first) = (&mut sorted[..], Vec::new(), 0);
    while first + 1 < row_ptr.len() {
        let start = row_ptr[first];
        let rows = 1 + row_ptr[first + 1..]
            .partition_point(|&end| end < start + piece)
            .min(row_ptr.len() - first - 2);
        let ends = &row_ptr[first..=first + rows];
        let part;
        (part, rest) = rest.split_at_mut(ends[rows] - start);
        parts.push((ends, part));
        first += rows;
    }
    parallel::for_each(OPERATIONS * range.len(), parts, |(ends, part)| {
        let rows = ends.windows(2).map(|row| row[0] - ends[0]..row[1] - ends[0]);
        rows.for_each(|row| part[row].sort_unstable_by(in_row));
    });
    (row_ptr, sorted)
}

/// The sum of the values of `place`, which is not empty, from the first to the last.
pub(crate) fn total(place: &[Triplet]) -> f64 {
    let (first, others) = place.split_first().expect("a place has an entry");
    others.iter().fold(value(first), |sum, entry| sum + value(entry))
}

/// Rows of entries that are sorted as by [`by_row`]. Those of one place are added, from the first to the last.
pub(crate) fn sum(row_ptr: &[usize], entries: &[Triplet]) -> CsrRows {
    CsrRows::in_pieces(row_ptr.len() - 1, entries.len(), |range| {
        let ends = &row_ptr[range.start..=range.end];
        let places = entries[ends[0]..ends[range.len()]].chunk_by(|a, b| a[..2] == b[..2]);
        let mut rows = CsrRows::with_capacity(range.len(), places.count());
        for row in ends.windows(2) {
            for place in entries[row[0]..row[1]].chunk_by(|a, b| a[1] == b[1]) {
                rows.push(place[0][1], total(place));
            }
            rows.end_row();
        }
        rows
    })
}
