//! Medians and quartiles: a run that something else has slowed down moves them little.

use serde::Serialize;

/// Median and quartiles of a few numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// A quarter of the numbers lie below.
    pub low: f64,
    /// Half of them.
    pub median: f64,
    /// Three quarters.
    pub high: f64,
}

impl Spread {
    /// Of any numbers that are finite; all zero when there are none.
    ///
    /// Quantiles lie between neighbors in proportion (definition 7 of Hyndman and Fan, Sample quantiles in statistical
    /// packages, The American Statistician 50(4), 1996).
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = numbers.into_iter().filter(|number| number.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let quantile = |part: f64| {
            let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
            let place = part * last as f64;
            let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
            below + (above - below) * place.fract()
        };
        Self { low: quantile(0.25), median: quantile(0.5), high: quantile(0.75) }
    }

    /// The interquartile range.
    pub fn range(&self) -> f64 {
        self.high - self.low
    }
}

/// The median alone.
pub(crate) fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    Spread::of(numbers).median
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_by_hand() {
        let spread = Spread::of([5.0, 1.0, 3.0, 2.0, 4.0]);
        assert_eq!(spread, Spread { low: 2.0, median: 3.0, high: 4.0 });
        // Places 0.75, 1.5 and 2.25 of 10, 20, 30, 40.
        assert_eq!(Spread::of([40.0, 10.0, 30.0, 20.0]), Spread { low: 17.5, median: 25.0, high: 32.5 });
        assert_eq!(Spread::of([7.0]), Spread { low: 7.0, median: 7.0, high: 7.0 });
    }

    #[test]
    fn one_that_runs_away_moves_nothing() {
        let quiet = Spread::of([1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(Spread::of([1.0, 2.0, 3.0, 4.0, 5000.0]), quiet);
        assert_eq!(Spread::of([1.0, f64::NAN, 2.0, 3.0, 4.0, f64::INFINITY, 5.0]), quiet);
        assert_eq!(Spread::of([]), Spread::default());
    }
}
