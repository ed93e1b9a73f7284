//! Checkpoints that send what has changed alone: random histories of states of some pages, on the full stack.

use std::cell::Cell;
use std::time::Duration;

use ft_checkpoint::checkpointer::{ROTS, TRUSTS_OLD_COPY};
use ft_checkpoint::resilient::RankReport;
use ft_checkpoint::{
    Field, Flow, Interval, Program, Protect, ProtectError, Protection, StatePart, Tracked, Walk,
};
use ft_comm::{CommError, Op, World};
use ft_proto::planted;
use ft_sim::{self as sim, Config, Faults};

use super::commit::{check_end, cuts, cuts_forever, job, of_either_kind};
use super::{Choices, Course, SEEDS, checker, finds_from, for_seeds, seeds};

const STEPS: u64 = 16;
/// Words of a page.
const PAGE: u64 = 512;

/// Words of a block of an array that takes down what is written of it.
const BLOCK: u64 = 8 << 10;

/// The state of one rank: the sum of the last step, and two tables of which a step changes a little, all, or the length; one of them takes
/// down what is written of it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Table {
    history: u64,
    sum: u64,
    words: Vec<u64>,
    told: Tracked<u64>,
}

impl Protect for Table {
    fn walk<W: Walk>(&mut self, part: StatePart, walk: &mut W) -> Result<(), ProtectError> {
        match part {
            StatePart::Constant => Field::walk(&mut self.history, walk),
            StatePart::Variable => {
                Field::walk(&mut self.sum, walk)?;
                Field::walk(&mut self.words, walk)?;
                Field::walk(&mut self.told, walk)
            }
        }
    }
}

impl Table {
    fn new(history: u64, rank: usize) -> Self {
        let pages = [8, 0, 16, 12, 9][rank % 5];
        let words = (0..pages * PAGE + 37 * pages).map(|at| (rank as u64 + 1) << 32 | at).collect();
        let told: Vec<u64> = (0..[2 * BLOCK + 99, 0, 3 * BLOCK, 50, BLOCK][rank % 5]).collect();
        let history = Choices(history ^ rank as u64).below(u64::MAX);
        Self { history, sum: 0, words, told: Tracked::from(told) }
    }

    fn share(&self) -> u64 {
        let words = self.words.iter().chain(self.told.iter());
        words.fold(self.sum, |share, word| share.rotate_left(5).wrapping_add(*word))
    }

    fn advance(&mut self, sum: u64, number: u64) {
        self.sum = sum;
        let mut choices = Choices(self.history ^ number << 32);
        self.advance_told(sum, &mut choices);
        match choices.below(10) {
            0 => self.words.iter_mut().for_each(|word| *word = word.wrapping_mul(5).wrapping_add(sum)),
            1 => self.words.resize((choices.below(20) * PAGE / 2) as usize, sum),
            _ => {
                for _ in 0..choices.below(5) {
                    let (start, count) = (choices.below(16 * PAGE), 1 + choices.below(PAGE));
                    let words = self.words.iter_mut().skip(start as usize).take(count as usize);
                    words.for_each(|word| *word ^= sum | 1);
                }
            }
        }
    }

    fn advance_told(&mut self, sum: u64, choices: &mut Choices) {
        let len = self.told.len() as u64;
        match choices.below(12) {
            0 => self.told.write_all().fill(sum),
            1 => self.told = Tracked::from(vec![sum; choices.below(3 * BLOCK) as usize]),
            2 => self.told = self.told.clone(),
            _ if len > 0 => {
                for _ in 0..choices.below(3) {
                    let (one, count) = (choices.below(len), choices.below(PAGE));
                    let range = one as usize..(one + count).min(len) as usize;
                    self.told.write(range).iter_mut().for_each(|word| *word ^= sum | 1);
                }
            }
            _ => {}
        }
    }

