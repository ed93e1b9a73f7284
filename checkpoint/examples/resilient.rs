//! The resilient loop: a state, its first value and a step. Failures are none of the program's business.
//!
//! `ftrun -n 4 --kill 2@step=40 target/release/examples/resilient`

use ft_checkpoint::{Flow, MainError, Program, Protect, Protection};
use ft_comm::{CommError, Op, World};

const STEPS: u64 = 100;

#[derive(Default, Protect)]
struct Total {
    sum: u64,
}

struct Summing;

impl Program for Summing {
    type State = Total;
    type Error = CommError;

    fn init(&mut self, _: &World) -> Result<Total, CommError> {
        Ok(Total { sum: 0 })
    }

    fn step(&mut self, total: &mut Total, world: &World, number: u64) -> Result<Flow, CommError> {
        let mut terms = [number * (world.rank() as u64 + 1)];
        world.comm().allreduce(&mut terms, Op::Sum)?;
        total.sum += terms[0];
        Ok(if number == STEPS { Flow::Done } else { Flow::Continue })
    }
}

fn main() -> Result<(), MainError> {
    let world = World::init()?;
    let (size, protection) = (world.size() as u64, Protection::from_launcher(&world)?);
    let total = ft_checkpoint::run(world, protection, &mut Summing)?;
    assert!(total.is_none_or(|total| total.sum == STEPS * (STEPS + 1) / 2 * (size * (size + 1) / 2)));
    Ok(())
}
