//! Every collective operation once a round, with the mean time of each.

use ft_checkpoint::{Flow, Program, Protect};
use ft_comm::collective::Operation;
use ft_comm::time::Clock;
use ft_comm::{CommError, Communicator, Op, World};
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::{CollectiveArgs, CollectiveResult, Measured};
use crate::app;
use crate::rank::Reporter;

/// One operation, over all rounds and ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Mean {
    name: String,
    #[serde(with = "crate::number")]
    mean_us: f64,
}

impl Mean {
    /// For people.
    pub(super) fn line(&self) -> String {
        format!("{:<15}{:>10.1} us on average", self.name, self.mean_us)
    }
}

/// The account of one rank.
#[derive(Debug, Default, Protect)]
pub(super) struct Account {
    wrong: u64,
    /// Seconds in each operation so far.
    seconds: [f64; Operation::ALL.len()],
}

/// Every operation once a round.
pub(super) struct Rounds {
    pub(super) args: CollectiveArgs,
    pub(super) clock: Clock,
    pub(super) reporter: Reporter,
}

impl Rounds {
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

impl Program for Rounds {
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
        let measured = Measured::Rounds {
            rounds: self.args.rounds,
            elements: self.args.elements,
            operations: Operation::ALL.into_iter().zip(seconds).map(mean).collect(),
        };
        Ok(app::write(&CollectiveResult { wrong: wrong[0], measured }))
    }
}
