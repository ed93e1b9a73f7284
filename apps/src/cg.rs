//! `cg`: conjugate gradients on a sparse matrix, one iteration a step.

use std::marker::PhantomData;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use clap::{ArgGroup, Args, ValueEnum};
use ft_checkpoint::{Flow, Program, RankState};
use ft_comm::{Communicator, World};
use ft_linalg::solver::ProtectedOperator;
use ft_linalg::{
    Cg, DistMatrix, DistStencil, DistVector, LinalgError, Partition, Poisson, Problem, Solution, SolveState,
    Solver, Stencil, Step, StopCriteria, StopReason, answer_hash, matrix_market, rhs,
};
use serde::{Deserialize, Serialize};

use crate::app::{self, App};
use crate::rank::{self, Reporter};
use crate::value::{at_least_one, positive};
use crate::words::count;

/// The arguments of `cg`.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(next_help_heading = "Options of cg")]
#[command(group = ArgGroup::new("system").required(true))]
pub(crate) struct CgArgs {
    /// The matrix, a Matrix Market file
    #[arg(long, value_name = "FILE", group = "system")]
    pub(crate) matrix: Option<PathBuf>,
    /// The Poisson problem on a grid of N x N x N points
    #[arg(long, value_name = "N", group = "system", value_parser = at_least_one)]
    pub(crate) poisson: Option<usize>,
    /// The Poisson problem on a grid of N x N points
    #[arg(long, value_name = "N", group = "system", value_parser = at_least_one)]
    pub(crate) poisson2d: Option<usize>,
    /// Form products on the grid, without a matrix: less memory and time, the same answer to the bit
    #[arg(long, conflicts_with = "matrix")]
    pub(crate) matrix_free: bool,
    /// The right-hand side: a file, 'ones', or 'solution' for the one whose solution is all ones
    #[arg(long, value_name = "FILE|ones|solution", default_value = "solution")]
    pub(crate) rhs: Rhs,
    /// Done when the norm of the residual is below this part of that of the right-hand side
    #[arg(long, value_name = "TOL", default_value = "1e-8", value_parser = positive)]
    pub(crate) tol: f64,
    /// Give up after N iterations
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = at_least_one)]
    pub(crate) max_iter: usize,
    /// The preconditioner; 'jacobi' divides by the diagonal
    #[arg(long, value_name = "P", value_enum, default_value_t = Precond::None)]
    pub(crate) precond: Precond,
}

/// The right-hand side of a system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rhs {
    /// A times the vector of ones.
    Solution,
    /// All ones.
    Ones,
    /// From a file.
    File(PathBuf),
}

impl FromStr for Rhs {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "solution" => Self::Solution,
            "ones" => Self::Ones,
            file => Self::File(file.into()),
        })
    }
}

/// A preconditioner of `cg`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Precond {
    None,
    Jacobi,
}

/// What `cg` is about, in the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CgResult {
    pub(crate) rows: usize,
    pub(crate) nonzeros: u64,
    pub(crate) iterations: u64,
    pub(crate) converged: bool,
    pub(crate) reason: String,
    #[serde(with = "crate::number")]
    pub(crate) relative_residual: f64,
    pub(crate) answer_hash: String,
}

impl App for CgArgs {
    type Outcome = CgResult;

    fn rank(&self) -> ExitCode {
        if self.matrix_free { self.rank_with::<DistStencil>() } else { self.rank_with::<DistMatrix>() }
    }

    fn complaint(&self, result: &CgResult) -> Option<String> {
        (!result.converged).then(|| result.reason.clone())
    }

    fn headline(&self, CgResult { rows, nonzeros, .. }: &CgResult) -> String {
        format!("{}, {}", count(*rows as u64, "row"), count(*nonzeros, "nonzero"))
    }

    fn lines(&self, result: &CgResult) -> Vec<String> {
        let CgResult { reason, relative_residual, answer_hash, .. } = result;
        let hash = &answer_hash[..16.min(answer_hash.len())];
        vec![format!("{reason}, relative residual {relative_residual:.2e}, answer {hash}")]
    }
}

impl CgArgs {
    fn rank_with<A: Operator>(&self) -> ExitCode {
        rank::run(|settings| CgProgram {
            args: self.clone(),
            reason: None,
            reporter: Reporter::new(settings),
            operator: PhantomData::<A>,
        })
    }

    fn grid(&self) -> Result<Poisson, LinalgError> {
        match (self.poisson, self.poisson2d) {
            (Some(n), _) => Poisson::new_3d(n, n, n),
            (None, n) => Poisson::new_2d(n.unwrap_or(1), n.unwrap_or(1)),
        }
    }
}

/// What `cg` multiplies by. Both calls are collective.
trait Operator: ProtectedOperator {
    fn make(args: &CgArgs, comm: &Communicator) -> Result<Self, LinalgError>;

