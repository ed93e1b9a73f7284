//! `collective`: every collective operation once a round, with known answers, and the time that each takes. It shows
//! how each of them is called.

use std::process::ExitCode;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use ft_checkpoint::{Flow, Program, Protect};
use ft_comm::time::Clock;
use ft_comm::{CommError, Communicator, Op, World};
use serde::{Deserialize, Serialize};

use crate::app::{self, App};
use crate::rank::{self, Reporter};
use crate::words::count;

/// The operations, in the order in which they are done.
const OPERATIONS: [&str; 7] = ["sum", "min", "max", "prod", "bcast", "allgather", "barrier"];

/// The arguments of `collective`.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(next_help_heading = "Options of collective")]
pub(crate) struct CollectiveArgs {
    /// How often each operation is done
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = RangedU64ValueParser::<u32>::new().range(1..))]
    rounds: u32,
    /// Numbers of 8 bytes that each rank brings to each operation
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = RangedU64ValueParser::<u32>::new().range(1..=1 << 27))]
    elements: u32,
}

/// What `collective` is about, in the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CollectiveResult {
    rounds: u32,
    elements: u32,
    /// Wrong numbers, on all ranks together.
    wrong: u64,
    operations: Vec<Operation>,
}

/// One operation, over all rounds and ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Operation {
    name: String,
    #[serde(with = "crate::number")]
    mean_us: f64,
}

impl App for CollectiveArgs {
    type Outcome = CollectiveResult;

    fn rank(&self) -> ExitCode {
        rank::run(|settings| Collectives {
            args: self.clone(),
            clock: Clock::start(),
            reporter: Reporter::new(settings),
        })
    }

    fn complaint(&self, CollectiveResult { wrong, .. }: &CollectiveResult) -> Option<String> {
        (*wrong > 0).then(|| format!("collective operations gave {}", count(*wrong, "wrong number")))
    }

    fn headline(&self, CollectiveResult { rounds, elements, .. }: &CollectiveResult) -> String {
        format!("{}, {}", count(u64::from(*rounds), "round"), count(u64::from(*elements), "element"))
    }

    fn lines(&self, CollectiveResult { wrong, operations, .. }: &CollectiveResult) -> Vec<String> {
        let mut lines: Vec<String> = operations
            .iter()
            .map(|Operation { name, mean_us }| format!("{name:<10}{mean_us:>10.1} us on average"))
            .collect();
        lines.push(if *wrong == 0 { "all right".into() } else { format!("{wrong} numbers wrong") });
        lines
    }
}

/// The account of one rank.
#[derive(Debug, Default, Protect)]
struct Account {
    wrong: u64,
    /// Seconds in each operation so far.
    seconds: [f64; OPERATIONS.len()],
}

impl Account {
    /// Does `operation` on what this rank brings, and books the time and the numbers that are not `right`.
    fn book<T: PartialEq>(
        &mut self,
        clock: Clock,
        name: &str,
        mut buf: Vec<T>,
        operation: impl FnOnce(&mut [T]) -> Result<(), CommError>,
        right: impl Fn(u64) -> T,
    ) -> Result<(), CommError> {
        let started = clock.now();
        operation(&mut buf)?;
        let which = OPERATIONS.iter().position(|known| *known == name).expect("an operation of the table");
        self.seconds[which] += clock.now().since(started).as_secs_f64();
        self.wrong += (0..).zip(&buf).filter(|(i, value)| right(*i) != **value).count() as u64;
        Ok(())
    }
}

struct Collectives {
    args: CollectiveArgs,
    clock: Clock,
    reporter: Reporter,
}

impl Collectives {
    /// Every operation once.
    fn round(&self, account: &mut Account, comm: &Communicator, round: u64) -> Result<(), CommError> {
        let (rank, size, elements) = (comm.rank() as u64, comm.size() as u64, u64::from(self.args.elements));
        let numbers = |of: &dyn Fn(u64) -> u64| (0..elements).map(of).collect::<Vec<u64>>();
        // Ranks take turns at having the least number, the greatest one and the factor, and at being the root.
        let turn = |i: u64| (i + round + rank) % size;
        let root = round % size;
        let secret = |i: u64| i ^ round;

        let mine = numbers(&|i| (rank + 1) * secret(i));
        let all = size * (size + 1) / 2;
        account.book(self.clock, "sum", mine, |buf| comm.allreduce(buf, Op::Sum), |i| all * secret(i))?;

        let mine = numbers(&|i| secret(i) + turn(i));
        account.book(self.clock, "min", mine, |buf| comm.allreduce(buf, Op::Min), secret)?;

        let mine = numbers(&|i| secret(i) + turn(i));
        let most = |i| secret(i) + size - 1;
        account.book(self.clock, "max", mine, |buf| comm.allreduce(buf, Op::Max), most)?;

        let factor = |i: u64| (i + 2) as f64;
        let mine: Vec<f64> = (0..elements).map(|i| if turn(i) == 0 { factor(i) } else { 1.0 }).collect();
        account.book(self.clock, "prod", mine, |buf| comm.allreduce(buf, Op::Prod), factor)?;

        let mine = numbers(&|i| if rank == root { secret(i) } else { 0 });
        account.book(self.clock, "bcast", mine, |buf| comm.bcast(buf, root as usize), secret)?;

        let mine = numbers(&|i| secret(i) * size + rank);
        let room = vec![0; mine.len() * comm.size()];
        let gathered = |i| secret(i % elements) * size + i / elements;
        account.book(self.clock, "allgather", room, |all| comm.allgather(&mine, all), gathered)?;

        account.book(self.clock, "barrier", vec![], |_| comm.barrier(), |_| 0u8)
    }
}

impl Program for Collectives {
    type State = Account;
    type Error = CommError;

    fn init(&mut self, _: &World) -> Result<Account, CommError> {
        Ok(Account::default())
    }

    fn step(&mut self, account: &mut Account, world: &World, number: u64) -> Result<Flow, CommError> {
        self.round(account, world.comm(), number)?;
        let rounds = u64::from(self.args.rounds);
        self.reporter.say(world, || {
            let line = format!("round {number}, {} numbers wrong", account.wrong);
            (Some(number as f64 / rounds as f64), line)
        });
        Ok(if number == rounds { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, account: &mut Account, world: &World) -> Result<Vec<u8>, CommError> {
        let (mut wrong, mut seconds) = ([account.wrong], account.seconds);
        world.comm().allreduce(&mut wrong, Op::Sum)?;
        world.comm().allreduce(&mut seconds, Op::Sum)?;
        let calls = f64::from(self.args.rounds) * world.size() as f64;
        let operation = |(name, seconds): (&&str, f64)| Operation {
            name: (*name).to_owned(),
            mean_us: seconds / calls * 1e6,
        };
        let result = CollectiveResult {
            rounds: self.args.rounds,
            elements: self.args.elements,
            wrong: wrong[0],
            operations: OPERATIONS.iter().zip(seconds).map(operation).collect(),
        };
        Ok(app::write(&result))
    }
}
