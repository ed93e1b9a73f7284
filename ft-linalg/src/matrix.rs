//! A square sparse matrix whose rows are spread over the ranks, and its product with a vector.
//!
//! The product has two parts that a caller sees: the exchange of halo values ([`crate::halo`]), which communicates,
//! and the sums over rows, which do not. Every row is summed one entry after the other in ascending global column,
//! wherever the entry's vector element lives, so `y` has the same bits on any number of ranks, and in any [`Format`].
//!
//! The product goes block by block (the blocks of [`crate::partition`]). Columns are renumbered to 32 bits. A block that needs no
//! halo values is *interior*: its columns count from the first own row. All columns of another one, a *boundary* block, count
//! in what the exchange gives, where own values are copied to between those of other ranks. So a row is always one list of
//! ascending columns of one slice, and interior blocks can be computed while messages are on their way.

use std::ops::Range;

use ft_checkpoint::{Protect, Redistribute, Redistribution};
use ft_comm::{CommError, Communicator};

use crate::{
    CsrRows, DistVector, Format, Global, LinalgError, Partition,
    dot::block_dot,
    error::agree,
    format::{self, Entries, StencilRows, Stored},
    halo::{Halo, HaloBuffers, HaloExchange, HaloPlan},
    matrix_market::Coordinates,
};

/// A square matrix, rows spread over the ranks. The rows are constant data; the plan is derived from them.
#[derive(Clone, Debug, Default, Protect)]
pub struct DistMatrix {
    #[protect(nested)]
    part: Partition,
    #[protect(nested)]
    rows: CsrRows,
    #[protect(derived)]
    plan: Option<ProductPlan>,
    /// The format that was asked for.
    #[protect(derived)]
    told: Option<Format>,
}

/// The rows; [`DistMatrix::rebuild`] is to follow.
impl Redistribute for DistMatrix {
    fn extent(&self) -> usize {
        self.rows.extent()
    }

    fn redistribute(parts: Vec<Self>, moves: &Redistribution<'_>) -> Result<Self, CommError> {
        let rows = CsrRows::redistribute(parts.into_iter().map(|part| part.rows).collect(), moves)?;
        Ok(Self { part: Partition::of(moves.comm(), moves.len()), rows, ..Self::default() })
    }
}

/// Everything that is made from the rows by [`DistMatrix::rebuild`] and not checkpointed.
#[derive(Clone, Debug)]
pub struct ProductPlan {
    halo: HaloPlan,
    format: Option<Format>,
    /// Those of the rank's partition, ascending.
    blocks: Vec<Block>,
}

#[derive(Clone, Debug)]
struct Block {
    rows: Range<usize>,
    /// The entries of its rows.
    entries: Range<usize>,
    /// Reads what the exchange gives, not the rank's part of the vector.
    boundary: bool,
    stored: Stored,
}

/// A block's rows before they have a format.
struct Renumbered {
    lens: Vec<u32>,
    cols: Vec<u32>,
}

impl Renumbered {
    fn new(rows: &CsrRows, range: &Range<usize>, own: &Range<usize>, halo: Option<&HaloPlan>) -> Self {
        let ends = &rows.row_ptr()[range.start..=range.end];
        let cols = rows.cols()[ends[0]..ends[range.len()]].iter();
        Self {
            // A row has at most as many entries as there are own and halo columns, so its count fits.
            lens: ends.windows(2).map(|pair| (pair[1] - pair[0]) as u32).collect(),
            cols: match halo {
                None => cols.map(|col| (col - own.start as u64) as u32).collect(),
                Some(halo) => cols.map(|col| halo.place(*col, own) as u32).collect(),
            },
        }
    }

    fn with<'a>(&'a self, vals: &'a [f64]) -> Entries<'a> {
        Entries { lens: &self.lens, cols: &self.cols, vals }
    }
}

/// Entries that the choice of a format measures products on, where there are as many: more than caches hold of all formats.
const MEASURED_ENTRIES: usize = 1 << 20;

