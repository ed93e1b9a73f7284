//! `jacobi`: Jacobi's method with asynchronous iterations (D. Chazan, W. Miranker, Chaotic relaxation, Linear Algebra and its Applications 2, 1969). A rank takes the newest values that its
//! neighbours have sent, whatever these are, and goes on; only if a neighbour is far behind it waits. So no two runs are the same, but all converge.

use std::ops::Range;
use std::process::ExitCode;

use clap::Args;
use ft_checkpoint::{Flow, Lines, Program, Protect};
use ft_comm::{CommError, Op, Rank, Tag, World};
use serde::{Deserialize, Serialize};

use crate::app::{self, App};
use crate::options::Options;
use crate::rank::{self, Reporter, share_of};
use crate::value::{COUNT_MAX, from_to, positive};
use crate::words::count;

const ROW: Tag = 1;
/// What is added to the diagonal of the equation, which makes it diagonally dominant: only then asynchronous iterations are sure to converge.
const SHIFT: f64 = 0.1;

/// The arguments of `jacobi`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of jacobi")]
pub(crate) struct JacobiArgs {
    /// Inner points along an edge of the square
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = from_to::<usize>(2..=4096))]
    points: usize,
    /// Steps of each rank
    #[arg(long, value_name = "N", default_value_t = 1200, value_parser = from_to::<u64>(1..=COUNT_MAX))]
    steps: u64,
    /// Steps that a rank may be ahead of a neighbour
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = from_to::<u64>(1..=256))]
    ahead: u64,
    /// The residual that is allowed at the end, relative to the right-hand side
    #[arg(long, value_name = "X", default_value_t = 1e-6, value_parser = positive)]
    tolerance: f64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct JacobiResult {
    points: u64,
    steps: u64,
    #[serde(with = "crate::number")]
    residual: f64,
    #[serde(with = "crate::number")]
    tolerance: f64,
}

impl App for JacobiArgs {
    type Outcome = JacobiResult;

    fn crosses(&self) -> Lines {
        Lines::Log
    }

    fn check(&self, options: &Options) -> Result<(), String> {
        let ranks = options.ranks();
        if ranks > self.points {
            return Err(format!(
                "{ranks} ranks share {} rows: --points must be as many at least",
                self.points
            ));
        }
        match options.lines() {
            Lines::Log => Ok(()),
            other => Err(format!(
                "--lines {} is nothing for jacobi, whose ranks take steps of their own: --lines log",
                other.name()
            )),
        }
    }

    fn rank(&self) -> ExitCode {
        let args = self.clone();
        rank::run(|settings| Jacobi { args, reporter: Reporter::new(settings) })
    }

    fn complaint(&self, JacobiResult { residual, tolerance, .. }: &JacobiResult) -> Option<String> {
        let is_right = residual <= tolerance;
        (!is_right).then(|| {
            format!("the residual is {residual:.3e}, more than {tolerance:.3e}: more --steps are needed")
        })
    }

    fn headline(&self, JacobiResult { points, steps, .. }: &JacobiResult) -> String {
        format!("{points} x {points} points, {} a rank", count(*steps, "step"))
    }

    fn lines(&self, JacobiResult { residual, .. }: &JacobiResult) -> Vec<String> {
        vec![format!("relative residual {residual:.3e}")]
    }
}

/// The rows of this rank, with those of its neighbours before and behind them as they were heard last, and the steps that these are of.
#[derive(Debug, Default, Protect)]
struct Rows {
    values: Vec<f64>,
    heard: [u64; 2],
}

struct Jacobi {
    args: JacobiArgs,
    reporter: Reporter,
}

/// The ranks before and behind this one.
fn neighbors(world: &World) -> [Option<Rank>; 2] {
    [world.rank().checked_sub(1), Some(world.rank() + 1).filter(|next| *next < world.size())]
}

impl Jacobi {
    fn rows(&self, world: &World) -> Range<usize> {
        let rows = share_of(&(0..self.args.points as u64), world.rank(), world.size());
        rows.start as usize..rows.end as usize
    }

    /// The right-hand side, at a row of all.
    fn source(row: usize, point: usize) -> f64 {
        1.0 + ((row * 7 + point * 3) % 11) as f64 / 11.0
    }

