//! The product of this rank's rows with a distributed vector, whatever the rows are stored as.
//!
//! Every row is summed one entry after the other in ascending global column, wherever the entry's vector element lives, so
//! `y` has the same bits on any number of ranks and in any [`Format`].
//!
//! The product goes block by block (the blocks of [`crate::partition`]). Columns are renumbered to 32 bits. A block that
//! needs nothing of other ranks is *interior*: its columns count from the first own row. All columns of another one, a
//! *boundary* block, count in what the exchange of [`crate::halo`] gives, where own values are copied to between those of
//! other ranks. So a row is always one list of ascending columns of one slice, and interior blocks are computed while
//! messages are on their way. The threads of a rank share both kinds.

use std::ops::Range;

use ft_comm::Communicator;

use crate::{
    CsrRows, Format, LinalgError, Partition,
    format::{self, Entries, StencilRows, Stored},
    halo::{HaloBuffers, HaloPlan},
    parallel,
};

/// Rows as they are stored for products, and what is exchanged before. Derived data: made again rather than checkpointed.
#[derive(Clone, Debug)]
pub struct ProductPlan {
    halo: HaloPlan,
    format: Option<Format>,
    /// Rows of a block of the partition; the last one of the rank may have fewer.
    block_len: usize,
    /// All rows, ascending.
    segments: Vec<Segment>,
}

/// One block, or several small ones: rows that are computed together.
#[derive(Clone, Debug)]
struct Segment {
    rows: Range<usize>,
    /// Its entries among those of all rows; none where no rows are stored.
    entries: Range<usize>,
    /// Reads what the exchange gives, not the rank's part of the vector.
    boundary: bool,
    stored: Stored,
}

impl Segment {
    /// About what a product takes, in operations on elements.
    fn operations(&self) -> usize {
        self.entries.len() + 2 * self.rows.len()
    }
}

/// A vector with sums of its blocks while a product is formed.
struct Out<'a, S> {
    y: &'a mut [f64],
    sums: &'a mut [S],
}

impl<S> Out<'_, S> {
    /// Cuts off the first rows, which are whole blocks unless they are the last ones.
    fn front(&mut self, rows: usize, block_len: usize) -> Self {
        let (y, sums) = (std::mem::take(&mut self.y), std::mem::take(&mut self.sums));
        let ((y, y_rest), (sums, sums_rest)) =
            (y.split_at_mut(rows), sums.split_at_mut(rows.div_ceil(block_len)));
        (self.y, self.sums) = (y_rest, sums_rest);
        Self { y, sums }
    }
}

/// Rows of a segment before they have a format.
struct Renumbered {
    lens: Vec<u32>,
    cols: Vec<u32>,
}

impl Renumbered {
    /// Where an exchange is read, own columns are at these places in what it gives.
    fn new(
        rows: &CsrRows,
        range: &Range<usize>,
        own: &Range<usize>,
        exchange: Option<(&HaloPlan, &[u32])>,
    ) -> Self {
        let place = |col: u64, (halo, places): (&HaloPlan, &[u32])| match own.contains(&(col as usize)) {
            true => places[col as usize - own.start],
            false => halo.place(col, own) as u32,
        };
        let ends = &rows.row_ptr()[range.start..=range.end];
        let cols = rows.cols()[ends[0]..ends[range.len()]].iter();
        Self {
            // A row has at most as many entries as there are own and halo columns, so its count fits.
            lens: ends.windows(2).map(|pair| (pair[1] - pair[0]) as u32).collect(),
            cols: match exchange {
                None => cols.map(|col| (col - own.start as u64) as u32).collect(),
                Some(exchange) => cols.map(|col| place(*col, exchange)).collect(),
            },
        }
    }

    fn with<'a>(&'a self, vals: &'a [f64]) -> Entries<'a> {
        Entries { lens: &self.lens, cols: &self.cols, vals }
    }
}

