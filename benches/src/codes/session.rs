//! All cells, round by round.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::cell::{Cell, Work};
use crate::mpi::there;
use ft_tools::harness::{Children, HarnessError, Ticks, disturbance};
use ft_tools::recovery::{FreshFolder, Machine};

const PEER: &str = "isal_codes";
/// Longest time to compile or to measure a cell.
const LIMIT: Duration = Duration::from_secs(120);
/// Sizes of the buffers that are added and copied.
const XOR_MIB: [usize; 3] = [16, 64, 256];

/// What to measure, and with what.
#[derive(Clone, Debug)]
pub struct Order {
    /// Folder of the program `codes`.
    pub examples: PathBuf,
    /// Rounds.
    pub rounds: usize,
    /// Which cells.
    pub cells: Vec<Cell>,
}

/// One work of a cell in one round, in seconds a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair {
    pub(super) cell: Cell,
    pub(super) work: Work,
    pub(super) ours_s: f64,
    pub(super) theirs_s: f64,
}

/// Adding a buffer to another, and copying one, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Addition {
    pub(super) mib: usize,
    pub(super) xor_s: f64,
    pub(super) memcpy_s: f64,
}

/// All that was measured.
#[derive(Clone, Debug)]
pub struct Results {
    pub(super) machine: Machine,
    pub(super) kernel: String,
    pub(super) rounds: usize,
    pub(super) pairs: Vec<(usize, Pair)>,
    pub(super) additions: Vec<(usize, Addition)>,
    pub(super) remarks: Vec<String>,
}

/// What a side printed: names and what belongs to them.
struct Said {
    command: &'static str,
    lines: Vec<(String, String)>,
}

impl Said {
    fn of(command: &'static str, output: &str) -> Self {
        let pairs = output.lines().filter_map(|line| line.split_once(' '));
        Self { command, lines: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect() }
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.lines.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    fn word<'a>(&'a self, name: &'a str) -> Result<&'a str, HarnessError> {
        let why = || format!("there is no {name}");
        self.all(name).next().ok_or_else(|| HarnessError::Output { command: self.command.into(), why: why() })
    }

    fn seconds(&self, name: &str) -> Result<f64, HarnessError> {
        let word = self.word(name)?;
        let wrong =
            |_| HarnessError::Output { command: self.command.into(), why: format!("{name} is {word}") };
        word.parse().map_err(wrong)
    }
}

/// Compares all that is ordered; `progress` hears of each cell before it begins.
///
/// # Errors
/// A program is missing, cannot be compiled, fails, or computes other blocks than the other; or `is_interrupted` says so.
pub fn run(
    order: &Order,
    is_interrupted: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(usize, usize, &str),
) -> Result<Results, HarnessError> {
    let children = Children { adopts: false, is_interrupted };
    let ours = there(order.examples.join("codes"), || {
        "`cargo build --release -p ft-benches --examples` makes it".into()
    })?;
    let folder = FreshFolder::new().map_err(|error| HarnessError::Folder(error.to_string()))?;
    let theirs = compile(&folder, &children)?;
    let mut results = Results {
        machine: Machine::here(),
        kernel: String::new(),
        rounds: order.rounds,
        pairs: vec![],
        additions: vec![],
        remarks: vec![],
    };
    let mut foreign = Vec::new();
    let all = order.rounds * (order.cells.len() + XOR_MIB.len());
    let mut done = 0;
    for round in 0..order.rounds {
        for cell in &order.cells {
            progress(done, all, &format!("round {}, {cell}", round + 1));
            done += 1;
            let before = Ticks::now();
            let words = [cell.data, cell.redundant, cell.kib].map(|number| number.to_string());
            let say = |side: usize| {
                let mut command = Command::new([&ours, &theirs][side]);
                command.args(&words);
                let ended = children.run(command, LIMIT)?;
                Ok::<_, HarnessError>(Said::of(["codes", PEER][side], &ended.output))
            };
            // Who goes first changes from round to round.
            let first = say(round % 2)?;
            let second = say(1 - round % 2)?;
            let said = if round % 2 == 0 { [first, second] } else { [second, first] };
            foreign.push(before.foreign_until(Ticks::now()));
            said[0].word("kernel")?.clone_into(&mut results.kernel);
            // With one block ours is the XOR, theirs is not.
            if cell.redundant > 1 && said[0].word("sum")? != said[1].word("sum")? {
                let why = format!("its redundant blocks of {cell} are not those of codes");
                return Err(HarnessError::Output { command: PEER.into(), why });
            }
            for work in Work::ALL.into_iter().filter(|work| work.is_in(cell)) {
                let [ours, theirs] = work.names();
                let (ours_s, theirs_s) = (said[0].seconds(ours)?, said[1].seconds(theirs)?);
                results.pairs.push((round, Pair { cell: *cell, work, ours_s, theirs_s }));
            }
        }
        for mib in XOR_MIB {
            progress(done, all, &format!("round {}, xor of {mib} MiB", round + 1));
            done += 1;
            let mut command = Command::new(&ours);
            command.args(["xor", &mib.to_string()]);
            let said = Said::of("codes", &children.run(command, LIMIT)?.output);
            let best =
                |name| said.all(name).filter_map(|word| word.parse().ok()).fold(f64::INFINITY, f64::min);
            let addition = Addition { mib, xor_s: best("xor"), memcpy_s: best("memcpy") };
            results.additions.push((round, addition));
        }
    }
    results.remarks.extend(disturbance(foreign.into_iter()));
    Ok(results)
}

fn compile(folder: &FreshFolder, children: &Children<'_>) -> Result<PathBuf, HarnessError> {
    let program = folder.path().join(PEER);
    let source = program.with_extension("c");
    std::fs::write(&source, include_str!("../../peers/isal_codes.c"))
        .map_err(|error| HarnessError::Folder(format!("cannot write {}: {error}", source.display())))?;
    let mut command = Command::new("cc");
    command.args(["-O3", "-o"]).arg(&program).arg(&source).arg("-lisal");
    match children.run(command, LIMIT) {
        Err(HarnessError::Failed { .. }) => Err(HarnessError::Missing {
            what: "ISA-L".into(),
            remedy: "the package of Debian is libisal-dev".into(),
        }),
        Err(error) => Err(error),
        Ok(_) => Ok(program),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read() {
        let said = Said::of("codes", "kernel portable\nencode 2.5e-3\nsum 00ff\nxor 1\nxor 2\nwrong word\n");
        assert_eq!(said.word("kernel").unwrap(), "portable");
        assert_eq!(said.seconds("encode").unwrap(), 0.0025);
        assert_eq!(said.all("xor").collect::<Vec<_>>(), ["1", "2"]);
        let error = |name| said.seconds(name).unwrap_err().to_string();
        assert_eq!(error("rebuild1"), "'codes' printed no measurements: there is no rebuild1");
        assert_eq!(error("wrong"), "'codes' printed no measurements: wrong is word");
    }
}
