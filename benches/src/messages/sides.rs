//! How each side is started, and tuned as its makers would have it: what it needs to use TCP although all ranks are on
//! one host, and to give way when they share cores.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::case::{Job, Room, START, Task};
use super::measured::{Measured, parse};
use super::side::{SIDES, Side};
use super::test::Selection;
use super::{Options, congestion};
use crate::comparison::{Compiled, Watch, built, folder};
use crate::mpi::{AS_ROOT, Library, MPICH, Mpi, OPENMPI};
use ft_comm::transport::ENV_TRANSPORT;
use ft_tools::harness::{Children, HarnessError};
use ft_tools::recovery::Spread;

/// The tests in C.
const TESTS: (&str, &str) = ("messages.h", include_str!("../../peers/messages.h"));
/// Programs of MPI, with the names that they have while they are measured.
const SOURCES: [(&str, &str); 3] = [
    TESTS,
    ("mpi_messages", include_str!("../../peers/mpi_messages.c")),
    ("mpi_hello", include_str!("../../peers/mpi_hello.c")),
];
/// The program of shared memory alone.
const MEMORY: &str = "raw_memory";
const MEMORY_SOURCES: [(&str, &str); 2] = [TESTS, (MEMORY, include_str!("../../peers/raw_memory.c"))];
/// Starts of each side in one round when the start itself is timed; their median is one process start.
const STARTS: usize = 5;
/// The launcher of MPICH whose ranks can give way to each other.
const GFORKER: &str = "mpiexec.gforker";
/// Longest time of a program whatever it does.
const PATIENCE_S: f64 = 30.0;

/// The programs of all sides.
pub(super) struct Sides<'a> {
    children: Children<'a>,
    programs: PathBuf,
    cores: usize,
    /// What carries the messages of the side that has the choice; none: the launcher chooses.
    transport: Option<String>,
    /// The congestion control of `ft-comm`, where sockets under it differ from those of the system.
    comm_congestion: Option<String>,
    memory: Option<Compiled>,
    mpich: Option<Mpi>,
    openmpi: Option<Mpi>,
    /// Which are missing, and why.
    pub(super) left_out: Vec<String>,
}

impl<'a> Sides<'a> {
    /// Finds the own programs, compiles the others. From now on the calling process adopts orphans among its descendants, and after
    /// each run all its children are ended.
    ///
    /// # Errors
    /// An own one is missing, or one that was asked for; the text says how to get it.
    pub(super) fn find(options: &Options, watch: &Watch<'a>) -> Result<Self, HarnessError> {
        let children = Children::adopting(watch.is_interrupted);
        let programs = folder()?;
        built(&programs, "ftrun", "-p ft-apps")?;
        for example in ["examples/messages", "examples/start", "examples/raw"] {
            built(&programs, example, "-p ft-benches --examples")?;
        }
        let mpich = match &options.mpich {
            Some(prefix) => Ok(Mpi::compile(prefix, MPICH, &SOURCES, &[], &children)?),
            None => Mpi::found(Library::Mpich, &SOURCES, &children),
        };
        let openmpi = match &options.openmpi {
            Some(prefix) => Ok(Mpi::compile(prefix, OPENMPI, &SOURCES, &[], &children)?),
            None => Mpi::found(Library::OpenMpi, &SOURCES, &children),
        };
        let memory = Compiled::new("cc".as_ref(), &MEMORY_SOURCES, &[], &children);
        let wanted = &options.comm_congestion;
        let differs = *wanted != congestion::current() && congestion::is_available(wanted);
        let mut left_out = Vec::new();
        let sides = Self {
            memory: or_say(memory, "Shared memory alone", &mut left_out)?,
            mpich: or_say(mpich, Library::Mpich.name(), &mut left_out)?,
            openmpi: or_say(openmpi, Library::OpenMpi.name(), &mut left_out)?,
            children,
            programs,
            cores: watch.machine.cores,
            transport: options.transport.clone().or_else(|| std::env::var(ENV_TRANSPORT).ok()),
            comm_congestion: differs.then(|| wanted.clone()),
            left_out,
        };
        // An ftrun that does not know the transport says so.
        let known = sides.launcher(Job { task: Task::Start(2), side: Side::Comm });
        sides.children.run(known, Duration::from_secs_f64(PATIENCE_S))?;
        Ok(sides)
    }

    /// The sides that can be compared.
    pub(super) fn those_there(&self) -> Vec<Side> {
        let is_there = |side: &Side| match side {
            Side::RawTcp | Side::RawTcpOneCore | Side::RawUnix | Side::Comm | Side::CommTcp => true,
            Side::RawTcpLikeComm => self.comm_congestion.is_some(),
            Side::RawMemory => self.memory.is_some(),
            Side::Mpich | Side::MpichShared => self.mpich.is_some(),
            Side::OpenMpi | Side::OpenMpiShared => self.openmpi.is_some(),
        };
        SIDES.map(|(side, _)| side).into_iter().filter(is_there).collect()
    }

