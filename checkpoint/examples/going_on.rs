//! A job that takes steps until the standard input of rank 0 ends, and prints how often each of its ranks was replaced: to do
//! something to a job at work, however long that takes.
//!
//! `ftrun -n 4 -v --pace 0.01 target/release/examples/going_on`, then Ctrl-D

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};

use ft_checkpoint::{Flow, MainError, Program, Protect, Protection};
use ft_comm::{CommError, Op, World};

/// So many sums, all of which are the same.
const SUMS: usize = 1000;

/// Nothing more comes on the standard input of this process.
static ENDED: AtomicBool = AtomicBool::new(false);

#[derive(Default, Protect)]
struct Total {
    steps: u64,
    sums: Vec<u64>,
}

struct GoingOn;

impl Program for GoingOn {
    type State = Total;
    type Error = CommError;

    fn init(&mut self, _: &World) -> Result<Total, CommError> {
        Ok(Total { steps: 0, sums: vec![0; SUMS] })
    }

    fn step(&mut self, total: &mut Total, world: &World, number: u64) -> Result<Flow, CommError> {
        // All end with the same step: rank 0 says which.
        let ends = world.rank() == 0 && ENDED.load(Ordering::Relaxed);
        let mut terms = [number * (world.rank() as u64 + 1), u64::from(ends)];
        world.comm().allreduce(&mut terms, Op::Sum)?;
        total.sums.iter_mut().for_each(|sum| *sum += terms[0]);
        total.steps = number;
        Ok(if terms[1] > 0 { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, total: &mut Total, world: &World) -> Result<Vec<u8>, CommError> {
        let (ranks, steps) = (world.size() as u64, total.steps);
        let due = steps * (steps + 1) / 2 * (ranks * (ranks + 1) / 2);
        assert_eq!(total.sums, [due; SUMS]);
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
    std::thread::spawn(|| {
        // What cannot be read has ended.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        ENDED.store(true, Ordering::Relaxed);
    });
    let protection = Protection::from_launcher(&world)?;
    ft_checkpoint::run(world, protection, &mut GoingOn)?;
    Ok(())
}
