//! All that was measured and what follows, for whoever writes it down.

use ft_comm::collective::{self, Selection};
use serde::{Serialize, Serializer};

use super::choice::Choice;
use super::fit::Links;
use super::measured::{Case, Sample};
use super::prediction::{Checked, Prediction};
use super::{csv, page, tables};
use crate::recovery::{Machine, Spread, table_text};

/// Rounds below which the spread says nothing.
const TOO_FEW: usize = 3;

/// Quartiles of a short message this far apart say that the machine does other things.
const UNSTEADY: f64 = 1.5;

/// All that was measured, and what follows.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// Where.
    pub machine: Machine,
    /// What carried the messages.
    pub transport: String,
    /// How often everything was measured.
    pub rounds: usize,
    /// Seconds for each algorithm with each size in each round.
    pub time_s: f64,
    /// Numbers of ranks.
    pub ranks: Vec<usize>,
    /// The table of the fastest algorithms; none if the model was asked for.
    #[serde(serialize_with = "text")]
    pub table: Option<Selection>,
    /// What it chooses.
    pub choices: Vec<Choice>,
    /// The model, if it was asked for.
    pub fitted: Option<Fitted>,
    /// Every algorithm over all rounds.
    pub cases: Vec<Case>,
    /// Raw numbers.
    pub samples: Vec<Sample>,
}

/// The model of this machine.
#[derive(Clone, Debug, Serialize)]
pub struct Fitted {
    /// What it is made of.
    pub links: Links,
    /// Half a round trip of a short message over the rounds, in seconds.
    pub short_s: Spread,
    /// Its numbers.
    pub machine: Parameters,
    /// Held against the clock.
    pub checks: Vec<Checked>,
    /// What it says of many ranks.
    pub predictions: Vec<Prediction>,
}

/// As [`collective::Machine`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Parameters {
    /// `L`, in seconds.
    pub latency_s: f64,
    /// `o`, in seconds.
    pub overhead_s: f64,
    /// `G`, in seconds per byte.
    pub byte_s: f64,
    /// Seconds per byte reduced.
    pub reduce_byte_s: f64,
    /// Cores.
    pub cores: usize,
}

impl From<collective::Machine> for Parameters {
    fn from(machine: collective::Machine) -> Self {
        let collective::Machine { latency_s, overhead_s, byte_s, reduce_byte_s, cores } = machine;
        Self { latency_s, overhead_s, byte_s, reduce_byte_s, cores }
    }
}

impl Results {
    /// Tables for a terminal.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n{}\n", self.job(), self.place());
        let mut section = |title: &str, table: &ft_figures::Table| {
            text += &format!("\n{title}\n{}", table_text(table));
        };
        match &self.fitted {
            None => section(
                "What the table chooses, and the time of the builtin choice over that.",
                &tables::choices(&self.choices),
            ),
            Some(fitted) => {
                section("Machine of the model.", &tables::machine(&fitted.machine));
                section("Measured beside predicted.", &tables::checks(&fitted.checks));
                section(
                    "Predicted, all ranks on this host.",
                    &tables::predictions(&fitted.predictions, |at| at.one_host_s),
                );
                section(
                    "Predicted, one rank a host, links as fast as within this host.",
                    &tables::predictions(&fitted.predictions, |at| at.many_hosts_s),
                );
            }
        }
        text.extend(self.remarks().iter().map(|remark| format!("\n{remark}\n")));
        text.replace('\u{a0}', " ")
    }

    /// The table as a file for `ftrun --collectives`, with a word on where it is from.
    pub fn table_text(&self) -> Option<String> {
        let table = self.table.as_ref()?;
        let ranks: Vec<String> = self.ranks.iter().map(usize::to_string).collect();
        Some(format!(
            "# ftrun bench collectives --ranks {} --rounds {} --time {}\n# {}\n# For more ranks the builtin lines follow.\n{table}",
            ranks.join(","),
            self.rounds,
            self.time_s,
            self.place()
        ))
    }

    /// One row for each sample, with a header.
    pub fn csv(&self) -> String {
        csv::csv(&self.samples)
    }

    /// One page with pictures that loads nothing.
    pub fn html(&self) -> String {
        page::page(self)
    }

    pub(crate) fn job(&self) -> String {
        let Self { rounds, time_s, .. } = self;
        format!("every algorithm for about {time_s} s in each of {rounds} rounds; medians of the rounds")
    }

    pub(crate) fn place(&self) -> String {
        let Machine { cores, processor, load_averages, .. } = &self.machine;
        format!("{cores} cores, {processor}, transport {}, load {:.2}", self.transport, load_averages[0])
    }

    /// What a reader has to know before believing the numbers.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut all = Vec::new();
        if self.rounds < TOO_FEW {
            all.push(format!(
                "Warning: only {} of at least {TOO_FEW} rounds: how far they spread is not known.",
                self.rounds
            ));
        }
        if let Some(Fitted { short_s: Spread { low, high, .. }, .. }) = &self.fitted
            && *high > UNSTEADY * low
        {
            all.push(format!(
                "Warning: a short message took {} to {} in different rounds, so the model is of no steady machine. Run it \
                 again when nothing else runs.",
                tables::time(*low),
                tables::time(*high)
            ));
        }
        if self.ranks.iter().any(|&ranks| ranks > self.machine.cores) {
            all.push(format!(
                "More than {} ranks share the cores, so each of them waits for others in everything it does.",
                self.machine.cores
            ));
        }
        all
    }
}

fn text<S: Serializer>(table: &Option<Selection>, serializer: S) -> Result<S::Ok, S::Error> {
    table.as_ref().map(Selection::to_string).serialize(serializer)
}
