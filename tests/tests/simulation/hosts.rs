//! Whole hosts that are lost one after the other: redundancy is laid over those that are left, and so the next loss is survived.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ft_checkpoint::checkpointer::{ASSUMES_LAYOUT, STAYS_AS_LAID};
use ft_checkpoint::resilient::RankReport;
use ft_checkpoint::{GroupLayout, Interval, Protection};
use ft_comm::{Generation, Membership};
use ft_proto::arbiter::Event as ArbiterEvent;
use ft_proto::settings::MessageSettings;
use ft_sim::{self as sim, Blow, Config, Fault, Trigger};

use super::commit::{Outcome, Recurrence, answer, of_any_kind};
use super::{Choices, Course, checker, finds, for_all, seeds};

/// Seeds that are taken if nothing is said.
const USUAL: u64 = 240;

/// Schemes with the hosts of the ranks at the start, of which any one may be lost; the last ranks, so many, hold parity.
const JOBS: &[(&str, &[usize], usize)] = &[
    ("xor:2", &[0, 0, 1, 2], 0),
    ("neighbor:1", &[0, 0, 1, 1, 2, 2], 0),
    ("rs:2+2", &[0, 0, 1, 1, 2, 2, 3, 3], 0),
    ("xor:2", &[0, 1, 2, 3, 0, 1], 0),
    ("xor:3", &[0, 0, 1, 1, 2, 2], 2),
];

fn job(seed: u64) -> (GroupLayout, &'static [usize]) {
    let (scheme, hosts, parity) = JOBS[(seed % JOBS.len() as u64) as usize];
    let ranks = hosts.len() - parity;
    let fits = |a_group| GroupLayout::new(scheme.parse().unwrap(), ranks, a_group, Some(hosts)).ok();
    let mut layouts = (0..=parity).filter_map(fits);
    (layouts.find(|layout| layout.total_ranks() == hosts.len()).expect("it fits"), hosts)
}

/// A host is lost, and another one when some time has passed, while single ranks die; protected on these `levels` too.
fn simulate(seed: u64, levels: &[&str], bug: &'static str) -> Outcome {
    let (layout, hosts) = job(seed);
    let mut choices = Choices(seed);
    let protection = Protection::new(layout.scheme().clone(), Interval::Steps(1 + choices.below(3)));
    let levels = levels.iter().map(|level| level.parse().expect("a level")).collect();
    let protection = Protection { levels, ..of_any_kind(seed / 2, protection) };
    let count = hosts.iter().max().expect("there are ranks") + 1;
    let first = choices.below(count as u64) as usize;
    let second = (first + 1 + choices.below(count as u64 - 1) as usize) % count;
    let losses = hosts.iter().filter(|host| **host == first).count() as u32;
    let micros = |micros| Duration::from_micros(micros);
    let mut blows = vec![
        (Trigger::At(micros(choices.below(25_000))), Blow::LoseHost(first)),
        (Trigger::AfterLoss { losses, delay: micros(5_000 + choices.below(60_000)) }, Blow::LoseHost(second)),
    ];
    if choices.below(3) == 0 {
        let rank = choices.below(hosts.len() as u64) as usize;
        blows.push((Trigger::At(micros(choices.below(100_000))), Blow::Kill(vec![rank])));
    }
    let estates = if choices.below(4) == 0 { count as u32 } else { 0 };
    let mut config = Config {
        parity: hosts.len() - layout.ranks(),
        estates,
        bug,
        messages: MessageSettings { hosts: Some(hosts.to_vec()), ..MessageSettings::default() },
        ..Config::rough(seed, layout.ranks())
    };
    config.faults.explicit = blows.into_iter().map(|(trigger, blow)| Fault { trigger, blow }).collect();
    sim::run(config, |world| {
        let run = ft_checkpoint::run(world, protection.clone(), &mut Recurrence);
        run.map(|_| ()).map_err(|error| error.to_string())
    })
}

