//! How each side is started, and tuned as its makers would have it: what it needs to use TCP although all ranks are on
//! one host, and to give way when they share cores.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::case::{Job, START, Task};
use super::measured::{Measured, parse};
use super::side::{SIDES, Side};
use super::test::{Operation, Selection};
use super::{Options, congestion};
use crate::comparison::{Watch, built, folder};
use crate::mpi::{AS_ROOT, MPICH, Mpi, OPENMPI};
use ft_tools::harness::{Children, HarnessError};
use ft_tools::recovery::Spread;

/// Programs of MPI, with the names that they have while they are measured.
const SOURCES: [(&str, &str); 2] = [
    ("mpi_messages", include_str!("../../peers/mpi_messages.c")),
    ("mpi_hello", include_str!("../../peers/mpi_hello.c")),
];
/// Starts of each side in one round when the start itself is timed; their median is one process start.
const STARTS: usize = 5;
/// Longest time of a program whatever it does.
const PATIENCE_S: f64 = 30.0;

/// The programs of all sides.
pub(super) struct Sides<'a> {
    children: Children<'a>,
    programs: PathBuf,
    /// Whether the launcher can be told to use TCP.
    chooses_transport: bool,
    /// The congestion control of `ft-comm`, where sockets under it differ from those of the system.
    comm_congestion: Option<String>,
    mpich: Option<Mpi>,
    openmpi: Option<Mpi>,
}

impl<'a> Sides<'a> {
    /// Finds the own programs, compiles those of MPI. From now on the calling process adopts orphans among its descendants, and after
    /// each run all its children are ended.
    ///
    /// # Errors
    /// One is missing; the text says how to get it.
    pub(super) fn find(options: &Options, watch: &Watch<'a>) -> Result<Self, HarnessError> {
        let children = Children::adopting(watch.is_interrupted);
        let programs = folder()?;
        let mut help = Command::new(built(&programs, "ftrun", "-p ft-apps")?);
        help.arg("--help");
        let help = children.run(help, Duration::from_secs(10))?.output;
        for example in ["examples/messages", "examples/start", "examples/raw"] {
            built(&programs, example, "-p ft-benches --examples")?;
        }
        let mpi = |prefix: &Option<PathBuf>, get| {
            let compile = |prefix: &Path| Mpi::compile(prefix, get, &SOURCES, &[], &children);
            prefix.as_deref().map(compile).transpose()
        };
        let (mpich, openmpi) = (mpi(&options.mpich, MPICH)?, mpi(&options.openmpi, OPENMPI)?);
        let wanted = &options.comm_congestion;
        let differs = *wanted != congestion::current() && congestion::is_available(wanted);
        Ok(Self {
            children,
            programs,
            chooses_transport: help.contains("--transport"),
            comm_congestion: differs.then(|| wanted.clone()),
            mpich,
            openmpi,
        })
    }

    /// The sides that can be compared.
    pub(super) fn those_there(&self) -> Vec<Side> {
        let is_there = |side: &Side| match side {
            Side::RawTcp | Side::RawUnix | Side::Comm => true,
            Side::RawTcpLikeComm => self.comm_congestion.is_some(),
            Side::CommTcp => self.chooses_transport,
            Side::Mpich | Side::MpichShared => self.mpich.is_some(),
            Side::OpenMpi | Side::OpenMpiShared => self.openmpi.is_some(),
        };
        SIDES.map(|(side, _)| side).into_iter().filter(is_there).collect()
    }

    /// Whether MPICH has the launcher whose ranks can give way to each other.
    pub(super) fn mpich_has_gforker(&self) -> bool {
        self.mpich.as_ref().is_none_or(|mpich| mpich.bin("mpiexec.gforker").exists())
    }

