//! Signals that were blocked or ignored when a job is started.

use std::path::Path;

use nix::sys::signal::SigSet;
use rustix::process::Signal;

use crate::common::{LONG, POISSON, Run, Running, built};
use crate::hosts::{LIKE_SSH, over};

/// Starts a program with all signals blocked, as a supervisor does that waits for its own ones with
/// `signalfd`.
fn with_blocked_signals(run: Run) -> Running {
    let thread = std::thread::spawn(|| {
        SigSet::all().thread_block().unwrap();
        run.start()
    });
    thread.join().unwrap()
}

#[test]
fn job_started_with_blocked_signals_ends() {
    let job = with_blocked_signals(Run::ftrun(&format!("-n 3 --kill 1@step=5 {POISSON}")));
    job.finish().expect(0);
    let (_folder, run) = over(LIKE_SSH, &format!("-n 2 --hosts 127.0.0.2,127.0.0.3 {POISSON}"));
    with_blocked_signals(run).finish().expect(0);
}

#[test]
fn job_started_with_blocked_signals_is_ended_by_a_signal() {
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let mut job = with_blocked_signals(Run::ftrun(&format!("-n 2 -v {LONG}")));
        job.await_text("all ranks have joined");
        job.signal(signal);
        job.finish().expect(status);
    }
}

#[test]
fn rank_starts_with_a_clean_mask_and_default_dispositions() {
    let rank = "grep -E 'Sig(Blk|Ign)' /proc/self/status";
    for hosts in ["", "--hosts 127.0.0.2 --launcher-exec $1 "] {
        let script = format!("trap '' QUIT USR2 ALRM CHLD XCPU; exec \"$0\" -n 1 {hosts}/bin/sh -c \"$2\"");
        let (folder, _) = over(LIKE_SSH, "");
        let run = Run::program(Path::new("/bin/sh"), "-c").arg(script).arg(built().join("ftrun"));
        let outcome = with_blocked_signals(run.arg(folder.path().join("exec")).arg(rank)).finish().expect(0);
        for line in outcome.stdout.lines() {
            let (name, set) = line.split_once(':').unwrap_or_else(|| panic!("{outcome}"));
            // SIGHUP may be ignored, as under nohup. Signals 32 and 33 are glibc's own: it ignores
            // them in each process that it spawns.
            let set = u64::from_str_radix(set.trim(), 16).unwrap() & !(1 | 3 << 31);
            assert_eq!(set, 0, "{name}: {outcome}");
        }
        assert_eq!(outcome.stdout.lines().count(), 2, "{outcome}");
    }
}
