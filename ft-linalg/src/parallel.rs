//! Loops over elements and blocks of rows, shared by the threads of a rank.
//!
//! What a loop writes is cut into pieces, one for whoever comes for it; what it reads is shared. Which thread computes
//! an element changes no bit of it, and sums are formed block by block ([`crate::dot`]), so answers do not depend on the
//! number of threads. Loops that are too short to be worth a helper's way stay with the caller. The threads are those of
//! [`ft_threads`].

use std::ops::Range;

use crate::Partition;

/// Operations on elements, a nanosecond each or so, from which a loop is worth sharing.
pub(crate) const SHORT: usize = 12 << 10;
/// Operations on an element in a loop over blocks, which is there to have several.
const FUSED: usize = 4;
/// Pieces for each thread: so that one that is late, or has found more work than was thought, is helped out.
const PIECES: usize = 4;

/// Something that can be cut into a first part and the rest: slices, and groups of things that are cut at the same place.
pub trait Cut: Send + Sized {
    /// The first `at` elements, and the others.
    fn cut(self, at: usize) -> (Self, Self);
}

impl Cut for () {
    fn cut(self, _: usize) -> (Self, Self) {
        ((), ())
    }
}

impl<T: Send> Cut for &mut [T] {
    fn cut(self, at: usize) -> (Self, Self) {
        self.split_at_mut(at)
    }
}

impl<C: Cut> Cut for Vec<C> {
    fn cut(self, at: usize) -> (Self, Self) {
        self.into_iter().map(|part| part.cut(at)).unzip()
    }
}

impl<A: Cut, B: Cut> Cut for (A, B) {
    fn cut(self, at: usize) -> (Self, Self) {
        let ((a, b), (c, d)) = (self.0.cut(at), self.1.cut(at));
        ((a, c), (b, d))
    }
}

impl<A: Cut, B: Cut, C: Cut> Cut for (A, B, C) {
    fn cut(self, at: usize) -> (Self, Self) {
        let (((a, b), c), ((d, e), f)) = ((self.0, self.1), self.2).cut(at);
        ((a, b, c), (d, e, f))
    }
}

/// Whether a loop of so many operations is shared.
pub(crate) fn is_shared(operations: usize) -> bool {
    operations >= SHORT && ft_threads::threads() > 1
}

/// Pieces that a loop is cut into, of at most `most`.
pub(crate) fn pieces(most: usize) -> usize {
    (PIECES * ft_threads::threads()).min(most)
}

/// Calls `work` for ranges that together are `0..len`, each with its part of what is `written`, of `len` elements. For loops
/// in which elements do not depend on each other.
///
/// ```
/// let (x, mut y) = (vec![1.0; 100_000], vec![2.0; 100_000]);
/// ft_linalg::parallel::elements(y.len(), &mut y[..], |rows, y| {
///     y.iter_mut().zip(&x[rows]).for_each(|(y, x)| *y += 0.5 * x);
/// });
/// assert_eq!(y, [2.5; 100_000]);
/// ```
pub fn elements<C: Cut>(len: usize, written: C, work: impl Fn(Range<usize>, C) + Sync) {
    elements_of(len, len, written, work);
}

/// As [`elements`], where all take so many `operations`.
pub(crate) fn elements_of<C: Cut>(
    operations: usize,
    len: usize,
    written: C,
    work: impl Fn(Range<usize>, C) + Sync,
) {
    if !is_shared(operations) || len < 2 {
        return work(0..len, written);
    }
    // At multiples of a line of the cache, so that no two threads write to one.
    let piece = len.div_ceil(pieces(len)).next_multiple_of(8);
    let (mut rest, mut parts) = (written, Vec::new());
    for start in (0..len).step_by(piece) {
        let end = len.min(start + piece);
        let first;
        (first, rest) = rest.cut(end - start);
        parts.push((start..end, first));
    }
    ft_threads::for_each(parts, |(range, part)| work(range, part));
}

