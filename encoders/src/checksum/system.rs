//! The equations for lost members, solved in integers: what is rounded is a quotient, once.
//!
//! Weights are integers of at most 127 and there are at most 4 equations, so every minor of them is below `254^4 = 4.2e9` (Hadamard),
//! and products of two minors of order 3 fit into 64 bits: elimination without fractions (Bareiss 1968) does not overflow.

use super::weights::Weights;

/// `e` lost data members, and the `e` redundant blocks that stand in for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct System {
    /// Lost data members, in ascending order.
    pub(super) lost: Vec<usize>,
    /// Redundant blocks, in ascending order, counted from 0.
    pub(super) helpers: Vec<usize>,
}

/// One solution for each right-hand side, as numerators over a common denominator that is not 0.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Solution {
    pub(super) numerators: Vec<Vec<i64>>,
    pub(super) denominator: i64,
}

/// How errors grow in a system.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(super) struct Growth {
    /// `max_i sum_j |c(i, j)| sum_l |w(j, l)|` over all members `l`, for the inverse `c`.
    pub(super) stripe: f64,
    /// The same over lost members: Skeel's condition number of the system.
    pub(super) condition: f64,
}

impl System {
    /// The system whose errors grow least, of all that `helpers` can make for the members `lost`: the first of them in the order of subsets.
    /// None has a solution when there are too few of them.
    pub(super) fn best(weights: &Weights, lost: &[usize], helpers: &[usize]) -> Option<(Self, Growth)> {
        let subsets = (0..1_u32 << helpers.len()).filter(|subset| subset.count_ones() as usize == lost.len());
        let systems = subsets.map(|subset| {
            let chosen = helpers.iter().enumerate().filter(|(at, _)| subset >> at & 1 == 1);
            Self { lost: lost.to_vec(), helpers: chosen.map(|(_, helper)| *helper).collect() }
        });
        let grown = systems.filter_map(|system| system.growth(weights).map(|growth| (system, growth)));
        grown.reduce(|best, next| if next.1.stripe < best.1.stripe { next } else { best })
    }

    /// What the helpers have to be multiplied by so that their sum has as much of each lost member as each of `wanted`, which says
    /// how much that is for any member. None if the equations do not determine it.
    pub(super) fn solve(&self, weights: &Weights, wanted: &[&dyn Fn(usize) -> i64]) -> Option<Solution> {
        let equation = |lost: &usize| {
            let coefficients = self.helpers.iter().map(|helper| weights.get(*helper, *lost));
            coefficients.chain(wanted.iter().map(|part| part(*lost))).collect()
        };
        solve(self.lost.iter().map(equation).collect(), wanted.len())
    }

    /// How errors grow in this system; none if it has no solution.
    pub(super) fn growth(&self, weights: &Weights) -> Option<Growth> {
        let units: Vec<_> =
            self.lost.iter().map(|lost| move |member: usize| i64::from(member == *lost)).collect();
        let wanted: Vec<&dyn Fn(usize) -> i64> = units.iter().map(|unit| unit as _).collect();
        let inverse = self.solve(weights, &wanted)?;
        let largest = |sums: &[i64]| {
            let row = |numerators: &Vec<i64>| -> i64 {
                numerators.iter().zip(sums).map(|(numerator, sum)| numerator.abs() * sum).sum()
            };
            let largest = inverse.numerators.iter().map(row).max().unwrap_or(0);
            largest as f64 / inverse.denominator.abs() as f64
        };
        let of_all = |helper: &usize| (0..weights.data()).map(|i| weights.get(*helper, i).abs()).sum();
        let of_lost = |helper: &usize| self.lost.iter().map(|i| weights.get(*helper, *i).abs()).sum();
        Some(Growth {
            stripe: largest(&self.helpers.iter().map(of_all).collect::<Vec<_>>()),
            condition: largest(&self.helpers.iter().map(of_lost).collect::<Vec<_>>()),
        })
    }
}

/// Solves `n` equations for `n` unknowns and `sides` right-hand sides, which follow the coefficients, by Gauss and Jordan without fractions.
fn solve(mut equations: Vec<Vec<i64>>, sides: usize) -> Option<Solution> {
    let n = equations.len();
    let mut denominator = 1;
    for column in 0..n {
        let pivot = (column..n).find(|row| equations[*row][column] != 0)?;
        equations.swap(column, pivot);
        let pivot = std::mem::take(&mut equations[column]);
        for equation in equations.iter_mut().filter(|equation| !equation.is_empty()) {
            let factor = equation[column];
            for (coefficient, other) in equation.iter_mut().zip(&pivot) {
                // A minor of the equations, and so are both products' factors: the division leaves no remainder.
                *coefficient = (pivot[column] * *coefficient - factor * other) / denominator;
            }
        }
        denominator = pivot[column];
        equations[column] = pivot;
    }
    let side = |side| equations.iter().map(|equation| equation[n + side]).collect();
    Some(Solution { numerators: (0..sides).map(side).collect(), denominator })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_by_hand() {
        // x + y = 3, 2 x + y = 1: x = -2, y = 5.
        let solution = solve(vec![vec![1, 1, 3], vec![2, 1, 1]], 1).unwrap();
        assert_eq!(solution, Solution { numerators: vec![vec![2, -5]], denominator: -1 });
        // The first pivot is in the second row.
        let solution = solve(vec![vec![0, 2, 7], vec![3, 0, 9]], 1).unwrap();
        assert_eq!(solution, Solution { numerators: vec![vec![18, 21]], denominator: 6 });
        assert_eq!(solve(vec![vec![1, 2, 3], vec![1, 2, 4]], 1), None);
        assert_eq!(solve(vec![], 0), Some(Solution { numerators: vec![], denominator: 1 }));
    }

    #[test]
    fn the_inverse_of_the_largest_weights_does_not_overflow() {
        // A matrix of Hadamard, with the largest determinant there is.
        let signs = [[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]];
        let row = |i: usize| {
            let unit = (0..4).map(move |j| i64::from(i == j));
            signs[i].iter().map(|sign| 127 * sign).chain(unit).collect()
        };
        let inverse = solve((0..4).map(row).collect(), 4).unwrap();
        assert_eq!(inverse.denominator.abs(), 16 * 127_i64.pow(4));
        for (i, numerators) in inverse.numerators.iter().enumerate() {
            // A numerator over the denominator is a sign over 4 * 127.
            let column = signs.map(|row| row[i] * inverse.denominator);
            assert!(numerators.iter().map(|numerator| numerator * 4 * 127).eq(column));
        }
    }

    #[test]
    fn of_several_systems_the_one_is_taken_whose_errors_grow_least() {
        let weights = Weights::new(8, 4).unwrap();
        let plain = System::best(&weights, &[5], &[0]).unwrap();
        assert_eq!(plain.1, Growth { stripe: 8.0, condition: 1.0 });
        for lost in [&[5][..], &[0, 7], &[1, 2, 6]] {
            let best = System::best(&weights, lost, &[0, 1, 2, 3]).unwrap();
            assert_eq!(best.1, best.0.growth(&weights).unwrap());
            for left_out in 0..4 {
                let others: Vec<usize> = (0..4).filter(|helper| *helper != left_out).collect();
                assert!(best.1.stripe <= System::best(&weights, lost, &others).unwrap().1.stripe);
            }
        }
        assert!(System::best(&weights, &[1, 5], &[2]).is_none());
    }
}
