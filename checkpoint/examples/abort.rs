//! A program that finds out in the middle of its work that its input makes no sense, and ends the
//! job with `World::abort` and the status of its first argument. That is a failure whatever the
//! status is, and checkpoints in files stay:
//!
//! ```sh
//! ftrun -n 2 --every 1 --spill DIR --spill-every 1 target/release/examples/abort 0
//! ```

use ft_checkpoint::{Flow, Program, Protect, Protection};
use ft_comm::{CommError, MainError, Op, World};

#[derive(Default, Protect)]
struct State {
    sum: f64,
}

struct Sum {
    status: i32,
}

impl Program for Sum {
    type State = State;
    type Error = CommError;

    fn init(&mut self, _: &World) -> Result<State, CommError> {
        Ok(State::default())
    }

    fn step(&mut self, state: &mut State, world: &World, step: u64) -> Result<Flow, CommError> {
        let mut one = [1.0];
        world.comm().allreduce(&mut one, Op::Sum)?;
        state.sum += one[0];
        match step {
            40 if world.rank() == 1 => Err(world.abort(self.status, "the input makes no sense")),
            100 => Ok(Flow::Done),
            _ => Ok(Flow::Continue),
        }
    }
}

fn main() -> Result<(), MainError> {
    let status = std::env::args().nth(1).map_or(Ok(0), |text| text.parse())?;
    let world = World::init()?;
    let protection = Protection::from_launcher(&world)?;
    ft_checkpoint::run(world, protection, &mut Sum { status })?;
    Ok(())
}