/// Most rows of a segment of several blocks: a call for each of the small blocks of a small matrix would cost more than its
/// sums, and rows should be in cache when the next line of an algorithm reads them. Where threads share a product there are
/// enough segments for all of them, if there are as many blocks.
const SEGMENT_ROWS: usize = 1024;

/// Entries that the choice of a format measures products on, where there are as many: more than caches hold of all formats.
const MEASURED_ENTRIES: usize = 1 << 20;

impl ProductPlan {
    /// Stores `rows` in `format`, or in the one that a short measurement finds to be the fastest. Not collective;
    /// O(nnz log halo).
    ///
    /// # Errors
    /// [`LinalgError::TooLarge`] when this rank has 2^32 or more rows and halo values.
    pub(crate) fn of_rows(
        part: &Partition,
        rows: &CsrRows,
        mut halo: HaloPlan,
        format: Option<Format>,
    ) -> Result<Self, LinalgError> {
        let own = part.range();
        let longest = own.len().saturating_add(halo.cols().len());
        if u32::try_from(longest).is_err() {
            return Err(LinalgError::TooLarge { what: "local index range", wanted: longest as u128 });
        }
        let entries = |range: &Range<usize>| rows.row_ptr()[range.start]..rows.row_ptr()[range.end];
        let is_own = |col: &u64| own.contains(&(*col as usize));
        let needs_others = |range: &Range<usize>| !rows.cols()[entries(range)].iter().all(is_own);
        let most_rows = SEGMENT_ROWS.min(own.len() / parallel::pieces(usize::MAX));
        let mut segments: Vec<(Range<usize>, bool)> = Vec::new();
        for block in part.local_blocks() {
            let boundary = needs_others(&block);
            match segments.last_mut() {
                Some((rows, same)) if *same == boundary && block.end - rows.start <= most_rows => {
                    rows.end = block.end;
                }
                _ => segments.push((block, boundary)),
            }
        }
        let boundary = segments.iter().filter(|(_, boundary)| *boundary);
        let mut is_copied = vec![false; own.len()];
        for col in boundary.flat_map(|(range, _)| &rows.cols()[entries(range)]).filter(|col| is_own(col)) {
            is_copied[*col as usize - own.start] = true;
        }
        halo.copy((0..own.len() as u32).filter(|row| is_copied[*row as usize]).collect());

        let places = halo.places(&own);
        let renumbered = |(range, boundary): &(Range<usize>, bool)| {
            Renumbered::new(rows, range, &own, boundary.then_some((&halo, &places[..])))
        };
        let vals = |range: &Range<usize>| &rows.vals()[entries(range)];
        let format = format.unwrap_or_else(|| {
            let every = rows.nnz().div_ceil(MEASURED_ENTRIES).max(1);
            let sample: Vec<_> =
                segments.iter().step_by(every).map(|segment| (segment, renumbered(segment))).collect();
            // Ones: pages of zeros that nobody has written to are all the same memory.
            let (x, received) = (vec![1.0; own.len()], vec![1.0; halo.len()]);
            let sample = sample.iter().map(|((range, boundary), rows)| {
                (rows.with(vals(range)), if *boundary { &received[..] } else { &x })
            });
            format::fastest(&sample.collect::<Vec<_>>())
        });
        let segments = parallel::map(rows.nnz(), segments, |segment| Segment {
            entries: entries(&segment.0),
            boundary: segment.1,
            stored: Stored::new(format, renumbered(&segment).with(vals(&segment.0))),
            rows: segment.0,
        });
        Ok(Self { halo, format: Some(format), block_len: part.block_len(), segments })
    }

    /// For rows that are not stored: those of each block of a partition, and whether they read what an exchange by `halo`
    /// gives.
    pub(crate) fn of_stencil(
        part: &Partition,
        halo: HaloPlan,
        blocks: impl Iterator<Item = (Range<usize>, bool, StencilRows)>,
    ) -> Self {
        let segments = blocks.map(|(rows, boundary, stored)| Segment {
            rows,
            entries: 0..0,
            boundary,
            stored: Stored::Stencil(stored),
        });
        Self { halo, format: None, block_len: part.block_len(), segments: segments.collect() }
    }

