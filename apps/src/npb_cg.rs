//! `npb-cg`: the kernel CG of the NAS Parallel Benchmarks, the smallest eigenvalue of a sparse matrix by the inverse power
//! method: a step is one of its iterations, with 25 iterations of conjugate gradients in it.

use std::ops::Range;
use std::process::ExitCode;

use clap::Args;
use ft_checkpoint::{Flow, Program, Protect, RankState, Redistribute};
use ft_comm::{Communicator, Op, World};
use ft_linalg::dot::block_dot;
use ft_linalg::parallel::blocks;
use ft_linalg::solver::residual_norm;
use ft_linalg::vector::{axpy, xpby};
use ft_linalg::{DistMatrix, LinalgError, LinearOperator, Partition, Sums, Workspace, answer_hash};
use serde::{Deserialize, Serialize};

use crate::app::{self, App};
use crate::rank::{self, Rate, Reporter};
use crate::words::count;

mod problem;

use problem::Class;

/// Iterations of conjugate gradients in a step.
const INNER: u64 = 25;

/// How far the eigenvalue may be from the published one.
const TOLERANCE: f64 = 1e-10;

/// The arguments of `npb-cg`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of npb-cg")]
pub(crate) struct NpbCgArgs {
    /// Size of the problem: S, W, A, B or C
    #[arg(long, value_name = "CLASS", default_value = "S", ignore_case = true)]
    class: Class,
}

/// What `npb-cg` is about, in the report.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NpbCgResult {
    class: String,
    rows: usize,
    nonzeros: u64,
    iterations: u64,
    #[serde(with = "crate::number")]
    zeta: f64,
    #[serde(with = "crate::number")]
    published: f64,
    /// `||x - A z||` of the last step.
    #[serde(with = "crate::number")]
    residual_norm: f64,
    answer_hash: String,
    /// Million floating-point operations a second, counted as the benchmark does.
    #[serde(with = "crate::number")]
    mops: f64,
}

impl App for NpbCgArgs {
    type Outcome = NpbCgResult;

    fn rank(&self) -> ExitCode {
        rank::run(|settings| Power {
            class: self.class,
            reporter: Reporter::new(settings),
            rate: Rate::new(),
            work: Workspace::default(),
        })
    }

    fn complaint(&self, NpbCgResult { zeta, published, .. }: &NpbCgResult) -> Option<String> {
        let is_right = (zeta - published).abs() <= TOLERANCE * published;
        (!is_right).then(|| format!("zeta is {zeta:.13}, published is {published:.13}"))
    }

    fn headline(&self, NpbCgResult { class, rows, nonzeros, .. }: &NpbCgResult) -> String {
        format!("class {class}, {}, {}", count(*rows as u64, "row"), count(*nonzeros, "nonzero"))
    }

    fn lines(&self, result: &NpbCgResult) -> Vec<String> {
        let verdict = if self.complaint(result).is_none() { "as published" } else { "not as published" };
        let NpbCgResult { zeta, residual_norm, iterations, mops, .. } = result;
        vec![
            format!("zeta {zeta:.13}, {verdict}"),
            format!(
                "{}, last residual {residual_norm:.2e}, {mops:.0} Mop/s",
                count(*iterations, "iteration")
            ),
        ]
    }
}

/// The matrix, and how far the power method has come.
#[derive(Default, Protect, Redistribute)]
struct Iterate {
    #[protect(nested, distributed)]
    a: DistMatrix,
    /// The approximate eigenvector, of norm 1 after the first step; own rows.
    #[protect(distributed)]
    x: Vec<f64>,
    #[protect(replicated)]
    iteration: u64,
    #[protect(replicated)]
    zeta: f64,
    #[protect(replicated)]
    residual_norm: f64,
}

struct Power {
    class: Class,
    reporter: Reporter,
    rate: Rate,
    work: Workspace,
}

