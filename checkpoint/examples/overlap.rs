//! A sum over all ranks that is begun in one step and waited for in the next, so that one is under way at each checkpoint.
//!
//! `ftrun -n 4 --lines log --every 10 --kill 2@step=500 target/release/examples/overlap`

use ft_checkpoint::{Flow, Program, Protect, Protection};
use ft_comm::{CollectiveRecord, CollectiveRequest, CommError, Op, World};

const STEPS: u64 = 1000;

#[derive(Default, Protect)]
struct State {
    /// What the rank has so far.
    word: u64,
    /// The sum that is under way, and what this rank adds to it.
    #[protect(serde)]
    under_way: Option<(CollectiveRecord, u64)>,
}

#[derive(Default)]
struct Overlap {
    under_way: Option<CollectiveRequest<u64>>,
}

impl Program for Overlap {
    type State = State;
    type Error = CommError;
    const ALONE: bool = true;

    fn init(&mut self, world: &World) -> Result<State, CommError> {
        Ok(State { word: world.rank() as u64, under_way: None })
    }

    fn rebuild(&mut self, _: &mut State, _: &World) -> Result<(), CommError> {
        self.under_way = None; // it belongs to what was lost
        Ok(())
    }

    fn step(&mut self, state: &mut State, world: &World, step: u64) -> Result<Flow, CommError> {
        let comm = world.comm();
        if let (Some((record, mine)), None) = (&state.under_way, &self.under_way) {
            let again = comm.begin_again(record, |comm| comm.iallreduce(vec![*mine], Op::Sum))?;
            self.under_way = Some(again);
        }
        let mine = state.word.wrapping_mul(6_364_136_223_846_793_005).rotate_left(17) ^ step;
        if let Some(sum) = self.under_way.take() {
            state.word = state.word.wrapping_mul(31) ^ sum.wait()?[0];
        }
        state.under_way = None;
        if step == STEPS {
            return Ok(Flow::Done);
        }
        let sum = comm.iallreduce(vec![mine], Op::Sum)?;
        state.under_way = Some((sum.record()?, mine));
        self.under_way = Some(sum);
        Ok(Flow::Continue)
    }
}

fn main() -> Result<(), ft_checkpoint::MainError> {
    let world = World::init()?;
    let protection = Protection::from_launcher(&world)?;
    let state = ft_checkpoint::run(world, protection, &mut Overlap::default())?;
    println!("{:?}", state.map(|state| state.word));
    Ok(())
}
