//! Every collective, blocking and not, exchanges, and communicators that are made: one after the other, by hand in a loop
//! that survives. Each result is checked; what was under way at a failure is done again.

use ft_comm::{CommError, Communicator, Layout, LocatedI64, Op, Piece, Plan, World};

use super::call::{Call, KINDS, mixed};

/// What is made of the world's communicator, in every generation anew.
struct Made {
    copy: Communicator,
    /// The ranks of equal parity.
    half: Communicator,
    /// Every second element to the right, from the left into every third.
    plan: Plan<u64>,
}

/// Elements of an exchange.
const PIECES: usize = 500;

impl Made {
    fn new(comm: &Communicator) -> Result<Self, CommError> {
        let (rank, size) = (comm.rank(), comm.size());
        let copy = comm.dup()?;
        let half = comm.split(Some((rank % 2) as u32), 0)?.expect("it has a color");
        let every = |stride| Layout::strided(0, PIECES, 1, stride).expect("it is small");
        let piece = |peer, stride| Piece { peer, tag: 5, layout: every(stride) };
        let plan = copy.plan(&[piece((rank + 1) % size, 2)], &[piece((rank + size - 1) % size, 3)])?;
        Ok(Self { copy, half, plan })
    }
}

/// What all ranks know of the work that is done.
#[derive(Clone, Copy, Default)]
struct State {
    /// Operations that are done.
    done: u64,
    /// Follows from all of them, in their order.
    answer: u64,
}

/// The name of each operation of a round: those of [`KINDS`], the same without waiting, and these.
const OTHERS: [&str; 5] = ["barrier", "ibarrier", "exchange", "plan", "communicators"];
const ROUND: u64 = (2 * KINDS.len() + OTHERS.len()) as u64;

fn name(number: u64) -> String {
    let at = (number % ROUND) as usize;
    let kind = |at: usize| format!("{:?}", KINDS[at]).to_lowercase();
    match at / KINDS.len() {
        0 => kind(at),
        1 => format!("i{}", kind(at - KINDS.len())),
        _ => OTHERS[at - 2 * KINDS.len()].to_owned(),
    }
}

/// Does the next operation. Between the start and the end of what does not wait failures can be injected, by its name
/// and the number of the round.
fn operation(world: &World, made: &Made, number: u64) -> Result<(), CommError> {
    let (name, round) = (name(number), number / ROUND + 1);
    let point = || world.fault_point(&name, round, None);
    let comm = [world.comm(), &made.copy, &made.half][(mixed(number) % 3) as usize];
    // The longest are announced before they are sent.
    let len = [1, 7, 900, 45_000][(mixed(number + 1) % 4) as usize];
    let at = (number % ROUND) as usize;
    let call = Call::of_numbers(comm, KINDS[at % KINDS.len()], number, len);
    let right = match name.as_str() {
        "barrier" => comm.barrier().map(|()| true)?,
        "ibarrier" => {
            let barrier = comm.ibarrier()?;
            point()?;
            barrier.wait()?.is_empty()
        }
        "exchange" | "plan" => exchange(&made.plan, made.copy.rank(), made.copy.size(), &name, point)?,
        "communicators" => Made::new(comm)?.copy.size() == comm.size(),
        _ if at < KINDS.len() => call.run()?,
        _ => {
            let request = call.start()?;
            point()?;
            call.is_right(request.wait()?)
        }
    };
    assert!(right, "{name} {number} of {len} elements on {} ranks is wrong", comm.size());
    Ok(())
}

fn exchange(
    plan: &Plan<u64>,
    rank: usize,
    size: usize,
    name: &str,
    point: impl Fn() -> Result<(), CommError>,
) -> Result<bool, CommError> {
    let row = |of: usize| (0..2 * PIECES).map(move |at| (of * 10_000 + at) as u64);
    let (out, mut buf) = (row(rank).collect::<Vec<_>>(), vec![u64::MAX; 3 * PIECES]);
    if name == "exchange" {
        point()?;
        plan.run(&out, &mut buf)?;
    } else {
        let request = plan.start(out, buf)?;
        point()?;
        buf = request.wait()?.1;
    }
    let left = (rank + size - 1) % size;
    Ok(buf.iter().step_by(3).copied().eq(row(left).step_by(2)) && buf[1] == u64::MAX)
}

/// From the last repair to the end.
fn attempt(
    world: &mut World,
    state: &mut State,
    made: &mut Option<Made>,
    rounds: u64,
) -> Result<(), CommError> {
    let comm = world.comm().clone();
    // Whoever has got farthest says where to go on.
    let mut farthest = [LocatedI64 { value: state.done as i64, index: comm.rank() as u64 }];
    comm.allreduce(&mut farthest, Op::MaxLoc)?;
    let mut words = [state.done, state.answer];
    comm.bcast(&mut words, farthest[0].index as usize)?;
    *state = State { done: words[0], answer: words[1] };
    let made = made.insert(Made::new(&comm)?);
    while state.done < rounds * ROUND {
        operation(world, made, state.done)?;
        *state = State { done: state.done + 1, answer: mixed(state.answer ^ state.done) };
        world.mark(state.done);
    }
    world.finalize(Vec::new())
}

/// So many rounds of all of them, whoever dies; rank 0 says what came of it.
pub(crate) fn survive(mut world: World, rounds: u64) -> Result<(), CommError> {
    let (mut state, mut made) = (State::default(), None);
    loop {
        let result = attempt(&mut world, &mut state, &mut made, rounds);
        if !matches!(&result, Err(error) if error.is_failure()) {
            if world.rank() == 0 && result.is_ok() {
                println!("{} operations, answer {:016x}", state.done, state.answer);
            }
            return result;
        }
        if state.done < rounds * ROUND {
            println!("interrupted in {}", name(state.done));
        }
        world.repair(0)?;
    }
}
