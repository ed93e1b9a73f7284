//! Where a row of blocks is cut into as many pieces as there are ranks. Pure.
//!
//! Pieces by weight: the smallest weight that no piece need exceed is found by bisection (a piece that takes as many
//! blocks as it may leaves the fewest to the others). Each cut may then lie within bounds, and is put where it is
//! nearest to an equal share of what is left: a greedy cut alone fills the first ranks and leaves the last ones idle.
//!
//! Source: Pinar, Aykanat: Fast optimal load balancing algorithms for 1D partitioning, J. Parallel Distrib. Comput. 64,
//! 2004, section 2.

/// The first block of each of `pieces` pieces, and the number of blocks. Lengths differ by one at most.
pub(super) fn equally(blocks: usize, pieces: usize) -> Vec<usize> {
    let cut = |piece: usize| (piece as u128 * blocks as u128).checked_div(pieces as u128).unwrap_or(0);
    (0..=pieces).map(|piece| cut(piece) as usize).collect()
}

/// The first block of each of `pieces` pieces, and the number of blocks; the heaviest piece is as light as can be.
/// Weights add up to less than 2^64.
pub(crate) fn by_weight(weights: &[u64], pieces: usize) -> Vec<usize> {
    let mut sum = 0;
    // sums[b]: what the blocks before b weigh.
    let sums: Vec<u64> = std::iter::once(0)
        .chain(weights.iter().map(|weight| {
            sum += weight;
            sum
        }))
        .collect();
    if pieces == 0 {
        return vec![];
    }
    let blocks = weights.len();
    // Where a piece that starts at `start` ends at the latest.
    let reach = |start: usize, limit: u64| {
        start + sums[start + 1..].partition_point(|&end| end - sums[start] <= limit)
    };
    let fits = |limit: u64| (0..pieces).fold(0, |start, _| reach(start, limit)) == blocks;
    let (mut light, mut heavy) = (sum / pieces as u64, sum);
    while light < heavy {
        let limit = light + (heavy - light) / 2;
        if fits(limit) { heavy = limit } else { light = limit + 1 }
    }
    // earliest[k]: where the last k pieces can start at the earliest.
    let mut earliest = vec![blocks; pieces + 1];
    for k in 1..=pieces {
        let end = earliest[k - 1];
        earliest[k] = sums[..end].partition_point(|&start| sums[end] - start > light);
    }
    let mut starts = vec![0; pieces + 1];
    for piece in 1..pieces {
        let last = starts[piece - 1];
        // An equal share of what is left.
        let wanted = sums[last] + (sum - sums[last]) / (pieces - piece + 1) as u64;
        let after = sums.partition_point(|&end| end < wanted);
        let nearer_before = after > 0 && wanted - sums[after - 1] < sums[after] - wanted;
        // As long as there are blocks nobody is left without one.
        let near = (after - usize::from(nearer_before)).max((last + 1).min(blocks));
        starts[piece] = near.clamp(earliest[pieces - piece], reach(last, light));
    }
    starts[pieces] = blocks;
    starts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn heaviest(weights: &[u64], starts: &[usize]) -> u64 {
        starts.windows(2).map(|pair| weights[pair[0]..pair[1]].iter().sum()).max().unwrap_or(0)
    }

    /// The lightest heaviest piece, by trying all cuts.
    fn lightest(weights: &[u64], pieces: usize) -> u64 {
        let sum = |from: usize, to: usize| weights[from..to].iter().sum::<u64>();
        let all = weights.len();
        let mut best: Vec<u64> = (0..=all).map(|end| sum(0, end)).collect();
        for _ in 1..pieces {
            best = (0..=all)
                .map(|end| (0..=end).map(|cut| best[cut].max(sum(cut, end))).min().unwrap_or(0))
                .collect();
        }
        best[all]
    }

    #[test]
    fn by_hand() {
        assert_eq!(by_weight(&[1, 1, 1, 1], 2), [0, 2, 4]);
        assert_eq!(by_weight(&[5, 1, 1, 1, 1], 2), [0, 1, 5]);
        assert_eq!(by_weight(&[1, 1, 1, 1, 5], 3), [0, 3, 4, 5]);
        assert_eq!(by_weight(&[7], 3), [0, 1, 1, 1]);
        assert_eq!(by_weight(&[], 3), [0, 0, 0, 0]);
        assert_eq!(by_weight(&[0, 0], 2), [0, 1, 2]);
        // Ten blocks for four: not 3, 3, 3, 1.
        let lengths =
            |starts: Vec<usize>| starts.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>();
        assert!(lengths(by_weight(&[1; 10], 4)).iter().all(|len| (2..=3).contains(len)));
    }

    proptest! {
        #[test]
        fn no_cut_is_better(weights in proptest::collection::vec(0u64..50, 0..20), pieces in 1usize..7) {
            let starts = by_weight(&weights, pieces);
            prop_assert_eq!((starts[0], starts[pieces]), (0, weights.len()));
            prop_assert!(starts.is_sorted());
            prop_assert_eq!(heaviest(&weights, &starts), lightest(&weights, pieces));
        }
    }
}
