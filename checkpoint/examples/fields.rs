//! A state whose fields others than the program can read, out of the files of the job:
//!
//! `ftrun -n 3 --every 2 --spill-every 2 --spill DIR target/release/examples/fields 100000`, and then
//! `ftrun inspect DIR --field cloud.points --npy points.npy`
//!
//! Rank `r` has `r (r + 3) / 2` points: none, 2, 5, and so on. After step `s` point `p` of all is at `(p, s, p s)`.

use ft_checkpoint::{Flow, MainError, Program, Protect, Protection};
use ft_comm::{CommError, Op, World};

#[derive(Default, Protect)]
struct State {
    #[protect(constant, replicated)]
    weights: [f32; 3],
    #[protect(nested)]
    cloud: Cloud,
    /// Steps that this rank has done: one number more in each of the first eight.
    done: Vec<u32>,
    #[protect(replicated)]
    label: String,
}

#[derive(Default, Protect)]
struct Cloud {
    #[protect(constant, distributed)]
    ids: Vec<u64>,
    #[protect(distributed)]
    points: Vec<[f64; 3]>,
    #[protect(distributed)]
    is_even: Vec<bool>,
    #[protect(replicated)]
    age: u64,
}

struct Fields {
    steps: u64,
}

fn points_of(rank: usize) -> usize {
    rank * (rank + 3) / 2
}

impl Program for Fields {
    type State = State;
    type Error = CommError;

    fn init(&mut self, world: &World) -> Result<State, CommError> {
        let before: usize = (0..world.rank()).map(points_of).sum();
        let ids: Vec<u64> = (before..before + points_of(world.rank())).map(|id| id as u64).collect();
        let points = vec![[0.0; 3]; ids.len()];
        let is_even = ids.iter().map(|id| id % 2 == 0).collect();
        let cloud = Cloud { ids, points, is_even, age: 0 };
        Ok(State { weights: [0.5, 1.5, 2.5], cloud, done: vec![], label: "a cloud".into() })
    }

    fn step(&mut self, state: &mut State, world: &World, number: u64) -> Result<Flow, CommError> {
        let Cloud { ids, points, age, .. } = &mut state.cloud;
        *age = number;
        for (id, point) in ids.iter().zip(points) {
            *point = [*id as f64, number as f64, (*id * number) as f64];
        }
        if number <= 8 {
            state.done.push(number as u32);
        }
        world.comm().allreduce(&mut [number], Op::Max)?;
        Ok(if number == self.steps { Flow::Done } else { Flow::Continue })
    }
}

fn main() -> Result<(), MainError> {
    let steps = std::env::args().nth(1).map_or(Ok(100), |text| text.parse())?;
    let world = World::init()?;
    let protection = Protection::from_launcher(&world)?;
    ft_checkpoint::run(world, protection, &mut Fields { steps })?;
    Ok(())
}
