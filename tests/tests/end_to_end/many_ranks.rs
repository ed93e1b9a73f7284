//! More ranks than cores by far: they start, meet and stop, and have links to those only with whom they have spoken.

use std::path::Path;

use ft_comm::time::Clock;

use crate::common::{PATIENT, Run, built, example};
use crate::sockets::sockets;

const RANKS: usize = 200;

#[test]
fn two_hundred_ranks_meet_over_few_links() {
    let clock = Clock::start();
    // The usual limit of open files: the launcher needs about four for each rank of its host.
    let run = Run::program(Path::new("/bin/sh"), "-c").arg("ulimit -n 1024; exec \"$0\" \"$@\"");
    let run = run.arg(built().join("ftrun")).arg("-n").arg(RANKS.to_string());
    // With so many of them one or the other has no core for long.
    let run = PATIENT.split(' ').fold(run, Run::arg);
    let mut running = run.open_stdin().limit(120).arg(example("many")).arg("wait").start();
    // Rank 0 says so and waits; the others are in a barrier, or before it.
    running.await_text(&format!("{RANKS} ranks have met"));
    let mut ranks = running.processes();
    ranks.retain(|process| *process != running.launcher());
    assert_eq!(ranks.len(), RANKS);
    let found = sockets(&ranks);
    let links = found.unix + found.tcp - RANKS; // each has a connection to the launcher
    running.end_stdin();
    running.finish().expect(0);
    let all = RANKS * (RANKS - 1);
    println!(
        "{RANKS} ranks: {:.2} s, {links} ends of links of {all}, {} sockets that listen",
        clock.now().seconds(),
        found.doors.len()
    );
    // A barrier and a sum take a logarithmic number of partners.
    assert!(links >= 2 * (RANKS - 1), "{links} ends do not connect {RANKS} ranks");
    assert!(links < all / 4, "{links} ends of links of {all}");
}
