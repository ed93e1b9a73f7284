//! Jobs over a real OpenSSH: hosts are namespaces of this machine, each with a server of its own. Where that is not installed, or this is
//! not root, nothing is tested.

use std::path::Path;

use rustix::process::Signal;

use crate::common::{Outcome, Report, Run, built};
use crate::hosts::{processes_on, send};

mod hosts;

use hosts::Hosts;

/// Six ranks on three hosts, of which two at a time may be lost.
const SIX: &str = "-n 6 --scheme rs:4+2 --json -v";
/// A job that is still at work when a test has done its worst to it.
const LASTING: &str = "load --state 64KiB --steps 300 --step-ms 10";

/// The answer of [`LASTING`], which depends neither on hosts nor on the time that its steps take.
fn lasting_answer() -> Report {
    Run::ftrun("-n 6 --scheme rs:4+2 --json load --state 64KiB --steps 300 --step-ms 0")
        .finish()
        .expect(0)
        .report()
}

fn ranks_of_failures(outcome: &Outcome) -> Vec<Vec<u64>> {
    outcome.report().failures().into_iter().map(|(ranks, _)| ranks).collect()
}

#[test]
fn the_answer_is_that_of_one_host_also_with_a_rank_killed() {
    let Some(hosts) = Hosts::start(3) else { return };
    let program = "cg --poisson 16";
    let here = Run::ftrun(&format!("-n 6 --scheme rs:4+2 --json {program}")).finish().expect(0).report();
    for (kill, lost) in [("", vec![]), ("--kill 3@step=20", vec![vec![3]])] {
        let outcome =
            hosts.ftrun(&format!("{SIX} --hosts {} {kill} {program}", hosts.list())).finish().expect(0);
        assert_eq!(outcome.report().answer(), here.answer(), "{outcome}");
        assert_eq!(ranks_of_failures(&outcome), lost, "{outcome}");
        // Nobody asked, and nobody was told, of anything else.
        assert!(outcome.stderr.lines().all(|line| line.starts_with("ftrun: ")), "{outcome}");
    }
}

/// A host with two of six ranks is lost, in the way that `strike` sees to.
fn lose_a_host(strike: impl FnOnce(&mut Hosts, &crate::common::Running)) {
    let Some(mut hosts) = Hosts::start(3) else { return };
    let mut running = hosts.ftrun(&format!("{SIX} --hosts {} {LASTING}", hosts.list())).limit(60).start();
    running.await_text("all ranks have joined");
    strike(&mut hosts, &running);
    running.await_text("host h2 is gone");
    let outcome = running.finish().expect(0);
    assert_eq!(outcome.report().answer(), lasting_answer().answer(), "{outcome}");
    assert_eq!(ranks_of_failures(&outcome), [[2, 3]], "{outcome}");
}

#[test]
fn a_host_is_switched_off() {
    lose_a_host(|hosts, _| hosts.switch_off(2));
}

#[test]
fn the_processes_of_a_host_are_killed() {
    lose_a_host(|_, running| {
        let (agents, ranks) = processes_on(running, "h2");
        assert_eq!((agents.len(), ranks.len()), (1, 2));
        send(&[ranks, agents].concat(), Signal::KILL);
    });
}

#[test]
fn the_link_to_a_host_is_cut() {
    lose_a_host(|hosts, _| hosts.cut(2));
}

/// The login shell of each host waits until it has begun on all of them.
#[test]
#[ignore = "slow: .ci/run runs it"]
fn sixteen_hosts_are_started_side_by_side() {
    const COUNT: usize = 16;
    let Some(hosts) = Hosts::start(COUNT) else { return };
    std::fs::create_dir(hosts.path("begun")).unwrap();
    let begun = hosts.path("begun");
    let begun = begun.display();
    for number in 1..=COUNT {
        let wait = format!("while [ $(ls {begun} | wc -l) -lt {COUNT} ]; do sleep 0.05; done");
        hosts.at_login(number, &format!("touch {begun}/{number}\n{wait}\n"));
    }
    let options = format!("-n {COUNT} --scheme rs:4+2 --json --hosts {}", hosts.list().replace(":2", ""));
    let outcome = hosts.ftrun(&format!("{options} cg --poisson 16")).limit(60).finish().expect(0);
    let here = Run::ftrun("-n 6 --json cg --poisson 16").finish().expect(0);
    assert_eq!(outcome.report().answer(), here.report().answer(), "{outcome}");
}
