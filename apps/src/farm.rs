//! `farm`: rank 0 deals out tasks, and takes results from whoever has one, in whatever order. A task is a range of numbers, its result the twin primes there: so times and lengths differ.
//!
//! Neither master nor workers keep account of who has what. If ranks are lost all go back to lines of different moments, and what was under way is under way again.

use std::ops::Range;
use std::process::ExitCode;

use clap::Args;
use ft_checkpoint::{Flow, Lines, Program, Protect};
use ft_comm::{CommError, Source, Tag, World};
use serde::{Deserialize, Serialize};

use crate::app::{self, App};
use crate::options::Options;
use crate::rank::{self, Reporter, mix};
use crate::value::{COUNT_MAX, from_to};
use crate::words::count;

const TASK: Tag = 1;
const RESULT: Tag = 2;
/// The first number of a task that is none.
const NO_TASK: u64 = u64::MAX;

/// The arguments of `farm`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of farm")]
pub(crate) struct FarmArgs {
    /// Find the twin primes below this number
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = from_to::<u64>(10..=1_000_000_000))]
    limit: u64,
    /// Numbers in a task
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = from_to::<u64>(1..=COUNT_MAX))]
    numbers: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FarmResult {
    limit: u64,
    tasks: u64,
    pairs: u64,
    digest: u64,
    /// As a sieve finds them.
    is_right: bool,
}

impl App for FarmArgs {
    type Outcome = FarmResult;

    fn crosses(&self) -> Lines {
        Lines::Log
    }

    fn check(&self, options: &Options) -> Result<(), String> {
        match options.lines() {
            Lines::Log => Ok(()),
            other => Err(format!(
                "--lines {} is nothing for farm, whose ranks take steps of their own: --lines log",
                other.name()
            )),
        }
    }

    fn rank(&self) -> ExitCode {
        let args = self.clone();
        rank::run(|settings| Farm { args, reporter: Reporter::new(settings) })
    }

    fn complaint(&self, result: &FarmResult) -> Option<String> {
        (!result.is_right)
            .then(|| format!("{} are not what a sieve finds", count(result.pairs, "twin prime")))
    }

    fn headline(&self, FarmResult { limit, tasks, .. }: &FarmResult) -> String {
        format!("twin primes below {limit}, {}", count(*tasks, "task"))
    }

    fn lines(&self, FarmResult { pairs, digest, .. }: &FarmResult) -> Vec<String> {
        vec![format!("{} as a sieve finds them, digest {digest:016x}", count(*pairs, "pair"))]
    }
}

/// Of the master: what was dealt out and found. Of a worker: how many tasks it has done.
#[derive(Debug, Default, Protect)]
struct Account {
    dealt: u64,
    done: u64,
    /// Workers that were told that nothing is left.
    dismissed: u64,
    pairs: u64,
    digest: u64,
}

struct Farm {
    args: FarmArgs,
    reporter: Reporter,
}

impl Farm {
    fn tasks(&self) -> u64 {
        self.args.limit.div_ceil(self.args.numbers)
    }

    /// The numbers of a task.
    fn task(&self, number: u64) -> Range<u64> {
        let start = number * self.args.numbers;
        start..self.args.limit.min(start + self.args.numbers)
    }

    /// The next task, if there is one.
    fn deal(&self, account: &mut Account) -> [u64; 2] {
        if account.dealt == self.tasks() {
            return [NO_TASK, 0];
        }
        let Range { start, end } = self.task(account.dealt);
        account.dealt += 1;
        [start, end]
    }

    fn take(account: &mut Account, found: &[u64]) {
        account.done += 1;
        account.pairs += found.len() as u64;
        account.digest = found.iter().fold(account.digest, |digest, pair| digest.wrapping_add(mix(*pair)));
    }

