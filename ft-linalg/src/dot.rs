//! Dot products with the same bits on any number of ranks.
//!
//! Floating-point addition is not associative, so a sum keeps its bits only if its tree of additions is fixed.
//! Three levels fix it here:
//!
//! 1. within a block of rows (see [`crate::partition`]): 16 lanes, row `i` of the block in lane `i mod 16`, and a
//!    fixed combination of the lanes ([`block_dot`]). The source spells the order out, so every processor keeps it,
//!    with vector registers of any width;
//! 2. over blocks: a binary tree over the block index. Node `index` of `level` sums blocks `index << level` up to
//!    `(index + 1) << level`, cut off at the last block;
//! 3. between ranks nothing is added: a rank sends the nodes of that tree that lie wholly in its own blocks (at
//!    most `2 log2(blocks)`, [`cover`]), and every rank finishes the same tree.
//!
//! What this does not do: it does not make sums more exact than plain ones, and results change with `n`, because
//! blocks do. Idea of fixed blocks: Demmel, Nguyen: Parallel reproducible summation, IEEE Trans. Computers, 2015,
//! discuss it as the cheap special case of a fixed reduction tree.

use std::ops::Range;

use ft_comm::Communicator;

use crate::{LinalgError, Partition, parallel::blocks};

/// Lanes of a block's sum. Two AVX-512 registers, or eight of SSE2: enough to hide the latency of an addition.
const LANES: usize = 16;

/// Pairs of vectors that are gone through at once. The processor fetches from all of them while it waits for one.
const AT_ONCE: usize = 4;

/// Rows of a pair before it is the next one's turn: a multiple of the lanes.
const TURN: usize = 64;

/// Dot product of one block, in the fixed lane order. Also right for slices shorter than a block.
///
/// # Panics
/// If the lengths differ.
pub fn block_dot(x: &[f64], y: &[f64]) -> f64 {
    assert_eq!(x.len(), y.len());
    let mut lanes = [0.0; LANES];
    let (x_head, x_tail) = x.as_chunks::<LANES>();
    let (y_head, y_tail) = y.as_chunks::<LANES>();
    for (x, y) in x_head.iter().zip(y_head) {
        for lane in 0..LANES {
            lanes[lane] += x[lane] * y[lane];
        }
    }
    for (lane, (x, y)) in lanes.iter_mut().zip(x_tail.iter().zip(y_tail)) {
        *lane += x * y;
    }
    combine(lanes)
}

/// Adds products to the lanes. Of a part that is not the last of a block the length is a multiple of theirs.
#[inline]
fn accumulate(lanes: &mut [f64; LANES], x: &[f64], y: &[f64]) {
    let mut sums = *lanes;
    let (x_head, x_tail) = x.as_chunks::<LANES>();
    let (y_head, y_tail) = y.as_chunks::<LANES>();
    for (x, y) in x_head.iter().zip(y_head) {
        for lane in 0..LANES {
            sums[lane] += x[lane] * y[lane];
        }
    }
    for (lane, (x, y)) in sums.iter_mut().zip(x_tail.iter().zip(y_tail)) {
        *lane += x * y;
    }
    *lanes = sums;
}

/// 16 -> 8 -> 4 -> 2 -> 1, always lower half plus upper half.
#[inline]
fn combine(mut lanes: [f64; LANES]) -> f64 {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// Partial sums of `x . y` over this rank's blocks, in order.
///
/// # Panics
/// If a slice does not have one element for each row of this rank.
pub fn block_partials(part: &Partition, x: &[f64], y: &[f64]) -> Vec<f64> {
    assert_eq!(x.len(), part.local_len());
    let mut partials = vec![0.0; part.blocks_of(part.rank()).len()];
    blocks(part, (), &mut partials, |rows, (), partial| *partial = block_dot(&x[rows.clone()], &y[rows]));
    partials
}

/// The dot product of each pair of local parts over each of this rank's blocks, block by block.
pub(crate) fn block_dots(part: &Partition, pairs: &[(&[f64], &[f64])]) -> Vec<f64> {
    let width = pairs.len();
    if width == 0 {
        return Vec::new();
    }
    let mut partials = vec![0.0; part.blocks_of(part.rank()).len() * width];
    let mut of_blocks: Vec<&mut [f64]> = partials.chunks_exact_mut(width).collect();
    blocks(part, (), &mut of_blocks, |rows, (), partials| {
        let (partials_of, pairs_of) = (partials.chunks_mut(AT_ONCE), pairs.chunks(AT_ONCE));
        for (partials, pairs) in partials_of.zip(pairs_of) {
            match rows.len() > TURN {
                true => block_dots_in_turns(pairs, &rows, partials),
                false => {
                    for (partial, (x, y)) in partials.iter_mut().zip(pairs) {
                        *partial = block_dot(&x[rows.clone()], &y[rows.clone()]);
                    }
                }
            }
        }
    });
    partials
}

/// [`block_dot`] of each of a few pairs over a long block.
fn block_dots_in_turns(pairs: &[(&[f64], &[f64])], rows: &Range<usize>, sums: &mut [f64]) {
    let mut lanes = [[0.0; LANES]; AT_ONCE];
    for start in rows.clone().step_by(TURN) {
        let turn = start..rows.end.min(start + TURN);
        for (lanes, (x, y)) in lanes.iter_mut().zip(pairs) {
            accumulate(lanes, &x[turn.clone()], &y[turn.clone()]);
        }
    }
    sums.iter_mut().zip(lanes).for_each(|(sum, lanes)| *sum = combine(lanes));
}

/// A node of the tree over block indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Height; leaves (blocks) have level 0.
    pub level: u32,
    /// Place among the nodes of its level.
    pub index: usize,
}

