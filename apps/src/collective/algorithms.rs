//! Every algorithm of every collective operation, checked and timed, for `ftrun bench collectives`.
//!
//! All algorithms of an operation run in the same processes and take turns batch by batch, so that what else the machine
//! does meets all of them alike. Every other call goes through the ranks in reversed order: so each call waits for the one
//! before, and what is timed is how long it takes, not how soon a root can begin the next.

use ft_checkpoint::{Flow, Program};
use ft_comm::collective::{Operation, Selection};
use ft_comm::time::Clock;
use ft_comm::{CommError, Communicator, Op, World};
use ft_tools::collectives::{fits, is_offered};
use ft_tools::harness::more;
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::{CollectiveArgs, CollectiveResult, Measured};
use crate::app;
use crate::rank::Reporter;

/// Batches of each algorithm.
const BATCHES: usize = 5;
/// Batches where one call takes longer than all batches should.
const FEWEST: usize = 2;

/// One algorithm with one size: the middle of its batches, each as long as its slowest rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Timing {
    operation: String,
    bytes: usize,
    algorithm: String,
    #[serde(with = "crate::number")]
    seconds: f64,
    /// Calls of a batch.
    calls: usize,
}

impl Timing {
    /// For people.
    pub(super) fn line(&self) -> String {
        let Self { operation, bytes, algorithm, seconds, .. } = self;
        format!("{operation:<15}{bytes:>9} B  {algorithm:<20}{:>12.1} us", seconds * 1e6)
    }
}

/// All algorithms of all operations, one operation and size after the other.
pub(super) struct Algorithms {
    args: CollectiveArgs,
    clock: Clock,
    timings: Vec<Timing>,
    /// Wrong numbers of this rank.
    wrong: u64,
    reporter: Reporter,
}

/// An algorithm under test.
struct Candidate {
    name: &'static str,
    table: Selection,
    calls: usize,
    /// Seconds of a call in each batch.
    batches: Vec<f64>,
}

impl Candidate {
    fn new(operation: Operation, name: &'static str) -> Self {
        let table = Selection::parse(&format!("{operation} * * {name}"))
            .expect("every algorithm can be named in a table");
        Self { name, table, calls: 1, batches: vec![] }
    }

    fn timing(mut self, operation: Operation, bytes: usize) -> Timing {
        self.batches.sort_by(f64::total_cmp);
        Timing {
            operation: operation.name().to_owned(),
            bytes,
            algorithm: self.name.to_owned(),
            seconds: self.batches[self.batches.len() / 2],
            calls: self.calls,
        }
    }
}

/// The same call with ranks in their order, and in the reversed one.
type Turns<'a> = [(&'a Communicator, Call); 2];

impl Algorithms {
    pub(super) fn new(args: CollectiveArgs, clock: Clock, reporter: Reporter) -> Self {
        Self { args, clock, timings: vec![], wrong: 0, reporter }
    }

    /// Checks and times all algorithms of an operation with one size.
    fn time(
        &mut self,
        world: &World,
        reversed: &Communicator,
        operation: Operation,
        bytes: usize,
    ) -> Result<(), CommError> {
        let comm = world.comm();
        let hosts = world.hosts().unwrap_or_default();
        let hosts = &hosts[..comm.size().min(hosts.len())];
        let fitting = operation.algorithms().filter(|name| fits(operation, name, comm.size(), true, hosts));
        let mut candidates: Vec<Candidate> = fitting.map(|name| Candidate::new(operation, name)).collect();
        let mut turns = [comm, reversed].map(|comm| (comm, Call::new(operation, bytes, comm, 0)));
        let mut is_slow = false;
        for candidate in &mut candidates {
            world.choose_algorithms(candidate.table.clone());
            self.check(&mut turns)?;
            is_slow |= self.find_calls(candidate, &mut turns)?;
        }
        for _ in 0..if is_slow { FEWEST } else { BATCHES } {
            for candidate in &mut candidates {
                world.choose_algorithms(candidate.table.clone());
                candidate.batches.push(self.batch(&mut turns, candidate.calls)?);
            }
        }
        world.choose_algorithms(Selection::builtin());
        self.timings.extend(candidates.into_iter().map(|candidate| candidate.timing(operation, bytes)));
        Ok(())
    }

    fn check(&mut self, turns: &mut Turns<'_>) -> Result<(), CommError> {
        for (comm, call) in turns {
            call.fill();
            call.call(comm)?;
            self.wrong += call.wrong();
        }
        Ok(())
    }

    /// Finds how many calls of `candidate` make a batch. Whether a single one takes longer than all batches should.
    fn find_calls(&self, candidate: &mut Candidate, turns: &mut Turns<'_>) -> Result<bool, CommError> {
        let share_s = self.args.time / BATCHES as f64;
        let mut is_slow = false;
        loop {
            let each_s = self.batch(turns, candidate.calls)?;
            is_slow |= candidate.calls == 1 && each_s > self.args.time;
            match more(candidate.calls, each_s, share_s) {
                Some(calls) => candidate.calls = calls,
                None => return Ok(is_slow),
            }
        }
    }

    /// Seconds of a call, on the slowest rank; the same on all ranks, which so decide alike.
    fn batch(&self, turns: &mut Turns<'_>, calls: usize) -> Result<f64, CommError> {
        let comm = turns[0].0;
        comm.barrier()?;
        let start = self.clock.now();
        for number in 0..calls {
            let (comm, call) = &mut turns[number % 2];
            call.call(comm)?;
        }
        let mut slowest = [self.clock.now().since(start).as_secs_f64()];
        comm.allreduce(&mut slowest, Op::Max)?;
        Ok(slowest[0] / calls as f64)
    }
}

impl Program for Algorithms {
    type State = ();
    type Error = CommError;

    fn init(&mut self, _: &World) -> Result<(), CommError> {
        Ok(())
    }

    fn step(&mut self, _: &mut (), world: &World, _: u64) -> Result<Flow, CommError> {
        (self.timings, self.wrong) = (vec![], 0);
        let sizes: Vec<usize> =
            self.args.sizes.iter().map(|&bytes| usize::try_from(bytes).unwrap_or(usize::MAX)).collect();
        let Some(reversed) = world.comm().split(Some(0), -(world.rank() as i64))? else {
            return Ok(Flow::Done);
        };
        for operation in Operation::ALL {
            let sizes = if operation == Operation::Barrier { &[0][..] } else { &sizes };
            for &bytes in sizes.iter().filter(|&&bytes| is_offered(operation, world.size(), bytes)) {
                self.reporter.say(world, || (None, format!("{operation} of {bytes} bytes")));
                self.time(world, &reversed, operation, bytes)?;
            }
        }
        Ok(Flow::Done)
    }

    fn output(&mut self, _: &mut (), world: &World) -> Result<Vec<u8>, CommError> {
        let mut wrong = [self.wrong];
        world.comm().allreduce(&mut wrong, Op::Sum)?;
        let measured = Measured::Algorithms { timings: self.timings.clone() };
        Ok(app::write(&CollectiveResult { wrong: wrong[0], measured }))
    }
}
