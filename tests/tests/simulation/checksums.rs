//! Doubles that come back with rounding (`--scheme checksum:K+M`), on the full stack: integers are exact, and no double is further from
//! what it was than the restores have said.

use std::cell::Cell;
use std::num::NonZero;
use std::time::Duration;

use ft_checkpoint::checkpointer::{
    DAMAGED_BLOCK, DAMAGED_SHARD, DENIES_ROUNDING, ROTS, ROTS_FOR_GOOD, TRUSTS_ROUNDED,
};
use ft_checkpoint::resilient::RankReport;
use ft_checkpoint::{Flow, GroupLayout, Interval, Job, Level, Program, Protect, Protection, Scheme};
use ft_comm::{CommError, Op, World};
use ft_proto::planted;
use ft_sim::{self as sim, Config, Faults};

use super::commit::{Outcome, cuts, of_any_kind};
use super::{Choices, Course, checker, finds, finds_from, for_all, seeds};

/// Seeds that are taken if nothing is said.
const USUAL: u64 = 240;

const STEPS: u64 = 14;

/// Schemes and ranks.
const JOBS: &[(&str, usize)] = &[
    ("checksum:2+1", 3),
    ("checksum:2+2", 4),
    ("checksum:3+2", 5),
    ("checksum:4+2", 6),
    ("checksum:2+1", 7),
    ("checksum:1+2", 3),
];

fn job(seed: u64) -> (Scheme, usize) {
    let (scheme, ranks) = JOBS[(seed % JOBS.len() as u64) as usize];
    (scheme.parse().expect("a scheme"), ranks)
}

/// One job in seven has a level above, exact or not.
fn levels(seed: u64) -> Vec<Level> {
    match seed % 14 {
        3 => vec!["neighbor:2@2".parse().expect("a level")],
        10 => vec!["checksum:1+2@3".parse().expect("a level")],
        _ => vec![],
    }
}

/// The state of one rank.
#[derive(Clone, Debug, Default, Protect)]
struct Mixed {
    #[protect(constant)]
    salt: Vec<f64>,
    counts: Vec<u64>,
    sum: u64,
    /// No step changes them.
    still: Vec<f64>,
    /// Each step brings them nearer to the mean of all, and with them their errors.
    moving: Vec<f64>,
    #[protect(replicated)]
    mean: Vec<f64>,
}

/// Doubles of magnitudes that differ between ranks, and within a rank.
fn still(rank: usize, salt: u64) -> Vec<f64> {
    let length = [130, 0, 64, 900, 63, 257, 70][rank % 7];
    let mut choices = Choices(salt ^ (rank as u64 + 1) << 20);
    let value = |at: i32| {
        let unit = choices.below(1 << 40) as f64 / 2f64.powi(39) - 1.0;
        // With some salts so far apart that all is exact.
        let apart = if salt % 5 == 4 { 6 } else { 1 };
        unit * 10f64.powi(at % 4 + apart * (rank as i32 % 4))
    };
    let mut values: Vec<f64> = (0..length).map(value).collect();
    // What is no number is kept exactly.
    if salt % 4 == 3 && rank % 3 == 1 {
        values.extend([f64::NAN, f64::NEG_INFINITY]);
    }
    values
}

impl Mixed {
    fn new(rank: usize, salt: u64) -> Self {
        let moving = (0..100 + 7 * rank).map(|at| ((at * at + rank) % 101) as f64 / 50.0 - 1.0).collect();
        let salted = (0..100).map(|at| (at as f64 + rank as f64).sin()).collect();
        let counts = (0..[5, 200, 17, 1, 40][rank % 5]).map(|at| (rank as u64 + 1) << 32 | at).collect();
        Self { salt: salted, counts, sum: 0, still: still(rank, salt), moving, mean: vec![0.0; 80] }
    }

    fn share(&self) -> u64 {
        self.counts.iter().fold(self.sum, |share, count| share.rotate_left(5).wrapping_add(*count))
    }

