//! A table of algorithms is what the ranks run: seen by the bytes that the root of a broadcast sends.

use ft_comm::World;
use ft_comm::collective::Selection;
use ft_comm::settings::MessageSettings;
use ft_sim::{Config, run};

/// Bytes that each broadcast has.
const BYTES: u64 = 1000;

/// Bytes that rank 0 sends for one broadcast.
fn sent(world: &World) -> u64 {
    let before = world.bytes_sent();
    world.comm().bcast(&mut [0u8; BYTES as usize], 0).unwrap();
    let sent = world.bytes_sent() - before;
    world.comm().barrier().unwrap();
    sent
}

/// What rank 0 of 8 sends with the table of the job, and then with another one.
fn root_sends(table: Option<&str>, other: &str) -> [u64; 2] {
    let other = Selection::parse(other).unwrap();
    let messages = MessageSettings { collectives: table.map(str::to_owned), ..MessageSettings::default() };
    let outcome = run(Config { messages, ..Config::calm(8) }, |mut world| {
        let first = sent(&world);
        world.choose_algorithms(other.clone());
        let sent = [first, sent(&world)];
        world.finalize(Vec::new()).unwrap();
        (world.rank() == 0).then_some(sent)
    });
    outcome.finished.into_iter().find_map(|finished| finished.result.unwrap()).unwrap()
}

#[test]
fn the_table_of_the_job_and_one_that_is_chosen_later() {
    // Seven messages from the root, or three down a tree, which is the builtin choice.
    assert_eq!(root_sends(Some("bcast * * linear"), "bcast * * binomial"), [7 * BYTES, 3 * BYTES]);
    assert_eq!(root_sends(None, "bcast * * linear"), [3 * BYTES, 7 * BYTES]);
}
