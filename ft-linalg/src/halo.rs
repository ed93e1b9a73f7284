//! Which entries of a vector a rank needs from others for a product, and how it gets them.
//!
//! The plan is made once, collectively: each rank looks up the owner of every column that it needs and does not own
//! ([`needed_columns`], [`by_owner`]) and tells the owners. The exchange then is one message to each rank that asked
//! and one from each that was asked, without any look-up: pack, send, receive, wait.
//!
//! Halo values lie in ascending global column. The rank's own columns are one contiguous range, so a row of the
//! matrix reads, in stored order, first halo values before that range, then own values, then halo values after it.

use std::ops::Range;

use ft_comm::{Communicator, Part, Rank, Tag};

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
    /// Global columns of the halo values, ascending.
    cols: Vec<u64>,
    /// Where the halo values come from: the rank and the part of `cols` that it owns.
    sources: Vec<(Rank, Range<usize>)>,
    /// Which local rows go to whom.
    targets: Vec<(Rank, Vec<u32>)>,
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
        Ok(Self {
            sends: sends.collect(),
            recvs: sources.iter().map(|(rank, range)| message(*rank, range.clone())).collect(),
            sources,
            targets,
            cols,
        })
    }

    /// Makes the plan for the columns of `rows`.
    ///
    /// Collective: an allgather of `size` numbers per rank, then one message for each pair of ranks that exchange
    /// values later.
    ///
    /// # Errors
    /// [`LinalgError::Comm`], [`LinalgError::BadRows`] when ranks disagree about the partition.
    pub fn build(part: &Partition, rows: &CsrRows, comm: &Communicator) -> Result<Self, LinalgError> {
        let cols = needed_columns(rows, part);
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
}

/// Halo values of one vector, in the order of [`HaloPlan::cols`]. Only an exchange makes them.
#[derive(Clone, Copy, Debug)]
pub struct Halo<'a>(pub(crate) &'a [f64]);

impl<'a> Halo<'a> {
    /// The values, in the order of [`HaloPlan::cols`].
    pub fn values(self) -> &'a [f64] {
        self.0
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
    /// Gets the halo values of `x` (one element for each row of this rank).
    ///
    /// Collective over the ranks of the plan: one message to each target and one from each source, which arrives
    /// where the product reads it.
    ///
    /// # Errors
    /// [`LinalgError::Comm`], also when a message has another length than planned.
    ///
    /// # Panics
    /// If `x` is shorter than the plan's rows.
    pub fn exchange(
        &mut self,
        plan: &HaloPlan,
        x: &[f64],
        comm: &Communicator,
    ) -> Result<Halo<'_>, LinalgError> {
        let rows = plan.targets.iter().flat_map(|(_, rows)| rows);
        self.packed.clear();
        self.packed.extend(rows.map(|&row| x[row as usize]));
        self.values.resize(plan.cols.len(), 0.0);
        comm.exchange(&self.packed, &plan.sends, &mut self.values, &plan.recvs)?;
        Ok(Halo(&self.values))
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
