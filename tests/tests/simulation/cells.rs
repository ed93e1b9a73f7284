//! Collectives of few bytes, one after the other and on several communicators, whose messages go through cells beside the rings.

use ft_comm::{Communicator, Op, World};
use ft_proto::planted;
use ft_sim as sim;

use super::problem::{Problem, demand};
use super::repair::{STEPS, check, config, repairing};
use super::rings::through_memory;
use super::{Choices, Course, finds, for_seeds};

/// What has to come of a reduction of `[number, rank]` over ranks `0..size`.
fn sum(size: usize, number: u64) -> [u64; 2] {
    let size = size as u64;
    [size * number, size * (size - 1) / 2]
}

/// A few collectives in a row, the same on all ranks, in an order that `choices` gives.
fn collectives(comm: &Communicator, choices: &mut Choices) -> Result<(), Problem> {
    let (size, rank) = (comm.size(), comm.rank());
    for _ in 0..6 {
        let number = choices.below(1 << 40);
        let root = choices.below(size as u64) as usize;
        // With so many elements some messages are longer than a cell.
        let length = 2 + choices.below(3) as usize * 20;
        let mut buf = vec![number; length];
        buf[1] = rank as u64;
        let due = sum(size, number);
        match choices.below(6) {
            0 | 1 => {
                let mut said = if rank == root { vec![number; length] } else { vec![0; length] };
                comm.bcast(&mut said, root)?;
                let holds = said.iter().all(|word| *word == number);
                demand(holds, || format!("bcast from {root} of {number:x} gave {said:x?} at {rank}"))?;
            }
            2 | 3 => {
                comm.reduce(&mut buf, Op::Sum, root)?;
                demand(rank != root || buf[..2] == due, || {
                    format!("reduce to {root} gave {buf:?}, not {due:?}")
                })?;
            }
            4 => {
                comm.allreduce(&mut buf, Op::Sum)?;
                demand(buf[..2] == due, || format!("allreduce gave {buf:?} at {rank}, not {due:?}"))?;
            }
            _ => comm.barrier()?,
        }
    }
    Ok(())
}

fn attempt(world: &mut World, done: &mut u64, seed: u64) -> Result<(), Problem> {
    let mut farthest = [*done];
    world.everyone().allreduce(&mut farthest, Op::Max)?;
    *done = farthest[0];
    let comm = world.everyone();
    let half = comm.split(Some(comm.rank() as u32 % 2), 0)?.expect("each rank has a color");
    while *done < STEPS {
        let mut choices = Choices(seed * STEPS + *done);
        // A non-blocking one is under way meanwhile.
        let under_way = comm.iallreduce(vec![*done, comm.rank() as u64], Op::Sum)?;
        collectives(comm, &mut choices)?;
        collectives(&half, &mut choices)?;
        collectives(comm, &mut choices)?;
        let (came, due) = (under_way.wait()?, sum(comm.size(), *done));
        demand(came == due, || format!("iallreduce gave {came:?}, not {due:?}"))?;
        *done += 1;
    }
    drop(half);
    Ok(world.finalize(done.to_le_bytes().to_vec())?)
}

fn outcome(seed: u64, bug: &'static str) -> Result<Course, String> {
    let (config, _) = config(seed, bug, through_memory);
    check(seed, &sim::run(config, |world| repairing(world, |world, done| attempt(world, done, seed))))
}

#[test]
fn each_collective_gets_its_own_messages_whoever_dies() {
    for_seeds("each_collective", &[Course::Undisturbed, Course::Repaired], |seed| outcome(seed, ""));
}

#[test]
fn planted_a_cell_that_is_filled_before_its_message_was_taken_is_caught() {
    finds(planted::FILLS_FULL_CELLS, |seed| outcome(seed, planted::FILLS_FULL_CELLS));
}

#[test]
fn planted_a_cell_whose_message_is_for_another_collective_is_caught() {
    finds(planted::TAKES_ANY_CELL, |seed| outcome(seed, planted::TAKES_ANY_CELL));
}

#[test]
fn planted_a_cell_that_is_said_to_be_filled_too_early_is_caught() {
    finds(planted::PUBLISHES_EARLY, |seed| outcome(seed, planted::PUBLISHES_EARLY));
}

#[test]
fn planted_a_look_for_sleepers_without_a_fence_is_caught() {
    finds(planted::LOOKS_WITHOUT_FENCE, |seed| outcome(seed, planted::LOOKS_WITHOUT_FENCE));
}
