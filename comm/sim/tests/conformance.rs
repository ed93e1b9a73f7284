//! What a program may expect of messages and collectives, for every number of ranks, in the simulator.

use ft_sim::ranks;

#[path = "../../examples/conformance/checks.rs"]
mod checks;

#[test]
fn collectives_are_as_the_serial_reference_has_it() {
    for size in (1..=5).chain([7, 8, 13]) {
        ranks(size, |comm| checks::collectives(comm, 40_000).unwrap());
    }
}

#[test]
fn messages_of_all_kinds_arrive() {
    for size in 1..=5 {
        ranks(size, |comm| checks::messages(comm).unwrap());
    }
}

#[test]
fn communicators_keep_their_messages_apart() {
    for size in 1..=9 {
        ranks(size, |comm| checks::communicators(comm).unwrap());
    }
}
