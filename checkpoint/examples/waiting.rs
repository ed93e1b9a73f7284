//! A job that waits before its first step until the standard input of rank 0 ends, and prints how often each of its ranks
//! was replaced: to see what happens when everything else is ready, spares for instance.
//!
//! `ftrun -n 4 --spares 1 -v --kill 2@step=12 target/release/examples/waiting`, then Ctrl-D

use std::io::Read;

use ft_checkpoint::{Flow, MainError, Program, Protect, Protection};
use ft_comm::{CommError, Op, World};

const STEPS: u64 = 40;

#[derive(Default, Protect)]
struct Total {
    sum: u64,
}

struct Waiting;

impl Program for Waiting {
    type State = Total;
    type Error = CommError;

    fn init(&mut self, world: &World) -> Result<Total, CommError> {
        if world.rank() == 0 {
            // What cannot be read has ended.
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
        }
        world.comm().barrier()?;
        Ok(Total { sum: 0 })
    }

    fn step(&mut self, total: &mut Total, world: &World, number: u64) -> Result<Flow, CommError> {
        let mut terms = [number * (world.rank() as u64 + 1)];
        world.comm().allreduce(&mut terms, Op::Sum)?;
        total.sum += terms[0];
        Ok(if number == STEPS { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, total: &mut Total, world: &World) -> Result<Vec<u8>, CommError> {
        let ranks = world.size() as u64;
        assert_eq!(total.sum, STEPS * (STEPS + 1) / 2 * (ranks * (ranks + 1) / 2));
        let mut replaced = vec![0; world.size()];
        world.comm().allgather(&[u64::from(world.incarnation())], &mut replaced)?;
        if world.rank() == 0 {
            println!("replaced {replaced:?}");
        }
        Ok(vec![])
    }
}

fn main() -> Result<(), MainError> {
    let world = World::init()?;
    let protection = Protection::from_launcher(&world)?;
    ft_checkpoint::run(world, protection, &mut Waiting)?;
    Ok(())
}
