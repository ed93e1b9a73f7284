//! Random programs of collectives, blocking and not, over communicators that are made, with exchanges in between, while
//! ranks die: what ends has the right result, and after a repair the copy goes on, also on replacements; then everything is made again.

use std::time::Duration;

use ft_comm::{
    CollectiveRequest, CommError, Communicator, CommunicatorRecord, Layout, LocatedI64, Op, Piece, Plan,
    World, wait_any,
};
use ft_sim::{self as sim, Blow, Config, Fault, Faults, SimOutcome, Trigger};

use super::call::{Call, KINDS};
use super::problem::{BREACH, Problem, demand};
use super::{Choices, Course, checker, for_all, seeds};

const STEPS: u64 = 40;
/// Most collectives that are under way at once.
const PENDING: usize = 4;
/// Elements of an exchange.
const PIECES: usize = 60;

/// Where a communicator was made; only its copies have it.
struct Birthplace(usize);

/// What is made of the world's communicator, in every generation anew.
struct Made {
    copy: Communicator,
    part: Communicator,
    plan: Plan<u64>,
}

impl Made {
    fn new(comm: &Communicator, choices: &mut Choices) -> Result<Self, CommError> {
        comm.set_attribute(Birthplace(comm.rank()));
        let copy = comm.dup();
        comm.delete_attribute::<Birthplace>();
        let copy = copy?;
        let (colors, turned) = (1 + choices.below(3), choices.below(2) == 0);
        let (rank, size) = (comm.rank() as u64, comm.size());
        let key = if turned { -(rank as i64) } else { 0 };
        let part = copy.split(Some((rank % colors) as u32), key)?.expect("it has a color");
        let every = |stride| Layout::strided(0, PIECES, 1, stride).expect("it is small");
        let piece = |peer: usize, stride| Piece { peer: peer % size, tag: 5, layout: every(stride) };
        let plan = copy.plan(&[piece(comm.rank() + 1, 2)], &[piece(comm.rank() + size - 1, 3)])?;
        Ok(Self { copy, part, plan })
    }

    /// After a repair the copy goes on: whoever still has it tells those who have not what it is.
    fn goes_on(made: Option<&Self>, world: &World) -> Result<(), Problem> {
        let comm = world.comm();
        let mut teller = [if made.is_some() { comm.rank() as u64 } else { u64::MAX }];
        comm.allreduce(&mut teller, Op::Min)?;
        if teller[0] == u64::MAX {
            return Ok(());
        }
        let record: CommunicatorRecord =
            comm.bcast_value(made.map(|made| made.copy.record()).as_ref(), teller[0] as usize)?;
        let copy = world.communicator(&record)?.expect("all ranks are members");
        let is_known =
            made.is_none_or(|made| made.copy.record() != record || made.copy.name() == copy.name());
        demand(is_known && copy.name() == record.name(), || "another communicator".into())?;
        // Who has a handle still has what was attached to it; a replacement has nothing.
        let attached = made.is_some_and(|made| made.copy.record() == record).then(|| comm.rank());
        let birthplace = copy.attribute::<Birthplace>().map(|place| place.0);
        let is_kept = birthplace == attached && comm.attribute::<Birthplace>().is_none();
        demand(is_kept, || format!("made at {birthplace:?}, not {attached:?}"))?;
        let mut sum = [copy.rank() as u64];
        copy.allreduce(&mut sum, Op::Sum)?;
        let due = (0..comm.size() as u64).sum();
        demand(sum[0] == due && copy.size() == comm.size(), || format!("{} on a copy, not {due}", sum[0]))
    }

    /// Every second element goes to the right, from the left into every third.
    fn exchange(&self, waits: bool) -> Result<(), Problem> {
        let (rank, size) = (self.copy.rank(), self.copy.size());
        let row = |of: usize| (0..2 * PIECES).map(move |at| (of * 10_000 + at) as u64);
        let (out, mut buf) = (row(rank).collect::<Vec<_>>(), vec![u64::MAX; 3 * PIECES]);
        if waits {
            self.plan.run(&out, &mut buf)?;
        } else {
            let request = self.plan.start(out, buf)?;
            self.copy.barrier()?;
            buf = request.wait()?.1;
        }
        let left = (rank + size - 1) % size;
        let right = buf.iter().step_by(3).copied().eq(row(left).step_by(2)) && buf[1] == u64::MAX;
        demand(right, || format!("rank {rank}: an exchange gave {buf:?}"))
    }
}

/// Collectives under way, and the calls that started them.
type Pending<'a> = Vec<(Call<'a>, CollectiveRequest<u64>)>;

fn wait_one(pending: &mut Pending<'_>, at: usize) -> Result<(), Problem> {
    let (call, request) = pending.swap_remove(at);
    let right = call.is_right(request.wait()?);
    demand(right, || format!("{:?} {} of {} elements, started", call.kind, call.number, call.len))
}

