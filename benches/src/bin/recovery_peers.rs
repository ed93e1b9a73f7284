//! Compares the recovery from killed ranks with ULFM of Open MPI 5 on this machine; see `benches/README.md`.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use ft_benches::ulfm::{Order, Row, run};
use ft_tools::harness::{Files, interruptible};

/// Compares the recovery from killed ranks with ULFM of Open MPI 5, alternated in one session
#[derive(Debug, Parser)]
#[command(name = "recovery_peers")]
struct Options {
    /// Installation of Open MPI 5: the folder with bin/mpicc and bin/mpiexec
    #[arg(long, value_name = "DIR")]
    openmpi: Option<PathBuf>,
    /// Process starts of every job
    #[arg(long, value_name = "N", default_value_t = 7)]
    rounds: usize,
    /// Rows of the table, such as fresh-8x1; all by default
    #[arg(long, value_name = "ROW,...", value_delimiter = ',')]
    only: Vec<String>,
    /// Measure 4 ranks x 512 MiB too, which takes 12 GiB of memory
    #[arg(long)]
    large: bool,
    #[command(flatten)]
    files: Files,
}

fn main() -> ExitCode {
    let options = Options::parse();
    interruptible("recovery_peers", |is_interrupted| options.compare(is_interrupted))
}

impl Options {
    fn order(&self) -> Result<Order, String> {
        if self.rounds == 0 {
            return Err("--rounds is at least 1".into());
        }
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        Ok(Order {
            ftrun: program.with_file_name("ftrun"),
            openmpi: self.openmpi.clone(),
            rounds: self.rounds,
            rows: Row::choose(&self.only, self.large)?,
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
        self.files.give(&results.text(), &results.csv(), &results.markdown())
    }
}
