//! Memory and sums that numeric calls share from one call to the next.

use ft_comm::Communicator;

use crate::dot::{Reducer, block_dot, block_dots};
use crate::halo::HaloBuffers;
use crate::parallel::blocks;
use crate::{LinalgError, Partition, Sums};

/// Vectors that calls take and give back, so that a loop asks the system for memory in its first round only; and what
/// sums over all ranks need.
///
/// Nothing in here has a value worth keeping: no checkpoint holds it, and a new one (`default()`) grows as needed.
#[derive(Debug, Default)]
pub struct Workspace {
    vectors: Vec<Vec<f64>>,
    reducers: Vec<Reducer>,
    pub(crate) halo: HaloBuffers,
}

impl Workspace {
    /// A vector of `len` elements of any value. [`Workspace::give`] hands it back; one that is dropped instead, as an error
    /// on the way does, is only memory.
    pub fn take(&mut self, len: usize) -> Vec<f64> {
        let fits = |vector: &Vec<f64>| vector.len() == len;
        let found = self.vectors.iter().rposition(fits).or_else(|| {
            let roomy = self.vectors.iter().enumerate().filter(|(_, vector)| vector.capacity() >= len);
            roomy.min_by_key(|(_, vector)| vector.capacity()).map(|(at, _)| at)
        });
        let mut vector = found.map_or_else(Vec::new, |at| self.vectors.swap_remove(at));
        vector.resize(len, 0.0);
        vector
    }

    /// Keeps `vector` for the next [`Workspace::take`].
    pub fn give(&mut self, vector: Vec<f64>) {
        self.vectors.push(vector);
    }

    /// The first `K` of the sums of all blocks of all ranks. Collective: one allgatherv, see [`Reducer::sum`].
    ///
    /// # Errors
    /// As [`Reducer::sum`].
    pub fn sum<const K: usize>(
        &mut self,
        part: &Partition,
        blocks: &[Sums],
        comm: &Communicator,
    ) -> Result<[f64; K], LinalgError> {
        let mut flat = self.take(K * blocks.len());
        let (partials, _) = flat.as_chunks_mut::<K>();
        partials.iter_mut().zip(blocks).for_each(|(to, from)| to.copy_from_slice(&from[..K]));
        let sum = self.reducer(part).sum(partials, comm)?;
        self.give(flat);
        Ok(sum)
    }

    /// Dot products of `K` pairs of vectors, in one message. Collective, see [`Reducer::sum`]; each has the same bits on any
    /// number of ranks.
    ///
    /// # Errors
    /// As [`Reducer::sum`].
    ///
    /// # Panics
    /// If a slice does not have one element for each row of this rank.
    pub fn dots<const K: usize>(
        &mut self,
        part: &Partition,
        pairs: [(&[f64], &[f64]); K],
        comm: &Communicator,
    ) -> Result<[f64; K], LinalgError> {
        pairs.iter().for_each(|(x, _)| assert_eq!(x.len(), part.local_len()));
        let mut flat = self.take(K * part.blocks_of(part.rank()).len());
        let (partials, _) = flat.as_chunks_mut::<K>();
        blocks(part, (), partials, |rows, (), partial| {
            *partial = pairs.map(|(x, y)| block_dot(&x[rows.clone()], &y[rows.clone()]));
        });
        let sums = self.reducer(part).sum(partials, comm)?;
        self.give(flat);
        Ok(sums)
    }

    /// As [`Workspace::dots`], of any number of pairs. Collective.
    ///
    /// # Errors
    /// As [`Reducer::sum_many`].
    ///
    /// # Panics
    /// As [`Workspace::dots`].
    pub fn dots_many(
        &mut self,
        part: &Partition,
        pairs: &[(&[f64], &[f64])],
        comm: &Communicator,
    ) -> Result<Vec<f64>, LinalgError> {
        pairs.iter().for_each(|(x, y)| assert!(x.len() == part.local_len() && y.len() == x.len()));
        self.reducer(part).sum_many(pairs.len(), &block_dots(part, pairs), comm)
    }

    fn reducer(&mut self, part: &Partition) -> &mut Reducer {
        let known = self.reducers.iter().position(|reducer| reducer.part() == part);
        let at = known.unwrap_or_else(|| {
            self.reducers.push(Reducer::new(part));
            self.reducers.len() - 1
        });
        &mut self.reducers[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_taken_again() {
        let mut work = Workspace::default();
        let (long, short) = (work.take(100), work.take(10));
        let places = [long.as_ptr(), short.as_ptr()];
        work.give(long);
        work.give(short);
        let (short, long) = (work.take(10), work.take(50));
        assert_eq!([long.as_ptr(), short.as_ptr()], places);
        assert_eq!(long.len(), 50);
        assert_eq!(work.take(3).len(), 3);
    }

    #[test]
    fn sums_are_those_of_dot_products() {
        ft_sim::ranks(3, |comm| {
            let part = Partition::of(comm, 500);
            let x: Vec<f64> = part.range().map(|row| 1.0 / (row as f64 + 0.7)).collect();
            let y: Vec<f64> = part.range().map(|row| row as f64).collect();
            let mut work = Workspace::default();
            let [xx, xy] = work.dots(&part, [(&x, &x), (&x, &y)], comm).unwrap();
            let sums = |rows: std::ops::Range<usize>| [block_dot(&x[rows.clone()], &y[rows]), 1.0, 0.0, 0.0];
            let blocks: Vec<Sums> = part.local_blocks().map(sums).collect();
            assert_eq!(work.sum(&part, &blocks, comm).unwrap(), [xy, part.blocks() as f64]);
            assert_eq!(Reducer::new(&part).dot(&x, &x, comm).unwrap(), xx);
            assert_eq!(work.dots_many(&part, &[(&x, &x), (&x, &y)], comm).unwrap(), [xx, xy]);
            assert_eq!(work.dots_many(&part, &[], comm).unwrap(), [0.0; 0]);
        });
    }
}
