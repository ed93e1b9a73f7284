//! How each side is started, and tuned as its makers would have it: what it needs to use TCP although all ranks are on
//! one host, and to give way when they share cores.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::congestion;
use super::plan::{Order, Run, Task};
use super::side::{SIDES, Side};
use crate::mpi::{AS_ROOT, Mpi, there};
use ft_tools::harness::{Children, HarnessError};

/// Programs of MPI, with the names that they have while they are measured.
const SOURCES: [(&str, &str); 2] = [
    ("mpi_messages", include_str!("../../peers/mpi_messages.c")),
    ("mpi_hello", include_str!("../../peers/mpi_hello.c")),
];

/// The programs of all sides.
pub(crate) struct Programs {
    ftrun: PathBuf,
    messages: PathBuf,
    start: PathBuf,
    raw: PathBuf,
    /// Whether the launcher can be told to use TCP.
    chooses_transport: bool,
    /// Whether sockets under the congestion control of `ft-comm` differ from those of the system.
    comm_congestion: Option<String>,
    mpich: Option<Mpi>,
    openmpi: Option<Mpi>,
}

impl Programs {
    /// Finds the own programs, compiles those of MPI.
    ///
    /// # Errors
    /// One is missing; the text says how to get it.
    pub(crate) fn find(order: &Order, children: &Children<'_>) -> Result<Self, HarnessError> {
        let built = |name: &str, with: &str| {
            let path = order.programs.join(name);
            let remedy = || format!("`cargo build --release {with}` makes it");
            there(path, remedy)
        };
        let ftrun = built("ftrun", "-p ft-apps")?;
        let example = |name: &str| built(&format!("examples/{name}"), "-p ft-benches --examples");
        let mut help = Command::new(&ftrun);
        help.arg("--help");
        let help = children.run(help, Duration::from_secs(10))?.output;
        let mpi = |prefix: &Option<PathBuf>, get: &str| match prefix {
            None => Ok(None),
            Some(prefix) => Mpi::compile(prefix, get, &SOURCES, children).map(Some),
        };
        let wanted = &order.comm_congestion;
        let differs = *wanted != congestion::current() && congestion::is_available(wanted);
        Ok(Self {
            ftrun,
            messages: example("messages")?,
            start: example("start")?,
            raw: example("raw")?,
            chooses_transport: help.contains("--transport"),
            comm_congestion: differs.then(|| wanted.clone()),
            mpich: mpi(&order.mpich, "mpich")?,
            openmpi: mpi(&order.openmpi, "openmpi")?,
        })
    }

    /// The sides that can be compared.
    pub(crate) fn sides(&self) -> Vec<Side> {
        let is_there = |side: &Side| match side {
            Side::RawTcp | Side::RawUnix | Side::Comm => true,
            Side::RawTcpLikeComm => self.comm_congestion.is_some(),
            Side::CommTcp => self.chooses_transport,
            Side::Mpich | Side::MpichShared => self.mpich.is_some(),
            Side::OpenMpi | Side::OpenMpiShared => self.openmpi.is_some(),
        };
        SIDES.into_iter().filter(is_there).collect()
    }

    /// Whether MPICH has the launcher whose ranks can give way to each other.
    pub(crate) fn mpich_has_gforker(&self) -> bool {
        self.mpich.as_ref().is_none_or(|mpich| mpich.bin("mpiexec.gforker").exists())
    }

    /// The command for a run, without the tests.
    ///
    /// # Panics
    /// The side is not one of [`Programs::sides`].
    fn launcher(&self, side: Side, task: Task) -> Command {
        let n = task.ranks().to_string();
        let is_start = matches!(task, Task::Start(_));
        match side {
            Side::RawTcp | Side::RawTcpLikeComm | Side::RawUnix => {
                let sockets = if side == Side::RawUnix { "unix" } else { "tcp" };
                let wait = if task == Task::Pair { "spin" } else { "yield" };
                let mut command = Command::new(&self.raw);
                command.args(["-n", &n, "--sockets", sockets, "--wait", wait]);
                if let (Side::RawTcpLikeComm, Some(name)) = (side, &self.comm_congestion) {
                    command.args(["--congestion", name]);
                }
                command
            }
            Side::CommTcp | Side::Comm => {
                let mut command = Command::new(&self.ftrun);
                command.args(["-n", &n]);
                if side == Side::CommTcp {
                    command.args(["--transport", "tcp"]);
                }
                command.arg(if is_start { &self.start } else { &self.messages });
                command
            }
            Side::Mpich | Side::MpichShared => {
                let mpich = self.mpich.as_ref().expect("MPICH is there");
                let gforker = mpich.bin("mpiexec.gforker");
                // The other launcher gives each rank a session, hence on most systems a scheduling group of its own, in
                // which yielding gives way to nobody.
                let shares_cores = task.ranks() > 2 && side == Side::Mpich && gforker.exists();
                let mut command = Command::new(if shares_cores { gforker } else { mpich.bin("mpiexec") });
                if side == Side::Mpich {
                    command.envs([
                        ("MPIR_CVAR_NOLOCAL", "1"),
                        ("MPIR_CVAR_CH4_NETMOD", "ofi"),
                        ("FI_PROVIDER", "tcp"),
                    ]);
                }
                command.args(["-n", &n]).arg(mpi_program(mpich, is_start));
                command
            }
            Side::OpenMpi | Side::OpenMpiShared => {
                let openmpi = self.openmpi.as_ref().expect("Open MPI is there");
                let links = if side == Side::OpenMpi { "tcp,self" } else { "sm,self" };
                let mut command = Command::new(openmpi.bin("mpiexec"));
                command.envs(AS_ROOT);
                command.args(["--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", links, "-n", &n]);
                command.arg(mpi_program(openmpi, is_start));
                command
            }
        }
    }

