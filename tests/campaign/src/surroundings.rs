//! Surroundings that a launcher inherits from the process that starts it: blocked signals, a
//! terminal, a file size limit.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};
use rustix::process::Pid;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetpgrp, tcsetwinsize};

use crate::processes::MARK;
use crate::random::Random;

/// First argument of the campaign when it becomes a job with blocked signals: their names, with commas, and a command follow.
pub(crate) const AS_BLOCKED: &str = "--as-blocked";
/// First argument of the campaign when it becomes a job in the background of its terminal, which is standard error: a command
/// follows.
pub(crate) const AS_BACKGROUND: &str = "--as-background";

/// The surroundings of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Surroundings {
    Usual,
    /// These signals are blocked.
    Blocked(&'static str),
    /// Standard error is a terminal with so many columns.
    Terminal {
        columns: u16,
        is_background: bool,
    },
    /// Files can have so many blocks of 512 bytes.
    FileSize(u32),
}

impl Surroundings {
    /// Chooses the usual ones most of the time. A job that writes no files but checkpoints can do with small files.
    pub(crate) fn choose(random: &mut Random, flushes: bool) -> Self {
        match random.below(100) {
            0..6 => Self::Blocked(random.one_of(&["SIGCHLD", "SIGTERM", "SIGCHLD,SIGTERM,SIGINT,SIGUSR1"])),
            6..14 => {
                Self::Terminal { columns: random.one_of(&[0, 1, 80]), is_background: random.percent(30) }
            }
            14..40 if flushes => Self::FileSize(random.one_of(&[8, 20, 100])),
            _ => Self::Usual,
        }
    }

    /// The name under which runs are counted.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Usual => "usual",
            Self::Blocked(_) => "blocked signals",
            Self::Terminal { is_background: true, .. } => "background of a terminal",
            Self::Terminal { columns: 0, .. } => "terminal of width 0",
            Self::Terminal { columns: 1, .. } => "terminal of width 1",
            Self::Terminal { .. } => "terminal",
            Self::FileSize(_) => "file size limit",
        }
    }

    /// A command that runs the shell command `script` in these surroundings; `$0` and `$@` of the script are still to come.
    ///
    /// # Errors
    /// The path of the campaign is not known.
    pub(crate) fn command(self, script: &str) -> std::io::Result<Command> {
        let become_it = |words: &[&str]| {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(words).args(["sh", "-c", script]);
            Ok(command)
        };
        match self {
            Self::Blocked(signals) => become_it(&[AS_BLOCKED, signals]),
            Self::Terminal { is_background: true, .. } => become_it(&[AS_BACKGROUND]),
            Self::FileSize(blocks) => {
                let mut command = Command::new("sh");
                command.arg("-c").arg(format!("ulimit -f {blocks}; {script}"));
                Ok(command)
            }
            Self::Usual | Self::Terminal { .. } => {
                let mut command = Command::new("sh");
                command.args(["-c", script]);
                Ok(command)
            }
        }
    }
}

/// Makes a terminal of so many columns: the end that reads what is written, and the end that programs write to.
///
/// # Errors
/// The system has no terminal left.
pub(crate) fn terminal(columns: u16) -> std::io::Result<(File, Stdio)> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let name = ptsname(&ours, vec![])?;
    let theirs =
        File::options().read(true).write(true).open(std::ffi::OsStr::new(&*name.to_string_lossy()))?;
    let rows = if columns == 0 { 0 } else { 24 };
    tcsetwinsize(&theirs, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
    Ok((File::from(ours), OwnedFd::from(theirs).into()))
}

/// Becomes the command, with signals blocked.
pub(crate) fn run_blocked(arguments: &[OsString]) -> ExitCode {
    let [signals, program, rest @ ..] = arguments else { return refused("SIGNALS COMMAND...") };
    let mut set = SigSet::empty();
    for name in signals.to_string_lossy().split(',') {
        match name.parse::<Signal>() {
            Ok(signal) => set.add(signal),
            Err(error) => return refused(&format!("{name}: {error}")),
        }
    }
    if let Err(error) = pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&set), None) {
        return refused(&error.to_string());
    }
    refused(&Command::new(program).args(rest).exec().to_string())
}

/// Becomes the command, as the leader of a session of its own and in the background of its terminal.
pub(crate) fn run_in_background(arguments: &[OsString]) -> ExitCode {
    match background(arguments) {
        Ok(never) => match never {},
        Err(error) => refused(&error.to_string()),
    }
}

fn background(arguments: &[OsString]) -> std::io::Result<std::convert::Infallible> {
    let [program, rest @ ..] = arguments else { return Err(std::io::Error::other("COMMAND...")) };
    let terminal = std::io::stderr();
    rustix::process::setsid()?;
    rustix::process::ioctl_tiocsctty(&terminal)?;
    // Another process group of the session is in the foreground. The end of the session ends it.
    let mut sleeper = Command::new("sleep");
    sleeper.arg("1000").env_remove(MARK).process_group(0);
    let sleeper = sleeper.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    tcsetpgrp(&terminal, Pid::from_child(&sleeper))?;
    Err(Command::new(program).args(rest).exec())
}

fn refused(why: &str) -> ExitCode {
    eprintln!("campaign: {why}");
    ExitCode::from(2)
}
