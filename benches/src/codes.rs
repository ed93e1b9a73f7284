//! The erasure codes beside Intel's ISA-L, on one core.
//!
//! Each side is a program of its own (`examples/codes.rs`, `peers/isal_codes.c`) that measures one cell, a shape and a size. What
//! counts is the median over rounds of the ratio of the two within a round. The redundant blocks of both are compared by a sum.

mod cell;
mod sides;
mod tables;

use std::error::Error;

use clap::Parser;
use ft_tools::harness::Files;

use self::cell::{Cell, XOR_MIB};
use self::sides::{Job, Sides};
use crate::comparison::{Comparison, Failures, Report, Rounds, Watch};

/// Compares the erasure codes with Intel's ISA-L, alternated in one session
#[derive(Debug, Parser)]
#[command(name = "code_peers")]
pub struct Options {
    /// Process starts of every cell
    #[arg(long, value_name = "N", default_value_t = 11)]
    rounds: usize,
    /// Shards of at most this size only
    #[arg(long, value_name = "KIB")]
    up_to_kib: Option<usize>,
    #[command(flatten)]
    files: Files,
}

impl Comparison for Options {
    fn files(&self) -> &Files {
        &self.files
    }

    fn compare(&self, watch: &Watch<'_>) -> Result<Report, Box<dyn Error>> {
        if self.rounds == 0 {
            return Err("--rounds is at least 1".into());
        }
        let is_small = |cell: &Cell| self.up_to_kib.is_none_or(|most| cell.kib <= most);
        let cells = Cell::all().into_iter().filter(is_small);
        let additions = XOR_MIB.map(|mib| vec![Job::Addition(mib)]);
        let rounds = Rounds {
            cases: cells.map(|cell| vec![Job::Ours(cell), Job::Isal(cell)]).chain(additions).collect(),
            rounds: self.rounds,
            failures: Failures::End,
        };
        let mut sides = Sides::find(watch)?;
        let (samples, remarks) = rounds.run(watch, |job| sides.measure(job))?;
        Ok(Report {
            head: vec![tables::head(self.rounds, &sides.kernel), watch.machine_line()],
            tables: tables::all(&samples),
            remarks,
            measurements: tables::measurements(&samples),
            others: vec![],
        })
    }
}
