//! A bag of tasks through failures: every task is done with the right outcome, whoever dies when, whether a lost
//! task starts again or goes on in the middle.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use ft_checkpoint::bag::Outcome as RunOutcome;
use ft_checkpoint::resilient::RankReport;
use ft_checkpoint::{Bag, Flow, Interval, Program, Protect, Protection, RestorePolicy, Worker};
use ft_comm::{CommError, OnFailure, Rank, World};
use ft_sim::{self as sim, Config, Faults};

use super::commit::of_any_kind;
use super::{Choices, Course, checker, for_seeds};

const TASKS: usize = 11;
const STEPS: u64 = 5;

/// What task `task` comes to after `steps` steps.
fn value(task: usize, steps: u64) -> u64 {
    (0..steps)
        .fold(task as u64 + 1, |value, _| value.wrapping_mul(6_364_136_223_846_793_005).rotate_left(7) + 1)
}

#[derive(Default, Protect)]
struct State {
    #[protect(nested)]
    worker: Worker,
    /// The task that `value` belongs to, from 1, and how far it is.
    at: u64,
    value: u64,
}

struct Bagged<'a> {
    resumes: bool,
    /// What was written for each task, and how often.
    written: &'a Mutex<BTreeMap<usize, Vec<u64>>>,
}

impl Program for Bagged<'_> {
    type State = State;
    type Error = CommError;
    const RESTORE: RestorePolicy = RestorePolicy::LostOnly;
    const SHRINKS: bool = true;

    fn init(&mut self, world: &World) -> Result<State, CommError> {
        Ok(State { worker: Worker::new(TASKS, world.rank(), world.size()), ..State::default() })
    }

    fn reconcile(&mut self, state: &mut State, world: &World, lost: &[Rank]) -> Result<u64, CommError> {
        if lost.contains(&world.rank()) && !self.resumes {
            state.at = 0;
        }
        state.worker.reconcile(world.comm(), lost, self.resumes)
    }

    fn step(&mut self, state: &mut State, world: &World, number: u64) -> Result<Flow, CommError> {
        // Some ranks are faster, some finish two tasks in one step.
        for _ in 0..[2, 3, 11][(world.rank() + number as usize) % 3] {
            let Some(task) = state.worker.task() else { break };
            if state.at != task as u64 + 1 {
                assert_eq!(state.worker.progress(), 0, "the rank has nothing of this task");
                (state.at, state.value) = (task as u64 + 1, value(task, 0));
            }
            state.value = state.value.wrapping_mul(6_364_136_223_846_793_005).rotate_left(7) + 1;
            state.worker.advance(1);
            if state.worker.progress() == STEPS {
                self.written.lock().unwrap().entry(task).or_default().push(state.value);
                state.worker.finish();
                state.at = 0;
            }
        }
        Ok(if state.worker.meet(world.comm())? { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, state: &mut State, _: &World) -> Result<Vec<u8>, CommError> {
        let runs = state.worker.bag().runs();
        let all_done = runs.iter().all(|runs| {
            let done = runs.iter().filter(|run| run.outcome == RunOutcome::Done).count();
            done == 1 && runs.iter().all(|run| run.outcome != RunOutcome::Running)
        });
        Ok(vec![u8::from(all_done && Bag::is_empty(state.worker.bag()))])
    }
}

fn check(seed: u64, on_failure: OnFailure) -> Result<Course, String> {
    let mut choices = Choices(seed);
    let (scheme, ranks) =
        [("xor", 3), ("rs:2+2", 4), ("neighbor:1", 2), ("rs:3+2", 5)][choices.below(4) as usize];
    let interval = Interval::Steps(1 + choices.below(3));
    let protection = of_any_kind(seed, Protection::new(scheme.parse().expect("a scheme"), interval));
    let resumes = choices.below(2) == 0;
    let faults = Faults::kills(1 + choices.below(3) as u32, Duration::from_millis(40));
    let written = Mutex::new(BTreeMap::new());
    let outcome = sim::run(Config { faults, on_failure, ..Config::rough(seed, ranks) }, |world| {
        let mut program = Bagged { resumes, written: &written };
        ft_checkpoint::run(world, protection.clone(), &mut program)
            .map(|_| ())
            .map_err(|error| error.to_string())
    });
    checker::memberships(&outcome)?;
    match checker::status(&outcome)? {
        (0, _) => {}
        (3, _) if on_failure == OnFailure::Rebuild => return Ok(Course::BeyondTolerance),
        (3, message) if message.contains("no rank that computes is left") => {
            return Ok(Course::BeyondTolerance);
        }
        (code, message) => return Err(format!("ended with {code}: {message}")),
    }
    let written = written.into_inner().unwrap();
    for task in 0..TASKS {
        let values = written.get(&task).ok_or(format!("task {task} was never done"))?;
        if values.iter().any(|written| *written != value(task, STEPS)) {
            return Err(format!("task {task} has a wrong outcome"));
        }
    }
    let outputs = checker::outputs(&outcome).ok_or("no outputs")?;
    let agreed = |bytes: &Vec<u8>| RankReport::read(bytes).is_some_and(|report| report.output == [1]);
    match outputs.iter().position(|bytes| !agreed(bytes)) {
        Some(rank) => Err(format!("rank {rank} has another account of the tasks")),
        None => Ok(checker::course(&outcome)),
    }
}

#[test]
fn every_task_is_done_whoever_dies() {
    let courses = [Course::Undisturbed, Course::Repaired];
    for_seeds("every_task_is_done", &courses, |seed| check(seed, OnFailure::Rebuild));
}

/// What the survivors of a bag need is in the ledger, which all have: nothing is beyond its tolerance.
#[test]
fn survivors_do_every_task_whoever_dies_and_is_not_replaced() {
    let courses = [Course::Undisturbed, Course::Repaired];
    for_seeds("survivors_do_every_task", &courses, |seed| check(seed, OnFailure::Shrink));
}

/// Works, meeting after every step or two, until all is done or `meetings` are over; notes who has done which task.
fn work(
    worker: &mut Worker,
    world: &World,
    meetings: usize,
    done: &Mutex<Vec<usize>>,
) -> Result<(), CommError> {
    for meeting in 0..meetings {
        for _ in 0..[2, 1, 3][(world.rank() + meeting) % 3] {
            let Some(task) = worker.task() else { break };
            worker.advance(1);
            if worker.progress() == STEPS {
                done.lock().unwrap().push(task);
                worker.finish();
            }
        }
        if worker.meet(world.comm())? {
            break;
        }
    }
    Ok(())
}

/// A job of other ranks takes up what one has left, as a whole: with fewer ranks, as many, and newcomers, of which each has a number of
/// its own. Without failures each task is done once, whoever had begun it.
#[test]
fn a_bag_that_was_left_is_taken_up_by_any_number_of_ranks() {
    for_seeds("a_bag_that_was_left", &[Course::Undisturbed], |seed| {
        let mut choices = Choices(seed);
        let [then, now] = [1 + choices.below(4) as usize, 1 + choices.below(7) as usize];
        let (meetings, resumes) = (choices.below(6) as usize, choices.below(2) == 0);
        let done = Mutex::new(vec![]);
        let left = sim::run(Config::rough(seed, then), |mut world| {
            let mut worker = Worker::new(TASKS, world.rank(), world.size());
            work(&mut worker, &world, meetings, &done)?;
            world.finalize(vec![]).map(|()| worker)
        });
        let left: Vec<Option<&Worker>> = (0..then).map(|rank| left.result(rank)?.as_ref().ok()).collect();
        let outcome = sim::run(Config::rough(seed, now), |mut world| {
            let own = left.get(world.rank()).copied().flatten().cloned();
            let mut worker = Worker::take_up(own, world.comm())?;
            worker.reconcile(world.comm(), &[], resumes)?;
            work(&mut worker, &world, usize::MAX, &done)?;
            world.finalize(vec![]).map(|()| worker.bag().is_empty())
        });
        if (0..now).any(|rank| !matches!(outcome.result(rank), Some(Ok(true)))) {
            return Err(format!("{then} ranks, then {now}: {:?}", outcome.ending));
        }
        let mut done = done.into_inner().unwrap();
        done.sort_unstable();
        match done == (0..TASKS).collect::<Vec<_>>() {
            true => Ok(Course::Undisturbed),
            false => Err(format!("{then} ranks, then {now}: done were {done:?}")),
        }
    });
}