impl ProductPlan {
    /// Stores `rows` for the product: in `format`, or in the one that a short measurement finds to be the fastest. Not collective; O(nnz log halo).
    ///
    /// # Errors
    /// [`LinalgError::TooLarge`] when this rank has 2^32 or more rows and halo values.
    pub fn new(
        part: &Partition,
        rows: &CsrRows,
        mut halo: HaloPlan,
        format: Option<Format>,
    ) -> Result<Self, LinalgError> {
        let own = part.range();
        let entries = |range: &Range<usize>| rows.row_ptr()[range.start]..rows.row_ptr()[range.end];
        let is_own = |col: &&u64| own.contains(&(**col as usize));
        let blocks: Vec<(Range<usize>, bool)> = part
            .local_blocks()
            .map(|range| {
                let boundary = !rows.cols()[entries(&range)].iter().all(|col| is_own(&col));
                (range, boundary)
            })
            .collect();
        let boundary = blocks.iter().filter(|(_, boundary)| *boundary);
        let mut copied: Vec<u32> = boundary
            .flat_map(|(range, _)| &rows.cols()[entries(range)])
            .filter(is_own)
            .map(|col| (col - own.start as u64) as u32)
            .collect();
        copied.sort_unstable();
        copied.dedup();
        let longest = own.len().saturating_add(halo.cols().len());
        if u32::try_from(longest).is_err() {
            return Err(LinalgError::TooLarge { what: "local index range", wanted: longest as u128 });
        }
        halo.copy(copied);

        let renumbered = |(range, boundary): &(Range<usize>, bool)| {
            Renumbered::new(rows, range, &own, boundary.then_some(&halo))
        };
        let vals = |range: &Range<usize>| &rows.vals()[entries(range)];
        let format = format.unwrap_or_else(|| {
            let every = rows.nnz().div_ceil(MEASURED_ENTRIES).max(1);
            let sample: Vec<_> =
                blocks.iter().step_by(every).map(|block| (block, renumbered(block))).collect();
            // Ones: pages of zeros that nobody has written to are all the same memory.
            let (x, received) = (vec![1.0; own.len()], vec![1.0; halo.len()]);
            let sample = sample.iter().map(|((range, boundary), block)| {
                (block.with(vals(range)), if *boundary { &received[..] } else { &x })
            });
            format::fastest(&sample.collect::<Vec<_>>())
        });
        let blocks = blocks.iter().map(|block| Block {
            rows: block.0.clone(),
            entries: entries(&block.0),
            boundary: block.1,
            stored: Stored::new(format, renumbered(block).with(vals(&block.0))),
        });
        let blocks = blocks.collect();
        Ok(Self { halo, format: Some(format), blocks })
    }

    /// For rows that are not stored: those of each block of a partition, and whether they read what an exchange by `halo` gives.
    pub(crate) fn of_stencil(
        halo: HaloPlan,
        blocks: impl Iterator<Item = (Range<usize>, bool, StencilRows)>,
    ) -> Self {
        let blocks = blocks.map(|(rows, boundary, stored)| Block {
            rows,
            entries: 0..0,
            boundary,
            stored: Stored::Stencil(stored),
        });
        Self { halo, format: None, blocks: blocks.collect() }
    }

    /// What the exchange before a product sends and receives.
    pub fn halo(&self) -> &HaloPlan {
        &self.halo
    }

    /// How the rows of this rank are stored; `None` where they are not, as those of a stencil.
    pub fn format(&self) -> Option<Format> {
        self.format
    }

    /// Number of rows in blocks that need halo values.
    pub fn boundary_rows(&self) -> usize {
        self.blocks.iter().filter(|block| block.boundary).map(|block| block.rows.len()).sum()
    }

