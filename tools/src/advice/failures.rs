//! Kinds of failures, by how many ranks they take at once.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::experiment::losses_survived;

/// Most kinds of failures, and so most levels that may be taken together.
const KINDS_MAX: usize = 4;
/// The word for all ranks.
const ALL: &str = "all";

/// How many ranks a failure takes at once, wherever they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Losses {
    /// So many, and others are left.
    AtOnce(usize),
    /// All of them, and with them all that is in memory.
    All,
}

impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtOnce(count) => write!(f, "{count}"),
            Self::All => f.write_str(ALL),
        }
    }
}

impl FromStr for Losses {
    type Err = KindError;

    fn from_str(text: &str) -> Result<Self, KindError> {
        match text.parse() {
            Ok(0) => Err(KindError::NoLoss),
            Ok(count) => Ok(Self::AtOnce(count)),
            Err(_) if text == ALL => Ok(Self::All),
            Err(_) => Err(KindError::Unknown { name: text.to_owned() }),
        }
    }
}

impl Losses {
    /// As a complaint or a table names them.
    pub(super) fn words(self) -> String {
        match self {
            Self::AtOnce(1) => "1 loss".to_owned(),
            Self::AtOnce(count) => format!("{count} losses at once"),
            Self::All => "the loss of all ranks".to_owned(),
        }
    }
}

impl Serialize for Losses {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Failures of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FailureKind {
    /// What they take at once.
    pub losses: Losses,
    /// Mean time between them, in seconds, of the job.
    pub mtbf_s: f64,
}

/// What is wrong with kinds of failures.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KindError {
    /// A failure without a loss.
    #[error("0 losses are no failure: begin with 1")]
    NoLoss,
    /// It is no name of a kind.
    #[error("'{name}' is not how many ranks are lost at once: write a number, as in 1=1h or 2=1d, or {ALL}")]
    Unknown {
        /// What was written.
        name: String,
    },
    /// Two times for one kind.
    #[error("{losses} is named twice: give each kind of failure one time")]
    Twice {
        /// The kind.
        losses: Losses,
    },
    /// More than are compared.
    #[error("{given} kinds of failures are too many: name at most {KINDS_MAX}")]
    TooMany {
        /// So many were named.
        given: usize,
    },
    /// It leaves no rank.
    #[error("{losses} losses leave none of {ranks} ranks: write {ALL} for that, or take more ranks")]
    NoneLeft {
        /// The kind.
        losses: usize,
        /// The ranks.
        ranks: usize,
    },
    /// No scheme is of use.
    #[error("none of these schemes survives {}: {}", losses.words(), remedy(*losses))]
    NotSurvived {
        /// The kind.
        losses: Losses,
    },
}

fn remedy(losses: Losses) -> &'static str {
    match losses {
        Losses::AtOnce(_) => "name one that does by --schemes, or take more ranks",
        Losses::All => "only files do, so name disk by --schemes too",
    }
}

/// What a scheme survives wherever it strikes; [`Losses::AtOnce`] 0 if it cannot be read.
pub(super) fn survived(scheme: &str, ranks: usize) -> Losses {
    match losses_survived(scheme, ranks) {
        Ok(count) if count >= ranks => Losses::All,
        Ok(count) => Losses::AtOnce(count),
        Err(_) => Losses::AtOnce(0),
    }
}

/// Whether there is a scheme for each kind of failure.
///
/// # Errors
/// A kind is named twice, takes as many ranks as there are, or none of the schemes survives it; or there are too many kinds.
pub fn check_kinds(kinds: &[FailureKind], schemes: &[String], ranks: usize) -> Result<(), KindError> {
    if kinds.len() > KINDS_MAX {
        return Err(KindError::TooMany { given: kinds.len() });
    }
    for (at, &FailureKind { losses, .. }) in kinds.iter().enumerate() {
        if kinds[..at].iter().any(|kind| kind.losses == losses) {
            return Err(KindError::Twice { losses });
        }
        match losses {
            Losses::AtOnce(losses) if losses >= ranks => return Err(KindError::NoneLeft { losses, ranks }),
            _ if schemes.iter().any(|scheme| survived(scheme, ranks) >= losses) => {}
            _ => return Err(KindError::NotSurvived { losses }),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_kinds() {
        for (text, losses) in [("1", Losses::AtOnce(1)), ("12", Losses::AtOnce(12)), ("all", Losses::All)] {
            assert_eq!(text.parse(), Ok(losses));
            assert_eq!(losses.to_string(), text);
        }
        assert_eq!("0".parse::<Losses>(), Err(KindError::NoLoss));
        for text in ["host", "", "-1", "1.5", "ALL"] {
            let why = text.parse::<Losses>().expect_err(text).to_string();
            assert!(why.starts_with(&format!("'{text}' is not how many ranks")), "{why}");
        }
        assert!(Losses::AtOnce(1) < Losses::AtOnce(2) && Losses::AtOnce(usize::MAX) < Losses::All);
    }

    #[test]
    fn kinds_that_no_scheme_survives() {
        let check = |kinds: &[&str], schemes: &[&str]| {
            let kind = |text: &&str| FailureKind { losses: text.parse().unwrap(), mtbf_s: 60.0 };
            let kinds: Vec<FailureKind> = kinds.iter().map(kind).collect();
            let schemes: Vec<String> = schemes.iter().map(|scheme| (*scheme).to_owned()).collect();
            check_kinds(&kinds, &schemes, 4).map_err(|error| error.to_string())
        };
        assert_eq!(check(&["1", "2", "all"], &["xor", "rs:2+2", "disk"]), Ok(()));
        assert_eq!(check(&["all", "1"], &["disk"]), Ok(()), "in any order");
        for (kinds, schemes, part) in [
            (&["1", "1"][..], &["xor"][..], "1 is named twice"),
            (&["1", "2"], &["xor"], "survives 2 losses at once: name one that does by --schemes"),
            (&["all"], &["xor"], "survives the loss of all ranks: only files do"),
            (&["4"], &["disk"], "4 losses leave none of 4 ranks: write all"),
            (&["1", "2", "3", "5", "all"], &["disk"], "5 kinds of failures are too many: name at most 4"),
        ] {
            let why = check(kinds, schemes).expect_err(part);
            assert!(why.contains(part), "{why}");
        }
    }
}
