//! All that was measured and what follows, for whoever writes it down.

use ft_comm::collective::Selection;
use serde::{Serialize, Serializer};

use super::choice::Choice;
use super::measured::{Case, Sample};
use super::{csv, page, tables};
use crate::recovery::{Machine, table_text};

/// Rounds below which the spread says nothing.
const TOO_FEW: usize = 3;

/// All that was measured, and what follows.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// Where.
    pub machine: Machine,
    /// What carried the messages.
    pub transport: String,
    /// Options that say on which hosts; none: on this one.
    pub places: Vec<String>,
    /// How often everything was measured.
    pub rounds: usize,
    /// Seconds for each algorithm with each size in each round.
    pub time_s: f64,
    /// Numbers of ranks.
    pub ranks: Vec<usize>,
    /// The table of the fastest algorithms.
    #[serde(serialize_with = "text")]
    pub table: Selection,
    /// What it chooses.
    pub choices: Vec<Choice>,
    /// Every algorithm over all rounds.
    pub cases: Vec<Case>,
    /// Raw numbers.
    pub samples: Vec<Sample>,
}

impl Results {
    /// Tables for a terminal.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n{}\n", self.job(), self.place());
        text += "\nWhat the table chooses, and the time of the builtin choice over that.\n";
        text += &table_text(&tables::choices(&self.choices));
        text.extend(self.remarks().iter().map(|remark| format!("\n{remark}\n")));
        text.replace('\u{a0}', " ")
    }

    /// The table as a file for `ftrun --collectives`, with a word on where it is from.
    pub fn table_text(&self) -> String {
        let table = &self.table;
        let ranks: Vec<String> = self.ranks.iter().map(usize::to_string).collect();
        format!(
            "# ftrun bench collectives --ranks {} --rounds {} --time {}\n# {}\n# For more ranks the builtin lines follow.\n{table}",
            ranks.join(","),
            self.rounds,
            self.time_s,
            self.place()
        )
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
        let on: Vec<String> = self.places.iter().map(|option| format!(" {option}")).collect();
        let Self { transport, .. } = self;
        format!(
            "{cores} cores, {processor}, transport {transport}{}, load {:.2}",
            on.concat(),
            load_averages[0]
        )
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
        if self.ranks.iter().any(|&ranks| ranks > self.machine.cores) {
            all.push(format!(
                "More than {} ranks share the cores, so each of them waits for others in everything it does.",
                self.machine.cores
            ));
        }
        all
    }
}

fn text<S: Serializer>(table: &Selection, serializer: S) -> Result<S::Ok, S::Error> {
    table.to_string().serialize(serializer)
}
