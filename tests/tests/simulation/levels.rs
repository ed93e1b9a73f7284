//! Several levels of protection (`--levels`), on the full stack: what the first does not survive goes back to the first that does.

use std::cell::Cell;
use std::time::Duration;

use ft_checkpoint::checkpointer::CLAIMS_WHAT_IS_LOST;
use ft_checkpoint::resilient::RankReport;
use ft_checkpoint::{GroupLayout, Interval, Job, Level, MemoryUse, Protection, Scheme};
use ft_comm::World;
use ft_sim::{self as sim, Blow, Config, Fault, Faults, Trigger};

use super::commit::{Outcome, Recurrence, answer, cuts, of_any_kind};
use super::{Choices, Course, checker, finds_from, for_all, seeds};

/// Seeds that are taken if nothing is said: a job of several levels has more to do than others.
const USUAL: u64 = 200;

/// Schemes from the first level on, with every how many checkpoints the others are used, and the ranks.
const JOBS: &[(&[&str], usize)] = &[
    (&["neighbor:1", "rs:2+2@3"], 4),
    (&["xor:3", "rs:4+2@2"], 6),
    (&["xor", "neighbor:2@4"], 4),
    (&["xor:2", "rs:2+2@2", "neighbor:3@5"], 4),
];

fn job(seed: u64) -> (Scheme, Vec<Level>, usize) {
    let (schemes, ranks) = JOBS[(seed % JOBS.len() as u64) as usize];
    let levels = schemes[1..].iter().map(|text| text.parse().expect("a level")).collect();
    (schemes[0].parse().expect("a scheme"), levels, ranks)
}

fn simulate(seed: u64, main: impl Fn(World, Protection) -> Result<(), String> + Sync) -> Outcome {
    let (scheme, levels, ranks) = job(seed);
    let mut choices = Choices(seed);
    let interval = Interval::Steps(1 + choices.below(3));
    let protection = Protection { levels, ..of_any_kind(seed / 3, Protection::new(scheme, interval)) };
    let mut config = Config { estates: (seed / 5 % 4 / 3) as u32, ..Config::rough(seed, ranks) };
    config.faults = Faults {
        cuts: cuts(seed),
        together_max: 1 + choices.below(3) as usize,
        ..Faults::kills(1 + choices.below(4) as u32, Duration::from_millis(40))
    };
    sim::run(config, |world| main(world, protection.clone()))
}

/// The job has ended well, or none of its levels survives what was lost at last.
fn check_end(seed: u64, outcome: &Outcome) -> Result<Course, String> {
    let (scheme, levels, ranks) = job(seed);
    checker::memberships(outcome)?;
    let missing = checker::not_restored(outcome);
    let survives =
        |scheme: Scheme| GroupLayout::new(scheme, ranks, 0, None).unwrap().survives(&missing).is_ok();
    let (code, message) = checker::status(outcome)?;
    match code {
        0 => Ok(checker::course(outcome)),
        3 if !std::iter::once(scheme).chain(levels.into_iter().map(|level| level.scheme)).any(survives) => {
            Ok(Course::BeyondTolerance)
        }
        _ => Err(format!("ended with {code}, {missing:?} lost: {message}")),
    }
}

/// The course of a job, and how many restores came from any level, the second and the third.
fn run(seed: u64) -> Result<(Course, [u32; 3]), String> {
    let outcome = simulate(seed, |world, protection| {
        let run = ft_checkpoint::run(world, protection, &mut Recurrence);
        run.map(|_| ()).map_err(|error| error.to_string())
    });
    let course = check_end(seed, &outcome)?;
    let (Course::Undisturbed | Course::Repaired) = course else { return Ok((course, [0; 3])) };
    let outputs = checker::outputs(&outcome).ok_or("no outputs")?;
    let reports: Option<Vec<RankReport>> = outputs.iter().map(|bytes| RankReport::read(bytes)).collect();
    let (reports, ranks) = (reports.ok_or("no report")?, job(seed).2);
    if let Some(rank) = (0..ranks).find(|rank| reports[*rank].output != answer(ranks)[*rank]) {
        return Err(format!("rank {rank} has a wrong answer"));
    }
    let most = |of: &dyn Fn(&RankReport) -> u32| reports.iter().map(of).max().unwrap_or(0);
    let of_level =
        |level: usize| most(&|report| report.stats.levels.get(level).map_or(0, |level| level.restores));
    Ok((course, [most(&|report| report.stats.restores.len() as u32), of_level(0), of_level(1)]))
}

