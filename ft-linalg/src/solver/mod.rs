//! Iterative solvers, each a state that goes on by steps.
//!
//! A [`Solver`] holds what the next iteration depends on and nothing else, so that a checkpoint of it goes on with the same
//! bits. [`solve`] runs one to its end; [`Protected`] does so through failures; a program that protects a state of its own
//! keeps a solver in it and calls [`Solver::step`] itself.

use ft_checkpoint::{Field, Protect, Redistribute};
use ft_comm::Communicator;

use crate::stop::{Progress, relative};
use crate::vector::axpy;
use crate::{
    DistVector, LinalgError, LinearOperator, Partition, Preconditioner, StopCriteria, StopReason, Workspace,
};

mod any;
mod arnoldi;
mod bicgstab;
mod cg;
mod cgls;
mod chebyshev;
mod course;
mod cycle;
mod eigenpairs;
mod fgmres;
mod gmres;
mod gram_schmidt;
mod kind;
mod lanczos;
mod least_squares;
mod lobpcg;
mod lsqr;
mod many;
mod minres;
mod orthogonality;
mod power;
mod protected;
mod richardson;
mod single_reduction_cg;
mod watch;

pub use any::{AnyOptions, AnySolver};
pub use bicgstab::Bicgstab;
pub use cg::Cg;
pub use cgls::Cgls;
pub use chebyshev::{Chebyshev, ChebyshevOptions};
pub use course::{Beginning, Course, begin};
pub use fgmres::Fgmres;
pub use gmres::{Gmres, GmresOptions};
pub use kind::{Method, Task};
pub use lanczos::{Lanczos, LanczosOptions};
pub use lobpcg::{Lobpcg, LobpcgOptions};
pub use lsqr::Lsqr;
pub use many::solve_many;
pub use minres::Minres;
pub use power::Power;
pub use protected::{Problem, Protected, ProtectedOperator, SolveState, Solved};
pub use richardson::{Richardson, RichardsonOptions};
pub use single_reduction_cg::SingleReductionCg;
pub use watch::Watch;

/// What one iteration came to.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub enum Step {
    /// Call again.
    Continue,
    /// It is over. Calling again changes nothing and gives the same answer.
    Done(StopReason),
}

/// What is to be solved: `A x = b`, with a preconditioner. `b` is the local part.
#[derive(Clone, Copy)]
pub struct System<'a> {
    /// The operator.
    pub a: &'a dyn LinearOperator,
    /// The preconditioner.
    pub m: &'a dyn Preconditioner,
    /// The right-hand side, own rows; of an eigenvalue problem, where to start.
    pub b: &'a [f64],
}

impl std::fmt::Debug for System<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("System").field("part", self.a.part()).finish_non_exhaustive()
    }
}

/// A solver: its state between two iterations.
///
/// Everything that the next iteration depends on is in the state, and is protected; memory that is not comes from the
/// [`Workspace`]. All methods but the getters are collective, and all ranks return the same.
pub trait Solver: Protect + Redistribute + Default {
    /// What is chosen beforehand: when to stop, and what else the method leaves open.
    type Options: Clone + Default;

