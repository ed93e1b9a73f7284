//! From the start to the end, whatever the end: exit statuses, signals, streams, and nothing left behind.
//! That no process is left is part of [`Run::finish`].

use std::path::Path;
use std::time::Duration;

use ft_comm::time::{Clock, Time};
use rustix::process::{Pid, Signal};

use crate::common::{
    LONG, Outcome, PATIENT, POISSON, Run, Running, built, ends_within, example, poisson_answer,
};

/// A job whose ranks are all at work.
fn at_work(options: &str) -> Running {
    let mut running = Run::ftrun(&format!("-n 4 -v {options} {LONG}")).start();
    running.await_text("all ranks have joined");
    // One that is to be lost may be gone, and the one that follows it not be there yet.
    let due = if options.contains("--kill") { 4 } else { 5 };
    assert!(running.processes().len() >= due, "a launcher and four ranks");
    running
}

fn signalled(mut running: Running, signal: Signal, wait_for: &str) -> Outcome {
    running.await_text(wait_for);
    running.signal(signal);
    running.finish()
}

#[test]
fn interrupt_ends_the_job() {
    let outcome = signalled(at_work(""), Signal::INT, "").expect(130);
    assert!(outcome.stderr.contains("interrupted (SIGINT)"), "{outcome}");
}

/// Whether these tests run under `nohup`: children inherit that, and SIGHUP ends nothing.
fn is_under_nohup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("proc(5)");
    let is_ignored = u64::from_str_radix(ignored.trim(), 16).expect("a mask") & 1 == 1;
    if is_ignored {
        println!("skipped: SIGHUP is ignored, as under nohup");
    }
    is_ignored
}

#[test]
fn terminate_ends_the_job() {
    signalled(at_work(""), Signal::TERM, "").expect(143);
    if !is_under_nohup() {
        signalled(at_work(""), Signal::HUP, "").expect(129);
    }
}

#[test]
fn under_nohup_the_end_of_the_terminal_ends_nothing() {
    // The rank sends the signal itself.
    if !is_under_nohup() {
        Run::ftrun("-n 1 /bin/sh -c").arg("kill -HUP $PPID; exec sleep 1000").finish().expect(129);
    }
    // It gives the launcher time to heed it.
    let rank = "kill -HUP $PPID; sleep 0.3; echo survived";
    let script = format!("trap '' HUP; exec \"$0\" -n 1 /bin/sh -c '{rank}'");
    let sh = Run::program(Path::new("/bin/sh"), "-c").arg(script).arg(built().join("ftrun"));
    assert_eq!(sh.finish().expect(0).stdout, "survived\n");
}

#[test]
fn interrupt_after_a_failure_and_with_a_stopped_rank() {
    signalled(at_work("--kill 2@step=5"), Signal::INT, "state restored from memory").expect(130);
    let options = "--heartbeat-timeout 20000 --kill 2@step=5:hang";
    signalled(at_work(options), Signal::INT, "strikes").expect(130);
}

#[test]
fn programs_that_ignore_signals_are_killed() {
    let script = "trap '' INT TERM; echo ready; while :; do sleep 1000; done";
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let running = Run::ftrun("-n 1 /bin/sh -c").arg(script).start();
        signalled(running, signal, "ready").expect(status);
    }
}

#[test]
fn ranks_die_with_a_killed_launcher() {
    let running = at_work("");
    running.signal(Signal::KILL);
    running.finish_killed().expect(128 + 9);

    // A program that has nothing to do with the library, too.
    let mut running = Run::ftrun("-n 2 /bin/sh -c").arg("echo ready; exec sleep 1000").start();
    running.await_text("ready");
    running.signal(Signal::KILL);
    running.finish_killed().expect(128 + 9);
}

/// The process that looks after what a killed launcher leaves behind.
fn guardian(launcher: Pid) -> Pid {
    let children = std::fs::read_to_string(format!("/proc/{launcher}/task/{launcher}/children")).unwrap();
    let is_guardian = |pid: &Pid| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.windows(13).any(|w| w == b"--as-guardian"))
    };
    let children = children.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
    children.into_iter().find(is_guardian).expect("a launcher has one")
}

#[test]
fn what_ranks_have_started_dies_with_a_killed_launcher() {
    for child in ["sleep 1000 &", "(sleep 1000 &);", "setsid sleep 1000 &", "setsid -f sleep 1000;"] {
        let script = format!("{child} echo ready; exec sleep 1000");
        let mut running = Run::ftrun("-n 2 /bin/sh -c").arg(script).start();
        running.await_times("ready", 2);
        let guardian = guardian(running.launcher());
        running.signal(Signal::KILL);
        running.finish_killed().expect(128 + 9);
        assert!(ends_within(guardian, Duration::from_secs(5)), "{child}");
    }
}

