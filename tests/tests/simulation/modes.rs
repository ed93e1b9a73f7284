//! Repair modes in which lost ranks are not replaced, and survivors that go on without a repair.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use ft_comm::{Agreement, CommError, Communicator, MessageMode, OnFailure, Op, PeerId, Rank, Source, World};
use ft_proto::arbiter::Event as ArbiterEvent;
use ft_sim::{self as sim, Config, Faults, SimOutcome};

use super::problem::{BREACH, Problem, demand};
use super::{Choices, Course, checker, for_seeds};

const STEPS: u64 = 10;
const RING: u32 = 1;
const GATHER: u32 = 2;

/// A step of messages among the members of `comm`, each of which has a number that the others know.
fn step(comm: &Communicator, numbers: &[u64], step: u64) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let breach = |what: &str| panic!("rank {rank} of {numbers:?} at step {step}: {what}");
    let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
    let mut from_left = [0, 0];
    comm.sendrecv(&[numbers[rank], step], right, &mut from_left, left, RING)?;
    if from_left != [numbers[left], step] {
        breach("the ring is torn");
    }
    let root = step as usize % size;
    if rank == root {
        for _ in 1..size {
            let mut word = [0, 0];
            let status = comm.recv(&mut word, Source::Any, GATHER)?;
            if word != [numbers[status.source], step] {
                breach("a word of somebody else");
            }
        }
    } else {
        comm.send(&[numbers[rank], step], root, GATHER)?;
    }
    let mut sum = [numbers[rank], 1];
    comm.allreduce(&mut sum, Op::Sum)?;
    if sum != [numbers.iter().sum(), size as u64] {
        breach("a wrong sum");
    }
    Ok(())
}

fn farthest(comm: &Communicator, done: u64) -> Result<u64, CommError> {
    let mut farthest = [done];
    comm.allreduce(&mut farthest, Op::Max)?;
    Ok(farthest[0])
}

/// Repairs the world after every failure; with `OnFailure::Blank` it goes on with those that are left.
fn repairing(mut world: World) -> Result<u64, Problem> {
    let mut done = 0;
    let mut attempt = |world: &mut World| -> Result<(), Problem> {
        let membership = world.membership();
        let PeerId(me) = membership.seats[world.rank()].peer;
        let numbers: Vec<u64> = membership.seats.iter().map(|seat| u64::from(seat.peer.0)).collect();
        demand(numbers[world.rank()] == u64::from(me) && world.total() == numbers.len(), || {
            format!("{membership:?}")
        })?;
        let comm = match membership.holes.is_empty() {
            true => world.everyone().clone(),
            false => world.everyone().shrink()?,
        };
        let numbers: Vec<u64> = comm.group().ranks().iter().map(|rank| numbers[*rank]).collect();
        for hole in &membership.holes {
            // Whatever is asked of a hole is an error, at once.
            let asked = world.everyone().recv(&mut [0u8], *hole, RING);
            if !matches!(&asked, Err(error) if error.is_failure()) {
                return Err(Problem::Breach(format!("a hole answers {asked:?}")));
            }
        }
        done = farthest(&comm, done)?;
        while done < STEPS {
            step(&comm, &numbers, done)?;
            done += 1;
        }
        Ok(world.finalize(done.to_le_bytes().to_vec())?)
    };
    loop {
        match attempt(&mut world) {
            Err(Problem::Comm(error)) if error.is_failure() => drop(world.repair(0)?),
            Err(Problem::Breach(text)) => {
                world.abort(BREACH, text.clone());
                return Err(Problem::Breach(text));
            }
            Err(Problem::Comm(error)) => return Err(Problem::Comm(error)),
            Ok(()) => return Ok(STEPS),
        }
    }
}

/// What ranks were told, in which round and which communicator.
type Told = Mutex<Vec<(Rank, u64, Vec<Rank>, Agreement)>>;

