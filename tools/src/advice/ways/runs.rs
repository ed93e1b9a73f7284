//! The jobs of all ways, in turn.

use super::super::error::AdviceError;
use super::super::experiment::AdviceExperiment;
use super::super::job::{Reported, Shown, ordered};
use super::super::session::Session;
use super::Way;
use super::judgment::{Refused, WaysAdvice, judge};
use super::measured::{Loss, Round, Sample};

/// Intervals between checkpoints in each job: few, as much is to be done again after the kill.
const INTERVALS: u64 = 4;
/// Where the kill strikes, in intervals: late behind the second checkpoint of the steps.
const STRUCK: f64 = 2.75;
/// Losses at random that a job is to have, about.
const LOSSES: f64 = 4.0;
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
    /// All steps, and a rank is killed; the calm one took so long.
    Struck { victim: usize, calm_s: f64 },
    /// All steps, and ranks are killed at random.
    Random { mtbf_s: f64, seed: usize },
}

/// The steps of each job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) steps: u64,
    /// Steps between two checkpoints.
    pub(super) every: u64,
}

impl Plan {
    /// As long as a job that was seen, in whole intervals.
    fn of(steps: u64) -> Self {
        let every = (steps / INTERVALS).max(1);
        Self { steps: (every * INTERVALS).min(steps.max(1)), every }
    }

    /// The step in which a rank is killed.
    fn struck(self) -> u64 {
        ((STRUCK * self.every as f64).ceil() as u64).clamp(1, self.steps)
    }

    /// The options of a job.
    fn options(self, experiment: &AdviceExperiment, scheme: &str, way: Way, kind: Kind) -> Vec<String> {
        let Self { steps, every } = self;
        let end = |steps: u64| {
            if experiment.whole { String::new() } else { format!("--trial-steps {steps}") }
        };
        let rest = match kind {
            Kind::Start => format!("--every 1 {}", end(1)),
            Kind::Calm => format!("--every {every} {}", end(steps)),
            Kind::Struck { victim, calm_s } => {
                let place = match experiment.whole {
                    true => format!("time={:.4}", calm_s * STRUCK / INTERVALS as f64),
                    false => format!("step={}", self.struck()),
                };
                format!("--every {every} {} --kill {victim}@{place}", end(steps))
            }
            Kind::Random { mtbf_s, seed } => format!(
                "--every {every} {} --mtbf {mtbf_s:.4} --seed {seed} --max-restarts 1000000",
                end(steps)
            ),
        };
        ordered(experiment, scheme, &format!("{} {rest}", way.options()))
    }
}

/// Jobs of each way in a round.
fn jobs_of_way(experiment: &AdviceExperiment) -> usize {
    // What a start takes nobody can say of a program that has to go to its end.
    if experiment.whole { 3 } else { 4 }
}

/// Jobs of all ways.
pub(in super::super) fn jobs(experiment: &AdviceExperiment) -> usize {
    experiment.ways.len() * experiment.repeat * jobs_of_way(experiment)
}

/// Measures the ways under a scheme, in jobs as long as the one that has `shown` the steps of the program.
pub(in super::super) fn weigh(
    session: &mut Session<'_>,
    scheme: &str,
    shown: Shown,
) -> Result<WaysAdvice, AdviceError> {
    let experiment = session.experiment;
    let plan = Plan::of(shown.steps);
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
                    session.leave_out((experiment.repeat - repetition) * jobs_of_way(experiment));
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
        let struck = self.run(session, Kind::Struck { victim, calm_s: calm.elapsed_s })?;
        let mtbf_s = (calm.elapsed_s - start.elapsed_s).max(SHORTEST_S) / LOSSES;
        let random = self.run(session, Kind::Random { mtbf_s, seed: self.repetition + 1 })?;
        Ok(Round {
            start,
            calm,
            struck: sample(&struck),
            loss: loss(&struck)?,
            random: sample(&random),
            mtbf_s,
        })
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
        held_s: report.checkpoints.seconds,
        losses: report.failures.len(),
    }
}

fn loss(reported: &Reported) -> Result<Loss, AdviceError> {
    let failure = reported.report.only_failure();
    let failure = failure.map_err(|why| AdviceError::Report { command: reported.name.clone(), why })?;
    Ok(Loss {
        // Nothing is restored where nothing was protected yet: all of it is start.
        recovery_s: failure.rebuilt_s().or(failure.recovery_s()),
        replay_s: failure.replay_s(),
        steps: failure.steps_lost,
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
    fn whole_intervals_and_a_kill_late_in_one() {
        let all = [(1, 1, 1, 1), (3, 1, 3, 3), (4, 1, 4, 3), (41, 10, 40, 28), (400, 100, 400, 275)];
        for (seen, every, steps, struck) in all {
            let plan = Plan::of(seen);
            assert_eq!((plan, plan.struck()), (Plan { steps, every }, struck), "{seen}");
        }
    }

    #[test]
    fn commands() {
        let options = |whole, way, kind| Plan::of(41).options(&experiment(whole), "xor", way, kind).join(" ");
        let start = "--json --scheme xor -n 4 ";
        let says =
            |whole, way, kind, rest: &str| assert_eq!(options(whole, way, kind), format!("{start}{rest}"));
        says(false, Way::Global, Kind::Start, "--lines meet --every 1 --trial-steps 1");
        says(false, Way::Lines, Kind::Calm, "--lines log --every 10 --trial-steps 40");
        let struck = Kind::Struck { victim: 2, calm_s: 4.0 };
        let local = "--lines log --recovery local --every 10";
        says(false, Way::Local, struck, &format!("{local} --trial-steps 40 --kill 2@step=28"));
        says(true, Way::Local, struck, &format!("{local} --kill 2@time=2.7500"));
        let random = Kind::Random { mtbf_s: 0.5, seed: 3 };
        let often = "--mtbf 0.5000 --seed 3 --max-restarts 1000000";
        says(false, Way::Local, random, &format!("{local} --trial-steps 40 {often}"));
        says(true, Way::Local, random, &format!("{local} {often}"));
        assert_eq!((jobs(&experiment(false)), jobs(&experiment(true))), (24, 18));
    }

    #[test]
    fn what_is_a_refusal() {
        let failed = |status| AdviceError::Failed { command: "c".into(), status, message: "why".into() };
        assert_eq!(refusal(failed(2)).unwrap(), "why");
        assert_eq!(refusal(failed(3)).unwrap(), "'c' ended with status 3: why");
        assert!(refusal(AdviceError::NoLoop { program: "p".into() }).is_err());
    }
}
