//! How a figure compares with another.

use std::fmt;

use ft_tools::harness::{Confidence, Middle};

/// The one figure over the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) median: f64,
    /// Its lower and upper bound, of ratios that each round has its own of.
    pub(crate) bounds: Option<[f64; 2]>,
}

impl Ratio {
    /// Of two medians over rounds.
    pub(crate) fn of_medians(above: Option<Middle>, below: Option<Middle>) -> Option<Self> {
        Some(Self { median: above?.median / below?.median, bounds: None })
    }

    /// The median of ratios within rounds, with the lowest and the highest.
    pub(crate) fn in_rounds(ratios: &[f64]) -> Option<Self> {
        let Middle { median, lowest, highest, .. } = Middle::of(ratios)?;
        Some(Self { median, bounds: Some([lowest, highest]) })
    }

    /// The same with bounds of 95 %.
    pub(crate) fn with_confidence(ratios: &[f64]) -> Option<Self> {
        let Confidence { median, low, high } = Confidence::of(ratios)?;
        Some(Self { median, bounds: Some([low, high]) })
    }
}

/// `median [lower..upper]`, with two digits, or `median` with three, unless others are asked for.
impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(if self.bounds.is_some() { 2 } else { 3 });
        write!(f, "{:.digits$}", self.median)?;
        self.bounds.map_or(Ok(()), |[lower, upper]| write!(f, " [{lower:.digits$}..{upper:.digits$}]"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_by_hand() {
        let medians = Ratio::of_medians(Middle::of(&[1.0, 3.0, 9.0]), Middle::of(&[8.0])).unwrap();
        assert_eq!((format!("{medians}"), format!("{medians:.2}")), ("0.375".into(), "0.38".into()));
        assert_eq!(Ratio::of_medians(Middle::of(&[1.0]), None), None);
        let nine: Vec<f64> = (1..=9).map(f64::from).collect();
        assert_eq!(Ratio::in_rounds(&nine).unwrap().to_string(), "5.00 [1.00..9.00]");
        assert_eq!(Ratio::with_confidence(&nine).unwrap().to_string(), "5.00 [2.00..8.00]");
        assert_eq!(Ratio::in_rounds(&[]), None);
    }
}
