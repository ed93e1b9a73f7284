//! Communicators that `rebuild` makes, where a lost rank makes them again by itself.

use std::cell::Cell;
use std::time::Duration;

use ft_checkpoint::{Flow, Interval, Job, Program, Protect, Protection};
use ft_comm::{CommError, Communicator, Op, World};
use ft_proto::planted;
use ft_sim::{self as sim, Config, Faults};

use super::{DRAIN, LOCAL, LOG, Mode, Outcome};
use crate::{Course, commit, finds, for_seeds};

const STEPS: u64 = 14;

/// Speaks on communicators that `rebuild` makes: of the ranks of equal parity, a copy of that, and
/// one of all ranks that a step makes now and then and keeps in the state.
#[derive(Default)]
struct Splitter {
    half: Option<Communicator>,
    copy: Option<Communicator>,
    /// Whether messages are under way at lines.
    crosses: bool,
}

#[derive(Debug, Default, Protect)]
struct Sums {
    all: u64,
    half: u64,
    ring: u64,
    #[protect(serde)]
    made: Option<ft_comm::CommunicatorRecord>,
}

impl Splitter {
    fn make(&mut self, world: &World) -> Result<(), CommError> {
        let half = world.comm().split(Some(world.rank() as u32 % 2), 0)?.expect("each rank has a color");
        self.copy = Some(half.dup()?);
        self.half = Some(half);
        Ok(())
    }

    /// What a rank has at the end.
    fn expected(rank: u64, size: u64) -> (u64, u64, u64) {
        let members: Vec<u64> = (0..size).filter(|other| other % 2 == rank % 2).collect();
        let at = members.iter().position(|other| *other == rank).unwrap();
        let left = members[(at + members.len() - 1) % members.len()];
        let terms = |ranks: &[u64]| -> u64 {
            (1..=STEPS).map(|step| ranks.iter().map(|rank| step * (rank + 1)).sum::<u64>()).sum()
        };
        let all: Vec<u64> = (0..size).collect();
        (terms(&all), terms(&members), terms(&[left]))
    }
}

impl Program for Splitter {
    type State = Sums;
    type Error = CommError;
    const ALONE: bool = true;

    fn init(&mut self, world: &World) -> Result<Sums, CommError> {
        self.make(world)?;
        Ok(Sums::default())
    }

    fn rebuild(&mut self, _: &mut Sums, world: &World) -> Result<(), CommError> {
        self.make(world)
    }

    fn step(&mut self, state: &mut Sums, world: &World, step: u64) -> Result<Flow, CommError> {
        let (half, copy) = (self.half.as_ref().expect("made"), self.copy.as_ref().expect("made"));
        let (me, size) = (half.rank(), half.size());
        let (left, right) = ((me + size - 1) % size, (me + 1) % size);
        let own = step * (world.rank() as u64 + 1);
        if step % 4 == 1 {
            state.made = Some(world.comm().dup()?.record());
        }
        let made = state.made.as_ref().expect("made by a step before");
        let made = world.communicator(made)?.expect("all ranks are in it");
        copy.send(&[own], right, 0)?;
        let came = match step {
            1 if self.crosses => 0,
            STEPS if self.crosses => {
                let mut words = [0; 2];
                copy.recv(&mut words[..1], left, 0)?;
                copy.recv(&mut words[1..], left, 0)?;
                words.iter().sum()
            }
            _ => {
                let mut word = [0];
                copy.recv(&mut word, left, 0)?;
                word[0]
            }
        };
        state.ring += came;
        let mut sum = [own];
        half.allreduce(&mut sum, Op::Sum)?;
        state.half += sum[0];
        let mut sum = [own];
        made.allreduce(&mut sum, Op::Sum)?;
        state.all += sum[0];
        Ok(if step == STEPS { Flow::Done } else { Flow::Continue })
    }
}

fn run(seed: u64, (lines, recovery): Mode, crosses: bool, bug: &'static str) -> Outcome {
    let (scheme, ranks, parity) = commit::job(seed);
    let interval = Interval::Steps(1 + seed % 4);
    let protection = Protection { lines, recovery, ..Protection::new(scheme, interval) };
    let mut config = Config { parity, bug, ..Config::rough(seed, ranks) };
    config.faults = Faults::kills(1 + (seed % 3) as u32, Duration::from_millis(60));
    sim::run(config, |world| {
        let told = |error: &dyn std::fmt::Display| error.to_string();
        let (rank, size) = (world.rank() as u64, world.size() as u64);
        let Some(job) = Job::start(world, protection.clone()).map_err(|error| told(&error))? else {
            return Ok(());
        };
        let sums =
            job.last(&mut Splitter { crosses, ..Splitter::default() }).map_err(|error| told(&error))?;
        let (came, expected) = ((sums.all, sums.half, sums.ring), Splitter::expected(rank, size));
        if came == expected { Ok(()) } else { Err(format!("wrong: {came:?}, not {expected:?}")) }
    })
}

fn check(seed: u64, mode: Mode, crosses: bool, bug: &'static str) -> Result<Course, String> {
    let outcome = run(seed, mode, crosses, bug);
    let wrong = outcome.finished.iter().find_map(|finished| match &finished.result {
        Ok(Err(why)) if why.starts_with("wrong") => Some(why.clone()),
        _ => None,
    });
    wrong.map_or_else(|| commit::check_end(seed, &outcome), Err)
}

const COURSES: &[Course] = &[Course::Undisturbed, Course::Repaired];

#[test]
fn a_communicator_made_in_rebuild_goes_on_where_only_the_lost_go_back() {
    for_seeds("a_communicator_made_in_rebuild", COURSES, |seed| check(seed, LOCAL, false, ""));
}

#[test]
fn messages_on_a_communicator_made_in_rebuild_cross_lines_where_only_the_lost_go_back() {
    for_seeds("messages_on_a_communicator_made_in_rebuild", COURSES, |seed| check(seed, LOCAL, true, ""));
}

#[test]
fn planted_communicators_that_are_new_where_a_lost_rank_repeats_itself_are_caught() {
    finds(planted::MAKES_NEW_COMMUNICATORS, |seed| {
        check(seed, LOCAL, false, planted::MAKES_NEW_COMMUNICATORS)
    });
}

#[test]
fn a_communicator_made_in_rebuild_serves_where_nothing_crosses_a_line() {
    for_seeds("a_communicator_made_in_rebuild_serves", COURSES, |seed| check(seed, DRAIN, false, ""));
}

/// Where all go back each makes a fresh communicator, at which nobody would receive what was under
/// way.
#[test]
fn messages_under_way_on_a_communicator_that_is_not_made_again_are_refused_by_name() {
    let refused = Cell::new(0);
    for_seeds("messages_under_way_on_a_communicator", &[Course::Repaired], |seed| {
        let outcome = run(seed, [DRAIN, LOG][seed as usize % 2], true, "");
        let says = |text: &str| {
            outcome
                .finished
                .iter()
                .any(|finished| matches!(&finished.result, Ok(Err(why)) if why.contains(text)))
        };
        if says("wrong") {
            return Err("a wrong sum".into());
        }
        if says("`rebuild` has not made it again") {
            refused.set(refused.get() + 1);
            return Ok(Course::Repaired);
        }
        commit::check_end(seed, &outcome)
    });
    assert!(refused.get() > 0, "nothing was under way in any run");
}