    /// What is compared, with versions.
    pub(super) fn words(&self) -> String {
        let own = self.transport.as_deref().unwrap_or("as ftrun chooses");
        let libraries = [(Library::Mpich, &self.mpich), (Library::OpenMpi, &self.openmpi)];
        let word = |(library, mpi): (Library, &Option<Mpi>)| {
            Some(format!("; {} {}", library.name(), mpi.as_ref()?.version(&self.children)))
        };
        let libraries: String = libraries.into_iter().filter_map(word).collect();
        format!("transport of comm: {own}{libraries}")
    }

    /// What bounds the ranks of a side.
    pub(super) fn room(&self) -> Room {
        let mpich_yields = self.mpich.as_ref().is_some_and(|mpich| mpich.beside(GFORKER).exists());
        Room { cores: self.cores, mpich_yields }
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
        let tests = job.tests(selection, self.room());
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
        let (mut command, mpi) = match side {
            Side::RawTcp | Side::RawTcpLikeComm | Side::RawTcpOneCore | Side::RawUnix | Side::RawMemory => {
                return self.raw(task, side);
            }
            Side::CommTcp | Side::Comm => (Command::new(self.programs.join("ftrun")), None),
            Side::Mpich | Side::MpichShared => (self.mpich(task, side == Side::Mpich), self.mpich.as_ref()),
            Side::OpenMpi | Side::OpenMpiShared => {
                (self.openmpi(side == Side::OpenMpi), self.openmpi.as_ref())
            }
        };
        command.args(["-n", &task.ranks().to_string()]);
        match (side, &self.transport) {
            (Side::CommTcp, _) => command.args(["--transport", "tcp"]),
            (Side::Comm, Some(transport)) => command.args(["--transport", transport]),
            _ => &mut command,
        };
        let (own, theirs) = match task {
            Task::Start(_) => ("examples/start", "mpi_hello"),
            _ => ("examples/messages", "mpi_messages"),
        };
        command.arg(mpi.map_or_else(|| self.programs.join(own), |mpi| mpi.program(theirs)));
        command
    }

    fn raw(&self, task: Task, side: Side) -> Command {
        if let (Side::RawMemory, Some(memory)) = (side, &self.memory) {
            let mut command = Command::new(memory.program(MEMORY));
            command.args(["-n", &task.ranks().to_string()]);
            return command;
        }
        let sockets = if side == Side::RawUnix { "unix" } else { "tcp" };
        let wait = match (side, task) {
            (Side::RawTcpOneCore, _) => "share",
            (_, Task::Pair) => "spin",
            _ => "yield",
        };
        let mut command = Command::new(self.programs.join("examples/raw"));
        command.args(["-n", &task.ranks().to_string(), "--sockets", sockets, "--wait", wait]);
        if let (Side::RawTcpLikeComm | Side::RawTcpOneCore, Some(name)) = (side, &self.comm_congestion) {
            command.args(["--congestion", name]);
        }
        command
    }

    fn mpich(&self, task: Task, over_tcp: bool) -> Command {
        let mpich = self.mpich.as_ref().expect("MPICH is there");
        let gforker = mpich.beside(GFORKER);
        // The other launcher gives each rank a session, hence on most systems a scheduling group of its own, in
        // which yielding gives way to nobody.
        let shares_cores = task.ranks() > 2 && over_tcp && gforker.exists();
        let mut command = Command::new(if shares_cores { &gforker } else { mpich.launcher() });
        if over_tcp {
            // The last one is for libraries that were made with UCX alone.
            command.envs([
                ("MPIR_CVAR_NOLOCAL", "1"),
                ("MPIR_CVAR_CH4_NETMOD", "ofi"),
                ("FI_PROVIDER", "tcp"),
                ("UCX_TLS", "tcp,self"),
            ]);
        }
        command
    }

    fn openmpi(&self, over_tcp: bool) -> Command {
        let openmpi = self.openmpi.as_ref().expect("Open MPI is there");
        let links = if over_tcp { "tcp,self" } else { "sm,self" };
        let mut command = Command::new(openmpi.launcher());
        command.envs(AS_ROOT).args(["--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", links]);
        command
    }
}

/// What is there; what is not is said, unless the user wants an end.
fn or_say<T>(
    found: Result<T, HarnessError>,
    name: &str,
    left_out: &mut Vec<String>,
) -> Result<Option<T>, HarnessError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(HarnessError::Interrupted) => Err(HarnessError::Interrupted),
        Err(why) => {
            left_out.push(format!("{name} was not measured: {why}."));
            Ok(None)
        }
    }
}

