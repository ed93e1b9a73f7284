//! The repair protocol: a program of messages and collectives that repairs the world whenever a call fails.

use std::time::Duration;

use ft_comm::{CommError, EAGER_BYTES_MAX, Op, Request, Source, World};
use ft_proto::arbiter::Event;
use ft_proto::planted;
use ft_sim::{self as sim, Blow, Config, Fault, Faults, Network, SimOutcome, Trigger};

use super::problem::{BREACH, Problem, demand};
use super::{Choices, Course, checker, finds, finds_from, for_seeds};

pub(super) const STEPS: u64 = 12;
const LAGGING: u32 = 77;

/// Every message says in which generation, by whom and at which step it was sent.
fn stamp(world: &World, step: u64) -> [u64; 3] {
    [u64::from(world.generation()), world.rank() as u64, step]
}

fn step(
    world: &World,
    step: u64,
    big: bool,
    lagging: &mut Option<(u64, Request<u64>, Request<u64>)>,
) -> Result<(), Problem> {
    let (comm, size, rank) = (world.everyone(), world.total(), world.rank());
    // Another distance every step, so that links open all the time.
    let distance = 1 + step as usize % (size - 1);
    let (right, left) = ((rank + distance) % size, (rank + size - distance) % size);
    let mine = stamp(world, step);
    let from_left = |step: u64| [mine[0], left as u64, step];

    // A ring, now and then with messages that are announced first.
    let length = if big && step.is_multiple_of(5) { EAGER_BYTES_MAX / 8 + 10 } else { 3 + step as usize % 4 };
    let mut out = vec![step; length];
    out[..3].copy_from_slice(&mine);
    let mut buf = vec![0; length];
    comm.sendrecv(&out, right, &mut buf, left, 1)?;
    demand(buf[..3] == from_left(step) && buf[3..].iter().all(|word| *word == step), || {
        format!("rank {rank} at {mine:?} got {:?} from rank {left}", &buf[..3])
    })?;

    // Messages that are received one step after they were sent.
    if let Some((sent, send, receive)) = lagging.take() {
        send.wait()?;
        let (buf, status) = receive.wait()?;
        demand(buf[..] == [mine[0], status.source as u64, sent], || {
            format!("rank {rank} at {mine:?} got {buf:?}, late")
        })?;
    }
    let send = comm.isend(mine.to_vec(), right, LAGGING)?;
    *lagging = Some((step, send, comm.irecv(vec![0; 3], left, LAGGING)?));

    // All say something to one, who takes it as it comes.
    let root = step as usize % size;
    if rank == root {
        let mut heard = vec![false; size];
        for _ in 1..size {
            let mut buf = [0u64; 3];
            let status = comm.recv(&mut buf, Source::Any, 2)?;
            let due = [mine[0], status.source as u64, step];
            let again = std::mem::replace(&mut heard[status.source], true);
            demand(buf == due && !again, || format!("rank {rank} at {mine:?} got {buf:?} from anybody"))?;
        }
    } else {
        comm.send(&mine, root, 2)?;
    }

    let mut sum = [mine[0] * 1000 + step, rank as u64, 1];
    comm.allreduce(&mut sum, Op::Sum)?;
    let ranks = size as u64;
    let due = [ranks * (mine[0] * 1000 + step), ranks * (ranks - 1) / 2, ranks];
    demand(sum == due, || format!("rank {rank} at {mine:?}: allreduce gave {sum:?}, not {due:?}"))
}

/// From the last repair to the end.
fn attempt(world: &mut World, done: &mut u64, big: bool) -> Result<(), Problem> {
    // Whoever has got farthest says where to go on; a replacement has got nowhere.
    let mut farthest = [*done];
    world.everyone().allreduce(&mut farthest, Op::Max)?;
    *done = farthest[0];
    let mut lagging = None;
    while *done < STEPS {
        step(world, *done, big, &mut lagging)?;
        *done += 1;
    }
    if let Some((_, send, receive)) = lagging {
        send.wait()?;
        receive.wait()?;
    }
    Ok(world.finalize(done.to_le_bytes().to_vec())?)
}

