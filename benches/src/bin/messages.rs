//! Compares the messages of `ft-comm` with raw sockets, MPICH and Open MPI on this machine; see `benches/README.md`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use ft_benches::messages::test::Selection;
use ft_benches::messages::{Order, run};
use ft_tools::harness::{Files, interruptible};

/// Compares the messages of ft-comm with raw sockets, MPICH and Open MPI, alternated in one session
#[derive(Debug, Parser)]
#[command(name = "messages")]
struct Options {
    /// Installation of MPICH: the folder with bin/mpicc and bin/mpiexec
    #[arg(long, value_name = "DIR")]
    mpich: Option<PathBuf>,
    /// Installation of Open MPI
    #[arg(long, value_name = "DIR")]
    openmpi: Option<PathBuf>,
    /// Process starts of every side
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// Seconds a test
    #[arg(long, value_name = "SECONDS", default_value_t = 0.1)]
    time: f64,
    /// Tests, each NAME or NAME:BYTES; all by default
    #[arg(long, value_name = "TEST,...", value_delimiter = ',')]
    only: Vec<String>,
    /// Ranks of the collectives
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "2,4,8")]
    ranks: Vec<usize>,
    /// Congestion control of this machine meanwhile (default: as it is); takes root
    #[arg(long, value_name = "NAME", default_value = "default")]
    congestion: String,
    /// The congestion control that ft-comm asks for: raw sockets are measured under it too
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    comm_congestion: String,
    #[command(flatten)]
    files: Files,
}

fn main() -> ExitCode {
    let options = Options::parse();
    // Whatever ends the measurement, ranks are ended and the congestion control is put back.
    interruptible("messages", |is_interrupted| options.compare(is_interrupted))
}

impl Options {
    fn order(&self) -> Result<Order, String> {
        if let Some(ranks) = self.ranks.iter().find(|ranks| !ranks.is_power_of_two() || **ranks < 2) {
            return Err(format!("--ranks {ranks}: raw collectives want a power of two from 2 on"));
        }
        if !(self.time > 0.0 && self.time < 60.0) || self.rounds == 0 {
            return Err("--time is more than 0 and less than 60 seconds, --rounds at least 1".into());
        }
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        Ok(Order {
            programs: program.parent().unwrap_or(Path::new(".")).to_owned(),
            mpich: self.mpich.clone(),
            openmpi: self.openmpi.clone(),
            rounds: self.rounds,
            time_s: self.time,
            selection: Selection::of(&self.only)?,
            ranks: self.ranks.clone(),
            congestion: Some(self.congestion.clone()).filter(|name| name != "default"),
            comm_congestion: self.comm_congestion.clone(),
        })
    }

    fn compare(&self, is_interrupted: &dyn Fn() -> bool) -> Result<(), String> {
        let mut progress = |done, all, next: &str| eprintln!("{done} of {all}: {next}");
        let results =
            run(&self.order()?, is_interrupted, &mut progress).map_err(|error| error.to_string())?;
        self.files.give(&results.text(), &results.csv(), &results.markdown())
    }
}
