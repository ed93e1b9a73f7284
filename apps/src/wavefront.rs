//! `wavefront`: symmetric successive over-relaxation on a cube, as the kernel LU of the NAS Parallel Benchmarks does it. A rank has some rows of each plane. It can update a plane when the rank
//! before has done so, and passes its last row on: so the sweeps run through the ranks as a wave, and no two ranks are at the same place. There is no barrier, and no sum, until the end.
//!
//! Points are updated in one order whatever the number of ranks, so the bits are the same on any.

use std::ops::Range;
use std::process::ExitCode;

use clap::Args;
use ft_checkpoint::{Flow, Lines, Program, Protect};
use ft_comm::{CommError, Op, Tag, World};
use serde::{Deserialize, Serialize};

use crate::app::{self, App};
use crate::options::Options;
use crate::rank::{self, Reporter, mix, share_of};
use crate::value::{COUNT_MAX, from_to, positive};
use crate::words::count;

/// Rows that go to the next rank, and to the one before.
const DOWN: Tag = 1;
const UP: Tag = 2;

/// The arguments of `wavefront`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of wavefront")]
pub(crate) struct WavefrontArgs {
    /// Inner points along an edge of the cube
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = from_to::<usize>(2..=2048))]
    points: usize,
    /// Iterations, of two sweeps each
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = from_to::<u64>(1..=COUNT_MAX))]
    iterations: u64,
    /// The error that is allowed at the end, relative to the largest value
    #[arg(long, value_name = "X", default_value_t = 1e-3, value_parser = positive)]
    tolerance: f64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WavefrontResult {
    points: u64,
    iterations: u64,
    /// Largest error, relative to the largest value.
    #[serde(with = "crate::number")]
    error: f64,
    #[serde(with = "crate::number")]
    tolerance: f64,
    answer: u64,
}

impl App for WavefrontArgs {
    type Outcome = WavefrontResult;

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
        Ok(())
    }

    fn rank(&self) -> ExitCode {
        let args = self.clone();
        rank::run(|settings| Wavefront { args, reporter: Reporter::new(settings) })
    }

    fn complaint(&self, WavefrontResult { error, tolerance, .. }: &WavefrontResult) -> Option<String> {
        let is_right = error <= tolerance;
        (!is_right).then(|| {
            format!("the error is {error:.3e}, more than {tolerance:.3e}: more --iterations are needed")
        })
    }

    fn headline(&self, WavefrontResult { points, iterations, .. }: &WavefrontResult) -> String {
        format!("{points} x {points} x {points} points, {}", count(*iterations, "iteration"))
    }

    fn lines(&self, WavefrontResult { error, answer, .. }: &WavefrontResult) -> Vec<String> {
        vec![format!("largest error {error:.3e} of the largest value, answer {answer:016x}")]
    }
}

/// The values of this rank's rows: planes of rows of points, with a row of the rank before and of the next one around those of each plane.
#[derive(Debug, Default, Protect)]
struct Values {
    values: Vec<f64>,
}

struct Wavefront {
    args: WavefrontArgs,
    reporter: Reporter,
}

/// Which rows a rank has, and where a value is among its own.
#[derive(Clone, Debug)]
struct Shape {
    points: usize,
    rows: Range<usize>,
}

impl Shape {
    fn of(points: usize, world: &World) -> Self {
        let rows = share_of(&(0..points as u64), world.rank(), world.size());
        Self { points, rows: rows.start as usize..rows.end as usize }
    }

    /// Where a row begins; rows from 1 on are those of the rank.
    fn row(&self, plane: usize, row: usize) -> usize {
        (plane * (self.rows.len() + 2) + row) * self.points
    }

    /// The exact solution x (1 - x) y (1 - y) z (1 - z) at a row of this rank: second differences are exact for it.
    fn exact(&self, plane: usize, row: usize, point: usize) -> f64 {
        let hill = |at: usize| {
            let x = (at + 1) as f64 / (self.points + 1) as f64;
            x * (1.0 - x)
        };
        hill(plane) * hill(self.rows.start + row - 1) * hill(point)
    }

    /// What the differences of the exact solution come to there, times the square of the distance of points.
    fn source(&self, plane: usize, row: usize, point: usize) -> f64 {
        let h = 1.0 / (self.points + 1) as f64;
        let hill = |at: usize| {
            let x = (at + 1) as f64 * h;
            x * (1.0 - x)
        };
        let (x, y, z) = (hill(point), hill(self.rows.start + row - 1), hill(plane));
        2.0 * h * h * (x * y + y * z + x * z)
    }

