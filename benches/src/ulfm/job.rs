//! One job, as each side starts it.

use std::fmt;
use std::path::Path;
use std::process::Command;

use crate::mpi::{AS_ROOT, Mpi};

/// Who recovers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    /// `ftrun load`.
    Ours,
    /// `ulfm_recovery` with Open MPI.
    Ulfm,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ours => "ours",
            Self::Ulfm => "ulfm",
        })
    }
}

/// What a job does about its dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Task {
    /// Other processes take their ranks, with their state.
    Rebuild,
    /// The survivors go on among themselves.
    Shrink,
    /// There are none: agreement itself is timed.
    Agree,
}

/// The word that both the program of the other side and the CSV have for it.
impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rebuild => "rebuild",
            Self::Shrink => "shrink",
            Self::Agree => "agree",
        })
    }
}

/// What a step changes; it takes no other time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    /// 64 KiB of the state, one slice after the other.
    Slice,
    /// All of it.
    All,
}

impl Change {
    fn kib(self, mib: usize) -> usize {
        match self {
            Self::Slice => 64,
            Self::All => mib * 1024,
        }
    }
}

/// A job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Job {
    /// What it does.
    pub(super) task: Task,
    /// Its size.
    pub(super) ranks: usize,
    /// State of each rank.
    pub(super) mib: usize,
    /// Ranks that are killed in the same step: at most two, which are no neighbors.
    pub(super) lost: usize,
    /// Processes that wait for a rank; ours only.
    pub(super) spares: usize,
    /// How much of the state a step changes.
    pub(super) change: Change,
    /// Whether the host keeps checkpoints of processes that die (`--keep-memory`); ours only.
    pub(super) keeps: bool,
    /// Whether the state takes down what is written of it; ours only.
    pub(super) tells: bool,
}

/// A job of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Start {
    pub(super) side: Side,
    pub(super) job: Job,
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.side, self.job)
    }
}

/// Program of the other side.
pub(super) const PEER: &str = "ulfm_recovery";

/// Ranks that are killed.
const VICTIMS: [usize; 2] = [2, 5];
/// Steps from one checkpoint to the next.
const EVERY: usize = 8;
/// Steps of a job, and the one in which ranks are killed: in the middle between two checkpoints.
const STEPS: (usize, usize) = (24, 20);
/// The same where a spare has to be ready by then.
const STEPS_WITH_SPARES: (usize, usize) = (1200, 1196);

impl Job {
    /// Ranks that are killed, in order.
    pub(super) fn victims(&self) -> &'static [usize] {
        &VICTIMS[..self.lost]
    }

    /// The same job without failures.
    pub(super) fn undisturbed(self) -> Self {
        Self { lost: 0, ..self }
    }

    fn steps(&self) -> (usize, usize) {
        if self.spares > 0 { STEPS_WITH_SPARES } else { STEPS }
    }

    /// Our command.
    pub(super) fn ours(&self, ftrun: &Path) -> Command {
        let (steps, kill_at) = self.steps();
        let mut command = Command::new(ftrun);
        command.args(["--json", "--quiet", "--scheme", "neighbor"]);
        command.args(self.keeps.then_some("--keep-memory"));
        command.args(["-n", &self.ranks.to_string(), "--every", &EVERY.to_string()]);
        if self.spares > 0 {
            command.args(["--spares", &self.spares.to_string()]);
        }
        for victim in self.victims() {
            command.args(["--kill", &format!("{victim}@step={kill_at}")]);
        }
        command.args(["load", "--state", &format!("{}MiB", self.mib)]);
        command.args(self.tells.then_some("--tracked"));
        command.args(["--steps", &steps.to_string()]);
        command.args(["--slice", &format!("{}KiB", self.change.kib(self.mib)), "--step-ms", "0"]);
        command
    }

    /// Their command; what it has to say goes to the end of a file that is there. TCP alone is the fastest way for ULFM on one host:
    /// a death is known by its connections, and new processes need not look for other networks.
    pub(super) fn ulfm(&self, mpi: &Mpi, file: &Path) -> Command {
        let (steps, kill_at) = self.steps();
        let mut command = Command::new(mpi.launcher());
        command.envs(AS_ROOT);
        // Those that hang leave their folders behind: here they go with the program.
        command.envs(file.parent().map(|folder| ("TMPDIR", folder)));
        command.args(["--with-ft", "ulfm", "--oversubscribe", "--mca", "btl", "self,tcp"]);
        command.args(["-n", &self.ranks.to_string()]).arg(mpi.program(PEER)).arg(file);
        command.arg(self.task.to_string());
        if self.task != Task::Agree {
            let slice = self.change.kib(self.mib);
            command.args([self.mib, steps, EVERY, kill_at, slice].map(|number| number.to_string()));
            command.args(self.victims().iter().map(ToString::to_string));
        }
        command
    }
}

