//! Domains: the rows cut into a fixed number of ranges, whatever the number of ranks.
//!
//! What is made of the rows of one rank changes with the number of ranks, and so do the bits of an answer and the
//! number of iterations. So preconditioners work on domains. They are cut at the blocks of the partition, by the number
//! of rows alone, and dealt out to the ranks as *owners* by what their rows weigh, as the rows are. A domain that lies
//! across ranks is whole at its owner: rows of the matrix move there once ([`Domains::bring`]), vectors at each use
//! ([`Domains::within`]). Where every rank holds the rows of its domains nothing moves and nothing is copied: rows of
//! about equal length and 1, 2, 4 or 8 ranks.

use std::borrow::Cow;
use std::ops::Range;

use ft_comm::{Communicator, Part, Rank, Tag};

use super::fetch::Fetch;
use crate::partition::by_weight;
use crate::{CsrRows, DistMatrix, LinalgError, Partition, Workspace};

/// Domains unless another number is asked for.
pub const DOMAINS: usize = 8;

const TAG: Tag = 0x4c41_0010;

/// The domains of a matrix, and how vectors get to their owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domains {
    /// First row of each domain, and the number of rows.
    starts: Vec<usize>,
    /// First domain of each rank, and the number of domains.
    firsts: Vec<usize>,
    /// First row of each rank's domains, and the number of rows.
    cuts: Vec<usize>,
    rank: Rank,
}

impl Domains {
    /// At most `count` domains of about equally many blocks; fewer where there are fewer blocks. Not collective.
    ///
    /// # Panics
    /// If `count` is 0.
    pub fn new(part: &Partition, count: usize) -> Self {
        let block = |domain: usize| (domain as u128 * part.blocks() as u128 / count as u128) as usize;
        let mut starts: Vec<usize> =
            (0..=count).map(|domain| (block(domain) * part.block_len()).min(part.n())).collect();
        starts.dedup();
        Self::cut(starts.clone(), owned(part, &starts), part.rank())
    }

    fn cut(starts: Vec<usize>, firsts: Vec<usize>, rank: Rank) -> Self {
        let cuts = firsts.iter().map(|&first| starts[first]).collect();
        Self { starts, firsts, cuts, rank }
    }

    /// As many domains with the same owners, of other rows: those from each of `starts` on.
    pub(super) fn of_rows(&self, starts: Vec<usize>) -> Self {
        assert_eq!(starts.len(), self.starts.len());
        Self::cut(starts, self.firsts.clone(), self.rank)
    }

    /// Number of domains.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Rows in all.
    pub(super) fn n(&self) -> usize {
        self.starts[self.count()]
    }

    /// The domains that this rank owns.
    pub fn own(&self) -> Range<usize> {
        self.firsts[self.rank]..self.firsts[self.rank + 1]
    }

