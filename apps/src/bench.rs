//! `ftrun bench`: measurements of this machine. They start jobs of their own and are measured from outside.

mod collectives;
mod files;
mod watch;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::{Args, Subcommand};
use ft_checkpoint::{GroupLayout, Scheme};
use ft_launch::SELF;
use ft_tools::recovery::{self, Experiment, FRESH_DISK, Progress, Results, UNPROTECTED};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use self::collectives::CollectivesArgs;
use self::files::{require_all_writable, write};
use self::watch::Watch;
pub(crate) use self::watch::show;
use crate::say::{complain, print};
use crate::size;
use crate::value::{from_to, ranks, repetitions};

/// The schemes that are compared if none are named, as far as they fit the ranks.
const SCHEMES: [&str; 4] = ["neighbor", "xor", "rs:2+2", FRESH_DISK];

/// What can be measured.
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub(crate) enum Bench {
    /// What protection costs: without failures, for a checkpoint, for a recovery, in memory, and in long runs
    Recovery(RecoveryArgs),
    /// Which collective algorithms are the fastest here, as a table for --collectives
    Collectives(CollectivesArgs),
}

/// The arguments of `bench recovery`.
#[derive(Debug, Clone, PartialEq, Args)]
pub(crate) struct RecoveryArgs {
    /// Ranks of each job
    #[arg(short = 'n', long, value_name = "N", default_value_t = 4, value_parser = ranks)]
    ranks: usize,
    /// Protected state of each rank: bytes, or a number of KiB, MiB or GiB
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', default_value = "1MiB,64MiB", value_parser = size::of_words)]
    state: Vec<u64>,
    /// Schemes to compare with no protection; 'disk' is a fresh folder in the temporary folder of the system
    /// (default: neighbor,xor,rs:2+2,disk as far as they fit the ranks)
    #[arg(long, value_name = "S,...", value_delimiter = ',')]
    schemes: Vec<String>,
    /// How often everything is measured
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = repetitions)]
    repeat: usize,
    /// Where the order of the runs and the times of random kills come from
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = from_to::<u64>(0..=u64::MAX))]
    seed: u64,
    /// Write all measurements, one a row
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write a page with pictures
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print everything as JSON instead of tables
    #[arg(long)]
    json: bool,
}

impl Bench {
    /// Says what is wrong with the order, before minutes are spent on it.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Self::Recovery(args) => args.check(),
            Self::Collectives(args) => args.check(),
        }
    }
    pub(crate) fn run(&self) -> ExitCode {
        // Signals are heeded between two jobs, so that no files stay in the temporary folder.
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGHUP, SIGINT, SIGTERM] {
            // Without a handler the signal ends this process at once, which is no harm to the results.
            let _ = signal_hook::flag::register_usize(number, signal.clone(), number as usize);
        }
        let outcome = match self {
            Self::Recovery(args) => args.measure(&signal),
            Self::Collectives(args) => args.measure(&signal),
        };
        let status = match (signal.load(Ordering::Relaxed), &outcome) {
            (0, Ok(())) => return ExitCode::SUCCESS,
            (0, Err(_)) => 1,
            (signal, _) => 128 + signal,
        };
        if let Err(complaint) = outcome {
            complain(complaint);
        }
        ExitCode::from(u8::try_from(status).unwrap_or(1))
    }
}

impl RecoveryArgs {
    fn check(&self) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        if let Some(twice) = self.state.iter().find(|bytes| !seen.insert(**bytes)) {
            return Err(format!("--state: {twice} bytes are named twice"));
        }
        let mut seen = BTreeSet::new();
        for scheme in &self.schemes {
            let refuse = |why: String| format!("--schemes {scheme}: {why}");
            if scheme == UNPROTECTED {
                return Err(refuse("runs without protection are part of every measurement".into()));
            }
            if !seen.insert(scheme) {
                return Err(refuse("named twice".into()));
            }
            fits(scheme, self.ranks).map_err(refuse)?;
        }
        require_all_writable(&[("--csv", &self.csv), ("--html", &self.html)])
    }

    fn experiment(&self) -> Experiment {
        let fitting = SCHEMES.into_iter().filter(|scheme| fits(scheme, self.ranks).is_ok());
        let default = || fitting.map(str::to_owned).collect();
        Experiment {
            program: SELF.into(),
            ranks: self.ranks,
            states: self.state.clone(),
            schemes: if self.schemes.is_empty() { default() } else { self.schemes.clone() },
            repeat: self.repeat,
            seed: self.seed,
        }
    }

    fn measure(&self, signal: &AtomicUsize) -> Result<(), String> {
        let experiment = self.experiment();
        let watch = Watch::new(signal);
        let results =
            recovery::run(&experiment, &mut |progress: &Progress| watch.step(|bar| show(bar, progress)));
        watch.end();
        self.write(&results.map_err(|error| error.to_string())?)
    }

    fn write(&self, results: &Results) -> Result<(), String> {
        let printed = match self.json {
            true => serde_json::to_string(results).expect("results can be written") + "\n",
            false => results.text(),
        };
        // Files first: whoever reads the other end of a pipe may be gone.
        self.csv.iter().try_for_each(|file| write(file, results.csv()))?;
        self.html.iter().try_for_each(|file| write(file, results.html()))?;
        print(&printed)
    }
}

/// Whether a scheme can be read and fits the ranks.
fn fits(scheme: &str, ranks: usize) -> Result<(), String> {
    let text = if scheme == FRESH_DISK { "disk:." } else { scheme };
    let scheme: Scheme = text.parse().map_err(|error: ft_checkpoint::SchemeError| error.to_string())?;
    GroupLayout::new(scheme, ranks, 0, None).map(|_| ()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_that_fit_are_the_default() {
        let args = |ranks| RecoveryArgs {
            ranks,
            state: vec![8],
            schemes: vec![],
            repeat: 1,
            seed: 1,
            csv: None,
            html: None,
            json: false,
        };
        assert_eq!(args(4).experiment().schemes, SCHEMES);
        assert_eq!(args(2).experiment().schemes, ["neighbor", "xor", FRESH_DISK]);
    }
}
