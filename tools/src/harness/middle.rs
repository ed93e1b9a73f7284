//! A figure over several process starts.

use std::fmt;

use crate::recovery::{Spread, short};

/// One figure of one side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Middle {
    /// Median over the starts.
    pub median: f64,
    /// Lowest start.
    pub lowest: f64,
    /// Highest start.
    pub highest: f64,
    /// Number of starts.
    pub starts: usize,
}

impl Middle {
    /// Of one value a start; none of none.
    pub fn of(values: &[f64]) -> Option<Self> {
        (!values.is_empty()).then(|| Self {
            median: Spread::of(values.iter().copied()).median,
            lowest: values.iter().copied().fold(f64::INFINITY, f64::min),
            highest: values.iter().copied().fold(0.0, f64::max),
            starts: values.len(),
        })
    }
}

/// `median [lowest..highest]`, the median alone of one start.
impl fmt::Display for Middle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median, lowest, highest, starts } = *self;
        match starts {
            1 => f.write_str(&short(median)),
            _ => write!(f, "{} [{}..{}]", short(median), short(lowest), short(highest)),
        }
    }
}

/// Nothing where there is no figure.
pub fn shown(middle: Option<Middle>) -> String {
    middle.map_or_else(String::new, |middle| middle.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn middles_by_hand() {
        let middle = Middle::of(&[5.0, 3.0, 4.0]).unwrap();
        assert_eq!(middle, Middle { median: 4.0, lowest: 3.0, highest: 5.0, starts: 3 });
        assert_eq!(shown(Some(middle)), "4.00 [3.00..5.00]");
        assert_eq!(shown(Middle::of(&[4.0])), "4.00");
        assert_eq!((Middle::of(&[]), shown(None)), (None, String::new()));
    }
}
