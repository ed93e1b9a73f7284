//! What a program may expect of messages and collectives, over real sockets. (The simulator has it for more sizes.)

use crate::common::{Run, example};

/// Of all algorithms: an odd number of ranks, and more than there are cores.
const RANKS: [usize; 3] = [1, 3, 8];

fn conforms(transport: &str, ranks: &[usize]) {
    for ranks in ranks {
        let run = Run::ftrun(&format!("-n {ranks} --transport {transport}")).limit(60);
        // Long enough for every algorithm that long messages take.
        let outcome = run.arg(example("conformance")).arg("600000").finish().expect(0);
        assert_eq!(outcome.stdout, format!("{ranks} ranks conform\n"), "{outcome}");
        assert_eq!(outcome.stderr, "", "{outcome}");
    }
}

#[test]
fn over_unix_sockets() {
    conforms("auto", &RANKS);
}

#[test]
fn over_tcp() {
    conforms("tcp", &RANKS);
}

#[test]
#[ignore = "minutes"]
fn on_more_numbers_of_ranks() {
    for transport in ["auto", "tcp"] {
        conforms(transport, &[2, 4, 7, 16]);
    }
}

#[test]
fn a_process_that_a_rank_has_forked_is_refused_and_the_sums_of_the_ranks_are_right() {
    for ranks in [1, 3] {
        let run = Run::ftrun(&format!("-n {ranks}")).limit(60).arg(example("forked"));
        let outcome = run.finish().expect(0);
        let mut lines: Vec<&str> = outcome.stdout.lines().collect();
        lines.sort_unstable();
        let due: Vec<String> = (0..ranks).map(|rank| format!("rank {rank}: {ranks}")).collect();
        assert_eq!(lines, due, "{outcome}");
    }
}