impl Node {
    /// The node that sums all of `blocks` blocks.
    pub fn root(blocks: usize) -> Self {
        Self { level: blocks.max(1).next_power_of_two().ilog2(), index: 0 }
    }

    /// The blocks under this node, of `blocks` in all.
    fn span(self, blocks: usize) -> Range<usize> {
        (self.index << self.level).min(blocks)..((self.index + 1) << self.level).min(blocks)
    }

    fn children(self) -> [Self; 2] {
        [2 * self.index, 2 * self.index + 1].map(|index| Self { level: self.level - 1, index })
    }
}

/// The fewest nodes that together sum the blocks `mine` of `blocks`, from left to right.
pub fn cover(mine: &Range<usize>, blocks: usize) -> Vec<Node> {
    fn visit(node: Node, mine: &Range<usize>, blocks: usize, found: &mut Vec<Node>) {
        let span = node.span(blocks);
        if span.start >= mine.end || span.end <= mine.start {
            return;
        }
        if mine.start <= span.start && span.end <= mine.end {
            return found.push(node);
        }
        node.children().into_iter().for_each(|child| visit(child, mine, blocks, found));
    }
    let mut found = Vec::new();
    visit(Node::root(blocks), mine, blocks, &mut found);
    found
}

/// Value of `node`: what `known` says, else left child plus right child. Nodes are asked for from left to right.
///
/// `K` sums are formed side by side. `known` must know the leaves at the latest.
pub fn tree_sum<const K: usize>(
    node: Node,
    blocks: usize,
    known: &mut impl FnMut(Node) -> Option<[f64; K]>,
) -> [f64; K] {
    if let Some(value) = known(node) {
        return value;
    }
    assert!(node.level > 0, "block {} has no partial sum", node.index);
    let [left, right] = node.children();
    let mut sum = tree_sum(left, blocks, known);
    if !right.span(blocks).is_empty() {
        let right = tree_sum(right, blocks, known);
        sum.iter_mut().zip(right).for_each(|(sum, right)| *sum += right);
    }
    sum
}

/// The value of a node from all leaves under it, `width` numbers each: as [`tree_sum`] has it, level by level.
fn subtree<'a>(width: usize, leaves: &[f64], scratch: &'a mut Vec<f64>) -> &'a [f64] {
    scratch.clear();
    scratch.extend_from_slice(leaves);
    let mut count = leaves.len() / width;
    while count > 1 {
        for parent in 0..count / 2 {
            let (to, left) = (parent * width, 2 * parent * width);
            for sum in 0..width {
                scratch[to + sum] = scratch[left + sum] + scratch[left + width + sum];
            }
        }
        if count % 2 == 1 {
            scratch.copy_within((count - 1) * width..count * width, count / 2 * width);
        }
        count = count.div_ceil(2);
    }
    &scratch[..width]
}

/// Sums per-block values over all ranks. Holds no state of the computation, only the shape of the exchange and
/// buffers, so it is made again rather than checkpointed.
#[derive(Clone, Debug)]
pub struct Reducer {
    part: Partition,
    /// Each rank's nodes, in rank order.
    covers: Vec<Vec<Node>>,
    /// Most nodes of a rank. All send as many numbers, as then the exchange is planned once.
    longest: usize,
    /// Exchange buffer: in rank order, `K` numbers for each node, and zeros up to the longest part.
    values: Vec<f64>,
    counts: Vec<usize>,
    /// What is left of a subtree while it is summed.
    scratch: Vec<f64>,
}

