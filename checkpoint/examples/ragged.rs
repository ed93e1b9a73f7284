//! Ranks with states of different lengths, which change from step to step:
//!
//! `ftrun -n 4 --scheme rs:2+2 --every 2 --kill 1,2@step=7 target/release/examples/ragged 0 1 4099 777777`
//!
//! Rank `r` begins with the `r`-th number of bytes, grows by a half in odd steps and shrinks by a third in even ones (an empty
//! state stays empty). At the end each rank compares every byte with what it has to be, and says so.

use ft_checkpoint::{Flow, MainError, Program, Protect, Protection};
use ft_comm::{CommError, Op, World};

const STEPS: u64 = 10;

#[derive(Default, Protect)]
struct State {
    bytes: Vec<u8>,
}

struct Ragged {
    lens: Vec<usize>,
}

fn length(first: usize, step: u64) -> usize {
    (1..=step).fold(first, |len, step| if step % 2 == 1 { len + len / 2 } else { len - len / 3 })
}

/// Byte `at` of a rank's state after a step.
fn byte(rank: usize, step: u64, at: usize) -> u8 {
    let word = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (rank as u64 * 31 + step);
    (word >> 24) as u8 ^ word as u8
}

fn bytes(first: usize, rank: usize, step: u64) -> impl Iterator<Item = u8> {
    (0..length(first, step)).map(move |at| byte(rank, step, at))
}

impl Program for Ragged {
    type State = State;
    type Error = CommError;

    fn init(&mut self, world: &World) -> Result<State, CommError> {
        let first = self.lens.get(world.rank()).copied().unwrap_or(0);
        Ok(State { bytes: bytes(first, world.rank(), 0).collect() })
    }

    fn step(&mut self, state: &mut State, world: &World, number: u64) -> Result<Flow, CommError> {
        let first = self.lens.get(world.rank()).copied().unwrap_or(0);
        let rank = world.rank();
        let is_right = bytes(first, rank, number - 1).eq(state.bytes.iter().copied());
        let mut wrong = [u64::from(!is_right)];
        world.comm().allreduce(&mut wrong, Op::Sum)?;
        if wrong[0] > 0 {
            return Err(CommError::Count(format!("{} ranks have wrong bytes in step {number}", wrong[0])));
        }
        state.bytes.clear();
        state.bytes.extend(bytes(first, rank, number));
        if number == STEPS {
            println!("rank {rank}: {} bytes, all right", state.bytes.len());
        }
        Ok(if number == STEPS { Flow::Done } else { Flow::Continue })
    }
}

fn main() -> Result<(), MainError> {
    let lens = std::env::args().skip(1).map(|text| text.parse()).collect::<Result<Vec<usize>, _>>()?;
    let world = World::init()?;
    let protection = Protection::from_launcher(&world)?;
    ft_checkpoint::run(world, protection, &mut Ragged { lens })?;
    Ok(())
}
