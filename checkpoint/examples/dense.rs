//! A soak: small messages and small collectives, one right after the other, in the resilient loop. What each has to bring follows from the step and its number in
//! it, so that a lost, doubled or mixed-up one is found at once.
//!
//! `ftrun -n 4 --mtbf 0.05 --max-restarts 1000 target/release/examples/dense --steps 2000`
//!
//! Prints a digest of all that came, which does not depend on failures.

use std::fmt;

use ft_checkpoint::{Flow, MainError, Program, Protect, Protection};
use ft_comm::{CommError, Communicator, Op, Rank, World};

/// Messages and collectives of a step.
const OPERATIONS: u64 = 500;
/// Numbers of the longest: some are longer than what needs no room of its own.
const NUMBERS_MAX: u64 = 40;
/// Exit status if something was wrong.
const WRONG: i32 = 4;

/// Splitmix64: Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

#[derive(Debug)]
enum Trouble {
    Comm(CommError),
    Wrong(String),
}

impl From<CommError> for Trouble {
    fn from(error: CommError) -> Self {
        Self::Comm(error)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Comm(error) => error.fmt(f),
            Self::Wrong(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Trouble {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Comm(error) => Some(error),
            Self::Wrong(_) => None,
        }
    }
}

/// What a rank has got so far.
#[derive(Default, Protect)]
struct Account {
    digest: u64,
}

impl Account {
    /// What came, if it is what was due.
    fn enter(&mut self, what: &str, came: &[u64], due: &[u64]) -> Result<(), Trouble> {
        if came != due {
            return Err(Trouble::Wrong(format!("{what} brought {came:x?}, and {due:x?} was due")));
        }
        for number in came {
            self.digest = Numbers(self.digest ^ number).next();
        }
        Ok(())
    }
}

/// The numbers that a rank says in an operation with this seed.
fn said(by: Rank, seed: u64, count: usize) -> Vec<u64> {
    let mut numbers = Numbers(seed ^ (by as u64) << 48);
    (0..count).map(|_| numbers.next()).collect()
}

/// The sum of what all of these ranks say.
fn sum(by: impl Iterator<Item = Rank>, seed: u64, count: usize) -> Vec<u64> {
    by.fold(vec![0; count], |sum, rank| {
        sum.iter().zip(said(rank, seed, count)).map(|(a, b): (&u64, _)| a.wrapping_add(b)).collect()
    })
}

/// One operation, the same on all ranks of `comm`, of whom the ranks of the world are `world`.
fn operation(
    comm: &Communicator,
    world: &[Rank],
    numbers: &mut Numbers,
    account: &mut Account,
) -> Result<(), Trouble> {
    let (size, rank) = (comm.size(), comm.rank());
    let (kind, seed, root) = (numbers.below(8), numbers.next(), numbers.below(size as u64) as Rank);
    let count = if numbers.below(4) == 0 { 1 + numbers.below(NUMBERS_MAX) as usize } else { 1 };
    let mine = said(world[rank], seed, count);
    let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
    match kind {
        0 | 1 => {
            let mut buf = mine;
            comm.allreduce(&mut buf, Op::Sum)?;
            account.enter("a sum", &buf, &sum(world.iter().copied(), seed, count))
        }
        2 => Ok(comm.barrier()?),
        3 => {
            let mut buf = if rank == root { mine } else { vec![0; count] };
            comm.bcast(&mut buf, root)?;
            account.enter("a broadcast", &buf, &said(world[root], seed, count))
        }
        4 => {
            let mut buf = mine;
            comm.reduce(&mut buf, Op::Sum, root)?;
            match rank == root {
                true => account.enter("a reduction", &buf, &sum(world.iter().copied(), seed, count)),
                false => Ok(()),
            }
        }
        5 | 6 => {
            let mut buf = vec![0; count];
            comm.sendrecv(&mine, right, &mut buf, left, 1)?;
            account.enter("a message", &buf, &said(world[left], seed, count))
        }
        _ => {
            let receives: Result<Vec<_>, CommError> =
                (0..8).map(|_| comm.irecv(vec![0_u64], left, 2)).collect();
            let sends: Result<Vec<_>, CommError> = said(world[rank], seed, 8)
                .into_iter()
                .map(|number| comm.isend(vec![number], right, 2))
                .collect();
            let came: Result<Vec<u64>, CommError> =
                receives?.into_iter().map(|receive| receive.wait().map(|(buf, _)| buf[0])).collect();
            sends?.into_iter().try_for_each(|send| send.wait().map(drop))?;
            account.enter("eight messages", &came?, &said(world[left], seed, 8))
        }
    }
}

struct Dense {
    steps: u64,
}

impl Program for Dense {
    type State = Account;
    type Error = Trouble;

    fn init(&mut self, _: &World) -> Result<Account, Trouble> {
        Ok(Account::default())
    }

    fn step(&mut self, account: &mut Account, world: &World, step: u64) -> Result<Flow, Trouble> {
        let comm = world.comm();
        let all: Vec<Rank> = (0..comm.size()).collect();
        let half = comm.split(Some(comm.rank() as u32 % 2), 0)?;
        let of_half: Vec<Rank> = all.iter().copied().filter(|rank| rank % 2 == comm.rank() % 2).collect();
        let mut numbers = Numbers(step);
        for number in 0..OPERATIONS {
            // Both halves have their own at the same time.
            let done = match &half {
                Some(half) if numbers.below(4) == 0 => {
                    operation(half, &of_half, &mut Numbers(numbers.next()), account)
                }
                _ => operation(comm, &all, &mut Numbers(numbers.next()), account),
            };
            if let Err(Trouble::Wrong(what)) = done {
                // An error alone could pass for the consequence of a failure, and be forgotten.
                let what = format!("rank {}, step {step}, operation {number}: {what}", comm.rank());
                world.abort(WRONG, what.clone());
                return Err(Trouble::Wrong(what));
            }
            done?;
        }
        Ok(if step == self.steps { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, account: &mut Account, world: &World) -> Result<Vec<u8>, Trouble> {
        let mut digest = [Numbers(account.digest ^ world.rank() as u64).next()];
        world.comm().allreduce(&mut digest, Op::BitXor)?;
        if world.rank() == 0 {
            let (steps, repairs) = (self.steps, world.generation());
            println!(
                "{steps} steps of {OPERATIONS} operations, {repairs} repairs, digest {:016x}: right",
                digest[0]
            );
        }
        Ok(vec![])
    }

    fn status(&self, _: &Trouble) -> i32 {
        WRONG
    }
}

fn main() -> Result<(), MainError> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--steps");
    let steps = arguments.nth(1).map_or(Ok(200), |value| value.parse())?;
    let world = World::init()?;
    let protection = Protection::from_launcher(&world)?;
    ft_checkpoint::run(world, protection, &mut Dense { steps })?;
    Ok(())
}
