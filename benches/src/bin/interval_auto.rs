//! Holds `--interval auto` under random failures against the model, and prints a table in Markdown.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use ft_benches::intervals::{HEADER, Order, Round, round};
use ft_tools::harness::interruptible;
use ft_tools::recovery::Spread;

/// Overhead of random failures with '--interval auto' beside undisturbed runs, and what the model says of it
#[derive(Debug, Parser)]
struct Args {
    /// The launcher
    #[arg(long, value_name = "PATH", default_value = "target/release/ftrun")]
    ftrun: PathBuf,
    /// Ranks of each job
    #[arg(short = 'n', long, value_name = "N", default_value_t = 4)]
    ranks: usize,
    /// The scheme of the runs with failures
    #[arg(long, value_name = "S", default_value = "rs:2+2")]
    scheme: String,
    /// Mean time between failures
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    mtbf: f64,
    /// Runs of each kind
    #[arg(long, value_name = "R", default_value_t = 5)]
    rounds: u64,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true)]
    command: Vec<OsString>,
}

fn main() -> ExitCode {
    let Args { ftrun, ranks, scheme, mtbf, rounds, command } = Args::parse();
    let order = Order { ftrun, ranks, scheme, mtbf_s: mtbf, command };
    interruptible("interval_auto", |is_interrupted| {
        println!("{HEADER}");
        let mut all: Vec<Round> = Vec::new();
        for number in 1..=rounds {
            let round = round(&order, number, is_interrupted).map_err(|error| error.to_string())?;
            println!("{round}");
            all.push(round);
        }
        let middle = |of: fn(&Round) -> f64| Spread::of(all.iter().map(of)).median;
        println!(
            "\nMedians: overhead {:.1} %, by the model {:.1} %, ratio {:.2}; beside steps of the same length {:.1} %, ratio {:.2}.",
            middle(Round::measured) * 100.0,
            middle(Round::modelled) * 100.0,
            middle(Round::ratio),
            middle(|round| round.measured_alike().unwrap_or(f64::NAN)) * 100.0,
            middle(|round| round.ratio_alike().unwrap_or(f64::NAN))
        );
        Ok(())
    })
}