    /// A step of the master: the first gives each worker a task, each other takes a result.
    fn lead(&self, account: &mut Account, world: &World, number: u64) -> Result<Flow, CommError> {
        let (comm, workers) = (world.comm(), world.size() - 1);
        if workers == 0 {
            let [start, end] = self.deal(account);
            Self::take(account, &twins(start..end));
            return Ok(if account.done == self.tasks() { Flow::Done } else { Flow::Continue });
        }
        if number == 1 {
            for worker in 1..=workers {
                self.send_next(account, world, worker)?;
            }
        } else {
            let mut message = comm.mprobe(Source::Any, RESULT)?;
            let status = message.status();
            let mut found = vec![0; status.bytes / size_of::<u64>()];
            message.recv(&mut found)?;
            Self::take(account, &found);
            self.send_next(account, world, status.source)?;
        }
        let is_over = account.done == self.tasks() && account.dismissed == workers as u64;
        Ok(if is_over { Flow::Done } else { Flow::Continue })
    }

    fn send_next(&self, account: &mut Account, world: &World, worker: usize) -> Result<(), CommError> {
        let task = self.deal(account);
        account.dismissed += u64::from(task[0] == NO_TASK);
        world.comm().send(&task, worker, TASK)
    }

    /// A step of a worker: a task.
    fn work(account: &mut Account, world: &World) -> Result<Flow, CommError> {
        let mut task = [0; 2];
        world.comm().recv(&mut task, 0, TASK)?;
        let [start, end] = task;
        if start == NO_TASK {
            return Ok(Flow::Done);
        }
        world.comm().send(&twins(start..end), 0, RESULT)?;
        account.done += 1;
        Ok(Flow::Continue)
    }
}

impl Program for Farm {
    type State = Account;
    type Error = CommError;
    const ALONE: bool = true;

    fn init(&mut self, _: &World) -> Result<Account, CommError> {
        Ok(Account::default())
    }

    fn step(&mut self, account: &mut Account, world: &World, number: u64) -> Result<Flow, CommError> {
        if world.rank() > 0 {
            return Self::work(account, world);
        }
        let flow = self.lead(account, world, number)?;
        let (done, all) = (account.done, self.tasks());
        self.reporter.say(world, || (Some(done as f64 / all as f64), format!("{done} of {all} tasks")));
        Ok(flow)
    }

    fn output(&mut self, account: &mut Account, world: &World) -> Result<Vec<u8>, CommError> {
        if world.rank() > 0 {
            return Ok(vec![]);
        }
        let FarmArgs { limit, .. } = self.args;
        let mut due = Account::default();
        Self::take(&mut due, &sieve(limit));
        let Account { pairs, digest, .. } = *account;
        let is_right = (pairs, digest) == (due.pairs, due.digest);
        Ok(app::write(&FarmResult { limit, tasks: self.tasks(), pairs, digest, is_right }))
    }
}

/// The numbers p of a range for which p and p + 2 are primes, by division.
fn twins(range: Range<u64>) -> Vec<u64> {
    range.filter(|number| is_prime(*number) && is_prime(number + 2)).collect()
}

fn is_prime(number: u64) -> bool {
    number > 1
        && (2..)
            .take_while(|divisor| divisor * divisor <= number)
            .all(|divisor| !number.is_multiple_of(divisor))
}

/// The same below a limit, by the sieve of Eratosthenes.
fn sieve(limit: u64) -> Vec<u64> {
    let mut is_prime = vec![true; limit as usize + 2];
    is_prime[..2].fill(false);
    let end = is_prime.len();
    for number in (2..).take_while(|number| number * number < end) {
        if is_prime[number] {
            (number * number..end).step_by(number).for_each(|multiple| is_prime[multiple] = false);
        }
    }
    (0..limit).filter(|number| is_prime[*number as usize] && is_prime[*number as usize + 2]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published counts of twin primes (OEIS A007508).
    #[test]
    fn divisions_and_sieve_find_the_published_number_of_pairs() {
        for (limit, pairs) in [(10, 2), (100, 8), (1000, 35), (10_000, 205), (100_000, 1224)] {
            assert_eq!((twins(0..limit).len(), sieve(limit).len()), (pairs, pairs));
        }
        assert_eq!(twins(0..1000), sieve(1000));
    }
}
