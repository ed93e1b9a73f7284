//! The commit protocol on the full stack: a small program in the resilient loop whose answer is known.

use std::collections::BTreeSet;
use std::time::Duration;

use ft_checkpoint::checkpointer::{COMMITS_EARLY, FORGETS_STAGED, KEEPS_COMMIT_TO_ITSELF};
use ft_checkpoint::resilient::RankReport;
use ft_checkpoint::{
    Checkpoints, Field, Flow, GroupLayout, Interval, MemoryUse, Program, Protect, Protection, Scheme,
    StatePart, Walk, choose,
};
use ft_comm::{CommError, Op, World};
use ft_proto::arbiter::Event as ArbiterEvent;
use ft_sim::{self as sim, Blow, Config, Fault, Faults, SimOutcome, Trigger};

use super::{Choices, Course, checker, finds, for_seeds};

pub(super) const STEPS: u64 = 14;

/// The state of one rank: some numbers, on some ranks none, and the sum of the last step.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Numbers {
    salt: Vec<u64>,
    values: Vec<u64>,
    sum: u64,
}

impl Protect for Numbers {
    fn walk<W: Walk>(&mut self, part: StatePart, walk: &mut W) -> Result<(), ft_checkpoint::ProtectError> {
        match part {
            StatePart::Constant => Field::walk(&mut self.salt, walk),
            StatePart::Variable => {
                Field::walk(&mut self.values, walk)?;
                Field::walk(&mut self.sum, walk)
            }
        }
    }
}

impl Numbers {
    fn new(rank: usize) -> Self {
        let length = [5, 0, 17, 1, 40][rank % 5];
        let values: Vec<u64> = (0..length).map(|at| (rank as u64 + 1) << 32 | at).collect();
        Self { salt: values.iter().map(|value| value ^ 0x5a5a).collect(), values, sum: 0 }
    }

    fn share(&self) -> u64 {
        self.values.iter().fold(self.sum, |share, value| share.rotate_left(5).wrapping_add(*value))
    }

