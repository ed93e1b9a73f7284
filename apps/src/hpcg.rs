//! `hpcg`: conjugate gradients on the 27-point Laplacian of a cube, with the multigrid of HPCG, as sets of 50 iterations one after
//! the other until the time is over. A step of the loop is one iteration.
//!
//! The cube is the same whatever the number of ranks, and so are the bits; HPCG itself gives each rank a cube.
//!
//! Source: Dongarra, Heroux, Luszczek: HPCG benchmark, Tech. Rep. UT-EECS-15-736, 2015.

use std::process::ExitCode;

use clap::Args;
use ft_checkpoint::{Flow, Program, Protect, RankState, Redistribute};
use ft_comm::time::{Clock, Time};
use ft_comm::{Communicator, Op, World};
use ft_linalg::gallery::Laplacian27;
use ft_linalg::{
    Cg, DistMatrix, LinalgError, Partition, Solver, Step, StopCriteria, System, Workspace, answer_hash,
};
use serde::{Deserialize, Serialize};

use crate::app::{self, App};
use crate::rank::{self, Rate, Reporter};
use crate::words::count;

mod checks;
mod gather;
mod multigrid;

use checks::Checks;
use multigrid::Multigrid;

/// Iterations of a set.
const SET: u64 = 50;

/// How much smaller a set has to make the residual: HPCG reaches 1e-5 and better on grids of any size.
const REDUCTION: f64 = 1e-4;

/// The arguments of `hpcg`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of hpcg")]
pub(crate) struct HpcgArgs {
    /// Points a side of the cube: a multiple of 8, from 16 to 1024
    #[arg(long, value_name = "POINTS", default_value_t = 64, value_parser = side)]
    size: usize,
    /// Seconds after which no other set of 50 iterations begins
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    time: f64,
}

fn side(text: &str) -> Result<usize, String> {
    let wanted = "it has to be a multiple of 8 from 16 to 1024";
    let side: usize = text.parse().map_err(|_| wanted.to_owned())?;
    let is_fine = side.is_multiple_of(8) && (16..=1024).contains(&side);
    is_fine.then_some(side).ok_or(wanted.to_owned())
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: Option<f64> = text.parse().ok();
    let is_fine = |seconds: &f64| (0.0..=1e6).contains(seconds);
    seconds.filter(is_fine).ok_or("it has to be a number of seconds from 0 to 1000000".to_owned())
}

/// What `hpcg` is about, in the report.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HpcgResult {
    size: usize,
    rows: usize,
    /// Nonzeros of the matrix of each grid, finest first.
    nonzeros: Vec<u64>,
    sets: u64,
    iterations: u64,
    /// `||r||` after a set over `||b||`.
    #[serde(with = "crate::number")]
    relative_residual: f64,
    /// Every set had this residual, bit for bit.
    reproducible: bool,
    checks: Checks,
    answer_hash: String,
    /// Thousand million floating-point operations a second, counted as HPCG does.
    #[serde(with = "crate::number")]
    gflops: f64,
}

impl App for HpcgArgs {
    type Outcome = HpcgResult;

    fn rank(&self) -> ExitCode {
        rank::run(|settings| Hpcg {
            args: self.clone(),
            reporter: Reporter::new(settings),
            rate: Rate::new(),
            clock: Clock::start(),
            work: Workspace::default(),
        })
    }

    fn complaint(&self, result: &HpcgResult) -> Option<String> {
        let HpcgResult { relative_residual, .. } = result;
        let is_small = *relative_residual <= REDUCTION;
        let too_large = || format!("{SET} iterations left a relative residual of {relative_residual:.1e}");
        let checks = result.checks.complaint().or_else(|| (!is_small).then(too_large));
        checks.or_else(|| (!result.reproducible).then(|| "two sets had different residuals".to_owned()))
    }

    fn headline(&self, HpcgResult { size, rows, nonzeros, .. }: &HpcgResult) -> String {
        let (rows, nonzeros) = (count(*rows as u64, "row"), count(nonzeros[0], "nonzero"));
        format!("{size} points a side, {rows}, {nonzeros}")
    }

    fn lines(&self, result: &HpcgResult) -> Vec<String> {
        let HpcgResult { sets, iterations, relative_residual, checks, gflops, .. } = result;
        let Checks { plain_iterations, preconditioned_iterations, .. } = checks;
        let verdict = if self.complaint(result).is_none() { "all checks passed" } else { "a check failed" };
        vec![
            format!(
                "{verdict}; dominant diagonal: {plain_iterations} iterations, {preconditioned_iterations} with multigrid"
            ),
            format!(
                "{}, {}, relative residual {relative_residual:.2e}, {gflops:.3} Gflop/s",
                count(*sets, "set"),
                count(*iterations, "iteration")
            ),
        ]
    }
}

/// The set that is under way, and what is known of those before. Matrices follow from the size.
#[derive(Default, Protect, Redistribute)]
struct Sets {
    #[protect(nested, distributed)]
    part: Partition,
    #[protect(nested, distributed)]
    cg: Cg,
    /// Sets that are done.
    #[protect(replicated)]
    done: u64,
    /// The relative residual of the first one.
    #[protect(replicated)]
    relative_residual: f64,
    /// Sets with another residual.
    #[protect(replicated)]
    different: u64,
    #[protect(nested, replicated)]
    checks: Checks,
    #[protect(derived)]
    problem: Option<Cube>,
}

/// What follows from the size of the cube.
struct Cube {
    a: DistMatrix,
    b: Vec<f64>,
    grids: Multigrid,
}

