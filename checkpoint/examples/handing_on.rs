//! Three protected runs in one job, each from what the one before has given: an array that is dealt out over the ranks, and what is the
//! same on all of them. So a job of which nothing is left goes on from its files on any number of ranks.
//!
//! `ftrun -n 4 --spill /tmp/spill --spill-every 1 --kill 0,1,2,3@step=44 target/release/examples/handing_on`
//!
//! `ftrun -n 3 --resume /tmp/spill target/release/examples/handing_on`

use ft_checkpoint::{
    Distributed, Flow, Job, MainError, Program, Protect, Protection, RankState, Redistribute, Redistribution,
    Replicated,
};
use ft_comm::{CommError, Op, World};

const RUNS: u64 = 3;
const STEPS: u64 = 30;
const NUMBERS: u64 = 1009;

/// A run that mixes the numbers of all ranks, from those that it is given.
struct Mixing {
    number: u64,
    key: u64,
    from: Vec<u64>,
}

#[derive(Default, Protect, Redistribute)]
struct Mixed {
    #[protect(constant, replicated)]
    key: u64,
    #[protect(replicated)]
    sum: u64,
    #[protect(distributed)]
    numbers: Vec<u64>,
}

fn mixed(value: u64, key: u64) -> u64 {
    value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(key).rotate_left(29)
}

impl Mixed {
    fn share(&self) -> u64 {
        self.numbers.iter().fold(0, |sum: u64, number| sum.wrapping_add(*number))
    }

    fn advance(&mut self, sum: u64) {
        self.sum = sum;
        self.numbers.iter_mut().for_each(|number| *number = mixed(*number, sum ^ self.key));
    }
}

impl Program for Mixing {
    type State = Mixed;
    type Error = CommError;
    const SHRINKS: bool = true;
    const GROWS: bool = true;

    fn init(&mut self, world: &World) -> Result<Mixed, CommError> {
        world.fault_point("begin", self.number, None)?;
        world.comm().barrier()?;
        Ok(Mixed { key: self.key, sum: 0, numbers: self.from.clone() })
    }

    fn redistribute(
        &mut self,
        shares: Vec<RankState<Mixed>>,
        before: usize,
        world: &World,
    ) -> Result<Mixed, CommError> {
        Redistribution::equal_blocks(world.comm(), &shares, before)?.deal(shares)
    }

    fn step(&mut self, state: &mut Mixed, world: &World, number: u64) -> Result<Flow, CommError> {
        let mut sum = [state.share()];
        world.comm().allreduce(&mut sum, Op::Sum)?;
        state.advance(sum[0]);
        Ok(if number == STEPS { Flow::Done } else { Flow::Continue })
    }
}

/// The numbers of all ranks at the end, without any message.
fn answer() -> Vec<u64> {
    let mut all = Mixed { numbers: (0..NUMBERS).collect(), ..Mixed::default() };
    for number in 1..=RUNS {
        all.key = number ^ all.sum;
        (0..STEPS).for_each(|_| all.advance(all.share()));
    }
    all.numbers
}

/// The numbers of all ranks, one block after the other.
fn gathered(world: &World, own: &[u64]) -> Result<Vec<u64>, CommError> {
    let mut lengths = vec![0; world.size()];
    world.comm().allgather(&[own.len()], &mut lengths)?;
    let before: usize = lengths[..world.rank()].iter().sum();
    let mut all = vec![0; lengths.iter().sum()];
    all[before..before + own.len()].copy_from_slice(own);
    world.comm().allreduce(&mut all, Op::Sum)?;
    Ok(all)
}

fn main() -> Result<(), MainError> {
    let world = World::init()?;
    let protection = Protection::from_launcher(&world)?;
    let Some(mut job) = Job::start(world, protection)? else { return Ok(()) };
    let (rank, size) = (job.rank() as u64, job.size() as u64);
    let mut numbers: Vec<u64> = (NUMBERS * rank / size..NUMBERS * (rank + 1) / size).collect();
    let mut sum = 0;
    for number in 1..=RUNS {
        let mut program = Mixing { number, key: number ^ sum, from: numbers };
        let given =
            job.run(&mut program, |state| (Replicated(state.sum), Distributed::new(state.numbers.clone())))?;
        (sum, numbers) = (given.0.0, given.1.into_items());
        // What is collective between two runs is one of its own.
        let Replicated(count) = job.once(|world| -> Result<_, CommError> {
            let mut count = [numbers.len() as u64];
            world.comm().allreduce(&mut count, Op::Sum)?;
            Ok(Replicated(count[0]))
        })?;
        assert_eq!(count, NUMBERS, "after run {number}");
    }
    let all = job.once(|world| gathered(world, &numbers).map(Replicated))?.0;
    job.finish()?;
    assert!(all == answer(), "rank {rank} of {size}");
    println!("rank {rank} of {size}: all right after {RUNS} runs");
    Ok(())
}
