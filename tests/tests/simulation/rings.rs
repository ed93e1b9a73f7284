//! Memory beside links: the jobs of `repair.rs`, all of whose bytes go through it.

use std::time::Duration;

use ft_proto::planted;
use ft_sim::{self as sim, Blow, Config, Fault, Network, Trigger};

use super::repair::{check, lost_rank, program, simulate_with};
use super::{Choices, Course, checker, finds, finds_from, for_seeds};

pub(super) fn through_memory(network: &mut Network) {
    network.rings = true;
}

/// A job one of whose ranks writes nonsense into all memory that it shares, once.
fn overwritten(seed: u64, bug: &'static str) -> Result<Course, String> {
    let mut choices = Choices(seed);
    let ranks = 3 + choices.below(4) as usize;
    let mut config = Config { bug, ..Config::rough(seed, ranks) };
    through_memory(&mut config.network);
    let at = Duration::from_micros(8_000 + choices.below(10_000));
    let rank = choices.below(ranks as u64) as usize;
    config.faults.explicit = vec![Fault { trigger: Trigger::At(at), blow: Blow::Overwrite(rank) }];
    let outcome = sim::run(config, |world| program(world, false));
    let course = check(seed, &outcome)?;
    let lost: Vec<usize> = checker::launcher(&outcome).filter_map(lost_rank).collect();
    match lost[..] {
        [] | [_] => Ok(course),
        _ => Err(format!("{lost:?} were lost where rank {rank} has written nonsense")),
    }
}

#[test]
fn bytes_come_whole_and_nobody_sleeps_beside_them_whoever_dies() {
    for_seeds("bytes_come_whole", &[Course::Undisturbed, Course::Repaired], |seed| {
        check(seed, &simulate_with(seed, "", through_memory))
    });
}

#[test]
fn who_writes_nonsense_is_cut_off_and_costs_nobody_else_anything() {
    for_seeds("who_writes_nonsense", &[Course::Repaired], |seed| overwritten(seed, ""));
}

#[test]
fn planted_bytes_that_are_said_to_be_there_too_early_are_caught() {
    let bug = planted::PUBLISHES_EARLY;
    finds(bug, |seed| check(seed, &simulate_with(seed, bug, through_memory)));
}

#[test]
fn planted_a_look_for_sleepers_without_a_fence_is_caught() {
    let bug = planted::LOOKS_WITHOUT_FENCE;
    finds(bug, |seed| check(seed, &simulate_with(seed, bug, through_memory)));
}

#[test]
fn planted_memory_of_an_old_generation_that_is_taken_is_caught() {
    let bug = planted::TAKES_OLD_FRAMES;
    finds(bug, |seed| check(seed, &simulate_with(seed, bug, through_memory)));
}

#[test]
fn planted_positions_that_are_taken_as_they_are_are_caught() {
    finds_from(340, planted::TRUSTS_POSITIONS, |seed| overwritten(seed, planted::TRUSTS_POSITIONS));
}
