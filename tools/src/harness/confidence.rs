//! How far a median can be trusted.

use std::fmt;

/// The part of all cases in which the median of all there could be lies within the bounds.
const SURE: f64 = 0.95;

/// A median with its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Confidence {
    /// Of the values.
    pub median: f64,
    /// The median of all there could be is no less in 95 of 100 cases,
    pub low: f64,
    /// and no more.
    pub high: f64,
}

impl Confidence {
    /// Of independent values, by order statistics: each is below the median as often as a coin shows heads. Fewer than six
    /// say little: then the bounds are the lowest and the highest. None of none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        if count == 0 {
            return None;
        }
        // How many can be left out at each end.
        let (mut term, mut tail, mut out) = (0.5f64.powi(i32::try_from(count).unwrap_or(i32::MAX)), 0.0, 0);
        loop {
            tail += term;
            if tail > (1.0 - SURE) / 2.0 || 2 * out + 2 > count {
                break;
            }
            term *= (count - out) as f64 / (out + 1) as f64;
            out += 1;
        }
        let out = out.saturating_sub(1);
        let median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0;
        Some(Self { median, low: sorted[out], high: sorted[count - 1 - out] })
    }
}

/// `median [low..high]`
impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} [{:.2}..{:.2}]", self.median, self.low, self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_the_sign_test() {
        // The table of the sign test: 6 to 8 values leave out none, 9 one, 12 two, 20 five.
        for (count, out) in [(1, 0), (2, 0), (6, 0), (8, 0), (9, 1), (11, 1), (12, 2), (20, 5)] {
            let values: Vec<f64> = (1..=count).rev().map(f64::from).collect();
            let bounds = Confidence::of(&values).unwrap();
            let median = f64::from(count + 1) / 2.0;
            let expected = Confidence { median, low: f64::from(1 + out), high: f64::from(count - out) };
            assert_eq!(bounds, expected, "of {count}");
        }
        assert_eq!(Confidence::of(&[]), None);
        assert_eq!(Confidence::of(&[1.0, 3.0]).unwrap().to_string(), "2.00 [1.00..3.00]");
    }
}
