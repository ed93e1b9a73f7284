//! The rows of a plate that one rank has.

use std::ops::Range;

use ft_checkpoint::{Protect, RankState, Redistribute, Redistribution};
use ft_comm::{CommError, Communicator, Part, Rank, Tag};

use super::{PICTURE_SIDE, rounded};
use crate::rank::share_of;

/// Temperature of the upper edge, and of the others.
const HOT: f64 = 1.0;
const COLD: f64 = 0.0;

/// Tags of rows on their way to the rank above and to the one below.
const UP: Tag = 1;
const DOWN: Tag = 2;

/// Bytes of the hash of a row.
const HASH_BYTES: usize = blake3::OUT_LEN;

/// A plate of `side` x `side` points between edges of fixed temperatures; each rank has a block of its rows.
#[derive(Debug, Default, Protect, Redistribute)]
pub(super) struct Plate {
    #[protect(constant, replicated)]
    side: usize,
    /// Temperatures, row by row.
    #[protect(distributed)]
    here: Vec<f64>,
    /// The row above the first and the row below the last.
    #[protect(derived)]
    halo: Vec<f64>,
    /// Temperatures after the step.
    #[protect(derived)]
    next: Vec<f64>,
}

impl Plate {
    /// A cold plate.
    pub(super) fn new(side: usize, comm: &Communicator) -> Self {
        let here = vec![COLD; side * rows_of(comm.rank(), side, comm.size()).len()];
        let mut plate = Self { side, here, ..Self::default() };
        plate.rebuild(comm);
        plate
    }

    /// The plate on fewer ranks, from the rows that old ranks had.
    pub(super) fn redistribute(
        shares: Vec<RankState<Self>>,
        before: usize,
        side: usize,
        comm: &Communicator,
    ) -> Result<Self, CommError> {
        let ranges = |size: usize| (0..size).map(|rank| rows_of(rank, side, size)).collect();
        let held = shares.iter().map(|share| share.rank).collect();
        Redistribution::new(comm, held, ranges(before), ranges(comm.size()))?.deal(shares)
    }

    /// Makes what is not protected. Only the edges are in the halo so far.
    pub(super) fn rebuild(&mut self, comm: &Communicator) {
        self.next = vec![COLD; self.here.len()];
        self.halo = vec![COLD; 2 * self.side];
        if comm.rank() == 0 {
            self.halo[..self.side].fill(HOT);
        }
    }

    /// Gets the rows next to those here from the ranks above and below.
    pub(super) fn exchange(&mut self, comm: &Communicator) -> Result<(), CommError> {
        let (rank, side, end) = (comm.rank(), self.side, self.here.len());
        let row = |peer, tag, start| Part { peer, tag, range: start..start + side };
        let (mut sends, mut recvs) = (vec![], vec![]);
        if rank > 0 {
            sends.push(row(rank - 1, UP, 0));
            recvs.push(row(rank - 1, DOWN, 0));
        }
        if rank + 1 < comm.size() {
            sends.push(row(rank + 1, DOWN, end - side));
            recvs.push(row(rank + 1, UP, side));
        }
        comm.exchange(&self.here, &sends, &mut self.halo, &recvs)
    }

    /// One step of Jacobi's method: each temperature becomes the mean of its four neighbors. Gives the largest change.
    pub(super) fn relax(&mut self) -> f64 {
        let mut change: f64 = 0.0;
        let rows = with_halo(&self.halo, &self.here, self.side);
        for (rows, next) in rows.windows(3).zip(self.next.chunks_exact_mut(self.side)) {
            let (above, here, below) = (rows[0], rows[1], rows[2]);
            for x in 0..here.len() {
                let left = if x == 0 { COLD } else { here[x - 1] };
                let right = here.get(x + 1).copied().unwrap_or(COLD);
                // Summed in pairs, so that the mirror image of a row gives the mirror image of its bits.
                next[x] = 0.25 * ((above[x] + below[x]) + (left + right));
                // Not a number stays in the maximum.
                let by = (next[x] - here[x]).abs();
                change = if by > change || by.is_nan() { by } else { change };
            }
        }
        std::mem::swap(&mut self.here, &mut self.next);
        change
    }

    /// Whether the hot edge has warmed the plate, and each row is its own mirror image and nowhere warmer than the row
    /// above, to the last bit: so it is at the start, and each step keeps it, since rounding keeps order. To be called
    /// after an exchange.
    pub(super) fn is_plausible(&self, comm: &Communicator) -> bool {
        let warm = comm.rank() > 0 || self.here[0] > COLD;
        warm && with_halo(&self.halo, &self.here, self.side).windows(2).all(|rows| {
            let falls = rows[0].iter().zip(rows[1]).all(|(above, below)| above >= below);
            falls && rows[1].iter().eq(rows[1].iter().rev())
        })
    }

