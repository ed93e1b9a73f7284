//! What a figure has to be, and whether it is.

use std::fmt;

/// The limit of a figure, or of the ratio of two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bar {
    AtMost(f64),
    AtLeast(f64),
}

impl Bar {
    pub(crate) fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
        }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(most) => write!(f, "<= {most}"),
            Self::AtLeast(least) => write!(f, ">= {least}"),
        }
    }
}

/// A bar and the value that is held against it; none where there is none.
pub(crate) type Trial = (Option<Bar>, Option<f64>);

/// Whether all bars are met: not if one is missed, unknown if a value is missing and no bar is missed.
pub(crate) fn verdict(trials: &[Trial]) -> Option<bool> {
    let tried = trials.iter().filter_map(|(bar, value)| Some((bar.as_ref()?, value)));
    let outcomes: Vec<Option<bool>> =
        tried.map(|(bar, value)| value.map(|value| bar.is_met(value))).collect();
    match outcomes.contains(&Some(false)) {
        true => Some(false),
        false => (!outcomes.is_empty() && !outcomes.contains(&None)).then_some(true),
    }
}

/// The verdict as a table has it; nothing where there is no bar.
pub(crate) fn met(trials: &[Trial]) -> &'static str {
    match verdict(trials) {
        Some(true) => "yes",
        Some(false) => "NO",
        None if trials.iter().any(|(bar, _)| bar.is_some()) => "?",
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_say_which_side_is_good() {
        assert!(Bar::AtMost(1.3).is_met(1.3) && !Bar::AtMost(1.3).is_met(1.31));
        assert!(Bar::AtLeast(2.5).is_met(2.5) && !Bar::AtLeast(2.5).is_met(2.49));
        assert_eq!([Bar::AtMost(1.3), Bar::AtLeast(3.0)].map(|bar| bar.to_string()), ["<= 1.3", ">= 3"]);
    }

    #[test]
    fn one_missed_bar_decides_and_a_missing_value_leaves_it_open() {
        let (most, least) = (Some(Bar::AtMost(1.0)), Some(Bar::AtLeast(2.0)));
        assert_eq!(met(&[(most, Some(0.5)), (least, Some(3.0))]), "yes");
        assert_eq!(met(&[(most, Some(1.5)), (least, None)]), "NO");
        assert_eq!(met(&[(most, Some(0.5)), (least, None)]), "?");
        assert_eq!(met(&[(most, Some(0.5)), (None, None)]), "yes");
        assert_eq!(met(&[(None, Some(0.5))]), "");
        assert_eq!(verdict(&[]), None);
    }
}
