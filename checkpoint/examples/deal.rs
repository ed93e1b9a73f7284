//! A master deals out tasks, and takes results from whoever has one: the divisors of a number, so results differ in length.
//!
//! `ftrun -n 4 --kill 0@step=100 target/release/examples/deal`

use ft_checkpoint::{Flow, Lines, Program, Protect, Protection};
use ft_comm::{CommError, Source, Tag, World};

const TASKS: u64 = 2000;
const TASK: Tag = 1;
const RESULT: Tag = 2;
/// Instead of a task, when there are no more.
const NONE: u64 = u64::MAX;

#[derive(Default, Protect)]
struct State {
    dealt: u64,
    sum: u64,
}

struct Deal;

impl Program for Deal {
    type State = State;
    type Error = CommError;
    const ALONE: bool = true;

    fn init(&mut self, world: &World) -> Result<State, CommError> {
        if world.size() == 1 {
            world.abort(2, "a master alone has nobody to deal to: two ranks at least (-n 2)");
            world.check()?;
        }
        Ok(State::default())
    }

    fn step(&mut self, state: &mut State, world: &World, step: u64) -> Result<Flow, CommError> {
        let (comm, workers) = (world.comm(), world.size() as u64 - 1);
        if world.rank() > 0 {
            let mut task = [0];
            comm.recv(&mut task, 0, TASK)?;
            if task == [NONE] {
                return Ok(Flow::Done);
            }
            comm.send(&divisors(task[0]), 0, RESULT)?;
            return Ok(Flow::Continue);
        }
        let mut idle = step as usize;
        if step > workers {
            let mut result = comm.mprobe(Source::Any, RESULT)?;
            let mut found = vec![0; result.status().bytes / size_of::<u64>()];
            idle = result.status().source;
            result.recv(&mut found)?;
            state.sum += found.iter().sum::<u64>();
        }
        state.dealt += 1;
        comm.send(&[if state.dealt <= TASKS { state.dealt } else { NONE }], idle, TASK)?;
        Ok(if state.dealt == TASKS + workers { Flow::Done } else { Flow::Continue })
    }
}

fn divisors(number: u64) -> Vec<u64> {
    (1..=number).filter(|divisor| number.is_multiple_of(*divisor)).collect()
}

fn main() -> Result<(), ft_checkpoint::MainError> {
    let world = World::init()?;
    // Ranks take steps of their own, so nothing else is possible.
    let protection = Protection { lines: Lines::Log, ..Protection::from_launcher(&world)? };
    let state = ft_checkpoint::run(world, protection, &mut Deal)?;
    if let Some(state) = state.filter(|state| state.rank == 0) {
        println!("the divisors of 1 to {TASKS} sum up to {}", state.sum);
    }
    Ok(())
}