    fn advance(&mut self, sum: u64, number: u64) {
        self.sum = sum;
        for (value, salt) in self.values.iter_mut().zip(&self.salt) {
            *value = value
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(sum ^ salt)
                .rotate_left(number as u32);
        }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let words = self.values.iter().chain(&self.salt).chain([&self.sum]);
        words.flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// The answer, by rank, without any message.
pub(super) fn answer(ranks: usize) -> Vec<Vec<u8>> {
    let mut all: Vec<Numbers> = (0..ranks).map(Numbers::new).collect();
    for number in 1..=STEPS {
        let sum = all.iter().fold(0u64, |sum, numbers| sum.wrapping_add(numbers.share()));
        all.iter_mut().for_each(|numbers| numbers.advance(sum, number));
    }
    all.iter().map(Numbers::bytes).collect()
}

pub(super) struct Recurrence;

impl Program for Recurrence {
    type State = Numbers;
    type Error = CommError;

    fn init(&mut self, world: &World) -> Result<Numbers, CommError> {
        world.comm().barrier()?;
        Ok(Numbers::new(world.rank()))
    }

    fn step(&mut self, state: &mut Numbers, world: &World, number: u64) -> Result<Flow, CommError> {
        let mut sum = [state.share()];
        // Torn on purpose: a step that fails must leave nothing behind.
        state.sum = u64::MAX;
        world.comm().allreduce(&mut sum, Op::Sum)?;
        state.advance(sum[0], number);
        Ok(if number == STEPS { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, state: &mut Numbers, _: &World) -> Result<Vec<u8>, CommError> {
        Ok(state.bytes())
    }
}

/// Schemes with the ranks that compute and the dedicated parity ranks.
const JOBS: &[(&str, usize, usize)] = &[
    ("none", 1, 0),
    ("none", 3, 0),
    ("neighbor:1", 2, 0),
    ("neighbor:1", 4, 0),
    ("neighbor:2", 5, 0),
    ("xor", 2, 0),
    ("xor", 5, 0),
    ("xor:3", 6, 0),
    ("xor:3", 2, 1),
    ("xor:3", 4, 2),
    ("rs:2+2", 4, 0),
    ("rs:3+2", 5, 0),
    ("rs:2+2", 2, 2),
    ("rs:3+1", 3, 1),
];

pub(super) type Outcome = SimOutcome<Result<(), String>>;

pub(super) fn job(seed: u64) -> (Scheme, usize, usize) {
    let (scheme, ranks, parity) = JOBS[(seed % JOBS.len() as u64) as usize];
    (scheme.parse().expect("a scheme"), ranks, parity)
}

pub(super) fn cuts(seed: u64) -> bool {
    !seed.is_multiple_of(3)
}

pub(super) fn cuts_forever(seed: u64) -> bool {
    seed % 3 > 1
}

/// With every other seed checkpoints go on behind the computation.
pub(super) fn of_either_kind(seed: u64) -> Checkpoints {
    if (seed >> 1).is_multiple_of(2) { Checkpoints::Blocking } else { Checkpoints::Asynchronous }
}

/// As [`of_either_kind`], and half of those that are waited for keep one copy of the state.
pub(super) fn of_any_kind(seed: u64, of: Protection) -> Protection {
    let memory_use = if seed >> 1 & 3 == 2 { MemoryUse::Least } else { MemoryUse::Fast };
    Protection { checkpoints: of_either_kind(seed), memory_use, ..of }
}

fn simulate(seed: u64, bug: &'static str) -> Outcome {
    simulate_on(seed, 0, bug)
}

/// With memory of so many hosts that outlives processes.
fn simulate_on(seed: u64, estates: u32, bug: &'static str) -> Outcome {
    simulate_with(seed, estates, |of| of_any_kind(seed, of), bug)
}

/// With a protection that is made of the one of this seed.
pub(super) fn simulate_with(
    seed: u64,
    estates: u32,
    with: impl FnOnce(Protection) -> Protection,
    bug: &'static str,
) -> Outcome {
    let (scheme, ranks, parity) = job(seed);
    let mut choices = Choices(seed);
    let interval = Interval::Steps(1 + choices.below(4));
    let protection = with(Protection::new(scheme, interval));
    let mut config = Config { parity, bug, estates, ..Config::rough(seed, ranks) };
    config.faults = Faults {
        cuts: cuts(seed),
        cuts_forever: cuts_forever(seed),
        together_max: 1 + choices.below(3) as usize,
        ..Faults::kills(1 + choices.below(4) as u32, Duration::from_millis(40))
    };
    run(config, &protection)
}

fn run(config: Config, protection: &Protection) -> Outcome {
    sim::run(config, |world| {
        ft_checkpoint::run(world, protection.clone(), &mut Recurrence)
            .map(|_| ())
            .map_err(|error| error.to_string())
    })
}

/// The answer is right, or more was lost than the scheme survives and the job says so.
pub(super) fn check(seed: u64, outcome: &Outcome) -> Result<Course, String> {
    let course = check_end(seed, outcome)?;
    if let (Course::Undisturbed | Course::Repaired, ranks) = (course, job(seed).1) {
        let outputs = checker::outputs(outcome).ok_or("no outputs")?;
        let read = |bytes: &Vec<u8>| RankReport::read(bytes).map(|report| report.output);
        let outputs: Vec<Option<Vec<u8>>> = outputs[..ranks].iter().map(read).collect();
        if let Some(rank) = answer(ranks).into_iter().zip(outputs).position(|(due, got)| Some(due) != got) {
            return Err(format!("rank {rank} has a wrong answer"));
        }
    }
    Ok(course)
}

/// The job has ended well, or more was lost than the scheme survives and the job says so; on the way nobody has missed what was
/// restored.
pub(super) fn check_end(seed: u64, outcome: &Outcome) -> Result<Course, String> {
    let (scheme, ranks, parity) = job(seed);
    let fits = |a_group| {
        GroupLayout::new(scheme.clone(), ranks, a_group, None).ok().filter(|l| l.parity_ranks() == parity)
    };
    let layout = (0..=parity).find_map(fits).ok_or("the scheme does not fit")?;
    let memberships = checker::memberships(outcome)?;
    // Ranks that are lost and not known to be restored.
    let mut missing = BTreeSet::new();
    for event in checker::launcher(outcome) {
        match event {
            ArbiterEvent::Decided { generation, failed, .. } => {
                missing.extend(failed.iter().copied());
                // Invariant 4: whoever survives holds what is chosen.
                let Some(membership) = memberships.get(generation) else { continue };
                let choice = choose(&membership.reports);
                let torn = (0..ranks + parity).find(|rank| !missing.contains(rank) && !choice.holders[*rank]);
                if let (Some(epoch), Some(rank)) = (choice.epoch, torn) {
                    return Err(format!(
                        "generation {generation} restores epoch {epoch}, rank {rank} survived and does not hold it"
                    ));
                }
            }
            ArbiterEvent::Resumed { .. } => missing.clear(),
            _ => {}
        }
    }
    let missing: Vec<usize> = missing.into_iter().collect();
    let (code, message) = checker::status(outcome)?;
    match code {
        0 => Ok(checker::course(outcome)),
        3 if layout.survives(&missing).is_err() => Ok(Course::BeyondTolerance),
        3 => Err(format!("gave up with {missing:?} lost, which {scheme} survives: {message}")),
        _ if checker::is_cut_for_ever(code, message) && cuts_forever(seed) => Ok(Course::CutForEver),
        _ => Err(format!("ended with {code}: {message}")),
    }
}

#[test]
fn commit_is_right_within_tolerance_and_says_so_beyond() {
    let courses = [Course::Undisturbed, Course::Repaired, Course::BeyondTolerance];
    for_seeds("commit_is_right", &courses, |seed| check(seed, &simulate(seed, "")));
}

#[test]
fn memory_that_outlives_processes_changes_no_answer() {
    let courses = [Course::Undisturbed, Course::Repaired];
    for_seeds("memory_that_outlives", &courses, |seed| {
        check(seed, &simulate_on(seed, 1 + (seed / 7 % 2) as u32, ""))
    });
}

/// Most ranks are killed together, with memory of so many hosts that outlives processes.
fn killed_together(seed: u64, estates: u32, bug: &'static str) -> Outcome {
    let (scheme, ranks, parity) = job(seed);
    let at = Duration::from_micros(Choices(seed).below(60_000));
    // A live state dies with its process, so with one copy there is a moment at which too many deaths are too many.
    let protection =
        Protection { checkpoints: of_either_kind(seed), ..Protection::new(scheme, Interval::Steps(1)) };
    let mut config = Config { parity, estates, bug, ..Config::rough(seed, ranks) };
    let ranks = (0..ranks + parity).filter(|rank| *rank == 0 || seed >> rank & 1 == 0).collect();
    config.faults.explicit = vec![Fault { trigger: Trigger::At(at), blow: Blow::Kill(ranks) }];
    run(config, &protection)
}

/// The answer is right, and nothing was too much.
fn check_kept(seed: u64, bug: &'static str) -> Result<Course, String> {
    match check(seed, &killed_together(seed, 1, bug))? {
        Course::BeyondTolerance if job(seed).0 != Scheme::None => Err("gave up what was kept".into()),
        course => Ok(course),
    }
}

/// Whoever is killed on one host finds its own again, however many die at once.
#[test]
fn on_one_host_with_such_memory_no_death_is_beyond_the_tolerance() {
    let mut beyond = 0;
    for seed in crate::seeds(200).into_iter().filter(|seed| job(*seed).0 != Scheme::None) {
        check_kept(seed, "").unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let without = killed_together(seed, 0, "");
        beyond += u64::from(checker::status(&without).is_ok_and(|(code, _)| code == 3));
    }
    assert!(
        beyond > 20 || crate::seeds(200).len() < 200,
        "without such memory {beyond} jobs have lost too much"
    );
}

/// Only the first that is lost has known of the commit of the first checkpoint, so the others start again from `init`; what
/// is lost then, before anything is staged again, must not be taken for the end of those who held it.
#[test]
fn a_commit_that_dies_with_its_rank_is_given_up() {
    let seed_of_neighbor_2 = |number: u64| number * JOBS.len() as u64 + 4;
    let mut again = 0;
    for seed in (0..300).map(seed_of_neighbor_2) {
        assert_eq!(job(seed).1, 5);
        let delay = Duration::from_micros(5_000 + 40 * (seed % 300));
        let second =
            Fault { trigger: Trigger::AfterLoss { losses: 1, delay }, blow: Blow::Kill(vec![0, 1, 3]) };
        let mut config = Config { kills: vec!["3@step=1".parse().unwrap()], ..Config::rough(seed, 5) };
        config.faults.explicit = vec![second];
        let protection = Protection::new("neighbor:2".parse().unwrap(), Interval::Steps(3));
        let outcome = run(config, &protection);
        let decided = |event: &&ArbiterEvent| matches!(event, ArbiterEvent::Decided { .. });
        again += u64::from(checker::launcher(&outcome).filter(decided).count() == 3);
        check(seed, &outcome).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    assert!(again > 100, "the second loss comes after the first repair, {again} times only");
}

#[test]
fn planted_a_rank_that_commits_before_the_vote_is_caught() {
    finds(COMMITS_EARLY, |seed| check(seed, &simulate(seed, COMMITS_EARLY)));
}

#[test]
fn planted_a_rank_that_forgets_what_it_has_staged_is_caught() {
    finds(FORGETS_STAGED, |seed| check(seed, &simulate(seed, FORGETS_STAGED)));
}

#[test]
fn planted_a_rank_that_keeps_a_commit_from_its_successor_is_caught() {
    finds(KEEPS_COMMIT_TO_ITSELF, |seed| check_kept(seed, KEEPS_COMMIT_TO_ITSELF));
}
