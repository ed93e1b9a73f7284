//! The programs of both sides: how they are started, and what they print.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::cell::{Cell, WORKS};
use crate::comparison::{Compiled, Watch, built, folder, missing};
use ft_tools::harness::{Children, HarnessError};

const PEER: &str = "isal_codes";
/// Longest time to measure a cell.
const LIMIT: Duration = Duration::from_secs(120);

/// One start of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Job {
    /// Our codes.
    Ours(Cell),
    /// Those of ISA-L.
    Isal(Cell),
    /// Adding a buffer of so many MiB to another, and copying one.
    Addition(usize),
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(cell) => write!(f, "codes: {cell}"),
            Self::Isal(cell) => write!(f, "{PEER}: {cell}"),
            Self::Addition(mib) => write!(f, "xor of {mib} MiB"),
        }
    }
}

impl Job {
    fn words(self) -> Vec<String> {
        match self {
            Self::Ours(cell) | Self::Isal(cell) => {
                [cell.data, cell.redundant, cell.kib].map(|number| number.to_string()).into()
            }
            Self::Addition(mib) => vec!["xor".to_owned(), mib.to_string()],
        }
    }

    /// What it has to print the seconds of.
    fn due(self) -> Vec<&'static str> {
        let works = |cell, side: usize| {
            let works = WORKS.iter().filter(move |work| work.is_in(&cell));
            works.map(|work| work.said[side]).collect()
        };
        match self {
            Self::Ours(cell) => works(cell, 0),
            Self::Isal(cell) => works(cell, 1),
            Self::Addition(_) => vec!["xor", "memcpy"],
        }
    }
}

/// Seconds a call, by what a program calls it.
pub(super) type Times = BTreeMap<&'static str, f64>;

/// Both sides.
pub(super) struct Sides<'a> {
    children: Children<'a>,
    ours: PathBuf,
    isal: Compiled,
    /// The instructions that ours says it uses.
    pub(super) kernel: String,
    /// Of the redundant blocks of each cell.
    sums: BTreeMap<Cell, String>,
}

impl<'a> Sides<'a> {
    /// Finds ours and compiles theirs.
    pub(super) fn find(watch: &Watch<'a>) -> Result<Self, HarnessError> {
        let children = Children { adopts: false, is_interrupted: watch.is_interrupted };
        let ours = built(&folder()?, "examples/codes", "-p ft-benches --examples")?;
        let sources = [(PEER, include_str!("../../peers/isal_codes.c"))];
        let compiled = Compiled::new("cc".as_ref(), &sources, &["-lisal"], &children);
        let isal = compiled.map_err(|error| match error {
            HarnessError::Failed { .. } => missing("ISA-L", "the package of Debian is libisal-dev".into()),
            other => other,
        })?;
        Ok(Self { children, ours, isal, kernel: String::new(), sums: BTreeMap::new() })
    }

    pub(super) fn measure(&mut self, job: Job) -> Result<Times, HarnessError> {
        let program = match job {
            Job::Isal(_) => self.isal.program(PEER),
            _ => self.ours.clone(),
        };
        let mut command = Command::new(program);
        // One core on both sides: a clock of CPU time misses what helpers are just doing.
        command.args(job.words()).env("FT_THREADS", "1");
        let said = Said(self.children.run(command, LIMIT)?.output);
        let wrong = |why| HarnessError::Output { command: job.to_string(), why };
        if let Job::Ours(_) = job {
            said.word("kernel").map_err(wrong)?.clone_into(&mut self.kernel);
        }
        if let Job::Ours(cell) | Job::Isal(cell) = job {
            self.hold(cell, said.word("sum").map_err(wrong)?).map_err(wrong)?;
        }
        job.due()
            .into_iter()
            .map(|name| Ok((name, said.seconds(name)?)))
            .collect::<Result<_, _>>()
            .map_err(wrong)
    }

    /// All redundant blocks of a cell are equal, except that of one block ours is the XOR, theirs is not.
    fn hold(&mut self, cell: Cell, sum: &str) -> Result<(), String> {
        let due = self.sums.entry(cell).or_insert_with(|| sum.to_owned());
        match due == sum || cell.redundant == 1 {
            true => Ok(()),
            false => Err("its redundant blocks are not those of the other side".to_owned()),
        }
    }
}

/// What a program prints: lines of a name and what belongs to it.
struct Said(String);

impl Said {
    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.lines().filter_map(move |line| line.strip_prefix(name)?.strip_prefix(' '))
    }

    fn word<'a>(&'a self, name: &'a str) -> Result<&'a str, String> {
        self.all(name).next().ok_or_else(|| format!("there is no {name}"))
    }

    /// The fewest, of a name that comes several times.
    fn seconds(&self, name: &str) -> Result<f64, String> {
        self.word(name)?;
        let number = |word: &str| word.parse::<f64>().map_err(|_| format!("{name} is {word}"));
        self.all(name).map(number).try_fold(f64::INFINITY, |least, seconds| Ok(least.min(seconds?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read() {
        let said = Said("kernel portable\nencode 2.5e-3\nsum 00ff\nxor 2\nxor 1\nwrong word\n".into());
        assert_eq!(said.word("kernel").unwrap(), "portable");
        assert_eq!((said.seconds("encode"), said.seconds("xor")), (Ok(0.0025), Ok(1.0)));
        assert_eq!(said.seconds("rebuild1").unwrap_err(), "there is no rebuild1");
        assert_eq!(said.seconds("wrong").unwrap_err(), "wrong is word");
    }

    #[test]
    fn jobs_have_words_and_figures() {
        let cell = Cell { kib: 64, data: 4, redundant: 1 };
        assert_eq!(
            (Job::Ours(cell).words().join(" "), Job::Addition(16).words().join(" ")),
            ("4 1 64".into(), "xor 16".into())
        );
        assert_eq!(Job::Isal(cell).due(), ["encode", "xor", "rebuild1"]);
        assert_eq!(Job::Ours(Cell { redundant: 2, ..cell }).due(), ["encode", "rebuild1", "rebuild2"]);
    }
}
