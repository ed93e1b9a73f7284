//! Three ways to go back after a loss, under one scheme: which of them a program allows, what each costs it, and which is to be recommended.
//!
//! Each way is measured in jobs of equal work, in turn: one of a single step, for what a start takes; a calm one; one with a real kill late
//! between two checkpoints; and one with kills at random, which the model ([`WayCosts`]) has to foretell.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

mod judgment;
mod measured;
mod model;
mod runs;
mod tables;

pub use self::judgment::{Check, Refused, WayCandidate, WayOutlook, WaysAdvice};
pub use self::model::WayCosts;
pub(super) use self::runs::{jobs, weigh};

/// The word for no way, and that for all of them.
const NONE: &str = "none";
const ALL: &str = "all";

/// A way to go back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// All ranks take a checkpoint after the same step, and all go back.
    Global,
    /// Each rank takes its checkpoint when it comes by, and all go back.
    Lines,
    /// The same, and only the lost goes back.
    Local,
}

impl Way {
    /// All of them, the simplest first.
    pub const EACH: [Self; 3] = [Self::Global, Self::Lines, Self::Local];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Lines => "lines",
            Self::Local => "local",
        }
    }

    /// The options of `ftrun` that ask for it.
    pub fn options(self) -> &'static str {
        match self {
            Self::Global => "--lines meet",
            Self::Lines => "--lines log",
            Self::Local => "--lines log --recovery local",
        }
    }

    /// How many of so many `ranks` do work again after one is lost.
    fn ranks_back(self, ranks: usize) -> usize {
        match self {
            Self::Global | Self::Lines => ranks,
            Self::Local => 1,
        }
    }
}

impl Serialize for Way {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The ways that are to be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ways(pub Vec<Way>);

impl FromStr for Ways {
    type Err = WaysError;

    fn from_str(text: &str) -> Result<Self, WaysError> {
        match text {
            NONE => return Ok(Self::default()),
            ALL => return Ok(Self(Way::EACH.into())),
            _ => {}
        }
        let mut ways = Vec::new();
        for name in text.split(',') {
            let way = Way::EACH.into_iter().find(|way| way.name() == name);
            let way = way.ok_or_else(|| WaysError::Unknown { name: name.to_owned() })?;
            if ways.contains(&way) {
                return Err(WaysError::Twice { way });
            }
            ways.push(way);
        }
        // The first that can be is what the others are compared with.
        ways.sort_by_key(|way| Way::EACH.iter().position(|one| one == way));
        Ok(Self(ways))
    }
}

impl fmt::Display for Ways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [] => f.write_str(NONE),
            ways => f.write_str(&ways.iter().map(|way| way.name()).collect::<Vec<_>>().join(",")),
        }
    }
}

/// What is wrong with a list of ways.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaysError {
    /// It is no name of a way.
    #[error("'{name}' is no way to go back: write {ALL}, {NONE}, or some of global,lines,local")]
    Unknown {
        /// What was written.
        name: String,
    },
    /// A way is there twice.
    #[error("{} is named twice: name each way once", way.name())]
    Twice {
        /// The way.
        way: Way,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_by_name() {
        let read = |text: &str| text.parse::<Ways>().map(|ways| ways.0);
        assert_eq!(read("none"), Ok(vec![]));
        assert_eq!(read("all"), Ok(Way::EACH.into()));
        assert_eq!(read("local,global"), Ok(vec![Way::Global, Way::Local]), "the simplest first");
        assert_eq!(read("lines,lines"), Err(WaysError::Twice { way: Way::Lines }));
        for (text, name) in [("", ""), ("global,", ""), ("meet", "meet"), ("none,local", "none")] {
            assert_eq!(read(text), Err(WaysError::Unknown { name: name.to_owned() }), "{text}");
        }
        for ways in [vec![], vec![Way::Global, Way::Local], Way::EACH.into()] {
            assert_eq!(read(&Ways(ways.clone()).to_string()), Ok(ways));
        }
    }
}
