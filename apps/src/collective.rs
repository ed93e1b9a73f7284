//! `collective`: the collective operations with known answers, and the time that each takes: every operation once a round, or every
//! algorithm of every operation.

use std::process::ExitCode;

use clap::Args;
use ft_comm::time::Clock;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::rank::{self, Reporter};
use crate::size;
use crate::value::{U32_MAX, from_to, seconds};
use crate::words::count;

mod algorithms;
mod call;
mod rounds;

use algorithms::{Algorithms, Timing};
use rounds::{Mean, Rounds};

/// The arguments of `collective`.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(next_help_heading = "Options of collective")]
pub(crate) struct CollectiveArgs {
    /// How often each operation is done
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = from_to::<u32>(1..=U32_MAX))]
    rounds: u32,
    /// Numbers of 8 bytes that each rank brings to each operation
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = from_to::<u32>(1..=1 << 27))]
    elements: u32,
    /// Time every algorithm of each operation instead, as 'ftrun bench collectives' does
    #[arg(long, conflicts_with_all = ["rounds", "elements"])]
    algorithms: bool,
    /// Sizes to time algorithms with: bytes, or a number of KiB, MiB or GiB; of the buffer, or of one rank's part of it
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', default_value = "8,1KiB,64KiB", value_parser = size::of_words, requires = "algorithms")]
    sizes: Vec<u64>,
    /// About how long each algorithm is timed with each size
    #[arg(long, value_name = "SECONDS", default_value_t = 0.03, value_parser = seconds, requires = "algorithms")]
    time: f64,
}

/// What `collective` reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CollectiveResult {
    /// Wrong numbers, on all ranks together.
    wrong: u64,
    #[serde(flatten)]
    measured: Measured,
}

/// What was timed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Measured {
    Rounds { rounds: u32, elements: u32, operations: Vec<Mean> },
    Algorithms { timings: Vec<Timing> },
}

impl App for CollectiveArgs {
    type Outcome = CollectiveResult;

    fn rank(&self) -> ExitCode {
        let (args, clock) = (self.clone(), Clock::start());
        match self.algorithms {
            false => rank::run(|settings| Rounds { args, clock, reporter: Reporter::new(settings) }),
            true => rank::run(|settings| Algorithms::new(args, clock, Reporter::new(settings))),
        }
    }

    fn complaint(&self, CollectiveResult { wrong, .. }: &CollectiveResult) -> Option<String> {
        (*wrong > 0).then(|| format!("collective operations gave {}", count(*wrong, "wrong number")))
    }

    fn headline(&self, CollectiveResult { measured, .. }: &CollectiveResult) -> String {
        match measured {
            Measured::Rounds { rounds, elements, .. } => {
                format!("{}, {}", count(u64::from(*rounds), "round"), count(u64::from(*elements), "element"))
            }
            Measured::Algorithms { .. } => String::new(),
        }
    }

    fn lines(&self, CollectiveResult { wrong, measured }: &CollectiveResult) -> Vec<String> {
        match measured {
            Measured::Rounds { operations, .. } => {
                let all_right =
                    if *wrong == 0 { "all right".into() } else { format!("{wrong} numbers wrong") };
                operations.iter().map(Mean::line).chain([all_right]).collect()
            }
            Measured::Algorithms { timings } => timings.iter().map(Timing::line).collect(),
        }
    }
}
