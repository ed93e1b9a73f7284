//! Several schemes together, each a level of protection: which combinations there are for the kinds of failures that are expected, what
//! each of them costs with the best intervals, and which one is to be recommended.

use serde::Serialize;

use super::experiment::{AdviceExperiment, is_disk};
use super::failures::{FailureKind, Losses, survived};
use super::levels::{self, Level};
use super::times;
use crate::recovery::{FRESH_DISK, NO_BREAK};

/// The level of files behind those in memory.
const FILES: &str = "spill";
/// Overheads that are so close, as a ratio and as a share of the work, are taken for equal: runs spread more than that.
const CLOSE: (f64, f64) = (1.25, 0.001);

/// Whether an overhead is hardly more than the least one.
pub(super) fn is_close(overhead: f64, least: f64) -> bool {
    overhead <= (least * CLOSE.0).max(least + CLOSE.1)
}

/// What a measured scheme costs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measured {
    /// Its name.
    pub(super) scheme: String,
    /// Seconds that the program was held for a checkpoint.
    pub(super) checkpoint_s: f64,
    /// Seconds from the death of a rank to the resumption.
    pub(super) recovery_s: f64,
}

/// One level of a combination.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlannedLevel {
    /// The scheme that was measured for it.
    pub scheme: String,
    /// It takes a checkpoint at every so-many-th of the first level.
    pub every: u64,
    /// Seconds of work between two of them.
    pub interval_s: f64,
}

/// Levels that survive all kinds of failures together, with their best intervals.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Combination {
    /// From the cheapest to the one that survives the most.
    pub levels: Vec<PlannedLevel>,
    /// Time beyond the work, as a share of the work.
    pub overhead: f64,
    /// The options of `ftrun` that ask for it.
    pub options: String,
}

/// What the kinds of failures ask for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelAdvice {
    /// The kinds, from the smallest.
    pub failures: Vec<FailureKind>,
    /// All combinations that come to an end, the least overhead first.
    pub combinations: Vec<Combination>,
    /// The combination to use, if there is one: the one with the fewest levels of those that cost hardly more than the best.
    pub recommended: Option<Combination>,
    /// Why, in a sentence.
    pub reason: String,
    /// The command that does it.
    pub command: Option<String>,
}

/// Combines schemes for the kinds of failures of an order, of a program with steps of `step_s`.
pub(super) fn weigh(measured: &[Measured], experiment: &AdviceExperiment, step_s: f64) -> LevelAdvice {
    let ranks = experiment.ranks;
    let mut failures = experiment.failures.clone();
    failures.sort_by_key(|kind| kind.losses);
    let survives = |measured: &Measured| survived(&measured.scheme, ranks);
    let rungs: Vec<Rung<'_>> =
        measured.iter().map(|measured| Rung { survives: survives(measured), measured }).collect();
    let mut chains = Vec::new();
    extend(&mut Vec::new(), &failures, &rungs, &mut chains);
    let mut combinations: Vec<Combination> =
        chains.iter().filter_map(|chain| Combination::of(chain, &failures, step_s)).collect();
    combinations.sort_by(|one, other| {
        one.overhead.total_cmp(&other.overhead).then(one.levels.len().cmp(&other.levels.len()))
    });
    let recommended = recommend(&combinations).cloned();
    let program = experiment.program();
    let command = recommended.as_ref().map(|best| format!("ftrun -n {ranks} {} {program}", best.options));
    let reason = reason(&combinations, recommended.as_ref());
    LevelAdvice { failures, combinations, recommended, reason, command }
}

/// A scheme and what it survives.
#[derive(Clone, Copy, Debug)]
struct Rung<'a> {
    survives: Losses,
    measured: &'a Measured,
}

/// Adds to `chains` every way to go on from `chain` that survives the kinds that are left. Each level is the first to survive some kind:
/// one that is not would cost and never be needed.
fn extend<'a>(
    chain: &mut Vec<Rung<'a>>,
    left: &[FailureKind],
    rungs: &[Rung<'a>],
    chains: &mut Vec<Vec<Rung<'a>>>,
) {
    let Some(next) = left.first() else { return chains.push(chain.clone()) };
    for rung in rungs.iter().filter(|rung| rung.survives >= next.losses) {
        let survived = left.iter().take_while(|kind| kind.losses <= rung.survives).count();
        chain.push(*rung);
        extend(chain, &left[survived..], rungs, chains);
        chain.pop();
    }
}

