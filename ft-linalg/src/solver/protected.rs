//! Any solver in the resilient loop: one iteration is one step. Operator and right-hand side are the constant part of the
//! state, the solver's own state the variable one; halo plan and preconditioner are derived. So a replacement gets its rows
//! from the memory of others and reads no file.

use std::fmt;

use ft_checkpoint::{Flow, Program, Protect, Protection, RankState, Redistribute, RunError};
use ft_comm::{Communicator, World};

use super::{Solution, Solver, Step, System, conclude};
use crate::stop::Progress;
use crate::{
    DistMatrix, DistVector, LinalgError, LinearOperator, MakePreconditioner, Partition, Preconditioner,
    StopReason, Workspace,
};

/// An operator that a protected solve can hold: what it is made of is protected, the rest is made again.
pub trait ProtectedOperator: LinearOperator + Protect + Redistribute + Default {
    /// Makes what is derived again, after a restore. Collective.
    ///
    /// # Errors
    /// What was restored does not fit; a failure.
    fn rebuild(&mut self, comm: &Communicator) -> Result<(), LinalgError>;
}

impl ProtectedOperator for DistMatrix {
    fn rebuild(&mut self, comm: &Communicator) -> Result<(), LinalgError> {
        self.rebuild(comm)
    }
}

/// `A x = b` with a first approximation.
#[derive(Debug)]
pub struct Problem<A = DistMatrix> {
    /// The operator.
    pub a: A,
    /// The right-hand side.
    pub b: DistVector,
    /// Where to start.
    pub x: DistVector,
}

/// What a protected solve holds: everything that is needed to go on anywhere. A program with a state of its own can hold one
/// and step it.
#[derive(Default, Protect, Redistribute)]
pub struct SolveState<S, A = DistMatrix> {
    /// The operator.
    #[protect(nested, distributed)]
    pub a: A,
    /// The right-hand side, own rows.
    #[protect(constant, distributed)]
    pub b: Vec<f64>,
    /// The solver.
    #[protect(nested, distributed)]
    pub solver: S,
    #[protect(derived)]
    m: Option<Box<dyn Preconditioner>>,
    #[protect(derived)]
    work: Workspace,
}

impl<S: Solver, A: ProtectedOperator> fmt::Debug for SolveState<S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (part, progress) = (self.a.part(), self.solver.progress());
        f.debug_struct("SolveState").field("part", part).field("progress", &progress).finish_non_exhaustive()
    }
}

impl<S: Solver, A: ProtectedOperator> SolveState<S, A> {
    /// The state before the first iteration. Collective.
    ///
    /// # Errors
    /// As [`Solver::start`] and [`MakePreconditioner::make`].
    pub fn new(
        options: &S::Options,
        precond: &dyn MakePreconditioner,
        problem: Problem<A>,
        comm: &Communicator,
    ) -> Result<Self, LinalgError> {
        let Problem { a, b, x } = problem;
        let (m, mut work) = (precond.make(&a, comm)?, Workspace::default());
        let system = System { a: &a, m: &*m, b: b.local() };
        let solver = S::start(options, &system, x.local(), comm, &mut work)?;
        Ok(Self { a, b: b.into_local(), solver, m: Some(m), work })
    }

    /// Makes halo plan and preconditioner again, after a restore. Collective.
    ///
    /// # Errors
    /// As [`ProtectedOperator::rebuild`] and [`MakePreconditioner::make`].
    pub fn rebuild(
        &mut self,
        precond: &dyn MakePreconditioner,
        comm: &Communicator,
    ) -> Result<(), LinalgError> {
        self.a.rebuild(comm)?;
        self.m = Some(precond.make(&self.a, comm)?);
        Ok(())
    }

    /// The same on fewer ranks: rows and vectors are dealt out anew, and [`SolveState::rebuild`] is to follow. `shares` are the
    /// states of the old ranks that fell to this one, `before` the number of old ranks. Collective; every row is sent
    /// once. The iteration goes on with the same bits, as sums do not depend on the number of ranks.
    ///
    /// # Errors
    /// A failure.
    pub fn redistribute(
        shares: Vec<RankState<Self>>,
        before: usize,
        comm: &Communicator,
    ) -> Result<Self, LinalgError> {
        let held = shares.iter().map(|share| share.rank).collect();
        let old = shares.first().map(|share| share.state.a.part());
        debug_assert!(old.is_none_or(|old| old.size() == before));
        Ok(Partition::moves(comm, old, held)?.deal(shares)?)
    }

    /// One iteration. Collective.
    ///
    /// # Errors
    /// As [`Solver::step`]; [`LinalgError::NotRebuilt`].
    pub fn step(&mut self, comm: &Communicator) -> Result<Step, LinalgError> {
        let m = self.m.as_deref().ok_or(LinalgError::NotRebuilt)?;
        self.solver.step(&System { a: &self.a, m, b: &self.b }, comm, &mut self.work)
    }

