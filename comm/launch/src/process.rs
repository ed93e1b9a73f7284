//! Starting, signalling and ending processes of this host.
//!
//! Every process leads a process group of its own, so that a signal of the terminal reaches the launcher
//! only and a kill reaches the children of a rank too. It stays in the launcher's session: a session of its
//! own would put it into a scheduler group of its own, where yielding to the other ranks has no effect.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Error;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::{Errno, FdFlags};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions};
use serde::{Deserialize, Serialize};

use super::executable::SELF;
use super::signals::{bell, rang, reset_signals};
use super::standing;
use ft_comm::binding;
use ft_comm::time::Clock;
use ft_comm::transport::timespec;
use ft_proto::arbiter::Exit;

/// How long processes are given to end by themselves when the job is over.
pub(super) const GRACE: Duration = Duration::from_millis(500);
/// Environment of every process that is started here: the number of the process that has started it.
const ENV_PARENT: &str = "FTRUN_PARENT";

/// Settings of glibc; others ignore it.
const ENV_TUNABLES: &str = "GLIBC_TUNABLES";
/// Large pieces of memory ask for huge pages: the states of ranks are large, most of a restore is memory that is touched for
/// the first time, and a process with fewer pages is gone sooner.
const HUGE_PAGES: &str = "glibc.malloc.hugetlb";

/// The tunables of a rank whose launcher has `given` ones, which count if they say something of huge pages themselves.
fn tunables(given: Option<String>) -> String {
    match given {
        Some(given) if given.contains(HUGE_PAGES) => given,
        Some(given) if !given.is_empty() => format!("{given}:{HUGE_PAGES}=1"),
        _ => format!("{HUGE_PAGES}=1"),
    }
}

/// What is to be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) program: OsString,
    /// The program is this one, whatever has become of the file that has its name.
    pub(super) is_self: bool,
    pub(super) args: Vec<OsString>,
    /// What it finds in its environment beside what is there anyway.
    pub(super) environment: Vec<(String, String)>,
}

/// What a process begins with: standard input, output and error, and files that it inherits, of which its environment has the numbers
/// under these names.
#[derive(Debug)]
pub(super) struct Files<F> {
    pub(super) streams: [F; 3],
    pub(super) inherited: Vec<(String, F)>,
}

impl Files<OwnedFd> {
    /// All of them, the streams first.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.streams.iter().chain(self.inherited.iter().map(|(_, file)| file)).map(AsFd::as_fd)
    }
}

/// Variables of an environment.
pub(super) type Variables = Vec<(OsString, OsString)>;

#[derive(Debug)]
pub(super) struct Process {
    /// Its number.
    id: u32,
    /// None if it is the child of another process, which waits for it.
    child: Option<Child>,
    /// It was stopped when it was last asked for its state.
    stopped: bool,
    /// `/proc/PID/stat`, where the status of a dying process can be read before it can be waited for.
    stat: Option<File>,
}

/// What a process does now that it did not do before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Change {
    /// Nothing: a signal has stopped it.
    Stopped,
    /// A signal has ended its stop.
    GoesOn,
    /// It has ended, and is to be reaped.
    Ended(Exit),
}

/// Starts a process as a child of this one, in `folder` and with the environment `base` if these are not to be those of this process.
///
/// # Errors
/// The operating system refuses.
pub(super) fn start(
    order: &Order,
    files: Files<OwnedFd>,
    base: Option<&Variables>,
    folder: Option<&OsStr>,
) -> std::io::Result<Process> {
    let mut command = Command::new(if order.is_self { OsStr::new(SELF) } else { &order.program });
    command.arg0(&order.program);
    let mut given = std::env::var_os(ENV_TUNABLES);
    if let Some(base) = base {
        command.env_clear().envs(base.iter().map(|(name, value)| (name, value)));
        given = base.iter().find(|(name, _)| name == ENV_TUNABLES).map(|(_, value)| value.clone());
    }
    folder.into_iter().for_each(|folder| _ = command.current_dir(folder));
    standing::names().for_each(|name| _ = command.env_remove(name));
    command
        .args(&order.args)
        .envs(order.environment.iter().map(|(name, value)| (name, value)))
        .env(ENV_PARENT, std::process::id().to_string())
        .env(ENV_TUNABLES, tunables(given.and_then(|given| given.into_string().ok())));
    for (name, file) in &files.inherited {
        rustix::io::fcntl_setfd(file, FdFlags::empty())?;
        command.env(name, file.as_raw_fd().to_string());
    }
    let [stdin, stdout, stderr] = files.streams;
    let child = command.stdin(stdin).stdout(stdout).stderr(stderr).process_group(0).spawn()?;
    Ok(Process::new(child.id(), Some(child)))
}

