//! What the measurements mean: what longer runs are to expect, and which scheme is to be recommended.

use ft_checkpoint::interval::Costs;
use serde::Serialize;

use super::combinations::{LevelAdvice, Measured, is_close, weigh};
use super::experiment::{AdviceExperiment, is_disk, losses_survived};
use super::job::Seen;
use super::ways::WaysAdvice;
use crate::recovery::{Spread, percent, span};

/// What one scheme costs this program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// Its name.
    pub scheme: String,
    /// Losses at once that it survives wherever they strike.
    pub survives: usize,
    /// Bytes of memory that a rank needs beside its state, copies of the own state included.
    pub extra_bytes: f64,
    /// Seconds that the program was held for a checkpoint.
    pub checkpoint_s: Spread,
    /// Seconds from the death of a rank to the resumption.
    pub recovery_s: Spread,
    /// What to expect, by mean time between failures.
    pub outlook: Vec<Outlook>,
}

/// What the model says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outlook {
    /// Mean time between failures of the job.
    pub mtbf_s: f64,
    /// The best interval between checkpoints in seconds of work; a step at least.
    pub interval_s: f64,
    /// The same in steps.
    pub steps: u64,
    /// Time beyond the work, as a share of the work.
    pub overhead: f64,
}

/// Everything that was measured, and what follows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The program and its arguments.
    pub program: String,
    /// Ranks of each job.
    pub ranks: usize,
    /// Steps that were measured, each time.
    pub steps: u64,
    /// Seconds of a step without protection.
    pub step_s: f64,
    /// Bytes of protected state of a rank, on average.
    pub state_bytes: f64,
    /// Bytes of memory that a rank needs beside its state without protection: a copy to go back to.
    pub unprotected_bytes: f64,
    /// Losses at once that are to be survived.
    pub survive: usize,
    /// By scheme, as they were ordered.
    pub candidates: Vec<Candidate>,
    /// The scheme to use, if one will do.
    pub recommended: Option<String>,
    /// Why, in a sentence.
    pub reason: String,
    /// The command that does it.
    pub command: Option<String>,
    /// Several levels of protection, if kinds of failures were named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub levels: Option<LevelAdvice>,
    /// The ways to go back, if they were asked for and a scheme will do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ways: Option<WaysAdvice>,
}

/// Puts all together: `steps` is a run without protection, `seen` has the runs of each scheme.
pub(crate) fn judge(experiment: &AdviceExperiment, steps: &Seen, seen: &[Vec<Seen>]) -> Advice {
    let ranks = experiment.ranks as f64;
    let candidates: Vec<Candidate> = (experiment.schemes.iter().zip(seen))
        .map(|(scheme, runs)| Candidate::of(scheme, runs, steps.step_s, experiment))
        .collect();
    let program = experiment.program();
    let best = recommend(&candidates, experiment.survive);
    let reason = reason(&candidates, best, experiment);
    let command = best.map(|best| {
        format!("ftrun -n {} --scheme {} --interval auto {program}", experiment.ranks, best.scheme)
    });
    Advice {
        ranks: experiment.ranks,
        steps: steps.steps,
        step_s: steps.step_s,
        state_bytes: steps.state_bytes as f64 / ranks,
        unprotected_bytes: steps.kept_bytes as f64 / ranks,
        survive: experiment.survive,
        recommended: best.map(|best| best.scheme.clone()),
        reason,
        command,
        program,
        levels: (!experiment.failures.is_empty()).then(|| levels(&candidates, experiment, steps.step_s)),
        candidates,
        ways: None,
    }
}

fn levels(candidates: &[Candidate], experiment: &AdviceExperiment, step_s: f64) -> LevelAdvice {
    let measured = |candidate: &Candidate| Measured {
        scheme: candidate.scheme.clone(),
        checkpoint_s: candidate.checkpoint_s.median,
        recovery_s: candidate.recovery_s.median,
    };
    let measured: Vec<Measured> = candidates.iter().map(measured).collect();
    weigh(&measured, experiment, step_s)
}

