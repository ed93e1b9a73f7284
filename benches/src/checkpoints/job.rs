//! One program that is started, and what is read from what it says.

use std::fmt;
use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

use super::scheme::Scheme;
use crate::mpi::{AS_ROOT, Mpi};
use crate::sockets::Sockets;
use ft_tools::recovery::Spread;

/// A checkpoint of all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Where redundancy goes.
    pub scheme: Scheme,
    /// Ranks with a state.
    pub ranks: usize,
    /// What connects them.
    pub sockets: Sockets,
}

/// `8 ranks, unix, xor`
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, ranks, sockets } = self;
        write!(f, "{ranks} ranks, {}, {scheme}", name(*sockets))
    }
}

/// As the command line has it.
pub(super) fn name(sockets: Sockets) -> &'static str {
    match sockets {
        Sockets::Tcp => "tcp",
        Sockets::Unix => "unix",
    }
}

/// A program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Job {
    /// The exchange without any protocol.
    Floor(Cell),
    /// A checkpoint that holds the program until it is committed.
    Ours(Cell),
    /// How long the program is held by one that does not.
    Held(Cell),
    /// A file for each of so many ranks.
    File(usize),
    /// One file of so many ranks, by MPI-IO.
    Shared(usize),
    /// One of so many ranks is lost, XOR, same host.
    Rebuild(usize),
    /// A solver, with XOR or without protection.
    Solver {
        /// With XOR.
        protected: bool,
    },
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Floor(cell) => write!(f, "floor: {cell}"),
            Self::Ours(cell) => write!(f, "ours: {cell}"),
            Self::Held(cell) => write!(f, "ours, asynchronous: {cell}"),
            Self::File(ranks) => write!(f, "a file a rank: {ranks} ranks"),
            Self::Shared(ranks) => write!(f, "MPI-IO: {ranks} ranks"),
            Self::Rebuild(ranks) => write!(f, "rebuild: {ranks} ranks"),
            Self::Solver { protected: true } => f.write_str("solver, xor"),
            Self::Solver { protected: false } => f.write_str("solver, none"),
        }
    }
}

/// How large everything is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    /// State of each rank.
    pub mib: usize,
    /// Checkpoints in a process.
    pub repeats: usize,
    /// Ranks of the solver.
    pub solver_ranks: usize,
    /// Seconds of the solver, about.
    pub solver_s: f64,
    /// Seconds between its checkpoints.
    pub interval_s: f64,
}

/// What all jobs are started with.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    /// The folder of `ftrun` and `checkpoint_floor`; examples are in a folder of it.
    pub(super) programs: PathBuf,
    /// For the files of peers.
    pub(super) folder: PathBuf,
    /// The congestion control that `ft-comm` asks for.
    pub(super) congestion: String,
}

/// The peer that writes one file.
pub(super) const PEER: &str = "mpi_checkpoint";
/// The rank that is lost, and when: a spare is ready by then.
const KILL: &str = "2@step=10";
const VICTIM: usize = 2;

impl Job {
    /// Its command. `steps` are those of the solver.
    ///
    /// # Panics
    /// It is MPI-IO and there is no MPI.
    pub(super) fn command(&self, setup: &Setup, mpi: Option<&Mpi>, sizes: &Sizes, steps: u64) -> Command {
        let (mib, repeats) = (sizes.mib.to_string(), sizes.repeats.to_string());
        let size = ["--mib", &mib, "--repeats", &repeats];
        let program = |name: &str| Command::new(setup.programs.join(name));
        let example = |name: &str| setup.programs.join("examples").join(name);
        match *self {
            Self::Floor(Cell { scheme, ranks, sockets }) => {
                let mut command = program("checkpoint_floor");
                command.args(["--json", "--scheme", scheme.name(), "--ranks", &ranks.to_string()]);
                command.args(["--sockets", name(sockets), "--congestion", &setup.congestion]).args(size);
                command
            }
            Self::File(ranks) => {
                let mut command = program("checkpoint_floor");
                command.args(["--json", "--scheme", "file", "--ranks", &ranks.to_string()]).args(size);
                command.arg("--folder").arg(&setup.folder);
                command
            }
            Self::Ours(Cell { scheme, ranks, sockets }) | Self::Held(Cell { scheme, ranks, sockets }) => {
                let mut command = program("ftrun");
                command.args(scheme.options(ranks).expect("it has redundancy in memory"));
                if sockets == Sockets::Tcp {
                    command.args(["--transport", "tcp"]);
                }
                command.arg(example("checkpoint")).args(size);
                if matches!(self, Self::Held(_)) {
                    command.arg("--asynchronous");
                }
                command
            }
            Self::Shared(ranks) => {
                let mpi = mpi.expect("MPI-IO is planned where it is");
                let mut command = Command::new(mpi.bin("mpiexec"));
                command.envs(AS_ROOT);
                command.args(["--oversubscribe", "--bind-to", "none", "-n", &ranks.to_string()]);
                command.arg(mpi.program(PEER)).arg(setup.folder.join("shared")).args([&mib, &repeats]);
                command
            }
            Self::Rebuild(ranks) => {
                let mut command = program("ftrun");
                command.args(["--json", "--quiet"]).args(Scheme::Xor.options(ranks).expect("it has one"));
                command.args(["--every", "4", "--spares", "1", "--kill", KILL]);
                command.args(["load", "--state", &format!("{mib}MiB"), "--steps", "12", "--step-ms", "0"]);
                command
            }
            Self::Solver { protected } => {
                let scheme = if protected { "xor" } else { "none" };
                let mut command = program("ftrun");
                command.args(["--json", "--quiet", "-n", &sizes.solver_ranks.to_string()]);
                command.args(["--scheme", scheme, "--interval", &sizes.interval_s.to_string()]);
                command.arg(example("solver")).args(["--mib", &mib, "--steps", &steps.to_string()]);
                if protected {
                    command.arg("--asynchronous");
                }
                command
            }
        }
    }

