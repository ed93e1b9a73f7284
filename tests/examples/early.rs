//! What not to do: rank 1 says that the work is done after step 7, and the others go on. With
//! `messages` they need rank 1 in their next step; without a word they need it for a checkpoint.

use ft_checkpoint::{Flow, Program, Protect, Protection};
use ft_comm::{CommError, Op, World};

const LAST: u64 = 7;

#[derive(Default, Protect)]
struct State {
    sum: u64,
}

struct Early(String);

impl Program for Early {
    type State = State;
    type Error = CommError;

    fn init(&mut self, _: &World) -> Result<State, CommError> {
        Ok(State::default())
    }

    fn step(&mut self, state: &mut State, world: &World, step: u64) -> Result<Flow, CommError> {
        let mut sum = [step];
        if self.0 == "messages" {
            world.comm().allreduce(&mut sum, Op::Sum)?;
        }
        state.sum += sum[0];
        let last = if world.rank() == 1 { LAST } else { 100 * LAST };
        Ok(if step == last { Flow::Done } else { Flow::Continue })
    }
}

fn main() -> Result<(), ft_checkpoint::MainError> {
    let world = World::init()?;
    let protection = Protection::from_launcher(&world)?;
    let how = std::env::args().nth(1).unwrap_or_default();
    ft_checkpoint::run(world, protection, &mut Early(how))?;
    Ok(())
}
