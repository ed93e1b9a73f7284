//! `pi`: the area of the quarter circle by random points, a batch of them a step.
//!
//! Point `i` is a function of the seed and of `i`, so the hits depend on neither ranks nor failures.

use std::process::ExitCode;

use clap::Args;
use ft_checkpoint::{Flow, Program, Protect, RankState, Redistribute, Redistribution};
use ft_comm::{CommError, Op, World};
use ft_montecarlo::{Estimate, hits};
use serde::{Deserialize, Serialize};

use crate::app::{self, App};
use crate::rank::{self, Rate, Reporter, share_of};
use crate::value::{COUNT_MAX, from_to};
use crate::words::count;

/// Samples a step, of all ranks together.
const BATCH: u64 = 1 << 22;
/// Most standard deviations that an estimate is off; with any number of samples, chance does more less than once in 10^11 runs.
const DEVIATION_MAX: f64 = 8.0;

/// The arguments of `pi`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of pi")]
pub(crate) struct PiArgs {
    /// Random points
    #[arg(long, value_name = "N", default_value_t = 200_000_000, value_parser = from_to::<u64>(1..=COUNT_MAX))]
    samples: u64,
    /// Print the running estimate to stderr every N points
    #[arg(long, value_name = "N", value_parser = from_to::<u64>(1..=COUNT_MAX))]
    report_every: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PiResult {
    samples: u64,
    hits: u64,
    pi: f64,
    standard_error: f64,
    /// Distance from pi in standard deviations of such estimates.
    deviation: f64,
    #[serde(with = "crate::number")]
    samples_per_second: f64,
}

impl App for PiArgs {
    type Outcome = PiResult;

    fn rank(&self) -> ExitCode {
        rank::run(|settings| Sampling {
            args: self.clone(),
            seed: settings.seed,
            reporter: Reporter::new(settings),
            rate: Rate::new(),
        })
    }

    fn complaint(&self, PiResult { samples, pi, deviation, .. }: &PiResult) -> Option<String> {
        let is_right = *deviation <= DEVIATION_MAX;
        (!is_right).then(|| {
            format!(
                "{pi:.8} is {deviation:.1} standard deviations off, which {samples} points are not by chance"
            )
        })
    }

    fn headline(&self, result: &PiResult) -> String {
        count(result.samples, "sample")
    }

    fn lines(&self, result: &PiResult) -> Vec<String> {
        let PiResult { hits, pi, standard_error, deviation, samples_per_second, .. } = result;
        vec![
            format!(
                "pi = {pi:.8} +- {standard_error:.8}, {deviation:.2} standard deviations off, {}",
                count(*hits, "hit")
            ),
            format!("{:.1} million samples a second", samples_per_second * 1e-6),
        ]
    }
}

/// The same on all ranks.
#[derive(Debug, Default, Protect, Redistribute)]
struct Counted {
    #[protect(replicated)]
    samples: u64,
    #[protect(replicated)]
    hits: u64,
}

struct Sampling {
    args: PiArgs,
    seed: u64,
    reporter: Reporter,
    rate: Rate,
}

impl Program for Sampling {
    type State = Counted;
    type Error = CommError;
    const ALONE: bool = true;
    const SHRINKS: bool = true;
    const GROWS: bool = true;

    fn init(&mut self, _: &World) -> Result<Counted, CommError> {
        Ok(Counted::default())
    }

    fn redistribute(
        &mut self,
        shares: Vec<RankState<Counted>>,
        before: usize,
        world: &World,
    ) -> Result<Counted, CommError> {
        Redistribution::equal_blocks(world.comm(), &shares, before)?.deal(shares)
    }

    fn rebuild(&mut self, counted: &mut Counted, _: &World) -> Result<(), CommError> {
        self.rate.restart(counted.samples);
        Ok(())
    }

    fn step(&mut self, counted: &mut Counted, world: &World, _: u64) -> Result<Flow, CommError> {
        let batch = counted.samples..self.args.samples.min(counted.samples + BATCH);
        let mut found = [hits(self.seed, share_of(&batch, world.rank(), world.size()))];
        world.comm().allreduce(&mut found, Op::Sum)?;
        let before = counted.samples;
        (counted.samples, counted.hits) = (batch.end, counted.hits + found[0]);

        let estimate = Estimate { samples: counted.samples, hits: counted.hits };
        let rate = self.rate.per_second(counted.samples);
        let line = || {
            let left = (self.args.samples - estimate.samples) as f64 / rate;
            format!(
                "{} samples, pi = {:.8} +- {:.8}, {:.0} million a second, {left:.1} s left",
                estimate.samples,
                estimate.pi(),
                estimate.standard_error(),
                rate * 1e-6
            )
        };
        let crossed = |every| before / every < counted.samples / every;
        if world.rank() == 0 && self.args.report_every.is_some_and(crossed) {
            eprintln!("pi: {}", line());
        }
        let done = counted.samples as f64 / self.args.samples as f64;
        let pi = format!("pi = {:.8} +- {:.8}", estimate.pi(), estimate.standard_error());
        self.reporter.say(world, || (Some(done), format!("{pi}, {:.0} million a second", rate * 1e-6)));
        Ok(if counted.samples == self.args.samples { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, counted: &mut Counted, _: &World) -> Result<Vec<u8>, CommError> {
        let estimate = Estimate { samples: counted.samples, hits: counted.hits };
        let result = PiResult {
            samples: counted.samples,
            hits: counted.hits,
            pi: estimate.pi(),
            standard_error: estimate.standard_error(),
            deviation: estimate.deviation(),
            samples_per_second: self.rate.per_second(counted.samples),
        };
        Ok(app::write(&result))
    }
}
