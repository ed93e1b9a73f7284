//! The solve in the resilient loop.

use std::marker::PhantomData;
use std::path::Path;

use ft_checkpoint::{Flow, Program, RankState};
use ft_comm::{Communicator, World};
use ft_linalg::solver::{AnySolver, Task};
use ft_linalg::{
    DistVector, LinalgError, Partition, Problem, SolveState, Solver, Step, answer_hash, matrix_market, npy,
    rhs,
};

use super::operator::Operator;
use super::{AnswerFile, Rhs, SolveArgs, SolveResult};
use crate::app;
use crate::number::Number;
use crate::rank::{Rate, Reporter};

/// See the module.
pub(super) struct SolveProgram<A> {
    args: SolveArgs,
    reporter: Reporter,
    rate: Rate,
    operator: PhantomData<A>,
}

type State<A> = SolveState<AnySolver, A>;

impl<A: Operator> SolveProgram<A> {
    pub(super) fn new(args: SolveArgs, reporter: Reporter, rate: Rate) -> Self {
        Self { args, reporter, rate, operator: PhantomData }
    }

    fn right_hand_side(&self, a: &A, comm: &Communicator) -> Result<DistVector, LinalgError> {
        Ok(match self.args.rhs() {
            Rhs::Ones => rhs::ones(a.part()),
            Rhs::Solution => rhs::from_solution(a, &DistVector::constant(a.col_part().clone(), 1.0), comm)?,
            Rhs::Scattered => rhs::scattered(a.part()),
            Rhs::File(file) => rhs::from_file(a.part(), file, comm)?,
        })
    }

    fn monitor(&self, state: &State<A>, world: &World) {
        if self.args.monitor && world.rank() == 0 {
            let progress = state.solver.progress();
            eprintln!("{:6} {:.6e}", progress.iterations, progress.relative_residual());
        }
    }
}

/// Finds out whether rank 0 can write to a file. Collective.
fn require_writable(path: &Path, comm: &Communicator) -> Result<(), LinalgError> {
    let refused = |error: std::io::Error| error.raw_os_error().unwrap_or(-1);
    let tried = if comm.rank() == 0 { ft_tools::harness::require_writable(path) } else { Ok(()) };
    let mut code = [tried.map_or_else(refused, |()| 0)];
    comm.bcast(&mut code, 0)?;
    let error = match code[0] {
        0 => return Ok(()),
        -1 => std::io::ErrorKind::IsADirectory.into(),
        code => std::io::Error::from_raw_os_error(code),
    };
    Err(LinalgError::Write { path: path.to_owned(), error })
}

/// Writes the answer, as the name of the file says. Collective.
fn save(path: &Path, part: &Partition, x: &[f64], comm: &Communicator) -> Result<(), LinalgError> {
    let x = DistVector::from_local(part.clone(), x.to_vec())?;
    match AnswerFile::of(path) {
        Some(AnswerFile::Npy) => npy::write_vector(path, &x, comm),
        Some(AnswerFile::MatrixMarket) | None => matrix_market::write_vector(path, &x, comm),
    }
}

impl<A: Operator> Program for SolveProgram<A> {
    type State = State<A>;
    type Error = LinalgError;
    const SHRINKS: bool = true;
    const GROWS: bool = true;
    const ALONE: bool = true;

    fn redistribute(
        &mut self,
        shares: Vec<RankState<State<A>>>,
        before: usize,
        world: &World,
    ) -> Result<State<A>, LinalgError> {
        SolveState::redistribute(shares, before, world.comm())
    }

    fn init(&mut self, world: &World) -> Result<State<A>, LinalgError> {
        let comm = world.comm();
        self.args.out.as_deref().map_or(Ok(()), |out| require_writable(out, comm))?;
        let mut a = A::make(&self.args, comm)?;
        a.store(&self.args)?;
        let (b, x) = (self.right_hand_side(&a, comm)?, DistVector::zeros(a.col_part().clone()));
        let state = SolveState::new(&self.args.options(), &self.args.precond, Problem { a, b, x }, comm)?;
        self.rate.restart(0);
        Ok(state)
    }

    fn rebuild(&mut self, state: &mut State<A>, world: &World) -> Result<(), LinalgError> {
        state.rebuild(&self.args.precond, world.comm())?;
        self.rate.restart(state.solver.progress().iterations);
        Ok(())
    }

    fn step(&mut self, state: &mut State<A>, world: &World, number: u64) -> Result<Flow, LinalgError> {
        if number == 1 {
            self.monitor(state, world);
        }
        let before = state.solver.progress().iterations;
        let step = state.step(world.comm())?;
        let progress = state.solver.progress();
        if progress.iterations > before {
            self.monitor(state, world);
        }
        self.reporter.say(world, || {
            let (iteration, residual) = (progress.iterations, progress.relative_residual());
            (None, format!("iteration {iteration}, relative residual {residual:.2e}"))
        });
        Ok(match step {
            Step::Continue => Flow::Continue,
            Step::Done(_) => Flow::Done,
        })
    }

    fn output(&mut self, state: &mut State<A>, world: &World) -> Result<Vec<u8>, LinalgError> {
        let (comm, part) = (world.comm(), state.a.col_part());
        let solution = state.solution().expect("the last step has concluded");
        let reason = solution.reason;
        let rate = self.rate.per_second(reason.iterations());
        if let Some(path) = &self.args.out {
            save(path, part, state.solver.x(), comm)?;
        }
        let mut partition = vec![0; comm.size()];
        comm.allgather(&[state.a.part().local_len() as u64], &mut partition)?;
        let result = SolveResult {
            rows: state.a.part().n(),
            nonzeros: state.a.nonzeros(comm)?,
            iterations: reason.iterations(),
            converged: reason.is_converged(),
            reason: reason.to_string(),
            relative_residual: solution.relative_residual,
            relative_gradient: (self.args.solver.task() == Task::LeastSquares)
                .then_some(Number(solution.relative_norm)),
            answer_hash: answer_hash(part, state.solver.x(), comm)?,
            solver: self.args.solver.to_string(),
            precond: self.args.precond.to_string(),
            format: state.a.format(comm)?,
            threads: ft_threads::threads(),
            partition,
            // Without an iteration there is no time of one.
            seconds_per_iteration: if rate > 0.0 { 1.0 / rate } else { 0.0 },
            eigenvalues: state
                .solver
                .eigenvalues()
                .into_iter()
                .map(|(value, bound)| [Number(value), Number(bound)])
                .collect(),
            history: solution.history.iter().copied().map(Number).collect(),
        };
        Ok(app::write(&result))
    }

    /// Bad input is the user's to mend (2); a system that cannot be solved, or written, is a failed job (1).
    fn status(&self, error: &LinalgError) -> i32 {
        match error {
            LinalgError::MatrixMarket(_)
            | LinalgError::NotSquare { .. }
            | LinalgError::NotSymmetric { .. }
            | LinalgError::Length { .. }
            | LinalgError::TooManyEigenvalues { .. }
            | LinalgError::Unfit { .. }
            | LinalgError::TooLarge { .. } => 2,
            _ => 1,
        }
    }
}
