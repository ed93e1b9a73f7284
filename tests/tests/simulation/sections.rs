//! Several protected runs in one job: a replacement gets the results of those that have ended, and joins the others where they are.

use std::time::Duration;

use ft_checkpoint::checkpointer::{DROPS_OLD_EARLY, KEEPS_OLD_LAYOUT};
use ft_checkpoint::{Flow, Interval, Job, MemoryUse, Program, Protect, Protection};
use ft_comm::{CommError, OnFailure, Op, World};
use ft_sim::{self as sim, Blow, Config, Ending, Fault, Faults, Trigger};

use super::commit::{Outcome, Recurrence, answer, check_end, cuts, cuts_forever, job, of_any_kind};
use super::{Choices, Course, finds_from, for_seeds};

/// Short runs after one another.
const LOOP: u64 = 4;

/// A run of a few steps with a state of its own kind; its length depends on its start.
struct Chain {
    start: u64,
}

#[derive(Default, Protect)]
struct Links {
    #[protect(constant)]
    salt: Vec<u64>,
    value: u64,
}

impl Links {
    fn new(start: u64, rank: usize) -> Self {
        let salt: Vec<u64> = (0..(start + rank as u64) % 9).map(|at| start.rotate_left(at as u32)).collect();
        Self { value: start ^ rank as u64, salt }
    }

    fn advance(&mut self, sum: u64) {
        self.value = self.salt.iter().fold(self.value.wrapping_add(sum), |value, salt| {
            value.wrapping_mul(6_364_136_223_846_793_005).rotate_left(17) ^ salt
        });
    }
}

fn steps(start: u64) -> u64 {
    1 + start % 5
}

impl Program for Chain {
    type State = Links;
    type Error = CommError;

    fn init(&mut self, world: &World) -> Result<Links, CommError> {
        world.comm().barrier()?;
        Ok(Links::new(self.start, world.rank()))
    }

    fn step(&mut self, links: &mut Links, world: &World, number: u64) -> Result<Flow, CommError> {
        let mut sum = [std::mem::take(&mut links.value)];
        let own = sum[0];
        world.comm().allreduce(&mut sum, Op::Sum)?;
        links.value = own;
        links.advance(sum[0]);
        Ok(if number >= steps(self.start) { Flow::Done } else { Flow::Continue })
    }
}

/// What a chain gives all ranks, without any message; they have agreed on its start.
fn chain(start: u64, ranks: usize) -> Vec<u64> {
    let mut all: Vec<Links> = (0..ranks).map(|rank| Links::new(start, rank)).collect();
    for _ in 0..steps(start) {
        let sum = all.iter().fold(0u64, |sum, links| sum.wrapping_add(links.value));
        all.iter_mut().for_each(|links| links.advance(sum));
    }
    all.into_iter().map(|links| links.value).collect()
}

/// Agrees on the start of the next chain, for the first time or a later one.
fn agree(job: &mut Job, own: u64, time: u64) -> Result<u64, String> {
    let agreed = job.once(|world| -> Result<u64, CommError> {
        world.fault_point("agree", time, None)?;
        let mut all = [own];
        world.comm().allreduce(&mut all, Op::Max)?;
        Ok(all[0])
    });
    agreed.map_err(|error| error.to_string())
}

/// `main` of the job: two runs of different kinds, a loop, and an end of either kind.
fn main_of(world: World, protection: Protection, ends_with_run: bool) -> Result<(), String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let Some(mut job) = Job::start(world, protection).map_err(|error| text(&error))? else { return Ok(()) };
    let (rank, ranks) = (job.rank(), job.size());
    let mut wrong = vec![];
    let first = job.run(&mut Recurrence, |numbers| numbers.bytes()).map_err(|error| text(&error))?;
    if first != answer(ranks)[rank] {
        wrong.push("the first run".to_owned());
    }
    let mut start = agree(&mut job, first.iter().map(|byte| u64::from(*byte)).sum(), 1)?;
    for number in 0..LOOP {
        let own = job.run(&mut Chain { start }, |links| links.value).map_err(|error| text(&error))?;
        let due = chain(start, ranks);
        if own != due[rank] {
            wrong.push(format!("chain {number}"));
        }
        start = agree(&mut job, own, 2 + number)?;
        if Some(start) != due.into_iter().max() {
            wrong.push(format!("what is agreed after chain {number}"));
        }
    }
    if ends_with_run {
        let last = job.last(&mut Chain { start }).map_err(|error| text(&error))?;
        if last.value != chain(start, ranks)[rank] {
            wrong.push("the last run".into());
        }
    } else {
        job.finish().map_err(|error| text(&error))?;
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("WRONG: {}", wrong.join(", "))) }
}