    /// What it says that it took.
    ///
    /// # Errors
    /// It says something else, or has done something else than was ordered.
    pub(super) fn read(&self, output: &str) -> Result<Took, String> {
        match self {
            Self::Rebuild(_) => Report::of(output)?.rebuild(),
            Self::Solver { .. } => Report::of(output)?.solver(),
            _ => Timed::of(output)?.took(),
        }
    }
}

/// What a program took, in seconds, and where the time went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Took {
    /// What counts.
    pub seconds: f64,
    /// Parts of it, or numbers beside it.
    pub parts: Vec<(&'static str, f64)>,
    /// What two jobs of the same work have in common.
    pub answer: Option<String>,
}

/// The line of a program that takes several checkpoints.
#[derive(Debug, Deserialize)]
struct Timed {
    seconds: Vec<f64>,
    #[serde(default)]
    copy: Vec<f64>,
    #[serde(default)]
    encode: Vec<f64>,
    #[serde(default)]
    exchange: Vec<f64>,
    #[serde(default)]
    commit: Vec<f64>,
}

impl Timed {
    fn of(output: &str) -> Result<Self, String> {
        let line = output.lines().find(|line| line.starts_with('{')).ok_or("there is no line of JSON")?;
        serde_json::from_str(line).map_err(|error| format!("'{line}' has no times: {error}"))
    }

    fn took(self) -> Result<Took, String> {
        let median = |values: &[f64]| Spread::of(values.iter().copied()).median;
        if self.seconds.is_empty() {
            return Err("there are no times".into());
        }
        let parts = [
            ("copy", self.copy),
            ("encode", self.encode),
            ("exchange", self.exchange),
            ("commit", self.commit),
        ];
        let parts = parts.into_iter().filter(|(_, values)| !values.is_empty());
        let parts = parts.map(|(name, values)| (name, median(&values))).collect();
        Ok(Took { seconds: median(&self.seconds), parts, answer: None })
    }
}

/// The part of the report of `ftrun` that is used here.
#[derive(Debug, Deserialize)]
struct Report {
    status: i32,
    message: String,
    result: serde_json::Value,
    checkpoints: Checkpoints,
    failures: Vec<Failure>,
    spares_used: usize,
}

#[derive(Debug, Deserialize)]
struct Checkpoints {
    committed: u64,
}

#[derive(Debug, Deserialize)]
struct Failure {
    ranks: Vec<usize>,
    restore_s: Option<f64>,
    restore: Option<Restore>,
}

#[derive(Debug, Deserialize)]
struct Restore {
    plan: f64,
    rebuild: f64,
    reprotect: f64,
    load: f64,
}

impl Report {
    fn of(output: &str) -> Result<Self, String> {
        let report: Self =
            serde_json::from_str(output.trim()).map_err(|error| format!("this is no report: {error}"))?;
        match report.status {
            0 => Ok(report),
            status => Err(format!("status {status}: {}", report.message)),
        }
    }

    fn rebuild(self) -> Result<Took, String> {
        if self.spares_used != 1 {
            return Err(format!("{} spares were ready instead of 1", self.spares_used));
        }
        let [Failure { ranks, restore_s: Some(all), restore: Some(restore) }] = &self.failures[..] else {
            return Err(format!(
                "{} failures, or it was not restored from, instead of one",
                self.failures.len()
            ));
        };
        if ranks != &[VICTIM] {
            return Err(format!("ranks {ranks:?} were lost instead of {VICTIM}"));
        }
        if self.result["wrong_words"] != 0 {
            return Err(format!("{} words are wrong", self.result["wrong_words"]));
        }
        let Restore { plan, rebuild, reprotect, load } = *restore;
        // At the rank where each took longest: who waits for the one that rebuilds does so in its load.
        let parts = vec![("plan", plan), ("rebuild", rebuild), ("reprotect", reprotect), ("load", load)];
        Ok(Took { seconds: *all, parts, answer: None })
    }