/// Never repairs the world: survivors agree, revoke and shrink, as programs of ULFM do.
fn surviving(mut world: World, told: &Told) -> Result<u64, Problem> {
    world.set_message_mode(MessageMode::Continue);
    let mut comm = world.everyone().clone();
    let (mut done, mut round) = (0, 0);
    while done < STEPS {
        let numbers: Vec<u64> = comm.group().ranks().iter().map(|rank| *rank as u64 + 1).collect();
        let outcome = step(&comm, &numbers, done);
        match &outcome {
            Err(error) if error.is_failure() => comm.revoke()?,
            Err(CommError::Revoked { .. }) | Ok(()) => {}
            Err(error) => return Err(Problem::Comm(error.clone())),
        }
        round += 1;
        let agreement = comm.agree(u64::from(outcome.is_ok()) | 2)?;
        let members = comm.group().ranks().to_vec();
        told.lock().unwrap().push((world.rank(), round, members, agreement.clone()));
        demand(agreement.flags & 2 == 2, || format!("{agreement:?} of words with bit 1"))?;
        if agreement.flags & 1 == 1 {
            done += 1;
            continue;
        }
        comm = comm.shrink()?;
        demand(comm.group().ranks().contains(&world.rank()), || format!("{comm:?} without its own rank"))?;
    }
    Ok(world.finalize(done.to_le_bytes().to_vec())?).map(|()| done)
}

fn config(seed: u64, on_failure: OnFailure) -> Config {
    let mut choices = Choices(seed);
    let ranks = 2 + choices.below(5) as usize;
    let mut config = Config { on_failure, ..Config::rough(seed, ranks) };
    config.faults = Faults {
        cuts: seed % 4 > 1,
        ..Faults::kills(1 + choices.below(ranks as u64 - 1) as u32, Duration::from_millis(40))
    };
    config
}

type Outcome = SimOutcome<Result<u64, Problem>>;

fn check(outcome: &Outcome) -> Result<Course, String> {
    let memberships = checker::memberships(outcome)?;
    let (code, message) = checker::status(outcome)?;
    if code == 3 && message.contains("no rank that computes is left") {
        return Ok(Course::BeyondTolerance);
    }
    if code != 0 {
        return Err(format!("ended with {code}: {message}"));
    }
    for finished in &outcome.finished {
        match &finished.result {
            Ok(Ok(STEPS)) | Err(CommError::Ended { .. }) => {}
            Ok(Err(Problem::Comm(CommError::Ended { .. }))) => {}
            other => return Err(format!("rank {}.{}: {other:?}", finished.rank, finished.incarnation)),
        }
    }
    let outputs = checker::outputs(outcome).ok_or("no outputs")?;
    let spoken: Vec<&Vec<u8>> = outputs.iter().filter(|output| !output.is_empty()).collect();
    if spoken.is_empty() || !spoken.iter().all(|output| output[..] == STEPS.to_le_bytes()) {
        return Err(format!("outputs {outputs:?}"));
    }
    let lost = checker::launcher(outcome)
        .filter(|event| matches!(event, ArbiterEvent::Lost { generation: Some(_), .. }))
        .count();
    let first = memberships.get(&0).map_or(0, |membership| membership.seats.len());
    if spoken.len() + lost != first {
        return Err(format!("{} of {first} ranks are done, and {lost} were lost", spoken.len()));
    }
    Ok(if lost > 0 { Course::Repaired } else { Course::Undisturbed })
}

const COURSES: [Course; 2] = [Course::Undisturbed, Course::Repaired];

#[test]
fn survivors_close_up_and_go_on() {
    for_seeds("survivors_close_up", &COURSES, |seed| {
        check(&sim::run(config(seed, OnFailure::Shrink), repairing))
    });
}

#[test]
fn survivors_go_on_beside_holes() {
    for_seeds("survivors_go_on_beside_holes", &COURSES, |seed| {
        check(&sim::run(config(seed, OnFailure::Blank), repairing))
    });
}

#[test]
fn survivors_agree_revoke_and_shrink_without_a_repair() {
    for_seeds("survivors_agree", &COURSES, |seed| {
        let told = Told::default();
        let mode = if seed % 2 == 0 { OnFailure::Shrink } else { OnFailure::Blank };
        let outcome = sim::run(config(seed / 2, mode), |world| surviving(world, &told));
        let course = check(&outcome)?;
        // All who survive were told the same; what the dead were told dies with them.
        let survived =
            |rank: Rank| outcome.finished.iter().any(|f| f.rank == rank && matches!(f.result, Ok(Ok(_))));
        let mut known = BTreeMap::new();
        let survivors = told.into_inner().unwrap().into_iter().filter(|(rank, ..)| survived(*rank));
        for (rank, round, members, agreement) in survivors {
            let first = known.entry((round, members)).or_insert_with(|| agreement.clone());
            if *first != agreement {
                return Err(format!("rank {rank} was told {agreement:?} in round {round}, others {first:?}"));
            }
        }
        Ok(course)
    });
}
