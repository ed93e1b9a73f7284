//! All that was measured and what follows, for whoever writes it down.

use serde::Serialize;

use super::experiment::{EVERY, STEP_MS, STEPS};
use super::machine::{Disk, Machine};
use super::measurement::Measurement;
use super::summary::Summary;
use super::trial::Trial;
use super::units::NO_BREAK;
use super::verdict::{Verdict, verdict};
use super::{csv, page, tables};

/// Mean times between failures from which and to which the model is shown, in seconds, and in how many steps.
const MTBF_S: (f64, f64) = (10.0, 86_400.0);
const CURVE_STEPS: usize = 24;

/// The efficiency of one scheme, each time at its best interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// Protected state of each rank.
    pub state_bytes: u64,
    /// Name of the scheme.
    pub scheme: String,
    /// By rising mean time between failures.
    pub points: Vec<CurvePoint>,
}

/// What the model says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// Mean time between failures of the job.
    pub mtbf_s: f64,
    /// The best interval between checkpoints.
    pub interval_s: f64,
    /// Work over time.
    pub efficiency: f64,
}

/// All that was measured, and what follows.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// Where.
    pub machine: Machine,
    /// Filesystems of the disk schemes.
    pub disks: Vec<Disk>,
    /// Ranks of each job.
    pub ranks: usize,
    /// Repetitions.
    pub repeat: usize,
    /// Sizes of the state, each rank's.
    pub states: Vec<u64>,
    /// Names of the schemes, without that for no protection.
    pub schemes: Vec<String>,
    /// Medians.
    pub summaries: Vec<Summary>,
    /// The model.
    pub curves: Vec<Curve>,
    /// Runs with random failures.
    pub trials: Vec<Trial>,
    /// What cannot be said, in plain words.
    pub warnings: Vec<String>,
    /// Raw numbers, in the order in which they were measured.
    pub measurements: Vec<Measurement>,
}

impl Results {
    /// Tables for a terminal.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{}\n{} cores, {}, load {:.2}\n",
            self.job(),
            self.machine.cores,
            self.machine.processor,
            self.machine.load_averages[0]
        );
        text += &self.disks.iter().map(|disk| format!("{disk}\n")).collect::<String>();
        for table in [
            tables::costs(&self.summaries),
            tables::checkpoints(&self.summaries),
            tables::recoveries(&self.summaries),
            tables::intervals(&self.summaries),
            tables::trials(&self.trials),
        ] {
            text.push('\n');
            text += &tables::text(&table);
        }
        let Verdict { headline, paragraphs, .. } = self.verdict();
        let said = self.remarks().into_iter().chain([format!("{headline}.")]).chain(paragraphs);
        text.extend(said.map(|line| format!("\n{line}\n")));
        text.replace(NO_BREAK, " ")
    }

    /// One row for each measurement, with a header.
    pub fn csv(&self) -> String {
        csv::csv(&self.measurements)
    }

    /// One page with pictures that loads nothing.
    pub fn html(&self) -> String {
        page::page(self)
    }

    /// Memory against disk.
    pub(crate) fn verdict(&self) -> Verdict {
        verdict(&self.states, &self.summaries, self.repeat)
    }

    pub(crate) fn job(&self) -> String {
        let Self { ranks, repeat, .. } = self;
        format!(
            "{ranks} ranks, {STEPS} steps of at least {STEP_MS} ms, a checkpoint every {EVERY}; medians and quartiles of {repeat} repetitions"
        )
    }

    /// What a reader has to know before believing the numbers.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut all: Vec<String> =
            self.warnings.iter().map(|warning| format!("Warning: {warning}")).collect();
        if self.ranks > self.machine.cores {
            all.push(format!(
                "{} ranks share {} cores, so each of them waits for others in everything it does.",
                self.ranks, self.machine.cores
            ));
        }
        all
    }
}

/// The model for all summaries, over a range that includes the trials.
pub(crate) fn curves(summaries: &[Summary], trials: &[Trial]) -> Vec<Curve> {
    let from = trials.iter().map(|trial| trial.mtbf_s).fold(MTBF_S.0, f64::min);
    let mtbf_s = |step: usize| from * (MTBF_S.1 / from).powf(step as f64 / CURVE_STEPS as f64);
    let curve = |summary: &Summary| {
        let costs = summary.protected.as_ref()?.costs();
        let point = |mtbf_s: f64| {
            let interval_s = costs.daly_s(mtbf_s);
            CurvePoint { mtbf_s, interval_s, efficiency: costs.efficiency(mtbf_s, interval_s) }
        };
        Some(Curve {
            state_bytes: summary.state_bytes,
            scheme: summary.scheme.clone(),
            points: (0..=CURVE_STEPS).map(|step| point(mtbf_s(step))).collect(),
        })
    };
    summaries.iter().filter_map(curve).collect()
}
