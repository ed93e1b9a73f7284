//! The cheapest way through a grid, from one corner to the opposite one, to the right and down. A rank has some of the columns; a row goes through the ranks as a
//! wave, and the rank before is rows ahead.
//!
//! `ftrun -n 4 --lines log --kill 2@step=500 target/release/examples/wave`

use ft_checkpoint::{Flow, Program, Protect, Protection};
use ft_comm::{CommError, World};

const ROWS: u64 = 2000;
/// Of each rank.
const COLUMNS: usize = 500;
/// More than any way costs.
const FAR: u64 = u64::MAX / 2;

/// What the cheapest way to each place of the row costs.
#[derive(Default, Protect)]
struct State {
    row: Vec<u64>,
}

struct Wave;

impl Program for Wave {
    type State = State;
    type Error = CommError;
    const ALONE: bool = true;

    fn init(&mut self, _: &World) -> Result<State, CommError> {
        Ok(State { row: vec![FAR; COLUMNS] })
    }

    fn step(&mut self, state: &mut State, world: &World, step: u64) -> Result<Flow, CommError> {
        let (rank, size) = (world.rank(), world.size());
        let mut left = [if step == 1 { 0 } else { FAR }];
        if rank > 0 {
            world.comm().recv(&mut left, rank - 1, 0)?;
        }
        for (at, here) in state.row.iter_mut().enumerate() {
            let column = (rank * COLUMNS + at) as u64;
            *here = left[0].min(*here) + cost(step, column);
            left[0] = *here;
        }
        if rank + 1 < size {
            world.comm().send(&left, rank + 1, 0)?;
        }
        Ok(if step == ROWS { Flow::Done } else { Flow::Continue })
    }
}

/// Of a place of the grid.
fn cost(row: u64, column: u64) -> u64 {
    ((row * 7919) ^ (column * 104_729)) % 97
}

fn main() -> Result<(), ft_checkpoint::MainError> {
    let world = World::init()?;
    let protection = Protection::from_launcher(&world)?;
    let state = ft_checkpoint::run(world, protection, &mut Wave)?;
    if let Some(state) = state.filter(|state| state.rank == state.size - 1) {
        println!(
            "the cheapest way through {ROWS} x {} places costs {}",
            state.size * COLUMNS,
            state.row[COLUMNS - 1]
        );
    }
    Ok(())
}