impl Candidate {
    /// What `runs` with a scheme say of a program whose steps take `step_s`.
    fn of(scheme: &str, runs: &[Seen], step_s: f64, experiment: &AdviceExperiment) -> Self {
        let checkpoint_s = Spread::of(runs.iter().map(|run| run.checkpoint_s));
        let recovery_s = Spread::of(runs.iter().filter_map(|run| run.recovery_s));
        let costs = Costs { checkpoint_s: checkpoint_s.median, recovery_s: recovery_s.median };
        let kept = runs.iter().map(|run| run.kept_bytes).max().unwrap_or(0);
        Self {
            scheme: scheme.to_owned(),
            survives: losses_survived(scheme, experiment.ranks).unwrap_or(0),
            extra_bytes: kept as f64 / experiment.ranks as f64,
            checkpoint_s,
            recovery_s,
            outlook: experiment.mtbfs_s.iter().map(|mtbf_s| outlook(&costs, *mtbf_s, step_s)).collect(),
        }
    }
}

fn outlook(costs: &Costs, mtbf_s: f64, step_s: f64) -> Outlook {
    let steps = match step_s > 0.0 {
        true => (costs.daly_s(mtbf_s) / step_s).round().max(1.0),
        false => 1.0,
    };
    let interval_s = if step_s > 0.0 { steps * step_s } else { costs.daly_s(mtbf_s) };
    let overhead = 1.0 / costs.efficiency(mtbf_s, interval_s) - 1.0;
    // No number stands for work that never ends.
    Outlook { mtbf_s, interval_s, steps: steps as u64, overhead: overhead.min(f64::MAX) }
}

/// The cheapest in memory that survives enough where failures are most frequent; of those that are as cheap, the one with the
/// least memory.
fn recommend(candidates: &[Candidate], survive: usize) -> Option<&Candidate> {
    let fit = || candidates.iter().filter(|c| c.survives >= survive && !is_disk(&c.scheme));
    let least = fit().map(overhead).min_by(f64::total_cmp)?;
    let close = fit().filter(|c| is_close(overhead(c), least));
    close.min_by(|one, other| {
        let by_memory = one.extra_bytes.total_cmp(&other.extra_bytes);
        by_memory.then(overhead(one).total_cmp(&overhead(other)))
    })
}

/// At the shortest mean time between failures.
fn overhead(candidate: &Candidate) -> f64 {
    candidate.outlook.first().map_or(0.0, |outlook| outlook.overhead)
}

