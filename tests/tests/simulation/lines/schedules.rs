//! A program that has a schedule under way at the end of every step, so at every line.

use std::time::Duration;

use ft_checkpoint::resilient::RankReport;
use ft_checkpoint::{Flow, Interval, Program, Protect, Protection};
use ft_comm::{CollectiveRecord, CommError, ScheduleRequest, World};
use ft_sim::{self as sim, Config, Faults};

use super::random::shift;
use super::{COURSES, DRAIN, LOCAL, LOG, Mode, mix};
use crate::{Course, checker, commit, for_seeds};

const STEPS: u64 = 60;

#[derive(Debug, Default, Protect)]
struct State {
    word: u64,
    /// What the schedule under way was given, and its record.
    given: u64,
    #[protect(serde)]
    record: Option<CollectiveRecord>,
}

#[derive(Default)]
struct Always {
    request: Option<ScheduleRequest<Vec<u8>>>,
    is_back: bool,
}

impl Program for Always {
    type State = State;
    type Error = CommError;
    const ALONE: bool = true;

    fn init(&mut self, world: &World) -> Result<State, CommError> {
        Ok(State { word: mix(world.rank() as u64), ..State::default() })
    }

    fn rebuild(&mut self, _: &mut State, _: &World) -> Result<(), CommError> {
        *self = Self { request: None, is_back: true };
        Ok(())
    }

    fn step(&mut self, state: &mut State, world: &World, number: u64) -> Result<Flow, CommError> {
        let (comm, schedule) = (world.comm(), shift(world.comm(), 1));
        if std::mem::take(&mut self.is_back)
            && let Some(record) = &state.record
        {
            let (input, buffer) = (state.given.to_le_bytes().to_vec(), vec![0; 8]);
            self.request = Some(comm.start_schedule_again(record, &schedule, input, buffer)?);
        }
        if let Some(request) = self.request.take() {
            let (_, came) = request.wait()?;
            let came = u64::from_le_bytes(came.try_into().expect("a word"));
            (state.word, state.record) = (mix(state.word ^ came), None);
        }
        if number > STEPS {
            return Ok(Flow::Done);
        }
        state.given = mix(state.word ^ number);
        let request = comm.start_schedule(&schedule, state.given.to_le_bytes().to_vec(), vec![0; 8])?;
        state.record = Some(request.record()?);
        self.request = Some(request);
        Ok(Flow::Continue)
    }

    fn output(&mut self, state: &mut State, _: &World) -> Result<Vec<u8>, CommError> {
        Ok(state.word.to_le_bytes().to_vec())
    }
}

/// What all ranks have at the end, without a message.
fn answers(ranks: usize) -> Vec<u64> {
    let mut words: Vec<u64> = (0..ranks as u64).map(mix).collect();
    for number in 1..=STEPS {
        let given: Vec<u64> = words.iter().map(|word| mix(word ^ number)).collect();
        for (rank, word) in words.iter_mut().enumerate() {
            *word = mix(*word ^ mix(given[(rank + 2 * ranks - 2) % ranks]));
        }
    }
    words
}

fn check(seed: u64, (lines, recovery): Mode) -> Result<Course, String> {
    let (scheme, ranks, parity) = commit::job(seed);
    let faults = Faults::kills(1 + (seed % 4) as u32, Duration::from_millis(40));
    let config = Config { parity, faults, ..Config::rough(seed, ranks) };
    let protection = Protection { lines, recovery, ..Protection::new(scheme, Interval::Steps(3)) };
    let outcome = sim::run(config, |world| {
        ft_checkpoint::run(world, protection.clone(), &mut Always::default())
            .map(|_| ())
            .map_err(|error| error.to_string())
    });
    let course = commit::check_end(seed, &outcome)?;
    if let Course::Undisturbed | Course::Repaired = course {
        let outputs = checker::outputs(&outcome).ok_or("no outputs")?;
        let words = outputs[..ranks].iter().map(|bytes| {
            let report = RankReport::read(bytes).expect("a report");
            u64::from_le_bytes(report.output.try_into().expect("a word"))
        });
        if !words.eq(answers(ranks)) {
            return Err("the answers are wrong".into());
        }
    }
    Ok(course)
}

#[test]
fn schedules_are_under_way_at_every_line() {
    for (name, mode) in [("log", LOG), ("drain", DRAIN), ("local", LOCAL)] {
        for_seeds(&format!("schedules_are_under_way, {name}"), &COURSES, |seed| check(seed, mode));
    }
}
