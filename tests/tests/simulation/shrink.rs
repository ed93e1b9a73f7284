//! Lost ranks are not replaced: the others decode their states, deal them out anew, and come to the same answer.

use std::time::Duration;

use ft_checkpoint::checkpointer::{DAMAGED_ON_THE_WAY, KEEPS_OLD_LAYOUT, ROTS};
use ft_checkpoint::resilient::RankReport;
use ft_checkpoint::{Flow, Interval, Program, Protect, Protection, RankState, Redistribute, Redistribution};
use ft_comm::{CommError, OnFailure, Op, World};
use ft_proto::arbiter::Event as ArbiterEvent;
use ft_proto::planted;
use ft_sim::{self as sim, Blow, Config, Fault, Faults, Trigger};

use super::commit::of_any_kind;
use super::{Choices, Course, checker, finds, for_seeds};

const STEPS: u64 = 14;
const LENGTH: usize = 23;

/// A part of an array, which all ranks together have.
#[derive(Clone, Debug, Default, Protect, Redistribute)]
pub(super) struct Part {
    #[protect(constant, distributed)]
    salt: Vec<u64>,
    #[protect(distributed)]
    values: Vec<u64>,
    #[protect(replicated)]
    sum: u64,
}

fn range(rank: usize, ranks: usize) -> std::ops::Range<usize> {
    rank * LENGTH / ranks..(rank + 1) * LENGTH / ranks
}

impl Part {
    fn new(rank: usize, ranks: usize) -> Self {
        let values: Vec<u64> = range(rank, ranks).map(|at| (at as u64 + 1) << 20).collect();
        Self { salt: values.iter().map(|value| value ^ 0x5a5a).collect(), values, sum: 0 }
    }

    fn share(&self) -> u64 {
        self.values.iter().fold(0, |share: u64, value| share.wrapping_add(value.rotate_left(9)))
    }

    fn advance(&mut self, sum: u64, number: u64) {
        self.sum = sum;
        for (value, salt) in self.values.iter_mut().zip(&self.salt) {
            *value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(sum ^ salt ^ number);
        }
    }
}

/// The answer is that of one rank.
fn answer() -> u64 {
    let mut all = Part::new(0, 1);
    for number in 1..=STEPS {
        all.advance(all.share(), number);
    }
    all.share()
}

pub(super) struct Recurrence;

impl Program for Recurrence {
    type State = Part;
    type Error = CommError;
    const SHRINKS: bool = true;

    fn init(&mut self, world: &World) -> Result<Part, CommError> {
        Ok(Part::new(world.rank(), world.size()))
    }

    fn redistribute(
        &mut self,
        shares: Vec<RankState<Part>>,
        before: usize,
        world: &World,
    ) -> Result<Part, CommError> {
        Redistribution::equal_blocks(world.comm(), &shares, before)?.deal(shares)
    }

