//! Memory that was damaged behind the back of the protocol: it is found by its hash and counts as lost, so that a
//! wrong answer is never built from it.

use std::time::Duration;

use ft_checkpoint::checkpointer::{DAMAGED_BLOCK, DAMAGED_COPY, DAMAGED_ON_THE_WAY, DAMAGED_SHARD, ROTS};
use ft_checkpoint::resilient::RankReport;
use ft_checkpoint::{
    Checkpoints, Field, Flow, Interval, Program, Protect, ProtectError, Protection, StatePart, Walk,
};
use ft_comm::{CommError, World};
use ft_proto::planted;
use ft_sim::{self as sim, Config, Faults};

use super::checker;
use super::commit::{Numbers, Recurrence, answer};

const RANKS: usize = 4;

/// The recurrence, with damage in the memory of one rank from some step on.
#[derive(Clone, Copy)]
struct Damaged {
    rank: usize,
    how: &'static str,
    /// Which bit.
    at: u64,
}

impl Program for Damaged {
    type State = Numbers;
    type Error = CommError;

    fn init(&mut self, world: &World) -> Result<Numbers, CommError> {
        Recurrence.init(world)
    }

    fn step(&mut self, state: &mut Numbers, world: &World, number: u64) -> Result<Flow, CommError> {
        let damaged = world.rank() == self.rank && world.generation() == 0 && number > 5;
        planted::plant_at(if damaged { self.how } else { "" }, self.at);
        Recurrence.step(state, world, number)
    }

    fn output(&mut self, state: &mut Numbers, world: &World) -> Result<Vec<u8>, CommError> {
        Recurrence.output(state, world)
    }
}

/// Rank 3 is lost in step 9 while the memory of a rank is damaged; the status of the job, and its answers.
fn run(scheme: &str, damage: Damaged) -> (i32, String, Option<Vec<Vec<u8>>>) {
    let protection = Protection::new(scheme.parse().expect("a scheme"), Interval::Steps(3));
    let kills = vec!["3@step=9".parse().expect("a spec")];
    let outcome = sim::run(Config { kills, ..Config::calm(RANKS) }, |world| {
        ft_checkpoint::run(world, protection.clone(), &mut { damage })
            .map(|_| ())
            .map_err(|error| error.to_string())
    });
    let (code, message) = checker::status(&outcome).expect("it ended");
    let read = |bytes: &Vec<u8>| RankReport::read(bytes).expect("a report").output;
    (code, message.to_owned(), checker::outputs(&outcome).map(|all| all.iter().map(read).collect()))
}

/// The recurrence, in which a bit of what rank 1 holds flips in step 5, once.
struct Rotting(u64);

impl Program for Rotting {
    type State = Numbers;
    type Error = CommError;

    fn init(&mut self, world: &World) -> Result<Numbers, CommError> {
        Recurrence.init(world)
    }

    fn step(&mut self, state: &mut Numbers, world: &World, number: u64) -> Result<Flow, CommError> {
        if number == 5 && world.rank() == 1 && world.generation() == 0 {
            planted::plant_at(ROTS, self.0);
        }
        Recurrence.step(state, world, number)
    }

    fn output(&mut self, state: &mut Numbers, world: &World) -> Result<Vec<u8>, CommError> {
        Recurrence.output(state, world)
    }
}

/// A state that another program describes in another way.
#[derive(Default)]
struct Counter(u64);

const OTHER_STATE: &str = "another state";

impl Protect for Counter {
    fn walk<W: Walk>(&mut self, part: StatePart, walk: &mut W) -> Result<(), ProtectError> {
        if part == StatePart::Variable { Field::walk(&mut self.0, walk) } else { Ok(()) }
    }

    fn describe(text: &mut String) {
        *text += if planted::has(OTHER_STATE) { "counter: i64" } else { "counter: u64" };
    }
}

struct Count;

impl Program for Count {
    type State = Counter;
    type Error = CommError;

    fn init(&mut self, _: &World) -> Result<Counter, CommError> {
        Ok(Counter(0))
    }

    fn step(&mut self, counter: &mut Counter, world: &World, number: u64) -> Result<Flow, CommError> {
        world.comm().barrier()?;
        counter.0 += 1;
        Ok(if number == 12 { Flow::Done } else { Flow::Continue })
    }
}