    /// The state before the first iteration, which starts from the approximation `x`. Collective.
    ///
    /// # Errors
    /// [`LinalgError::Comm`], [`LinalgError::Length`], [`LinalgError::NotRebuilt`], [`LinalgError::WrongCommunicator`], and
    /// what the method needs of an operator.
    fn start(
        options: &Self::Options,
        system: &System<'_>,
        x: &[f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Self, LinalgError>;

    /// One iteration. Collective. Once it returns [`Step::Done`], calling it again changes nothing.
    ///
    /// # Errors
    /// As [`Solver::start`]. After the first of them the state may be torn and has to be restored.
    fn step(
        &mut self,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Step, LinalgError>;

    /// The approximation, own rows. It is up to date at the start and once a step has said [`Step::Done`]; some methods
    /// form it only then, or when told to ([`Solver::settle`]).
    fn x(&self) -> &[f64];

    /// How it goes: iterations, norms, when to stop, and why it has.
    fn course(&self) -> &Course;

    /// How far it has come.
    fn progress(&self) -> Progress {
        self.course().progress()
    }

    /// When to stop.
    fn stop(&self) -> &StopCriteria {
        self.course().stop()
    }

    /// Brings [`Solver::x`] up to date, for one who stops the solver before it says [`Step::Done`] itself. Collective.
    ///
    /// # Errors
    /// As [`Solver::step`].
    fn settle(
        &mut self,
        _system: &System<'_>,
        _comm: &Communicator,
        _work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        Ok(())
    }

    /// The norm, of the approximation so far, that [`Progress::residual_norm`] follows, from
    /// scratch: `||b - A x||`, but of least squares `||A^T (b - A x)||`, and of an eigenvalue
    /// problem the largest `||A x - theta x||`. Collective.
    ///
    /// # Errors
    /// As [`Solver::start`].
    fn true_norm(
        &self,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<f64, LinalgError> {
        residual_norm(system.a, self.x(), system.b, comm, work)
    }

    /// `||b - A x|| / ||b||` once [`Solver::true_norm`] is `true_norm`; of an eigenvalue problem,
    /// that over what it is measured by. Collective.
    ///
    /// # Errors
    /// As [`Solver::start`].
    fn relative_residual(
        &self,
        true_norm: f64,
        _system: &System<'_>,
        _comm: &Communicator,
        _work: &mut Workspace,
    ) -> Result<f64, LinalgError> {
        Ok(relative(true_norm, self.progress().reference_norm))
    }
}

/// What a solver says when it is done.
#[derive(Clone, Debug, PartialEq, Field)]
pub struct Solution {
    /// Why it stopped, and after how many iterations; converged only if `relative_norm` says so
    /// too.
    pub reason: StopReason,
    /// `||r|| / ||b||` with the residual that the recurrence carries; of least squares, `||A^T r||
    /// / ||A^T b||`.
    pub recurred_relative_residual: f64,
    /// The same, computed from the answer: [`Solver::true_norm`] over what it is measured by.
    pub relative_norm: f64,
    /// `||b - A x|| / ||b||`, computed from the answer: equal to `relative_norm`, but of least
    /// squares.
    pub relative_residual: f64,
    /// The norm that [`Progress::residual_norm`] follows, at the start and after each iteration.
    pub history: Vec<f64>,
}

/// Solves `A x = b` from the approximation `x`, which becomes the answer. Collective.
///
/// # Errors
/// As [`Solver::start`]; `x` is then unchanged.
pub fn solve<S: Solver>(
    options: &S::Options,
    a: &dyn LinearOperator,
    m: &dyn Preconditioner,
    b: &DistVector,
    x: &mut DistVector,
    comm: &Communicator,
) -> Result<Solution, LinalgError> {
    solve_and_monitor::<S>(options, a, m, b, x, comm, |_| ())
}

/// As [`solve`]; after each iteration `monitor` hears on every rank how far it has come.
///
/// # Errors
/// As [`solve`].
pub fn solve_and_monitor<S: Solver>(
    options: &S::Options,
    a: &dyn LinearOperator,
    m: &dyn Preconditioner,
    b: &DistVector,
    x: &mut DistVector,
    comm: &Communicator,
    monitor: impl FnMut(&Progress),
) -> Result<Solution, LinalgError> {
    let system = System { a, m, b: b.local() };
    let (solution, solver): (_, S) =
        run(options, &system, x.local(), comm, &mut Workspace::default(), monitor)?;
    *x = DistVector::from_local(a.col_part().clone(), solver.x().to_vec())?;
    Ok(solution)
}

/// From the first approximation to the end.
fn run<S: Solver>(
    options: &S::Options,
    system: &System<'_>,
    x: &[f64],
    comm: &Communicator,
    work: &mut Workspace,
    mut monitor: impl FnMut(&Progress),
) -> Result<(Solution, S), LinalgError> {
    let mut solver = S::start(options, system, x, comm, work)?;
    let mut watch = Watch::default();
    let reason = loop {
        let step = watch.step(&mut solver, system, comm, work)?;
        monitor(&solver.progress());
        if let Step::Done(reason) = step {
            break reason;
        }
    };
    Ok((watch.conclude(&solver, reason, system, comm, work)?, solver))
}

/// Checks that a system fits the communicator and itself, and that `x` fits the system.
pub fn require(system: &System<'_>, x: &[f64], comm: &Communicator) -> Result<(), LinalgError> {
    system.a.part().require(comm)?;
    system.a.part().require_len("right-hand side", system.b.len())?;
    system.a.col_part().require_len("first approximation", x.len())
}

/// `||b - A x|| / ||b||`, from scratch; `||A x||` where `b` is zero. Collective: one product, two reductions.
///
/// # Errors
/// As [`LinearOperator::apply`].
pub fn relative_residual(
    a: &dyn LinearOperator,
    x: &DistVector,
    b: &DistVector,
    comm: &Communicator,
) -> Result<f64, LinalgError> {
    let norm = residual_norm(a, x.local(), b.local(), comm, &mut Workspace::default())?;
    Ok(relative(norm, b.norm2(comm)?))
}

/// `||b - A x||`, from scratch. Collective.
///
/// # Errors
/// As [`LinearOperator::apply`].
pub fn residual_norm(
    a: &dyn LinearOperator,
    x: &[f64],
    b: &[f64],
    comm: &Communicator,
    work: &mut Workspace,
) -> Result<f64, LinalgError> {
    let mut residual = work.take(b.len());
    residual_of(a, x, b, &mut residual, comm, work)?;
    let norm = norm2(a.part(), &residual, comm)?;
    work.give(residual);
    Ok(norm)
}

/// `r = b - A x`. Collective.
///
/// # Errors
/// As [`LinearOperator::apply`]; [`LinalgError::Length`].
pub fn residual_of(
    a: &dyn LinearOperator,
    x: &[f64],
    b: &[f64],
    r: &mut [f64],
    comm: &Communicator,
    work: &mut Workspace,
) -> Result<(), LinalgError> {
    a.part().require_len("right-hand side", b.len())?;
    let mut product = work.take(b.len());
    a.apply(x, &mut product, comm, work)?;
    r.copy_from_slice(b);
    axpy(-1.0, &product, r);
    work.give(product);
    Ok(())
}

/// The norm of a vector, also where squares overflow or underflow. Collective, see [`DistVector::norm2`].
///
/// # Errors
/// As [`DistVector::norm2`].
pub fn norm2(part: &Partition, x: &[f64], comm: &Communicator) -> Result<f64, LinalgError> {
    DistVector::from_local(part.clone(), x.to_vec())?.norm2(comm)
}