struct Hpcg {
    args: HpcgArgs,
    reporter: Reporter,
    rate: Rate,
    clock: Clock,
    work: Workspace,
}

impl Cube {
    /// Collective.
    fn new(side: usize, comm: &Communicator) -> Result<Self, LinalgError> {
        let (a, grid) = (multigrid::matrix(side, comm)?, Laplacian27::new(side, side, side)?);
        let grids = Multigrid::new(&a, side, comm)?;
        let b = a.part().range().map(|row| grid.rhs(row)).collect();
        Ok(Self { a, b, grids })
    }
}

/// The problem, which is there from the start and after every restore.
fn cube(problem: &Option<Cube>) -> Result<&Cube, LinalgError> {
    problem.as_ref().ok_or(LinalgError::NotRebuilt)
}

impl Hpcg {
    /// Begins a set.
    fn begin(&mut self, sets: &mut Sets, comm: &Communicator) -> Result<(), LinalgError> {
        let Cube { a, b, grids, .. } = cube(&sets.problem)?;
        let stop = StopCriteria { rtol: 0.0, iterations_max: SET, ..StopCriteria::default() };
        let system = System { a, m: &grids.with(a), b };
        sets.cg = Cg::start(&stop, &system, &vec![0.0; b.len()], comm, &mut self.work)?;
        Ok(())
    }

    /// Whether the time is over, the same on all ranks.
    fn is_over(&self, comm: &Communicator) -> Result<bool, LinalgError> {
        let mut seconds = [self.clock.now().since(Time(0)).as_secs_f64()];
        comm.allreduce(&mut seconds, Op::Max)?;
        Ok(seconds[0] >= self.args.time)
    }

    /// Thousand million operations a second, by the formula of HPCG.
    fn gflops(&self, iterations: u64, cube: &Cube) -> f64 {
        let (rows, nonzeros) = (cube.a.part().n() as f64, cube.grids.nonzeros().collect::<Vec<u64>>());
        let finest = nonzeros[0] as f64;
        let cycle: f64 = nonzeros.iter().map(|nonzeros| 10.0 * *nonzeros as f64).sum();
        // The coarsest grid has one sweep, and no residual.
        let cycle = cycle - nonzeros.last().map_or(0.0, |nonzeros| 6.0 * *nonzeros as f64);
        let start = (4.0 * rows + 2.0 * finest) / SET as f64;
        let flops = start + 12.0 * rows + 2.0 * finest + cycle;
        self.rate.per_second(iterations) * flops * 1e-9
    }
}

impl Program for Hpcg {
    type State = Sets;
    type Error = LinalgError;
    const SHRINKS: bool = true;
    const GROWS: bool = true;

    fn redistribute(
        &mut self,
        shares: Vec<RankState<Sets>>,
        _: usize,
        world: &World,
    ) -> Result<Sets, LinalgError> {
        let held = shares.iter().map(|share| share.rank).collect();
        let old = shares.first().map(|share| &share.state.part);
        Ok(Partition::moves(world.comm(), old, held)?.deal(shares)?)
    }

    fn init(&mut self, world: &World) -> Result<Sets, LinalgError> {
        let (side, comm) = (self.args.size, world.comm());
        let problem = Cube::new(side, comm)?;
        let checks = Checks::new(&problem.a, side, &problem.grids, comm, &mut self.work)?;
        let part = problem.a.part().clone();
        let mut sets = Sets { part, checks, problem: Some(problem), ..Sets::default() };
        self.begin(&mut sets, world.comm())?;
        Ok(sets)
    }

    fn rebuild(&mut self, sets: &mut Sets, world: &World) -> Result<(), LinalgError> {
        sets.problem = Some(Cube::new(self.args.size, world.comm())?);
        self.rate.restart(sets.done * SET + sets.cg.progress().iterations);
        Ok(())
    }

    fn step(&mut self, sets: &mut Sets, world: &World, _: u64) -> Result<Flow, LinalgError> {
        let Cube { a, b, grids, .. } = cube(&sets.problem)?;
        let system = System { a, m: &grids.with(a), b };
        let step = sets.cg.step(&system, world.comm(), &mut self.work)?;
        let progress = sets.cg.progress();
        let (done, residual) = (sets.done, progress.relative_residual());
        self.reporter.say(world, || {
            let text =
                format!("set {}, iteration {}, residual {residual:.2e}", done + 1, progress.iterations);
            (None, text)
        });
        if step == Step::Continue {
            return Ok(Flow::Continue);
        }
        if sets.done == 0 {
            sets.relative_residual = residual;
        }
        sets.different += u64::from(residual.to_bits() != sets.relative_residual.to_bits());
        sets.done += 1;
        if self.is_over(world.comm())? {
            return Ok(Flow::Done);
        }
        self.begin(sets, world.comm())?;
        Ok(Flow::Continue)
    }

    fn output(&mut self, sets: &mut Sets, world: &World) -> Result<Vec<u8>, LinalgError> {
        let problem = cube(&sets.problem)?;
        let iterations = sets.done * SET;
        let result = HpcgResult {
            size: self.args.size,
            rows: problem.a.part().n(),
            nonzeros: problem.grids.nonzeros().collect(),
            sets: sets.done,
            iterations,
            relative_residual: sets.relative_residual,
            reproducible: sets.different == 0,
            checks: sets.checks.clone(),
            answer_hash: answer_hash(problem.a.part(), sets.cg.x(), world.comm())?,
            gflops: self.gflops(iterations, problem),
        };
        Ok(app::write(&result))
    }
}
