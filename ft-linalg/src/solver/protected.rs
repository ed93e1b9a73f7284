//! Any solver in the resilient loop: one iteration is one step. Operator and right-hand side are the constant part of the
//! state, the solver's own state the variable one; halo plan and preconditioner are derived. So a replacement gets its rows
//! from the memory of others and reads no file.

use std::fmt;

use ft_checkpoint::{
    Distributed, Finished, Flow, Job, Program, Protect, Protection, RankState, Redistribute, Replicated,
    RunError,
};
use ft_comm::{Communicator, World};

use super::{Solution, Solver, Step, System, Watch};
use crate::stop::Progress;
use crate::{
    DistMatrix, DistVector, LinalgError, LinearOperator, MakePreconditioner, Partition, Preconditioner,
    Workspace,
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
    /// What is known of its iterations so far.
    #[protect(nested, replicated)]
    watch: Watch,
    /// What the last step came to.
    #[protect(replicated)]
    solution: Option<Solution>,
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
        Ok(Self { a, b: b.into_local(), solver, watch: Watch::default(), solution: None, m: Some(m), work })
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

    /// This solve on fewer ranks: rows and vectors are dealt out anew, and [`SolveState::rebuild`] is to follow. `shares` are the
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

    /// One iteration; the last one is followed by a product and a reduction for the true residual. Collective.
    ///
    /// # Errors
    /// As [`Solver::step`]; [`LinalgError::NotRebuilt`].
    pub fn step(&mut self, comm: &Communicator) -> Result<Step, LinalgError> {
        let m = self.m.as_deref().ok_or(LinalgError::NotRebuilt)?;
        let system = System { a: &self.a, m, b: &self.b };
        let step = self.watch.step(&mut self.solver, &system, comm, &mut self.work)?;
        if let (Step::Done(reason), None) = (step, &self.solution) {
            let solution = self.watch.conclude(&self.solver, reason, &system, comm, &mut self.work)?;
            self.solution = Some(solution);
        }
        Ok(step)
    }

    /// What has been reached, once a step has said [`Step::Done`].
    pub fn solution(&self) -> Option<&Solution> {
        self.solution.as_ref()
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

/// A solve that survives failures, from the collective setup of the problem to its end: a job of its own
/// ([`Protected::solve`]), or one of several runs in a job ([`Protected::solve_in`]). It is a [`Program`]: what else of a last
/// state is wanted, such as eigenvalues, [`ft_checkpoint::Job::run`] gives.
///
/// A solver of one's own is protected in the same manner: it is a [`Solver`].
pub struct Protected<'a, S: Solver, A = DistMatrix> {
    options: S::Options,
    precond: Box<dyn MakePreconditioner + 'a>,
    setup: Box<Setup<'a, A>>,
    monitor: Box<dyn FnMut(&Progress) + 'a>,
}

impl<S: Solver, A> fmt::Debug for Protected<'_, S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Protected").finish_non_exhaustive()
    }
}

impl<'a, S: Solver, A: ProtectedOperator> Protected<'a, S, A> {
    /// A solve of what `setup` makes, collectively, with the preconditioner that `precond` makes for it.
    pub fn new(
        options: S::Options,
        precond: impl MakePreconditioner + 'a,
        setup: impl FnMut(&World) -> Result<Problem<A>, LinalgError> + 'a,
    ) -> Self {
        Self { options, precond: Box::new(precond), setup: Box::new(setup), monitor: Box::new(|_| ()) }
    }

    /// Says to `monitor`, on every rank and after each iteration, how far the solver has come. Iterations that are done again
    /// after a failure are heard again.
    pub fn monitor(self, monitor: impl FnMut(&Progress) + 'a) -> Self {
        Self { monitor: Box::new(monitor), ..self }
    }

    /// Solves, through failures, and leaves the job together with all ranks. Returns the answer
    /// with the rank that this process has then; `None` on dedicated parity ranks.
    ///
    /// # Errors
    /// The job has ended everywhere; with its cause.
    pub fn solve(
        mut self,
        world: World,
        protection: Protection,
    ) -> Result<Option<Finished<Solved<S>>>, RunError<LinalgError>> {
        let solved = |SolveState { a, solver, solution, .. }: SolveState<S, A>| {
            let x = DistVector::from_local(a.col_part().clone(), solver.x().to_vec());
            Solved {
                solution: solution.expect("the last step has concluded"),
                x: x.expect("the solver's vectors fit its operator"),
                solver,
            }
        };
        Ok(ft_checkpoint::run(world, protection, &mut self)?.map(|finished| finished.map(solved)))
    }

    /// Solves, through failures, as one of several protected runs of `job`; gives the answer's own rows too, to be made a
    /// vector with the partition of the problem. Both are kept until the job ends, so that a replacement gets them. A job that is resumed
    /// on another number of ranks has them too, if that partition gives all ranks as many blocks of rows ([`Partition::new`]).
    ///
    /// # Errors
    /// The job has ended everywhere; with its cause. As [`ft_checkpoint::Job::run`].
    pub fn solve_in(mut self, job: &mut Job) -> Result<(Solution, Vec<f64>), RunError<LinalgError>> {
        let (Replicated(solution), x) = job.run(&mut self, |state| {
            let solution = state.solution.clone().expect("the last step has concluded");
            let unit = state.a.col_part().unit().unwrap_or(0);
            (Replicated(solution), Distributed::in_units(state.solver.x().to_vec(), unit))
        })?;
        Ok((solution, x.into_items()))
    }
}

impl<S: Solver, A: ProtectedOperator> Program for Protected<'_, S, A> {
    type State = SolveState<S, A>;
    type Error = LinalgError;
    const SHRINKS: bool = true;
    const GROWS: bool = true;
    const ALONE: bool = true;

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
            Step::Done(_) => Flow::Done,
        })
    }
}