    /// What the exchange before a product sends and receives.
    pub fn halo(&self) -> &HaloPlan {
        &self.halo
    }

    pub(crate) fn into_halo(self) -> HaloPlan {
        self.halo
    }

    /// How the rows of this rank are stored; `None` where they are not, as those of a stencil.
    pub fn format(&self) -> Option<Format> {
        self.format
    }

    /// Where its rows are in memory.
    #[cfg(test)]
    pub(crate) fn place(&self) -> *const () {
        self.segments.as_ptr().cast()
    }

    /// Number of rows in blocks that need halo values.
    pub fn boundary_rows(&self) -> usize {
        let boundary = self.segments.iter().filter(|segment| segment.boundary);
        boundary.map(|segment| segment.rows.len()).sum()
    }

    /// `y = A x`, interior blocks while `buffers` get the halo values. `vals` are the values of the stored rows. Each of `sums`,
    /// one for each block, becomes what `sum` makes of the rows of the block and their elements of `y`, while these are in cache.
    /// Collective; `2 nnz` flops.
    ///
    /// # Errors
    /// [`LinalgError::Comm`]; `y` is then torn.
    ///
    /// # Panics
    /// If `x`, `y` or `sums` is shorter than it has to be.
    pub(crate) fn apply<S: Send>(
        &self,
        vals: &[f64],
        (x, y): (&[f64], &mut [f64]),
        (sums, sum): (&mut [S], impl Fn(Range<usize>, &[f64]) -> S + Sync),
        buffers: &mut HaloBuffers,
        comm: &Communicator,
    ) -> Result<(), LinalgError> {
        let exchange = buffers.begin(&self.halo, x, comm)?;
        self.run(false, (vals, x), Out { y: &mut *y, sums: &mut *sums }, &sum);
        self.run(true, (vals, exchange.finish()?), Out { y, sums }, &sum);
        Ok(())
    }

    /// The segments of one kind, on all threads.
    fn run<S: Send>(
        &self,
        boundary: bool,
        from: (&[f64], &[f64]),
        mut out: Out<'_, S>,
        sum: &(impl Fn(Range<usize>, &[f64]) -> S + Sync),
    ) {
        let chosen = self.segments.iter().filter(|segment| segment.boundary == boundary);
        let operations = chosen.map(Segment::operations).sum();
        if !parallel::is_shared(operations) {
            return self.run_some(&self.segments, boundary, from, out, sum);
        }
        let piece = operations.div_ceil(parallel::pieces(operations));
        let (mut parts, mut rest) = (Vec::new(), &self.segments[..]);
        while !rest.is_empty() {
            let mut left = piece;
            let mut goes_on = |segment: &Segment| {
                let is_open = left > 0;
                left =
                    left.saturating_sub(if segment.boundary == boundary { segment.operations() } else { 0 });
                is_open
            };
            let some;
            (some, rest) = rest.split_at(rest.iter().take_while(|segment| goes_on(segment)).count());
            let rows = some.iter().map(|segment| segment.rows.len()).sum();
            parts.push((some, out.front(rows, self.block_len)));
        }
        ft_threads::for_each(parts, |(some, out)| self.run_some(some, boundary, from, out, sum));
    }

    /// Those of one kind among neighboring segments, whose rows are those of `out`.
    fn run_some<S>(
        &self,
        segments: &[Segment],
        boundary: bool,
        (vals, x): (&[f64], &[f64]),
        mut out: Out<'_, S>,
        sum: &impl Fn(Range<usize>, &[f64]) -> S,
    ) {
        for Segment { rows, entries, stored, boundary: is_boundary } in segments {
            let Out { y, sums } = out.front(rows.len(), self.block_len);
            if *is_boundary != boundary {
                continue;
            }
            stored.product(&vals[entries.clone()], x, y);
            let blocks = rows.clone().step_by(self.block_len).zip(y.chunks(self.block_len));
            blocks.zip(sums).for_each(|((start, y), block)| *block = sum(start..start + y.len(), y));
        }
    }
}
