//! `ftrun bench`: measurements of this machine. They start jobs of their own and are measured from outside.

mod collectives;

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::{Args, Subcommand};
use ft_checkpoint::{GroupLayout, Scheme};
use ft_tools::recovery::{self, Experiment, FRESH_DISK, Progress, Results, UNPROTECTED};
use indicatif::ProgressBar;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use self::collectives::CollectivesArgs;
use crate::progress::{is_watched, style};
use crate::say::{complain, print};
use crate::size;
use crate::value::at_least_one;

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
    #[arg(short = 'n', long, value_name = "N", default_value_t = 4, value_parser = at_least_one)]
    ranks: usize,
    /// Protected state of each rank: bytes, or a number of KiB, MiB or GiB
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', default_value = "1MiB,64MiB", value_parser = size::of_words)]
    state: Vec<u64>,
    /// Schemes to compare with no protection; 'disk' is a fresh folder in the temporary folder of the system
    /// (default: neighbor,xor,rs:2+2,disk as far as they fit the ranks)
    #[arg(long, value_name = "S,...", value_delimiter = ',')]
    schemes: Vec<String>,
    /// How often everything is measured
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = at_least_one)]
    repeat: usize,
    /// Where the order of the runs and the times of random kills come from
    #[arg(long, value_name = "S", default_value_t = 1)]
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

    fn experiment(&self) -> std::io::Result<Experiment> {
        let fitting = SCHEMES.into_iter().filter(|scheme| fits(scheme, self.ranks).is_ok());
        let default = || fitting.map(str::to_owned).collect();
        Ok(Experiment {
            program: std::env::current_exe()?,
            ranks: self.ranks,
            states: self.state.clone(),
            schemes: if self.schemes.is_empty() { default() } else { self.schemes.clone() },
            repeat: self.repeat,
            seed: self.seed,
        })
    }

    fn measure(&self, signal: &AtomicUsize) -> Result<(), String> {
        let experiment = self.experiment().map_err(|error| error.to_string())?;
        let bar = is_watched(false)
            .then(|| ProgressBar::new(1).with_style(style("{pos} of {len} [{bar:30}] {elapsed}, {msg}")));
        let mut progress = |progress: &Progress| {
            if let Some(bar) = &bar {
                show(bar, progress);
            }
            match signal.load(Ordering::Relaxed) {
                0 => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        };
        let results = recovery::run(&experiment, &mut progress);
        bar.iter().for_each(ProgressBar::finish_and_clear);
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

fn write(file: &Path, text: String) -> Result<(), String> {
    std::fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// Shows on a terminal how far a measurement is.
pub(crate) fn show(bar: &ProgressBar, progress: &Progress) {
    let left = progress.left.as_secs();
    let left = if left < 90 { format!("{left} s") } else { format!("{} min", (left + 30) / 60) };
    bar.set_length(progress.total as u64);
    bar.set_position(progress.done as u64);
    bar.set_message(format!("about {left} left: {}", progress.next));
    bar.enable_steady_tick(Duration::from_secs(1));
}

/// Whether a scheme can be read and fits the ranks.
fn fits(scheme: &str, ranks: usize) -> Result<(), String> {
    let text = if scheme == FRESH_DISK { "disk:." } else { scheme };
    let scheme: Scheme = text.parse().map_err(|error: ft_checkpoint::SchemeError| error.to_string())?;
    GroupLayout::new(scheme, ranks, 0, None).map(|_| ()).map_err(|error| error.to_string())
}

/// Finds out before minutes are spent that the files of some options cannot be written.
fn require_all_writable(files: &[(&str, &Option<PathBuf>)]) -> Result<(), String> {
    for (option, file) in files {
        let Some(file) = file else { continue };
        require_writable(file)
            .map_err(|error| format!("{option}: cannot write {}: {error}", file.display()))?;
    }
    Ok(())
}

/// Opens a file for writing and leaves it as it was.
fn require_writable(file: &Path) -> std::io::Result<()> {
    let is_new = !file.exists();
    OpenOptions::new().append(true).create(true).open(file)?;
    if is_new { std::fs::remove_file(file) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_tried_and_left_as_it_was() {
        let folder = std::env::temp_dir().join(format!("ftrun-bench-test-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("a.csv");
        require_writable(&file).unwrap();
        assert!(!file.exists());
        std::fs::write(&file, "old").unwrap();
        require_writable(&file).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"old");
        assert!(require_writable(&folder).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

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
        assert_eq!(args(4).experiment().unwrap().schemes, SCHEMES);
        assert_eq!(args(2).experiment().unwrap().schemes, ["neighbor", "xor", FRESH_DISK]);
    }
}