/// Calls `work` for each of this rank's blocks of `part`, with its rows, its part of what is `written`, of as many elements as
/// this rank has rows, and its element of `sums`.
///
/// ```
/// # use ft_linalg::{Partition, dot::block_dot};
/// // y = y - 2 x, and y.y of each block while it is in cache
/// let part = Partition::new(100_000, 1, 0);
/// let (x, mut y) = (vec![1.0; 100_000], vec![5.0; 100_000]);
/// let mut sums = vec![0.0; part.blocks()];
/// ft_linalg::parallel::blocks(&part, &mut y[..], &mut sums, |rows, y, sum| {
///     y.iter_mut().zip(&x[rows]).for_each(|(y, x)| *y -= 2.0 * x);
///     *sum = block_dot(y, y);
/// });
/// assert_eq!(sums.iter().sum::<f64>(), 900_000.0);
/// ```
///
/// # Panics
/// If there are fewer `sums` than blocks.
pub fn blocks<C: Cut, S: Send>(
    part: &Partition,
    written: C,
    sums: &mut [S],
    work: impl Fn(Range<usize>, C, &mut S) + Sync,
) {
    let (len, block_len) = (part.local_len(), part.block_len());
    let count = len.div_ceil(block_len);
    let sums = &mut sums[..count];
    // Some blocks in a row.
    let run = |first: usize, mut rest: C, sums: &mut [S]| {
        for (block, sum) in (first..).zip(sums) {
            let rows = block * block_len..len.min((block + 1) * block_len);
            let piece;
            (piece, rest) = rest.cut(rows.len());
            work(rows, piece, sum);
        }
    };
    if !is_shared(FUSED * len) {
        return run(0, written, sums);
    }
    let piece = count.div_ceil(pieces(count));
    let (mut rest, mut parts) = (written, Vec::new());
    for (at, sums) in sums.chunks_mut(piece).enumerate() {
        let first;
        (first, rest) = rest.cut((sums.len() * block_len).min(len - at * piece * block_len));
        parts.push((at * piece, first, sums));
    }
    ft_threads::for_each(parts, |(first, piece, sums)| run(first, piece, sums));
}

/// Calls `work` for each of `parts`; `operations` are those of all together.
pub(crate) fn for_each<P: Send>(operations: usize, parts: Vec<P>, work: impl Fn(P) + Sync) {
    if is_shared(operations) {
        ft_threads::for_each(parts, work);
    } else {
        parts.into_iter().for_each(work);
    }
}

/// What `work` makes of each of `parts`, in their order; `operations` are those of all together.
pub(crate) fn map<P: Send, R: Send>(
    operations: usize,
    parts: Vec<P>,
    work: impl Fn(P) -> R + Sync,
) -> Vec<R> {
    if !is_shared(operations) {
        return parts.into_iter().map(work).collect();
    }
    let mut results: Vec<Option<R>> = parts.iter().map(|_| None).collect();
    let slots = parts.into_iter().zip(&mut results).collect();
    ft_threads::for_each(slots, |(part, result): (P, &mut Option<R>)| *result = Some(work(part)));
    results.into_iter().map(|result| result.expect("every part was worked on")).collect()
}

#[cfg(test)]
mod tests {
    use ft_threads::Team;

    use super::*;
    use crate::dot::block_dot;

    #[test]
    fn every_element_is_written_once() {
        for len in [0, 1, 100, SHORT, SHORT + 1, 5 * SHORT + 77] {
            Team::new(3).install(|| {
                let (mut a, mut b) = (vec![0; len], vec![0; len]);
                elements(len, (&mut a[..], &mut b[..]), |range, (a, b)| {
                    for ((i, a), b) in range.zip(a).zip(b) {
                        (*a, *b) = (*a + i, *b + 2 * i);
                    }
                });
                assert!(a.into_iter().eq(0..len) && b.into_iter().eq((0..len).map(|i| 2 * i)));
            });
        }
    }

    #[test]
    fn sums_of_blocks_have_the_same_bits_on_any_number_of_threads() {
        for n in [0, 31, 5000, SHORT + 5, 6 * SHORT + 1] {
            let part = Partition::new(n, 1, 0);
            let sums = |threads| {
                Team::new(threads).install(|| {
                    let mut x: Vec<f64> = (0..n).map(|i| (i as f64).sin()).collect();
                    let mut sums = vec![0.0; part.blocks()];
                    blocks(&part, &mut x[..], &mut sums, |rows, x, sum| {
                        x.iter_mut().zip(rows).for_each(|(x, i)| *x += 1.0 / (i + 1) as f64);
                        *sum = block_dot(x, x);
                    });
                    (x, sums)
                })
            };
            let one = sums(1);
            (2..5).for_each(|threads| assert_eq!(sums(threads), one, "{n} rows, {threads} threads"));
        }
    }

    #[test]
    fn results_are_in_the_order_of_parts() {
        let results = Team::new(3).install(|| map(SHORT, (0..50).collect(), |part: usize| part * part));
        assert!(results.into_iter().eq((0..50).map(|part| part * part)));
    }
}
