//! Every algorithm for sizes 1 to 33, all ranks in one thread, with and without room for messages: results against a
//! serial reference, no deadlock, no message left over, the order of operands, and the cost that the docs state.

use super::interpreter::{Mode, run};
use super::*;
use crate::rank::Rank;

mod allgather;
mod allreduce;
mod alltoall;
mod barrier;
mod bcast;
mod clock;
mod costs;
mod gather;
mod named;
mod neighbor;
mod reduce;
mod reduce_scatter;
mod scan;
mod scatter;
mod two_level;

/// Lengths at which something changes: nothing, fewer elements than ranks, as many, more, no multiple.
fn lengths(size: usize) -> Vec<usize> {
    vec![0, 1, size.saturating_sub(1), size, size + 1, 3 * size + 2]
}

/// Every size with every root up to 17, larger ones with the first and the last.
fn sizes_and_roots() -> impl Iterator<Item = (usize, Rank)> {
    let all = (1..=17).flat_map(|size| (0..size).map(move |root| (size, root)));
    all.chain((18..=33).flat_map(|size| [(size, 0), (size, size - 1)]))
}

/// Starts of unequal parts, some of them empty.
fn unequal(size: usize) -> Vec<usize> {
    let mut starts = vec![0];
    (0..size).for_each(|rank| starts.push(starts[rank] + (rank * 7) % 4));
    starts
}

fn value(rank: Rank, at: usize) -> u64 {
    (rank as u64 + 1) * 1_000 + at as u64
}

fn filled(size: usize, len: usize) -> Vec<Vec<u64>> {
    (0..size).map(|rank| (0..len).map(|at| value(rank, at)).collect()).collect()
}

fn sum(size: usize, len: usize) -> Vec<u64> {
    (0..len).map(|at| (0..size).map(|rank| value(rank, at)).sum()).collect()
}

/// The map `x -> factor x + offset` modulo `2^64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Affine {
    factor: u64,
    offset: u64,
}

impl Affine {
    const IDENTITY: Self = Self { factor: 1, offset: 0 };

    /// One that differs for all ranks and places, with an inverse, so that nothing is lost in a product.
    fn of(rank: Rank, at: usize) -> Self {
        Self { factor: 2 * value(rank, at) + 1, offset: value(rank, at) + 77 }
    }
}

/// A product that depends on the order of its factors, but not on their grouping.
fn compose(first: &Affine, second: &Affine) -> Affine {
    Affine {
        factor: first.factor.wrapping_mul(second.factor),
        offset: first.factor.wrapping_mul(second.offset).wrapping_add(first.offset),
    }
}

fn affine(size: usize, len: usize) -> Vec<Vec<Affine>> {
    (0..size).map(|rank| (0..len).map(|at| Affine::of(rank, at)).collect()).collect()
}

/// The product over some ranks, lowest first.
fn product(ranks: std::ops::Range<Rank>, len: usize) -> Vec<Affine> {
    let place = |at| ranks.clone().fold(Affine::IDENTITY, |left, rank| compose(&left, &Affine::of(rank, at)));
    (0..len).map(place).collect()
}

/// A commutative operation that shows the grouping of its operands: the result names the shape of the tree. Where it
/// gives the same on all ranks, a commutative operation on floats gives the same bits.
fn grouped(a: &u64, b: &u64) -> u64 {
    let (low, high) = (a.min(b), a.max(b));
    low.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ high.rotate_left(17)
}

/// An operation that shows both, the order and the grouping of its operands.
fn ordered(a: &u64, b: &u64) -> u64 {
    a.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b.rotate_left(17)
}

/// The buffers after the lists of all ranks, which must be the same with and without room for messages.
fn after<T: Clone + PartialEq + std::fmt::Debug>(
    list: impl Fn(Rank) -> Vec<Step>,
    inputs: &[Vec<T>],
    buffers: Vec<Vec<T>>,
    op: impl Fn(&T, &T) -> T,
) -> Vec<Vec<T>> {
    let in_mode = |mode| {
        let mut buffers = buffers.clone();
        run((0..buffers.len()).map(&list).collect(), inputs, &mut buffers, &op, mode);
        buffers
    };
    let buffered = in_mode(Mode::Buffered);
    assert_eq!(buffered, in_mode(Mode::Synchronous));
    buffered
}

/// As [`after`], where nothing is reduced.
fn moved(list: impl Fn(Rank) -> Vec<Step>, inputs: &[Vec<u64>], buffers: Vec<Vec<u64>>) -> Vec<Vec<u64>> {
    after(list, inputs, buffers, |_, _| panic!("nothing is to be reduced"))
}
