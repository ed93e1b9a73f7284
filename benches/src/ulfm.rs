//! Recovery from killed ranks beside ULFM, the fault tolerance of Open MPI 5.
//!
//! Ours is a job of `ftrun load`, theirs a program that does the same by hand (`peers/ulfm_recovery.c`): equal ranks, equal
//! states, equal steps, five states of memory a rank on both sides, copies at the next rank, and the same victims. What counts are
//! ratios of medians over rounds. Every answer is held against that of a run without failures: ours by its closed form,
//! theirs by one such run.
//!
//! Steps are equal too: they change 64 KiB of the state, or all of it, and take no other time.
//!
//! Figures are seconds, those of a recovery since the kill:
//!
//! - `noticed`: the launcher has noticed; ours only.
//! - `known`: the last survivor knows of it. Ours is an upper bound: the launcher has heard that all survivors have stopped.
//! - `shrunk`: all survivors have a communicator without the dead; theirs only.
//! - `repaired`: all ranks are there again.
//! - `whole`: all states and their copies are there again; theirs only, where it is not the end.
//! - `resumed`: all ranks go on. Ours have their state and redundancy again, theirs have done the first allreduce as well.
//! - `agree`, `allreduce`: one agreement, or one allreduce of 8 bytes, on a communicator of the living.

mod job;
mod marks;
mod report;
mod row;
mod sides;
mod tables;

use std::error::Error;
use std::path::PathBuf;

use clap::Parser;
use ft_tools::harness::Files;

use self::job::{Side, Start};
use self::row::Row;
use self::sides::Sides;
use crate::comparison::{Comparison, Failures, Report, Rounds, Watch};

/// Compares the recovery from killed ranks with ULFM of Open MPI 5, alternated in one session
#[derive(Debug, Parser)]
#[command(name = "recovery_peers")]
pub struct Options {
    /// Installation of Open MPI 5: the folder with bin/mpicc and bin/mpiexec
    #[arg(long, value_name = "DIR")]
    openmpi: Option<PathBuf>,
    /// Process starts of every job
    #[arg(long, value_name = "N", default_value_t = 7)]
    rounds: usize,
    /// Rows of the table, such as fresh-8x1; all by default
    #[arg(long, value_name = "ROW,...", value_delimiter = ',')]
    only: Vec<String>,
    /// Measure 8 ranks x 256 MiB and 4 ranks x 512 MiB too, which takes 12 GiB of memory
    #[arg(long)]
    large: bool,
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
        let rows = Row::choose(&self.only, self.large)?;
        let case = |row: &Row| {
            let theirs = row.theirs.filter(|_| self.openmpi.is_some());
            let sides = [(Side::Ours, row.ours), (Side::Ulfm, theirs)];
            sides.into_iter().filter_map(|(side, job)| Some(Start { side, job: job? })).collect()
        };
        let rounds = Rounds {
            cases: rows.iter().map(case).collect(),
            rounds: self.rounds,
            failures: Failures::AreSaid { after: 3 },
        };
        let mut sides = Sides::find(self.openmpi.as_deref(), watch)?;
        let (samples, failures) = rounds.run(watch, |start| sides.measure(start))?;
        let mut remarks = tables::notes(&rows, self.rounds, self.openmpi.is_some(), &samples);
        remarks.extend(failures);
        let head = format!("{} rounds; ms, medians over process starts [lowest..highest]", self.rounds);
        Ok(Report {
            head: vec![head, watch.machine_line()],
            tables: tables::all(&rows, &samples),
            remarks,
            measurements: tables::measurements(&samples),
            others: vec![],
        })
    }
}
