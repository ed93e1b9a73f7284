//! Ranks that come to other hosts, while the others are in the middle of collectives whose fastest algorithms depend on hosts.

use std::time::Duration;

use ft_checkpoint::{Flow, GroupLayout, Interval, Program, Protect, Protection};
use ft_comm::{CommError, Op, World};
use ft_proto::planted;
use ft_proto::settings::MessageSettings;
use ft_sim::{self as sim, Blow, Config, Fault, Trigger};

use super::{DRAIN, LOCAL, LOG, Mode};
use crate::{Choices, Course, checker, finds, for_all, seeds};

/// Seeds that are taken if nothing is said.
const USUAL: u64 = 80;
const STEPS: u64 = 25;

/// Schemes with the hosts of the ranks at the start, of which any one may be lost.
const JOBS: [(&str, &[usize]); 3] =
    [("neighbor:1", &[0, 0, 1, 1, 2, 2]), ("xor:2", &[0, 0, 1, 2]), ("rs:2+2", &[0, 0, 1, 1, 2, 2, 3, 3])];

/// Adds up what all ranks have.
struct Adder;

#[derive(Debug, Default, Protect)]
struct Total {
    own: u64,
    all: u64,
}

impl Program for Adder {
    type State = Total;
    type Error = CommError;
    const ALONE: bool = true;

    fn init(&mut self, _: &World) -> Result<Total, CommError> {
        Ok(Total::default())
    }

    fn rebuild(&mut self, _: &mut Total, _: &World) -> Result<(), CommError> {
        Ok(())
    }

    fn step(&mut self, total: &mut Total, world: &World, step: u64) -> Result<Flow, CommError> {
        let comm = world.comm();
        total.own += step * (world.rank() as u64 + 1);
        let mut sum = [total.own];
        comm.allreduce(&mut sum, Op::Sum)?;
        let mut word = [sum[0] + world.rank() as u64];
        comm.bcast(&mut word, step as usize % comm.size())?;
        total.all += word[0];
        Ok(if step == STEPS { Flow::Done } else { Flow::Continue })
    }
}

/// What all ranks have at the end.
fn expected(ranks: u64) -> u64 {
    let weights: u64 = (1..=ranks).sum();
    (1..=STEPS).map(|step| step * (step + 1) / 2 * weights + step % ranks).sum()
}

fn check(seed: u64, (lines, recovery): Mode, bug: &'static str) -> Result<Course, String> {
    let (scheme, hosts) = JOBS[(seed % JOBS.len() as u64) as usize];
    let layout = GroupLayout::new(scheme.parse().unwrap(), hosts.len(), 0, Some(hosts)).unwrap();
    let mut choices = Choices(seed);
    let interval = Interval::Steps(1 + choices.below(6));
    let protection = Protection { lines, recovery, ..Protection::new(layout.scheme().clone(), interval) };
    let lost = choices.below(1 + *hosts.iter().max().expect("there are ranks") as u64) as usize;
    let mut config = Config {
        bug,
        messages: MessageSettings { hosts: Some(hosts.to_vec()), ..MessageSettings::default() },
        ..Config::rough(seed, hosts.len())
    };
    let at = Trigger::At(Duration::from_micros(choices.below(40_000)));
    config.faults.explicit = vec![Fault { trigger: at, blow: Blow::LoseHost(lost) }];
    let outcome = sim::run(config, |world| {
        let due = expected(world.size() as u64);
        let finished = ft_checkpoint::run(world, protection.clone(), &mut Adder);
        match finished.map_err(|error| error.to_string())? {
            Some(finished) if finished.state.all != due => {
                Err(format!("wrong: {}, not {due}", finished.state.all))
            }
            _ => Ok(()),
        }
    });
    let wrong = outcome.finished.iter().find_map(|finished| match &finished.result {
        Ok(Err(why)) if why.starts_with("wrong") => Some(why.clone()),
        _ => None,
    });
    match (wrong, checker::status(&outcome)?) {
        (Some(why), _) => Err(why),
        (None, (0, _)) => Ok(checker::course(&outcome)),
        (None, (code, message)) => Err(format!("ended with {code}: {message}")),
    }
}

const COURSES: &[Course] = &[Course::Undisturbed, Course::Repaired];

#[test]
fn ranks_that_come_to_other_hosts_go_on_with_collectives() {
    for (name, mode) in [("local", LOCAL), ("log", LOG), ("drain", DRAIN)] {
        let test = format!("ranks_that_come_to_other_hosts, {name}");
        for_all(seeds(USUAL), &test, COURSES, |seed| check(seed, mode, ""));
    }
}

#[test]
fn planted_algorithms_that_follow_the_hosts_are_caught() {
    finds(planted::FOLLOWS_HOSTS, |seed| check(seed, LOCAL, planted::FOLLOWS_HOSTS));
}