    /// How many domains each rank owns.
    pub(super) fn counts(&self) -> Vec<usize> {
        self.firsts.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    /// Global rows of a domain.
    ///
    /// # Panics
    /// If there is no such domain.
    pub fn rows(&self, domain: usize) -> Range<usize> {
        self.starts[domain]..self.starts[domain + 1]
    }

    /// Global rows of all domains that this rank owns: one range.
    pub fn range(&self) -> Range<usize> {
        self.cuts[self.rank]..self.cuts[self.rank + 1]
    }

    /// Where each rank's rows begin, and the number of rows.
    pub(super) fn cuts(&self) -> &[usize] {
        &self.cuts
    }

    /// The rows of [`Domains::range`]: those of `a` itself where this rank has them all. Collective.
    ///
    /// # Errors
    /// [`LinalgError::Comm`]; [`LinalgError::TooLarge`] from 2^32 rows on.
    pub(super) fn bring<'a>(
        &self,
        a: &'a DistMatrix,
        comm: &Communicator,
    ) -> Result<Cow<'a, CsrRows>, LinalgError> {
        let (part, rows) = (a.part(), a.rows());
        let (held, wanted) = (part.range(), self.range());
        let cuts: Vec<usize> =
            (0..part.size()).map(|rank| part.range_of(rank).start).chain([part.n()]).collect();
        let missing: Vec<u64> =
            wanted.clone().filter(|row| !held.contains(row)).map(|row| row as u64).collect();
        let fetch = Fetch::new(&cuts, missing, comm)?;
        let fetched = fetch.rows(rows, comm)?;
        if wanted == held {
            return Ok(Cow::Borrowed(rows));
        }
        let mut fetched = fetched.iter();
        Ok(Cow::Owned(CsrRows::build(wanted, 0, |row, cols, vals| {
            let (new_cols, new_vals) = match held.contains(&row) {
                true => rows.row(row - held.start),
                false => fetched.next().expect("a row for each that was asked for"),
            };
            cols.extend(new_cols);
            vals.extend(new_vals);
        })))
    }

    /// Calls `solve` with the elements of `r` and `z` for the rows of [`Domains::range`]; what it makes of `z` goes back
    /// to the ranks that hold the rows. Messages only where this rank's domains are not its rows.
    ///
    /// # Errors
    /// [`LinalgError::Comm`], [`LinalgError::WrongCommunicator`], [`LinalgError::Length`]; those of `solve`.
    pub(super) fn within(
        &self,
        part: &Partition,
        r: &[f64],
        z: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
        solve: impl FnOnce(&[f64], &mut [f64], &mut Workspace) -> Result<(), LinalgError>,
    ) -> Result<(), LinalgError> {
        part.require(comm)?;
        part.require_len("vector", r.len())?;
        part.require_len("vector", z.len())?;
        let (held, own) = (part.range(), self.range());
        if held == own {
            return solve(r, z, work);
        }
        let mut domains_r = work.take(own.len());
        let mut domains_z = work.take(own.len());
        let here = overlap(&held, &own);
        let (in_held, in_own) = (shifted(&here, held.start), shifted(&here, own.start));
        let others = || (0..part.size()).filter(|&rank| rank != part.rank());
        let message = |peer: Rank, rows: Range<usize>, start: usize| {
            (!rows.is_empty()).then(|| Part { peer, tag: TAG, range: shifted(&rows, start) })
        };
        let held_by_us = others().filter_map(|rank| {
            message(rank, overlap(&held, &(self.cuts[rank]..self.cuts[rank + 1])), held.start)
        });
        let owned_by_us =
            others().filter_map(|rank| message(rank, overlap(&own, &part.range_of(rank)), own.start));
        let (held_by_us, owned_by_us): (Vec<Part>, Vec<Part>) = (held_by_us.collect(), owned_by_us.collect());
        comm.exchange(r, &held_by_us, &mut domains_r, &owned_by_us)?;
        domains_r[in_own.clone()].copy_from_slice(&r[in_held.clone()]);
        solve(&domains_r, &mut domains_z, work)?;
        comm.exchange(&domains_z, &owned_by_us, z, &held_by_us)?;
        z[in_held].copy_from_slice(&domains_z[in_own]);
        work.give(domains_r);
        work.give(domains_z);
        Ok(())
    }
}

/// The first domain of each rank, and the number of domains: as many ranks as can get one do, the heaviest as light as can be.
/// With fewer domains than ranks the owners are spread evenly, so that each is near the rows.
fn owned(part: &Partition, starts: &[usize]) -> Vec<usize> {
    let weight = |rows: &[usize]| {
        let blocks = rows[0] / part.block_len()..rows[1].div_ceil(part.block_len());
        part.weights().get(blocks.clone()).map_or(blocks.len() as u64, |weights| weights.iter().sum())
    };
    let weights: Vec<u64> = starts.windows(2).map(weight).collect();
    let (ranks, owners) = (part.size(), part.size().min(weights.len()));
    let cuts = by_weight(&weights, owners);
    // Owner k is rank (2 k + 1) ranks / (2 owners): k itself if there are as many.
    let owners_before =
        |rank: usize| (0..owners).take_while(|k| (2 * k + 1) * ranks / (2 * owners) < rank).count();
    (0..=ranks).map(|rank| cuts.get(owners_before(rank)).copied().unwrap_or(0)).collect()
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    let start = a.start.max(b.start);
    // Empty ranges keep their start within `a`, so that they can be shifted.
    if start >= a.end.min(b.end) { a.start..a.start } else { start..a.end.min(b.end) }
}