/// "rebuild, 8 ranks x 1 MiB, 1 lost, 1 spare".
impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, ranks, mib, lost, spares, change, keeps, tells } = self;
        match task {
            Task::Agree => return write!(f, "{task}, {ranks} ranks"),
            _ => write!(f, "{task}, {ranks} ranks x {mib} MiB, {lost} lost")?,
        }
        if *spares > 0 {
            write!(f, ", {spares} spare")?;
        }
        if *change == Change::All {
            f.write_str(", all changes")?;
        }
        f.write_str(if *keeps { ", kept" } else { "" })?;
        f.write_str(if *tells { ", tracked" } else { "" })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) const FRESH: Job = Job {
        task: Task::Rebuild,
        ranks: 8,
        mib: 1,
        lost: 1,
        spares: 0,
        change: Change::Slice,
        keeps: false,
        tells: false,
    };
    pub(in super::super) const SHRINK: Job = Job { task: Task::Shrink, ..FRESH };
    pub(in super::super) const AGREE: Job = Job { task: Task::Agree, mib: 0, lost: 0, ..FRESH };

    fn words(command: &Command) -> String {
        let all = std::iter::once(command.get_program()).chain(command.get_args());
        all.map(|word| word.display().to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn our_commands() {
        let line = |job: Job| words(&job.ours("ftrun".as_ref()));
        let start = "ftrun --json --quiet --scheme neighbor -n 8 --every 8 ";
        let rest = "load --state 1MiB --steps 24 --slice 64KiB --step-ms 0";
        assert_eq!(line(FRESH), format!("{start}--kill 2@step=20 {rest}"));
        assert_eq!(
            line(Job { lost: 2, ..FRESH }),
            format!("{start}--kill 2@step=20 --kill 5@step=20 {rest}")
        );
        assert_eq!(line(FRESH.undisturbed()), format!("{start}{rest}"));
        let spare = line(Job { spares: 1, ..FRESH });
        assert!(spare.contains(" --spares 1 --kill 2@step=1196 load "), "{spare}");
        assert!(spare.ends_with("--steps 1200 --slice 64KiB --step-ms 0"), "{spare}");
        let tells = line(Job { tells: true, ..FRESH });
        assert!(tells.contains(" load --state 1MiB --tracked --steps 24 "), "{tells}");
        let all = line(Job { change: Change::All, keeps: true, ..FRESH });
        assert!(all.contains(" --scheme neighbor --keep-memory -n 8 "), "{all}");
        assert!(all.ends_with("--steps 24 --slice 1024KiB --step-ms 0"), "{all}");
    }

    #[test]
    fn their_commands() {
        let mpi = Mpi::without_programs("/mpi/bin");
        let line = |job: Job| words(&job.ulfm(&mpi, "/folder/marks".as_ref()));
        let start = "/mpi/bin/mpiexec --with-ft ulfm --oversubscribe --mca btl self,tcp -n 8 ";
        let end = |line: String| line.strip_prefix(start).unwrap().split_once(' ').unwrap().1.to_owned();
        assert_eq!(end(line(FRESH)), "/folder/marks rebuild 1 24 8 20 64 2");
        assert_eq!(end(line(Job { lost: 2, ..FRESH })), "/folder/marks rebuild 1 24 8 20 64 2 5");
        assert_eq!(end(line(SHRINK.undisturbed())), "/folder/marks shrink 1 24 8 20 64");
        assert_eq!(end(line(AGREE)), "/folder/marks agree");
        let all = Job { change: Change::All, ..FRESH };
        assert_eq!(end(line(all)), "/folder/marks rebuild 1 24 8 20 1024 2");
    }
}
