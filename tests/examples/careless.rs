//! A ring with items under way whose ranks can go back alone, and whose `rebuild` fails in a replacement, as its argument says: `panics` and `leaves` in the first one, `errs` and `always` in each.

use ft_checkpoint::{Flow, Program, Protect, Protection};
use ft_comm::{CommError, World};

const ITEMS: u64 = 3000;
const UNDER_WAY: u64 = 3;

#[derive(Default, Protect)]
struct State {
    sum: u64,
}

struct Careless(String);

impl Program for Careless {
    type State = State;
    type Error = CommError;
    const ALONE: bool = true;

    fn init(&mut self, _: &World) -> Result<State, CommError> {
        Ok(State::default())
    }

    #[expect(clippy::disallowed_methods, reason = "a process that ends in the middle is what this is for")]
    fn rebuild(&mut self, _: &mut State, world: &World) -> Result<(), CommError> {
        match (&*self.0, world.incarnation()) {
            ("panics", 1) | ("always", 1..) => panic!("a state that cannot be made whole"),
            ("leaves", 1) => std::process::exit(0),
            ("errs", 1..) => Err(CommError::Count("a state that cannot be made whole".into())),
            _ => Ok(()),
        }
    }

    fn step(&mut self, state: &mut State, world: &World, step: u64) -> Result<Flow, CommError> {
        let (rank, size) = (world.rank(), world.size());
        if step <= ITEMS {
            world.comm().send(&[step * (rank as u64 + 1) + state.sum % 7], (rank + 1) % size, 0)?;
        }
        if step > UNDER_WAY {
            let mut item = [0];
            world.comm().recv(&mut item, (rank + size - 1) % size, 0)?;
            state.sum += item[0];
        }
        Ok(if step == ITEMS + UNDER_WAY { Flow::Done } else { Flow::Continue })
    }
}

fn main() -> Result<(), ft_checkpoint::MainError> {
    let world = World::init()?;
    let protection = Protection::from_launcher(&world)?;
    let how = std::env::args().nth(1).unwrap_or_default();
    let state = ft_checkpoint::run(world, protection, &mut Careless(how))?;
    println!("{:?}", state.map(|state| state.sum));
    Ok(())
}
