//! Signals to this process, as streams to wait for.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use nix::sys::signal::SigSet;
use rustix::process::Signal;
use signal_hook::consts::{FORBIDDEN, SIGHUP, SIGPIPE};

/// Undoes what this process has inherited of signals from the process that started it: no signal is
/// blocked in this thread and in the threads and processes that it starts from now on, and a
/// program that is started from here begins with the default action of each signal. A supervisor
/// that waits for its own signals with `signalfd` or `sigwait` often leaves them blocked, and then
/// neither the end of a rank nor a request to end the job would arrive here.
///
/// A signal that was ignored still has no effect on this process: it is caught, because `exec`
/// resets handlers only. SIGHUP stays ignored, also for the programs that are started, because that
/// is the purpose of `nohup`.
pub fn reset_signals() {
    let _ = SigSet::empty().thread_set_mask();
    // The standard library ignores SIGPIPE in this process, and resets it for those that it starts.
    let stays = |signal: &i32| [SIGHUP, SIGPIPE].contains(signal) || FORBIDDEN.contains(signal);
    let ignored = mask("SigIgn:");
    for signal in (1..=64).filter(|signal| ignored & bit(*signal) != 0 && !stays(signal)) {
        // If the operating system refuses, the signal stays ignored.
        let _ = signal_hook::flag::register(signal, Arc::default());
    }
}

#[derive(Debug)]
pub(super) struct Signals {
    end: Vec<(Signal, UnixStream)>,
    stop: UnixStream,
    save: UnixStream,
}

impl Signals {
    pub(super) fn new() -> std::io::Result<Self> {
        use signal_hook::consts::{SIGINT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1};
        // A job in the background that reads the terminal, or writes to one that does not want that, is stopped as a whole.
        let stop = bell(&[SIGTSTP, SIGTTIN, SIGTTOU])?;
        let end = [(SIGINT, Signal::INT), (SIGTERM, Signal::TERM), (SIGHUP, Signal::HUP)];
        // Under nohup the end of the terminal is no reason to end.
        let end = end
            .into_iter()
            .filter(|(number, _)| *number != SIGHUP || !is_ignored(SIGHUP))
            .map(|(number, signal)| Ok((signal, bell(&[number])?)));
        Ok(Self { end: end.collect::<std::io::Result<_>>()?, stop, save: bell(&[SIGUSR1])? })
    }

    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [self.stop.as_fd(), self.save.as_fd()]
            .into_iter()
            .chain(self.end.iter().map(|(_, stream)| stream.as_fd()))
    }

    /// Signals to end that have come.
    pub(super) fn to_end(&self) -> Vec<Signal> {
        self.end.iter().filter(|(_, stream)| rang(stream)).map(|(signal, _)| *signal).collect()
    }

    /// Whether what is protected is to be written to files.
    pub(super) fn to_save(&self) -> bool {
        rang(&self.save)
    }

    /// Whether the terminal wants the job stopped.
    pub(super) fn to_stop(&self) -> bool {
        rang(&self.stop)
    }
}

/// A stream that becomes readable when one of the signals comes.
pub(super) fn bell(signals: &[i32]) -> std::io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    for signal in signals {
        signal_hook::low_level::pipe::register(*signal, theirs.try_clone()?)?;
    }
    Ok(ours)
}

/// Whether a signal has come since the last call.
pub(super) fn rang(stream: &UnixStream) -> bool {
    matches!((&*stream).read(&mut [0; 64]), Ok(count) if count > 0)
}

/// What a signal to end has done to a job.
pub(super) fn what_it_did(signal: Signal) -> &'static str {
    match signal {
        Signal::INT => "interrupted (SIGINT)",
        Signal::TERM => "terminated (SIGTERM)",
        Signal::USR1 => "ended by SIGUSR1, which saves a job with --spill only",
        _ => "hung up (SIGHUP)",
    }
}

/// Whether this process was started with the signal ignored.
fn is_ignored(signal: i32) -> bool {
    mask("SigIgn:") & bit(signal) != 0
}

/// A set of signals of this process, by its name in `/proc/self/status` (proc(5)).
fn mask(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix(name));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}
