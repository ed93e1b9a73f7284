//! What the ranks of bundled apps have in common.

use std::ops::Range;
use std::process::ExitCode;
use std::time::Duration;

use ft_checkpoint::{CheckpointError, Program, Protection};
use ft_comm::time::{Clock, Time};
use ft_comm::{CommError, World};

use crate::say;
use crate::settings::AppSettings;

/// How often progress is reported.
const REPORT_EVERY: Duration = Duration::from_millis(50);

/// Runs one rank of a program in the resilient loop; `program` makes it once the rank has joined.
pub(crate) fn run<P: Program>(program: impl FnOnce(AppSettings) -> P) -> ExitCode {
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
    let Ok((settings, protection)) = told(&world) else { return ExitCode::FAILURE };
    match ft_checkpoint::run(world, protection, &mut program(settings)) {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// What the launcher has told this rank. The job ends if that makes no sense.
pub(crate) fn told(world: &World) -> Result<(AppSettings, Protection), CheckpointError> {
    let settings = AppSettings::from_launcher(world).map_err(CheckpointError::from);
    let told = settings.and_then(|settings| Ok((settings, Protection::from_launcher(world)?)));
    told.inspect_err(|error| _ = world.abort(2, error.to_string()))
}

/// Tells the terminal how far the work is, not too often, and only if somebody looks.
#[derive(Debug)]
pub(crate) struct Reporter {
    is_watched: bool,
    clock: Clock,
    last: Option<Time>,
}

impl Reporter {
    pub(crate) fn new(settings: AppSettings) -> Self {
        Self { is_watched: settings.progress, clock: Clock::start(), last: None }
    }

    /// `line` gives the share of the work that is done, if it can be said, and what to say; on rank 0.
    pub(crate) fn say(&mut self, world: &World, line: impl FnOnce() -> (Option<f64>, String)) {
        let now = self.clock.now();
        if world.rank() == 0
            && self.is_watched
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

/// splitmix64: Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
pub(crate) fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
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