/// Waits for whichever ends first, for as many as there are.
fn wait_any_of(pending: &mut Pending<'_>) -> Result<(), Problem> {
    let (mut calls, mut requests): (Vec<_>, Vec<_>) = std::mem::take(pending).into_iter().unzip();
    while let Some((at, got)) = wait_any(&mut requests)? {
        let call: Call<'_> = calls.remove(at);
        demand(call.is_right(got), || format!("{:?} {}, the first to end", call.kind, call.number))?;
    }
    Ok(())
}

/// Step `number` of the program of `seed`: all ranks call the same, but wait in orders of their own.
fn step<'a>(
    world: &'a World,
    made: &'a Made,
    pending: &mut Pending<'a>,
    seed: u64,
    number: u64,
) -> Result<(), Problem> {
    let choices = &mut Choices(seed << 20 ^ number);
    let own = &mut Choices(seed << 20 ^ number << 8 ^ (world.rank() as u64 + 1));
    let comm = [world.comm(), &made.copy, &made.part][choices.below(3) as usize];
    let kind = KINDS[choices.below(KINDS.len() as u64) as usize];
    // Now and then one that is announced before it is sent.
    let len = match choices.below(24) {
        0 => 34_000,
        1..8 => 700,
        _ => choices.below(9) as usize,
    };
    let call = Call::of_numbers(comm, kind, number, len);
    match choices.below(9) {
        0..4 => demand(call.run()?, || format!("{kind:?} {number} of {len} elements"))?,
        4..7 => pending.push((call, call.start()?)),
        // One that nobody waits for.
        7 => drop(call.start()?),
        _ => made.exchange(choices.below(2) == 0)?,
    }
    if own.below(16) == 0 {
        wait_any_of(pending)?;
    }
    while pending.len() > own.below(PENDING as u64 + 1) as usize {
        let at = own.below(pending.len() as u64) as usize;
        wait_one(pending, at)?;
    }
    Ok(())
}

/// From the last repair to the end.
fn attempt(world: &mut World, seed: u64, done: &mut u64, made: &mut Option<Made>) -> Result<(), Problem> {
    Made::goes_on(made.as_ref(), world)?;
    let comm = world.comm().clone();
    // Whoever has got farthest says where to go on; a replacement has got nowhere.
    let mut farthest = [LocatedI64 { value: *done as i64, index: comm.rank() as u64 }];
    comm.allreduce(&mut farthest, Op::MaxLoc)?;
    *done = farthest[0].value as u64;
    let made = made.insert(Made::new(&comm, &mut Choices(seed ^ u64::from(world.generation())))?);
    let mut pending = vec![];
    while *done < STEPS {
        step(world, made, &mut pending, seed, *done)?;
        *done += 1;
    }
    wait_any_of(&mut pending)?;
    Ok(world.finalize(done.to_le_bytes().to_vec())?)
}

fn program(mut world: World, seed: u64) -> Result<u64, Problem> {
    let (mut done, mut made) = (0, None);
    loop {
        match attempt(&mut world, seed, &mut done, &mut made) {
            Ok(()) => return Ok(done),
            Err(Problem::Comm(error)) if error.is_failure() => _ = world.repair(done)?,
            Err(Problem::Comm(other)) => return Err(Problem::Comm(other)),
            Err(Problem::Breach(text)) => {
                world.abort(BREACH, text.clone());
                return Err(Problem::Breach(text));
            }
        }
    }
}

fn simulate(seed: u64) -> SimOutcome<Result<u64, Problem>> {
    let mut choices = Choices(seed);
    let ranks = 1 + choices.below(7) as usize;
    let mut config = Config::rough(seed, ranks);
    // Links that are cut for a while look like failures of living ranks.
    let cuts = choices.below(4) == 0;
    config.faults = Faults { cuts, ..Faults::kills(1 + choices.below(4) as u32, Duration::from_millis(30)) };
    // On several hosts calls are of two levels; the ranks of one that is lost go to others, where they have other leaders.
    if choices.below(2) == 0 {
        let count = 2 + choices.below(2);
        config.messages.hosts = Some((0..ranks).map(|_| choices.below(count) as usize).collect());
        if choices.below(2) == 0 {
            let trigger = Trigger::At(Duration::from_micros(choices.below(30_000)));
            let blow = Blow::LoseHost(choices.below(count) as usize);
            config.faults.explicit.push(Fault { trigger, blow });
        }
    }
    sim::run(config, |world| program(world, seed))
}

fn check(outcome: &SimOutcome<Result<u64, Problem>>) -> Result<Course, String> {
    checker::memberships(outcome)?;
    let (code, message) = checker::status(outcome)?;
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
    match outputs.iter().all(|output| output[..] == STEPS.to_le_bytes()) {
        true => Ok(checker::course(outcome)),
        false => Err(format!("outputs {outputs:?}")),
    }
}

#[test]
fn collectives_are_right_or_interrupted_whoever_dies() {
    let courses = [Course::Undisturbed, Course::Repaired];
    for_all(seeds(150), "collectives_are_right", &courses, |seed| check(&simulate(seed)));
}