#[test]
fn the_first_level_that_survives_it_serves() {
    let restores = Cell::new([0; 3]);
    for_all(seeds(USUAL), "the_first_level_that", &[Course::Undisturbed, Course::Repaired], |seed| {
        let (course, more) = run(seed)?;
        let mut sums = restores.get();
        sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        restores.set(sums);
        Ok(course)
    });
    let [all, second, third] = restores.get();
    println!("{all} restores, {second} of them from the second level, {third} from the third");
    // One seed alone may have none.
    assert!(second > 5 && third > 0 || (seeds(USUAL).len() as u64) < USUAL, "{second}, {third}");
}

/// A second loss comes while the strong level is made whole after the first; it survives both together.
fn lost_again(seed: u64, bug: &'static str) -> Result<Course, String> {
    let is_anywhere = seed % 2 == 1;
    let protection = Protection {
        levels: vec!["rs:2+3@2".parse().unwrap()],
        memory_use: if is_anywhere { MemoryUse::Least } else { MemoryUse::Fast },
        ..Protection::new("neighbor:1".parse().unwrap(), Interval::Steps(2))
    };
    let delay = Duration::from_micros(200 + 37 * (seed % 400));
    let second = Fault { trigger: Trigger::AfterLoss { losses: 1, delay }, blow: Blow::Kill(vec![0, 1]) };
    let mut config = Config { bug, ..Config::rough(seed, 5) };
    config.faults.explicit = vec![second];
    if is_anywhere {
        let at = Duration::from_micros(4_000 + Choices(seed).below(16_000));
        config.faults.explicit.push(Fault { trigger: Trigger::At(at), blow: Blow::Kill(vec![3]) });
    } else {
        config.kills = vec!["3@step=7".parse().unwrap()];
    }
    let outcome = sim::run(config, |world| {
        let run = ft_checkpoint::run(world, protection.clone(), &mut Recurrence);
        run.map(|_| ()).map_err(|error| error.to_string())
    });
    match checker::status(&outcome)? {
        (0, _) => {}
        (code, message) => return Err(format!("ended with {code}: {message}")),
    }
    let outputs = checker::outputs(&outcome).ok_or("no outputs")?;
    let outputs = outputs[..5].iter().map(|bytes| RankReport::read(bytes).map(|report| report.output));
    match answer(5).into_iter().map(Some).eq(outputs) {
        true => Ok(checker::course(&outcome)),
        false => Err("a wrong answer".into()),
    }
}

#[test]
fn a_loss_while_the_strong_level_is_made_whole_is_survived() {
    for_all(seeds(USUAL), "a_loss_while_the_strong", &[Course::Repaired], |seed| lost_again(seed, ""));
}

#[test]
fn planted_a_rank_that_claims_what_is_lost_is_caught() {
    finds_from(190, CLAIMS_WHAT_IS_LOST, |seed| lost_again(seed, CLAIMS_WHAT_IS_LOST));
}

/// Two protected runs, with something between them: no level goes back behind the end of the first.
#[test]
fn several_runs_on_several_levels() {
    for_all(seeds(USUAL), "several_runs_on", &[Course::Undisturbed, Course::Repaired], |seed| {
        let outcome = simulate(seed, |world, protection| {
            let said = |error: &dyn std::fmt::Display| error.to_string();
            let Some(mut job) = Job::start(world, protection).map_err(|error| said(&error))? else {
                return Ok(());
            };
            let (rank, size) = (job.rank(), job.size());
            for _ in 0..2 {
                let bytes = job.run(&mut Recurrence, |state| state.bytes()).map_err(|error| said(&error))?;
                if bytes != answer(size)[rank] {
                    return Err("WRONG".into());
                }
                job.once(|world| world.comm().barrier()).map_err(|error| said(&error))?;
            }
            job.finish().map_err(|error| said(&error))
        });
        let course = check_end(seed, &outcome)?;
        match (0..job(seed).2).find(|rank| outcome.result(*rank) == Some(&Err("WRONG".into()))) {
            Some(rank) => Err(format!("rank {rank} has a wrong answer")),
            None => Ok(course),
        }
    });
}
