//! The fewest ranges of bytes that one algorithm each is good for.

use super::measured::Case;

/// Differences below this part of the fastest time are no reason for another algorithm, however small the spread.
const NOTICEABLE: f64 = 0.05;

/// The algorithms of one operation with one number of ranks and bytes.
pub(crate) type AtSize<'a> = [&'a Case];

/// Whether an algorithm is not slower than the fastest one by more than the spread of both.
pub(crate) fn is_good(at: &AtSize<'_>, algorithm: &str) -> bool {
    let fastest = at.iter().min_by(|a, b| a.time.median.total_cmp(&b.time.median));
    let this = at.iter().find(|case| case.algorithm == algorithm);
    let (Some(fastest), Some(this)) = (fastest, this) else { return false };
    let spread = fastest.time.range().max(this.time.range());
    this.time.median - fastest.time.median <= spread.max(NOTICEABLE * fastest.time.median)
}

/// The algorithm with the least times over some sizes, each size counting the same, among those that are `allowed`.
pub(crate) fn best<'a>(sizes: &[Vec<&'a Case>], allowed: impl Fn(&str) -> bool) -> Option<&'a str> {
    let at = |size: &[&Case], name: &str| {
        size.iter().find(|case| case.algorithm == name).map(|case| case.time.median)
    };
    let everywhere = |name: &str| sizes.iter().map(|size| at(size, name).map(f64::ln)).sum::<Option<f64>>();
    let names = sizes.first()?.iter().map(|case| case.algorithm.as_str()).filter(|name| allowed(name));
    let times = names.filter_map(|name| Some((name, everywhere(name)?)));
    times.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name)
}

/// Cuts rising sizes into ranges: the index behind the last size of each, and its algorithm.
///
/// A range goes on as long as some algorithm is good at all its sizes; no other cut has fewer ranges. In each the fastest
/// of these algorithms is taken.
pub(crate) fn ranges<'a>(sizes: &[Vec<&'a Case>]) -> Vec<(usize, &'a str)> {
    let mut ranges = Vec::new();
    let mut start = 0;
    while start < sizes.len() {
        let good = |end: usize, name: &str| sizes[start..end].iter().all(|size| is_good(size, name));
        let any = |end: usize| sizes[start].iter().any(|case| good(end, &case.algorithm));
        let end = (start + 1..=sizes.len()).take_while(|&end| any(end)).last().unwrap_or(start + 1);
        ranges.extend(best(&sizes[start..end], |name| good(end, name)).map(|name| (end, name)));
        start = end;
    }
    ranges
}

#[cfg(test)]
pub(crate) mod tests {
    use ft_comm::collective::Operation;

    use super::*;
    use crate::recovery::Spread;

    /// A case whose times spread by a tenth of the median.
    pub(crate) fn case(
        operation: Operation,
        ranks: usize,
        bytes: usize,
        algorithm: &str,
        seconds: f64,
    ) -> Case {
        let time = Spread { low: 0.95 * seconds, median: seconds, high: 1.05 * seconds };
        Case { operation, ranks, bytes, algorithm: algorithm.into(), time }
    }

    /// Sizes with the times of `a`, `b`, `c`.
    fn cut(times: &[[f64; 3]]) -> Vec<(usize, String)> {
        let cases: Vec<Vec<Case>> = times
            .iter()
            .map(|times| {
                let names = ["a", "b", "c"].into_iter().zip(times);
                names.map(|(name, &seconds)| case(Operation::Bcast, 4, 8, name, seconds)).collect()
            })
            .collect();
        let sizes: Vec<Vec<&Case>> = cases.iter().map(|size| size.iter().collect()).collect();
        ranges(&sizes).into_iter().map(|(end, name)| (end, name.to_owned())).collect()
    }

    fn is(times: &[[f64; 3]], expected: &[(usize, &str)]) {
        let expected: Vec<(usize, String)> =
            expected.iter().map(|(end, name)| (*end, (*name).into())).collect();
        assert_eq!(cut(times), expected, "{times:?}");
    }

    #[test]
    fn one_that_is_the_fastest_everywhere() {
        is(&[[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]], &[(2, "a")]);
        is(&[], &[]);
    }

    #[test]
    fn a_difference_within_the_spread_breaks_up_nothing() {
        // At the second size b is 8 % faster, and times spread by 10 %.
        is(&[[1.0, 2.0, 3.0], [1.08, 1.0, 3.0], [1.0, 2.0, 3.0]], &[(3, "a")]);
        is(&[[1.0, 2.0, 3.0], [1.2, 1.0, 3.0], [1.0, 2.0, 3.0]], &[(1, "a"), (2, "b"), (3, "a")]);
    }

    #[test]
    fn the_second_best_may_hold_a_range_together() {
        // b is never the fastest, but good at all sizes.
        is(&[[1.0, 1.05, 3.0], [3.0, 1.05, 1.0]], &[(2, "b")]);
    }

    #[test]
    fn of_several_good_ones_the_fastest_is_taken() {
        is(&[[1.05, 1.0, 3.0], [1.0, 1.01, 3.0]], &[(2, "b")]);
    }
}
