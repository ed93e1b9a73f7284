//! Messages that are read from the memory of their sender, which changes that memory when a failure ends its send.

use std::time::Duration;

use ft_comm::{CommError, EAGER_BYTES_MAX, Source, TagSel, World};
use ft_proto::planted;
use ft_sim::{self as sim, Blow, Config, Fault, Trigger};

use super::problem::{BREACH, Problem, demand};
use super::{Choices, Course, checker, finds, for_seeds};

const ROUNDS: u8 = 6;
/// What a program may do to its memory as soon as a call has failed.
const SPOILT: u8 = 0xff;

/// Rank 0 sends to rank 1, which comes late; rank 2 is there to die, and speaks with rank 0 only.
fn attempt(world: &mut World, out: &mut [u8], looks: u64) -> Result<(), Problem> {
    let comm = world.everyone();
    for round in 0..ROUNDS {
        let mut word = [round];
        match world.rank() {
            0 => {
                comm.recv(&mut word, 2, 1)?;
                out.fill(round);
                comm.send(out, 1, 2)?;
            }
            1 => {
                for _ in 0..looks {
                    comm.iprobe(Source::Rank(0), TagSel::Tag(9))?;
                }
                let mut into = vec![SPOILT; out.len()];
                comm.recv(&mut into, 0, 2)?;
                demand(into.iter().all(|byte| *byte == round), || {
                    format!("in round {round} rank 1 got {} and {}", into[0], into[into.len() - 1])
                })?;
                comm.send(&word, 0, 3)?;
            }
            _ => comm.send(&word, 0, 1)?,
        }
        if world.rank() == 0 {
            comm.recv(&mut word, 1, 3)?;
        }
    }
    Ok(world.finalize(vec![])?)
}

fn program(mut world: World, looks: u64) -> Result<(), Problem> {
    let mut out = vec![0; 2 * EAGER_BYTES_MAX];
    loop {
        match attempt(&mut world, &mut out, looks) {
            Ok(()) => return Ok(()),
            Err(Problem::Comm(error)) if error.is_failure() => {
                out.fill(SPOILT);
                world.repair(0)?;
            }
            Err(Problem::Comm(ended)) => return Err(Problem::Comm(ended)),
            Err(Problem::Breach(text)) => {
                world.abort(BREACH, text.clone());
                return Err(Problem::Breach(text));
            }
        }
    }
}

fn check(seed: u64, bug: &'static str) -> Result<Course, String> {
    let mut choices = Choices(seed);
    let mut config = Config { bug, ..Config::rough(seed, 3) };
    config.network.near = true;
    // Rank 1 hears late of the death of rank 2, and goes on in the old generation meanwhile.
    let at = Duration::from_micros(10_000 + choices.below(20_000));
    let lasts = Some(Duration::from_millis(40));
    let blow = Blow::Cut { ranks: vec![1], from_ranks: false, from_launcher: true, lasts };
    config.faults.explicit =
        vec![Fault { trigger: Trigger::At(at), blow }, Fault::kill(at + Duration::from_micros(50), [2])];
    let looks = choices.below(40);
    let outcome = sim::run(config, |world| program(world, looks));
    let (code, message) = checker::status(&outcome)?;
    if code != 0 {
        return Err(format!("ended with {code}: {message}"));
    }
    for finished in &outcome.finished {
        match &finished.result {
            Ok(Ok(())) | Err(CommError::Ended { .. }) => {}
            other => return Err(format!("rank {}.{}: {other:?}", finished.rank, finished.incarnation)),
        }
    }
    Ok(checker::course(&outcome))
}

#[test]
fn what_is_read_is_what_was_sent_or_nothing() {
    for_seeds("what_is_read", &[Course::Undisturbed, Course::Repaired], |seed| check(seed, ""));
}

#[test]
fn planted_a_receiver_that_ignores_the_seal_is_caught() {
    finds(planted::IGNORES_SEAL, |seed| match check(seed, planted::IGNORES_SEAL) {
        Err(text) if text.contains("rank 1 got") => Err(text),
        _ => Ok(Course::Undisturbed),
    });
}
