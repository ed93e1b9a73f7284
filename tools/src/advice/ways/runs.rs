//! The jobs of all ways, in turn.

use super::super::error::AdviceError;
use super::super::experiment::AdviceExperiment;
use super::super::job::{Reported, ordered};
use super::super::session::Session;
use super::Way;
use super::judgment::{Refused, WaysAdvice, judge};
use super::measured::{Loss, Round, Sample};

/// Intervals between checkpoints in each job: few, as much is to be done again after a late kill.
const INTERVALS: u64 = 2;
/// Where kills strike, in intervals: behind the checkpoint in the middle, early and late.
const EARLY: f64 = 1.25;
const LATE: f64 = 1.8;
/// Intervals between checkpoints in a job with losses at random, and losses that it is to have, about.
const INTERVALS_RANDOM: u64 = 8;
const LOSSES: f64 = 4.0;
/// The mean time between them is so many recoveries, at least: denser ones would strike these.
const APART: f64 = 4.0;
/// No job is taken to be shorter.
const SHORTEST_S: f64 = 0.01;
/// The exit status of who refuses an order.
const REFUSES: i32 = 2;

/// What a job is for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// One step alone: what a start takes.
    Start,
    /// All steps.
    Calm,
    /// All steps, and a rank is killed so many intervals from the first.
    Struck { victim: usize, at: f64 },
    /// All steps, and ranks are killed at random.
    Random { mtbf_s: f64, seed: usize },
}

/// The steps of each job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) steps: u64,
    /// Steps between two checkpoints.
    pub(super) every: u64,
    /// The same where losses are random.
    pub(super) every_random: u64,
}

impl Plan {
    /// As long as a job that was seen, in whole intervals.
    pub(super) fn of(steps: u64) -> Self {
        let every_random = (steps / INTERVALS_RANDOM).max(1);
        let every = (steps / INTERVALS).max(1).next_multiple_of(every_random);
        let every = if every * INTERVALS > steps { (every - every_random).max(1) } else { every };
        Self { steps: (every * INTERVALS).min(steps.max(1)), every, every_random }
    }

    /// The step in which a rank is killed that many intervals from the first.
    fn struck(self, at: f64) -> u64 {
        ((at * self.every as f64).ceil() as u64).clamp(1, self.steps)
    }

    /// The options of a job.
    fn options(self, experiment: &AdviceExperiment, scheme: &str, way: Way, kind: Kind) -> Vec<String> {
        let Self { steps, every, every_random } = self;
        let end = |steps: u64| {
            if experiment.whole { String::new() } else { format!("--trial-steps {steps}") }
        };
        let rest = match kind {
            Kind::Start => format!("--every 1 {}", end(1)),
            Kind::Calm => format!("--every {every} {}", end(steps)),
            Kind::Struck { victim, at } => {
                // The steps that were seen are those of rank 0; others may have fewer.
                let victim = if experiment.whole { 0 } else { victim };
                format!("--every {every} {} --kill {victim}@step={}", end(steps), self.struck(at))
            }
            Kind::Random { mtbf_s, seed } => format!(
                "--every {every_random} {} --mtbf {mtbf_s:.4} --seed {seed} --max-restarts 1000000",
                end(steps)
            ),
        };
        ordered(experiment, scheme, &format!("{} {rest}", way.options()))
    }
}

/// Jobs of a way in a round.
fn jobs_of_way(experiment: &AdviceExperiment, way: Way) -> usize {
    // What a start takes nobody can say of a program that has to go to its end.
    let start = usize::from(!experiment.whole);
    // Early and late, where what is done again may hold up the job by less than it is.
    let struck = if way == Way::Local { 2 } else { 1 };
    start + 1 + struck + 1
}

/// Jobs of all ways.
pub(in super::super) fn jobs(experiment: &AdviceExperiment) -> usize {
    experiment.ways.iter().map(|way| experiment.repeat * jobs_of_way(experiment, *way)).sum()
}

/// Measures the ways under a scheme, in jobs of so many steps, about.
pub(in super::super) fn weigh(
    session: &mut Session<'_>,
    scheme: &str,
    steps: u64,
) -> Result<WaysAdvice, AdviceError> {
    let experiment = session.experiment;
    let plan = Plan::of(steps);
    let mut rounds: Vec<(Way, Vec<Round>)> = experiment.ways.iter().map(|way| (*way, vec![])).collect();
    let mut refused = Vec::new();
    for repetition in 0..experiment.repeat {
        let mut left = Vec::new();
        for (way, mut seen) in rounds {
            let order = Order { plan, scheme, way, repetition };
            match order.round(session) {
                Ok(round) => {
                    seen.push(round);
                    left.push((way, seen));
                }
                Err(error) => {
                    refused.push(Refused { way, reason: refusal(error)? });
                    session.leave_out((experiment.repeat - repetition) * jobs_of_way(experiment, way));
                }
            }
        }
        rounds = left;
    }
    Ok(judge(experiment, scheme, plan, &rounds, refused))
}

/// Why a job of a way came to nothing, in the words of who has ended it; or an error that is not about the way.
fn refusal(error: AdviceError) -> Result<String, AdviceError> {
    match error {
        AdviceError::Failed { status: REFUSES, message, .. } => Ok(message),
        AdviceError::Failed { .. } | AdviceError::Endless { .. } | AdviceError::Report { .. } => {
            Ok(error.to_string())
        }
        AdviceError::Job(_) | AdviceError::Folder(_) | AdviceError::NoLoop { .. } => Err(error),
    }
}

