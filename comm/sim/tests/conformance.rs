//! What a program may expect of messages and collectives, for every number of ranks, in the simulator.

use ft_sim::ranks;

#[path = "../../examples/conformance/call.rs"]
mod call;
#[path = "../../examples/conformance/collectives.rs"]
mod collectives;
#[path = "../../examples/conformance/communicators.rs"]
mod communicators;
#[path = "../../examples/conformance/messages.rs"]
mod messages;

#[test]
fn collectives_are_as_the_serial_reference_has_it() {
    for size in (1..=5).chain([7, 8, 13]) {
        ranks(size, |comm| collectives::check(comm, 40_000).unwrap());
    }
}

#[test]
fn messages_of_all_kinds_arrive() {
    for size in 1..=5 {
        ranks(size, |comm| messages::check(comm).unwrap());
    }
}

#[test]
fn communicators_keep_their_messages_apart() {
    for size in 1..=9 {
        ranks(size, |comm| communicators::check(comm).unwrap());
    }
}