    /// A hash of all temperatures, the same on any number of ranks.
    pub(super) fn hash(&self, comm: &Communicator) -> Result<String, CommError> {
        let hash = |row: &[f64]| {
            let mut hasher = blake3::Hasher::new();
            row.iter().for_each(|value| _ = hasher.update(&value.to_le_bytes()));
            *hasher.finalize().as_bytes()
        };
        let rows: Vec<Range<usize>> =
            (0..comm.size()).map(|rank| rows_of(rank, self.side, comm.size())).collect();
        let mine: Vec<u8> = self.here.chunks_exact(self.side).flat_map(hash).collect();
        let mut all = vec![0; HASH_BYTES * self.side];
        all[HASH_BYTES * rows[comm.rank()].start..][..mine.len()].copy_from_slice(&mine);
        comm.allgatherv(&mut all, &rows.iter().map(|rows| HASH_BYTES * rows.len()).collect::<Vec<_>>())?;
        Ok(blake3::hash(&all).to_hex().to_string())
    }

    /// The temperatures at evenly spread points, at most [`PICTURE_SIDE`] a side, column by column and to 3 digits.
    pub(super) fn picture(&self, comm: &Communicator) -> Result<Vec<f32>, CommError> {
        let points = self.side.min(PICTURE_SIDE);
        let at = |point: usize| point * self.side / points;
        let points_of = |rank: Rank| {
            let rows = rows_of(rank, self.side, comm.size());
            (0..points).filter(move |point| rows.contains(&at(*point)))
        };
        let first = rows_of(comm.rank(), self.side, comm.size()).start;
        let mut all = vec![0.0f64; points * points];
        for point in points_of(comm.rank()) {
            let row = &self.here[(at(point) - first) * self.side..][..self.side];
            (0..points).for_each(|col| all[point * points + col] = row[at(col)]);
        }
        let counts: Vec<usize> = (0..comm.size()).map(|rank| points * points_of(rank).count()).collect();
        comm.allgatherv(&mut all, &counts)?;
        Ok((0..points * points).map(|i| rounded(all[i % points * points + i / points])).collect())
    }
}

/// Rows of `rank`, at least one if there are as many rows as ranks.
fn rows_of(rank: Rank, side: usize, ranks: usize) -> Range<usize> {
    let Range { start, end } = share_of(&(0..side as u64), rank, ranks);
    start as usize..end as usize
}

/// All rows here, between the two of the halo.
fn with_halo<'a>(halo: &'a [f64], here: &'a [f64], side: usize) -> Vec<&'a [f64]> {
    let (above, below) = halo.split_at(side);
    std::iter::once(above).chain(here.chunks_exact(side)).chain([below]).collect()
}

#[cfg(test)]
mod tests {
    use ft_comm::World;

    use super::*;

    /// A plate on one rank after `steps` steps, and the last change.
    fn relaxed(side: usize, steps: usize, comm: &Communicator) -> (Plate, f64) {
        let mut plate = Plate::new(side, comm);
        let change = (0..steps).map(|_| plate.relax()).last().unwrap_or(0.0);
        (plate, change)
    }

    #[test]
    fn every_row_has_one_rank() {
        for (side, ranks) in [(1, 1), (5, 5), (7, 3), (256, 5)] {
            let rows: Vec<_> = (0..ranks).map(|rank| rows_of(rank, side, ranks)).collect();
            assert!(rows.iter().all(|rows| !rows.is_empty()));
            assert!(rows.into_iter().flatten().eq(0..side));
        }
    }

    /// Four plates, each with another hot edge, add up to one that is hot all over; so in the center each has a quarter.
    #[test]
    fn the_center_is_a_quarter_of_the_hot_edge() {
        let world = World::init().unwrap();
        let (plate, change) = relaxed(9, 500, world.comm());
        assert!(change < 1e-12 && (plate.here[4 * 9 + 4] - 0.25).abs() < 1e-10);
        assert!(plate.is_plausible(world.comm()));
    }

    #[test]
    fn a_change_that_is_no_number_is_the_largest() {
        let world = World::init().unwrap();
        let (mut plate, _) = relaxed(9, 20, world.comm());
        plate.here[40] = f64::NAN;
        assert!(plate.relax().is_nan() && !plate.is_plausible(world.comm()));
    }

    #[test]
    fn what_cannot_be_is_not_plausible() {
        let world = World::init().unwrap();
        assert!(!relaxed(9, 0, world.comm()).0.is_plausible(world.comm()));
        for at in [0, 17, 40, 80] {
            for wrong in [-0.1, 1.1, 0.3] {
                let (mut plate, _) = relaxed(9, 20, world.comm());
                plate.here[at] = wrong;
                assert!(!plate.is_plausible(world.comm()), "{wrong} at {at}");
            }
        }
    }
}