fn starts(ranks: usize, seconds: &[f64]) -> Measured {
    let fold = |by: fn(f64, f64) -> f64| seconds.iter().copied().reduce(by).unwrap_or(0.0);
    Measured {
        test: START,
        ranks,
        value: START.value(Spread::of(seconds.iter().copied()).median),
        p10: fold(f64::min),
        p90: fold(f64::max),
        batches: seconds.len(),
        iterations: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::super::batches::BATCHES;
    use super::super::test::{BURST, COLLECTIVES, Operation, POINT_TO_POINT, SUMS, WINDOW};
    use super::*;

    fn sides() -> Sides<'static> {
        let mpi = || Some(Mpi::without_programs("/mpi/bin"));
        let children = Children { adopts: false, is_interrupted: &|| false };
        Sides {
            memory: Compiled::new("cc".as_ref(), &[], &[], &children).ok(),
            children,
            programs: "p".into(),
            cores: 2,
            transport: None,
            comm_congestion: Some("cubic".into()),
            mpich: mpi(),
            openmpi: mpi(),
            left_out: vec![],
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
        assert!(line(Side::RawMemory, Task::Pair).ends_with("/raw_memory -n 2"));
        let tuned = "FI_PROVIDER=tcp MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1 UCX_TLS=tcp,self /mpi/bin/mpiexec -n 2 ";
        assert!(line(Side::Mpich, Task::Pair).starts_with(tuned));
        assert!(line(Side::MpichShared, Task::Start(4)).starts_with("/mpi/bin/mpiexec -n 4 /"));
        assert!(line(Side::MpichShared, Task::Start(4)).ends_with("/mpi_hello"));
        let shared = line(Side::OpenMpiShared, Task::Collectives(8));
        assert!(shared.contains(" --oversubscribe --mca pml ob1 --mca btl sm,self -n 8 "), "{shared}");
        assert!(shared.ends_with("/mpi_messages"), "{shared}");
        let chosen = Sides { transport: Some("unix".into()), ..self::sides() };
        let line = |side| format!("{:?}", chosen.launcher(Job { task: Task::Pair, side }));
        assert!(line(Side::Comm).contains(r#""--transport" "unix""#), "{}", line(Side::Comm));
        assert!(line(Side::CommTcp).contains(r#""--transport" "tcp""#));
    }

    /// What it says is checked when it runs; this finds a test that was added on one side only.
    #[test]
    fn c_has_the_same_tests() {
        let (_, source) = TESTS;
        let tests = POINT_TO_POINT.iter().chain(&COLLECTIVES);
        let tests = tests.filter(|test| test.operation != Operation::RateCoalesced);
        let names: Vec<String> = tests.map(|test| test.operation.to_string()).collect();
        let rows = source.lines().filter_map(|line| line.strip_prefix("    {\""));
        let theirs: Vec<&str> = rows.filter_map(|row| Some(row.split_once('"')?.0)).collect();
        assert_eq!(theirs, names);
        let numbers = format!("WINDOW = {WINDOW}, BURST = {BURST}, SUMS = {SUMS}, BATCHES = {BATCHES},");
        assert!(source.contains(&numbers), "{numbers}");
    }

    #[test]
    fn sides_that_are_there() {
        let mut sides = sides();
        assert_eq!(sides.those_there(), SIDES.map(|(side, _)| side));
        (sides.comm_congestion, sides.memory, sides.mpich, sides.openmpi) = (None, None, None, None);
        assert_eq!(
            sides.those_there(),
            [Side::RawTcp, Side::RawTcpOneCore, Side::RawUnix, Side::CommTcp, Side::Comm]
        );
    }

    #[test]
    fn what_is_missing_is_said_and_left_out() {
        let mut left_out = vec![];
        assert!(matches!(or_say(Ok(3), "cc", &mut left_out), Ok(Some(3))) && left_out.is_empty());
        let gone = || Err::<(), _>(HarnessError::Folder("gone".into()));
        assert!(matches!(or_say(gone(), "MPICH", &mut left_out), Ok(None)));
        assert_eq!(left_out, ["MPICH was not measured: gone."]);
        let ended = or_say::<()>(Err(HarnessError::Interrupted), "MPICH", &mut left_out);
        assert!(matches!(ended, Err(HarnessError::Interrupted)));
    }

    #[test]
    fn starts_have_a_median() {
        let measured = starts(4, &[0.3, 0.1, 0.2, 0.9, 0.2]);
        assert_eq!((measured.test, measured.ranks, measured.batches), (START, 4, 5));
        assert_eq!((measured.p10, measured.value, measured.p90), (0.1, 0.2, 0.9));
    }
}