fn simulate(seed: u64, bug: &'static str) -> Outcome {
    let (scheme, ranks, parity) = job(seed);
    let mut choices = Choices(seed ^ 0x5ec7);
    let interval = match choices.below(4) {
        0 => Interval::Seconds(0.002),
        1 => Interval::Auto { mtbf: None },
        _ => Interval::Steps(1 + choices.below(4)),
    };
    let protection = of_any_kind(seed, Protection::new(scheme, interval));
    let mut config = Config { parity, bug, ..Config::rough(seed, ranks) };
    config.faults = Faults {
        cuts: cuts(seed),
        cuts_forever: cuts_forever(seed),
        together_max: 1 + choices.below(3) as usize,
        ..Faults::kills(1 + choices.below(6) as u32, Duration::from_millis(120))
    };
    let ends_with_run = choices.below(2) == 0;
    sim::run(config, |world| main_of(world, protection.clone(), ends_with_run))
}

fn check(seed: u64, outcome: &Outcome) -> Result<Course, String> {
    let wrong = |finished: &sim::Finished<Result<(), String>>| match &finished.result {
        Ok(Err(text)) if text.starts_with("WRONG") => Some(format!("rank {}: {text}", finished.rank)),
        _ => None,
    };
    match outcome.finished.iter().find_map(wrong) {
        Some(wrong) => Err(wrong),
        None => check_end(seed, outcome),
    }
}

#[test]
fn results_of_sections_outlive_any_rank() {
    let courses = [Course::Undisturbed, Course::Repaired, Course::BeyondTolerance];
    for_seeds("results_of_sections_outlive_any_rank", &courses, |seed| check(seed, &simulate(seed, "")));
}

#[test]
fn planted_a_rank_that_stays_with_the_section_before_is_caught() {
    finds_from(120, KEEPS_OLD_LAYOUT, |seed| check(seed, &simulate(seed, KEEPS_OLD_LAYOUT)));
}

/// Rank 3 and perhaps others have committed the end of the first run when it dies; the next that dies may be the last who has, in
/// the middle of the restore.
fn simulate_two_deaths(seed: u64, bug: &'static str) -> Outcome {
    let delay = Duration::from_micros(100 + 37 * (seed % 400));
    let second = Fault {
        trigger: Trigger::AfterLoss { losses: 1, delay },
        blow: Blow::Kill(vec![(seed / 400) as usize % 3]),
    };
    let kills = vec!["3@at=agree:1".parse().expect("a kill")];
    let mut config = Config { kills, bug, ..Config::rough(seed, 5) };
    config.faults.explicit = vec![second];
    let protection = Protection::new("neighbor:2".parse().expect("a scheme"), Interval::Steps(2));
    sim::run(config, |world| main_of(world, protection.clone(), false))
}

fn check_two_deaths(outcome: &Outcome) -> Result<Course, String> {
    // Scheme and ranks are those of the jobs of this seed.
    match check(4, outcome)? {
        Course::BeyondTolerance => Err("two losses are within the tolerance".into()),
        course => Ok(course),
    }
}

#[test]
fn the_end_of_a_section_that_dies_with_its_ranks_is_given_up() {
    for_seeds("the_end_of_a_section_that_dies", &[Course::Repaired], |seed| {
        check_two_deaths(&simulate_two_deaths(seed, ""))
    });
}