    /// `y = A x` for the local rows `range`, which are those of one or several blocks; `y` has one element for each of them, `x` is
    /// the rank's whole part. Does not communicate; `2 nnz` flops.
    ///
    /// # Panics
    /// If lengths do not fit the rows and the plan, or `range` begins or ends within a block.
    pub fn product(&self, rows: &CsrRows, range: Range<usize>, x: &[f64], halo: Halo<'_>, y: &mut [f64]) {
        assert_eq!(y.len(), range.len(), "length of y");
        assert_eq!(halo.0.len(), self.halo.len(), "halo of another plan");
        let first = self.blocks.partition_point(|block| block.rows.start < range.start);
        let last = self.blocks.partition_point(|block| block.rows.start < range.end);
        let blocks = &self.blocks[first..last];
        let ends = blocks.first().zip(blocks.last()).map(|(first, last)| first.rows.start..last.rows.end);
        assert!(ends.is_none_or(|ends| ends == range), "rows {range:?} end within a block");
        let mut rest = y;
        for block in blocks {
            let y;
            (y, rest) = rest.split_at_mut(block.rows.len());
            block.product(rows, if block.boundary { halo.0 } else { x }, y);
        }
        assert!(rest.is_empty(), "rows {range:?} begin within a block");
    }

    /// `y = A x` for all rows of this rank, while `exchange` brings the halo values: interior blocks first. Collective, as the exchange is.
    ///
    /// # Errors
    /// [`LinalgError::Comm`]; `y` is then torn.
    ///
    /// # Panics
    /// If lengths do not fit the rows and the plan.
    pub fn product_during(
        &self,
        rows: &CsrRows,
        x: &[f64],
        exchange: HaloExchange<'_>,
        y: &mut [f64],
    ) -> Result<(), LinalgError> {
        self.during(rows, x, exchange, y, |_, _, _| ())
    }

    /// As [`ProductPlan::product_during`]; `sums[i]` becomes `[w . y, y . y]` over the rows of block `i`, formed while these are in the cache.
    ///
    /// # Errors
    /// As [`ProductPlan::product_during`]; `sums` are then torn too.
    ///
    /// # Panics
    /// As [`ProductPlan::product_during`], and if there is not one of `w` for each row and one of `sums` for each block.
    pub fn product_dot_during(
        &self,
        rows: &CsrRows,
        x: &[f64],
        exchange: HaloExchange<'_>,
        w: &[f64],
        y: &mut [f64],
        sums: &mut [[f64; 2]],
    ) -> Result<(), LinalgError> {
        assert_eq!(sums.len(), self.blocks.len(), "sums of blocks");
        self.during(rows, x, exchange, y, |at, rows, y| sums[at] = [block_dot(&w[rows], y), block_dot(y, y)])
    }

    /// As [`ProductPlan::product_dot_during`], with halo values that are there.
    ///
    /// # Panics
    /// As [`ProductPlan::product_dot_during`].
    pub fn product_dot(
        &self,
        rows: &CsrRows,
        x: &[f64],
        halo: Halo<'_>,
        w: &[f64],
        y: &mut [f64],
        sums: &mut [[f64; 2]],
    ) {
        assert_eq!(sums.len(), self.blocks.len(), "sums of blocks");
        for (block, sums) in self.blocks.iter().zip(sums) {
            let y = &mut y[block.rows.clone()];
            block.product(rows, if block.boundary { halo.0 } else { x }, y);
            *sums = [block_dot(&w[block.rows.clone()], y), block_dot(y, y)];
        }
    }

    /// All blocks, interior ones first; `then` is told of each one its index, rows and elements of `y`.
    fn during(
        &self,
        rows: &CsrRows,
        x: &[f64],
        exchange: HaloExchange<'_>,
        y: &mut [f64],
        mut then: impl FnMut(usize, Range<usize>, &[f64]),
    ) -> Result<(), LinalgError> {
        let mut run = |boundary: bool, x: &[f64]| {
            for (at, block) in self.blocks.iter().enumerate().filter(|(_, block)| block.boundary == boundary)
            {
                let y = &mut y[block.rows.clone()];
                block.product(rows, x, y);
                then(at, block.rows.clone(), y);
            }
        };
        run(false, x);
        let halo = exchange.finish()?;
        assert_eq!(halo.0.len(), self.halo.len(), "halo of another plan");
        run(true, halo.0);
        Ok(())
    }
}

impl Block {
    fn product(&self, rows: &CsrRows, x: &[f64], y: &mut [f64]) {
        self.stored.product(&rows.vals()[self.entries.clone()], x, y);
    }
}