    fn bytes(&self) -> Vec<u8> {
        [self.share(), self.words.len() as u64].iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// The answer, by rank, without any message.
fn answer(history: u64, ranks: usize) -> Vec<Vec<u8>> {
    let mut all: Vec<Table> = (0..ranks).map(|rank| Table::new(history, rank)).collect();
    for number in 1..=STEPS {
        let sum = all.iter().fold(0u64, |sum, table| sum.wrapping_add(table.share()));
        all.iter_mut().for_each(|table| table.advance(sum, number));
    }
    all.iter().map(Table::bytes).collect()
}

/// A history, and what is planted on a rank in a step of the first generation.
struct History {
    history: u64,
    planted: Vec<(usize, u64, &'static str, u64)>,
}

impl Program for History {
    type State = Table;
    type Error = CommError;

    fn init(&mut self, world: &World) -> Result<Table, CommError> {
        world.comm().barrier()?;
        Ok(Table::new(self.history, world.rank()))
    }

    fn step(&mut self, table: &mut Table, world: &World, number: u64) -> Result<Flow, CommError> {
        for (rank, step, what, at) in &self.planted {
            if (*rank, *step, 0) == (world.rank(), number, world.generation()) {
                planted::plant_at(what, *at);
            }
        }
        let mut sum = [table.share()];
        world.comm().allreduce(&mut sum, Op::Sum)?;
        table.advance(sum[0], number);
        Ok(if number == STEPS { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, table: &mut Table, _: &World) -> Result<Vec<u8>, CommError> {
        Ok(table.bytes())
    }
}

type Outcome = sim::SimOutcome<Result<(), String>>;

fn run(
    config: Config,
    protection: Protection,
    history: u64,
    planted: &[(usize, u64, &'static str, u64)],
) -> Outcome {
    let protection = Protection { incremental: true, ..protection };
    sim::run(config, |world| {
        let mut program = History { history, planted: planted.to_vec() };
        ft_checkpoint::run(world, protection.clone(), &mut program)
            .map(|_| ())
            .map_err(|error| error.to_string())
    })
}

/// Whether all answers are right, and how many checkpoints sent what had changed alone.
fn answers(outcome: &Outcome, history: u64, ranks: usize) -> Result<u32, String> {
    let outputs = checker::outputs(outcome).ok_or("no outputs")?;
    let reports: Vec<RankReport> = outputs[..ranks]
        .iter()
        .map(|bytes| RankReport::read(bytes).ok_or("no report"))
        .collect::<Result<_, _>>()?;
    let due = answer(history, ranks);
    match (0..ranks).find(|rank| reports[*rank].output != due[*rank]) {
        Some(rank) => Err(format!("rank {rank} has a wrong answer")),
        None => Ok(reports.iter().map(|report| report.stats.increments).max().unwrap_or(0)),
    }
}

#[test]
fn restored_states_are_those_of_whole_checkpoints() {
    let increments = Cell::new(0);
    for_seeds("restored_states_are", &[Course::Undisturbed, Course::Repaired], |seed| {
        let (scheme, ranks, parity) = job(seed);
        let mut choices = Choices(seed);
        let interval = Interval::Steps(1 + choices.below(3));
        let protection =
            Protection { checkpoints: of_either_kind(seed), ..Protection::new(scheme, interval) };
        let estates = (seed / 5 % 3) as u32;
        let mut config = Config { parity, estates, ..Config::rough(seed, ranks) };
        config.faults = Faults {
            cuts: cuts(seed),
            cuts_forever: cuts_forever(seed),
            together_max: 1 + choices.below(3) as usize,
            ..Faults::kills(1 + choices.below(4) as u32, Duration::from_millis(60))
        };
        let outcome = run(config, protection, seed, &[]);
        let course = check_end(seed, &outcome)?;
        if let Course::Undisturbed | Course::Repaired = course {
            increments.set(increments.get() + answers(&outcome, seed, ranks)?);
        }
        Ok(course)
    });
    // One seed alone may have none.
    assert!(
        increments.get() > SEEDS as u32 / 2 || (seeds(SEEDS).len() as u64) < SEEDS,
        "{}",
        increments.get()
    );
}

/// A bit flips in what rank 1 holds of a checkpoint that a later one renews; then a rank is lost.
fn renewed_from_damage(seed: u64, bug: &'static str) -> Result<Course, String> {
    let mut choices = Choices(seed);
    let lost = choices.below(4);
    let kills = vec![format!("{lost}@step=10").parse().expect("a spec")];
    let protection = Protection::new("rs:2+2".parse().unwrap(), Interval::Steps(2));
    let planted = [(1, 5, ROTS, choices.below(1 << 40)), (1, 7, bug, 0)];
    let outcome = run(Config { kills, ..Config::calm(4) }, protection, seed, &planted);
    match checker::status(&outcome)? {
        (0, _) => answers(&outcome, seed, 4).map(|_| checker::course(&outcome)),
        (code, message) => Err(format!("ended with {code}: {message}")),
    }
}

#[test]
fn damage_of_what_is_renewed_spoils_nothing() {
    for_seeds("damage_of_what_is_renewed", &[Course::Repaired], |seed| renewed_from_damage(seed, ""));
}

#[test]
fn planted_a_rank_that_trusts_its_old_copy_is_caught() {
    finds_from(600, TRUSTS_OLD_COPY, |seed| renewed_from_damage(seed, TRUSTS_OLD_COPY));
}
