//! Agents that die while their ranks live: others take their places. `FT_RUNS=100` makes a soak, `FT_SEED` repeats a run.

use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::common::{Run, ends_within, example};
use crate::hosts::{HOSTS, LIKE_SSH, SIX, keeper_of, over, processes_on, send, stopped};
use crate::random_kills::{SplitMix, number, seed};

/// Six ranks that are at work until their standard input ends, and then look whether nothing was lost of it.
fn at_work(options: &str) -> (TempDir, Run) {
    let options = format!("{SIX} --json -v --pace 0.01 --heartbeat-timeout 20000 {options}");
    let (folder, run) = over(LIKE_SSH, &options);
    (folder, run.arg(example("going_on")).open_stdin())
}

fn pause(ms: u64) {
    let span = format!("{}", ms as f64 * 1e-3);
    assert!(std::process::Command::new("sleep").arg(span).status().unwrap().success());
}

/// Any host, at any time, as early as an agent is there.
#[test]
fn ranks_outlive_their_agent() {
    let seed = seed();
    let random = &mut SplitMix(seed);
    for run in 0..number("FT_RUNS").unwrap_or(3) {
        let story = format!("FT_SEED={seed}, run {run}");
        let (_folder, command) = at_work("");
        let mut running = command.start();
        if random.below(4) > 0 {
            running.await_text("all ranks have joined");
        }
        let host = HOSTS[random.below(3) as usize];
        let (agents, ranks) = loop {
            let (agents, ranks) = processes_on(&running, host);
            if ranks.len() == 2 {
                break (agents, ranks);
            }
        };
        pause(random.below(500));
        send(&agents, Signal::KILL);
        running.await_text("has another agent, its ranks go on");
        assert_eq!(processes_on(&running, host).1, ranks, "{story}");
        running.end_stdin();
        let outcome = running.finish().expect(0);
        assert!(outcome.stderr.contains("replaced [0, 0, 0, 0, 0, 0]"), "{story}: {outcome}");
        assert_eq!(outcome.report().failures(), [], "{story}: {outcome}");
        assert_eq!(outcome.report().0["agents_back"][host], 1, "{story}: {outcome}");
    }
}

/// The agent in an agent's place dies, too, and so on; then one of the ranks, which the last one replaces: with the memory of the host, which
/// the first one has made.
#[test]
fn agent_after_agent_dies_and_then_a_rank() {
    // The rank hangs meanwhile: a checkpoint has been taken, and the job gets no further.
    let (_folder, run) = at_work("--keep-memory --kill 2@step=25:hang");
    let mut running = run.start();
    running.await_text("--kill 2@step=25:hang strikes");
    let hung = stopped(&running);
    let (mut agents, ranks) = processes_on(&running, HOSTS[1]);
    for times in 1..=5 {
        send(&agents, Signal::KILL);
        running.await_times("host 127.0.0.3 has another agent, its ranks go on", times);
        let there = processes_on(&running, HOSTS[1]);
        assert!(there.0.len() == 1 && there.0 != agents && there.1 == ranks);
        agents = there.0;
    }
    send(&[hung], Signal::KILL);
    running.await_text("state restored from memory");
    let there = processes_on(&running, HOSTS[1]).1;
    assert!(there.len() == 2 && ranks.iter().all(|rank| there.contains(rank) == (*rank != hung)));
    running.end_stdin();
    let outcome = running.finish().expect(0);
    let [(lost, _)] = &outcome.report().failures()[..] else { panic!("one failure: {outcome}") };
    assert_eq!(lost, &[2], "{outcome}");
    // The agent has the kernel's word, and the launcher waits a moment for it when the link breaks, but not for an agent that is slow.
    let causes = ["killed by signal 9", "its link to the launcher broke"];
    assert!(causes.iter().any(|cause| outcome.stderr.contains(cause)), "{outcome}");
    assert_eq!(outcome.report().0["failures"][0]["restore"]["kept"], 1, "{outcome}");
}

/// An agent and one or both of its ranks, in any order.
#[test]
fn an_agent_and_its_ranks_die() {
    let seed = seed();
    let random = &mut SplitMix(seed);
    for run in 0..number("FT_RUNS").unwrap_or(3) {
        let (_folder, command) = at_work("");
        let mut running = command.start();
        running.await_text("all ranks have joined");
        let (agents, mut victims) = processes_on(&running, HOSTS[random.below(3) as usize]);
        victims.truncate(random.below(2) as usize + 1);
        victims.insert(random.below(victims.len() as u64 + 1) as usize, agents[0]);
        pause(random.below(1000));
        send(&victims, Signal::KILL);
        running.end_stdin();
        let outcome = running.finish().expect(0);
        assert!(!outcome.report().failures().is_empty(), "FT_SEED={seed}, run {run}: {outcome}");
    }
}

