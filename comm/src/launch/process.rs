//! The door through which processes are started: on this host.
//!
//! Every process leads a process group of its own, so that a signal of the terminal reaches the launcher
//! only and a kill reaches the children of a rank too. It stays in the launcher's session: a session of its
//! own would put it into a scheduler group of its own, where yielding to the other ranks has no effect.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions};

use crate::proto::arbiter::Exit;

#[derive(Debug)]
pub(super) struct Process(Child);

pub(super) struct Started {
    pub(super) process: Process,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
    pub(super) stdin: Option<ChildStdin>,
}

pub(super) fn start(
    program: &Path,
    args: &[OsString],
    environment: &[(&str, String)],
    stdin: Stdio,
) -> std::io::Result<Started> {
    let mut child = Command::new(program)
        .args(args)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let stdout = child.stdout.take().expect("asked for");
    let stderr = child.stderr.take().expect("asked for");
    rustix::io::ioctl_fionbio(&stdout, true)?;
    rustix::io::ioctl_fionbio(&stderr, true)?;
    Ok(Started { stdin: child.stdin.take(), process: Process(child), stdout, stderr })
}

impl Process {
    /// Sends a signal to the process and its children. It was not reaped yet, so its number is its own.
    pub(super) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        pid.into_iter().for_each(|pid| {
            let _ = rustix::process::kill_process_group(pid, signal);
        });
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Option<Exit> {
        // While it is not reaped its number, and so its group, is its own: children that it leaves behind go too.
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw)?;
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        rustix::process::waitid(WaitId::Pid(pid), look).ok()??;
        self.signal(Signal::KILL);
        let status = self.0.try_wait().ok()??;
        let exit = status.code().map(Exit::Status);
        exit.or_else(|| status.signal().map(Exit::Signal))
    }

    pub(super) fn wait(mut self) {
        let _ = self.0.wait();
    }
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

/// Binds the life of this process to that of the launcher with process number `launcher`, which started it:
/// when the launcher dies, in whatever way, the kernel kills this process. Survives `exec`.
///
/// # Errors
/// The launcher is gone already.
pub fn die_with_launcher(launcher: u32) -> Result<(), String> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| error.to_string())?;
    let parent = rustix::process::getppid().map(Pid::as_raw_nonzero);
    if parent.is_some_and(|parent| parent.get().unsigned_abs() == launcher) {
        Ok(())
    } else {
        Err("the launcher is gone".into())
    }
}
