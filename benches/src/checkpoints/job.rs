//! One program that is started.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::process::Command;

use super::scheme::Scheme;
use crate::mpi::{AS_ROOT, Mpi};
use crate::sockets::Sockets;

/// A checkpoint of all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cell {
    /// Where redundancy goes.
    pub(super) scheme: Scheme,
    /// Ranks with a state.
    pub(super) ranks: usize,
    /// What connects them.
    pub(super) sockets: Sockets,
}

/// `8 ranks, unix, xor`
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, ranks, sockets } = self;
        write!(f, "{ranks} ranks, {sockets}, {scheme}")
    }
}

/// A program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Job {
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
    Solver { protected: bool },
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
pub(super) struct Sizes {
    /// State of each rank.
    pub(super) mib: usize,
    /// Checkpoints in a process.
    pub(super) repeats: usize,
    /// Ranks of the solver.
    pub(super) solver_ranks: usize,
    /// Seconds of the solver, about.
    pub(super) solver_s: f64,
    /// Seconds between its checkpoints.
    pub(super) interval_s: f64,
}

/// What all jobs are started with.
pub(super) struct Setup {
    /// The folder of `ftrun` and `checkpoint_floor`; examples are in a folder of it.
    pub(super) programs: PathBuf,
    /// For the files of peers.
    pub(super) folder: PathBuf,
    /// The congestion control that `ft-comm` asks for.
    pub(super) congestion: String,
    pub(super) sizes: Sizes,
    /// Open MPI, where it is.
    pub(super) mpi: Option<Mpi>,
}

/// The peer that writes one file.
pub(super) const PEER: &str = "mpi_checkpoint";
/// The rank that is lost, and when: a spare is ready by then.
pub(super) const VICTIM: usize = 2;
const KILL: &str = "2@step=10";

impl Setup {
    /// The command of a job. `steps` are those of the solver.
    ///
    /// # Panics
    /// It is MPI-IO and there is no MPI.
    pub(super) fn command(&self, job: Job, steps: u64) -> Command {
        let Sizes { mib, repeats, .. } = self.sizes;
        let size = format!("--mib {mib} --repeats {repeats}");
        match job {
            Job::Floor(Cell { scheme, ranks, sockets }) => {
                let words =
                    format!("--scheme {scheme} --ranks {ranks} --sockets {sockets} {size} --congestion");
                self.floor(&words, self.congestion.as_ref())
            }
            Job::File(ranks) => {
                self.floor(&format!("--scheme file --ranks {ranks} {size} --folder"), self.folder.as_ref())
            }
            Job::Ours(cell) => self.checkpoint(cell, &size),
            Job::Held(cell) => self.checkpoint(cell, &(size + " --asynchronous")),
            Job::Shared(ranks) => self.shared(ranks),
            Job::Rebuild(ranks) => {
                let scheme = redundant(Scheme::Xor, ranks);
                let load = format!("load --state {mib}MiB --steps 12 --step-ms 0");
                self.ftrun(&format!("--json --quiet {scheme} --every 4 --spares 1 --kill {KILL} {load}"))
            }
            Job::Solver { protected } => self.solver(protected, steps),
        }
    }

    /// The program without a protocol; `last` is the value of the last option.
    fn floor(&self, words: &str, last: &OsStr) -> Command {
        let mut command = Command::new(self.programs.join("checkpoint_floor"));
        command.arg("--json").args(words.split(' ')).arg(last);
        command
    }

    fn ftrun(&self, words: &str) -> Command {
        let mut command = Command::new(self.programs.join("ftrun"));
        command.args(words.split(' '));
        command
    }

    /// A program under the launcher: the words of this, the program, its own words.
    fn example(&self, launcher: &str, name: &str, words: &str) -> Command {
        let mut command = self.ftrun(launcher);
        command.arg(self.programs.join("examples").join(name)).args(words.split(' '));
        command
    }

