//! Checkpoints beside what this machine can do at best, and beside its disk.
//!
//! - *The floor* (`checkpoint_floor`): processes with sockets that move the bytes of a scheme and compute its blocks, without any
//!   protocol; and files, one a rank.
//! - *Ours* (`examples/checkpoint.rs`, `examples/solver.rs`, `ftrun load`): the same under the launcher.
//! - *MPI-IO* (`peers/mpi_checkpoint.c`): one shared file.
//!
//! What counts is the median over rounds of the ratio of two jobs within a round. A checkpoint takes from the first rank's
//! start to the last rank's end, by one clock.

mod job;
mod row;
mod scheme;
mod sides;
mod span;
mod tables;
mod took;

use std::error::Error;
use std::path::PathBuf;

use clap::Parser;
use ft_tools::harness::{Files, HarnessError};
use ft_tools::recovery::{FreshFolder, filesystem};

use self::job::{Job, Sizes};
use self::row::Row;
pub use self::scheme::Scheme;
use self::sides::Sides;
pub use self::span::{now_ns, spans};
use crate::comparison::{Comparison, Failures, Report, Rounds, Watch};

/// Compares checkpoints with their floor and with files, alternated in one session
#[derive(Debug, Parser)]
#[command(name = "checkpoint_peers")]
pub struct Options {
    /// Installation of Open MPI: the folder with bin/mpicc and bin/mpiexec; without it there is no shared file
    #[arg(long, value_name = "DIR")]
    openmpi: Option<PathBuf>,
    /// Where files are written [default: the temporary folder of the system]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Process starts of every job
    #[arg(long, value_name = "N", default_value_t = 7)]
    rounds: usize,
    /// Rows of the tables, such as floor-8-unix-xor, or what they begin with; all by default
    #[arg(long, value_name = "ROW,...", value_delimiter = ',')]
    only: Vec<String>,
    /// State of each rank
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    mib: usize,
    /// Checkpoints in a process
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeats: usize,
    /// Ranks of the solver
    #[arg(long, value_name = "N", default_value_t = 4)]
    solver_ranks: usize,
    /// The congestion control that ft-comm asks for
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    comm_congestion: String,
    /// Two rounds with 1 MiB: does it still work?
    #[arg(long)]
    quick: bool,
    /// Write the rows as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    files: Files,
}

impl Options {
    fn sizes(&self) -> Sizes {
        let Self { mib, repeats, solver_ranks, .. } = *self;
        match self.quick {
            false => Sizes { mib, repeats, solver_ranks, solver_s: 10.0, interval_s: 2.0 },
            true => Sizes { mib: 1, repeats: 2, solver_ranks, solver_s: 0.5, interval_s: 0.1 },
        }
    }

    /// Jobs side by side, of the rows that have both.
    fn cases(&self, rows: &[Row]) -> Vec<Vec<Job>> {
        let is_offered = |job: &Job| !matches!(job, Job::Shared(_)) || self.openmpi.is_some();
        let cases = rows.iter().map(|row| vec![row.above, row.below]);
        cases.filter(|case| case.iter().all(is_offered)).collect()
    }
}

impl Comparison for Options {
    fn files(&self) -> &Files {
        &self.files
    }

    fn compare(&self, watch: &Watch<'_>) -> Result<Report, Box<dyn Error>> {
        if [self.rounds, self.mib, self.repeats].contains(&0) || self.solver_ranks < 2 {
            return Err("--rounds, --mib and --repeats are at least 1, --solver-ranks 2".into());
        }
        let rows = Row::choose(&self.only)?;
        let sizes = self.sizes();
        let rounds = Rounds {
            cases: self.cases(&rows),
            rounds: if self.quick { 2 } else { self.rounds },
            failures: Failures::AreSaid { after: 3 },
        };
        let parent = self.folder.clone().unwrap_or_else(std::env::temp_dir);
        let files = FreshFolder::within(&parent).map_err(|error| HarnessError::Folder(error.to_string()))?;
        let mut sides = Sides::find(self, sizes, files.path(), watch)?;
        let mut remarks = tables::notes(&rows, &sizes, rounds.rounds, self.openmpi.is_some());
        if rounds.cases.iter().flatten().any(|job| matches!(job, Job::Solver { .. })) {
            remarks.push(sides.choose_steps(watch)?);
        }
        let (samples, failures) = rounds.run(watch, |job| sides.measure(job))?;
        remarks.extend(failures);
        let place = format!("{}; files on {}", watch.machine_line(), filesystem(&parent));
        let json = tables::json(&rows, &samples, watch, rounds.rounds, sizes.mib, &remarks);
        Ok(Report {
            head: vec![tables::head(rounds.rounds, &sizes), place],
            tables: tables::all(&rows, &samples, sizes.mib),
            remarks,
            measurements: tables::measurements(&samples),
            others: self.json.iter().map(|file| (file.clone(), format!("{json:#}\n"))).collect(),
        })
    }
}