impl Process {
    fn new(id: u32, child: Option<Child>) -> Self {
        let stat = File::open(format!("/proc/{id}/stat")).ok();
        Self { id, child, stopped: false, stat }
    }

    /// One that was started by another process, and is not reaped before that is told to.
    pub(super) fn of_another(id: u32) -> Self {
        Self::new(id, None)
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.id).ok().and_then(Pid::from_raw)
    }

    /// Its number.
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// Runs it on these cores from now on.
    pub(super) fn bind(&self, cores: &str) {
        self.pid().into_iter().for_each(|pid| binding::bind(Some(pid), cores));
    }

    /// Sends a signal to the process and its children. It was not reaped yet, so its number is its own.
    ///
    /// # Errors
    /// The operating system does not permit it.
    pub(super) fn signal(&self, signal: Signal) -> std::io::Result<()> {
        let Some(pid) = self.pid() else { return Ok(()) };
        match rustix::process::kill_process_group(pid, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(named("a signal to a process", error)),
        }
    }

    /// Sends a signal to the process, but not to its children.
    ///
    /// # Errors
    /// The operating system does not permit it, or the process is gone.
    pub(super) fn signal_alone(&self, signal: Signal) -> std::io::Result<()> {
        let Some(pid) = self.pid() else { return Ok(()) };
        Ok(rustix::process::kill_process(pid, signal)?)
    }

    /// What has become of a child, if that is something else than when it was last asked. Its end is told until it is reaped.
    ///
    /// # Errors
    /// The operating system does not tell.
    pub(super) fn change(&mut self) -> std::io::Result<Option<Change>> {
        let Some(pid) = self.pid() else { return Ok(None) };
        let kinds = WaitIdOptions::EXITED | WaitIdOptions::STOPPED;
        let look = kinds | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let state = match rustix::process::waitid(WaitId::Pid(pid), look) {
            Ok(state) => state,
            Err(Errno::INTR) => return Ok(None),
            Err(error) => return Err(named("waiting for a process", error)),
        };
        if let Some(exit) = state.as_ref().and_then(exit_of) {
            return Ok(Some(Change::Ended(exit)));
        }
        let stopped = state.is_some();
        let is_new = std::mem::replace(&mut self.stopped, stopped) != stopped;
        Ok(is_new.then_some(if stopped { Change::Stopped } else { Change::GoesOn }))
    }

    /// A field of `/proc/PID/stat`, by its number in proc(5), from 3.
    fn field(&self, number: usize) -> Option<String> {
        let mut text = [0; 1024];
        let count = self.stat.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = String::from_utf8_lossy(&text[..count]);
        // The name of the program may have anything in it, but comes before the last parenthesis.
        let (_, fields) = text.rsplit_once(')')?;
        fields.split_whitespace().nth(number - 3).map(str::to_owned)
    }

    /// Returns `true` if a signal or a debugger has stopped the process.
    pub(super) fn is_stopped(&self) -> bool {
        self.field(3).is_some_and(|state| matches!(&*state, "T" | "t"))
    }

    /// Returns `true` if the process has ended and nobody has reaped it.
    pub(super) fn awaits_reaping(&self) -> bool {
        self.field(3).is_some_and(|state| state == "Z")
    }

    /// How it ends, while it is dying: known before its memory has been given back.
    pub(super) fn ending(&self) -> Option<Exit> {
        let status: i32 = self.field(52)?.parse().ok()?;
        let status = ExitStatus::from_raw(status);
        status.code().map(Exit::Status).or_else(|| status.signal().map(Exit::Signal))
    }

    /// Reaps a child that has ended, or waits until it has. While it is not reaped its number, and so its group, is its own: children
    /// that it leaves behind go too.
    pub(super) fn reap(mut self) {
        let _ = self.signal(Signal::KILL);
        let Some(child) = &mut self.child else { return };
        // One of both calls may be denied.
        if let (Err(_), Some(pid)) = (child.wait(), self.pid()) {
            let _ = rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED);
        }
    }
}

fn named(what: &str, error: impl Into<Error>) -> Error {
    let error = error.into();
    Error::new(error.kind(), format!("{what}: {error}"))
}

fn exit_of(state: &WaitIdStatus) -> Option<Exit> {
    state.exit_status().map(Exit::Status).or_else(|| state.terminating_signal().map(Exit::Signal))
}

