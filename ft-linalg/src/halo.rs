//! Which entries of a vector a rank needs from others for a product, and how it gets them.
//!
//! The plan is made once, collectively: each rank looks up the owner of every column that it needs and does not own
//! ([`needed_columns`], [`by_owner`]) and tells the owners. The exchange then is one message to each rank that asked
//! and one from each that was asked, without any look-up: pack, send, receive, wait.
//!
//! Halo values lie in ascending global column. The rank's own columns are one contiguous range; own values that are read
//! together with halo values are copied to between those below that range and those above. So one list of places,
//! ascending, is all that a row needs, whether its columns are of this rank or not.

use std::mem;
use std::ops::Range;

use ft_comm::{Communicator, Part, Piece, PlanRequest, Rank, Tag};

use crate::{CsrRows, Global, LinalgError, Partition};

/// Tags of the messages here, high enough to stay clear of a program's own.
const TAG_PLAN: Tag = 0x4c41_0001;
const TAG_VALUES: Tag = 0x4c41_0002;

/// Columns of `rows` that this rank does not own: ascending, each once. O(nnz log nnz) at most.
pub fn needed_columns(rows: &CsrRows, part: &Partition) -> Vec<u64> {
    let own = part.range();
    let mut needed: Vec<u64> =
        rows.cols().iter().copied().filter(|&col| !own.contains(&(col as usize))).collect();
    needed.sort_unstable();
    needed.dedup();
    needed
}

/// Splits ascending columns into one range per owner, owners ascending.
///
/// # Panics
/// If a column is not below the number of rows.
pub fn by_owner(cols: &[u64], part: &Partition) -> Vec<(Rank, Range<usize>)> {
    let mut groups = Vec::new();
    let mut start = 0;
    while start < cols.len() {
        let owner = part.owner(Global(cols[start] as usize));
        let end = start + cols[start..].partition_point(|&col| (col as usize) < part.range_of(owner).end);
        groups.push((owner, start..end));
        start = end;
    }
    groups
}

/// What one rank sends and receives for each product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HaloPlan {
    /// Columns of other ranks that are needed here: global, ascending.
    cols: Vec<u64>,
    /// Where the halo values come from: the rank and the part of `cols` that it owns.
    sources: Vec<(Rank, Range<usize>)>,
    /// Which local rows go to whom.
    targets: Vec<(Rank, Vec<u32>)>,
    /// How many of `cols` are below the rank's own range.
    below: usize,
    /// Local rows, ascending, whose values are copied to between those of `cols` that are below and those above.
    copied: Vec<u32>,
    /// The messages of an exchange: out of the packed values of `targets`, and into the halo values.
    sends: Vec<Part>,
    recvs: Vec<Part>,
}

impl HaloPlan {
    /// The plan of a rank that needs `cols` and is asked for `requests`: global rows of its own, by asking rank.
    ///
    /// Pure, so that a test can make the plans of all ranks in one thread.
    ///
    /// # Errors
    /// [`LinalgError::BadRows`] when a request names a row of another rank.
    pub fn assemble(
        part: &Partition,
        cols: Vec<u64>,
        requests: &[(Rank, Vec<u64>)],
    ) -> Result<Self, LinalgError> {
        let local = |&row: &u64| match part.to_local(Global(row as usize)) {
            Some(local) => Ok(local.0 as u32),
            None => Err(LinalgError::BadRows { row: 0, what: "another rank asked for a row not owned here" }),
        };
        let targets = requests.iter().map(|(rank, rows)| {
            let rows: Result<Vec<u32>, LinalgError> = rows.iter().map(local).collect();
            Ok((*rank, rows?))
        });
        let targets: Vec<(Rank, Vec<u32>)> = targets.collect::<Result<_, LinalgError>>()?;
        let sources = by_owner(&cols, part);
        let message = |peer: Rank, range: Range<usize>| Part { peer, tag: TAG_VALUES, range };
        let mut end = 0;
        let sends = targets.iter().map(|(rank, rows)| {
            let start = end;
            end += rows.len();
            message(*rank, start..end)
        });
        let below = cols.partition_point(|&col| (col as usize) < part.range().start);
        Ok(Self {
            sends: sends.collect(),
            recvs: sources.iter().map(|(rank, range)| message(*rank, range.clone())).collect(),
            sources,
            targets,
            cols,
            below,
            copied: Vec::new(),
        })
    }

