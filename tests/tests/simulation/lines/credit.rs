//! A rank that has sent more than it has credit for draws its line all the same: nobody waits for another rank that waits for what is sent behind the line.

use std::time::Duration;

use ft_checkpoint::resilient::RankReport;
use ft_checkpoint::{Flow, Interval, Lines, Program, Protect, Protection, Recovery};
use ft_comm::{CommError, Request, RequestRecord, World};
use ft_proto::planted;
use ft_proto::settings::MessageSettings;
use ft_sim::{self as sim, Config};

use crate::{Course, checker, for_all};

/// More than credit and what is asked for ahead hold (16 messages, and 1 MiB), and fewer than may be announced beyond (64).
const MANY: usize = 4020;
const FLOOD: u32 = 1;
const LAST: u32 = 2;

#[derive(Debug, Default, Protect)]
struct State {
    #[protect(serde)]
    records: Vec<RequestRecord>,
    sum: u64,
}

#[derive(Default)]
struct Flood {
    sends: Vec<Request<u64>>,
    is_back: bool,
}

impl Program for Flood {
    type State = State;
    type Error = CommError;
    const ALONE: bool = true;

    fn init(&mut self, _: &World) -> Result<State, CommError> {
        Ok(State::default())
    }

    fn rebuild(&mut self, _: &mut State, _: &World) -> Result<(), CommError> {
        *self = Self { is_back: true, ..Self::default() };
        Ok(())
    }

    fn step(&mut self, state: &mut State, world: &World, number: u64) -> Result<Flow, CommError> {
        let comm = world.comm();
        if std::mem::take(&mut self.is_back) {
            for record in &state.records {
                self.sends.push(comm.request(record, vec![0])?);
            }
        }
        match (world.rank(), number) {
            (0, 1) => {
                for number in 0..MANY as u64 {
                    let send = comm.isend(vec![number], 1, FLOOD)?;
                    state.records.push(send.record()?);
                    self.sends.push(send);
                }
            }
            (0, 2..5) | (2.., 1..5) => {}
            (0, _) => {
                comm.send(&[1_u64], 1, LAST)?;
                self.sends.drain(..).try_for_each(|send| send.wait().map(drop))?;
                state.records.clear();
                return Ok(Flow::Done);
            }
            (1, _) => {
                let mut word = [0_u64];
                comm.recv(&mut word, 0, LAST)?;
                for number in 0..MANY as u64 {
                    comm.recv(&mut word, 0, FLOOD)?;
                    state.sum += u64::from(word[0] == number);
                }
                return Ok(Flow::Done);
            }
            _ => return Ok(Flow::Done),
        }
        Ok(Flow::Continue)
    }

    fn output(&mut self, state: &mut State, _: &World) -> Result<Vec<u8>, CommError> {
        Ok(state.sum.to_le_bytes().to_vec())
    }
}

#[test]
fn who_has_no_credit_draws_its_line() {
    for_all((0..10).collect(), "who_has_no_credit", &[Course::Undisturbed], |seed| {
        let recovery = if seed % 2 == 0 { Recovery::Global } else { Recovery::Local };
        let config = Config {
            bug: planted::HAS_LITTLE_CREDIT,
            time_max: Duration::from_secs(20),
            messages: MessageSettings {
                watchdog: Some(Duration::from_secs(2)),
                ..MessageSettings::default()
            },
            ..Config::rough(seed, 3)
        };
        let protection = Protection {
            lines: Lines::Log,
            recovery,
            ..Protection::new("xor".parse().expect("a scheme"), Interval::Steps(1))
        };
        let outcome = sim::run(config, |world| {
            ft_checkpoint::run(world, protection.clone(), &mut Flood::default())
                .map(|_| ())
                .map_err(|error| error.to_string())
        });
        if let (code @ 1.., why) = checker::status(&outcome)? {
            return Err(format!("{code}: {why}"));
        }
        let outputs = checker::outputs(&outcome).ok_or("no outputs")?;
        let report = RankReport::read(&outputs[1]).ok_or("no report")?;
        let is_right = report.output == (MANY as u64).to_le_bytes();
        is_right.then_some(Course::Undisturbed).ok_or_else(|| "messages have changed places".to_owned())
    });
}
