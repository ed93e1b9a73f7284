//! What carries the links, and how ranks wait: the answer is the same, and what was asked for is what is used.

use std::fs::File;
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt;
use std::path::Path;

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

use crate::common::{LONG, PATIENT, POISSON, Run, Running, built, example, poisson_answer};
use crate::sockets::{Door, is_there, sockets};

/// A job whose ranks have lost one of them, have restored its state and go on: every rank has links to others.
fn at_work(options: &str) -> Running {
    let job = format!("-n 4 -v {PATIENT} {options} --kill 2@step=5 {LONG}");
    let mut running = Run::ftrun(&job).usual_transport().start();
    running.await_text("state restored from memory");
    // The one that was lost may be on its way out.
    while ranks(&running).len() > 4 {
        std::thread::yield_now();
    }
    running
}

fn ranks(running: &Running) -> Vec<Pid> {
    running.processes().into_iter().filter(|process| *process != running.launcher()).collect()
}

fn names(running: &Running) -> Vec<String> {
    let name = |door| match door {
        Door::Unix(name) => Some(name),
        Door::Tcp(_) => None,
    };
    sockets(&ranks(running)).doors.into_iter().filter_map(name).collect()
}

#[test]
fn gives_the_same_answer_whatever_carries_it_and_however_ranks_wait() {
    let kills = "--scheme rs:2+2 --kill 2@step=15 --kill 0@step=25 --kill 1,3@checkpoint=4/exchange";
    for options in [
        "",
        "--transport unix",
        "--transport tcp",
        "--wait spin",
        "--wait yield",
        "--wait sleep --transport tcp",
    ] {
        let outcome = Run::ftrun(&format!("-n 4 --json {PATIENT} {options} {kills} {POISSON}"))
            .usual_transport()
            .finish()
            .expect(0);
        let report = outcome.report();
        assert_eq!(report.answer(), poisson_answer().answer(), "{outcome}");
        assert_eq!(report.iterations(), poisson_answer().iterations(), "{outcome}");
        let lost: Vec<Vec<u64>> = report.failures().into_iter().map(|(ranks, _)| ranks).collect();
        assert_eq!(lost, [vec![2], vec![0], vec![1, 3]], "{outcome}");
    }
}

#[test]
fn what_cannot_be_had_is_said_and_not_missed() {
    let sockets = "messages within this host go through sockets: no memory can be shared";
    // No process of the job may make a file of any length.
    for (limit, options, says) in [
        ("", "-v", false),
        ("ulimit -f 0;", "-v", true),
        ("ulimit -f 0;", "", false),
        ("ulimit -f 0;", "-v --transport tcp", false),
    ] {
        let shell = Run::program(Path::new("/bin/sh"), "-c")
            .usual_transport()
            .arg(format!("{limit} exec \"$0\" \"$@\""));
        let job = format!("-n 3 --json {options} --kill 1@step=9 {POISSON}");
        let ftrun = job.split_whitespace().fold(shell.arg(built().join("ftrun")), Run::arg);
        let outcome = ftrun.finish().expect(0);
        assert_eq!(outcome.stderr.contains(sockets), says, "{outcome}");
        assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
    }
}

#[test]
fn is_unix_sockets_within_a_host_unless_tcp_is_asked_for() {
    for (options, is_unix) in [("", true), ("--transport unix", true), ("--transport tcp", false)] {
        let running = at_work(options);
        let ranks = ranks(&running);
        assert_eq!(ranks.len(), 4, "{options}");
        for rank in ranks {
            let found = sockets(&[rank]);
            assert_eq!(found.files, [""; 0], "{options}");
            // Nobody listens for TCP but where it was asked for, and the launcher does in no case.
            let tcp = found.doors.iter().filter(|door| matches!(door, Door::Tcp(_))).count();
            if is_unix {
                assert!(found.tcp == 0 && tcp == 0 && found.doors.len() == 1, "{options}: {found:?}");
                assert!(found.unix >= 3, "{options}: {found:?}");
            } else {
                assert!(found.tcp >= 2 && tcp == 1 && found.doors.len() == 1, "{options}: {found:?}");
                assert!(found.unix >= 1, "{options}: {found:?}");
            }
        }
        let launcher = sockets(&[running.launcher()]);
        assert!(matches!(launcher.doors[..], [Door::Unix(_)]) && launcher.tcp == 0, "{launcher:?}");
        running.signal(Signal::TERM);
        running.finish().expect(143);
    }
}

/// Whether the kernel lets a process read the memory of another one of the same user.
fn may_read_memory() -> bool {
    let child = Run::program(Path::new("sleep"), "20").start();
    let process = nix::unistd::Pid::from_raw(child.launcher().as_raw_nonzero().get());
    let nowhere = [RemoteIoVec { base: 8, len: 1 }];
    let answer = process_vm_readv(process, &mut [IoSliceMut::new(&mut [0])], &nowhere);
    child.signal(Signal::KILL);
    child.finish_killed();
    answer == Err(nix::errno::Errno::EFAULT)
}