/// What is said to a process and what it says goes on, and ends.
#[test]
fn streams_go_on() {
    let (_folder, run) = over(LIKE_SSH, "-n 1 -v --hosts 127.0.0.2 /bin/sh -c");
    let script = "while read line; do echo got $line; done; echo end; exit 0";
    let mut running = run.arg(script).open_stdin().start();
    for turn in 1..=5 {
        running.say(&format!("{turn}\n"));
        running.await_text(&format!("got {turn}\n"));
        send(&processes_on(&running, HOSTS[0]).0, Signal::KILL);
        running.await_times("has another agent", turn);
    }
    running.end_stdin();
    let outcome = running.finish().expect(0);
    assert_eq!(outcome.stdout, "[0] got 1\n[0] got 2\n[0] got 3\n[0] got 4\n[0] got 5\n[0] end\n");
}

/// A signal to all lies in the socket of an agent that stands still, and is killed: the next one sends it.
#[test]
fn a_signal_to_all_is_not_lost_with_an_agent() {
    let (_folder, run) = over(LIKE_SSH, "-n 2 -v --heartbeat-timeout 20000 --hosts 127.0.0.2 /bin/sh -c");
    let script = "trap 'echo told; exit 0' TERM; echo ready; while :; do sleep 0.02; done";
    let mut running = run.arg(script).start();
    running.await_times("ready", 2);
    let agents = processes_on(&running, HOSTS[0]).0;
    send(&agents, Signal::STOP);
    running.signal(Signal::TERM);
    pause(200); // as long as it stands still
    send(&agents, Signal::KILL);
    let outcome = running.finish().expect(143);
    assert_eq!(outcome.stdout.matches("told").count(), 2, "{outcome}");
}

/// How a process has ended is known though its agent was another one when it started.
#[test]
fn statuses_are_those_of_the_processes() {
    let (_folder, run) = over(LIKE_SSH, "-n 2 -v --hosts 127.0.0.2 /bin/sh -c");
    let mut running = run.arg("echo ready; read line; exit $((RANK * 7))").open_stdin().start();
    running.await_times("ready", 2);
    send(&processes_on(&running, HOSTS[0]).0, Signal::KILL);
    running.await_text("has another agent");
    running.end_stdin();
    running.finish().expect(7);
}

/// The next agent finds no launcher, and nothing is left.
#[test]
fn an_agent_and_its_launcher_die() {
    let (_folder, run) = over(LIKE_SSH, "-n 2 --hosts 127.0.0.2 /bin/sh -c");
    let mut running = run.arg("setsid sleep 1000 & echo ready; exec sleep 1000").start();
    running.await_times("ready", 2);
    let (agents, _) = processes_on(&running, HOSTS[0]);
    let keeper = keeper_of(agents[0]);
    send(&[running.launcher(), agents[0]], Signal::KILL);
    running.finish_killed().expect(128 + 9);
    assert!(ends_within(keeper, Duration::from_secs(5)));
}

/// What ranks have started ends with their keeper, and with the job.
#[test]
fn nothing_outlives_a_keeper() {
    let (_folder, run) = over(LIKE_SSH, "-n 2 -v --hosts 127.0.0.2,127.0.0.3 /bin/sh -c");
    let mut running = run.arg("setsid sleep 1000 & echo ready; exec sleep 1000").start();
    running.await_times("ready", 2);
    let (agents, ranks) = processes_on(&running, HOSTS[1]);
    send(&[keeper_of(agents[0])], Signal::KILL);
    for process in ranks.into_iter().chain(agents) {
        let line = std::fs::read_to_string(format!("/proc/{process}/cmdline"));
        assert!(ends_within(process, Duration::from_secs(5)), "{line:?}");
    }
    running.signal(Signal::TERM);
    running.finish_killed();
}

/// One keeper is enough. Its agent continues it when the ranks of its host have ended.
#[test]
fn stopped_keeper_does_not_hold_up_the_end() {
    for hosts in 1..=3 {
        let (_folder, run) = at_work("");
        let mut running = run.start();
        running.await_text("all ranks have joined");
        let agents = HOSTS[..hosts].iter().flat_map(|host| processes_on(&running, host).0);
        let keepers: Vec<_> = agents.map(keeper_of).collect();
        send(&keepers, Signal::STOP);
        running.end_stdin();
        let outcome = running.finish().expect(0);
        assert!(outcome.stderr.contains("replaced [0, 0, 0, 0, 0, 0]"), "{outcome}");
    }
}

/// A keeper is needed for a replacement.
#[test]
fn rank_of_a_stopped_keeper_is_replaced_on_its_host() {
    let (_folder, run) = at_work("");
    let mut running = run.start();
    running.await_text("all ranks have joined");
    let (agents, ranks) = processes_on(&running, HOSTS[1]);
    send(&[keeper_of(agents[0])], Signal::STOP);
    send(&ranks[..1], Signal::KILL);
    running.await_text("state restored from memory");
    assert_eq!(processes_on(&running, HOSTS[1]).1.len(), 2);
    running.end_stdin();
    running.finish().expect(0);
}
