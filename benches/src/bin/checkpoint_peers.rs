//! Compares checkpoints with what sockets and codes take, and with files, on this machine; see `benches/README.md`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use ft_benches::checkpoints::{Order, Row, Sizes, run};
use ft_tools::harness::{Files, interruptible};

/// Compares checkpoints with their floor and with files, alternated in one session
#[derive(Debug, Parser)]
#[command(name = "checkpoint_peers")]
struct Options {
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

fn main() -> ExitCode {
    let options = Options::parse();
    interruptible("checkpoint_peers", |is_interrupted| options.compare(is_interrupted))
}

impl Options {
    fn order(&self) -> Result<Order, String> {
        if [self.rounds, self.mib, self.repeats].contains(&0) || self.solver_ranks < 2 {
            return Err("--rounds, --mib and --repeats are at least 1, --solver-ranks 2".into());
        }
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let sizes = match self.quick {
            false => Sizes {
                mib: self.mib,
                repeats: self.repeats,
                solver_ranks: self.solver_ranks,
                solver_s: 10.0,
                interval_s: 2.0,
            },
            true => {
                Sizes { mib: 1, repeats: 2, solver_ranks: self.solver_ranks, solver_s: 0.5, interval_s: 0.1 }
            }
        };
        Ok(Order {
            programs: program.parent().unwrap_or(Path::new(".")).to_owned(),
            openmpi: self.openmpi.clone(),
            folder: self.folder.clone(),
            congestion: self.comm_congestion.clone(),
            rounds: if self.quick { 2 } else { self.rounds },
            sizes,
            rows: Row::choose(&self.only)?,
        })
    }

    fn compare(&self, is_interrupted: &dyn Fn() -> bool) -> Result<(), String> {
        let is_watched = std::io::stderr().is_terminal();
        let mut progress = |done, all, next: &str| {
            if is_watched {
                eprintln!("{done} of {all}: {next}");
            }
        };
        let results =
            run(&self.order()?, is_interrupted, &mut progress).map_err(|error| error.to_string())?;
        self.files.give(&results.text(), &results.csv(), &results.markdown())?;
        let write = |file: &PathBuf| {
            std::fs::write(file, format!("{:#}\n", results.json()))
                .map_err(|error| format!("cannot write {}: {error}", file.display()))
        };
        self.json.iter().try_for_each(write)
    }
}