#[test]
fn planted_a_rank_that_gives_up_the_section_before_too_early_is_caught() {
    finds_from(420, DROPS_OLD_EARLY, |seed| check_two_deaths(&simulate_two_deaths(seed, DROPS_OLD_EARLY)));
}

fn calm(kills: &[&str], on_failure: OnFailure, main: impl Fn(World) -> Result<(), String> + Sync) -> Outcome {
    let kills = kills.iter().map(|kill| kill.parse().expect("a kill")).collect();
    sim::run(Config { kills, on_failure, ..Config::calm(3) }, main)
}

fn protection() -> Protection {
    Protection::new("xor".parse().expect("a scheme"), Interval::Steps(2))
}

/// The first run has checkpoints 1 to 7, its end is 8, what is agreed then is 9, and the first chain begins with 10.
#[test]
fn a_kill_in_any_phase_around_the_end_of_a_section() {
    for rank in 0..3 {
        for epoch in 8..=13 {
            for phase in ["copy", "encode", "exchange", "vote"] {
                let kill = format!("{rank}@checkpoint={epoch}/{phase}");
                let memory_use = if (rank + epoch) % 2 == 0 { MemoryUse::Least } else { MemoryUse::Fast };
                let protection = Protection { memory_use, ..protection() };
                let main = |world| main_of(world, protection.clone(), false);
                let outcome = calm(&[&kill], OnFailure::Rebuild, main);
                assert!(outcome.unfired.is_empty(), "{kill}");
                assert_eq!(outcome.ending, Ending::Ended { code: 0, message: String::new() }, "{kill}");
                for rank in 0..3 {
                    assert_eq!(outcome.result(rank), Some(&Ok(())), "{kill}");
                }
            }
        }
    }
}

/// A process that comes back finds another `main` than the others have.
#[test]
fn other_sections_than_those_of_the_others_end_the_job() {
    let main = |world: World| {
        let is_new = world.is_replacement();
        let Some(mut job) = Job::start(world, protection()).map_err(|error| error.to_string())? else {
            return Ok(());
        };
        if is_new {
            return job.finish().map_err(|error| error.to_string());
        }
        let run = job.run(&mut Chain { start: 4 }, |links| links.value);
        run.map_err(|error| error.to_string())?;
        job.finish().map_err(|error| error.to_string())
    };
    let outcome = calm(&["1@step=4"], OnFailure::Rebuild, main);
    let Ending::Ended { code: 1, message } = &outcome.ending else { panic!("{:?}", outcome.ending) };
    assert!(message.contains("the same runs in the same order"), "{message}");
}

/// A call between two runs goes well as long as nobody has to come to it alone.
#[test]
fn collective_calls_between_sections_are_refused_to_a_replacement() {
    let main = |world: World| {
        let Some(mut job) = Job::start(world, protection()).map_err(|error| error.to_string())? else {
            return Ok(());
        };
        let chain = |job: &mut Job| {
            let run = job.run(&mut Chain { start: 4 }, |links| links.value);
            run.map_err(|error| error.to_string())
        };
        chain(&mut job)?;
        let world = job.world().map_err(|error| error.to_string())?;
        world.comm().barrier().map_err(|error| error.to_string())?;
        chain(&mut job)?;
        job.finish().map_err(|error| error.to_string())
    };
    assert_eq!(calm(&[], OnFailure::Rebuild, main).ending, Ending::Ended { code: 0, message: String::new() });
    let outcome = calm(&["1@step=8"], OnFailure::Rebuild, main);
    let Ending::Ended { code: 2, message } = &outcome.ending else { panic!("{:?}", outcome.ending) };
    assert!(message.contains("use `Job::once` there"), "{message}");
}

#[test]
fn several_sections_are_refused_where_ranks_close_up() {
    let outcome = calm(&[], OnFailure::Shrink, |world| main_of(world, protection(), false));
    let Ending::Ended { code: 2, message } = &outcome.ending else { panic!("{:?}", outcome.ending) };
    assert!(message.contains("one protected run only"), "{message}");
}