impl Power {
    /// `z`, approximately `A^-1 x`, and `||x - A z||`: conjugate gradients from 0, without a look at how far they have come. The
    /// shifted matrix is not positive definite, so a solver that looks would stop.
    fn solve(
        &mut self,
        a: &DistMatrix,
        x: &[f64],
        comm: &Communicator,
    ) -> Result<(Vec<f64>, f64), LinalgError> {
        let (part, work) = (a.part(), &mut self.work);
        let (mut z, mut r, mut p, mut q) = (vec![0.0; x.len()], x.to_vec(), x.to_vec(), work.take(x.len()));
        let mut sums = vec![Sums::default(); part.blocks_of(part.rank()).len()];
        let [mut rr] = work.dots(part, [(&r, &r)], comm)?;
        for _ in 0..INNER {
            let pq = |rows: Range<usize>, q: &[f64]| [block_dot(&p[rows], q), 0.0, 0.0, 0.0];
            a.apply_and_sum(&p, &mut q, &pq, &mut sums, comm, work)?;
            let [pq] = work.sum(part, &sums, comm)?;
            let alpha = rr / pq;
            blocks(part, (&mut z[..], &mut r[..]), &mut sums, |rows, (z, r), sums| {
                axpy(alpha, &p[rows.clone()], z);
                axpy(-alpha, &q[rows], r);
                sums[0] = block_dot(r, r);
            });
            let [next] = work.sum(part, &sums, comm)?;
            xpby(&r, next / rr, &mut p);
            rr = next;
        }
        work.give(q);
        let norm = residual_norm(a, &z, x, comm, work)?;
        Ok((z, norm))
    }

    /// Million operations a second, by the formula of the benchmark.
    fn mops(&self, iterations: u64, nonzeros: u64) -> f64 {
        let row = nonzeros as f64 / self.class.size().rows as f64;
        let flops = 2.0 * self.class.size().rows as f64 * (3.0 + row + INNER as f64 * (5.0 + row) + 3.0);
        self.rate.per_second(iterations) * flops * 1e-6
    }
}

impl Program for Power {
    type State = Iterate;
    type Error = LinalgError;
    const SHRINKS: bool = true;
    const GROWS: bool = true;
    const ALONE: bool = true;

    fn redistribute(
        &mut self,
        shares: Vec<RankState<Iterate>>,
        _: usize,
        world: &World,
    ) -> Result<Iterate, LinalgError> {
        let held = shares.iter().map(|share| share.rank).collect();
        let old = shares.first().map(|share| share.state.a.part());
        Ok(Partition::moves(world.comm(), old, held)?.deal(shares)?)
    }

    fn init(&mut self, world: &World) -> Result<Iterate, LinalgError> {
        let size = self.class.size();
        let part = Partition::of(world.comm(), size.rows);
        let (x, rows) = (vec![1.0; part.local_len()], problem::rows(size, part.range())?);
        Ok(Iterate { a: DistMatrix::new(part, rows, world.comm())?, x, ..Iterate::default() })
    }

    fn rebuild(&mut self, iterate: &mut Iterate, world: &World) -> Result<(), LinalgError> {
        self.rate.restart(iterate.iteration);
        iterate.a.rebuild(world.comm())
    }

    fn step(&mut self, iterate: &mut Iterate, world: &World, _: u64) -> Result<Flow, LinalgError> {
        let (size, comm) = (self.class.size(), world.comm());
        let (z, residual_norm) = self.solve(&iterate.a, &iterate.x, comm)?;
        let [xz, zz] = self.work.dots(iterate.a.part(), [(&iterate.x, &z), (&z, &z)], comm)?;
        let scale = 1.0 / zz.sqrt();
        iterate.x.iter_mut().zip(&z).for_each(|(x, z)| *x = scale * z);
        iterate.zeta = size.shift + 1.0 / xz;
        iterate.residual_norm = residual_norm;
        iterate.iteration += 1;

        let Iterate { iteration, zeta, .. } = *iterate;
        self.reporter.say(world, || {
            let done = iteration as f64 / size.iterations as f64;
            (Some(done), format!("iteration {iteration} of {}, zeta {zeta:.13}", size.iterations))
        });
        Ok(if iteration == size.iterations { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, iterate: &mut Iterate, world: &World) -> Result<Vec<u8>, LinalgError> {
        let Iterate { a, x, iteration, zeta, residual_norm } = &*iterate;
        let mut nonzeros = [a.rows().nnz() as u64];
        world.comm().allreduce(&mut nonzeros, Op::Sum)?;
        let size = self.class.size();
        let result = NpbCgResult {
            class: self.class.to_string(),
            rows: size.rows,
            nonzeros: nonzeros[0],
            iterations: *iteration,
            zeta: *zeta,
            published: size.zeta,
            residual_norm: *residual_norm,
            answer_hash: answer_hash(a.part(), x, world.comm())?,
            mops: self.mops(*iteration, nonzeros[0]),
        };
        Ok(app::write(&result))
    }
}