fn report(world: &World) -> u64 {
    u64::from(world.generation()) * 1000 + world.rank() as u64 + 1
}

pub(super) fn program(world: World, big: bool) -> Result<u64, Problem> {
    repairing(world, |world, done| attempt(world, done, big))
}

/// Attempts what is to be done, and repairs the world whenever a call fails; gives how many steps are done.
pub(super) fn repairing(
    mut world: World,
    mut attempt: impl FnMut(&mut World, &mut u64) -> Result<(), Problem>,
) -> Result<u64, Problem> {
    let mut done = 0;
    loop {
        match attempt(&mut world, &mut done) {
            Ok(()) => return Ok(done),
            Err(Problem::Comm(error)) if error.is_failure() => {
                world.repair(report(&world))?;
            }
            Err(Problem::Comm(ended)) => return Err(Problem::Comm(ended)),
            Err(Problem::Breach(text)) => {
                world.abort(BREACH, text.clone());
                return Err(Problem::Breach(text));
            }
        }
    }
}

fn cuts(seed: u64) -> bool {
    seed % 4 > 1
}

fn cuts_forever(seed: u64) -> bool {
    seed % 4 > 2
}

fn simulate(seed: u64, bug: &'static str) -> SimOutcome<Result<u64, Problem>> {
    simulate_with(seed, bug, |_| {})
}

/// A job with failures from a seed, on a network that is changed first.
pub(super) fn simulate_with(
    seed: u64,
    bug: &'static str,
    change: impl FnOnce(&mut Network),
) -> SimOutcome<Result<u64, Problem>> {
    let (config, big) = config(seed, bug, change);
    sim::run(config, |world| program(world, big))
}

/// The job of a seed, and whether its messages are big.
pub(super) fn config(seed: u64, bug: &'static str, change: impl FnOnce(&mut Network)) -> (Config, bool) {
    let mut choices = Choices(seed);
    let ranks = 2 + choices.below(5) as usize;
    let parity = choices.below(3).min(ranks as u64 - 1) as usize;
    let big = choices.below(8) == 0;
    let spares = choices.below(4).saturating_sub(1) as usize;
    let mut config = Config { parity, spares, bug, ..Config::rough(seed, ranks - parity) };
    config.faults = Faults {
        cuts: cuts(seed),
        cuts_forever: cuts_forever(seed),
        ..Faults::kills(1 + choices.below(5) as u32, Duration::from_millis(40))
    };
    if seed % 8 == 5 {
        // One rank hears late of the death of another, and goes on in the old generation meanwhile.
        let at = Duration::from_micros(12_000 + choices.below(8_000));
        let (late, lasts) = (choices.below(ranks as u64) as usize, Some(Duration::from_millis(40)));
        let blow = Blow::Cut { ranks: vec![late], from_ranks: false, from_launcher: true, lasts };
        let deaf = Fault { trigger: Trigger::At(at), blow };
        let dead = Fault::kill(at + Duration::from_micros(50), [(late + 1) % ranks]);
        config.faults.explicit = vec![deaf, dead];
    }
    change(&mut config.network);
    (config, big)
}

pub(super) fn check(seed: u64, outcome: &SimOutcome<Result<u64, Problem>>) -> Result<Course, String> {
    let memberships = checker::memberships(outcome)?;
    let (code, message) = checker::status(outcome)?;
    if checker::is_cut_for_ever(code, message) && cuts_forever(seed) {
        return Ok(Course::CutForEver);
    }
    if code != 0 {
        return Err(format!("ended with {code}: {message}"));
    }
    for (generation, membership) in memberships.iter().filter(|(generation, _)| **generation > 0) {
        for (rank, report) in membership.reports.iter().enumerate() {
            let replaced = membership.failed.contains(&rank);
            let due = if replaced { 0 } else { u64::from(generation - 1) * 1000 + rank as u64 + 1 };
            if *report != due {
                return Err(format!("generation {generation}: report of rank {rank} is {report}, not {due}"));
            }
        }
    }
    for finished in &outcome.finished {
        match &finished.result {
            Ok(Ok(STEPS)) | Err(CommError::Ended { .. }) => {}
            Ok(Err(Problem::Comm(CommError::Ended { .. }))) => {}
            other => return Err(format!("rank {}.{}: {other:?}", finished.rank, finished.incarnation)),
        }
    }
    let outputs = checker::outputs(outcome).ok_or("no outputs")?;
    match outputs.iter().all(|output| output[..] == STEPS.to_le_bytes()) {
        true => Ok(checker::course(outcome)),
        false => Err(format!("outputs {outputs:?}")),
    }
}