/// As places in a slice whose first element is row `start`; an empty range is any empty place.
fn shifted(rows: &Range<usize>, start: usize) -> Range<usize> {
    if rows.is_empty() { 0..0 } else { rows.start - start..rows.end - start }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_the_same_for_every_number_of_ranks_and_each_has_one_owner() {
        for n in [0, 1, 31, 33, 494, 5000, 262_144] {
            let whole = Domains::new(&Partition::new(n, 1, 0), DOMAINS);
            assert_eq!(whole.range(), 0..n);
            for size in 1..=12 {
                let mut next = 0;
                for rank in 0..size {
                    let part = Partition::new(n, size, rank);
                    let domains = Domains::new(&part, DOMAINS);
                    assert_eq!(domains.starts, whole.starts);
                    assert_eq!(domains.range().start, next);
                    next = domains.range().end;
                    if [1, 2, 4, 8].contains(&size) && part.blocks() >= DOMAINS {
                        assert_eq!(domains.range(), part.range(), "{n} rows, rank {rank} of {size}");
                    }
                }
                assert_eq!(next, n);
            }
        }
        assert_eq!(Domains::new(&Partition::new(494, 1, 0), 8).count(), 8);
        assert_eq!(Domains::new(&Partition::new(40, 1, 0), 8).count(), 2);
    }

    #[test]
    fn owners_have_about_equally_many_domains_also_where_rows_are_cut_by_weight() {
        // Most of the weight is in a tenth of the rows.
        let n = 64_000;
        let heavy = |block: usize| if block < crate::partition::blocks(n) / 10 { 1000 } else { 10 };
        let weights: Vec<u64> = (0..crate::partition::blocks(n)).map(heavy).collect();
        for size in 2..=8 {
            let part = Partition::weighed(n, weights.clone(), size, 0).unwrap();
            assert!(Domains::new(&part, DOMAINS).counts().iter().all(|count| *count > 0), "{size} ranks");
            let equal = Domains::new(&Partition::new(n, size, 0), DOMAINS).counts();
            let (least, most) = (equal.iter().min().unwrap(), equal.iter().max().unwrap());
            assert!(most - least <= 1, "{size} ranks: {equal:?}");
        }
        // Two of four, and none for the others.
        assert_eq!(Domains::new(&Partition::new(40, 4, 0), DOMAINS).counts(), [0, 1, 0, 1]);
    }

    #[test]
    fn vectors_go_to_owners_and_back() {
        for size in 1..=9 {
            ft_sim::ranks(size, |comm| {
                let weights = (0..crate::partition::blocks(700)).map(|block| 1 + 3 * (block as u64 % 3));
                let part = Partition::weighed(700, weights.collect(), comm.size(), comm.rank()).unwrap();
                let domains = Domains::new(&part, DOMAINS);
                let r: Vec<f64> = part.range().map(|row| row as f64).collect();
                let mut z = vec![f64::NAN; r.len()];
                let reversed = |r: &[f64], z: &mut [f64], _: &mut Workspace| {
                    assert!(r.iter().zip(domains.range()).all(|(r, row)| *r == row as f64));
                    z.iter_mut().zip(r).for_each(|(z, r)| *z = -r);
                    Ok(())
                };
                domains.within(&part, &r, &mut z, comm, &mut Workspace::default(), reversed).unwrap();
                assert!(z.iter().zip(&r).all(|(z, r)| *z == -r));
            });
        }
    }
}