    /// Starts a job for all tests that are selected; `time_s` is for each.
    pub(super) fn measure(
        &self,
        job: Job,
        selection: &Selection,
        time_s: f64,
    ) -> Result<Vec<Measured>, HarnessError> {
        let (mut command, ranks) = (self.launcher(job), job.task.ranks());
        if let Task::Start(_) = job.task {
            let limit = Duration::from_secs_f64(PATIENCE_S);
            let start = |_| self.children.run(self.launcher(job), limit).map(|ended| ended.wall_s);
            let seconds: Vec<f64> = (0..STARTS).map(start).collect::<Result<_, _>>()?;
            return Ok(vec![starts(ranks, &seconds)]);
        }
        let tests = job.tests(selection);
        command.args(["-t", &time_s.to_string()]).args(tests.iter().map(ToString::to_string));
        // A batch may take as long as all were meant to, and there are five at least.
        let seconds = PATIENCE_S + tests.len() as f64 * (2.0 + 10.0 * time_s);
        let words = format!("{command:?}");
        let ended = self.children.run(command, Duration::from_secs_f64(seconds))?;
        parse(&ended.output, ranks, &tests).map_err(|why| HarnessError::Output { command: words, why })
    }

    /// The command for a job, without the tests.
    ///
    /// # Panics
    /// The side is not one of [`Sides::those_there`].
    fn launcher(&self, Job { task, side }: Job) -> Command {
        let mut command = match side {
            Side::RawTcp | Side::RawTcpLikeComm | Side::RawUnix => return self.raw(task, side),
            Side::CommTcp | Side::Comm => Command::new(self.programs.join("ftrun")),
            Side::Mpich | Side::MpichShared => self.mpich(task, side == Side::Mpich),
            Side::OpenMpi | Side::OpenMpiShared => self.openmpi(side == Side::OpenMpi),
        };
        command.args(["-n", &task.ranks().to_string()]);
        if side == Side::CommTcp {
            command.args(["--transport", "tcp"]);
        }
        let is_start = matches!(task, Task::Start(_));
        let mpi = if matches!(side, Side::Mpich | Side::MpichShared) { &self.mpich } else { &self.openmpi };
        command.arg(match (side, mpi) {
            (Side::CommTcp | Side::Comm, _) | (_, None) => {
                self.programs.join(if is_start { "examples/start" } else { "examples/messages" })
            }
            (_, Some(mpi)) => mpi.program(SOURCES[usize::from(is_start)].0),
        });
        command
    }

    fn raw(&self, task: Task, side: Side) -> Command {
        let sockets = if side == Side::RawUnix { "unix" } else { "tcp" };
        let wait = if task == Task::Pair { "spin" } else { "yield" };
        let mut command = Command::new(self.programs.join("examples/raw"));
        command.args(["-n", &task.ranks().to_string(), "--sockets", sockets, "--wait", wait]);
        if let (Side::RawTcpLikeComm, Some(name)) = (side, &self.comm_congestion) {
            command.args(["--congestion", name]);
        }
        command
    }

    fn mpich(&self, task: Task, over_tcp: bool) -> Command {
        let mpich = self.mpich.as_ref().expect("MPICH is there");
        let gforker = mpich.bin("mpiexec.gforker");
        // The other launcher gives each rank a session, hence on most systems a scheduling group of its own, in
        // which yielding gives way to nobody.
        let shares_cores = task.ranks() > 2 && over_tcp && gforker.exists();
        let mut command = Command::new(if shares_cores { gforker } else { mpich.bin("mpiexec") });
        if over_tcp {
            let tcp = [("MPIR_CVAR_NOLOCAL", "1"), ("MPIR_CVAR_CH4_NETMOD", "ofi"), ("FI_PROVIDER", "tcp")];
            command.envs(tcp);
        }
        command
    }

    fn openmpi(&self, over_tcp: bool) -> Command {
        let openmpi = self.openmpi.as_ref().expect("Open MPI is there");
        let links = if over_tcp { "tcp,self" } else { "sm,self" };
        let mut command = Command::new(openmpi.bin("mpiexec"));
        command.envs(AS_ROOT).args(["--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", links]);
        command
    }
}