impl Reducer {
    /// For vectors partitioned as `part`. Not collective. O(size log(blocks)) time and memory.
    pub fn new(part: &Partition) -> Self {
        let covers: Vec<Vec<Node>> =
            (0..part.size()).map(|rank| cover(&part.blocks_of(rank), part.blocks())).collect();
        let longest = covers.iter().map(Vec::len).max().unwrap_or(0);
        Self {
            part: part.clone(),
            covers,
            longest,
            values: Vec::new(),
            counts: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// The partition that this reducer was made for.
    pub fn part(&self) -> &Partition {
        &self.part
    }

    /// Sums `partials` (`K` numbers for each of this rank's blocks, in order) over all blocks of all ranks.
    ///
    /// Collective: one allgatherv of at most `2 K log2(blocks)` numbers per rank. The result has the same bits on
    /// every rank and for every number of ranks. With no rows at all it is 0.
    ///
    /// # Errors
    /// [`LinalgError::Comm`], [`LinalgError::Length`] when there is not one element per block.
    pub fn sum<const K: usize>(
        &mut self,
        partials: &[[f64; K]],
        comm: &Communicator,
    ) -> Result<[f64; K], LinalgError> {
        self.part.require(comm)?;
        let (blocks, mine) = (self.part.blocks(), self.part.blocks_of(self.part.rank()));
        if partials.len() != mine.len() {
            let (expected, found) = (mine.len(), partials.len());
            return Err(LinalgError::Length { what: "list of partial sums", expected, found });
        }
        let each = K * self.longest;
        self.counts.clear();
        self.counts.resize(comm.size(), each);
        self.values.clear();
        self.values.resize(comm.size() * each, 0.0);

        let start = comm.rank() * each;
        for (node, slot) in self.covers[comm.rank()].iter().zip(self.values[start..].chunks_exact_mut(K)) {
            let leaves = node.span(blocks);
            let leaves = &partials[leaves.start - mine.start..leaves.end - mine.start];
            slot.copy_from_slice(subtree(K, leaves.as_flattened(), &mut self.scratch));
        }
        if comm.size() > 1 {
            comm.allgatherv(&mut self.values, &self.counts)?;
        }
        Ok(finish(&self.covers, &self.values, blocks))
    }

    /// As [`Reducer::sum`], with any number of sums side by side: `partials` has `width` numbers for each block. Collective, in
    /// one message.
    ///
    /// # Errors
    /// As [`Reducer::sum`].
    pub fn sum_many(
        &mut self,
        width: usize,
        partials: &[f64],
        comm: &Communicator,
    ) -> Result<Vec<f64>, LinalgError> {
        self.part.require(comm)?;
        let (blocks, mine) = (self.part.blocks(), self.part.blocks_of(self.part.rank()));
        if partials.len() != width * mine.len() {
            let (expected, found) = (width * mine.len(), partials.len());
            return Err(LinalgError::Length { what: "list of partial sums", expected, found });
        }
        if width == 0 {
            return Ok(Vec::new());
        }
        let each = width * self.longest;
        let mut values = vec![0.0; comm.size() * each];
        let start = comm.rank() * each;
        for (node, slots) in self.covers[comm.rank()].iter().zip(values[start..].chunks_exact_mut(width)) {
            let leaves = node.span(blocks);
            let leaves = (leaves.start - mine.start) * width..(leaves.end - mine.start) * width;
            slots.copy_from_slice(subtree(width, &partials[leaves], &mut self.scratch));
        }
        if comm.size() > 1 {
            comm.allgatherv(&mut values, &vec![each; comm.size()])?;
        }
        let of = |sum: usize| values.iter().copied().skip(sum).step_by(width).collect::<Vec<f64>>();
        Ok((0..width).map(|sum| finish::<1>(&self.covers, &of(sum), blocks)[0]).collect())
    }

    /// Dot product of two vectors. Collective, see [`Reducer::sum`]; `2 n / size` flops.
    ///
    /// # Errors
    /// [`LinalgError::Comm`].
    ///
    /// # Panics
    /// If a slice does not have one element for each row of this rank.
    pub fn dot(&mut self, x: &[f64], y: &[f64], comm: &Communicator) -> Result<f64, LinalgError> {
        let partials: Vec<[f64; 1]> =
            block_partials(&self.part, x, y).into_iter().map(|partial| [partial]).collect();
        Ok(self.sum(&partials, comm)?[0])
    }
}

/// The root's value from the nodes that the ranks sent, equally many numbers each.
fn finish<const K: usize>(covers: &[Vec<Node>], values: &[f64], blocks: usize) -> [f64; K] {
    if blocks == 0 {
        return [0.0; K];
    }
    let each = values.len() / covers.len();
    let of_ranks = covers.iter().zip(values.chunks_exact(each));
    let mut sent =
        of_ranks.flat_map(|(nodes, values)| nodes.iter().zip(values.as_chunks::<K>().0)).peekable();
    tree_sum(Node::root(blocks), blocks, &mut |node| {
        sent.next_if(|(next, _)| **next == node).map(|(_, value)| *value)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The dot product as `size` ranks would form it, in one thread.
    fn dot_on(size: usize, x: &[f64], y: &[f64]) -> f64 {
        let part = |rank| Partition::new(x.len(), size, rank);
        let blocks = part(0).blocks();
        let (mut covers, mut values) = (Vec::new(), Vec::new());
        let longest = Reducer::new(&part(0)).longest;
        for rank in 0..size {
            let (rows, mine) = (part(rank).range(), part(rank).blocks_of(rank));
            let partials = block_partials(&part(rank), &x[rows.clone()], &y[rows]);
            let nodes = cover(&mine, blocks);
            for &node in &nodes {
                let leaf = &mut |node: Node| (node.level == 0).then(|| [partials[node.index - mine.start]]);
                values.extend(tree_sum::<1>(node, blocks, leaf));
            }
            covers.push(nodes);
            values.resize(covers.len() * longest, 0.0);
        }
        finish::<1>(&covers, &values, blocks)[0]
    }

    #[test]
    fn lanes_are_added_in_the_documented_order() {
        // 1 + 1e16 is 1e16: with rows 0 and 8 in one pair, the small numbers of rows 1 and 9 survive.
        let mut x = vec![0.0; 16];
        (x[0], x[8], x[1], x[9]) = (1e16, -1e16, 1.0, 1.0);
        assert_eq!(block_dot(&x, &[1.0; 16]), 2.0);
        assert_eq!(block_dot(&[3.0, 4.0], &[3.0, 4.0]), 25.0);
        assert_eq!(block_dot(&[], &[]), 0.0);
    }

    #[test]
    fn covers_are_short_and_tile_the_blocks() {
        for blocks in 0..70 {
            for start in 0..=blocks {
                for end in start..=blocks {
                    let nodes = cover(&(start..end), blocks);
                    let spans: Vec<_> = nodes.iter().flat_map(|node| node.span(blocks)).collect();
                    assert_eq!(spans, (start..end).collect::<Vec<_>>());
                    assert!(nodes.len() <= 14);
                }
            }
        }
    }

    #[test]
    fn subtrees_are_those_of_the_recursion() {
        for blocks in 1..40 {
            let leaves: Vec<[f64; 2]> =
                (0..blocks).map(|i| [(i as f64).sin(), 1e16 / (i + 1) as f64]).collect();
            for node in (0..6).flat_map(|level| (0..8).map(move |index| Node { level, index })) {
                let span = node.span(blocks);
                if span.is_empty() {
                    continue;
                }
                let leaf = &mut |node: Node| (node.level == 0).then(|| leaves[node.index]);
                let due: [f64; 2] = tree_sum(node, blocks, leaf);
                assert_eq!(subtree(2, leaves[span].as_flattened(), &mut vec![]), due, "{node:?} of {blocks}");
            }
        }
    }

    #[test]
    fn an_empty_vector_sums_to_zero() {
        assert_eq!(dot_on(3, &[], &[]), 0.0);
    }

    proptest! {
        #[test]
        fn same_bits_on_any_number_of_ranks(n in 1usize..3000, seed in any::<u32>()) {
            let value = |i: usize| {
                let bits = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(seed);
                (bits % 1_000_003) as f64 / 7.0 - 70_000.0
            };
            let x: Vec<f64> = (0..n).map(value).collect();
            let y: Vec<f64> = (0..n).map(|i| value(i + 7 * n)).collect();
            let one = dot_on(1, &x, &y);
            for size in 2..=8 {
                prop_assert_eq!(dot_on(size, &x, &y).to_bits(), one.to_bits());
            }
            // gamma_n bound of a sum in any order: Higham, Accuracy and Stability, 2002, section 4.2.
            let plain: f64 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
            let size: f64 = x.iter().zip(&y).map(|(x, y)| (x * y).abs()).sum();
            prop_assert!((one - plain).abs() <= 2.0 * n as f64 * f64::EPSILON * size);
        }
    }
}
