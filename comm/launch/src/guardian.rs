//! The guardian: a process that outlives a killed launcher for a moment and ends what that leaves behind. On other hosts the keeper
//! (`keeper.rs`) does so.
//!
//! Ranks die with the launcher by themselves (parent-death signal); what they have started does not, in whatever process
//! group or session it is. All of it has inherited a mark in its environment, by which the guardian finds it in `/proc`. It hears of the
//! launcher's end by the end of its standard input, and the launcher kills it when the job is over. A
//! process that was given an empty environment is out of its reach.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal};

use crate::executable::SELF;
use ft_comm::time::{Clock, Time};
use ft_comm::transport::timespec;
use ft_proto::wire::handshake::hex;

/// Environment of every process that is started for a job: the mark of the launcher or the keeper that has started it.
pub(super) const ENV_MARK: &str = "FTRUN_MARK";
/// How long the guardian goes on looking for processes that do not end.
const PATIENCE: Duration = Duration::from_secs(10);
/// From one look to the next.
const PAUSE: Duration = Duration::from_millis(10);
/// So many looks in a row must find nobody: a process that is becoming another program has no environment for a moment.
const QUIET: u32 = 3;

/// See the module. Dropped, it is no more.
#[derive(Debug)]
pub(super) struct Guardian {
    mark: String,
    /// None if the operating system refused one: then nobody looks after a killed launcher.
    child: Option<Child>,
}

impl Guardian {
    /// Starts this program again, which calls [`guard`] when `word` is its first argument.
    pub(super) fn start(word: &str) -> std::io::Result<Self> {
        let mark = new_mark()?;
        let mut command = Command::new(SELF);
        // Without an environment it is found by no guardian, should this be a job within a job.
        command.arg0("ftrun").args([word, &mark]).env_clear().current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { mark, child: command.spawn().ok() })
    }

    /// What to set [`ENV_MARK`] to.
    pub(super) fn mark(&self) -> &str {
        &self.mark
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A mark that nobody else has.
///
/// # Errors
/// The operating system has no random numbers.
pub(super) fn new_mark() -> std::io::Result<String> {
    let mut mark = [0; 16];
    getrandom::fill(&mut mark).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(hex(&mark))
}

/// Makes this process the guardian of the one that has started it with this mark. Returns when that is dead, and whatever was
/// started with the mark.
pub fn guard(mark: &str) {
    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    end_all(mark);
}

/// Ends the processes that have the mark, and those that they start meanwhile.
pub(super) fn end_all(mark: &str) {
    let (clock, mut quiet) = (Clock::start(), 0);
    while quiet < QUIET && clock.now().since(Time(0)) < PATIENCE {
        quiet = if end_marked(mark) { 0 } else { quiet + 1 };
        let _ = rustix::event::poll(&mut [], Some(&timespec(PAUSE)));
    }
}

/// Kills the processes that have the mark; false if there is none.
fn end_marked(mark: &str) -> bool {
    let mark = format!("{ENV_MARK}={mark}");
    let mut found = false;
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| Pid::from_raw(name.parse().ok()?)) else { continue };
        // The handle comes first: should the number be given to another process now, it means the old one.
        let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { continue };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes()) {
            found = true;
            let _ = rustix::process::pidfd_send_signal(handle, Signal::KILL);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn who_has_the_mark_is_ended_and_nobody_else() {
        let start = |mark: &str| Command::new("/bin/sleep").arg("1000").env(ENV_MARK, mark).spawn().unwrap();
        let (mut marked, mut other) = (start("0a"), start("0ab"));
        // It may be found only when it has become that program.
        let ended = loop {
            end_marked("0a");
            if let Some(ended) = marked.try_wait().unwrap() {
                break ended;
            }
        };
        assert_eq!(ended.signal(), Some(9));
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