#[test]
fn the_guardian_ends_with_the_job() {
    let mut running = Run::ftrun("-n 1 /bin/sh -c").arg("echo ready; exec cat").open_stdin().start();
    running.await_text("ready");
    let guardian = guardian(running.launcher());
    running.end_stdin();
    running.finish().expect(0);
    assert!(ends_within(guardian, Duration::ZERO));
}

#[test]
fn children_of_ranks_end_with_an_interrupted_job() {
    let heeds = "sh -c 'echo ready; exec sleep 1000' & wait";
    let ignores = "sh -c \"trap '' INT; echo ready; exec sleep 1000\" & wait";
    for script in [heeds, ignores] {
        let running = Run::ftrun("-n 1 /bin/sh -c").arg(script).start();
        signalled(running, Signal::INT, "ready").expect(130);
    }
}

#[test]
fn children_that_ranks_leave_behind_end_with_the_job() {
    let script = "sleep 1000 </dev/null >/dev/null 2>&1 & true";
    Run::ftrun("-n 2 /bin/sh -c").arg(script).finish().expect(0);
}

#[test]
fn programs_that_never_join_behave_as_under_mpirun() {
    let outcome = Run::ftrun("-n 4 /bin/true").finish().expect(0);
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("", ""));
    Run::ftrun("-n 4 /bin/false").finish().expect(1);
    let outcome = Run::ftrun("-n 4 /bin/echo hello").finish().expect(0);
    assert_eq!(outcome.stdout, "hello\n".repeat(4));
}

#[test]
fn the_status_of_a_program_passes_through() {
    for status in [0, 1, 3, 7, 42, 255] {
        Run::ftrun("-n 2 /bin/sh -c").arg(format!("exit {status}")).finish().expect(status);
    }
    // One rank is enough, and the others end with it.
    let script = "if [ $FTRUN_PEER = 2 ]; then exit 9; fi; exec sleep 1000";
    Run::ftrun("-n 3 /bin/sh -c").arg(script).finish().expect(9);
}

/// After the agreed end a death is no failure to repair. Who is killed then has done its work; nobody may take a crash for a
/// success.
#[test]
fn a_rank_that_dies_after_the_agreed_end_is_named() {
    for (signal, number, status) in [("KILL", 9, 0), ("TERM", 15, 0), ("SEGV", 11, 139), ("ABRT", 6, 134)] {
        let script = format!("{} && kill -{signal} $$", example("ring").display());
        let outcome = Run::ftrun("-n 2 --json /bin/sh -c").arg(script).finish().expect(status);
        let message = format!("was killed by signal {number} after all ranks were done");
        assert!(outcome.report().message().contains(&message), "{outcome}");
    }
}

#[test]
fn a_rank_that_fails_before_it_joins_says_why() {
    for (end, cause) in [
        ("exit 4", "rank 0 exited with status 4 before it joined the job: no license; good bye"),
        (
            "kill -9 $$",
            "failed 4 times in a row without progress in between (last: killed by signal 9: no license; good bye)",
        ),
    ] {
        let script = format!(
            "if [ $FTRUN_PEER != 2 ]; then echo no license >&2; echo >&2; echo good bye >&2; {end}; fi"
        );
        let script = format!("{script}; exec {}", example("ring").display());
        let outcome = Run::ftrun("-n 2 --json /bin/sh -c").arg(script).finish();
        assert!(outcome.status != 0 && outcome.report().message().contains(cause), "{outcome}");
    }
}

/// As Python's `subprocess` does it, unless it is told not to.
#[test]
fn rank_whose_wrapper_closes_the_key_is_told_how_to_keep_it() {
    let script = format!("eval \"exec $FTRUN_KEY<&-\"; exec {}", example("ring").display());
    let outcome = Run::ftrun("-n 2 --json /bin/bash -c").arg(script).finish().expect(1);
    let message = outcome.report().message().to_owned();
    assert!(message.contains("pass_fds=[int(os.environ['FTRUN_KEY'])]"), "{message}");
}

