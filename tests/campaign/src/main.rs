//! Random jobs under random strikes from outside, until one breaks a promise.
//!
//! A run is chosen by a seed and its number; only its timing is not. `--only` repeats one.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

mod app;
mod case;
mod clock;
mod denied;
mod doors;
mod hostile;
mod kills;
mod limits;
mod network;
mod processes;
mod programs;
mod random;
mod reference;
mod run;
mod solves;
mod strike;
mod summary;
mod surroundings;
mod verdict;
mod workers;

use app::App;
use hostile::Hostile;
use kills::Kills;
use limits::Limits;
use network::Network;
use programs::Programs;
use summary::Summary;
use workers::{Plan, work};

/// Runs random jobs, strikes them from outside, and says which have broken a promise
#[derive(Debug, Parser)]
#[command(name = "campaign")]
struct Args {
    /// Runs (default: 1000, or 1 with --only)
    #[arg(long, value_name = "N")]
    runs: Option<u64>,
    /// What all runs are chosen by, with their numbers
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Do this run of the seed, as often as --runs says
    #[arg(long, value_name = "NUMBER")]
    only: Option<u64>,
    /// Run this app alone
    #[arg(long, value_name = "APP", value_parser = app_name, conflicts_with_all = ["network", "limits", "hostile"])]
    app: Option<String>,
    /// Begin no run after so many seconds
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Runs at a time
    #[arg(long, value_name = "N", default_value_t = 2)]
    jobs: usize,
    /// This ftrun, with its examples beside it (default: build it)
    #[arg(long, value_name = "PATH")]
    ftrun: Option<PathBuf>,
    /// Strike the network between three hosts instead
    #[arg(long, conflicts_with_all = ["limits", "hostile"])]
    network: bool,
    /// Give jobs less of the system instead: files, memory, calls; each once
    #[arg(long, conflicts_with = "hostile")]
    limits: bool,
    /// Put FIFOs, devices, sparse and damaged files where jobs read checkpoints and inputs instead
    #[arg(long)]
    hostile: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let [first, rest @ ..] = &arguments[..] {
        match first.to_str() {
            Some(denied::AS_DENIED) => return denied::run(rest),
            Some(surroundings::AS_BLOCKED) => return surroundings::run_blocked(rest),
            Some(surroundings::AS_BACKGROUND) => return surroundings::run_in_background(rest),
            _ => {}
        }
    }
    match campaign(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("campaign: {error}");
            ExitCode::from(2)
        }
    }
}

fn app_name(text: &str) -> Result<String, String> {
    if App::is_name(text) { Ok(text.to_owned()) } else { Err("no app of campaigns has this name".into()) }
}

/// Whether all was as it should be.
fn campaign(args: &Args) -> Result<bool, String> {
    let programs = Programs::new(args.ftrun.clone())?;
    let all = if args.only.is_some() { 1 } else { 1000 };
    let mut plan = Plan {
        runs: args.runs.unwrap_or(all),
        only: args.only,
        until: args.seconds.map(Duration::from_secs),
        at_a_time: args.jobs.max(1),
    };
    let summary: Summary = if args.network {
        match Network::new(&programs, args.seed) {
            Ok(network) => work(plan, &network)?,
            Err(why) => {
                println!("skipped: {why}");
                return Ok(true);
            }
        }
    } else if args.limits {
        let limits = Limits::new(&programs);
        plan.runs = args.runs.or(args.only.map(|_| 1)).unwrap_or(limits.runs());
        work(plan, &limits)?
    } else if args.hostile {
        work(plan, &Hostile::new(&programs, args.seed)?)?
    } else {
        work(plan, &Kills::new(&programs, args.seed, args.app.as_deref()))?
    };
    println!("{summary}");
    Ok(summary.findings == 0)
}