#[test]
fn a_replacement_with_another_state_ends_the_job() {
    for (other, due) in [(false, 0), (true, 1)] {
        let protection = Protection::new("xor".parse().expect("a scheme"), Interval::Steps(3));
        let kills = vec!["2@step=9".parse().expect("a spec")];
        let outcome = sim::run(Config { kills, ..Config::calm(RANKS) }, |world| {
            planted::plant(if other && world.is_replacement() { OTHER_STATE } else { "" });
            ft_checkpoint::run(world, protection.clone(), &mut Count)
                .map(|_| ())
                .map_err(|error| error.to_string())
        });
        let (code, message) = checker::status(&outcome).expect("it ended");
        assert_eq!(code, due, "{message}");
        assert_eq!(message.contains("taken of another state"), other, "{message}");
    }
}

#[test]
fn damage_within_the_tolerance_is_repaired() {
    for how in [DAMAGED_SHARD, DAMAGED_BLOCK] {
        for rank in 0..3 {
            let (code, message, answers) = run("rs:2+2", Damaged { rank, how, at: 0 });
            assert_eq!(code, 0, "{how} of rank {rank}: {message}");
            assert_eq!(answers, Some(answer(RANKS)), "{how} of rank {rank}");
        }
    }
}

#[test]
fn damage_beyond_the_tolerance_ends_the_job() {
    let mut found = 0;
    for how in [DAMAGED_SHARD, DAMAGED_BLOCK] {
        for rank in 0..3 {
            // Rank 1 has an empty state, so there is no shard of it to damage.
            let (code, message, answers) = run("xor", Damaged { rank, how, at: 0 });
            match code {
                3 => {
                    assert!(message.contains(&format!("ranks {rank} and 3")), "{message}");
                    found += 1;
                }
                _ => assert_eq!((code, answers), (0, Some(answer(RANKS))), "{how} of rank {rank}: {message}"),
            }
        }
    }
    assert!(found >= 4, "the damage was seen {found} times only");
}

/// A survivor's data, copy or parity has a flipped bit: what is built from it is right, or nothing is.
#[test]
fn of_a_thousand_flipped_bits_none_gets_into_an_answer() {
    let expected = answer(RANKS);
    let (mut right, mut refused) = (0, 0);
    for at in 0..1000u64 {
        let scheme = ["neighbor", "neighbor:2", "xor", "rs:2+2", "rs:1+3"][at as usize % 5];
        let how = [DAMAGED_SHARD, DAMAGED_BLOCK][at as usize / 5 % 2];
        let damage =
            Damaged { rank: at as usize / 10 % 3, how, at: at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20 };
        let (code, message, answers) = run(scheme, damage);
        match code {
            0 => {
                assert_eq!(answers.as_ref(), Some(&expected), "{scheme}, {how}, {}", damage.at);
                right += 1;
            }
            _ => {
                assert_eq!(code, 3, "{scheme}, {how}, {}: {message}", damage.at);
                refused += 1;
            }
        }
    }
    // With one copy or parity block there is nothing left to put in the place of what is damaged.
    assert!(right > 600 && refused > 100, "{right} right, {refused} refused");
}

/// Two ranks of four are lost in the step after the checkpoint that would have told of the damage; its vote does not pass any
/// more, so all go back to the one that is damaged.
#[test]
fn a_scrub_mends_what_a_later_loss_needs() {
    for scrub in [false, true] {
        let mut refused = 0;
        for at in 0..40u64 {
            let protection =
                Protection { scrub, ..Protection::new("rs:2+2".parse().unwrap(), Interval::Steps(3)) };
            let kills = vec!["2,3@checkpoint=3/vote".parse().expect("a spec")];
            let outcome = sim::run(Config { kills, ..Config::calm(RANKS) }, |world| {
                ft_checkpoint::run(world, protection.clone(), &mut Rotting(at * 37))
                    .map(|_| ())
                    .map_err(|error| error.to_string())
            });
            let (code, message) = checker::status(&outcome).expect("it ended");
            if code == 0 {
                let reports = checker::outputs(&outcome).unwrap();
                let reports: Vec<_> = reports.iter().map(|bytes| RankReport::read(bytes).unwrap()).collect();
                let answers: Vec<_> = reports.iter().map(|report| report.output.clone()).collect();
                assert_eq!(answers, answer(RANKS), "{at}");
                // Without a scrub a restore finds it, if it comes upon it.
                let damaged = reports[1].stats.damaged;
                assert!(if scrub { damaged == 1 } else { damaged <= 1 }, "{at}: {damaged}");
            }
            assert!(code == 0 || code == 3, "bit {at}, scrub {scrub}: {message}");
            refused += u64::from(code == 3);
        }
        // Nobody needs the bits of a redundant block beyond the chunks of the lost.
        assert!(if scrub { refused == 0 } else { refused > 20 }, "scrub {scrub}: {refused} refused");
    }
}