impl Combination {
    /// With the best intervals; none if the work would never end.
    fn of(chain: &[Rung<'_>], failures: &[FailureKind], step_s: f64) -> Option<Self> {
        let mut left = failures;
        let level = |rung: &Rung<'_>| {
            let count = left.iter().take_while(|kind| kind.losses <= rung.survives).count();
            let (own, rest) = left.split_at(count);
            left = rest;
            let Measured { checkpoint_s, recovery_s, .. } = *rung.measured;
            let failures_per_s = own.iter().map(|kind| 1.0 / kind.mtbf_s).sum();
            Level { checkpoint_s, recovery_s, failures_per_s }
        };
        let all: Vec<Level> = chain.iter().map(level).collect();
        let plan = levels::best(&all, step_s)?;
        let planned = |(rung, every): (&Rung<'_>, &u64)| PlannedLevel {
            scheme: rung.measured.scheme.clone(),
            every: *every,
            interval_s: *every as f64 * plan.interval_s,
        };
        let levels: Vec<PlannedLevel> = chain.iter().zip(&plan.every).map(planned).collect();
        // No number stands for work that never ends.
        Some(Self { options: options(&levels), levels, overhead: plan.overhead().min(f64::MAX) })
    }

    /// As `--levels` takes them.
    pub(super) fn list(&self) -> String {
        list(&self.levels)
    }

    /// Their names, without intervals.
    fn schemes(&self) -> String {
        names(&self.levels).collect::<Vec<_>>().join(", ")
    }
}

/// As `--levels` calls them: files are written behind the computation if there is something in memory to go on from.
fn names(levels: &[PlannedLevel]) -> impl Iterator<Item = &str> {
    levels
        .iter()
        .enumerate()
        .map(|(at, level)| if at > 0 && is_disk(&level.scheme) { FILES } else { &level.scheme })
}

fn list(levels: &[PlannedLevel]) -> String {
    let every: Vec<u64> = levels.iter().map(|level| level.every).collect();
    let first_s = levels.first().map_or(0.0, |level| level.interval_s);
    let words = names(levels).zip(times::intervals(first_s, &every));
    words.map(|(name, interval)| format!("{name}@{interval}")).collect::<Vec<_>>().join(",")
}

fn options(levels: &[PlannedLevel]) -> String {
    // A folder that was fresh is gone.
    let folder = |scheme: &str| scheme.split_once(':').map_or("DIR", |(_, folder)| folder).to_owned();
    match levels {
        [PlannedLevel { scheme, interval_s, .. }] => {
            let scheme = if scheme == FRESH_DISK { "disk:DIR" } else { scheme };
            format!("--scheme {scheme} --interval {}", times::seconds(*interval_s))
        }
        [.., last] if is_disk(&last.scheme) => {
            format!("--levels {} --spill {}", list(levels), folder(&last.scheme))
        }
        _ => format!("--levels {}", list(levels)),
    }
}

/// The one with the fewest levels of those that are hardly dearer than the cheapest, and the cheapest of those.
fn recommend(sorted: &[Combination]) -> Option<&Combination> {
    let least = sorted.first()?.overhead;
    // The first of those with as many levels is the cheapest.
    sorted.iter().filter(|one| is_close(one.overhead, least)).min_by_key(|one| one.levels.len())
}

fn reason(sorted: &[Combination], recommended: Option<&Combination>) -> String {
    let (Some(best), Some(cheapest)) = (recommended, sorted.first()) else {
        return "With none of these schemes would the program come to its end under such failures: checkpoints or recoveries \
                take too long for them."
            .to_owned();
    };
    let with = |combination: &Combination| format!("{} with", hundredths(combination.overhead));
    let start = match best.levels.len() {
        1 => format!("A single level is best: {} {}", with(best), best.schemes()),
        several => format!("{several} levels are best: {} {}", with(best), best.schemes()),
    };
    if best != cheapest {
        return format!("{start}, hardly more than {} {}.", with(cheapest), cheapest.schemes());
    }
    let is_single = |combination: &Combination| combination.levels.len() == 1;
    let other = sorted.iter().find(|other| is_single(other) != is_single(best));
    match other {
        Some(other) if is_single(other) => {
            format!("{start}; {} the best single one, {}.", with(other), other.schemes())
        }
        Some(other) => format!("{start}; {} the best of several, {}.", with(other), other.schemes()),
        None => format!("{start}."),
    }
}

/// A share as per cent with two digits behind the point.
pub(super) fn hundredths(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 1000.0 { format!("{percent:.2}{NO_BREAK}%") } else { format!("> 1000{NO_BREAK}%") }
}

#[cfg(test)]
mod tests;