    /// Updates a row.
    fn relax(&self, values: &mut [f64], plane: usize, row: usize, ascending: bool, omega: f64) {
        let n = self.points;
        let at = self.row(plane, row);
        let width = (self.rows.len() + 2) * n;
        let mut update = |point: usize| {
            let here = at + point;
            let mut sum = self.source(plane, row, point);
            sum += if point > 0 { values[here - 1] } else { 0.0 };
            sum += if point + 1 < n { values[here + 1] } else { 0.0 };
            sum += values[here - n] + values[here + n];
            sum += if plane > 0 { values[here - width] } else { 0.0 };
            sum += if plane + 1 < n { values[here + width] } else { 0.0 };
            values[here] += omega * (sum / 6.0 - values[here]);
        };
        if ascending { (0..n).for_each(&mut update) } else { (0..n).rev().for_each(&mut update) }
    }
}

impl Wavefront {
    /// One sweep through all planes: from the rank before to the next one, or back.
    fn sweep(
        &self,
        state: &mut Values,
        world: &World,
        shape: &Shape,
        ascending: bool,
    ) -> Result<(), CommError> {
        let (comm, n) = (world.comm(), shape.points);
        let (before, after) =
            (world.rank().checked_sub(1), Some(world.rank() + 1).filter(|next| *next < world.size()));
        // The best for this equation (D. M. Young, Iterative solution of large linear systems, 1971, chapter 6).
        let omega = 2.0 / (1.0 + (std::f64::consts::PI / (n + 1) as f64).sin());
        let rows = shape.rows.len();
        let (from, to, tag) = if ascending { (before, after, DOWN) } else { (after, before, UP) };
        let (outside, own) = if ascending { (0, rows) } else { (rows + 1, 1) };
        for step in 0..n {
            let plane = if ascending { step } else { n - 1 - step };
            if let Some(from) = from {
                let at = shape.row(plane, outside);
                comm.recv(&mut state.values[at..at + n], from, tag)?;
            }
            for number in 0..rows {
                let row = if ascending { 1 + number } else { rows - number };
                shape.relax(&mut state.values, plane, row, ascending, omega);
            }
            if let Some(to) = to {
                let at = shape.row(plane, own);
                comm.send(&state.values[at..at + n], to, tag)?;
            }
        }
        Ok(())
    }
}

impl Program for Wavefront {
    type State = Values;
    type Error = CommError;
    const ALONE: bool = true;

    fn init(&mut self, world: &World) -> Result<Values, CommError> {
        let shape = Shape::of(self.args.points, world);
        Ok(Values { values: vec![0.0; shape.row(shape.points, 0)] })
    }

    fn step(&mut self, state: &mut Values, world: &World, number: u64) -> Result<Flow, CommError> {
        let shape = Shape::of(self.args.points, world);
        self.sweep(state, world, &shape, true)?;
        self.sweep(state, world, &shape, false)?;
        let all = self.args.iterations;
        self.reporter
            .say(world, || (Some(number as f64 / all as f64), format!("iteration {number} of {all}")));
        Ok(if number == all { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, state: &mut Values, world: &World) -> Result<Vec<u8>, CommError> {
        let shape = Shape::of(self.args.points, world);
        let (mut largest, mut answer) = ([0.0_f64; 2], [0_u64]);
        for (plane, row) in
            (0..shape.points).flat_map(|plane| (1..=shape.rows.len()).map(move |row| (plane, row)))
        {
            for point in 0..shape.points {
                let (value, exact) =
                    (state.values[shape.row(plane, row) + point], shape.exact(plane, row, point));
                largest = [largest[0].max((value - exact).abs()), largest[1].max(exact)];
                let place =
                    ((plane * shape.points + shape.rows.start + row - 1) * shape.points + point) as u64;
                answer[0] = answer[0].wrapping_add(mix(value.to_bits() ^ mix(place)));
            }
        }
        world.comm().allreduce(&mut largest, Op::Max)?;
        world.comm().allreduce(&mut answer, Op::Sum)?;
        let WavefrontArgs { points, iterations, tolerance } = self.args;
        let error = largest[0] / largest[1];
        let result =
            WavefrontResult { points: points as u64, iterations, error, tolerance, answer: answer[0] };
        Ok(app::write(&result))
    }
}
