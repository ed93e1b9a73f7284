//! What the ranks of bundled apps have in common.

use std::ops::Range;
use std::process::ExitCode;
use std::time::Duration;

use ft_checkpoint::{Program, Protection};
use ft_comm::time::{Clock, Time};
use ft_comm::{CommError, World};

use crate::progress::PROGRESS;
use crate::say;

/// How often progress is reported.
const REPORT_EVERY: Duration = Duration::from_millis(50);

/// Runs one rank of `program` in the resilient loop.
pub(crate) fn run(program: &mut impl Program) -> ExitCode {
    let world = match World::init() {
        Ok(world) => world,
        Err(error) => {
            // The launcher says why a rank could not join in the words of that rank.
            if matches!(error, CommError::Join(_)) {
                say::as_rank(error);
            }
            return ExitCode::FAILURE;
        }
    };
    // From now on the launcher has the cause and prints it once.
    let Ok(protection) = Protection::from_launcher(&world) else { return ExitCode::FAILURE };
    match ft_checkpoint::run(world, protection, program) {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// The number that `--seed` gave to the job.
pub(crate) fn seed(world: &World) -> u64 {
    world.setting("seed").and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

/// Tells the terminal how far the work is, not too often, and only if somebody looks.
#[derive(Debug)]
pub(crate) struct Reporter {
    clock: Clock,
    last: Option<Time>,
}

impl Reporter {
    pub(crate) fn new() -> Self {
        Self { clock: Clock::start(), last: None }
    }

    /// `line` gives the share of the work that is done, if it can be said, and what to say; on rank 0.
    pub(crate) fn say(&mut self, world: &World, line: impl FnOnce() -> (Option<f64>, String)) {
        let now = self.clock.now();
        if world.rank() == 0
            && world.setting(PROGRESS).is_some()
            && self.last.is_none_or(|last| now.since(last) >= REPORT_EVERY)
        {
            self.last = Some(now);
            let (done, line) = line();
            world.progress(done, line);
        }
    }
}

/// The part of `rank` of a range that is divided evenly among `size` ranks, in the order of the ranks.
pub(crate) fn share_of(range: &Range<u64>, rank: usize, size: usize) -> Range<u64> {
    let length = u128::from(range.end - range.start);
    let at = |rank: usize| range.start + (length * rank as u128 / size as u128) as u64;
    at(rank)..at(rank + 1)
}

/// How fast a count grows, since this process began or was restored.
#[derive(Debug)]
pub(crate) struct Rate {
    clock: Clock,
    since: Time,
    before: u64,
}

impl Rate {
    pub(crate) fn new() -> Self {
        Self { clock: Clock::start(), since: Time(0), before: 0 }
    }

    /// The count starts at `count` again, after a restore.
    pub(crate) fn restart(&mut self, count: u64) {
        (self.since, self.before) = (self.clock.now(), count);
    }

    pub(crate) fn per_second(&self, count: u64) -> f64 {
        count.saturating_sub(self.before) as f64 / self.clock.now().since(self.since).as_secs_f64()
    }
}
