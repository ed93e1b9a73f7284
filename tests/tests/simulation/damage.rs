//! Memory that was damaged behind the back of the protocol: it is found by its hash and counts as lost, so that a
//! wrong answer is never built from it.

use ft_checkpoint::checkpointer::{DAMAGED_BLOCK, DAMAGED_SHARD};
use ft_checkpoint::resilient::RankReport;
use ft_checkpoint::{Field, Flow, Interval, Part, Program, Protect, ProtectError, Protection, Walk};
use ft_comm::sim::{self, Config};
use ft_comm::{CommError, World, planted};

use super::checker;
use super::commit::{Numbers, Recurrence, answer};

const RANKS: usize = 4;

/// The recurrence, with damage in the memory of one rank from some step on.
struct Damaged {
    rank: usize,
    how: &'static str,
}

impl Program for Damaged {
    type State = Numbers;
    type Error = CommError;

    fn init(&mut self, world: &World) -> Result<Numbers, CommError> {
        Recurrence.init(world)
    }

    fn step(&mut self, state: &mut Numbers, world: &World, number: u64) -> Result<Flow, CommError> {
        let damaged = world.rank() == self.rank && world.generation() == 0 && number > 5;
        planted::plant(if damaged { self.how } else { "" });
        Recurrence.step(state, world, number)
    }

    fn output(&mut self, state: &mut Numbers, world: &World) -> Result<Vec<u8>, CommError> {
        Recurrence.output(state, world)
    }
}

/// Rank 3 is lost in step 9 while the memory of `rank` is damaged; the status of the job, and its answers.
fn run(scheme: &str, rank: usize, how: &'static str) -> (i32, String, Option<Vec<Vec<u8>>>) {
    let protection = Protection { scheme: scheme.parse().expect("a scheme"), interval: Interval::Steps(3) };
    let kills = vec!["3@step=9".parse().expect("a spec")];
    let outcome = sim::run(Config { kills, ..Config::calm(RANKS) }, |world| {
        ft_checkpoint::run(world, protection.clone(), &mut Damaged { rank, how })
            .map(|_| ())
            .map_err(|error| error.to_string())
    });
    let (code, message) = checker::status(&outcome).expect("it ended");
    let read = |bytes: &Vec<u8>| RankReport::read(bytes).expect("a report").output;
    (code, message.to_owned(), checker::outputs(&outcome).map(|all| all.iter().map(read).collect()))
}

/// A state that another program describes in another way.
#[derive(Default)]
struct Counter(u64);

const OTHER_STATE: &str = "another state";

impl Protect for Counter {
    fn walk<W: Walk>(&mut self, part: Part, walk: &mut W) -> Result<(), ProtectError> {
        if part == Part::Variable { Field::walk(&mut self.0, walk) } else { Ok(()) }
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
        let protection =
            Protection { scheme: "xor".parse().expect("a scheme"), interval: Interval::Steps(3) };
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
            let (code, message, answers) = run("rs:2+2", rank, how);
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
            let (code, message, answers) = run("xor", rank, how);
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
