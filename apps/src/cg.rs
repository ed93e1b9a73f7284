//! `cg`: conjugate gradients on a sparse matrix, one iteration a step.

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use clap::{ArgGroup, Args};
use ft_checkpoint::{Flow, Program, RankState};
use ft_comm::World;
use ft_linalg::{
    Cg, DistMatrix, DistVector, LinalgError, Partition, Poisson, Precond, Problem, Solution, SolveState,
    Solver, Step, StopCriteria, StopReason, answer_hash, matrix_market, rhs,
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
    /// The right-hand side: a file, 'ones', or 'solution' for the one whose solution is all ones
    #[arg(long, value_name = "FILE|ones|solution", default_value = "solution")]
    pub(crate) rhs: Rhs,
    /// Done when the norm of the residual is below this part of that of the right-hand side
    #[arg(long, value_name = "TOL", default_value = "1e-8", value_parser = positive)]
    pub(crate) tol: f64,
    /// Give up after N iterations
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = at_least_one)]
    pub(crate) max_iter: usize,
    /// The preconditioner: 'none', 'jacobi' (the diagonal), 'ssor:OMEGA' (a sweep in each of 8 domains), 'bjacobi:INNER'
    /// (a solve in each domain by 'ic0', 'ssor=OMEGA' or 'cholesky'; ',domains=N' for another number), 'asm:INNER,overlap=K'
    /// (the same where domains overlap), 'chebyshev:DEGREE' (a polynomial) or 'amg' (multigrid)
    #[arg(long, value_name = "P", default_value_t = Precond::None, value_parser = symmetric)]
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

/// A preconditioner that conjugate gradients can do with.
fn symmetric(text: &str) -> Result<Precond, String> {
    let precond: Precond = text.parse()?;
    let refused = || format!("{precond} is not symmetric positive definite, as conjugate gradients need it");
    precond.is_symmetric().then_some(precond).ok_or_else(refused)
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
        rank::run(|settings| CgProgram {
            args: self.clone(),
            reason: None,
            reporter: Reporter::new(settings),
        })
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

struct CgProgram {
    args: CgArgs,
    reason: Option<StopReason>,
    reporter: Reporter,
}

impl CgProgram {
    fn matrix(&self, world: &World) -> Result<DistMatrix, LinalgError> {
        let comm = world.comm();
        if let Some(file) = &self.args.matrix {
            let rows = matrix_market::read_rows(file, comm)?;
            rows.require_symmetric(comm)?;
            return rows.into_matrix(comm);
        }
        let grid = match (self.args.poisson, self.args.poisson2d) {
            (Some(n), _) => Poisson::new_3d(n, n, n)?,
            (None, n) => Poisson::new_2d(n.unwrap_or(1), n.unwrap_or(1))?,
        };
        let part = Partition::of(comm, grid.n());
        let rows = grid.rows(part.range());
        DistMatrix::new(part, rows, comm)
    }
}

impl Program for CgProgram {
    type State = SolveState<Cg>;
    type Error = LinalgError;
    const SHRINKS: bool = true;

    fn redistribute(
        &mut self,
        shares: Vec<RankState<SolveState<Cg>>>,
        before: usize,
        world: &World,
    ) -> Result<SolveState<Cg>, LinalgError> {
        SolveState::redistribute(shares, before, world.comm())
    }

    fn init(&mut self, world: &World) -> Result<SolveState<Cg>, LinalgError> {
        let comm = world.comm();
        let a = self.matrix(world)?;
        let part = a.part().clone();
        let b = match &self.args.rhs {
            Rhs::Ones => rhs::ones(&part),
            Rhs::Solution => rhs::from_solution(&a, &DistVector::constant(part.clone(), 1.0), comm)?,
            Rhs::File(file) => rhs::from_file(&part, file, comm)?,
        };
        let stop = StopCriteria { rtol: self.args.tol, atol: 0.0, iterations_max: self.args.max_iter as u64 };
        SolveState::new(&stop, &self.args.precond, Problem { a, b, x: DistVector::zeros(part) }, comm)
    }

    fn rebuild(&mut self, state: &mut SolveState<Cg>, world: &World) -> Result<(), LinalgError> {
        state.rebuild(&self.args.precond, world.comm())
    }

    fn step(&mut self, state: &mut SolveState<Cg>, world: &World, _: u64) -> Result<Flow, LinalgError> {
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

    fn output(&mut self, state: &mut SolveState<Cg>, world: &World) -> Result<Vec<u8>, LinalgError> {
        let comm = world.comm();
        let stopped = self.reason.expect("the last step gave a reason");
        let Solution { reason, relative_residual, .. } = state.solution(stopped, comm)?;
        let mut nonzeros = [state.a.rows().nnz() as u64];
        comm.allreduce(&mut nonzeros, ft_comm::Op::Sum)?;
        let result = CgResult {
            rows: state.a.part().n(),
            nonzeros: nonzeros[0],
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
