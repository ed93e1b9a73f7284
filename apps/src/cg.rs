//! `cg`: conjugate gradients on a sparse matrix, one iteration a step.

use std::process::ExitCode;
use std::time::Duration;

use ft_checkpoint::{Flow, Program, Protection};
use ft_comm::World;
use ft_comm::time::{Clock, Time};
use ft_linalg::solver::CgJob;
use ft_linalg::{
    DistMatrix, DistVector, LinalgError, Partition, Poisson, Preconditioning, Problem, Step, StopCriteria,
    StopReason, answer_hash, matrix_market, rhs,
};
use serde::{Deserialize, Serialize};

use crate::cli::{CgArgs, Precond, Rhs};
use crate::progress::PROGRESS;

/// How often progress is reported.
const REPORT_EVERY: Duration = Duration::from_millis(50);

/// What `cg` is about, in the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CgResult {
    pub(crate) rows: usize,
    pub(crate) nonzeros: u64,
    pub(crate) iterations: u64,
    pub(crate) converged: bool,
    pub(crate) reason: String,
    pub(crate) relative_residual: f64,
    pub(crate) answer_hash: String,
}

/// One rank of `cg`.
pub(crate) fn run(args: &CgArgs) -> ExitCode {
    let mut program = CgProgram { args: args.clone(), reason: None, clock: Clock::start(), reported: None };
    let outcome = World::init().map_err(|error| error.to_string()).and_then(|world| {
        let protection = Protection::from_launcher(&world).map_err(|error| error.to_string())?;
        ft_checkpoint::run(world, protection, &mut program).map_err(|error| error.to_string())
    });
    // The launcher has the cause and prints it once.
    if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

struct CgProgram {
    args: CgArgs,
    reason: Option<StopReason>,
    clock: Clock,
    reported: Option<Time>,
}

impl CgProgram {
    fn preconditioning(&self) -> Preconditioning {
        match self.args.precond {
            Precond::None => Preconditioning::None,
            Precond::Jacobi => Preconditioning::Jacobi,
        }
    }

    fn matrix(&self, world: &World) -> Result<DistMatrix, LinalgError> {
        let comm = world.comm();
        if let Some(file) = &self.args.matrix {
            let whole = matrix_market::read_matrix(file)?;
            whole.require_square()?;
            whole.require_symmetric()?;
            return DistMatrix::from_coordinates(&whole, comm);
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
    type State = CgJob;
    type Error = LinalgError;

    fn init(&mut self, world: &World) -> Result<CgJob, LinalgError> {
        let comm = world.comm();
        let a = self.matrix(world)?;
        let part = a.part().clone();
        let b = match &self.args.rhs {
            Rhs::Ones => rhs::ones(&part),
            Rhs::Solution => rhs::from_solution(&a, &DistVector::constant(part.clone(), 1.0), comm)?,
            Rhs::File(file) => rhs::from_file(&part, file, comm)?,
        };
        let stop = StopCriteria { rtol: self.args.tol, atol: 0.0, iterations_max: self.args.max_iter as u64 };
        CgJob::new(stop, self.preconditioning(), Problem { a, b, x: DistVector::zeros(part) }, comm)
    }

    fn rebuild(&mut self, job: &mut CgJob, world: &World) -> Result<(), LinalgError> {
        job.rebuild(self.preconditioning(), world.comm())
    }

    fn step(&mut self, job: &mut CgJob, world: &World, _: u64) -> Result<Flow, LinalgError> {
        let step = job.step(world.comm())?;
        let now = self.clock.now();
        if world.rank() == 0
            && world.setting(PROGRESS).is_some()
            && self.reported.is_none_or(|last| now.since(last) >= REPORT_EVERY)
        {
            self.reported = Some(now);
            let (iteration, residual) = (job.cg.iteration, job.cg.relative_residual());
            world.progress(None, format!("iteration {iteration}, relative residual {residual:.2e}"));
        }
        Ok(match step {
            Step::Continue => Flow::Continue,
            Step::Done(reason) => {
                self.reason = Some(reason);
                Flow::Done
            }
        })
    }

    fn output(&mut self, job: &mut CgJob, world: &World) -> Result<Vec<u8>, LinalgError> {
        let comm = world.comm();
        let reason = self.reason.expect("the last step gave a reason");
        let solution = job.solution(reason, comm)?;
        let mut nonzeros = [job.a.rows().nnz() as u64];
        comm.allreduce(&mut nonzeros, ft_comm::Op::Sum)?;
        let result = CgResult {
            rows: job.a.part().n(),
            nonzeros: nonzeros[0],
            iterations: reason.iterations(),
            converged: reason.is_converged(),
            reason: reason.to_string(),
            relative_residual: solution.relative_residual,
            answer_hash: answer_hash(job.a.part(), &job.cg.x, comm)?,
        };
        Ok(serde_json::to_vec(&result).expect("a result can be written"))
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
