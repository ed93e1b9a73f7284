//! Runs that follow each other in one job, and leave messages over.

use std::time::Duration;

use ft_checkpoint::{Flow, Interval, Job, Program, Protect, Protection};
use ft_comm::{CommError, World};
use ft_sim::{self as sim, Config, Faults};

use super::{DRAIN, LOCAL, LOG, Mode, Outcome};
use crate::{Course, commit, for_seeds};

/// Sends more than it receives, drops what it has found now and then, and frees a communicator that has messages under way.
struct Spendthrift {
    tag: u32,
}

const STEPS: u64 = 12;

impl Spendthrift {
    /// What it has received at the end: the numbers of some steps of the rank on its left.
    fn sum() -> u64 {
        let (mut next, mut sum) = (0, 0);
        for number in 1..=STEPS {
            next += u64::from(number % 5 == 0);
            if number % 2 == 0 {
                next += 1;
                sum += next;
            }
        }
        sum
    }
}

#[derive(Debug, Default, Protect)]
struct Sum {
    sum: u64,
}

impl Program for Spendthrift {
    type State = Sum;
    type Error = CommError;
    const ALONE: bool = true;

    fn init(&mut self, _: &World) -> Result<Sum, CommError> {
        Ok(Sum::default())
    }

    fn step(&mut self, state: &mut Sum, world: &World, number: u64) -> Result<Flow, CommError> {
        let (comm, size) = (world.comm(), world.size());
        let (left, right) = ((world.rank() + size - 1) % size, (world.rank() + 1) % size);
        comm.send(&[number], right, self.tag)?;
        if number.is_multiple_of(5) {
            drop(comm.mprobe(left, self.tag)?);
        }
        if number.is_multiple_of(4) {
            comm.dup()?.send(&[number], right, self.tag)?;
        }
        if number.is_multiple_of(2) {
            let mut word = [0];
            comm.recv(&mut word, left, self.tag)?;
            state.sum += word[0];
        }
        Ok(if number == STEPS { Flow::Done } else { Flow::Continue })
    }
}

/// What one run has left over is nothing to the lines of the next, and what was dropped is not waited for.
#[test]
fn runs_that_leave_messages_over_follow_each_other() {
    let run = |seed: u64, (lines, recovery): Mode| {
        let (scheme, ranks, parity) = commit::job(seed);
        let interval = Interval::Steps(1 + seed % 3);
        let protection = Protection { lines, recovery, ..Protection::new(scheme, interval) };
        let mut config = Config { parity, ..Config::rough(seed, ranks) };
        config.faults = Faults::kills(1 + (seed % 3) as u32, Duration::from_millis(60));
        sim::run(config, |world| {
            let told = |error: &dyn std::fmt::Display| error.to_string();
            let Some(mut job) = Job::start(world, protection.clone()).map_err(|error| told(&error))? else {
                return Ok(());
            };
            for tag in 1..=4 {
                let sum =
                    job.run(&mut Spendthrift { tag }, |state| state.sum).map_err(|error| told(&error))?;
                if sum != Spendthrift::sum() {
                    return Err(format!("run {tag}: {sum}, not {}", Spendthrift::sum()));
                }
            }
            job.finish().map_err(|error| told(&error))
        })
    };
    for_seeds("runs_that_leave_messages_over", &[Course::Undisturbed, Course::Repaired], |seed| {
        let outcome: Outcome = run(seed, [DRAIN, LOG, LOCAL, LOCAL][seed as usize % 4]);
        let wrong = outcome.finished.iter().find_map(|finished| match &finished.result {
            Ok(Err(why)) if why.starts_with("run ") => Some(why.clone()),
            _ => None,
        });
        match wrong {
            Some(why) => Err(why),
            None => commit::check_end(seed, &outcome),
        }
    });
}