/// A bit of a copy of rank 2 flips before redundancy is made of it, which then is of something else; once, or always from then on. Then a
/// rank is lost.
fn copied_badly(
    protection: &Protection,
    parity: usize,
    at: u64,
    always: bool,
) -> (i32, String, Vec<RankReport>) {
    let lost = [1, 2, 3][at as usize % 3];
    let kills = vec![format!("{lost}@step=8").parse().expect("a spec")];
    let outcome = sim::run(Config { kills, parity, ..Config::calm(RANKS) }, |world| {
        ft_checkpoint::run(world, protection.clone(), &mut Copied { at, always })
            .map(|_| ())
            .map_err(|error| error.to_string())
    });
    let (code, message) = checker::status(&outcome).expect("it ended");
    let outputs = checker::outputs(&outcome).into_iter().flatten().take(RANKS);
    (code, message.to_owned(), outputs.map(|bytes| RankReport::read(bytes).unwrap()).collect())
}

struct Copied {
    at: u64,
    always: bool,
}

impl Program for Copied {
    type State = CopiedBadly;
    type Error = CommError;

    fn init(&mut self, world: &World) -> Result<CopiedBadly, CommError> {
        Ok(CopiedBadly { numbers: Recurrence.init(world)?, damage: None })
    }

    fn step(&mut self, state: &mut CopiedBadly, world: &World, number: u64) -> Result<Flow, CommError> {
        if number == 6 && world.rank() == 2 && world.generation() == 0 {
            planted::plant_at(DAMAGED_COPY, self.at);
            state.damage = self.always.then_some(self.at);
        }
        Recurrence.step(&mut state.numbers, world, number)
    }

    fn output(&mut self, state: &mut CopiedBadly, world: &World) -> Result<Vec<u8>, CommError> {
        Recurrence.output(&mut state.numbers, world)
    }
}

/// Each of its copies is damaged at this bit, if there is one.
#[derive(Default)]
struct CopiedBadly {
    numbers: Numbers,
    damage: Option<u64>,
}

impl Protect for CopiedBadly {
    fn walk<W: Walk>(&mut self, part: StatePart, walk: &mut W) -> Result<(), ProtectError> {
        if let Some(at) = self.damage {
            planted::plant_at(DAMAGED_COPY, at);
        }
        self.numbers.walk(part, walk)
    }
}

#[test]
fn a_copy_that_is_damaged_before_it_is_protected_is_made_again() {
    for (scheme, parity) in [("neighbor", 0), ("xor", 0), ("rs:2+2", 0), ("xor", 1)] {
        for (scrub, checkpoints) in
            [(true, Checkpoints::Blocking), (true, Checkpoints::Asynchronous), (false, Checkpoints::Blocking)]
        {
            let of = Protection::new(scheme.parse().unwrap(), Interval::Steps(3));
            let protection = Protection { scrub, checkpoints, ..of };
            let mut refused = 0;
            for at in 0..30 {
                let (code, message, reports) = copied_badly(&protection, parity, 37 * at, false);
                if code == 0 {
                    let answers: Vec<_> = reports.iter().map(|report| report.output.clone()).collect();
                    assert_eq!(answers, answer(RANKS), "{scheme} {scrub} {at}");
                }
                assert!(code == 0 || (code == 3 && !scrub), "{scheme} {scrub} {at}: {message}");
                refused += u64::from(code == 3);
            }
            assert_eq!(refused > 5, !scrub, "{scheme} {scrub}: {refused} refused");
        }
    }
    // It is not tried for ever.
    let protection =
        Protection { scrub: true, ..Protection::new("xor".parse().unwrap(), Interval::Steps(3)) };
    let (code, message, _) = copied_badly(&protection, 0, 5, true);
    assert!(code == 1 && message.contains("the memory of a host is broken"), "{code} {message}");
}

/// The recurrence, in which a bit of a redundant block of every checkpoint flips on its way to one rank, before its checksum is taken.
struct OnTheWay {
    rank: usize,
    at: u64,
}

impl Program for OnTheWay {
    type State = Numbers;
    type Error = CommError;

    fn init(&mut self, world: &World) -> Result<Numbers, CommError> {
        let flips = world.rank() == self.rank && world.generation() == 0;
        planted::plant_at(if flips { DAMAGED_ON_THE_WAY } else { "" }, self.at);
        Recurrence.init(world)
    }

    fn step(&mut self, state: &mut Numbers, world: &World, number: u64) -> Result<Flow, CommError> {
        Recurrence.step(state, world, number)
    }