#[test]
fn repair_agrees_whatever_fails_and_no_message_crosses_generations() {
    let courses = [Course::Undisturbed, Course::Repaired];
    for_seeds("repair_agrees", &courses, |seed| check(seed, &simulate(seed, "")));
}

/// Two ranks reach the launcher and all others, but not each other: if that lasts, one of them pays, and nobody else does.
#[test]
fn a_cut_between_two_ranks_costs_at_most_one_of_them() {
    let mut costs = [0, 0];
    for seed in 0..300 {
        let mut choices = Choices(seed);
        let ranks = 3 + choices.below(4) as usize;
        let near = choices.below(ranks as u64) as usize;
        let far = (near + 1 + choices.below(ranks as u64 - 1) as usize) % ranks;
        let at = Duration::from_micros(12_000 + choices.below(8_000));
        let lasts = (choices.below(4) == 0).then(|| Duration::from_millis(1 << choices.below(10)));
        let blow = Blow::CutBetween { near: vec![near], far: vec![far], lasts };
        let mut config = Config::rough(seed, ranks);
        // Half of the networks drop everything and never say so: only who waits for long finds out, by asking.
        config.network.notices_cuts = seed % 2 == 0;
        config.faults.explicit = vec![Fault { trigger: Trigger::At(at), blow }];
        let outcome = sim::run(config, |world| program(world, false));
        let course = check(seed, &outcome);
        assert!(matches!(course, Ok(Course::Undisturbed | Course::Repaired)), "seed {seed}: {course:?}");
        let lost: Vec<usize> = checker::launcher(&outcome).filter_map(lost_rank).collect();
        assert!(
            lost.len() <= 1 && lost.iter().all(|rank| [near, far].contains(rank)),
            "seed {seed}: {lost:?}"
        );
        costs[lost.len()] += 1;
    }
    assert!(costs.iter().all(|count| *count > 20), "{costs:?}: one side was hardly seen");
}

pub(super) fn lost_rank(event: &Event) -> Option<usize> {
    match event {
        Event::Lost { rank, .. } => Some(*rank),
        _ => None,
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    for seed in 0..20 {
        let (one, two) = (simulate(seed, ""), simulate(seed, ""));
        assert_eq!(
            (one.trace, one.happened, one.elapsed),
            (two.trace, two.happened, two.elapsed),
            "seed {seed}"
        );
        assert_eq!(one.events, two.events, "seed {seed}");
        assert_eq!(one.history, two.history, "seed {seed}");
    }
}

#[test]
fn planted_an_arbiter_that_decides_without_waiting_for_all_survivors_is_caught() {
    finds(planted::DECIDES_EARLY, |seed| check(seed, &simulate(seed, planted::DECIDES_EARLY)));
}

#[test]
fn planted_a_transport_and_endpoint_that_take_links_and_frames_of_an_old_generation_are_caught() {
    finds(planted::TAKES_OLD_FRAMES, |seed| check(seed, &simulate(seed, planted::TAKES_OLD_FRAMES)));
}

#[test]
fn planted_a_member_that_ignores_its_lease_is_caught() {
    finds_from(400, planted::IGNORES_LEASE, |seed| check(seed, &simulate(seed, planted::IGNORES_LEASE)));
}