    fn step(&mut self, part: &mut Part, world: &World, number: u64) -> Result<Flow, CommError> {
        let mut sum = [part.share()];
        part.sum = u64::MAX; // torn on purpose
        world.comm().allreduce(&mut sum, Op::Sum)?;
        part.advance(sum[0], number);
        Ok(if number == STEPS { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, part: &mut Part, world: &World) -> Result<Vec<u8>, CommError> {
        let mut sum = [part.share()];
        world.comm().allreduce(&mut sum, Op::Sum)?;
        Ok(sum[0].to_le_bytes().to_vec())
    }
}

/// Whether a rank has reported the answer.
pub(super) fn is_right(output: &[u8]) -> bool {
    RankReport::read(output).is_some_and(|report| report.output == answer().to_le_bytes())
}

/// Schemes with numbers of ranks, and how many losses at once they survive whatever the others do.
const JOBS: &[(&str, usize, usize)] = &[
    ("xor", 4, 1),
    ("xor", 6, 1),
    ("xor:3", 6, 1),
    ("neighbor:1", 3, 1),
    ("neighbor:2", 5, 2),
    ("rs:2+2", 4, 2),
    ("rs:4+2", 7, 2),
];

fn check(seed: u64) -> Result<Course, String> {
    let mut choices = Choices(seed);
    let (scheme, ranks, tolerance) = JOBS[choices.below(JOBS.len() as u64) as usize];
    let interval = Interval::Steps(1 + choices.below(4));
    let protection = of_any_kind(seed, Protection::new(scheme.parse().expect("a scheme"), interval));
    let together_max = 1 + choices.below(2) as usize;
    let kills = 1 + choices.below(4) as u32;
    let faults = Faults {
        together_max,
        cuts: seed.is_multiple_of(3),
        ..Faults::kills(kills, Duration::from_millis(60))
    };
    let config = Config { faults, on_failure: OnFailure::Shrink, ..Config::rough(seed, ranks) };
    let outcome = sim::run(config, |world| {
        ft_checkpoint::run(world, protection.clone(), &mut Recurrence)
            .map(|_| ())
            .map_err(|error| error.to_string())
    });
    checker::memberships(&outcome)?;
    // The most that was missing at a time: lost and not yet shared out and protected again.
    let (mut missing, mut most, mut degraded) = (0, 0, false);
    for event in checker::launcher(&outcome) {
        match event {
            ArbiterEvent::Lost { generation: Some(_), .. } => {
                missing += 1;
                most = most.max(missing);
            }
            ArbiterEvent::Resumed { .. } => {
                degraded |= missing > 0;
                missing = 0;
            }
            _ => {}
        }
    }
    let survives = most <= if degraded { 1 } else { tolerance };
    match checker::status(&outcome)? {
        (0, _) => {}
        (3, _) if !survives => return Ok(Course::BeyondTolerance),
        (3, message) if message.contains("no rank that computes is left") && degraded => {
            return Ok(Course::BeyondTolerance);
        }
        (code, message) => return Err(format!("{most} lost at a time, ended with {code}: {message}")),
    }
    let outputs = checker::outputs(&outcome).ok_or("no outputs")?;
    match outputs.iter().position(|bytes| !is_right(bytes)) {
        Some(rank) => Err(format!("rank {rank} has another answer")),
        None => Ok(checker::course(&outcome)),
    }
}

#[test]
fn fewer_and_fewer_ranks_come_to_the_same_answer() {
    let courses = [Course::Undisturbed, Course::Repaired, Course::BeyondTolerance];
    for_seeds("fewer_and_fewer", &courses, check);
}

/// One of four ranks is lost, and then the link between two of the others, for a while, about when their first checkpoint in
/// a new layout is committed: perhaps one of them hears of that and the other does not.
fn check_link(seed: u64, bug: &'static str) -> Result<Course, String> {
    let mut choices = Choices(seed);
    let protection = Protection::new("rs:2+2".parse().expect("a scheme"), Interval::Steps(3));
    let mut config = Config { on_failure: OnFailure::Shrink, ..Config::rough(seed, 4) };
    config.kills = vec!["3@step=5".parse().expect("a spec")];
    let delay = Duration::from_micros(500 + choices.below(12_000));
    let lasts = Some(Duration::from_millis(400));
    let near = choices.below(3) as usize;
    let blow = Blow::CutBetween { near: vec![near], far: vec![(near + 1) % 3], lasts };
    config.faults.explicit = vec![Fault { trigger: Trigger::AfterLoss { losses: 1, delay }, blow }];
    let outcome = sim::run(config, |world| {
        planted::plant(bug);
        ft_checkpoint::run(world, protection.clone(), &mut Recurrence)
            .map(|_| ())
            .map_err(|error| error.to_string())
    });
    checker::memberships(&outcome)?;
    match checker::status(&outcome)? {
        (0, _) => {}
        (code, message) => return Err(format!("ended with {code}: {message}")),
    }
    let outputs = checker::outputs(&outcome).ok_or("no outputs")?;
    match outputs.iter().position(|bytes| !is_right(bytes)) {
        Some(rank) => Err(format!("rank {rank} has another answer")),
        None => Ok(checker::course(&outcome)),
    }
}

#[test]
fn a_link_that_breaks_while_a_new_layout_is_committed_costs_nothing() {
    for_seeds("a_link_that_breaks", &[Course::Repaired], |seed| check_link(seed, ""));
}

#[test]
fn planted_ranks_that_differ_in_the_layout_are_caught() {
    finds(KEEPS_OLD_LAYOUT, |seed| check_link(seed, KEEPS_OLD_LAYOUT));
}

/// Nobody can see the damage before a state is decoded from it; another block takes its place.
#[test]
fn a_bit_that_flipped_on_its_way_into_redundancy_is_made_up_for() {
    for at in 0..60u64 {
        let protection = Protection::new("rs:2+2".parse().expect("a scheme"), Interval::Steps(3));
        let kills = vec!["3@step=9".parse().expect("a spec")];
        let config = Config { kills, on_failure: OnFailure::Shrink, ..Config::calm(4) };
        let outcome = sim::run(config, |world| {
            let flips = world.rank() == at as usize % 3;
            planted::plant_at(if flips { DAMAGED_ON_THE_WAY } else { "" }, at * 37);
            ft_checkpoint::run(world, protection.clone(), &mut Recurrence)
                .map(|_| ())
                .map_err(|error| error.to_string())
        });
        let (code, message) = checker::status(&outcome).expect("it ended");
        assert_eq!(code, 0, "{at}: {message}");
        let outputs = checker::outputs(&outcome).expect("it is done");
        assert!(outputs.len() == 3 && outputs.iter().all(|bytes| is_right(bytes)), "{at}");
    }
}

/// The recurrence, in which a bit of what rank 1 holds flips in step 5.
struct Rotting(u64);

impl Program for Rotting {
    type State = Part;
    type Error = CommError;
    const SHRINKS: bool = true;

    fn init(&mut self, world: &World) -> Result<Part, CommError> {
        Recurrence.init(world)
    }

    fn redistribute(
        &mut self,
        shares: Vec<RankState<Part>>,
        before: usize,
        world: &World,
    ) -> Result<Part, CommError> {
        Recurrence.redistribute(shares, before, world)
    }

    fn step(&mut self, part: &mut Part, world: &World, number: u64) -> Result<Flow, CommError> {
        if number == 5 && world.rank() == 1 && world.generation() == 0 {
            planted::plant_at(ROTS, self.0);
        }
        Recurrence.step(part, world, number)
    }

    fn output(&mut self, part: &mut Part, world: &World) -> Result<Vec<u8>, CommError> {
        Recurrence.output(part, world)
    }
}

/// A rank is lost and what a survivor holds is damaged: within the tolerance both are made up for, and beyond it nothing goes on with
/// what is wrong.
#[test]
fn damage_that_survivors_find_when_they_close_up_is_made_up_for() {
    let mut refused = 0;
    for at in 0..80u64 {
        let scheme = ["rs:2+2", "xor"][at as usize % 2];
        let protection = Protection::new(scheme.parse().expect("a scheme"), Interval::Steps(3));
        let kills = vec!["3@step=6".parse().expect("a spec")];
        let config = Config { kills, on_failure: OnFailure::Shrink, ..Config::calm(4) };
        let outcome = sim::run(config, |world| {
            ft_checkpoint::run(world, protection.clone(), &mut Rotting(at / 2 * 37))
                .map(|_| ())
                .map_err(|error| error.to_string())
        });
        let (code, message) = checker::status(&outcome).expect("it ended");
        if code == 0 {
            let outputs = checker::outputs(&outcome).expect("it is done");
            assert!(outputs.len() == 3 && outputs.iter().all(|bytes| is_right(bytes)), "{at}");
        } else {
            assert_eq!((code, scheme), (3, "xor"), "{at}: {message}");
            refused += 1;
        }
    }
    assert!(refused > 10, "{refused} refused");
}