/// The jobs of one way in one round.
struct Order<'a> {
    plan: Plan,
    scheme: &'a str,
    way: Way,
    repetition: usize,
}

impl Order<'_> {
    fn round(&self, session: &mut Session<'_>) -> Result<Round, AdviceError> {
        let start = match session.experiment.whole {
            true => Sample::default(),
            false => sample(&self.run(session, Kind::Start)?),
        };
        let calm = sample(&self.run(session, Kind::Calm)?);
        let victim = self.repetition % session.experiment.ranks;
        let mut struck = |at| loss(&self.run(session, Kind::Struck { victim, at })?, &calm, self.plan);
        let early = if self.way == Way::Local { Some(struck(EARLY)?) } else { None };
        let late = struck(LATE)?;
        let recoveries_s = APART * late.recovery_s.unwrap_or(0.0);
        let mtbf_s = ((calm.elapsed_s - start.elapsed_s) / LOSSES).max(recoveries_s).max(SHORTEST_S);
        let random = self.run(session, Kind::Random { mtbf_s, seed: self.repetition + 1 })?;
        Ok(Round { start, calm, early, late, random: sample(&random), mtbf_s })
    }

    fn run(&self, session: &mut Session<'_>, kind: Kind) -> Result<Reported, AdviceError> {
        let options = self.plan.options(session.experiment, self.scheme, self.way, kind);
        session.run(format!("way {}", self.way.name()), &options)
    }
}

fn sample(reported: &Reported) -> Sample {
    let Reported { report, interval, .. } = reported;
    Sample {
        elapsed_s: report.elapsed_s,
        steps: interval.steps_done,
        checkpoints: report.checkpoints.committed,
        held_s: report.checkpoints.seconds_later,
        losses: report.failures.len(),
    }
}

/// What a job says of its one loss, beside a calm one.
fn loss(reported: &Reported, calm: &Sample, plan: Plan) -> Result<Loss, AdviceError> {
    let failure = reported.report.only_failure();
    let failure = failure.map_err(|why| AdviceError::Report { command: reported.name.clone(), why })?;
    Ok(Loss {
        lost_s: reported.report.elapsed_s - calm.elapsed_s,
        recovery_s: match failure.stayed() {
            0 => failure.recovery_s(),
            _ => failure.rebuilt_s(),
        },
        replay_s: failure.replay_s().filter(|_| failure.stayed() > 0),
        // Ranks that keep what they have when others are lost count what they do again as they like.
        steps: Some(failure.steps_lost).filter(|steps| *steps <= plan.steps),
        stayed: failure.stayed(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(whole: bool) -> AdviceExperiment {
        AdviceExperiment {
            ftrun: "ftrun".into(),
            command: vec![],
            whole,
            ranks: 4,
            schemes: vec![],
            seconds: 2.0,
            repeat: 3,
            mtbfs_s: vec![60.0],
            survive: 1,
            failures: vec![],
            ways: vec![Way::Global, Way::Local],
        }
    }

    #[test]
    fn whole_intervals_and_kills_between_their_ends() {
        for (seen, [steps, every, every_random, early, late]) in [
            (1, [1, 1, 1, 1, 1]),
            (3, [2, 1, 1, 2, 2]),
            (9, [8, 4, 1, 5, 8]),
            (41, [40, 20, 5, 25, 36]),
            (47, [40, 20, 5, 25, 36]),
            (400, [400, 200, 50, 250, 360]),
        ] {
            let plan = Plan::of(seen);
            assert_eq!(plan, Plan { steps, every, every_random }, "{seen}");
            assert_eq!([plan.struck(EARLY), plan.struck(LATE)], [early, late], "{seen}");
        }
        for seen in 1..1000 {
            let Plan { steps, every, every_random } = Plan::of(seen);
            assert!(steps <= seen && 5 * steps > 3 * seen && every % every_random == 0, "{seen}");
        }
    }

    #[test]
    fn commands() {
        let options = |whole, way, kind| Plan::of(41).options(&experiment(whole), "xor", way, kind).join(" ");
        let start = "--json --scheme xor -n 4 ";
        let says =
            |whole, way, kind, rest: &str| assert_eq!(options(whole, way, kind), format!("{start}{rest}"));
        says(false, Way::Global, Kind::Start, "--lines meet --every 1 --trial-steps 1");
        says(false, Way::Lines, Kind::Calm, "--lines log --every 20 --trial-steps 40");
        let struck = Kind::Struck { victim: 2, at: EARLY };
        let local = "--lines log --recovery local --every";
        says(false, Way::Local, struck, &format!("{local} 20 --trial-steps 40 --kill 2@step=25"));
        says(true, Way::Local, struck, &format!("{local} 20 --kill 0@step=25"));
        let random = Kind::Random { mtbf_s: 0.5, seed: 3 };
        let often = "--mtbf 0.5000 --seed 3 --max-restarts 1000000";
        says(false, Way::Local, random, &format!("{local} 5 --trial-steps 40 {often}"));
        says(true, Way::Local, random, &format!("{local} 5 {often}"));
        assert_eq!((jobs(&experiment(false)), jobs(&experiment(true))), (27, 21));
    }

    #[test]
    fn what_is_a_refusal() {
        let failed = |status| AdviceError::Failed { command: "c".into(), status, message: "why".into() };
        assert_eq!(refusal(failed(2)).unwrap(), "why");
        assert_eq!(refusal(failed(3)).unwrap(), "'c' ended with status 3: why");
        assert!(refusal(AdviceError::NoLoop { program: "p".into() }).is_err());
    }
}