fn starts(ranks: usize, seconds: &[f64]) -> Measured {
    let fold = |by: fn(f64, f64) -> f64| seconds.iter().copied().reduce(by).unwrap_or(0.0);
    Measured {
        test: START,
        ranks,
        value: Operation::Start.value(0, Spread::of(seconds.iter().copied()).median),
        p10: fold(f64::min),
        p90: fold(f64::max),
        batches: seconds.len(),
        iterations: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::super::batches::BATCHES;
    use super::super::test::{BURST, COLLECTIVES, POINT_TO_POINT, WINDOW};
    use super::*;

    fn sides() -> Sides<'static> {
        let mpi = || Some(Mpi::without_programs("/mpi/bin"));
        Sides {
            children: Children { adopts: false, is_interrupted: &|| false },
            programs: "p".into(),
            chooses_transport: true,
            comm_congestion: Some("cubic".into()),
            mpich: mpi(),
            openmpi: mpi(),
        }
    }

    #[test]
    fn commands() {
        let sides = sides();
        let line = |side, task| {
            let command = sides.launcher(Job { task, side });
            let environment = command
                .get_envs()
                .map(|(name, value)| format!("{}={} ", name.display(), value.unwrap_or_default().display()));
            let words = std::iter::once(command.get_program()).chain(command.get_args());
            let words: Vec<String> = words.map(|word| word.display().to_string()).collect();
            environment.collect::<String>() + &words.join(" ")
        };
        assert_eq!(line(Side::RawTcp, Task::Pair), "p/examples/raw -n 2 --sockets tcp --wait spin");
        assert_eq!(
            line(Side::RawTcpLikeComm, Task::Collectives(4)),
            "p/examples/raw -n 4 --sockets tcp --wait yield --congestion cubic"
        );
        assert_eq!(line(Side::CommTcp, Task::Pair), "p/ftrun -n 2 --transport tcp p/examples/messages");
        assert_eq!(line(Side::Comm, Task::Start(16)), "p/ftrun -n 16 p/examples/start");
        let tuned = "FI_PROVIDER=tcp MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1 /mpi/bin/mpiexec -n 2 ";
        assert!(line(Side::Mpich, Task::Pair).starts_with(tuned));
        assert!(line(Side::MpichShared, Task::Start(4)).starts_with("/mpi/bin/mpiexec -n 4 /"));
        assert!(line(Side::MpichShared, Task::Start(4)).ends_with("/mpi_hello"));
        let shared = line(Side::OpenMpiShared, Task::Collectives(8));
        assert!(shared.contains(" --oversubscribe --mca pml ob1 --mca btl sm,self -n 8 "), "{shared}");
        assert!(shared.ends_with("/mpi_messages"), "{shared}");
    }

    /// What it says is checked when it runs; this finds a test that was added on one side only.
    #[test]
    fn mpi_has_the_same_tests() {
        let source = SOURCES[0].1;
        let tests = POINT_TO_POINT.iter().chain(&COLLECTIVES);
        let tests = tests.filter(|test| test.operation != Operation::RateCoalesced);
        let names: Vec<String> = tests.map(|test| test.operation.to_string()).collect();
        let rows = source.lines().filter_map(|line| line.strip_prefix("    {\""));
        let theirs: Vec<&str> = rows.filter_map(|row| Some(row.split_once('"')?.0)).collect();
        assert_eq!(theirs, names);
        assert!(source.contains(&format!("WINDOW = {WINDOW}, BURST = {BURST}, BATCHES = {BATCHES},")));
    }

    #[test]
    fn sides_that_are_there() {
        let mut sides = sides();
        assert_eq!(sides.those_there(), SIDES.map(|(side, _)| side));
        (sides.chooses_transport, sides.comm_congestion) = (false, None);
        (sides.mpich, sides.openmpi) = (None, None);
        assert_eq!(sides.those_there(), [Side::RawTcp, Side::RawUnix, Side::Comm]);
    }

    #[test]
    fn starts_have_a_median() {
        let measured = starts(4, &[0.3, 0.1, 0.2, 0.9, 0.2]);
        assert_eq!((measured.test, measured.ranks, measured.batches), (START, 4, 5));
        assert_eq!((measured.p10, measured.value, measured.p90), (0.1, 0.2, 0.9));
    }
}
