//! What is to be launched, and how it ended.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::cluster::Cluster;
use super::desk::Desk;
use super::ledger::{Failure, LastAccount, SavedFiles};
use super::mpirun::MpiTask;
use ft_comm::binding::Binding;
use ft_comm::limits;
use ft_comm::transport::{Carrier, Waiting};
use ft_proto::arbiter::Config;
use ft_proto::fault::SlowSpec;
use rustix::process::Signal;

/// What is to be launched.
#[derive(Debug)]
pub struct JobSpec {
    /// The program of every rank: the file of this process, by the path that others see.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// The program that each rank becomes ([`become_program`](super::become_program)), if it does.
    /// It is held open, so that a replacement runs the same file even if another one has taken its
    /// path.
    pub executable: Option<PathBuf>,
    /// The same on other hosts, if they are elsewhere than on this one.
    pub elsewhere: Option<Elsewhere>,
    /// The one argument with which the same program calls [`agent`](super::agent), on other hosts: a plain word.
    pub agent: &'static str,
    /// The number of its build, by which agents tell whether theirs is the same; 0: it is not known, and no agent is refused.
    pub build: u32,
    /// The first argument with which it calls [`guard`](super::guard), with the second; likewise.
    pub guardian: &'static str,
    /// What all of them find in their environment beside what the launcher has there, on other hosts too.
    pub environment: Vec<(String, String)>,
    /// Where the ranks run.
    pub cluster: Cluster,
    /// The job.
    pub config: Config,
    /// Standard output of the ranks goes to standard error, as the launcher's own is kept for a report.
    pub output_to_stderr: bool,
    /// How output of the ranks is put together.
    pub output: OutputForm,
    /// The ranks that get standard input of the launcher.
    pub input: StandardInput,
    /// What carries the links between ranks.
    pub carrier: Carrier,
    /// Which of the processes this is that `mpirun` has started, if they are the ranks ([`Carrier::Mpi`]): the first.
    pub task: Option<MpiTask>,
    /// What is sent between hosts may be read on the way; it is authenticated all the same.
    pub plain: bool,
    /// Each host keeps memory for its ranks that outlives their processes.
    pub keeps_memory: bool,
    /// How blocked callers wait.
    pub waiting: Waiting,
    /// Whether ranks are bound to cores.
    pub binding: Binding,
    /// Links that are slow.
    pub slow: Vec<SlowSpec>,
    /// How long the job may take; then it is ended.
    pub limit: Option<Duration>,
    /// Its ranks write checkpoints to files when they are asked to: SIGUSR1 asks them, and so do
    /// SIGINT, SIGTERM and SIGHUP, which end the job when they have answered, or have not for so
    /// long.
    pub saves: Option<Duration>,
    /// Where others ask how the job is.
    pub desk: Desk,
}

/// How output of several ranks is put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputForm {
    /// Lines stay whole.
    Lines,
    /// The same, and each line is prefixed with its rank.
    Tagged,
    /// Bytes pass unchanged, as soon as they are read.
    Raw,
}

/// The ranks that get standard input of the launcher. Others read an empty one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StandardInput {
    /// Rank 0 if it runs on the host of the launcher, or if standard input is a terminal. So the
    /// launcher itself takes nothing of what it shares with others, such as the list of a loop in a
    /// script.
    #[default]
    FirstHere,
    /// None.
    None,
    /// Rank 0, wherever it runs.
    First,
    /// All, each of them all of it. The launcher keeps what was read, for processes that replace
    /// others.
    All,
}

/// What ranks on other hosts run.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    /// As [`JobSpec::program`].
    pub program: PathBuf,
    /// As [`JobSpec::args`].
    pub args: Vec<OsString>,
    /// As [`JobSpec::executable`].
    pub executable: Option<PathBuf>,
}

impl JobSpec {
    /// What ranks on other hosts run.
    pub(super) fn elsewhere(&self) -> Elsewhere {
        self.elsewhere.clone().unwrap_or_else(|| Elsewhere {
            program: self.program.clone(),
            args: self.args.clone(),
            executable: self.executable.clone(),
        })
    }
}

/// How a job ended.
#[derive(Debug)]
pub struct Ending {
    /// The identity of the job, as its ranks know it by [`World::job`](ft_comm::World::job).
    pub job: String,
    /// Exit status.
    pub code: i32,
    /// Cause, empty if all went well.
    pub message: String,
    /// What the ranks reported when they were done, by rank; empty if the job did not get there.
    pub outputs: Vec<Vec<u8>>,
    /// What processes had said that did not come to that: those that were lost, and all if the job did not get there.
    pub accounts: Vec<LastAccount>,
    /// Failures and repairs.
    pub failures: Vec<Failure>,
    /// Positions of injected failures that did not fire, kills before cuts.
    pub unfired: Vec<usize>,
    /// Spares that have taken a rank.
    pub spares_used: u32,
    /// Random kills that had to wait until redundancy was whole again.
    pub postponed: u32,
    /// Connections of strangers that were refused, by the launcher and by ranks.
    pub strangers: u64,
    /// Checkpoints in files.
    pub saved: SavedFiles,
    /// Hosts that were lost and have come back, and how often.
    pub hosts_back: BTreeMap<String, u32>,
    /// Hosts that got another agent in the place of one that had died, and how often.
    pub agents_back: BTreeMap<String, u32>,
    /// How often all ranks have made progress that no failure would undo.
    pub marks: u64,
    /// Wall time.
    pub elapsed: Duration,
}

impl Ending {
    /// Whether all ranks came to the end of their work.
    pub fn has_result(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// Whether somebody has told the launcher to end it (SIGTERM), such as a batch system.
    pub fn is_terminated(&self) -> bool {
        self.code == 128 + Signal::TERM.as_raw()
    }
}

/// The job could not be launched.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A program could not be started.
    #[error("cannot start {}: {why}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Why, and on which host if it is another one.
        why: String,
    },
    /// Nothing can be started on a host.
    #[error("cannot start anything on host {host}: {why} (command: {command})")]
    Host {
        /// The host.
        host: String,
        /// The command that was to start an agent there.
        command: String,
        /// What came of it.
        why: String,
    },
    /// The operating system lets nobody come to the launcher.
    #[error("the launcher cannot take connections: {}", limits::explain(.0))]
    Connections(std::io::Error),
    /// The operating system does not let the launcher signal its processes or wait for them.
    #[error("the launcher cannot look after its processes: {}", limits::explain(.0))]
    Processes(std::io::Error),
    /// The operating system refuses something that the launcher needs.
    #[error("cannot set up the job: {}", limits::explain(.0))]
    System(#[from] std::io::Error),
}
