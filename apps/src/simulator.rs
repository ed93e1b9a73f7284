//! `simulator`: a matrix per rank is turned end to end in a loop, while random victims are killed. It shows the
//! resilient loop on a state that is all variable, and failures that an app orders by itself.

use std::process::ExitCode;

use clap::Args;
use ft_checkpoint::{Flow, Program, Protect};
use ft_comm::fault::{How, KillSpec, Point, When};
use ft_comm::{CommError, Op, Rank, World};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use crate::app::{self, App};
use crate::options::Options;
use crate::rank::{self, Reporter};
use crate::value::{U32_MAX, from_to};
use crate::words::count;

/// The arguments of `simulator`.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(next_help_heading = "Options of simulator")]
pub(crate) struct SimulatorArgs {
    /// A matrix of M x M numbers on each rank
    #[arg(long, value_name = "M", default_value_t = 256, value_parser = from_to::<u32>(1..=32768))]
    size: u32,
    /// How often the matrices are turned
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = from_to::<u32>(1..=U32_MAX))]
    numloops: u32,
    /// Kill K random ranks, one in each of K equal parts of the loops
    #[arg(long, value_name = "K", default_value_t = 0, value_parser = from_to::<u32>(0..=U32_MAX))]
    procfail: u32,
}

/// What `simulator` is about, in the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SimulatorResult {
    ranks: usize,
    size: u32,
    loops: u32,
    #[serde(with = "crate::number")]
    sum: f64,
    expected: f64,
}

impl App for SimulatorArgs {
    type Outcome = SimulatorResult;

    fn check(&self, options: &Options) -> Result<(), String> {
        let Self { procfail, numloops, .. } = self;
        if procfail > numloops {
            return Err(format!("--procfail {procfail} is above --numloops {numloops}: one victim a loop"));
        }
        if *procfail > 0 && options.scheme() == "none" {
            return Err(format!("--procfail {procfail} with scheme none, which survives no loss"));
        }
        Ok(())
    }

    fn kills(&self, options: &Options) -> Vec<KillSpec> {
        victims(self.procfail.into(), self.numloops.into(), options.ranks(), options.seed)
    }

    fn rank(&self) -> ExitCode {
        rank::run(|settings| Simulator { args: self.clone(), reporter: Reporter::new(settings) })
    }

    fn complaint(&self, SimulatorResult { sum, expected, .. }: &SimulatorResult) -> Option<String> {
        (!is_right(*sum, *expected))
            .then(|| format!("the sum of the first elements is {sum}, it must be {expected}"))
    }

    fn headline(&self, SimulatorResult { size, loops, .. }: &SimulatorResult) -> String {
        format!("{size} x {size}, {}", count(u64::from(*loops), "loop"))
    }

    fn lines(&self, SimulatorResult { sum, expected, .. }: &SimulatorResult) -> Vec<String> {
        let judgment =
            if is_right(*sum, *expected) { "as it must be".into() } else { format!("it must be {expected}") };
        vec![format!("sum of the first elements {sum}, {judgment}")]
    }
}

/// Elements are whole numbers, so a wrong one is off by one or more. Rounding under `--scheme checksum` is far less.
fn is_right(sum: f64, expected: f64) -> bool {
    (sum - expected).abs() < 0.5
}

/// `count` failures of random ranks, each in a random loop of its own part of all `loops`.
fn victims(count: u64, loops: u64, ranks: usize, seed: u64) -> Vec<KillSpec> {
    let mut random = Pcg64::seed_from_u64(seed);
    let victim = |part: u64| {
        let loops = part * loops / count..(part + 1) * loops / count;
        KillSpec {
            ranks: vec![random.random_range(0..ranks)],
            point: Point { name: "step".into(), when: When::Number(1 + random.random_range(loops)) },
            phase: None,
            how: How::Kill,
        }
    };
    (0..count).map(victim).collect()
}

/// Entry of the matrix of `rank` at the start: the number, from 1, of the element in all matrices one below the other.
fn entry(size: usize, rank: Rank, row: usize, col: usize) -> f64 {
    ((rank * size + row) * size + col + 1) as f64
}

/// The first element of each rank's matrix, summed up: as at the start, or the last ones of then.
fn expected_sum(size: usize, ranks: usize, loops: u32) -> f64 {
    let corner = if loops.is_multiple_of(2) { 0 } else { size - 1 };
    // The mean of the first and of the last rank is the mean of all.
    (entry(size, 0, corner, corner) + entry(size, ranks - 1, corner, corner)) * ranks as f64 / 2.0
}