    fn output(&mut self, state: &mut Numbers, world: &World) -> Result<Vec<u8>, CommError> {
        Recurrence.output(state, world)
    }
}

/// Nobody can see the damage before a shard is rebuilt from it. As long as another block is whole, the answer is right.
#[test]
fn redundancy_that_was_damaged_on_its_way_costs_nothing_while_another_block_is_whole() {
    for scheme in ["rs:2+2", "neighbor:2", "rs:1+3"] {
        let mut found = 0;
        for at in 0..60u64 {
            let rank = at as usize % 3;
            let protection = Protection::new(scheme.parse().expect("a scheme"), Interval::Steps(3));
            let kills = vec!["3@step=9".parse().expect("a spec")];
            let outcome = sim::run(Config { kills, ..Config::calm(RANKS) }, |world| {
                let mut program = OnTheWay { rank, at: at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20 };
                ft_checkpoint::run(world, protection.clone(), &mut program)
                    .map(|_| ())
                    .map_err(|error| error.to_string())
            });
            let (code, message) = checker::status(&outcome).expect("it ended");
            assert_eq!(code, 0, "{scheme}, rank {rank}, {at}: {message}");
            let reports = checker::outputs(&outcome).unwrap();
            let reports: Vec<_> = reports.iter().map(|bytes| RankReport::read(bytes).unwrap()).collect();
            let answers: Vec<_> = reports.iter().map(|report| report.output.clone()).collect();
            assert_eq!(answers, answer(RANKS), "{scheme}, rank {rank}, {at}");
            found += reports[rank].stats.damaged;
        }
        // Other bits are of blocks, or of their ends, that nobody needs.
        assert!(found > 0, "{scheme}: never found");
    }
}

/// With one redundant block there is nothing to put in its place, and the job says so.
#[test]
fn redundancy_that_was_damaged_on_its_way_gets_into_no_answer() {
    let (mut right, mut refused) = (0, 0);
    for at in 0..60u64 {
        let protection = Protection::new("xor".parse().expect("a scheme"), Interval::Steps(3));
        let kills = vec!["3@step=9".parse().expect("a spec")];
        let outcome = sim::run(Config { kills, ..Config::calm(RANKS) }, |world| {
            ft_checkpoint::run(
                world,
                protection.clone(),
                &mut OnTheWay { rank: at as usize % 3, at: at * 37 },
            )
            .map(|_| ())
            .map_err(|error| error.to_string())
        });
        let (code, message) = checker::status(&outcome).expect("it ended");
        if code == 0 {
            let read = |bytes: &Vec<u8>| RankReport::read(bytes).unwrap().output;
            let answers: Vec<_> = checker::outputs(&outcome).unwrap().iter().map(read).collect();
            assert_eq!(answers, answer(RANKS), "{at}");
            right += 1;
        } else {
            assert_eq!(code, 3, "{at}: {message}");
            assert!(message.starts_with("the state of rank 3 cannot be rebuilt"), "{at}: {message}");
            refused += 1;
        }
    }
    assert!(refused > 0, "{right} right, {refused} refused");
}

/// Ranks die at any moment, in the restore that tries other blocks, too: the answer is right, or the job says that there is none.
#[test]
fn deaths_in_a_restore_that_tries_other_blocks_do_no_harm() {
    let (mut right, mut refused) = (0, 0);
    for seed in super::seeds(300) {
        let protection = Protection::new("rs:2+2".parse().expect("a scheme"), Interval::Steps(2));
        let faults = Faults { together_max: 1, ..Faults::kills(3, Duration::from_millis(30)) };
        let outcome = sim::run(Config { faults, ..Config::rough(seed, RANKS) }, |world| {
            let mut program = OnTheWay { rank: seed as usize % RANKS, at: seed * 37 };
            ft_checkpoint::run(world, protection.clone(), &mut program)
                .map(|_| ())
                .map_err(|error| error.to_string())
        });
        let (code, message) = checker::status(&outcome).unwrap_or_else(|text| panic!("seed {seed}: {text}"));
        if code == 0 {
            let read = |bytes: &Vec<u8>| RankReport::read(bytes).unwrap().output;
            let answers: Vec<_> = checker::outputs(&outcome).unwrap().iter().map(read).collect();
            assert_eq!(answers, answer(RANKS), "seed {seed}");
            right += 1;
        } else {
            assert_eq!(code, 3, "seed {seed}: {message}");
            refused += 1;
        }
    }
    println!("{right} right, {refused} refused");
    assert!(right > refused, "{right} right, {refused} refused");
}