    fn checkpoint(&self, Cell { scheme, ranks, sockets }: Cell, words: &str) -> Command {
        let transport = if sockets == Sockets::Tcp { " --transport tcp" } else { "" };
        self.example(&(redundant(scheme, ranks) + transport), "checkpoint", words)
    }

    fn shared(&self, ranks: usize) -> Command {
        let mpi = self.mpi.as_ref().expect("MPI-IO is planned where it is");
        let words = format!("--oversubscribe --bind-to none -n {ranks}");
        let mut command = Command::new(mpi.launcher());
        command.envs(AS_ROOT).args(words.split(' ')).arg(mpi.program(PEER)).arg(self.folder.join("shared"));
        command.args([self.sizes.mib, self.sizes.repeats].map(|number| number.to_string()));
        command
    }

    fn solver(&self, protected: bool, steps: u64) -> Command {
        let Sizes { mib, solver_ranks, interval_s, .. } = self.sizes;
        let (scheme, how) = if protected { ("xor", " --asynchronous") } else { ("none", "") };
        let launcher = format!("--json --quiet -n {solver_ranks} --scheme {scheme} --interval {interval_s}");
        self.example(&launcher, "solver", &format!("--mib {mib} --steps {steps}{how}"))
    }
}

fn redundant(scheme: Scheme, ranks: usize) -> String {
    scheme.options(ranks).expect("it has redundancy in memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(job: Job) -> String {
        let setup = Setup {
            programs: "p".into(),
            folder: "d".into(),
            congestion: "cubic".into(),
            sizes: Sizes { mib: 64, repeats: 3, solver_ranks: 4, solver_s: 10.0, interval_s: 2.0 },
            mpi: Some(Mpi::without_programs("/mpi/bin")),
        };
        let command = setup.command(job, 70);
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        words.map(|word| word.display().to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn commands_of_checkpoints() {
        let cell = |scheme, sockets| Cell { scheme, ranks: 4, sockets };
        let size = "--mib 64 --repeats 3";
        let floor = Job::Floor(cell(Scheme::RsDedicated, Sockets::Tcp));
        let words = "--scheme rs-dedicated --ranks 4 --sockets tcp";
        assert_eq!(line(floor), format!("p/checkpoint_floor --json {words} {size} --congestion cubic"));
        let file = format!("p/checkpoint_floor --json --scheme file --ranks 8 {size} --folder d");
        assert_eq!(line(Job::File(8)), file);
        let ours = format!("p/ftrun -n 4 --scheme rs:2+2 --transport tcp p/examples/checkpoint {size}");
        assert_eq!(line(Job::Ours(cell(Scheme::Rs, Sockets::Tcp))), ours);
        let held = format!("p/ftrun -n 4 --scheme xor:4 p/examples/checkpoint {size} --asynchronous");
        assert_eq!(line(Job::Held(cell(Scheme::Xor, Sockets::Unix))), held);
        let shared = line(Job::Shared(8));
        assert!(shared.starts_with("/mpi/bin/mpiexec --oversubscribe --bind-to none -n 8 "), "{shared}");
        assert!(shared.ends_with("/mpi_checkpoint d/shared 64 3"), "{shared}");
    }

    #[test]
    fn commands_of_all_else() {
        let ftrun = "p/ftrun --json --quiet -n";
        let load = "load --state 64MiB --steps 12 --step-ms 0";
        let rebuild = format!("{ftrun} 8 --scheme xor:8 --every 4 --spares 1 --kill {KILL} {load}");
        assert_eq!(line(Job::Rebuild(8)), rebuild);
        let solver = "--interval 2 p/examples/solver --mib 64 --steps 70";
        assert_eq!(line(Job::Solver { protected: false }), format!("{ftrun} 4 --scheme none {solver}"));
        let protected = format!("{ftrun} 4 --scheme xor {solver} --asynchronous");
        assert_eq!(line(Job::Solver { protected: true }), protected);
        assert!(KILL.starts_with(&VICTIM.to_string()));
    }
}