    /// Has an exchange also copy the local rows `rows`, ascending, to where they belong by their columns among the halo
    /// values.
    pub(crate) fn copy(&mut self, rows: Vec<u32>) {
        let place = |range: &Range<usize>| if range.start < self.below { 0 } else { rows.len() };
        self.recvs = self
            .sources
            .iter()
            .map(|(rank, range)| {
                let place = place(range);
                Part { peer: *rank, tag: TAG_VALUES, range: range.start + place..range.end + place }
            })
            .collect();
        self.copied = rows;
    }

    /// Number of values that an exchange gives: halo values and copies.
    pub(crate) fn len(&self) -> usize {
        self.cols.len() + self.copied.len()
    }

    /// The place of column `col` among the values that an exchange gives. `own` are the rows of this rank.
    ///
    /// Right for columns that are there only.
    pub(crate) fn place(&self, col: u64, own: &Range<usize>) -> usize {
        if own.contains(&(col as usize)) {
            let row = (col - own.start as u64) as u32;
            return self.below + self.copied.partition_point(|&copied| copied < row);
        }
        let place = self.cols.partition_point(|&needed| needed < col);
        if place < self.below { place } else { place + self.copied.len() }
    }

    /// The places of all own rows that are copied, by row; those of other rows are any.
    pub(crate) fn places(&self, own: &Range<usize>) -> Vec<u32> {
        let mut places = vec![0; own.len()];
        for (place, row) in (self.below as u32..).zip(&self.copied) {
            places[*row as usize] = place;
        }
        places
    }

    /// Makes the plan for columns of other ranks, ascending.
    ///
    /// Collective: an allgather of `size` numbers per rank, then one message for each pair of ranks that exchange
    /// values later.
    ///
    /// # Errors
    /// [`LinalgError::Comm`], [`LinalgError::BadRows`] when ranks disagree about the partition.
    pub fn build(part: &Partition, cols: Vec<u64>, comm: &Communicator) -> Result<Self, LinalgError> {
        let sources = by_owner(&cols, part);

        // counts[a * size + b]: how many entries rank a wants from rank b.
        let (rank, size) = (comm.rank(), comm.size());
        let mut mine = vec![0u64; size];
        sources.iter().for_each(|(owner, wanted)| mine[*owner] = wanted.len() as u64);
        let mut counts = vec![0u64; size * size];
        comm.allgather(&mine, &mut counts)?;

        let mut receives = Vec::new();
        for from in 0..size {
            let count = counts[from * size + rank] as usize;
            if count > 0 {
                receives.push((from, comm.irecv(vec![0u64; count], from, TAG_PLAN)?));
            }
        }
        let mut sends = Vec::new();
        for (owner, wanted) in &sources {
            sends.push(comm.isend(cols[wanted.clone()].to_vec(), *owner, TAG_PLAN)?);
        }
        let mut requests = Vec::new();
        for (from, receive) in receives {
            requests.push((from, receive.wait()?.0));
        }
        for send in sends {
            send.wait()?;
        }
        Self::assemble(part, cols, &requests)
    }

    /// Global columns of the halo values, ascending.
    pub fn cols(&self) -> &[u64] {
        &self.cols
    }

    /// Ranks that values come from, each with its part of [`HaloPlan::cols`].
    pub fn sources(&self) -> &[(Rank, Range<usize>)] {
        &self.sources
    }

    /// Ranks that values go to, each with the local rows that it needs.
    pub fn targets(&self) -> &[(Rank, Vec<u32>)] {
        &self.targets
    }

    fn has_messages(&self) -> bool {
        !self.sends.is_empty() || !self.recvs.is_empty()
    }
}

/// Buffers of the exchange, kept between products.
///
/// Nothing in here needs a checkpoint; empty buffers (`default()`) grow at the first exchange.
#[derive(Clone, Debug, Default)]
pub struct HaloBuffers {
    packed: Vec<f64>,
    values: Vec<f64>,
}

