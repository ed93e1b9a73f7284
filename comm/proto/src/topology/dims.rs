//! The shape of a grid for a number of ranks.

use super::TopologyError;

/// Chooses the lengths that are 0 in `dims`, so that a grid with these lengths has `ranks` ranks
/// (`MPI_Dims_create`). Those chosen do not increase and are as equal as can be: the greatest is as small as
/// possible, then the second, and so on. O(sqrt(`ranks`)) divisions and a search among the divisors.
///
/// # Errors
/// [`TopologyError::Shape`]: `ranks` is zero or no multiple of the lengths given; then `dims` is as before.
pub fn dims_create(ranks: usize, dims: &mut [usize]) -> Result<(), TopologyError> {
    let given = dims.iter().filter(|&&n| n > 0).try_fold(1usize, |all, &n| all.checked_mul(n));
    let free = dims.iter().filter(|&&n| n == 0).count();
    let rest = given.filter(|given| ranks > 0 && ranks.is_multiple_of(*given)).map(|given| ranks / given);
    let chosen = rest.and_then(|rest| {
        let mut chosen = Vec::with_capacity(free);
        split(rest, free, rest, &divisors(rest), &mut chosen).then_some(chosen)
    });
    let Some(chosen) = chosen else { return Err(TopologyError::Shape { ranks, dims: dims.to_vec() }) };
    dims.iter_mut().filter(|n| **n == 0).zip(chosen).for_each(|(n, chosen)| *n = chosen);
    Ok(())
}

/// Appends `parts` factors of `n` that do not increase and are at most `most`, the least in lexicographic order;
/// false if there are none.
fn split(n: usize, parts: usize, most: usize, divisors: &[usize], chosen: &mut Vec<usize>) -> bool {
    if parts == 0 {
        return n == 1;
    }
    let power = |factor: usize| u32::try_from(parts).ok().and_then(|parts| factor.checked_pow(parts));
    // The greatest of `parts` factors is at least the root of `n`.
    let first = divisors.partition_point(|&factor| power(factor).is_some_and(|power| power < n));
    for &factor in divisors[first..].iter().take_while(|&&factor| factor <= most) {
        if n.is_multiple_of(factor) {
            chosen.push(factor);
            if split(n / factor, parts - 1, factor, divisors, chosen) {
                return true;
            }
            chosen.pop();
        }
    }
    false
}

/// All divisors of `n`, ascending.
fn divisors(n: usize) -> Vec<usize> {
    let mut small: Vec<usize> = (1..=n.isqrt()).filter(|&factor| n.is_multiple_of(factor)).collect();
    let large: Vec<usize> =
        small.iter().rev().map(|factor| n / factor).filter(|&factor| factor * factor > n).collect();
    small.extend(large);
    small
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(ranks: usize, mut dims: Vec<usize>) -> Option<Vec<usize>> {
        dims_create(ranks, &mut dims).ok().map(|()| dims)
    }

    #[test]
    fn the_examples_of_the_standard() {
        assert_eq!(dims(6, vec![0, 0]), Some(vec![3, 2]));
        assert_eq!(dims(7, vec![0, 0]), Some(vec![7, 1]));
        assert_eq!(dims(6, vec![0, 3, 0]), Some(vec![2, 3, 1]));
        assert_eq!(dims(7, vec![0, 3, 0]), None);
    }

    #[test]
    fn what_greedy_division_gets_wrong() {
        // Prime factors from the greatest on, each given to the least length, make 24 x 12 of 288.
        assert_eq!(dims(288, vec![0, 0]), Some(vec![18, 16]));
        assert_eq!(dims(96, vec![0, 0]), Some(vec![12, 8]));
        assert_eq!(dims(72, vec![0, 0, 0]), Some(vec![6, 4, 3]));
        assert_eq!(dims(720_720, vec![0; 4]), Some(vec![33, 30, 28, 26]));
    }

    #[test]
    fn what_cannot_be_filled_is_refused() {
        for (ranks, wish) in [
            (0, vec![0, 0]),
            (4, vec![]),
            (4, vec![2]),
            (4, vec![4, 2]),
            (4, vec![3, 0]),
            (4, vec![usize::MAX, usize::MAX, 0]),
        ] {
            let mut dims = wish.clone();
            assert_eq!(
                dims_create(ranks, &mut dims),
                Err(TopologyError::Shape { ranks, dims: wish.clone() })
            );
            assert_eq!(dims, wish);
        }
        assert_eq!(dims(1, vec![]), Some(vec![]));
        assert_eq!(dims(4, vec![2, 2]), Some(vec![2, 2]));
        assert_eq!(dims(2, vec![0; 70]), Some([vec![2], vec![1; 69]].concat()));
    }

    /// Every way to write `n` as `parts` factors that do not increase.
    fn every(n: usize, parts: usize, most: usize) -> Vec<Vec<usize>> {
        if parts == 0 {
            return if n == 1 { vec![vec![]] } else { vec![] };
        }
        let factors = (1..=n.min(most)).filter(|factor| n.is_multiple_of(*factor));
        factors
            .flat_map(|factor| {
                every(n / factor, parts - 1, factor)
                    .into_iter()
                    .map(move |rest| [vec![factor], rest].concat())
            })
            .collect()
    }

    #[test]
    fn the_shape_is_the_best_of_all() {
        for ranks in 1..=400 {
            for parts in 1..=4 {
                let best = every(ranks, parts, ranks).into_iter().min();
                assert_eq!(dims(ranks, vec![0; parts]), best, "{ranks} ranks in {parts} dimensions");
            }
        }
    }
}