    /// The command for a run.
    pub(crate) fn command(&self, run: &Run, time_s: f64) -> Command {
        let mut command = self.launcher(run.side, run.task);
        if !matches!(run.task, Task::Start(_)) {
            command.args(["-t", &time_s.to_string()]).args(run.tests.iter().map(ToString::to_string));
        }
        command
    }
}

fn mpi_program(mpi: &Mpi, is_start: bool) -> PathBuf {
    mpi.program(if is_start { "mpi_hello" } else { "mpi_messages" })
}

#[cfg(test)]
mod tests {
    use super::super::batches::BATCHES;
    use super::super::plan::START;
    use super::super::test::{BURST, COLLECTIVES, Operation, POINT_TO_POINT, Test, WINDOW};
    use super::*;

    fn programs() -> Programs {
        let mpi = || Some(Mpi::without_programs("/mpi/bin"));
        Programs {
            ftrun: "ftrun".into(),
            messages: "messages".into(),
            start: "start".into(),
            raw: "raw".into(),
            chooses_transport: true,
            comm_congestion: Some("cubic".into()),
            mpich: mpi(),
            openmpi: mpi(),
        }
    }

    fn line(programs: &Programs, side: Side, task: Task) -> String {
        let tests = match task {
            Task::Start(_) => vec![START],
            _ => vec![Test { operation: Operation::Barrier, bytes: 0 }],
        };
        let command = programs.command(&Run { round: 0, side, task, tests }, 0.1);
        let environment = command
            .get_envs()
            .map(|(name, value)| format!("{}={} ", name.display(), value.unwrap_or_default().display()));
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<String> = words.map(|word| word.display().to_string()).collect();
        environment.collect::<String>() + &words.join(" ")
    }

    #[test]
    fn commands() {
        let programs = programs();
        let line = |side, task| line(&programs, side, task);
        assert_eq!(line(Side::RawTcp, Task::Pair), "raw -n 2 --sockets tcp --wait spin -t 0.1 barrier:0");
        assert_eq!(
            line(Side::RawTcpLikeComm, Task::Collectives(4)),
            "raw -n 4 --sockets tcp --wait yield --congestion cubic -t 0.1 barrier:0"
        );
        assert_eq!(line(Side::CommTcp, Task::Pair), "ftrun -n 2 --transport tcp messages -t 0.1 barrier:0");
        assert_eq!(line(Side::Comm, Task::Start(16)), "ftrun -n 16 start");
        let tuned = "FI_PROVIDER=tcp MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1 /mpi/bin/mpiexec -n 2 ";
        assert!(line(Side::Mpich, Task::Pair).starts_with(tuned));
        assert!(line(Side::MpichShared, Task::Start(4)).starts_with("/mpi/bin/mpiexec -n 4 /"));
        assert!(line(Side::MpichShared, Task::Start(4)).ends_with("/mpi_hello"));
        let shared = line(Side::OpenMpiShared, Task::Collectives(8));
        assert!(shared.contains(" --oversubscribe --mca pml ob1 --mca btl sm,self -n 8 "), "{shared}");
        assert!(shared.ends_with("/mpi_messages -t 0.1 barrier:0"), "{shared}");
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
        let mut programs = programs();
        assert_eq!(programs.sides(), SIDES);
        programs.chooses_transport = false;
        programs.comm_congestion = None;
        (programs.mpich, programs.openmpi) = (None, None);
        assert_eq!(programs.sides(), [Side::RawTcp, Side::RawUnix, Side::Comm]);
    }
}
