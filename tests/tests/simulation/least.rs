//! Checkpoints with one own copy, where the live state is the other (`--memory least`), on the full stack.

use ft_checkpoint::checkpointer::{COPIES_EARLY, FORGETS_LIVE};
use ft_checkpoint::{MemoryUse, Protection};

use super::commit::{check, simulate_with};
use super::{Course, finds, finds_from, for_seeds};

fn run(seed: u64, estates: u32, bug: &'static str) -> Result<Course, String> {
    let scrub = seed % 5 == 1;
    let least = |of| Protection { memory_use: MemoryUse::Least, scrub, ..of };
    check(seed, &simulate_with(seed, estates, least, bug))
}

#[test]
fn one_copy_and_the_state_are_enough() {
    let courses = [Course::Undisturbed, Course::Repaired, Course::BeyondTolerance];
    for_seeds("one_copy_and_the_state", &courses, |seed| run(seed, 0, ""));
}

#[test]
fn one_copy_is_enough_in_memory_that_outlives_processes() {
    let courses = [Course::Undisturbed, Course::Repaired];
    for_seeds("one_copy_is_enough_in_memory", &courses, |seed| run(seed, 1 + (seed / 7 % 2) as u32, ""));
}

#[test]
fn planted_a_rank_that_copies_its_state_before_the_vote_is_caught() {
    finds_from(110, COPIES_EARLY, |seed| run(seed, 0, COPIES_EARLY));
}

#[test]
fn planted_a_rank_that_forgets_that_its_state_is_the_checkpoint_is_caught() {
    finds(FORGETS_LIVE, |seed| run(seed, 0, FORGETS_LIVE));
}
