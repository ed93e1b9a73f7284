//! What a program does about failures, in each of the ways that there are.

use ft_comm::{CommError, Communicator, MessageMode, OnFailure, Op, World};

use super::row::call;

/// How often a row is called.
pub(crate) const STEPS: u64 = 6;

/// Goes through the steps of a row to the end, whoever dies, and gives the number of steps; with `repairs` by repairing
/// the world, else by agreeing on every step and shrinking the communicator.
pub(crate) fn survive(world: &mut World, row: &str, repairs: bool) -> Result<u64, CommError> {
    let steps = if row == "finalize" { 1 } else { STEPS };
    let mut done = 0;
    if !repairs {
        return shrinking(world, row, steps);
    }
    loop {
        match attempt(world, row, steps, &mut done) {
            Err(error) if error.is_failure() => drop(world.repair(done)?),
            other => return other.map(|()| done),
        }
    }
}

fn right(world: &World, row: &str, right: bool) {
    assert!(right, "rank {}: '{row}' gave a wrong result", world.rank());
}

/// From the last repair to the end.
fn attempt(world: &mut World, row: &str, steps: u64, done: &mut u64) -> Result<(), CommError> {
    let comm = match world.membership().holes.is_empty() {
        true => world.comm().clone(),
        false => world.comm().shrink()?,
    };
    // Whoever has got farthest says where to go on; a replacement has got nowhere.
    let mut farthest = [*done];
    comm.allreduce(&mut farthest, Op::Max)?;
    *done = farthest[0];
    while *done < steps {
        world.step(*done + 1)?;
        right(world, row, call(&comm, row, *done)?);
        *done += 1;
        world.mark(*done);
    }
    world.finalize(done.to_le_bytes().to_vec())
}

fn shrinking(world: &mut World, row: &str, steps: u64) -> Result<u64, CommError> {
    world.set_message_mode(MessageMode::Continue);
    let mut comm: Communicator = world.comm().clone();
    let mut done = 0;
    while done < steps {
        world.step(done + 1)?;
        let outcome = call(&comm, row, done);
        match &outcome {
            Ok(is_right) => right(world, row, *is_right),
            Err(CommError::Revoked { .. }) => {}
            Err(error) if error.is_failure() => comm.revoke()?,
            Err(error) => return Err(error.clone()),
        }
        if comm.agree(u64::from(outcome.is_ok()))?.flags == 1 {
            done += 1;
        } else {
            comm = comm.shrink()?;
        }
    }
    world.finalize(done.to_le_bytes().to_vec()).map(|()| done)
}

/// The modes of the table: what the launcher is told, and whether the program repairs the world.
pub(crate) const MODES: [(&str, OnFailure, bool); 4] = [
    ("rebuild", OnFailure::Rebuild, true),
    ("shrink", OnFailure::Shrink, true),
    ("blank", OnFailure::Blank, true),
    ("continue", OnFailure::Shrink, false),
];