#[test]
fn long_messages_within_a_host_are_read_where_they_are() {
    if !may_read_memory() {
        return println!("skipped: here no process can read another's memory");
    }
    let bytes = 3_000_001;
    for (options, read) in
        [("", bytes), ("--transport auto", bytes), ("--transport unix", 0), ("--transport tcp", 0)]
    {
        let run = Run::ftrun(&format!("-n 2 {options}"))
            .usual_transport()
            .arg(example("huge"))
            .arg(bytes.to_string());
        let outcome = run.finish().expect(0);
        let due = format!("{bytes} bytes are right, {read} of them read in place\n");
        assert_eq!(outcome.stdout, due, "{outcome}");
    }
}

/// The environment says what no option does.
#[test]
fn the_environment_chooses_for_every_job() {
    let bytes = 3_000_001;
    let read = if may_read_memory() { bytes } else { 0 };
    for (options, read) in [("", 0), ("--transport auto", read)] {
        let run = Run::ftrun(&format!("-n 2 {options}")).variable("FTRUN_TRANSPORT", "tcp");
        let outcome = run.arg(example("huge")).arg(bytes.to_string()).finish().expect(0);
        let due = format!("{bytes} bytes are right, {read} of them read in place\n");
        assert_eq!(outcome.stdout, due, "{outcome}");
    }
}

#[test]
fn leaves_no_socket_behind() {
    for (signal, status) in [(Signal::TERM, 143), (Signal::KILL, 128 + 9)] {
        let running = at_work("");
        let names = names(&running);
        assert_eq!(names.len(), 4);
        assert!(names.iter().all(|name| name.starts_with("ftrun-") && is_there(name)), "{names:?}");
        // A process that dies loses its memory, by which it could be found, before its sockets.
        let handles: Vec<_> = ranks(&running)
            .into_iter()
            .map(|rank| pidfd_open(rank, PidfdFlags::empty()).expect("it runs"))
            .collect();
        running.signal(signal);
        let outcome = if signal == Signal::KILL { running.finish_killed() } else { running.finish() };
        outcome.expect(status);
        for handle in &handles {
            let limit = Timespec { tv_sec: 5, tv_nsec: 0 };
            let ended = poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&limit));
            assert_eq!(ended, Ok(1), "a rank lives on");
        }
        assert!(!names.iter().any(|name| is_there(name)), "{names:?}");
    }
}

/// Overwrites the memory beside all links of a rank, as a neighbour might that writes where it should not; how many links.
fn scribble(rank: Pid) -> usize {
    let process = format!("/proc/{}", rank.as_raw_nonzero());
    // A rank that dies has none.
    let maps = std::fs::read_to_string(format!("{process}/maps")).unwrap_or_default();
    let Ok(memory) = File::options().write(true).open(format!("{process}/mem")) else { return 0 };
    let places = maps.lines().filter(|line| line.contains("ftrun-ring"));
    let mut state = 1_u64;
    let overwrite = |place: &str| {
        let (from, to) = place.split(' ').next()?.split_once('-')?;
        let at = |text| u64::from_str_radix(text, 16).ok();
        let (from, to) = (at(from)?, at(to)?);
        let noise: Vec<u8> = (from..to)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        memory.write_all_at(&noise, from).ok()
    };
    places.filter_map(overwrite).count()
}

#[test]
fn memory_that_is_overwritten_ends_its_links_and_the_answer_stays() {
    if !may_read_memory() {
        return println!("skipped: here no process can write another's memory");
    }
    let job = "-n 4 --json -v --scheme rs:2+2";
    let undisturbed = Run::ftrun(&format!("{job} heat --steps 10000")).finish().expect(0);
    let mut running =
        Run::ftrun(&format!("{job} --kill 2@step=5 heat --steps 10000")).usual_transport().start();
    running.await_times("state restored from memory", 1);
    for times in 2..=3 {
        // One after the other, from another one each time: one that was lost may still be among them.
        let mut all = ranks(&running);
        let first = times % all.len();
        all.rotate_left(first);
        assert!(all.into_iter().any(|rank| scribble(rank) >= 1), "neighbours have a link");
        running.await_times("state restored from memory", times);
    }
    let outcome = running.finish().expect(0);
    assert_eq!(outcome.report().answer(), undisturbed.report().answer(), "{outcome}");
    // Links that break twice without progress between cost one of their ranks: what is overwritten slowly is that of the renewed links too.
    assert!(outcome.report().failures().len() <= 3, "{outcome}");
}

#[test]
fn memory_is_shared_unless_sockets_are_asked_for() {
    for (options, has_memory) in [("", true), ("--transport unix", false), ("--transport tcp", false)] {
        let running = at_work(options);
        let maps = ranks(&running).into_iter().map(|rank| {
            std::fs::read_to_string(format!("/proc/{}/maps", rank.as_raw_nonzero())).expect("it runs")
        });
        let rings = maps.filter(|maps| maps.contains("ftrun-ring")).count();
        assert_eq!(rings, if has_memory { 4 } else { 0 }, "{options}");
        running.signal(Signal::TERM);
        running.finish().expect(143);
    }
}