#[derive(Debug, Default, Protect)]
struct Matrix {
    #[protect(constant, replicated)]
    size: usize,
    /// Row by row.
    values: Vec<f64>,
}

impl Matrix {
    fn new(size: usize, rank: Rank) -> Self {
        let row = |row| (0..size).map(move |col| entry(size, rank, row, col));
        Self { size, values: (0..size).flat_map(row).collect() }
    }

    /// Turns it by half a circle: each row end to end, then the rows.
    fn turn(&mut self) {
        let size = self.size;
        self.values.chunks_exact_mut(size).for_each(<[f64]>::reverse);
        for row in 0..size / 2 {
            let (upper, lower) = self.values.split_at_mut((size - 1 - row) * size);
            upper[row * size..(row + 1) * size].swap_with_slice(&mut lower[..size]);
        }
    }
}

struct Simulator {
    args: SimulatorArgs,
    reporter: Reporter,
}

impl Program for Simulator {
    type State = Matrix;
    type Error = CommError;

    fn init(&mut self, world: &World) -> Result<Matrix, CommError> {
        Ok(Matrix::new(self.args.size as usize, world.rank()))
    }

    fn step(&mut self, matrix: &mut Matrix, world: &World, number: u64) -> Result<Flow, CommError> {
        // In step, ranks are killed one after the other: a scheme that survives one loss survives all of them.
        world.comm().barrier()?;
        matrix.turn();
        let loops = u64::from(self.args.numloops);
        self.reporter.say(world, || (Some(number as f64 / loops as f64), format!("loop {number}")));
        Ok(if number == loops { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, matrix: &mut Matrix, world: &World) -> Result<Vec<u8>, CommError> {
        let mut sum = [matrix.values[0]];
        world.comm().allreduce(&mut sum, Op::Sum)?;
        let SimulatorArgs { size, numloops, .. } = self.args;
        let result = SimulatorResult {
            ranks: world.size(),
            size,
            loops: numloops,
            sum: sum[0],
            expected: expected_sum(size as usize, world.size(), numloops),
        };
        Ok(app::write(&result))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The victim and the loop of each failure.
    fn drawn(count: u64, loops: u64, seed: u64) -> Vec<(Rank, u64)> {
        let pair = |spec: KillSpec| match (&spec.ranks[..], spec.point.when) {
            ([rank], When::Number(number)) => (*rank, number),
            _ => panic!("{spec}"),
        };
        victims(count, loops, 4, seed).into_iter().map(pair).collect()
    }

    #[test]
    fn every_part_of_the_loops_has_its_victim() {
        for (count, loops) in [(1, 1), (3, 60), (7, 10), (10, 10), (0, 5)] {
            for seed in 0..50 {
                let victims = drawn(count, loops, seed);
                assert_eq!(victims.len() as u64, count);
                for (part, (rank, number)) in (0..).zip(victims) {
                    let part = part * loops / count + 1..=(part + 1) * loops / count;
                    assert!(rank < 4 && part.contains(&number), "rank {rank} in {number}, not {part:?}");
                }
            }
        }
        assert_eq!(drawn(3, 60, 1), drawn(3, 60, 1));
        for rank in 0..4 {
            assert!((0..50).any(|seed| drawn(1, 60, seed)[0].0 == rank));
        }
    }

    #[test]
    fn rounding_is_no_wrong_sum() {
        assert!(is_right(1_350_005.999_999_999_8, 1_350_006.0) && is_right(8.0, 8.0));
        assert!(!is_right(1_350_005.0, 1_350_006.0) && !is_right(f64::NAN, 8.0));
    }

    #[test]
    fn a_turn_moves_every_element_to_the_place_opposite() {
        for size in [1, 2, 3, 6] {
            let mut matrix = Matrix::new(size, 1);
            let before = matrix.values.clone();
            matrix.turn();
            assert!(matrix.values.iter().eq(before.iter().rev()));
            matrix.turn();
            assert_eq!(matrix.values, before);
        }
    }

    #[test]
    fn the_sum_is_that_of_the_elements() {
        for (size, ranks, loops) in [(1, 1, 1), (2, 3, 4), (5, 4, 7), (256, 8, 60)] {
            let first = |rank| {
                let mut matrix = Matrix::new(size, rank);
                (0..loops).for_each(|_| matrix.turn());
                matrix.values[0]
            };
            assert_eq!(expected_sum(size, ranks, loops), (0..ranks).map(first).sum::<f64>());
        }
    }
}
