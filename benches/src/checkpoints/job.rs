//! One program that is started.

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
        let Sizes { mib, repeats, solver_ranks, interval_s, .. } = self.sizes;
        let size = format!("--mib {mib} --repeats {repeats}");
        let redundant = |scheme: Scheme, ranks| scheme.options(ranks).expect("it has redundancy in memory");
        match job {
            Job::Floor(Cell { scheme, ranks, sockets }) => {
                let words = format!(
                    "--json --scheme {scheme} --ranks {ranks} --sockets {sockets} {size} --congestion"
                );
                with(self.program("checkpoint_floor", &words), |command| command.arg(&self.congestion))
            }
            Job::File(ranks) => {
                let words = format!("--json --scheme file --ranks {ranks} {size} --folder");
                with(self.program("checkpoint_floor", &words), |command| command.arg(&self.folder))
            }
            Job::Ours(Cell { scheme, ranks, sockets }) | Job::Held(Cell { scheme, ranks, sockets }) => {
                let transport = if sockets == Sockets::Tcp { " --transport tcp" } else { "" };
                let ftrun = self.program("ftrun", &(redundant(scheme, ranks) + transport));
                let is_held = matches!(job, Job::Held(_));
                self.example(ftrun, "checkpoint", &size, is_held)
            }
            Job::Shared(ranks) => {
                let mpi = self.mpi.as_ref().expect("MPI-IO is planned where it is");
                let mut command = Command::new(mpi.bin("mpiexec"));
                command.envs(AS_ROOT).args([
                    "--oversubscribe",
                    "--bind-to",
                    "none",
                    "-n",
                    &ranks.to_string(),
                ]);
                command.arg(mpi.program(PEER)).arg(self.folder.join("shared"));
                with(command, |command| command.args([mib, repeats].map(|number| number.to_string())))
            }
            Job::Rebuild(ranks) => {
                let (scheme, load) =
                    (redundant(Scheme::Xor, ranks), format!("load --state {mib}MiB --steps 12 --step-ms 0"));
                self.program(
                    "ftrun",
                    &format!("--json --quiet {scheme} --every 4 --spares 1 --kill {KILL} {load}"),
                )
            }
            Job::Solver { protected } => {
                let scheme = if protected { "xor" } else { "none" };
                let words =
                    format!("--json --quiet -n {solver_ranks} --scheme {scheme} --interval {interval_s}");
                self.example(
                    self.program("ftrun", &words),
                    "solver",
                    &format!("--mib {mib} --steps {steps}"),
                    protected,
                )
            }
        }
    }

    fn program(&self, name: &str, words: &str) -> Command {
        with(Command::new(self.programs.join(name)), |command| command.args(words.split(' ')))
    }

    /// A program under the launcher.
    fn example(&self, mut ftrun: Command, name: &str, words: &str, is_asynchronous: bool) -> Command {
        ftrun.arg(self.programs.join("examples").join(name)).args(words.split(' '));
        with(ftrun, |command| command.args(is_asynchronous.then_some("--asynchronous")))
    }
}

fn with(mut command: Command, add: impl FnOnce(&mut Command) -> &mut Command) -> Command {
    add(&mut command);
    command
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
    fn commands() {
        let cell = |scheme, sockets| Cell { scheme, ranks: 4, sockets };
        let size = "--mib 64 --repeats 3";
        for (job, due) in [
            (
                Job::Floor(cell(Scheme::RsDedicated, Sockets::Tcp)),
                format!("p/checkpoint_floor --json --scheme rs-dedicated --ranks 4 --sockets tcp {size} --congestion cubic"),
            ),
            (
                Job::Ours(cell(Scheme::Rs, Sockets::Tcp)),
                format!("p/ftrun -n 4 --scheme rs:2+2 --transport tcp p/examples/checkpoint {size}"),
            ),
            (
                Job::Held(cell(Scheme::Xor, Sockets::Unix)),
                format!("p/ftrun -n 4 --scheme xor:4 p/examples/checkpoint {size} --asynchronous"),
            ),
            (Job::File(8), format!("p/checkpoint_floor --json --scheme file --ranks 8 {size} --folder d")),
            (
                Job::Rebuild(8),
                "p/ftrun --json --quiet -n 8 --scheme xor:8 --every 4 --spares 1 --kill 2@step=10 load --state 64MiB \
                 --steps 12 --step-ms 0"
                    .to_owned(),
            ),
            (
                Job::Solver { protected: false },
                "p/ftrun --json --quiet -n 4 --scheme none --interval 2 p/examples/solver --mib 64 --steps 70".to_owned(),
            ),
        ] {
            assert_eq!(line(job), due);
        }
        let protected = line(Job::Solver { protected: true });
        assert!(
            protected.contains(" --scheme xor ") && protected.ends_with(" --asynchronous"),
            "{protected}"
        );
        let shared = line(Job::Shared(8));
        assert!(shared.starts_with("/mpi/bin/mpiexec --oversubscribe --bind-to none -n 8 "), "{shared}");
        assert!(shared.ends_with("/mpi_checkpoint d/shared 64 3"), "{shared}");
        assert!(KILL.starts_with(&VICTIM.to_string()));
    }
}
