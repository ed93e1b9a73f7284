//! `collective`: every collective operation once a round, with known answers, and the time that each takes.

use std::process::ExitCode;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use ft_checkpoint::{Flow, Program, Protect};
use ft_comm::collective::Operation;
use ft_comm::time::Clock;
use ft_comm::{CommError, Communicator, Op, World};
use serde::{Deserialize, Serialize};

use crate::app::{self, App};
use crate::collective_call::Call;
use crate::rank::{self, Reporter};
use crate::words::count;

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
    operations: Vec<Mean>,
}

/// One operation, over all rounds and ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Mean {
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
            .map(|Mean { name, mean_us }| format!("{name:<15}{mean_us:>10.1} us on average"))
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
    seconds: [f64; Operation::ALL.len()],
}

struct Collectives {
    args: CollectiveArgs,
    clock: Clock,
    reporter: Reporter,
}

impl Collectives {
    /// Every operation once.
    fn round(&self, account: &mut Account, comm: &Communicator, round: u64) -> Result<(), CommError> {
        let bytes = self.args.elements as usize * 8;
        for (operation, seconds) in Operation::ALL.into_iter().zip(&mut account.seconds) {
            let mut call = Call::new(operation, bytes, comm, round);
            call.fill();
            let started = self.clock.now();
            call.call(comm)?;
            *seconds += self.clock.now().since(started).as_secs_f64();
            account.wrong += call.wrong();
        }
        Ok(())
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
        let mean = |(operation, seconds): (Operation, f64)| Mean {
            name: operation.name().to_owned(),
            mean_us: seconds / calls * 1e6,
        };
        let result = CollectiveResult {
            rounds: self.args.rounds,
            elements: self.args.elements,
            wrong: wrong[0],
            operations: Operation::ALL.into_iter().zip(seconds).map(mean).collect(),
        };
        Ok(app::write(&result))
    }
}