    /// What has been reached, with the true residual. Collective.
    ///
    /// # Errors
    /// As [`conclude`]; [`LinalgError::NotRebuilt`].
    pub fn solution(&mut self, reason: StopReason, comm: &Communicator) -> Result<Solution, LinalgError> {
        let m = self.m.as_deref().ok_or(LinalgError::NotRebuilt)?;
        conclude(&self.solver, reason, &System { a: &self.a, m, b: &self.b }, comm, &mut self.work)
    }
}

/// The end of a protected solve.
#[derive(Clone, Debug, PartialEq)]
pub struct Solved<S> {
    /// Why it stopped, and the residuals.
    pub solution: Solution,
    /// The answer, own rows.
    pub x: DistVector,
    /// The solver's last state, with what else it has found.
    pub solver: S,
}

/// Makes the problem, collectively.
type Setup<'a, A> = dyn FnMut(&World) -> Result<Problem<A>, LinalgError> + 'a;

/// A solve that survives failures: a job of its own, from the collective setup of the problem to its end.
///
/// A solver of one's own is protected in the same manner: it is a [`Solver`].
pub struct Protected<'a, S: Solver, A = DistMatrix> {
    options: S::Options,
    protection: Protection,
    precond: Box<dyn MakePreconditioner + 'a>,
    setup: Box<Setup<'a, A>>,
    monitor: Box<dyn FnMut(&Progress) + 'a>,
    reason: Option<StopReason>,
    solution: Option<Solution>,
}

impl<S: Solver, A> fmt::Debug for Protected<'_, S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Protected").field("protection", &self.protection).finish_non_exhaustive()
    }
}

impl<'a, S: Solver, A: ProtectedOperator> Protected<'a, S, A> {
    /// A solve of what `setup` makes, collectively, with the preconditioner that `precond` makes for it.
    pub fn new(
        options: S::Options,
        protection: Protection,
        precond: impl MakePreconditioner + 'a,
        setup: impl FnMut(&World) -> Result<Problem<A>, LinalgError> + 'a,
    ) -> Self {
        Self {
            options,
            protection,
            precond: Box::new(precond),
            setup: Box::new(setup),
            monitor: Box::new(|_| ()),
            reason: None,
            solution: None,
        }
    }

    /// Says to `monitor`, on every rank and after each iteration, how far the solver has come. Iterations that are done again
    /// after a failure are heard again.
    pub fn monitor(self, monitor: impl FnMut(&Progress) + 'a) -> Self {
        Self { monitor: Box::new(monitor), ..self }
    }

    /// Solves, through failures, and leaves the job together with all ranks. `None` on dedicated parity ranks.
    ///
    /// # Errors
    /// The job has ended everywhere; with its cause.
    pub fn solve(mut self, world: World) -> Result<Option<Solved<S>>, RunError<LinalgError>> {
        let job = ft_checkpoint::run(world, self.protection.clone(), &mut self)?;
        Ok(job.zip(self.solution).map(|(SolveState { a, solver, .. }, solution)| {
            let x = DistVector::from_local(a.col_part().clone(), solver.x().to_vec());
            Solved { solution, x: x.expect("the solver's vectors fit its operator"), solver }
        }))
    }
}

impl<S: Solver, A: ProtectedOperator> Program for Protected<'_, S, A> {
    type State = SolveState<S, A>;
    type Error = LinalgError;
    const SHRINKS: bool = true;

    fn redistribute(
        &mut self,
        shares: Vec<RankState<SolveState<S, A>>>,
        before: usize,
        world: &World,
    ) -> Result<SolveState<S, A>, LinalgError> {
        SolveState::redistribute(shares, before, world.comm())
    }

    fn init(&mut self, world: &World) -> Result<SolveState<S, A>, LinalgError> {
        SolveState::new(&self.options, &*self.precond, (self.setup)(world)?, world.comm())
    }

    fn rebuild(&mut self, state: &mut SolveState<S, A>, world: &World) -> Result<(), LinalgError> {
        state.rebuild(&*self.precond, world.comm())
    }

    fn step(&mut self, state: &mut SolveState<S, A>, world: &World, _: u64) -> Result<Flow, LinalgError> {
        let step = state.step(world.comm())?;
        (self.monitor)(&state.solver.progress());
        Ok(match step {
            Step::Continue => Flow::Continue,
            Step::Done(reason) => {
                self.reason = Some(reason);
                Flow::Done
            }
        })
    }

    fn output(&mut self, state: &mut SolveState<S, A>, world: &World) -> Result<Vec<u8>, LinalgError> {
        let reason = self.reason.expect("the last step gave a reason");
        self.solution = Some(state.solution(reason, world.comm())?);
        Ok(Vec::new())
    }
}
