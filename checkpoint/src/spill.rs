//! Checkpoints in files beside those in memory, for a job of which no process is left: what is asked for, as values.
//!
//! What is written, and when it is whole: [`crate::disk`]; by whom, behind the computation: `disk/writer.rs`; how a job goes on from
//! it: `resilient/resuming.rs`.

use std::fmt;
use std::num::NonZero;
use std::path::PathBuf;
use std::str::FromStr;

/// Where checkpoints in memory are written to files too, and how often.
#[derive(Clone, Debug, PartialEq)]
pub struct Spill {
    /// A directory that all ranks see. Each job has a folder of its own there.
    pub dir: PathBuf,
    /// The name of that folder, such as that of the job that is resumed; if none, it is named after the job.
    pub folder: Option<String>,
    /// How often.
    pub every: SpillEvery,
    /// So many of the newest whole checkpoints are kept.
    pub keep: NonZero<u32>,
}

impl Spill {
    /// How many are kept, if nothing else is asked for.
    pub const KEEP: NonZero<u32> = NonZero::new(2).expect("2 is not 0");
}

/// How often checkpoints are written to files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SpillEvery {
    /// With each such checkpoint in memory.
    Checkpoints(NonZero<u64>),
    /// With the first checkpoint in memory when so many seconds have passed.
    Seconds(f64),
}

impl Default for SpillEvery {
    fn default() -> Self {
        Self::Seconds(60.0)
    }
}

impl fmt::Display for SpillEvery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checkpoints(count) => write!(f, "{count}"),
            Self::Seconds(seconds) => write!(f, "{seconds}s"),
        }
    }
}

/// So many checkpoints no job takes.
const CHECKPOINTS_MAX: u64 = 1_000_000_000_000_000;
/// The shortest and the longest time, in seconds.
const SECONDS_MIN: f64 = 1e-6;
const SECONDS_MAX: f64 = 1e9;

impl FromStr for SpillEvery {
    type Err = &'static str;

    /// Checkpoints (`10`), or a time (`30s`, `5min`, `1h`).
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "must be a number of checkpoints, such as 10, or a time from 1e-6s to 1e9s, such as 30s, 5min or 1h";
        if let Ok(count) = text.parse::<NonZero<u64>>() {
            return if count.get() <= CHECKPOINTS_MAX { Ok(Self::Checkpoints(count)) } else { Err(wrong) };
        }
        let units = [("min", 60.0), ("s", 1.0), ("h", 3600.0)];
        let cut = |(unit, seconds): (&str, f64)| Some((text.strip_suffix(unit)?, seconds));
        let (number, unit) = units.into_iter().find_map(cut).ok_or(wrong)?;
        let seconds = number.trim_end().parse::<f64>().map_err(|_| wrong)? * unit;
        if (SECONDS_MIN..=SECONDS_MAX).contains(&seconds) { Ok(Self::Seconds(seconds)) } else { Err(wrong) }
    }
}

/// The job goes on from checkpoints that another one has left in files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The folder of that job.
    pub folder: PathBuf,
    /// The checkpoint may be that of another build of the program, whose state has the same fields.
    pub accept_build: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_and_times_are_read_as_they_are_written() {
        let read = |text: &str| text.parse::<SpillEvery>();
        assert_eq!(read("10"), Ok(SpillEvery::Checkpoints(NonZero::new(10).unwrap())));
        for (text, seconds) in [("30s", 30.0), ("5min", 300.0), ("0.5 h", 1800.0), ("1.5s", 1.5)] {
            assert_eq!(read(text), Ok(SpillEvery::Seconds(seconds)));
        }
        for every in
            [SpillEvery::Checkpoints(NonZero::<u64>::MIN), SpillEvery::Seconds(0.25), SpillEvery::default()]
        {
            assert_eq!(read(&every.to_string()), Ok(every));
        }
        for text in [
            "0",
            "-1",
            "s",
            "0s",
            "-5s",
            "1e300s",
            "18446744073709551615",
            "1e-7s",
            "infs",
            "NaNs",
            "1.5",
            "5 m",
            "",
        ] {
            read(text).expect_err(text);
        }
    }
}
