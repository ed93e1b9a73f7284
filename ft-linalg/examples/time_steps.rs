//! Implicit time steps with a solve in each, in a state of one's own: heat that leaves a square plate. A failure in the middle of a
//! solve costs what was done of it since the last checkpoint, and no more.
//!
//! `ftrun -n 4 --kill 2@step=100 target/release/examples/time_steps`

use ft_checkpoint::{Flow, MainError, Program, Protect, Protection, RankState, Redistribute};
use ft_comm::{Communicator, World};
use ft_linalg::{
    Assembly, Cg, DistMatrix, Identity, LinalgError, Partition, Poisson, Solver, Step, StopCriteria, System,
    Workspace,
};

const SIDE: usize = 40;
const STEPS: usize = 20;
/// Length of a time step, in squares of the distance of two points over the diffusivity.
const DT: f64 = 2.0;

/// `(I + dt L) T_new = T`, and how far the solve of it has come. All of it is protected; the loop counts iterations.
#[derive(Default, Protect, Redistribute)]
struct Plate {
    #[protect(nested, distributed)]
    a: DistMatrix,
    #[protect(distributed)]
    temperatures: Vec<f64>,
    #[protect(nested, distributed)]
    solve: Cg,
    /// The steps of the loop at which time steps have ended.
    #[protect(replicated)]
    ends: Vec<u64>,
}

struct Cooling {
    work: Workspace,
}

impl Cooling {
    fn begin(&mut self, plate: &mut Plate, comm: &Communicator) -> Result<(), LinalgError> {
        let stop = StopCriteria { rtol: 1e-10, ..StopCriteria::DEFAULT };
        let system = System { a: &plate.a, m: &Identity, b: &plate.temperatures };
        plate.solve = Cg::start(&stop, &system, &plate.temperatures, comm, &mut self.work)?;
        Ok(())
    }
}

impl Program for Cooling {
    type State = Plate;
    type Error = LinalgError;
    const SHRINKS: bool = true;
    const GROWS: bool = true;

    fn init(&mut self, world: &World) -> Result<Plate, LinalgError> {
        let (comm, grid) = (world.comm(), Poisson::new_2d(SIDE, SIDE)?);
        let mine = Partition::of(comm, grid.n()).range();
        let mut a = Assembly::new(grid.n(), grid.n());
        for (row, (cols, values)) in mine.clone().zip(grid.rows(mine).iter()) {
            a.add_keyed(0, row, row, 1.0);
            cols.iter().zip(values).for_each(|(col, value)| a.add_keyed(1, row, *col as usize, DT * value));
        }
        let a = a.finish(comm)?.into_matrix(comm)?;
        let temperatures = vec![1.0; a.part().local_len()];
        let mut plate = Plate { a, temperatures, ..Plate::default() };
        self.begin(&mut plate, comm)?;
        Ok(plate)
    }

    fn rebuild(&mut self, plate: &mut Plate, world: &World) -> Result<(), LinalgError> {
        plate.a.rebuild(world.comm())
    }

    fn redistribute(
        &mut self,
        shares: Vec<RankState<Plate>>,
        _: usize,
        world: &World,
    ) -> Result<Plate, LinalgError> {
        let held = shares.iter().map(|share| share.rank).collect();
        let old = shares.first().map(|share| share.state.a.part());
        Ok(Partition::moves(world.comm(), old, held)?.deal(shares)?)
    }

    /// One iteration; at the end of a solve a time step is done, and the next solve begins.
    fn step(&mut self, plate: &mut Plate, world: &World, step: u64) -> Result<Flow, LinalgError> {
        let system = System { a: &plate.a, m: &Identity, b: &plate.temperatures };
        let Step::Done(reason) = plate.solve.step(&system, world.comm(), &mut self.work)? else {
            return Ok(Flow::Continue);
        };
        assert!(reason.is_converged(), "{reason}");
        plate.temperatures.copy_from_slice(plate.solve.x());
        plate.ends.push(step);
        if plate.ends.len() == STEPS {
            return Ok(Flow::Done);
        }
        self.begin(plate, world.comm())?;
        Ok(Flow::Continue)
    }
}

fn main() -> Result<(), MainError> {
    let world = World::init()?;
    let protection = Protection::from_launcher(&world)?;
    let plate = ft_checkpoint::run(world, protection, &mut Cooling { work: Workspace::default() })?;
    if let Some(plate) = plate {
        // The edge is kept at 0, so a plate of temperature 1 cools, and no point is colder than the edge.
        assert!(plate.temperatures.iter().all(|value| (0.0..1.0).contains(value)));
        let warmest = plate.temperatures.iter().copied().fold(0.0, f64::max);
        let ends: Vec<String> = plate.ends.iter().map(ToString::to_string).collect();
        println!("rank {}, after steps {}: {warmest:e} at most", plate.rank, ends.join(" "));
    }
    Ok(())
}
