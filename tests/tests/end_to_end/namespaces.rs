//! Jobs in containers: with processes, users and mounts of their own, as `unshare` of util-linux makes them, and with a `/dev/shm` that is full.

use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::common::{POISSON, Run, built, variable};
use crate::hosts::{SIX, check_answer, over, send};

/// Its processes have other numbers inside; it ends with what has started it.
const CONTAINER: &str =
    "unshare --user --map-root-user --mount --pid --fork --kill-child --mount-proc --propagation private";

/// Whether containers can be made here; says so if not.
fn can_be_made() -> bool {
    let mut words = CONTAINER.split(' ');
    let mut command = Command::new(words.next().expect("it has words"));
    command.args(words).arg("true").stdin(Stdio::null()).stderr(Stdio::null());
    let can = command.status().is_ok_and(|status| status.success());
    if !can {
        println!("skipped: '{CONTAINER}' is not allowed here");
    }
    can
}

/// `ftrun` in a container in which `script` was run.
fn within(script: &str, options: &str) -> Run {
    let (program, arguments) = CONTAINER.split_once(' ').expect("it has words");
    let run = Run::program(Path::new(program), arguments).arg("sh").arg("-c");
    run.arg(format!("{script}; exec {} {options}", built().join("ftrun").display()))
}

#[test]
fn a_job_in_a_container_survives_and_lacks_nothing() {
    if !can_be_made() {
        return;
    }
    let full = "mount -t tmpfs -o size=4096 none /dev/shm && head -c 4096 /dev/zero > /dev/shm/full";
    for script in ["true", full] {
        for options in ["", "--keep-memory", "--transport unix"] {
            let job = format!("-n 4 --json -v {options} --kill 2@step=5 {POISSON}");
            let outcome = within(script, &job).finish().expect(0);
            check_answer(&outcome);
            assert_eq!(outcome.report().failures().len(), 1, "{outcome}");
            assert!(
                !outcome.stderr.contains("copied twice") && !outcome.stderr.contains("sockets"),
                "{outcome}"
            );
        }
    }
}

/// Each host is one. All processes of one of them end at once, the keeper, which is its first one, among them.
#[test]
fn hosts_that_are_containers_are_lost_and_replaced() {
    if !can_be_made() {
        return;
    }
    let script = format!("export FT_TESTS_HOST=$1; shift; exec {CONTAINER} sh -c \"exec $*\"");
    let options = format!("{SIX} --json -v --heartbeat-timeout 20000 --kill 2@step=5:hang {POISSON}");
    let (_folder, run) = over(&script, &options);
    let mut running = run.start();
    running.await_text("strikes");
    let mut there = running.processes();
    there.retain(|process| variable(*process, "FT_TESTS_HOST").as_deref() == Some("127.0.0.3"));
    assert!(there.len() >= 4, "a container, an agent, two ranks: {there:?}");
    send(&there, Signal::KILL);
    let outcome = running.finish().expect(0);
    check_answer(&outcome);
    assert_eq!(
        outcome.report().failures().iter().map(|(ranks, _)| ranks.len()).sum::<usize>(),
        2,
        "{outcome}"
    );
}