/// From now on, orphans among the descendants of this process become its children, so that
/// [`end_orphans`] finds them.
pub(super) fn adopt_orphans() {
    // Without it orphans are only killed with the group of their rank, and nobody waits for their end.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Waits, not for long, until no descendant of this process is left; `bell` rings when a child has ended.
pub(super) fn end_orphans(bell: &UnixStream) {
    let clock = Clock::start();
    let until = clock.now().after(GRACE);
    while end_children() && clock.now() < until {
        let mut fds = [PollFd::new(bell, PollFlags::IN)];
        let _ = rustix::event::poll(&mut fds, Some(&timespec(Duration::from_millis(5))));
        rang(bell);
    }
}

/// Kills all of these and waits for them, but not for those to which it may send no signal: they die with this process.
pub(super) fn end(processes: impl IntoIterator<Item = Process>) {
    let processes: Vec<Process> = processes.into_iter().collect();
    let killed: Vec<bool> = processes.iter().map(|process| process.signal(Signal::KILL).is_ok()).collect();
    processes.into_iter().zip(killed).filter(|(_, killed)| *killed).for_each(|(process, _)| process.reap());
}

/// Kills and reaps one generation of children that are left; false when there is none.
fn end_children() -> bool {
    let me = rustix::process::getpid().as_raw_nonzero();
    let children = std::fs::read_to_string(format!("/proc/self/task/{me}/children")).unwrap_or_default();
    for pid in children.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)) {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Starts what takes the place of this process, but does not outlive it, and waits for it. Who has started this process, `mpirun` or another, sees nothing of how that
/// ends, and does not end the rest for it.
///
/// # Errors
/// The operating system refuses.
pub fn stand_for(mut command: Command) -> std::io::Result<()> {
    reset_signals();
    // Hydra tells of failures by a signal that would end this one.
    let _notices = bell(&[signal_hook::consts::SIGUSR1])?;
    command.env(ENV_PARENT, std::process::id().to_string()).spawn()?.wait().map(|_| ())
}

/// Binds the life of this process to that of the launcher, or of the keeper, that started it: when that dies, in
/// whatever way, the kernel kills this process. Survives `exec`.
///
/// # Errors
/// The launcher is gone already.
pub fn die_with_launcher() -> Result<(), String> {
    let launcher = std::env::var(ENV_PARENT).ok().and_then(|number| number.parse::<u32>().ok());
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| format!("cannot bind its life to that of the launcher: {error}"))?;
    let parent = rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get().unsigned_abs());
    if parent.is_some() && parent == launcher { Ok(()) } else { Err("the launcher is gone".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Process {
        let args = ["-c", script].map(OsString::from).into();
        let order = Order { program: "/bin/sh".into(), is_self: false, args, environment: vec![] };
        let null = || File::options().read(true).write(true).open("/dev/null").unwrap().into();
        let files = Files { streams: std::array::from_fn(|_| null()), inherited: vec![] };
        start(&order, files, None, None).unwrap()
    }

    #[test]
    fn the_status_of_a_process_can_be_read_before_it_is_waited_for() {
        let run = |script: &str| {
            let mut process = shell(script);
            let pid = process.pid().unwrap();
            rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
            let both = (process.ending(), process.change().unwrap());
            assert_eq!(process.change().unwrap(), both.1, "it is not reaped yet");
            process.reap();
            both
        };
        let both = |exit| (Some(exit), Some(Change::Ended(exit)));
        assert_eq!(run("exit 7"), both(Exit::Status(7)));
        assert_eq!(run("kill -9 $$"), both(Exit::Signal(9)));
    }

    #[test]
    fn a_stop_is_told_once_and_so_is_its_end() {
        let mut process = shell("kill -STOP $$; exec sleep 1000");
        let pid = process.pid().unwrap();
        let wait_for = |state: WaitIdOptions| {
            rustix::process::waitid(WaitId::Pid(pid), state | WaitIdOptions::NOWAIT).unwrap();
        };
        wait_for(WaitIdOptions::STOPPED);
        assert!(process.is_stopped() && !process.awaits_reaping());
        assert_eq!(process.change().unwrap(), Some(Change::Stopped));
        assert_eq!(process.change().unwrap(), None);
        process.signal(Signal::CONT).unwrap();
        assert_eq!(process.change().unwrap(), Some(Change::GoesOn));
        assert_eq!(process.change().unwrap(), None);
        process.signal(Signal::KILL).unwrap();
        wait_for(WaitIdOptions::EXITED);
        assert_eq!(process.change().unwrap(), Some(Change::Ended(Exit::Signal(9))));
        assert!(!process.is_stopped() && process.awaits_reaping());
        process.reap();
    }

    #[test]
    fn tunables_of_the_user_stay() {
        assert_eq!(tunables(None), "glibc.malloc.hugetlb=1");
        assert_eq!(tunables(Some(String::new())), "glibc.malloc.hugetlb=1");
        let other = "glibc.malloc.check=3";
        assert_eq!(tunables(Some(other.into())), format!("{other}:glibc.malloc.hugetlb=1"));
        let none = "glibc.malloc.hugetlb=0";
        assert_eq!(tunables(Some(none.into())), none);
    }
}
