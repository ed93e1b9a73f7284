//! Many recoveries in one job: the right answer, and nothing that grows.

use rustix::process::Pid;

use crate::common::{PATIENT, Run, Running, bytes_of};

const KILLS: usize = 200;

/// Open files, threads and resident bytes of the launcher.
fn held(running: &Running) -> [u64; 3] {
    let process = running.launcher();
    let count = |what: &str| std::fs::read_dir(format!("/proc/{process}/{what}")).unwrap().count() as u64;
    [count("fd"), count("task"), bytes_of(process, "VmRSS")]
}

#[test]
fn leave_nothing_behind() {
    let job = format!("simulator --size 32 --numloops {} --procfail {KILLS}", 20 * KILLS);
    let run =
        Run::ftrun(&format!("-n 4 -v --json {PATIENT} --every 5 --spares 1 --max-restarts {KILLS} {job}"));
    let mut running = run.limit(120).start();
    let back = "state restored from memory";
    running.await_times(back, 10);
    let early = held(&running);
    // So many are to come that it is not over meanwhile.
    running.await_times(back, KILLS - 50);
    let late = held(&running);
    let processes: Vec<Pid> = running.processes();
    assert!(
        processes.len() <= 1 + 4 + 2,
        "a launcher, four ranks, a spare, one that is dying: {processes:?}"
    );
    let outcome = running.finish().expect(0);
    let lost: usize = outcome.report().failures().iter().map(|(ranks, _)| ranks.len()).sum();
    assert_eq!(lost, KILLS, "{outcome}");
    // A link that is just opening, a process that is just dying.
    assert!(late[0] <= early[0] + 16, "{} open files, then {}", early[0], late[0]);
    assert!(late[1] <= early[1], "{} threads, then {}", early[1], late[1]);
    assert!(late[2] <= early[2] + early[2] / 20 + (1 << 20), "{} bytes, then {}", early[2], late[2]);
}
