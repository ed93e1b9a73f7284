//! The result of `seismic`: which shot ran where and why again, and how long it should have taken.

use ft_checkpoint::Worker;
use ft_checkpoint::bag::{Bag, Outcome, Run};
use ft_launch::Failure;
use ft_seismic::Model;
use ft_seismic::geometry::Survey;
use serde::{Deserialize, Serialize};

use super::setup::Steps;
use crate::rank::Rate;
use crate::words::count;

/// What ranks have spent on modeling.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    pub(super) seconds: f64,
    pub(super) steps: u64,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    model: String,
    order: usize,
    #[serde(with = "crate::number")]
    dt_ms: f64,
    #[serde(with = "crate::number")]
    interval_ms: f64,
    samples: usize,
    receivers: usize,
    steps_per_shot: u64,
    shots: Vec<ShotReport>,
    /// Time steps that were done again because of failures.
    steps_repeated: u64,
    /// Grid points, absorbing layers included, that one rank has computed a second.
    #[serde(with = "crate::number")]
    points_per_second: f64,
    #[serde(with = "crate::number")]
    shots_per_second: f64,
    answer_hash: Option<String>,
    time: TimeModel,
}

/// A shot and its runs, the last of which is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ShotReport {
    number: u32,
    runs: Vec<Run>,
}

/// `E = D / (P - F P) S + S X + F P R`: the time of a run in which the share F of P processors is lost and not replaced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TimeModel {
    /// D
    shots: usize,
    /// P
    processors: usize,
    /// F P
    lost: usize,
    /// S
    #[serde(with = "crate::number")]
    seconds_per_shot: f64,
    /// R
    #[serde(with = "crate::number")]
    seconds_per_repair: f64,
    /// E; none if as many were lost as there are.
    predicted_s: Option<f64>,
    /// E if lost processors are replaced: `D / P S`, and what was done again, and the repairs.
    #[serde(with = "crate::number")]
    predicted_replaced_s: f64,
    #[serde(with = "crate::number")]
    measured_s: f64,
}

impl Summary {
    pub(super) fn new(model: &Model, survey: &Survey, steps: &Steps, bag: &Bag, processors: usize) -> Self {
        let shots = survey.shots.iter().zip(bag.runs());
        let shots: Vec<ShotReport> =
            shots.map(|(shot, runs)| ShotReport { number: shot.number, runs: runs.clone() }).collect();
        Self {
            model: format!("{} x {} points of {} m", model.nx, model.nz, model.spacing),
            order: steps.order,
            dt_ms: steps.dt * 1e3,
            interval_ms: steps.interval() * 1e3,
            samples: steps.samples,
            receivers: survey.shots.iter().map(|shot| shot.receivers.len()).max().unwrap_or(0),
            steps_per_shot: steps.wavelet.len() as u64,
            steps_repeated: shots.iter().flat_map(|shot| &shot.runs).map(|run| run.steps_lost).sum(),
            time: TimeModel { shots: shots.len(), processors, ..TimeModel::default() },
            shots,
            ..Self::default()
        }
    }

    /// Adds what `spent` says, of all ranks together, for steps of so many grid points.
    pub(super) fn measured(mut self, spent: Measured, points: usize) -> Self {
        let step = spent.seconds / spent.steps.max(1) as f64;
        self.points_per_second = if step > 0.0 { points as f64 / step } else { 0.0 };
        self.time.seconds_per_shot = step * self.steps_per_shot as f64;
        self
    }

    pub(super) fn hashed(mut self, hash: Option<String>) -> Self {
        self.answer_hash = hash;
        self
    }

    /// Predicts the time of the run from its failures; it was `elapsed` seconds.
    pub(super) fn predict(&mut self, failures: &[Failure], elapsed: f64) {
        self.shots_per_second = self.time.shots as f64 / elapsed;
        let spans = failures.iter().map(|f| {
            [f.detect, f.repair, f.restore].into_iter().flatten().map(|span| span.as_secs_f64()).sum::<f64>()
        });
        let time = &mut self.time;
        time.measured_s = elapsed;
        time.lost = failures.iter().map(|failure| failure.ranks.len()).sum();
        time.seconds_per_repair =
            if failures.is_empty() { 0.0 } else { spans.sum::<f64>() / failures.len() as f64 };
        let (shots, processors, lost) = (time.shots as f64, time.processors as f64, time.lost as f64);
        let again = if time.lost > 0 { time.seconds_per_shot } else { 0.0 };
        let repairs = lost * time.seconds_per_repair;
        time.predicted_s = (lost < processors)
            .then(|| shots / (processors - lost) * time.seconds_per_shot + again + repairs);
        let repeated = self.steps_repeated as f64 / self.steps_per_shot.max(1) as f64;
        time.predicted_replaced_s =
            ((shots + repeated) / processors).max(shots.min(1.0)) * time.seconds_per_shot + repairs;
    }

    /// Names a shot that is not done.
    pub(super) fn complaint(&self) -> Option<String> {
        let is_done = |shot: &ShotReport| shot.runs.iter().any(|run| matches!(run.outcome, Outcome::Done));
        let missing = self.shots.iter().find(|shot| !is_done(shot))?;
        Some(format!("shot {} has not been done", missing.number))
    }