/// Whatever is too little says so: the loader, the allocator, or the library, which knows the limit. With even less the kernel cannot
/// map the program, and nothing of it runs that could say anything.
#[test]
fn too_little_memory_for_a_rank_is_named() {
    let (mut runs, mut named) = (false, 0);
    for kib in (2500..).step_by(500) {
        let script = format!("ulimit -v {kib}; exec {}", example("ring").display());
        // Where memory is out the standard library may hang while it prints a backtrace.
        let run = Run::ftrun("-n 1 --json /bin/sh -c").arg(script).variable("RUST_BACKTRACE", "0");
        let outcome = run.finish();
        if outcome.status == 0 {
            break;
        }
        let report = outcome.report();
        let is_named = |part: &str| report.message().contains(part);
        runs |= !is_named("killed by signal 11");
        assert!(
            !runs
                || ["failed to map", "memory allocation", "allocate memory", "ulimit"]
                    .iter()
                    .any(|part| is_named(part)),
            "{outcome}"
        );
        named += u32::from(report.message().contains(&format!("address space {kib} KiB (ulimit -v)")));
    }
    assert!(named > 0, "a thread takes two MiB");
    // What the ranks have inherited is known to the launcher.
    let script = "ulimit -v 1000000; exec \"$0\" -n 1 /bin/sh -c 'echo out of memory >&2; exit 9'";
    let outcome = Run::program(Path::new("/bin/sh"), "-c").arg(script).arg(built().join("ftrun")).finish();
    let cause = "joined the job: out of memory; limits here: address space 1000000 KiB (ulimit -v)";
    assert!(outcome.status == 9 && outcome.stderr.contains(cause), "{outcome}");
}

/// The state of a process, as a letter.
fn state(process: Pid) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// The terminal's suspend key stops launcher and ranks; afterwards the job goes on and nobody is taken for lost.
#[test]
fn a_suspended_job_goes_on() {
    // Its steps come when standard input ends, so that it is there as long as this takes.
    let run = Run::ftrun("-n 4 -v --json --heartbeat-timeout 2000").arg(example("waiting"));
    let mut running = run.open_stdin().start();
    running.await_text("all ranks have joined");
    running.signal(Signal::TSTP);
    let clock = Clock::start();
    let all_stop = |running: &Running| running.processes().into_iter().all(|p| state(p) == Some('T'));
    while !all_stop(&running) {
        assert!(clock.now() < Time(20_000_000_000), "they go on");
        std::thread::yield_now();
    }
    assert_eq!(running.processes().len(), 5, "launcher and ranks");
    // They stay stopped for longer than the timeout.
    let until = clock.now().after(Duration::from_millis(2400));
    while clock.now() < until {
        assert!(all_stop(&running));
    }
    running.signal(Signal::CONT);
    running.end_stdin();
    // The program knows what has to come out.
    let outcome = running.finish().expect(0);
    assert_eq!(outcome.report().failures().len(), 0, "{outcome}");
    assert!(outcome.stderr.contains("replaced [0, 0, 0, 0]"), "{outcome}");
}

#[test]
fn a_single_rank_without_launcher_works() {
    Run::program(&example("ring"), "").finish().expect(0);
}

#[test]
fn lines_of_ranks_never_tear() {
    const LINES: usize = 300;
    // Longer than a pipe takes at once.
    let script = "line=$(printf '%09000d' 0); i=0; \
                  while [ $i -lt 300 ]; do echo \"$FTRUN_PEER:$i:$line:$FTRUN_PEER\"; i=$((i+1)); done";
    let outcome = Run::ftrun("-n 4 /bin/sh -c").arg(script).finish().expect(0);
    let zeros = "0".repeat(9000);
    let mut next = [0; 4];
    for line in outcome.stdout.lines() {
        let peer: usize =
            line.split(':').next().unwrap().parse().unwrap_or_else(|_| panic!("torn: {line:.80}"));
        let expected = format!("{peer}:{}:{zeros}:{peer}", next[peer - 1]);
        assert!(line == expected, "torn or out of order: {line:.80}");
        next[peer - 1] += 1;
    }
    assert_eq!(next, [LINES; 4]);
}

#[test]
fn a_last_line_without_end_is_printed_whole() {
    let outcome = Run::ftrun("-n 3 /bin/sh -c").arg("printf 'out'; printf 'err' >&2").finish().expect(0);
    assert_eq!(outcome.stdout, "out\nout\nout");
    assert_eq!(outcome.stderr.matches("err").count(), 3, "{outcome}");
}

#[test]
fn standard_input_goes_to_rank_0() {
    let text: Vec<u8> = (0..100_000).flat_map(|line| format!("{line}\n").into_bytes()).collect();
    let outcome = Run::ftrun("-n 4 /bin/cat").stdin(text.clone()).finish().expect(0);
    assert!(outcome.stdout.as_bytes() == text, "{} of {} bytes", outcome.stdout.len(), text.len());
}

/// Input that has ended has ended for whoever takes the rank later, too.
#[test]
fn a_replacement_hears_that_standard_input_has_ended() {
    let script = format!("cat; exec {}", example("resilient").display());
    let run = Run::ftrun(&format!("-n 2 --json {PATIENT} --kill 0@step=40 /bin/sh -c"))
        .arg(script)
        .stdin(b"once\n".to_vec());
    let outcome = run.finish().expect(0);
    assert_eq!(outcome.report().failures().len(), 1, "{outcome}");
    assert_eq!(outcome.stderr.matches("once").count(), 1, "{outcome}");
}

