//! `--levels`: several schemes at once, each with how often checkpoints are taken under it, as one list.

use std::num::NonZero;
use std::str::FromStr;

use ft_checkpoint::{Interval, Level, Scheme, SpillEvery};

/// What was asked for. Text: `neighbor@1s,rs:6+2@10s,spill@10min`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Levels {
    /// The scheme of the first level, as text.
    pub(crate) scheme: String,
    pub(crate) interval: Interval,
    pub(crate) above: Vec<Level>,
    /// The last level is files.
    pub(crate) spill: Option<SpillEvery>,
}

/// How often checkpoints are taken: every so many steps, or about every so many seconds.
#[derive(Clone, Copy, PartialEq)]
enum Often {
    Steps(u64),
    Seconds(f64),
}

impl Often {
    fn read(text: &str) -> Option<Self> {
        match text.parse().ok()? {
            SpillEvery::Checkpoints(steps) => Some(Self::Steps(steps.get())),
            SpillEvery::Seconds(seconds) => Some(Self::Seconds(seconds)),
        }
    }

    /// How many of `first` it is, at least one; none if the two cannot be compared.
    fn over(self, first: Self) -> Option<NonZero<u64>> {
        let ratio = match (self, first) {
            (Self::Steps(steps), Self::Steps(first)) => steps as f64 / first as f64,
            (Self::Seconds(seconds), Self::Seconds(first)) => seconds / first,
            _ => return None,
        };
        NonZero::new(ratio.round().max(1.0) as u64)
    }
}

impl FromStr for Levels {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut levels = vec![];
        for level in text.split(',') {
            let (name, often) = level
                .rsplit_once('@')
                .and_then(|(name, often)| Some((name, Often::read(often)?)))
                .ok_or_else(|| {
                    format!("'{level}' must be a scheme, an @, and steps or a time: rs:6+2@10s")
                })?;
            levels.push((name, often));
        }
        let spill = levels.pop_if(|(name, _)| *name == "spill").map(|(_, often)| often);
        let Some(((scheme, first), above)) = levels.split_first() else {
            return Err("files are the last level: name a scheme before".into());
        };
        let scheme = in_memory(scheme)?.to_string();
        let mut before = 1;
        let mut above_first = |(name, often): &(&str, Often)| {
            let every = often.over(*first).ok_or("give steps for all levels, or times for all")?;
            if every.get() <= before {
                return Err(format!("{name}: each level is used more seldom than the one before"));
            }
            before = every.get();
            Ok(Level { scheme: in_memory(name)?, every })
        };
        let above: Vec<Level> = above.iter().map(&mut above_first).collect::<Result<_, _>>()?;
        let spill = match (spill, *first) {
            (Some(Often::Seconds(seconds)), _) => Some(SpillEvery::Seconds(seconds)),
            (Some(often), first) => {
                let checkpoints = often.over(first).ok_or("give steps for all levels, or times for all")?;
                Some(SpillEvery::Checkpoints(checkpoints))
            }
            (None, _) => None,
        };
        let interval = match *first {
            Often::Steps(steps) => Interval::Steps(steps),
            Often::Seconds(seconds) => Interval::Seconds(seconds),
        };
        Ok(Self { scheme, interval, above, spill })
    }
}

/// A scheme with redundancy in memory.
fn in_memory(text: &str) -> Result<Scheme, String> {
    match text.parse::<Scheme>() {
        Ok(Scheme::None | Scheme::Disk { .. }) => Err(format!(
            "{text}: levels are schemes with redundancy in memory, and 'spill' for files as the last one"
        )),
        Ok(scheme) => Ok(scheme),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Levels, String> {
        text.parse()
    }

    #[test]
    fn times_and_steps_are_multiples_of_those_of_the_first_level() {
        let levels = read("neighbor@1s,xor:4@10s,rs:6+2@2min,spill@1h").unwrap();
        let every: Vec<u64> = levels.above.iter().map(|level| level.every.get()).collect();
        assert_eq!((levels.scheme.as_str(), every), ("neighbor:1", vec![10, 120]));
        assert_eq!(levels.interval, Interval::Seconds(1.0));
        assert_eq!(levels.spill, Some(SpillEvery::Seconds(3600.0)));
        let levels = read("xor@5,rs:2+2@19,spill@100").unwrap();
        assert_eq!((levels.interval, levels.above[0].every.get()), (Interval::Steps(5), 4));
        assert_eq!(levels.spill, Some(SpillEvery::Checkpoints(NonZero::new(20).unwrap())));
        assert_eq!(read("xor@5,spill@10min").unwrap().spill, Some(SpillEvery::Seconds(600.0)));
        assert_eq!(read("xor@5").unwrap().above, []);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, why) in [
            ("", "must be a scheme, an @"),
            ("xor", "must be a scheme, an @"),
            ("xor@", "must be a scheme, an @"),
            ("xor@0", "must be a scheme, an @"),
            ("xor@-1s", "must be a scheme, an @"),
            ("spill@10", "name a scheme before"),
            ("raid@10", "unknown scheme"),
            ("none@10", "redundancy in memory"),
            ("xor@5,disk:x@10", "redundancy in memory"),
            ("xor@5,spill@10,rs:2+2@20", "unknown scheme"),
            ("xor@5,rs:2+2@10s", "give steps for all levels"),
            ("xor@5s,spill@10", "give steps for all levels"),
            ("xor@5,rs:2+2@5", "more seldom than the one before"),
            ("xor@5,rs:2+2@50,neighbor:2@20", "more seldom than the one before"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
