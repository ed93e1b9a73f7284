//! Several protected runs in one job: two, then a loop of ten, with what is collective between them.
//!
//! `ftrun -n 4 --scheme xor --kill 1@step=25 --kill 2@at=begin:3 --kill 0@step=170 target/release/examples/sections`
//!
//! Every run does ten steps a rank of arithmetic on a state with a constant part, so that a wrong bit anywhere shows in the end.
//! Steps are counted from the start of the job: those of run N are `10 (N - 1) + 1` to `10 N`. At `begin:N` run N makes its state.

use ft_checkpoint::{Field, Flow, Job, MainError, Program, Protect, Protection};
use ft_comm::{CommError, Op, World};

const STEPS: u64 = 10;
const LOOP: u64 = 10;

/// A run that mixes the ranks' numbers, from a start that it is given.
struct Mixing {
    number: u64,
    start: u64,
}

#[derive(Default, Protect)]
struct Mixed {
    #[protect(constant)]
    salts: Vec<u64>,
    values: Vec<u64>,
}

/// What a run gives: small, as it is kept until the job ends.
#[derive(Clone, Copy, Debug, PartialEq, Field)]
struct Digest {
    own: u64,
    of_all: u64,
}

fn mixed(value: u64, salt: u64) -> u64 {
    value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(salt).rotate_left(29)
}

impl Mixed {
    /// Later runs have smaller states, and other lengths.
    fn new(run: &Mixing, rank: usize) -> Self {
        let values: Vec<u64> = (0..3000 / run.number + 7 * rank as u64).map(|at| run.start ^ at).collect();
        Self { salts: values.iter().map(|value| mixed(*value, run.number)).collect(), values }
    }

    fn own(&self) -> u64 {
        self.values.iter().fold(0, |sum, value| mixed(sum, *value))
    }

    fn advance(&mut self, of_all: u64) {
        for (value, salt) in self.values.iter_mut().zip(&self.salts) {
            *value = mixed(*value, salt ^ of_all);
        }
    }

    fn digest(&self) -> Digest {
        Digest { own: self.own(), of_all: self.values.first().copied().unwrap_or(0) }
    }
}

impl Program for Mixing {
    type State = Mixed;
    type Error = CommError;

    fn init(&mut self, world: &World) -> Result<Mixed, CommError> {
        world.fault_point("begin", self.number, None)?;
        world.comm().barrier()?;
        Ok(Mixed::new(self, world.rank()))
    }

    fn step(&mut self, state: &mut Mixed, world: &World, number: u64) -> Result<Flow, CommError> {
        let mut sum = [state.own()];
        world.comm().allreduce(&mut sum, Op::Sum)?;
        state.advance(sum[0]);
        Ok(if number == STEPS { Flow::Done } else { Flow::Continue })
    }
}

/// What each rank has in the end, without any message.
fn answer(ranks: usize) -> Vec<u64> {
    let run = |number: u64, starts: &[u64]| -> Vec<Digest> {
        let begin = |(rank, start): (usize, &u64)| Mixed::new(&Mixing { number, start: *start }, rank);
        let mut states: Vec<Mixed> = starts.iter().enumerate().map(begin).collect();
        for _ in 0..STEPS {
            let sum = states.iter().fold(0u64, |sum, state| sum.wrapping_add(state.own()));
            states.iter_mut().for_each(|state| state.advance(sum));
        }
        states.iter().map(Mixed::digest).collect()
    };
    let mut starts: Vec<u64> = (0..ranks as u64).collect();
    for number in 1..=2 + LOOP {
        let digests = run(number, &starts);
        let largest = digests.iter().map(|digest| digest.of_all).max().expect("somebody");
        starts = digests.iter().map(|digest| digest.own ^ largest).collect();
    }
    starts
}

/// The largest number of all ranks, which they cannot know alone.
fn largest(job: &mut Job, own: u64) -> Result<u64, MainError> {
    Ok(job.once(|world| {
        let mut all = [own];
        world.comm().allreduce(&mut all, Op::Max).map(|()| all[0])
    })?)
}

fn main() -> Result<(), MainError> {
    let world = World::init()?;
    let protection = Protection::from_launcher(&world)?;
    let Some(mut job) = Job::start(world, protection)? else { return Ok(()) };
    let mut start = job.rank() as u64;

    let first = job.run(&mut Mixing { number: 1, start }, Mixed::digest)?;
    start = first.own ^ largest(&mut job, first.of_all)?;
    let second = job.run(&mut Mixing { number: 2, start }, Mixed::digest)?;
    start = second.own ^ largest(&mut job, second.of_all)?;
    for number in 3..3 + LOOP {
        let digest = job.run(&mut Mixing { number, start }, Mixed::digest)?;
        start = digest.own ^ largest(&mut job, digest.of_all)?;
    }

    let (rank, due) = (job.rank(), answer(job.size()));
    job.finish()?;
    assert_eq!(start, due[rank], "rank {rank}");
    println!("rank {rank}: {start:016x} after {} runs", 2 + LOOP);
    Ok(())
}
