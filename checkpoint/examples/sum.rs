//! The program of the front page: a state of which a part never changes, and a step.
//!
//! `ftrun -n 4 --scheme rs:2+2 --kill 1,3@step=40 target/release/examples/sum`

use ft_checkpoint::{Flow, Program, Protect, Protection};
use ft_comm::{CommError, Op, World};

#[derive(Default, Protect)]
struct State {
    #[protect(constant)] // protected once
    weights: Vec<f64>,
    sum: f64, // protected with every checkpoint
}

struct Sum;

impl Program for Sum {
    type State = State;
    type Error = CommError;

    fn init(&mut self, world: &World) -> Result<State, CommError> {
        Ok(State { weights: vec![world.rank() as f64; 1000], sum: 0.0 })
    }

    fn step(&mut self, state: &mut State, world: &World, step: u64) -> Result<Flow, CommError> {
        let mut total = [state.weights.iter().sum::<f64>()];
        world.comm().allreduce(&mut total, Op::Sum)?;
        state.sum += total[0];
        Ok(if step == 100 { Flow::Done } else { Flow::Continue })
    }
}

fn main() -> Result<(), ft_checkpoint::MainError> {
    let world = World::init()?; // without ftrun: a job of one rank
    let protection = Protection::from_launcher(&world)?;
    let state = ft_checkpoint::run(world, protection, &mut Sum)?;
    println!("{:?}", state.map(|state| state.sum));
    Ok(())
}
