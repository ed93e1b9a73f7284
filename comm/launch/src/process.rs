//! Starting, signalling and ending processes of this host.
//!
//! Every process leads a process group of its own, so that a signal of the terminal reaches the launcher
//! only and a kill reaches the children of a rank too. It stays in the launcher's session: a session of its
//! own would put it into a scheduler group of its own, where yielding to the other ranks has no effect.

use std::ffi::OsString;
use std::fs::File;
use std::io::Error;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions};

use super::standing;
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

#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// It was stopped when it was last asked for its state.
    stopped: bool,
    /// `/proc/PID/stat`, where the status of a dying process can be read before it can be waited for.
    stat: Option<File>,
}

/// What a process does now that it did not do before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing: a signal has stopped it.
    Stopped,
    /// A signal has ended its stop.
    GoesOn,
    /// It has ended and was waited for.
    Ended(Exit),
}

pub(super) struct Started {
    pub(super) process: Process,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
    pub(super) stdin: Option<ChildStdin>,
}

pub(super) fn start(
    program: &Path,
    args: &[OsString],
    environment: &[(String, String)],
    stdin: Stdio,
) -> std::io::Result<Started> {
    let mut command = Command::new(program);
    standing::names().for_each(|name| _ = command.env_remove(name));
    let mut child = command
        .args(args)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .env(ENV_PARENT, std::process::id().to_string())
        .env(ENV_TUNABLES, tunables(std::env::var(ENV_TUNABLES).ok()))
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let stdout = child.stdout.take().expect("the pipes that were asked for are there");
    let stderr = child.stderr.take().expect("the pipes that were asked for are there");
    rustix::io::ioctl_fionbio(&stdout, true)?;
    rustix::io::ioctl_fionbio(&stderr, true)?;
    let stat = File::open(format!("/proc/{}/stat", child.id())).ok();
    Ok(Started {
        stdin: child.stdin.take(),
        process: Process { child, stopped: false, stat },
        stdout,
        stderr,
    })
}

impl Process {
    pub(super) fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// Its number.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
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

    /// What has become of it, if that is something else than when it was last asked.
    ///
    /// # Errors
    /// The operating system does not tell.
    pub(super) fn change(&mut self) -> std::io::Result<Option<Change>> {
        // While it is not reaped its number, and so its group, is its own: children that it leaves behind go too.
        let Some(pid) = self.pid() else { return Ok(None) };
        let kinds = WaitIdOptions::EXITED | WaitIdOptions::STOPPED;
        let look = kinds | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let stopped = match rustix::process::waitid(WaitId::Pid(pid), look) {
            Ok(Some(state)) if !state.stopped() => None,
            Ok(state) => Some(state.is_some()),
            Err(Errno::INTR) => return Ok(None),
            Err(error) => return Err(named(WAITING, error)),
        };
        if let Some(stopped) = stopped {
            let is_new = std::mem::replace(&mut self.stopped, stopped) != stopped;
            return Ok(is_new.then_some(if stopped { Change::Stopped } else { Change::GoesOn }));
        }
        let _ = self.signal(Signal::KILL); // nobody may be left
        let waited = self.child.try_wait();
        Ok(waited.map_err(|error| named(WAITING, error))?.and_then(exit_of).map(Change::Ended))
    }

    /// How it ends, while it is dying: known before its memory has been given back.
    pub(super) fn ending(&self) -> Option<Exit> {
        let mut text = [0; 1024];
        let count = self.stat.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = String::from_utf8_lossy(&text[..count]);
        // The name of the program may have anything in it but comes before the last parenthesis (proc(5)): field 3 is
        // the next, field 52 the status.
        let (_, fields) = text.rsplit_once(')')?;
        let status: i32 = fields.split_whitespace().nth(52 - 3)?.parse().ok()?;
        exit_of(ExitStatus::from_raw(status))
    }

    pub(super) fn wait(mut self) {
        // One of both calls may be denied.
        if let (Err(_), Some(pid)) = (self.child.wait(), self.pid()) {
            let _ = rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED);
        }
    }
}

const WAITING: &str = "waiting for a process";

fn named(what: &str, error: impl Into<Error>) -> Error {
    let error = error.into();
    Error::new(error.kind(), format!("{what}: {error}"))
}

fn exit_of(status: ExitStatus) -> Option<Exit> {
    status.code().map(Exit::Status).or_else(|| status.signal().map(Exit::Signal))
}

/// From now on, orphans among the descendants of this process become its children, so that
/// [`end_orphans`] finds them.
pub(super) fn adopt_orphans() {
    // Without it orphans are only killed with the group of their rank, and nobody waits for their end.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Kills and reaps one generation of children that are left; false when there is none.
pub(super) fn end_orphans() -> bool {
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

/// Binds the life of this process to that of the launcher, or of the agent, that started it: when that dies, in
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

    #[test]
    fn the_status_of_a_process_can_be_read_before_it_is_waited_for() {
        let run = |script: &str| {
            let args = ["-c", script].map(OsString::from);
            let started = start(Path::new("/bin/sh"), &args, &[], Stdio::null()).unwrap();
            let pid = started.process.pid().unwrap();
            rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
            let mut process = started.process;
            (process.ending(), process.change().unwrap())
        };
        let both = |exit| (Some(exit), Some(Change::Ended(exit)));
        assert_eq!(run("exit 7"), both(Exit::Status(7)));
        assert_eq!(run("kill -9 $$"), both(Exit::Signal(9)));
    }

    #[test]
    fn a_stop_is_told_once_and_so_is_its_end() {
        let args = ["-c", "kill -STOP $$; exec sleep 1000"].map(OsString::from);
        let mut process = start(Path::new("/bin/sh"), &args, &[], Stdio::null()).unwrap().process;
        let pid = process.pid().unwrap();
        let wait_for = |state: WaitIdOptions| {
            rustix::process::waitid(WaitId::Pid(pid), state | WaitIdOptions::NOWAIT).unwrap();
        };
        wait_for(WaitIdOptions::STOPPED);
        assert_eq!(process.change().unwrap(), Some(Change::Stopped));
        assert_eq!(process.change().unwrap(), None);
        process.signal(Signal::CONT).unwrap();
        assert_eq!(process.change().unwrap(), Some(Change::GoesOn));
        assert_eq!(process.change().unwrap(), None);
        process.signal(Signal::KILL).unwrap();
        wait_for(WaitIdOptions::EXITED);
        assert_eq!(process.change().unwrap(), Some(Change::Ended(Exit::Signal(9))));
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
