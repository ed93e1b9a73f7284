//! Compares the erasure codes with Intel's ISA-L on this machine; see `benches/README.md`.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use ft_benches::codes::{Cell, Order, run};
use ft_tools::harness::{Files, interruptible};

/// Compares the erasure codes with Intel's ISA-L, alternated in one session
#[derive(Debug, Parser)]
#[command(name = "code_peers")]
struct Options {
    /// Process starts of every cell
    #[arg(long, value_name = "N", default_value_t = 11)]
    rounds: usize,
    /// Shards of at most this size only
    #[arg(long, value_name = "KIB")]
    up_to_kib: Option<usize>,
    #[command(flatten)]
    files: Files,
}

fn main() -> ExitCode {
    let options = Options::parse();
    interruptible("code_peers", |is_interrupted| options.compare(is_interrupted))
}

impl Options {
    fn compare(&self, is_interrupted: &dyn Fn() -> bool) -> Result<(), String> {
        if self.rounds == 0 {
            return Err("--rounds is at least 1".into());
        }
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let is_small = |cell: &Cell| self.up_to_kib.is_none_or(|most| cell.kib <= most);
        let order = Order {
            examples: program.with_file_name("examples"),
            rounds: self.rounds,
            cells: Cell::all().into_iter().filter(is_small).collect(),
        };
        let is_watched = std::io::stderr().is_terminal();
        let mut progress = |done, all, next: &str| {
            if is_watched {
                eprintln!("{done} of {all}: {next}");
            }
        };
        let results = run(&order, is_interrupted, &mut progress).map_err(|error| error.to_string())?;
        self.files.give(&results.text(), &results.csv(), &results.markdown())
    }
}