    fn advance(&mut self, sum: u64, means: &[f64], ranks: usize, number: u64) {
        self.sum = sum;
        for count in &mut self.counts {
            *count =
                count.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(sum).rotate_left(number as u32);
        }
        for (mean, sum) in self.mean.iter_mut().zip(means) {
            *mean = sum / ranks as f64;
        }
        for (at, value) in self.moving.iter_mut().enumerate() {
            *value = 0.5 * *value + 0.25 * self.mean[at % 80] + 0.1 * self.salt[at % 100];
        }
    }

    fn output(&self) -> Vec<u8> {
        let lengths = [self.counts.len(), self.still.len(), self.moving.len()].map(|len| len as u64);
        let words = lengths.iter().chain(&self.counts).chain([&self.sum]).copied();
        let doubles = self.still.iter().chain(&self.moving).map(|value| value.to_bits());
        words.chain(doubles).flat_map(u64::to_le_bytes).collect()
    }
}

/// What [`Mixed::output`] says.
struct Answer {
    integers: Vec<u64>,
    still: Vec<f64>,
    moving: Vec<f64>,
}

impl Answer {
    fn read(bytes: &[u8]) -> Self {
        let words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let [counts, still, _] = [0, 1, 2].map(|at| words[at] as usize);
        let (integers, doubles) = words.split_at(3 + counts + 1);
        let doubles: Vec<f64> = doubles.iter().map(|bits| f64::from_bits(*bits)).collect();
        let (still, moving) = doubles.split_at(still);
        Self { integers: integers.to_vec(), still: still.to_vec(), moving: moving.to_vec() }
    }
}

/// The answer, by rank, without any failure.
fn answer(ranks: usize, salt: u64) -> Vec<Answer> {
    let mut all: Vec<Mixed> = (0..ranks).map(|rank| Mixed::new(rank, salt)).collect();
    for number in 1..=STEPS {
        let sum = all.iter().fold(0u64, |sum, state| sum.wrapping_add(state.share()));
        let means: Vec<f64> = (0..80).map(|at| all.iter().map(|state| state.moving[at]).sum()).collect();
        all.iter_mut().for_each(|state| state.advance(sum, &means, ranks, number));
    }
    all.iter().map(|state| Answer::read(&state.output())).collect()
}

#[derive(Clone)]
struct Sums {
    salt: u64,
    /// Of this rank a bit of what it holds flips before a restore.
    damaged: Option<(usize, &'static str)>,
}

impl Program for Sums {
    type State = Mixed;
    type Error = CommError;

    fn init(&mut self, world: &World) -> Result<Mixed, CommError> {
        world.comm().barrier()?;
        Ok(Mixed::new(world.rank(), self.salt))
    }

