//! `ftrun bench collectives`.

use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use clap::Args;
use ft_comm::transport::Carrier;
use ft_launch::{HostError, HostList, SELF};
use ft_tools::collectives::{self, Experiment, Results};

use super::files::{require_all_writable, write};
use super::watch::Watch;
use crate::say::print;
use crate::value::{one_of, ranks, repetitions, seconds};

/// The arguments of `bench collectives`.
#[derive(Debug, Clone, PartialEq, Args)]
pub(crate) struct CollectivesArgs {
    /// Numbers of ranks
    #[arg(short = 'n', long, value_name = "N,...", value_delimiter = ',', value_parser = ranks, default_value = "2,4,8")]
    ranks: Vec<usize>,
    /// Seconds for each algorithm with each size in each round, about
    #[arg(long, value_name = "S", default_value_t = 0.02, value_parser = seconds)]
    time: f64,
    /// How often everything is measured
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = repetitions)]
    rounds: usize,
    /// What carries messages, as for jobs
    #[arg(long, value_name = "T", value_parser = one_of::<Carrier>(&Carrier::NAMES), default_value_t)]
    transport: Carrier,
    /// Hosts and slots of the jobs, as for jobs: ranks fill the slots of one after the other
    #[arg(long, value_name = "LIST", value_parser = hosts)]
    hosts: Option<String>,
    /// The command that starts things on hosts, in place of ssh
    #[arg(long, value_name = "PATH", requires = "hosts")]
    launcher_exec: Option<String>,
    /// Write the table of the fastest algorithms, for 'ftrun --collectives'
    #[arg(short, long, value_name = "TABLE")]
    output: Option<PathBuf>,
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

/// A list of hosts, as a job takes it.
fn hosts(text: &str) -> Result<String, HostError> {
    text.parse::<HostList>().map(|_| text.to_owned())
}

impl CollectivesArgs {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.ranks.contains(&1) {
            return Err("--ranks: 1 rank has nobody to talk to".into());
        }
        if let Some(pair) = self.ranks.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(format!("--ranks: {} does not follow {}; name rising numbers", pair[1], pair[0]));
        }
        require_all_writable(&[("--output", &self.output), ("--csv", &self.csv), ("--html", &self.html)])
    }

    fn experiment(&self) -> Experiment {
        Experiment {
            program: SELF.into(),
            ranks: self.ranks.clone(),
            time_s: self.time,
            rounds: self.rounds,
            transport: self.transport.to_string(),
            places: [("--hosts", &self.hosts), ("--launcher-exec", &self.launcher_exec)]
                .into_iter()
                .filter_map(|(option, value)| Some([option.to_owned(), value.clone()?]))
                .flatten()
                .collect(),
        }
    }

    pub(super) fn measure(&self, signal: &AtomicUsize) -> Result<(), String> {
        let experiment = self.experiment();
        let watch = Watch::new(signal);
        let mut progress = |done: usize, all: usize, next: &str| {
            watch.step(|bar| {
                bar.set_length(all as u64);
                bar.set_position(done as u64);
                bar.set_message(next.to_owned());
                bar.enable_steady_tick(Duration::from_secs(1));
            })
        };
        let results = collectives::run(&experiment, &mut progress);
        watch.end();
        self.write(&results.map_err(|error| error.to_string())?)
    }

    fn write(&self, results: &Results) -> Result<(), String> {
        let table = results.table_text();
        let mut printed = match self.json {
            true => serde_json::to_string(results).expect("results can be written") + "\n",
            false => results.text(),
        };
        match &self.output {
            Some(file) => write(file, table)?,
            None if !self.json => printed += &format!("\n{table}"),
            None => {}
        }
        self.csv.iter().try_for_each(|file| write(file, results.csv()))?;
        self.html.iter().try_for_each(|file| write(file, results.html()))?;
        print(&printed)
    }
}