    /// Entries of the matrix, stored or not.
    fn nonzeros(&self, comm: &Communicator) -> Result<u64, LinalgError>;
}

impl Operator for DistMatrix {
    fn make(args: &CgArgs, comm: &Communicator) -> Result<Self, LinalgError> {
        if let Some(file) = &args.matrix {
            let rows = matrix_market::read_rows(file, comm)?;
            rows.require_symmetric(comm)?;
            return rows.into_matrix(comm);
        }
        let grid = args.grid()?;
        let part = Partition::of(comm, grid.n());
        let rows = grid.rows(part.range());
        Self::new(part, rows, comm)
    }

    fn nonzeros(&self, comm: &Communicator) -> Result<u64, LinalgError> {
        let mut nonzeros = [self.rows().nnz() as u64];
        comm.allreduce(&mut nonzeros, ft_comm::Op::Sum)?;
        Ok(nonzeros[0])
    }
}

impl Operator for DistStencil {
    fn make(args: &CgArgs, comm: &Communicator) -> Result<Self, LinalgError> {
        Self::new(Stencil::from(&args.grid()?), comm)
    }

    fn nonzeros(&self, _: &Communicator) -> Result<u64, LinalgError> {
        Ok(self.stencil().nonzeros())
    }
}

struct CgProgram<A> {
    args: CgArgs,
    reason: Option<StopReason>,
    reporter: Reporter,
    operator: PhantomData<A>,
}

impl<A> CgProgram<A> {
    fn precond(&self) -> ft_linalg::Precond {
        match self.args.precond {
            Precond::None => ft_linalg::Precond::None,
            Precond::Jacobi => ft_linalg::Precond::Jacobi,
        }
    }
}

impl<A: Operator> Program for CgProgram<A> {
    type State = SolveState<Cg, A>;
    type Error = LinalgError;
    const SHRINKS: bool = true;

    fn redistribute(
        &mut self,
        shares: Vec<RankState<SolveState<Cg, A>>>,
        before: usize,
        world: &World,
    ) -> Result<SolveState<Cg, A>, LinalgError> {
        SolveState::redistribute(shares, before, world.comm())
    }

    fn init(&mut self, world: &World) -> Result<SolveState<Cg, A>, LinalgError> {
        let comm = world.comm();
        let a = A::make(&self.args, comm)?;
        let part = a.part().clone();
        let b = match &self.args.rhs {
            Rhs::Ones => rhs::ones(&part),
            Rhs::Solution => rhs::from_solution(&a, &DistVector::constant(part.clone(), 1.0), comm)?,
            Rhs::File(file) => rhs::from_file(&part, file, comm)?,
        };
        let stop = StopCriteria { rtol: self.args.tol, atol: 0.0, iterations_max: self.args.max_iter as u64 };
        SolveState::new(&stop, &self.precond(), Problem { a, b, x: DistVector::zeros(part) }, comm)
    }

    fn rebuild(&mut self, state: &mut SolveState<Cg, A>, world: &World) -> Result<(), LinalgError> {
        state.rebuild(&self.precond(), world.comm())
    }

    fn step(&mut self, state: &mut SolveState<Cg, A>, world: &World, _: u64) -> Result<Flow, LinalgError> {
        let step = state.step(world.comm())?;
        self.reporter.say(world, || {
            let (iteration, residual) =
                (state.solver.progress().iterations, state.solver.progress().relative_residual());
            (None, format!("iteration {iteration}, relative residual {residual:.2e}"))
        });
        Ok(match step {
            Step::Continue => Flow::Continue,
            Step::Done(reason) => {
                self.reason = Some(reason);
                Flow::Done
            }
        })
    }

    fn output(&mut self, state: &mut SolveState<Cg, A>, world: &World) -> Result<Vec<u8>, LinalgError> {
        let comm = world.comm();
        let stopped = self.reason.expect("the last step gave a reason");
        let Solution { reason, relative_residual, .. } = state.solution(stopped, comm)?;
        let result = CgResult {
            rows: state.a.part().n(),
            nonzeros: state.a.nonzeros(comm)?,
            iterations: reason.iterations(),
            converged: reason.is_converged(),
            reason: reason.to_string(),
            relative_residual,
            answer_hash: answer_hash(state.a.part(), state.solver.x(), comm)?,
        };
        Ok(app::write(&result))
    }

    /// Bad input is the user's to mend (2); a system that cannot be solved is a failed job (1).
    fn status(&self, error: &LinalgError) -> i32 {
        match error {
            LinalgError::MatrixMarket(_)
            | LinalgError::NotSquare { .. }
            | LinalgError::NotSymmetric { .. }
            | LinalgError::Length { .. }
            | LinalgError::TooLarge { .. } => 2,
            _ => 1,
        }
    }
}