    fn solver(self) -> Result<Took, String> {
        let seconds = self.result["seconds"].as_f64().ok_or("there is no time in the result")?;
        let answer = self.result["answer"].as_str().ok_or("there is no answer in the result")?.to_owned();
        let parts = vec![("checkpoints", self.checkpoints.committed as f64)];
        Ok(Took { seconds, parts, answer: Some(answer) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const SIZES: Sizes = Sizes { mib: 64, repeats: 3, solver_ranks: 4, solver_s: 10.0, interval_s: 2.0 };

    fn line(job: Job) -> String {
        let setup = Setup { programs: "p".into(), folder: "d".into(), congestion: "cubic".into() };
        let mpi = Mpi::without_programs("/mpi/bin");
        let command = job.command(&setup, Some(&mpi), &SIZES, 70);
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        words.map(|word| word.display().to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn commands() {
        let cell = |scheme, sockets| Cell { scheme, ranks: 4, sockets };
        assert_eq!(
            line(Job::Floor(cell(Scheme::RsDedicated, Sockets::Tcp))),
            "p/checkpoint_floor --json --scheme rs-dedicated --ranks 4 --sockets tcp --congestion cubic --mib 64 --repeats 3"
        );
        assert_eq!(
            line(Job::Ours(cell(Scheme::Rs, Sockets::Tcp))),
            "p/ftrun -n 4 --scheme rs:2+2 --transport tcp p/examples/checkpoint --mib 64 --repeats 3"
        );
        assert_eq!(
            line(Job::Held(cell(Scheme::Xor, Sockets::Unix))),
            "p/ftrun -n 4 --scheme xor:4 p/examples/checkpoint --mib 64 --repeats 3 --asynchronous"
        );
        assert_eq!(
            line(Job::File(8)),
            "p/checkpoint_floor --json --scheme file --ranks 8 --mib 64 --repeats 3 --folder d"
        );
        let shared = line(Job::Shared(8));
        assert!(shared.starts_with("/mpi/bin/mpiexec --oversubscribe --bind-to none -n 8 "), "{shared}");
        assert!(shared.ends_with("/mpi_checkpoint d/shared 64 3"), "{shared}");
        assert_eq!(
            line(Job::Rebuild(8)),
            "p/ftrun --json --quiet -n 8 --scheme xor:8 --every 4 --spares 1 --kill 2@step=10 load --state 64MiB --steps 12 --step-ms 0"
        );
        assert_eq!(
            line(Job::Solver { protected: false }),
            "p/ftrun --json --quiet -n 4 --scheme none --interval 2 p/examples/solver --mib 64 --steps 70"
        );
        let protected = line(Job::Solver { protected: true });
        assert!(protected.contains(" --scheme xor --interval 2 "), "{protected}");
        assert!(protected.ends_with(" --steps 70 --asynchronous"), "{protected}");
    }

    #[test]
    fn times_are_medians() {
        let job = Job::File(4);
        let took = job.read("a word\n{\"seconds\":[3.0,1.0,2.0],\"copy\":[0.5,0.25,0.125]}\n").unwrap();
        assert_eq!(took, Took { seconds: 2.0, parts: vec![("copy", 0.25)], answer: None });
        assert_eq!(job.read("nothing").unwrap_err(), "there is no line of JSON");
        assert_eq!(job.read("{\"seconds\":[]}").unwrap_err(), "there are no times");
        assert!(job.read("{\"ranks\":1}").unwrap_err().contains("has no times: missing field"));
    }

    fn report() -> Value {
        json!({
            "status": 0, "message": "", "spares_used": 1, "checkpoints": {"committed": 3},
            "result": {"wrong_words": 0, "seconds": 10.5, "answer": "3f"},
            "failures": [{"ranks": [2], "restore_s": 5.0,
                "restore": {"generation": 1, "plan": 0.5, "rebuild": 1.0, "reprotect": 2.0, "load": 0.25}}],
        })
    }

    #[test]
    fn a_rebuild_is_what_was_ordered() {
        let job = Job::Rebuild(4);
        let took = job.read(&report().to_string()).unwrap();
        assert_eq!((took.seconds, took.parts[1]), (5.0, ("rebuild", 1.0)));
        let refused = |pointer: &str, value: Value| {
            let mut report = report();
            *report.pointer_mut(pointer).unwrap() = value;
            job.read(&report.to_string()).unwrap_err()
        };
        assert_eq!(refused("/status", json!(3)), "status 3: ");
        assert_eq!(refused("/spares_used", json!(0)), "0 spares were ready instead of 1");
        assert_eq!(refused("/failures/0/ranks", json!([1])), "ranks [1] were lost instead of 2");
        assert_eq!(refused("/result/wrong_words", json!(9)), "9 words are wrong");
        assert!(refused("/failures", json!([])).starts_with("0 failures, "));
        assert!(
            refused("/failures/0/restore", Value::Null).starts_with("1 failures, or it was not restored")
        );
    }

    #[test]
    fn a_solver_has_an_answer() {
        let took = Job::Solver { protected: true }.read(&report().to_string()).unwrap();
        let expected = Took { seconds: 10.5, parts: vec![("checkpoints", 3.0)], answer: Some("3f".into()) };
        assert_eq!(took, expected);
    }
}
