//! An equation on a line by asynchronous iterations (D. Chazan, W. Miranker, Chaotic relaxation, Linear Algebra and its Applications 2, 1969): a rank takes the
//! newest values of its neighbours that have come, and goes on.
//!
//! `ftrun -n 4 --kill 1@step=300 target/release/examples/chaotic`

use ft_checkpoint::{Flow, Lines, Program, Protect, Protection};
use ft_comm::{CommError, Rank, World};

const STEPS: u64 = 1000;
/// Steps that a rank may be ahead of a neighbour.
const AHEAD: u64 = 8;
/// Points of each rank.
const POINTS: usize = 200;

#[derive(Default, Protect)]
struct State {
    values: Vec<f64>,
    /// The values of the neighbours' next points, and the steps that they are of.
    edges: [f64; 2],
    heard: [u64; 2],
}

struct Chaotic;

impl Program for Chaotic {
    type State = State;
    type Error = CommError;
    const ALONE: bool = true;

    fn init(&mut self, _: &World) -> Result<State, CommError> {
        Ok(State { values: vec![0.0; POINTS], ..State::default() })
    }

    fn step(&mut self, state: &mut State, world: &World, step: u64) -> Result<Flow, CommError> {
        let comm = world.comm();
        for (side, neighbor) in neighbors(world) {
            while state.heard[side] + AHEAD < step || comm.iprobe(neighbor, 0)?.is_some() {
                let mut edge = [0.0; 2];
                comm.recv(&mut edge, neighbor, 0)?;
                (state.edges[side], state.heard[side]) = (edge[0], edge[1] as u64);
            }
        }
        let [left, right] = state.edges;
        let before = [&[left], &state.values[..], &[right]].concat();
        for (value, three) in state.values.iter_mut().zip(before.windows(3)) {
            *value = (1.0 + three[0] + three[2]) / 2.5;
        }
        for (side, neighbor) in neighbors(world) {
            let edge = if side == 0 { state.values[0] } else { state.values[POINTS - 1] };
            comm.send(&[edge, step as f64], neighbor, 0)?;
        }
        Ok(if step == STEPS { Flow::Done } else { Flow::Continue })
    }
}

/// The ranks to the left and to the right, each with the number of its side.
fn neighbors(world: &World) -> impl Iterator<Item = (usize, Rank)> {
    let right = Some(world.rank() + 1).filter(|right| *right < world.size());
    let both = [world.rank().checked_sub(1), right];
    both.into_iter().enumerate().filter_map(|(side, neighbor)| Some((side, neighbor?)))
}

fn main() -> Result<(), ft_checkpoint::MainError> {
    let world = World::init()?;
    // Ranks take steps of their own, so nothing else is possible.
    let protection = Protection { lines: Lines::Log, ..Protection::from_launcher(&world)? };
    let state = ft_checkpoint::run(world, protection, &mut Chaotic)?;
    if let Some(state) = state {
        println!("rank {}: {:.9} at its left end", state.rank, state.values[0]);
    }
    Ok(())
}
