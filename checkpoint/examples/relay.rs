//! The program of the page on lines: items go round a ring, and three are on their way to each rank at any time.
//!
//! `ftrun -n 4 --lines log --kill 2@step=500 target/release/examples/relay`

use ft_checkpoint::{Flow, Program, Protect, Protection};
use ft_comm::{CommError, World};

const ITEMS: u64 = 1000;
const UNDER_WAY: u64 = 3;

#[derive(Default, Protect)]
struct State {
    sum: u64,
}

struct Relay;

impl Program for Relay {
    type State = State;
    type Error = CommError;

    fn init(&mut self, _: &World) -> Result<State, CommError> {
        Ok(State::default())
    }

    fn step(&mut self, state: &mut State, world: &World, step: u64) -> Result<Flow, CommError> {
        let (rank, size) = (world.rank(), world.size());
        if step <= ITEMS {
            world.comm().send(&[step * (rank as u64 + 1) + state.sum % 7], (rank + 1) % size, 0)?;
        }
        if step > UNDER_WAY {
            let mut item = [0];
            world.comm().recv(&mut item, (rank + size - 1) % size, 0)?;
            state.sum += item[0];
        }
        Ok(if step == ITEMS + UNDER_WAY { Flow::Done } else { Flow::Continue })
    }
}

fn main() -> Result<(), ft_checkpoint::MainError> {
    let world = World::init()?;
    let protection = Protection::from_launcher(&world)?;
    let state = ft_checkpoint::run(world, protection, &mut Relay)?;
    println!("{:?}", state.map(|state| state.sum));
    Ok(())
}
