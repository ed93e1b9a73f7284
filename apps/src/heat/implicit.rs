//! The plate by implicit time steps: `(I + dt L) T_new = T + dt edge`, with `L` the five-point Laplacian, a system for conjugate
//! gradients. A step of the loop is one of their iterations, so a failure in the middle of a system costs no more of it than
//! what was done since the last checkpoint.

use ft_checkpoint::{Flow, Program, Protect, RankState, Redistribute};
use ft_comm::{Op, World};
use ft_linalg::{
    Cg, CsrRows, DistMatrix, Identity, LinalgError, Partition, Poisson, Solver, Step, StopCriteria, System,
    Workspace, answer_hash,
};

use super::{HeatArgs, HeatResult, PICTURE_SIDE, rounded};
use crate::app;
use crate::rank::Reporter;

/// How well each system is solved, and how far temperatures may be outside of those of the edges for it.
const STOP: StopCriteria = StopCriteria { rtol: 1e-10, iterations_max: 100_000, ..StopCriteria::DEFAULT };
const SLACK: f64 = 1e-6;

/// The temperatures, and the system of the time step that is under way.
#[derive(Default, Protect, Redistribute)]
pub(super) struct Stepping {
    #[protect(nested, distributed)]
    a: DistMatrix,
    /// Temperatures after the last whole time step, row by row of the plate.
    #[protect(distributed)]
    here: Vec<f64>,
    #[protect(nested, distributed)]
    cg: Cg,
    /// Whole time steps.
    #[protect(replicated)]
    steps: u64,
    /// The largest change in the last of them.
    #[protect(replicated)]
    change: f64,
    /// The right-hand side, which follows from `here`.
    #[protect(derived)]
    b: Vec<f64>,
}

pub(super) struct Implicit {
    pub(super) args: HeatArgs,
    /// Length of a time step, in squares of the distance of two points over the diffusivity.
    pub(super) dt: f64,
    pub(super) reporter: Reporter,
    pub(super) work: Workspace,
}

impl Implicit {
    fn side(&self) -> usize {
        self.args.grid as usize
    }

    /// `I + dt L`.
    fn rows(&self, part: &Partition) -> Result<CsrRows, LinalgError> {
        let range = part.range();
        let laplacian = Poisson::new_2d(self.side(), self.side())?.rows(range.clone());
        let on_diagonal = |row: usize, col: u64| if col as usize == range.start + row { 1.0 } else { 0.0 };
        let (mut starts, mut cols, mut vals) = (vec![0], vec![], vec![]);
        for (row, (at, values)) in laplacian.iter().enumerate() {
            vals.extend(at.iter().zip(values).map(|(col, value)| on_diagonal(row, *col) + self.dt * value));
            cols.extend_from_slice(at);
            starts.push(cols.len());
        }
        CsrRows::new(starts, cols, vals, part.n())
    }

    /// The right-hand side after `here`: the hot edge, of temperature 1, is above the first row of the plate.
    fn right_hand_side(&self, part: &Partition, here: &[f64]) -> Vec<f64> {
        let edge = |row: usize| if row < self.side() { self.dt } else { 0.0 };
        part.range().zip(here).map(|(row, value)| value + edge(row)).collect()
    }

    /// Begins the system of the next time step.
    fn begin(&mut self, state: &mut Stepping, world: &World) -> Result<(), LinalgError> {
        state.b = self.right_hand_side(state.a.part(), &state.here);
        let system = System { a: &state.a, m: &Identity, b: &state.b };
        state.cg = Cg::start(&STOP, &system, &state.here, world.comm(), &mut self.work)?;
        Ok(())
    }
}

impl Program for Implicit {
    type State = Stepping;
    type Error = LinalgError;
    const SHRINKS: bool = true;
    const GROWS: bool = true;
    const ALONE: bool = true;

    fn redistribute(
        &mut self,
        shares: Vec<RankState<Stepping>>,
        _: usize,
        world: &World,
    ) -> Result<Stepping, LinalgError> {
        let held = shares.iter().map(|share| share.rank).collect();
        let old = shares.first().map(|share| share.state.a.part());
        Ok(Partition::moves(world.comm(), old, held)?.deal(shares)?)
    }

    fn init(&mut self, world: &World) -> Result<Stepping, LinalgError> {
        let part = Partition::of(world.comm(), self.side() * self.side());
        let here = vec![0.0; part.local_len()];
        let a = DistMatrix::new(part.clone(), self.rows(&part)?, world.comm())?;
        let mut state = Stepping { a, here, ..Stepping::default() };
        self.begin(&mut state, world)?;
        Ok(state)
    }

    fn rebuild(&mut self, state: &mut Stepping, world: &World) -> Result<(), LinalgError> {
        state.b = self.right_hand_side(state.a.part(), &state.here);
        state.a.rebuild(world.comm())
    }

    fn step(&mut self, state: &mut Stepping, world: &World, _: u64) -> Result<Flow, LinalgError> {
        let system = System { a: &state.a, m: &Identity, b: &state.b };
        let Step::Done(reason) = state.cg.step(&system, world.comm(), &mut self.work)? else {
            return Ok(Flow::Continue);
        };
        // A maximum is the same in any order; not a number stays in it.
        let larger = |most: f64, by: f64| if by > most || by.is_nan() { by } else { most };
        let changes = state.here.iter().zip(state.cg.x()).map(|(old, new)| (new - old).abs());
        let most = if reason.is_converged() { changes.fold(0.0, larger) } else { f64::NAN };
        let mut largest = [most];
        world.comm().allreduce(&mut largest, Op::Max)?;
        state.here.copy_from_slice(state.cg.x());
        (state.steps, state.change) = (state.steps + 1, largest[0]);

        let (steps, change, last) = (state.steps, state.change, u64::from(self.args.steps));
        let share = steps as f64 / last as f64;
        self.reporter.say(world, || (Some(share), format!("step {steps}, largest change {change:.2e}")));
        let is_over = steps >= last || change.is_nan() || self.args.tol.is_some_and(|tol| change < tol);
        if is_over {
            return Ok(Flow::Done);
        }
        self.begin(state, world)?;
        Ok(Flow::Continue)
    }

    fn output(&mut self, state: &mut Stepping, world: &World) -> Result<Vec<u8>, LinalgError> {
        let (comm, part) = (world.comm(), state.a.part());
        let is_between = |value: &f64| (-SLACK..=1.0 + SLACK).contains(value);
        let mut plausible = [u8::from(state.change.is_finite() && state.here.iter().all(is_between))];
        comm.allreduce(&mut plausible, Op::Min)?;
        let mut picture = vec![];
        if self.args.picture.is_some() {
            // Every point is some rank's, and 0 on the others.
            let points = self.side().min(PICTURE_SIDE);
            let at = |point: usize| point * self.side() / points;
            let value = |i: usize| {
                let row = at(i % points) * self.side() + at(i / points);
                if part.range().contains(&row) { state.here[row - part.range().start] } else { 0.0 }
            };
            let mut all: Vec<f64> = (0..points * points).map(value).collect();
            comm.allreduce(&mut all, Op::Sum)?;
            picture = all.into_iter().map(rounded).collect();
        }
        let result = HeatResult {
            grid: self.args.grid,
            steps: state.steps,
            change: state.change,
            plausible: plausible[0] == 1,
            answer_hash: answer_hash(part, &state.here, comm)?,
            picture: if comm.rank() == 0 { picture } else { vec![] },
        };
        Ok(app::write(&result))
    }
}
