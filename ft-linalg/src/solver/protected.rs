//! Conjugate gradients in the resilient loop: one iteration is one step, matrix and right-hand side are the
//! constant part of the state, the vectors of the recurrence the variable one; halo plan and preconditioner are
//! derived. So a replacement gets its rows from the memory of others and reads no file.

use ft_checkpoint::{Flow, Program, Protect, Protection, RankState, Redistribute, RunError};
use ft_comm::{Communicator, World};

use super::{CgState, Solution, Step};
use crate::{
    DistMatrix, DistVector, Identity, Jacobi, LinalgError, Partition, Preconditioner, StopCriteria,
    StopReason,
};

/// Which preconditioner; it is made from the matrix at the start and again after a restore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preconditioning {
    /// None.
    #[default]
    None,
    /// [`Jacobi`].
    Jacobi,
}

impl Preconditioning {
    fn build(self, a: &DistMatrix, comm: &Communicator) -> Result<Box<dyn Preconditioner>, LinalgError> {
        Ok(match self {
            Self::None => Box::new(Identity),
            Self::Jacobi => Box::new(Jacobi::new(a, comm)?),
        })
    }
}

/// `A x = b` with a first approximation.
#[derive(Debug)]
pub struct Problem {
    /// The matrix.
    pub a: DistMatrix,
    /// The right-hand side.
    pub b: DistVector,
    /// Where to start.
    pub x: DistVector,
}

/// What a protected solve holds: everything that is needed to go on anywhere.
#[derive(Default, Protect, Redistribute)]
pub struct CgJob {
    /// The matrix.
    #[protect(nested, distributed)]
    pub a: DistMatrix,
    /// The right-hand side, own rows.
    #[protect(constant, distributed)]
    pub b: Vec<f64>,
    /// The recurrence.
    #[protect(nested, distributed)]
    pub cg: CgState,
    #[protect(derived)]
    m: Option<Box<dyn Preconditioner>>,
}

impl std::fmt::Debug for CgJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CgJob").field("part", self.a.part()).field("iteration", &self.cg.iteration).finish()
    }
}

impl CgJob {
    /// The state before the first iteration. Collective.
    ///
    /// # Errors
    /// As [`CgState::new`] and [`Jacobi::new`].
    pub fn new(
        stop: StopCriteria,
        preconditioning: Preconditioning,
        problem: Problem,
        comm: &Communicator,
    ) -> Result<Self, LinalgError> {
        let Problem { a, b, x } = problem;
        let m = preconditioning.build(&a, comm)?;
        let cg = CgState::new(stop, &a, &*m, &b, &x, comm)?;
        Ok(Self { a, b: b.into_local(), cg, m: Some(m) })
    }

    /// Makes halo plan and preconditioner again, after a restore. Collective.
    ///
    /// # Errors
    /// As [`DistMatrix::rebuild`] and [`Jacobi::new`].
    pub fn rebuild(
        &mut self,
        preconditioning: Preconditioning,
        comm: &Communicator,
    ) -> Result<(), LinalgError> {
        self.a.rebuild(comm)?;
        self.m = Some(preconditioning.build(&self.a, comm)?);
        Ok(())
    }

    /// The job on fewer ranks: rows and vectors are dealt out anew, and [`CgJob::rebuild`] is to follow. `shares` are the
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
    /// As [`CgState::step`]; [`LinalgError::NotRebuilt`].
    pub fn step(&mut self, comm: &Communicator) -> Result<Step, LinalgError> {
        let m = self.m.as_deref().ok_or(LinalgError::NotRebuilt)?;
        self.cg.step(&self.a, m, comm)
    }

    /// What has been reached, with the true residual. Collective.
    ///
    /// # Errors
    /// As [`DistMatrix::multiply`].
    pub fn solution(&self, reason: StopReason, comm: &Communicator) -> Result<Solution, LinalgError> {
        let part = self.a.part();
        let x = DistVector::from_local(part.clone(), self.cg.x.clone())?;
        let b = DistVector::from_local(part.clone(), self.b.clone())?;
        self.cg.solution(reason, &self.a, &x, &b, comm)
    }
}

/// The end of a protected solve.
#[derive(Clone, Debug, PartialEq)]
pub struct Solved {
    /// Why it stopped, and the residuals.
    pub solution: Solution,
    /// The answer, own rows.
    pub x: DistVector,
}

/// Makes the problem, collectively.
type Setup<'a> = dyn FnMut(&World) -> Result<Problem, LinalgError> + 'a;

/// A protected solve, made by [`super::Cg::protect`].
pub struct Protected<'a> {
    stop: StopCriteria,
    protection: Protection,
    preconditioning: Preconditioning,
    setup: Box<Setup<'a>>,
    reason: Option<StopReason>,
    solution: Option<Solution>,
}

impl std::fmt::Debug for Protected<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Protected").field("stop", &self.stop).field("protection", &self.protection).finish()
    }
}

impl<'a> Protected<'a> {
    pub(super) fn new(
        stop: StopCriteria,
        protection: Protection,
        preconditioning: Preconditioning,
        setup: impl FnMut(&World) -> Result<Problem, LinalgError> + 'a,
    ) -> Self {
        Self { stop, protection, preconditioning, setup: Box::new(setup), reason: None, solution: None }
    }

    /// Solves, through failures, and leaves the job together with all ranks. `None` on dedicated parity ranks.
    ///
    /// # Errors
    /// The job has ended everywhere; with its cause.
    pub fn solve(mut self, world: World) -> Result<Option<Solved>, RunError<LinalgError>> {
        let job = ft_checkpoint::run(world, self.protection.clone(), &mut self)?;
        Ok(job.zip(self.solution).map(|(job, solution)| {
            let x =
                DistVector::from_local(job.a.part().clone(), job.cg.x).expect("the state fits its matrix");
            Solved { solution, x }
        }))
    }
}

impl Program for Protected<'_> {
    type State = CgJob;
    type Error = LinalgError;
    const SHRINKS: bool = true;

    fn redistribute(
        &mut self,
        shares: Vec<RankState<CgJob>>,
        before: usize,
        world: &World,
    ) -> Result<CgJob, LinalgError> {
        CgJob::redistribute(shares, before, world.comm())
    }

    fn init(&mut self, world: &World) -> Result<CgJob, LinalgError> {
        CgJob::new(self.stop, self.preconditioning, (self.setup)(world)?, world.comm())
    }

    fn rebuild(&mut self, job: &mut CgJob, world: &World) -> Result<(), LinalgError> {
        job.rebuild(self.preconditioning, world.comm())
    }

    fn step(&mut self, job: &mut CgJob, world: &World, _: u64) -> Result<Flow, LinalgError> {
        match job.step(world.comm())? {
            Step::Continue => Ok(Flow::Continue),
            Step::Done(reason) => {
                self.reason = Some(reason);
                Ok(Flow::Done)
            }
        }
    }

    fn output(&mut self, job: &mut CgJob, world: &World) -> Result<Vec<u8>, LinalgError> {
        let reason = self.reason.expect("the last step gave a reason");
        self.solution = Some(job.solution(reason, world.comm())?);
        Ok(Vec::new())
    }
}
