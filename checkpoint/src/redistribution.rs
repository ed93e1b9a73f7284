//! Arrays that are spread over the ranks, dealt out anew over fewer of them.

use std::ops::Range;

use ft_comm::{CommError, Communicator, Op, Part, Plain, Rank};

/// Where each index was, and where it is to be. Old ranks are numbered as at the checkpoint; the part that an old rank
/// had is now held by the rank that it fell to ([`crate::Share`]).
#[derive(Debug)]
pub struct Redistribution<'a> {
    comm: &'a Communicator,
    /// Old ranks whose parts are here.
    held: Vec<Rank>,
    /// By old rank who has its part.
    holder: Vec<Rank>,
    from: Vec<Range<usize>>,
    to: Vec<Range<usize>>,
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

impl<'a> Redistribution<'a> {
    /// `from` has the indices of each old rank, `to` those of each rank of `comm`; this rank has the parts of `held`.
    /// Collective, an allreduce.
    ///
    /// # Errors
    /// A failure.
    pub fn new(
        comm: &'a Communicator,
        held: Vec<Rank>,
        from: Vec<Range<usize>>,
        to: Vec<Range<usize>>,
    ) -> Result<Self, CommError> {
        let mut holder = vec![0u64; from.len()];
        held.iter().for_each(|old| holder[*old] = comm.rank() as u64 + 1);
        comm.allreduce(&mut holder, Op::Max)?;
        let holder = holder.into_iter().map(|rank| (rank as Rank).saturating_sub(1)).collect();
        Ok(Self { comm, held, holder, from, to })
    }

    /// The indices of this rank from now on.
    pub fn range(&self) -> Range<usize> {
        self.to[self.comm.rank()].clone()
    }

    /// Moves `width` elements an index: `parts` in the order of `held`. Collective; every element is sent once.
    ///
    /// # Errors
    /// A failure.
    pub fn run<T: Plain>(&self, parts: &[&[T]], width: usize) -> Result<Vec<T>, CommError> {
        let even = |count: usize| (0..=count).map(|index| index * width).collect::<Vec<_>>();
        let offsets: Vec<Vec<usize>> = self.held.iter().map(|old| even(self.from[*old].len())).collect();
        self.run_ragged(parts, &offsets, &even(self.range().len()))
    }

    /// Moves any number of elements an index: those of index `i` of a part are at `offsets[i]..offsets[i + 1]` in it, and
    /// will be at such a place of `new_offsets` here. Collective.
    ///
    /// # Errors
    /// A failure; offsets that do not fit each other ([`CommError::Count`], [`CommError::Truncated`]).
    pub fn run_ragged<T: Plain>(
        &self,
        parts: &[&[T]],
        offsets: &[Vec<usize>],
        new_offsets: &[usize],
    ) -> Result<Vec<T>, CommError> {
        let mine = self.range();
        let tag = |old: Rank| u32::try_from(old).expect("ranks are few");
        let mut sends = vec![];
        let mut base = 0;
        for ((old, part), offsets) in self.held.iter().zip(parts).zip(offsets) {
            let from = &self.from[*old];
            for (peer, to) in self.to.iter().enumerate() {
                let piece = overlap(from, to);
                if !piece.is_empty() {
                    let at = |index: usize| base + offsets[index - from.start];
                    sends.push(Part { peer, tag: tag(*old), range: at(piece.start)..at(piece.end) });
                }
            }
            base += part.len();
        }
        let mut recvs = vec![];
        for (old, from) in self.from.iter().enumerate() {
            let piece = overlap(from, &mine);
            if !piece.is_empty() {
                let range = new_offsets[piece.start - mine.start]..new_offsets[piece.end - mine.start];
                recvs.push(Part { peer: self.holder[old], tag: tag(old), range });
            }
        }
        let out = parts.concat();
        let mut new = vec![T::zeroed(); new_offsets.last().copied().unwrap_or(0)];
        self.comm.exchange(&out, &sends, &mut new, &recvs)?;
        Ok(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_comm::sim;

    /// Cuts `count` indices into `ranks` ranges.
    fn cuts(count: usize, ranks: usize) -> Vec<Range<usize>> {
        (0..ranks).map(|rank| rank * count / ranks..(rank + 1) * count / ranks).collect()
    }

    #[test]
    fn every_element_is_where_it_belongs() {
        for (count, before, after) in [(10, 4, 3), (3, 5, 2), (17, 3, 1), (1, 4, 4), (0, 2, 1), (64, 8, 7)] {
            let whole: Vec<u64> = (0..count as u64).collect();
            // Index i has i % 3 elements.
            let ragged = |range: Range<usize>| {
                let values: Vec<u64> = range.clone().flat_map(|i| vec![i as u64; i % 3]).collect();
                let mut offsets = vec![0];
                range.for_each(|i| offsets.push(offsets.last().unwrap() + i % 3));
                (values, offsets)
            };
            sim::ranks(after, |comm| {
                let from = cuts(count, before);
                // Old rank r fell to rank r % after.
                let held: Vec<usize> = (0..before).filter(|old| old % after == comm.rank()).collect();
                let to = cuts(count, after);
                let moved = Redistribution::new(comm, held.clone(), from.clone(), to.clone()).unwrap();
                let mine = to[comm.rank()].clone();
                let parts: Vec<&[u64]> = held.iter().map(|old| &whole[from[*old].clone()]).collect();
                assert_eq!(moved.run(&parts, 1).unwrap(), whole[mine.clone()]);
                let twice: Vec<Vec<u64>> =
                    parts.iter().map(|part| part.iter().flat_map(|x| [*x, x + 100]).collect()).collect();
                let got = moved.run(&twice.iter().map(|part| &part[..]).collect::<Vec<_>>(), 2).unwrap();
                assert!(got.chunks(2).zip(mine.clone()).all(|(pair, i)| pair == [i as u64, i as u64 + 100]));
                let (parts, offsets): (Vec<_>, Vec<_>) =
                    held.iter().map(|old| ragged(from[*old].clone())).unzip();
                let parts: Vec<&[u64]> = parts.iter().map(|part| &part[..]).collect();
                let (expected, new_offsets) = ragged(mine);
                assert_eq!(moved.run_ragged(&parts, &offsets, &new_offsets).unwrap(), expected);
            });
        }
    }
}