impl DistMatrix {
    /// A matrix from this rank's rows. Collective; the cost is that of [`HaloPlan::build`].
    ///
    /// # Errors
    /// On every rank when one rank's rows do not fit the partition or contradict themselves
    /// ([`LinalgError::Length`], [`LinalgError::BadRows`], [`LinalgError::TooLarge`]; [`LinalgError::OtherRank`] on
    /// the other ranks); [`LinalgError::Comm`].
    pub fn new(part: Partition, rows: CsrRows, comm: &Communicator) -> Result<Self, LinalgError> {
        let mut matrix = Self { part, rows, ..Self::default() };
        matrix.rebuild(comm)?;
        Ok(matrix)
    }

    /// A matrix from a list of its entries that every rank has. Collective.
    ///
    /// # Errors
    /// As [`DistMatrix::new`], and [`LinalgError::NotSquare`].
    pub fn from_coordinates(entries: &Coordinates, comm: &Communicator) -> Result<Self, LinalgError> {
        let mine = entries.require_square().and_then(|n| {
            let part = Partition::of(comm, n);
            let rows = entries.to_rows(part.range())?;
            Ok((part, rows))
        });
        let (part, rows) = agree(mine, comm)?;
        Self::new(part, rows, comm)
    }

    /// Makes the derived part again, after a restore. Collective.
    ///
    /// # Errors
    /// As [`DistMatrix::new`]; the matrix then has no plan.
    pub fn rebuild(&mut self, comm: &Communicator) -> Result<(), LinalgError> {
        self.plan = None;
        let fits = self
            .part
            .require(comm)
            .and_then(|()| self.part.require_len("list of rows", self.rows.len()))
            .and_then(|()| self.rows.check(self.part.n()));
        agree(fits, comm)?;
        let halo = HaloPlan::build(&self.part, &self.rows, comm);
        if let Err(LinalgError::Comm(error)) = halo {
            return Err(error.into());
        }
        let plan = halo.and_then(|halo| ProductPlan::new(&self.part, &self.rows, halo, self.told));
        self.plan = Some(agree(plan, comm)?);
        Ok(())
    }

    /// Stores this rank's rows in `format` from now on; where that is `None`, in the one that a short measurement finds to be the fastest, as
    /// new matrices do, and those that come out of a checkpoint. Not collective.
    ///
    /// # Errors
    /// [`LinalgError::NotRebuilt`].
    pub fn store_as(&mut self, format: Option<Format>) -> Result<(), LinalgError> {
        let plan = self.plan.take().ok_or(LinalgError::NotRebuilt)?;
        self.plan = Some(ProductPlan::new(&self.part, &self.rows, plan.halo, format)?);
        self.told = format;
        Ok(())
    }

    /// How rows are spread.
    pub fn part(&self) -> &Partition {
        &self.part
    }

    /// This rank's rows.
    pub fn rows(&self) -> &CsrRows {
        &self.rows
    }

    /// The derived part.
    ///
    /// # Errors
    /// [`LinalgError::NotRebuilt`] after a restore without [`DistMatrix::rebuild`].
    pub fn plan(&self) -> Result<&ProductPlan, LinalgError> {
        self.plan.as_ref().ok_or(LinalgError::NotRebuilt)
    }

    /// This rank's diagonal entries, 0 where none is stored.
    pub fn diagonal(&self) -> Vec<f64> {
        self.rows.diagonal(Global(self.part.range().start))
    }

    /// `A x` with exchange and product in one, for code outside of loops. Collective.
    ///
    /// # Errors
    /// [`LinalgError::Comm`], [`LinalgError::NotRebuilt`], [`LinalgError::Length`].
    pub fn multiply(&self, x: &DistVector, comm: &Communicator) -> Result<DistVector, LinalgError> {
        self.part.require_len("vector", x.local().len())?;
        let plan = self.plan()?;
        let mut buffers = HaloBuffers::default();
        let exchange = buffers.begin(plan.halo(), x.local(), comm)?;
        let mut y = DistVector::zeros(self.part.clone());
        plan.product_during(&self.rows, x.local(), exchange, y.local_mut())?;
        Ok(y)
    }
}

#[cfg(test)]
mod tests;
