//! More ranks than cores by far: they start, meet and stop, and have links to those only with whom they have spoken.

use ft_comm::time::Clock;

use crate::common::{Run, example};
use crate::sockets::sockets;

const RANKS: usize = 100;

#[test]
fn a_hundred_ranks_meet_over_few_links() {
    let clock = Clock::start();
    let run = Run::ftrun(&format!("-n {RANKS}")).open_stdin().limit(120);
    let mut running = run.arg(example("many")).arg("wait").start();
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