impl HaloBuffers {
    /// Starts to get what the plan says of `x`, which has one element for each row of this rank and may change afterwards.
    ///
    /// Collective over the ranks of the plan: one message to each target and one from each source, which arrives where the
    /// product reads it. Short messages are under way when this returns; all messages go on when the program communicates.
    /// A rank without neighbors sends nothing and does not look at its links.
    ///
    /// # Errors
    /// [`LinalgError::Comm`].
    ///
    /// # Panics
    /// If `x` is shorter than the plan's rows.
    pub fn begin<'a>(
        &'a mut self,
        plan: &HaloPlan,
        x: &[f64],
        comm: &Communicator,
    ) -> Result<HaloExchange<'a>, LinalgError> {
        self.fill(plan, x);
        let request = if plan.has_messages() {
            let pieces = |parts: &[Part]| parts.iter().cloned().map(Piece::from).collect::<Vec<_>>();
            let exchange = comm.plan(&pieces(&plan.sends), &pieces(&plan.recvs))?;
            Some(exchange.start(mem::take(&mut self.packed), mem::take(&mut self.values))?)
        } else {
            None
        };
        Ok(HaloExchange { buffers: self, request })
    }

    /// Packs what others get, and copies what stays here.
    fn fill(&mut self, plan: &HaloPlan, x: &[f64]) {
        let value = |&row: &u32| x[row as usize];
        self.packed.clear();
        self.packed.extend(plan.targets.iter().flat_map(|(_, rows)| rows).map(value));
        self.values.resize(plan.len(), 0.0);
        let copies = &mut self.values[plan.below..][..plan.copied.len()];
        copies.iter_mut().zip(plan.copied.iter().map(value)).for_each(|(copy, value)| *copy = value);
    }
}

/// An exchange under way. Dropped without [`HaloExchange::finish`], it ends behind the program's back.
#[must_use = "an exchange is to be finished"]
#[derive(Debug)]
pub struct HaloExchange<'a> {
    buffers: &'a mut HaloBuffers,
    /// None where there are no messages.
    request: Option<PlanRequest<f64>>,
}

impl<'a> HaloExchange<'a> {
    /// What the exchange gives: values of others, and copies of own ones between them, by ascending column. Waits until all
    /// are there.
    ///
    /// # Errors
    /// [`LinalgError::Comm`], also when a message has another length than planned.
    pub fn finish(self) -> Result<&'a [f64], LinalgError> {
        if let Some(request) = self.request {
            (self.buffers.packed, self.buffers.values) = request.wait()?;
        }
        Ok(&self.buffers.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Poisson;

    #[test]
    fn a_chain_of_100_rows_needs_its_two_neighbors() {
        let grid = Poisson::new_2d(100, 1).unwrap();
        let part = Partition::new(100, 4, 1);
        assert_eq!(part.range(), 32..64);
        let cols = needed_columns(&grid.rows(part.range()), &part);
        assert_eq!(cols, [31, 64]);
        assert_eq!(by_owner(&cols, &part), [(0, 0..1), (2, 1..2)]);
        let plan = HaloPlan::assemble(&part, cols, &[(0, vec![32]), (2, vec![63])]).unwrap();
        assert_eq!(plan.targets(), [(0, vec![0]), (2, vec![31])]);
        assert!(HaloPlan::assemble(&part, vec![], &[(0, vec![64])]).is_err());
    }

    #[test]
    fn sends_and_receives_of_all_ranks_match() {
        let grid = Poisson::new_3d(9, 7, 5).unwrap();
        for size in 1..=8 {
            let part = |rank| Partition::new(grid.n(), size, rank);
            let needed: Vec<_> =
                (0..size).map(|rank| needed_columns(&grid.rows(part(rank).range()), &part(rank))).collect();
            for owner in 0..size {
                for (asker, cols) in needed.iter().enumerate() {
                    for (rank, wanted) in
                        by_owner(cols, &part(asker)).into_iter().filter(|(r, _)| *r == owner)
                    {
                        assert_ne!(rank, asker);
                        assert!(
                            cols[wanted].iter().all(|&col| part(owner).range().contains(&(col as usize)))
                        );
                    }
                }
            }
        }
    }
}