    pub(super) fn headline(&self) -> String {
        format!("{}, {}", count(self.shots.len() as u64, "shot"), self.model)
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "order {}, {} of {:.3} ms a shot, {}, {} of {:.3} ms",
            self.order,
            count(self.steps_per_shot, "step"),
            self.dt_ms,
            count(self.receivers as u64, "receiver"),
            count(self.samples as u64, "sample"),
            self.interval_ms
        )];
        for shot in
            self.shots.iter().filter(|shot| shot.runs.len() > 1 || shot.runs.iter().any(|r| r.resumed > 0))
        {
            let runs: Vec<String> = shot.runs.iter().map(describe).collect();
            lines.push(format!("shot {}: {}", shot.number, runs.join("; ")));
        }
        let once = self.shots.iter().filter(|shot| shot.runs.len() == 1 && shot.runs[0].resumed == 0).count();
        lines.push(format!(
            "{once} of {} ran once and in one piece, {} done again",
            count(self.shots.len() as u64, "shot"),
            count(self.steps_repeated, "time step")
        ));
        lines.push(self.times());
        if let Some(hash) = &self.answer_hash {
            lines.push(format!("gathers {}", &hash[..16.min(hash.len())]));
        }
        lines
    }

    /// How long it took, and would have taken.
    fn times(&self) -> String {
        let time = &self.time;
        let without = match time.predicted_s {
            _ if time.lost == 0 => String::new(),
            Some(seconds) => format!("{seconds:.2} s if nothing lost were replaced, "),
            None => "for ever if nothing lost were replaced (as many processors as there are), ".into(),
        };
        format!(
            "{:.3} s a shot, {:.2} million points a second; predicted {without}{:.2} s as it was, took {:.2} s",
            time.seconds_per_shot,
            self.points_per_second * 1e-6,
            time.predicted_replaced_s,
            time.measured_s
        )
    }
}

fn describe(run: &Run) -> String {
    let resumed = match run.resumed {
        0 => String::new(),
        1 => format!(", resumed in the middle after a failure, {} again", count(run.steps_lost, "step")),
        times => format!(", resumed in the middle {times} times, {} again", count(run.steps_lost, "step")),
    };
    match run.outcome {
        Outcome::Done => format!("done by rank {}{resumed}", run.rank),
        Outcome::Lost => format!("lost with rank {} at step {}{resumed}", run.rank, run.steps_lost),
        Outcome::Running => format!("under way at rank {}{resumed}", run.rank),
    }
}

/// Share of the work that is done, and a line about it.
pub(super) fn progress(worker: &Worker, steps_per_shot: u64, rate: &Rate) -> (Option<f64>, String) {
    let (done, all) = (worker.bag().done(), worker.bag().runs().len());
    let steps = steps_done(worker, steps_per_shot);
    let share = steps as f64 / (steps_per_shot * all as u64).max(1) as f64;
    let rate = 60.0 * rate.per_second(steps) / steps_per_shot.max(1) as f64;
    (Some(share), format!("{done} of {}, {rate:.1} a minute", count(all as u64, "shot")))
}

/// Time steps of all shots that are done, as known at the last meeting.
pub(super) fn steps_done(worker: &Worker, steps_per_shot: u64) -> u64 {
    worker.bag().done() as u64 * steps_per_shot + worker.bag().progress()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn failure(ranks: &[usize]) -> Failure {
        Failure {
            ranks: ranks.to_vec(),
            point: "time=1".into(),
            detect: Some(Duration::from_millis(100)),
            repair: Some(Duration::from_millis(300)),
            restore: Some(Duration::from_millis(600)),
            agree: None,
            respawn: None,
            held: None,
            generation: Some(1),
            steps_lost: 0,
            spare_hosts: vec![],
        }
    }

    fn summary(shots: usize, processors: usize) -> Summary {
        Summary {
            steps_per_shot: 100,
            steps_repeated: 50,
            time: TimeModel { shots, processors, seconds_per_shot: 2.0, ..TimeModel::default() },
            ..Summary::default()
        }
    }

    #[test]
    fn nothing_is_said_of_losses_where_there_are_none() {
        let mut one = summary(1, 4);
        one.steps_repeated = 0;
        one.predict(&[], 2.5);
        let text = |summary: &Summary| summary.lines().join("\n");
        assert!(
            text(&one).contains("0 of 0 shots ran once and in one piece, 0 time steps done again"),
            "{}",
            text(&one)
        );
        assert!(text(&one).contains("predicted 2.00 s as it was, took 2.50 s"), "{}", text(&one));
        one.predict(&[failure(&[2])], 14.0);
        assert!(text(&one).contains(" s if nothing lost were replaced, "), "{}", text(&one));
    }

    #[test]
    fn the_model_of_the_literature_is_as_printed() {
        let mut quiet = summary(24, 4);
        quiet.steps_repeated = 0;
        quiet.predict(&[], 13.0);
        assert_eq!((quiet.time.measured_s, quiet.shots_per_second), (13.0, 24.0 / 13.0));
        assert_eq!((quiet.time.predicted_s, quiet.time.predicted_replaced_s), (Some(12.0), 12.0));
        let mut one = summary(24, 4);
        one.predict(&[failure(&[2])], 14.0);
        // 24 / 3 * 2 + 2 + 1 * 1
        assert_eq!(one.time.predicted_s, Some(19.0));
        // (24 + 0.5) / 4 * 2 + 1
        assert_eq!(one.time.predicted_replaced_s, 13.25);
        let mut all = summary(24, 4);
        all.predict(&[failure(&[0, 1]), failure(&[2, 3])], 20.0);
        assert_eq!((all.time.predicted_s, all.time.lost), (None, 4));
    }
}