/// How what is committed lies, and whether some loss was survived that the layout of the start would not have survived.
fn laid(
    outcome: &Outcome,
    start: &GroupLayout,
    memberships: &BTreeMap<Generation, Membership>,
) -> (GroupLayout, bool) {
    let (mut layout, mut before, mut next, mut has_served) = (start.clone(), None, None, false);
    let (mut committed, mut has_committed) = (BTreeSet::new(), false);
    for event in checker::launcher(outcome) {
        match event {
            ArbiterEvent::Decided { generation, failed, .. } => {
                // Who has committed it is gone, and nobody else knows that it was.
                let is_known = committed.iter().any(|rank| !failed.contains(rank));
                layout = before.take().filter(|_| !is_known).unwrap_or(layout);
                (has_committed, committed) = (has_committed || is_known, BTreeSet::new());
                has_served |= start.survives(failed).is_err() && layout.survives(failed).is_ok();
                let hosts = memberships.get(generation).and_then(Membership::hosts);
                if !has_committed {
                    layout = layout.over(hosts.as_deref()).expect("as many");
                }
                next = hosts.and_then(|hosts| layout.relaid(&hosts));
            }
            ArbiterEvent::Marked { rank, .. } => {
                committed.insert(*rank);
                if let Some(next) = next.take() {
                    before = Some(std::mem::replace(&mut layout, next));
                }
            }
            _ => {}
        }
    }
    (layout, has_served)
}

/// The answer is right, or more was lost than is survived as the groups lay then; with whether it was of use that they were laid anew.
fn check(seed: u64, outcome: &Outcome) -> Result<(Course, bool), String> {
    let (start, _) = job(seed);
    let (layout, has_served) = laid(outcome, &start, &checker::memberships(outcome)?);
    let missing = checker::not_restored(outcome);
    match checker::status(outcome)? {
        (0, _) => check_answer(start.ranks(), outcome).map(|course| (course, has_served)),
        (3, _) if layout.survives(&missing).is_err() => Ok((Course::BeyondTolerance, false)),
        (code, message) => Err(format!("ended with {code}, {missing:?} lost: {message}")),
    }
}

fn check_answer(ranks: usize, outcome: &Outcome) -> Result<Course, String> {
    let outputs = checker::outputs(outcome).ok_or("no outputs")?;
    let outputs = outputs[..ranks].iter().map(|bytes| RankReport::read(bytes).map(|report| report.output));
    match answer(ranks).into_iter().map(Some).eq(outputs) {
        true => Ok(checker::course(outcome)),
        false => Err("a wrong answer".into()),
    }
}

#[test]
fn another_host_is_survived_once_redundancy_lies_over_those_that_are_left() {
    let (served, courses) = (Cell::new(0), [Course::Repaired, Course::BeyondTolerance]);
    for_all(seeds(USUAL), "another_host_is_survived", &courses, |seed| {
        let (course, has_served) = check(seed, &simulate(seed, &[], ""))?;
        served.set(served.get() + u64::from(has_served));
        Ok(course)
    });
    println!("{} jobs would have ended with the layout of their start", served.get());
    assert!(served.get() > 12 || (seeds(USUAL).len() as u64) < USUAL, "{} only", served.get());
}

/// Each level has a layout of its own, which a rank that was lost knows no more than that of the first. How they lie is not followed here.
#[test]
fn several_levels_are_laid_over_other_hosts() {
    let first_job = |seed: u64| seed * JOBS.len() as u64;
    let seeds = seeds(USUAL / 2).into_iter().map(first_job).collect();
    for_all(seeds, "several_levels_are_laid", &[Course::Repaired], |seed| {
        let outcome = simulate(seed, &["neighbor:2@2"], "");
        match checker::status(&outcome)? {
            (0, _) => check_answer(job(seed).0.ranks(), &outcome),
            // Whatever is committed, and however it lies, it survives one loss.
            (3, _) if checker::not_restored(&outcome).len() > 1 => Ok(Course::BeyondTolerance),
            (code, message) => Err(format!("ended with {code}: {message}")),
        }
    });
}

#[test]
fn planted_a_replacement_that_does_not_ask_how_a_checkpoint_lies_is_caught() {
    finds(ASSUMES_LAYOUT, |seed| check(seed, &simulate(seed, &[], ASSUMES_LAYOUT)).map(|(course, _)| course));
}

#[test]
fn planted_what_lies_as_it_was_is_caught() {
    finds(STAYS_AS_LAID, |seed| check(seed, &simulate(seed, &[], STAYS_AS_LAID)).map(|(course, _)| course));
}