/// Lines that a script reads, and a job reads none of, are left to the script.
#[test]
fn standard_input_that_no_rank_reads_is_left() {
    let script = "printf '1\\n2\\n3\\n' | while read -r i; do \"$0\" -n 2 $1; echo round $i; done";
    let rounds = |job: &str| {
        let run = Run::program("/bin/sh".as_ref(), "-c").arg(script).arg(built().join("ftrun"));
        run.arg(job).finish().expect(0).stdout
    };
    assert_eq!(rounds("/bin/true"), "round 1\nround 2\nround 3\n");
    assert_eq!(rounds(&format!("-q --kill 0@step=20 {POISSON}")), "round 1\nround 2\nround 3\n");
    assert_eq!(rounds("--stdin none /bin/cat"), "round 1\nround 2\nround 3\n");
    assert_eq!(rounds("/bin/cat"), "2\n3\nround 1\n");
    assert_eq!(rounds("/usr/bin/head -n 1").lines().last(), Some("round 1"));
    // A shell reads no more than a line.
    let script = "printf 'a\\nb\\n' | { \"$0\" -n 2 /bin/sh -c 'read line && echo got $line'; cat; }";
    let run = Run::program("/bin/sh".as_ref(), "-c").arg(script).arg(built().join("ftrun"));
    assert_eq!(run.finish().stdout, "got a\nb\n");
}

#[test]
fn standard_input_goes_to_all_ranks_if_asked() {
    let text: Vec<u8> = (0..50_000).flat_map(|line| format!("{line}\n").into_bytes()).collect();
    let run = Run::ftrun("-n 3 --stdin all /bin/cksum").stdin(text);
    let outcome = run.finish().expect(0);
    let sums: Vec<&str> = outcome.stdout.lines().collect();
    assert!(sums.len() == 3 && sums.iter().all(|sum| *sum == sums[0] && !sum.ends_with(" 0")), "{outcome}");
}

#[test]
fn input_that_nobody_reads_is_no_problem() {
    Run::ftrun("-n 2 /bin/true").stdin(vec![b'x'; 1 << 20]).finish().expect(0);
    let outcome =
        Run::ftrun(&format!("-n 4 --json --kill 0@step=20 {POISSON}")).stdin(vec![b'x'; 1 << 20]).finish();
    assert_eq!(outcome.expect(0).report().answer(), poisson_answer().answer());
}

#[test]
fn the_report_is_all_that_is_on_standard_output() {
    let outcome = Run::ftrun("-n 4 --json").arg(example("hello")).finish().expect(0);
    assert_eq!(outcome.report().0["exit"], "done");
    for rank in 0..4 {
        assert!(outcome.stderr.contains(&format!("hello from rank {rank} of 4\n")), "{outcome}");
    }
    // So it is for a job that fails.
    assert_eq!(Run::ftrun("-n 4 --json /bin/false").finish().expect(1).report().0["exit"], "failed");
}

/// Its ranks see that it is stopped, and neither gone nor cut off.
#[test]
fn job_outlives_a_launcher_that_is_stopped_for_longer_than_leases() {
    let mut job = Run::ftrun(&format!("-n 3 -v --heartbeat-timeout 400 {LONG}")).limit(60).start();
    job.await_text("all ranks have joined");
    job.signal(Signal::STOP);
    // Ranks go on without a launcher for ten timeouts.
    assert!(!ends_within(job.launcher(), Duration::from_secs(6)));
    job.signal(Signal::CONT);
    // The end of a rank would be seen before the signal.
    job.signal(Signal::TERM);
    let outcome = job.finish().expect(143);
    assert!(outcome.stderr.contains("the launcher itself did not run for "), "{outcome}");
    assert!(!outcome.stderr.contains("cut off"), "{outcome}");
}

/// Nobody could take its place, and it may go on.
#[test]
fn stall_of_the_only_rank_is_a_warning() {
    let mut job = Run::ftrun("-n 1 -v --heartbeat-timeout 400").arg(example("going_on")).open_stdin().start();
    job.await_text("all ranks have joined");
    let rank = job.started(1);
    rustix::process::kill_process(rank, Signal::STOP).unwrap();
    job.await_text("rank 0 is silent for 0.4 s; the job would not survive its loss");
    rustix::process::kill_process(rank, Signal::CONT).unwrap();
    job.await_text("rank 0 is heard again after");
    job.end_stdin();
    job.finish().expect(0);
}