    fn step(&mut self, state: &mut Mixed, world: &World, number: u64) -> Result<Flow, CommError> {
        if let Some((rank, how)) = self.damaged {
            let is_here = world.rank() == rank && world.generation() == 0 && number > 5;
            planted::plant_at(if is_here { how } else { "" }, self.salt);
        }
        let (mut sum, mut means) = ([state.share()], state.moving[..80].to_vec());
        // Torn on purpose: a step that fails must leave nothing behind.
        state.sum = u64::MAX;
        let still = std::mem::take(&mut state.still);
        world.comm().allreduce(&mut sum, Op::Sum)?;
        world.comm().allreduce(&mut means, Op::Sum)?;
        state.still = still;
        state.advance(sum[0], &means, world.size(), number);
        Ok(if number == STEPS { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, state: &mut Mixed, _: &World) -> Result<Vec<u8>, CommError> {
        Ok(state.output())
    }
}

fn simulate(
    seed: u64,
    estates: u32,
    bug: &'static str,
    main: impl Fn(World, Protection) -> Result<(), String> + Sync,
) -> Outcome {
    let (scheme, ranks) = job(seed);
    let mut choices = Choices(seed);
    let interval = Interval::Steps(1 + choices.below(4));
    let protection = Protection {
        checksum_limit: f64::MAX,
        scrub: seed % 5 == 1,
        levels: levels(seed),
        ..of_any_kind(seed / 2, Protection::new(scheme, interval))
    };
    let mut config = Config { estates, bug, ..Config::rough(seed, ranks) };
    config.faults = Faults {
        cuts: cuts(seed),
        together_max: 1 + choices.below(3) as usize,
        ..Faults::kills(1 + choices.below(4) as u32, Duration::from_millis(60))
    };
    sim::run(config, |world| main(world, protection.clone()))
}

/// The job has ended well, or more was lost than the scheme survives and the job says so.
fn check_end(seed: u64, outcome: &Outcome) -> Result<Course, String> {
    let (scheme, ranks) = job(seed);
    let above = levels(seed).into_iter().map(|level| level.scheme);
    let survives = |lost: &[usize]| {
        let layout = |scheme: Scheme| GroupLayout::new(scheme, ranks, 0, None).unwrap();
        std::iter::once(scheme.clone())
            .chain(above.clone())
            .any(|scheme| layout(scheme).survives(lost).is_ok())
    };
    checker::memberships(outcome)?;
    let missing = checker::not_restored(outcome);
    match checker::status(outcome)? {
        (0, _) => Ok(checker::course(outcome)),
        (3, _) if !survives(&missing) => Ok(Course::BeyondTolerance),
        (3, text) => Err(format!("gave up with {missing:?} lost, which {scheme} survives: {text}")),
        (code, text) => Err(format!("ended with {code}: {text}")),
    }
}

/// Whether the outputs are those of a job without failures, but for what its restores have said; gives the largest error over that.
fn check_answers(outputs: &[Vec<u8>], due: &[Answer]) -> Result<f64, String> {
    let reports: Option<Vec<RankReport>> = outputs.iter().map(|bytes| RankReport::read(bytes)).collect();
    let reports = reports.ok_or("no report")?;
    // Who was replaced has forgotten what was before: who has seen most of all has seen all, or nothing is said of doubles.
    let all = reports.iter().max_by_key(|report| report.stats.restores.len()).ok_or("no reports")?;
    let rebuilt = all.stats.restores.iter().flat_map(|restore| &restore.doubles);
    let mut within = vec![0.0; due.len()];
    rebuilt.for_each(|doubles| within[doubles.rank] += doubles.within);
    let in_all: f64 = within.iter().sum();
    let mut worst = 0.0_f64;
    for (rank, (report, due)) in reports.iter().zip(due).enumerate() {
        let is = Answer::read(&report.output);
        if is.integers != due.integers {
            return Err(format!("integers of rank {rank} are wrong"));
        }
        for (is, due) in is.still.iter().zip(&due.still) {
            let error = (is - due).abs();
            if is.to_bits() != due.to_bits() && (error.is_nan() || error > within[rank]) {
                return Err(format!("rank {rank} has {is}, {due} was right, {:e} was said", within[rank]));
            }
            if error > 0.0 {
                worst = worst.max(error / within[rank]);
            }
        }
        for (is, due) in is.moving.iter().zip(&due.moving) {
            let slack = 1e-13 * (1.0 + due.abs());
            if (is - due).abs() > in_all + slack {
                return Err(format!("rank {rank} has come to {is}, {due} was right, {in_all:e} was said"));
            }
        }
    }
    Ok(worst)
}

fn run(seed: u64, bug: &'static str) -> Result<(Course, f64), String> {
    let estates = (seed / 5 % 4 / 3) as u32;
    let outcome = simulate(seed, estates, bug, |world, protection| {
        let run = ft_checkpoint::run(world, protection, &mut Sums { salt: seed, damaged: None });
        run.map(|_| ()).map_err(|error| error.to_string())
    });
    let course = check_end(seed, &outcome)?;
    let (Course::Undisturbed | Course::Repaired) = course else { return Ok((course, 0.0)) };
    let ranks = job(seed).1;
    let outputs = checker::outputs(&outcome).ok_or("no outputs")?;
    Ok((course, check_answers(&outputs[..ranks], &answer(ranks, seed))?))
}

#[test]
fn integers_are_exact_and_doubles_as_near_as_was_said() {
    let worst = Cell::new(0.0_f64);
    let courses = [Course::Undisturbed, Course::Repaired, Course::BeyondTolerance];
    for_all(seeds(USUAL), "integers_are_exact", &courses, |seed| {
        let (course, more) = run(seed, "")?;
        worst.set(worst.get().max(more));
        Ok(course)
    });
    println!("errors were {} of what was said at most", worst.get());
    // One seed alone may have none.
    assert!(worst.get() > 0.0 || (seeds(USUAL).len() as u64) < USUAL, "nothing was rebuilt with rounding");
}

#[test]
fn planted_doubles_that_are_said_to_be_exact_are_caught() {
    finds(DENIES_ROUNDING, |seed| run(seed, DENIES_ROUNDING).map(|(course, _)| course));
}

#[test]
fn planted_a_rank_that_trusts_what_was_rounded_is_caught() {
    finds_from(900, TRUSTS_ROUNDED, |seed| run(seed, TRUSTS_ROUNDED).map(|(course, _)| course));
}

/// The same program as the second of three runs, between others whose results are kept.
#[test]
fn runs_one_after_the_other_are_rebuilt_too() {
    let courses = [Course::Undisturbed, Course::Repaired];
    for_all(seeds(USUAL / 2), "runs_one_after_the_other", &courses, |seed| {
        let outcome = simulate(seed, 0, "", |world, protection| {
            let main = || -> Result<(), Box<dyn std::error::Error>> {
                let Some(mut job) = Job::start(world, protection)? else { return Ok(()) };
                let mut first = Sums { salt: seed, damaged: None };
                let counts = job.run(&mut first, |state| state.counts.clone())?;
                let all = job.once(|world| -> Result<u64, CommError> {
                    let mut sum = [counts.iter().fold(0, |sum: u64, count| sum.wrapping_add(*count))];
                    world.comm().allreduce(&mut sum, Op::Sum)?;
                    Ok(sum[0])
                })?;
                let due = answer(job.size(), seed);
                let counts: Vec<u64> = due
                    .iter()
                    .flat_map(|answer| &answer.integers[3..answer.integers.len() - 1])
                    .copied()
                    .collect();
                assert_eq!(all, counts.iter().fold(0u64, |sum, count| sum.wrapping_add(*count)));
                job.last(&mut Sums { salt: seed, damaged: None })?;
                Ok(())
            };
            main().map_err(|error| error.to_string())
        });
        let course = check_end(seed, &outcome)?;
        let (Course::Undisturbed | Course::Repaired) = course else { return Ok(course) };
        let ranks = job(seed).1;
        let outputs = checker::outputs(&outcome).ok_or("no outputs")?;
        for (bytes, due) in outputs[..ranks].iter().zip(answer(ranks, seed)) {
            let report = RankReport::read(bytes).ok_or("no report")?;
            if Answer::read(&report.output).integers != due.integers {
                return Err("integers are wrong".into());
            }
        }
        Ok(course)
    });
}

/// Rank 3 is lost in step 9, while the memory of another is damaged.
#[test]
fn what_is_damaged_is_not_used() {
    let ranks = 6;
    for how in [DAMAGED_SHARD, DAMAGED_BLOCK] {
        for (scheme, due) in [("checksum:4+2", 0), ("checksum:5+1", 3)] {
            for seed in 0..30 {
                let damaged = [0, 1, 2, 4, 5][seed as usize % 5];
                let protection = Protection {
                    checksum_limit: f64::MAX,
                    ..Protection::new(scheme.parse().expect("a scheme"), Interval::Steps(3))
                };
                let kills = vec!["3@step=9".parse().expect("a spec")];
                let outcome = sim::run(Config { kills, ..Config::calm(ranks) }, |world| {
                    let mut program = Sums { salt: seed, damaged: Some((damaged, how)) };
                    let run = ft_checkpoint::run(world, protection.clone(), &mut program);
                    run.map(|_| ()).map_err(|error| error.to_string())
                });
                let (code, message) = checker::status(&outcome).expect("it ended");
                assert_eq!(code, due, "{how} of {damaged} under {scheme}: {message}");
                if code == 0 {
                    let outputs = checker::outputs(&outcome).expect("it ended well");
                    check_answers(&outputs[..ranks], &answer(ranks, seed)).unwrap();
                }
            }
        }
    }
}

/// The sums, of which a bit of what rank 1 holds flips in step 5.
struct Rotting(Sums, &'static str);

impl Program for Rotting {
    type State = Mixed;
    type Error = CommError;

    fn init(&mut self, world: &World) -> Result<Mixed, CommError> {
        self.0.init(world)
    }

    fn step(&mut self, state: &mut Mixed, world: &World, number: u64) -> Result<Flow, CommError> {
        if number == 5 && world.rank() == 1 && world.generation() == 0 {
            planted::plant_at(self.1, self.0.salt);
        }
        self.0.step(state, world, number)
    }

    fn output(&mut self, state: &mut Mixed, world: &World) -> Result<Vec<u8>, CommError> {
        self.0.output(state, world)
    }
}

/// Two ranks of four are lost in the vote on the checkpoint that tells of the damage. What is exact was mended before; a shard with
/// doubles counts as lost until then.
#[test]
fn a_scrub_mends_what_can_be_mended_exactly() {
    for (how, scrub) in [(ROTS, true), (ROTS, false), (ROTS_FOR_GOOD, true), (ROTS_FOR_GOOD, false)] {
        let (mut refused, mut in_shards) = (0, 0);
        for place in 0..40u64 {
            // Bits of the shard and of redundancy in turn.
            let salt = place * 37;
            let protection = Protection {
                scrub,
                checksum_limit: f64::MAX,
                ..Protection::new("checksum:2+2".parse().expect("a scheme"), Interval::Steps(3))
            };
            let kills = vec!["2,3@checkpoint=3/vote".parse().expect("a spec")];
            let outcome = sim::run(Config { kills, ..Config::calm(4) }, |world| {
                let mut program = Rotting(Sums { salt, damaged: None }, how);
                let run = ft_checkpoint::run(world, protection.clone(), &mut program);
                run.map(|_| ()).map_err(|error| error.to_string())
            });
            let (code, message) = checker::status(&outcome).expect("it ended");
            in_shards += u64::from(salt % 2 == 0);
            refused += u64::from(code == 3);
            if code == 0 {
                let outputs = checker::outputs(&outcome).expect("it ended well");
                check_answers(&outputs[..4], &answer(4, salt)).unwrap();
            } else {
                assert_eq!(code, 3, "{how} {scrub} {salt}: {message}");
                let can_be = !scrub || how == ROTS && salt % 2 == 0;
                assert!(can_be, "{how} at {salt} was not mended: {message}");
            }
        }
        let due = match (how, scrub) {
            (_, false) => 40,
            (ROTS, true) => in_shards,
            _ => 0,
        };
        assert_eq!(refused, due, "{how} {scrub}");
    }
}

#[test]
fn what_does_not_go_with_checksums_is_refused() {
    let of = Protection::new("checksum:2+1".parse().expect("a scheme"), Interval::Steps(3));
    let others = [
        (Protection { incremental: true, ..of.clone() }, "`--incremental`"),
        (Protection { memory: NonZero::new(1 << 40), ..of.clone() }, "`--checkpoint-memory`"),
    ];
    for (protection, part) in others {
        let outcome = sim::run(Config::calm(3), |world| {
            let run = ft_checkpoint::run(world, protection.clone(), &mut Sums { salt: 0, damaged: None });
            run.map(|_| ()).map_err(|error| error.to_string())
        });
        let (code, message) = checker::status(&outcome).expect("it ended");
        assert!(code == 2 && message.contains(part), "{code}: {message}");
    }
}

/// Numbers that differ by too much are not passed off as those that were lost.
#[test]
fn what_is_not_near_enough_ends_the_job() {
    let protection = Protection::new("checksum:2+1".parse().expect("a scheme"), Interval::Steps(3));
    for (limit, due) in [(1e30, 0), (protection.checksum_limit, 0), (1e-30, 3)] {
        let protection = Protection { checksum_limit: limit, ..protection.clone() };
        let kills = vec!["2@step=9".parse().expect("a spec")];
        let outcome = sim::run(Config { kills, ..Config::calm(3) }, |world| {
            let run = ft_checkpoint::run(world, protection.clone(), &mut Sums { salt: 0, damaged: None });
            run.map(|_| ()).map_err(|error| error.to_string())
        });
        let (code, message) = checker::status(&outcome).expect("it ended");
        assert_eq!(code, due, "{message}");
        let says = message.contains("the doubles of rank 2 can be rebuilt within")
            && message.contains("the limit is 1.0e-30: allow more (--checksum-limit)");
        assert_eq!(says, due == 3, "{message}");
    }
}