    /// Takes what a neighbour has said since; waits for it where it is too far behind.
    fn hear(
        &self,
        state: &mut Rows,
        world: &World,
        side: usize,
        from: Rank,
        number: u64,
    ) -> Result<(), CommError> {
        let (comm, n) = (world.comm(), self.args.points);
        let mut row = vec![0.0; n + 1];
        loop {
            let must = state.heard[side] + self.args.ahead < number;
            if !must && comm.iprobe(from, ROW)?.is_none() {
                return Ok(());
            }
            comm.recv(&mut row, from, ROW)?;
            let at = if side == 0 { 0 } else { state.values.len() - n };
            state.values[at..at + n].copy_from_slice(&row[1..]);
            state.heard[side] = row[0] as u64;
        }
    }

    /// What the equation of a point comes to without its own value.
    fn sum(&self, values: &[f64], first: usize, row: usize, point: usize) -> f64 {
        let n = self.args.points;
        let here = row * n + point;
        let west = if point > 0 { values[here - 1] } else { 0.0 };
        let east = if point + 1 < n { values[here + 1] } else { 0.0 };
        Self::source(first + row - 1, point) + west + east + values[here - n] + values[here + n]
    }
}

impl Program for Jacobi {
    type State = Rows;
    type Error = CommError;
    const ALONE: bool = true;

    fn init(&mut self, world: &World) -> Result<Rows, CommError> {
        Ok(Rows { values: vec![0.0; (self.rows(world).len() + 2) * self.args.points], heard: [0; 2] })
    }

    fn step(&mut self, state: &mut Rows, world: &World, number: u64) -> Result<Flow, CommError> {
        let (n, rows) = (self.args.points, self.rows(world));
        let sides = neighbors(world);
        for (side, neighbor) in sides.into_iter().enumerate() {
            if let Some(from) = neighbor {
                self.hear(state, world, side, from, number)?;
            }
        }
        let before = state.values.clone();
        for (row, point) in (1..=rows.len()).flat_map(|row| (0..n).map(move |point| (row, point))) {
            state.values[row * n + point] = self.sum(&before, rows.start, row, point) / (4.0 + SHIFT);
        }
        for (side, neighbor) in sides.into_iter().enumerate() {
            if let Some(to) = neighbor {
                let row = if side == 0 { 1 } else { rows.len() };
                let mut said = vec![number as f64];
                said.extend(&state.values[row * n..(row + 1) * n]);
                world.comm().send(&said, to, ROW)?;
            }
        }
        let all = self.args.steps;
        self.reporter.say(world, || (Some(number as f64 / all as f64), format!("step {number} of {all}")));
        Ok(if number == all { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, state: &mut Rows, world: &World) -> Result<Vec<u8>, CommError> {
        let (n, rows) = (self.args.points, self.rows(world));
        // The neighbours' rows as they are now: a part of the ranks' own values, whatever was heard of them before.
        let mut all = vec![0.0; n * n];
        all[rows.start * n..rows.end * n].copy_from_slice(&state.values[n..(rows.len() + 1) * n]);
        let counts: Vec<usize> = (0..world.size())
            .map(|rank| share_of(&(0..n as u64), rank, world.size()))
            .map(|share| (share.end - share.start) as usize * n)
            .collect();
        world.comm().allgatherv(&mut all, &counts)?;
        let mut padded = vec![0.0; n];
        padded.extend(all);
        padded.resize((n + 2) * n, 0.0);
        let mut sums = [0.0; 2];
        for (row, point) in rows.clone().flat_map(|row| (0..n).map(move |point| (row, point))) {
            let residual =
                self.sum(&padded, 0, row + 1, point) - (4.0 + SHIFT) * padded[(row + 1) * n + point];
            sums[0] += residual * residual;
            sums[1] += Self::source(row, point).powi(2);
        }
        world.comm().allreduce(&mut sums, Op::Sum)?;
        let JacobiArgs { points, steps, tolerance, .. } = self.args;
        let residual = (sums[0] / sums[1]).sqrt();
        Ok(app::write(&JacobiResult { points: points as u64, steps, residual, tolerance }))
    }
}