fn reason(candidates: &[Candidate], best: Option<&Candidate>, experiment: &AdviceExperiment) -> String {
    let AdviceExperiment { survive, ranks, .. } = experiment;
    let losses =
        |count: usize| if count == 1 { "1 loss".to_owned() } else { format!("{count} losses at once") };
    let Some(best) = best else {
        return format!(
            "None of these schemes survives {} in the memory of {ranks} ranks: use more ranks, or name others by --schemes.",
            losses(*survive)
        );
    };
    let mtbf = best.outlook.first().map_or(String::new(), |outlook| span(outlook.mtbf_s));
    let shown = |candidate: &Candidate| percent(overhead(candidate));
    let rivals = candidates.iter().filter(|c| c.survives >= *survive && !is_disk(&c.scheme) && *c != best);
    let next = rivals.min_by(|one, other| overhead(one).total_cmp(&overhead(other)));
    let why = match next {
        None => format!("the only one of them that does; it costs {} at an MTBF of {mtbf}", shown(best)),
        Some(next) if overhead(next) <= overhead(best) => format!(
            "at an MTBF of {mtbf} it costs {}, hardly more than {} with {}, and takes less memory",
            shown(best),
            shown(next),
            next.scheme
        ),
        Some(next) => format!(
            "at an MTBF of {mtbf} it costs {}, the next best, {}, {}",
            shown(best),
            next.scheme,
            shown(next)
        ),
    };
    format!("{} survives {}: {why}.", best.scheme, losses(best.survives))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn seen(checkpoint_s: f64, kept_bytes: u64) -> Seen {
        let recovery_s = Some(0.05);
        Seen { steps: 40, step_s: 0.05, checkpoint_s, recovery_s, state_bytes: 4 * MIB, kept_bytes }
    }

    fn experiment(survive: usize) -> AdviceExperiment {
        AdviceExperiment {
            ftrun: "ftrun".into(),
            command: vec!["cg".into(), "--poisson".into(), "64".into()],
            whole: false,
            ranks: 4,
            schemes: ["neighbor:1", "xor", "rs:2+2", "disk"].map(str::to_owned).into(),
            seconds: 2.0,
            repeat: 3,
            mtbfs_s: vec![60.0, 3600.0],
            survive,
            failures: vec![],
            ways: vec![],
        }
    }

    fn judged(survive: usize, checkpoints_s: [f64; 4]) -> Advice {
        let kept = [12 * MIB, 10 * MIB, 16 * MIB, 8 * MIB];
        let runs: Vec<Vec<Seen>> = checkpoints_s
            .iter()
            .zip(kept)
            .map(|(one, kept)| vec![seen(9.0, kept), seen(*one, kept), seen(0.0, kept)])
            .collect();
        judge(&experiment(survive), &seen(0.0, 0), &runs)
    }

    #[test]
    fn what_to_expect_is_what_the_model_says() {
        let advice = judged(1, [0.02, 0.03, 0.04, 0.001]);
        let xor = &advice.candidates[1];
        assert_eq!((xor.survives, xor.extra_bytes, xor.checkpoint_s.median), (1, 2.5 * MIB as f64, 0.03));
        let costs = Costs { checkpoint_s: 0.03, recovery_s: 0.05 };
        let Outlook { interval_s, steps, overhead, .. } = xor.outlook[0];
        // 1.88 s of steps of 0.05 s.
        assert_eq!((steps, interval_s), (38, 38.0 * 0.05));
        assert_eq!(overhead, 1.0 / costs.efficiency(60.0, interval_s) - 1.0);
        assert!(xor.outlook[1].overhead < overhead);
        assert_eq!(advice.state_bytes, MIB as f64);
    }

    #[test]
    fn the_cheapest_that_survives_enough() {
        let cheapest = judged(1, [0.01, 0.04, 0.05, 0.001]);
        assert_eq!(cheapest.recommended.as_deref(), Some("neighbor:1"));
        assert!(cheapest.reason.contains("the next best, xor,"), "{}", cheapest.reason);
        let expected = "ftrun -n 4 --scheme neighbor:1 --interval auto cg --poisson 64";
        assert_eq!(cheapest.command.as_deref(), Some(expected));

        let close = judged(1, [0.030, 0.031, 0.05, 0.001]);
        assert_eq!(close.recommended.as_deref(), Some("xor"));
        assert!(close.reason.contains("less memory"), "{}", close.reason);

        let two = judged(2, [0.01, 0.02, 0.5, 0.001]);
        assert_eq!(two.recommended.as_deref(), Some("rs:2+2"));
        assert!(two.reason.contains("2 losses at once") && two.reason.contains("only"), "{}", two.reason);

        let three = judged(3, [0.01, 0.02, 0.5, 0.001]);
        assert_eq!((three.recommended, three.command), (None, None));
        assert!(three.reason.contains("survives 3 losses at once in the memory of 4 ranks"));
    }

    #[test]
    fn an_interval_is_a_step_at_least() {
        let costs = Costs { checkpoint_s: 1e-6, recovery_s: 0.0 };
        let outlook = outlook(&costs, 60.0, 30.0);
        assert_eq!((outlook.steps, outlook.interval_s), (1, 30.0));
        assert!(outlook.overhead > 0.2, "{outlook:?}");
        let hopeless = super::outlook(&Costs { checkpoint_s: 1e6, recovery_s: 1e6 }, 1.0, 0.1);
        assert!(hopeless.overhead.is_finite());
    }
}
