//! `ftrun ps`, `status`, `top`, `kill`, `checkpoint`, `stop` and `hosts`: what people ask of jobs that run.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use ft_launch::{Command, HostChange, Inquiry, InquiryError, Status, jobs};
use serde_json::{Value, json};

use crate::say::{complain, page};
use crate::value::rank;

mod screen;
mod words;

const JOB_HELP: &str = "The job, by the number that 'ftrun ps' lists";
const ONE_JOB_HELP: &str = "The job, by the number that 'ftrun ps' lists; without it, the one that there is";

/// Reads the number of a job.
fn job(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "must be the number of a job, as 'ftrun ps' lists it".to_owned())
}

/// List the jobs of this user on this host
#[derive(Debug, Parser)]
#[command(name = "ps", display_name = "ftrun ps", bin_name = "ftrun ps", version, max_term_width = 110)]
pub(crate) struct Ps {
    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

/// Say how a job is: ranks, hosts, steps, checkpoints, failures
#[derive(Debug, Parser)]
#[command(
    name = "status",
    display_name = "ftrun status",
    bin_name = "ftrun status",
    version,
    max_term_width = 110
)]
pub(crate) struct StatusOf {
    #[arg(value_name = "JOB", help = ONE_JOB_HELP, value_parser = job)]
    job: Option<u32>,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// Say how a job is again every second, until it ends; in a pipe once
#[derive(Debug, Parser)]
#[command(name = "top", display_name = "ftrun top", bin_name = "ftrun top", version, max_term_width = 110)]
pub(crate) struct Top {
    #[arg(value_name = "JOB", help = ONE_JOB_HELP, value_parser = job)]
    job: Option<u32>,
}

/// Kill the process of a rank, which the job survives as it survives any failure
#[derive(Debug, Parser)]
#[command(name = "kill", display_name = "ftrun kill", bin_name = "ftrun kill", version, max_term_width = 110)]
pub(crate) struct Kill {
    #[arg(value_name = "JOB", help = JOB_HELP, value_parser = job)]
    job: u32,
    /// The rank, by its number at the start of the job
    #[arg(value_name = "RANK", value_parser = rank)]
    rank: usize,
}

/// Have a job with --spill write its newest checkpoint to files now, as SIGUSR1 to its launcher does
#[derive(Debug, Parser)]
#[command(
    name = "checkpoint",
    display_name = "ftrun checkpoint",
    bin_name = "ftrun checkpoint",
    version,
    max_term_width = 110
)]
pub(crate) struct Checkpoint {
    #[arg(value_name = "JOB", help = JOB_HELP, value_parser = job)]
    job: u32,
}

/// End a job, as SIGTERM to its launcher does: with --spill its newest checkpoint is written to files before
#[derive(Debug, Parser)]
#[command(name = "stop", display_name = "ftrun stop", bin_name = "ftrun stop", version, max_term_width = 110)]
pub(crate) struct StopJob {
    #[arg(value_name = "JOB", help = JOB_HELP, value_parser = job)]
    job: u32,
}

/// List the hosts of a job, or add one, drain or remove it
#[derive(Debug, Parser)]
#[command(
    name = "hosts",
    display_name = "ftrun hosts",
    bin_name = "ftrun hosts",
    version,
    max_term_width = 110
)]
pub(crate) struct HostsOf {
    #[arg(value_name = "JOB", help = JOB_HELP, value_parser = job)]
    job: u32,
    /// What is wanted of a host
    #[arg(value_enum, value_name = "CHANGE", requires = "host")]
    change: Option<Change>,
    /// The host, as the list has it; a new one is NAME or NAME:SLOTS
    #[arg(value_name = "NAME")]
    host: Option<String>,
    /// Print the list as JSON
    #[arg(long, conflicts_with = "change")]
    json: bool,
}

/// What is wanted of a host.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Change {
    /// It takes processes as soon as an agent answers there
    Add,
    /// It takes no new processes
    Drain,
    /// Its ranks are replaced on others
    Remove,
}

impl From<Change> for HostChange {
    fn from(change: Change) -> Self {
        match change {
            Change::Add => Self::Add,
            Change::Drain => Self::Drain,
            Change::Remove => Self::Remove,
        }
    }
}

/// What is asked.
#[derive(Debug)]
pub(crate) enum Call {
    Ps(Ps),
    Status(StatusOf),
    Top(Top),
    Kill(Kill),
    Checkpoint(Checkpoint),
    Stop(StopJob),
    Hosts(HostsOf),
}

/// Why there is no answer, and the status to end with.
struct Refusal {
    status: u8,
    text: String,
}

impl From<InquiryError> for Refusal {
    fn from(error: InquiryError) -> Self {
        let is_usage = matches!(error, InquiryError::Refused { .. });
        Self { status: if is_usage { 2 } else { 1 }, text: error.to_string() }
    }
}

impl Call {
    /// Status 2 if there is no such job, or it refuses; 1 if it does not answer.
    pub(crate) fn run(&self) -> ExitCode {
        let result = match self {
            Self::Ps(Ps { json }) => Ok(page(list(*json))),
            Self::Status(StatusOf { job, json }) => status(*job, *json).map(page),
            Self::Top(Top { job }) => begin(*job).and_then(screen::run),
            Self::Kill(Kill { job, rank }) => order(*job, Command::Kill { rank: *rank }).map(page),
            Self::Checkpoint(Checkpoint { job }) => order(*job, Command::Save).map(page),
            Self::Stop(StopJob { job }) => order(*job, Command::Stop).map(page),
            Self::Hosts(hosts) => hosts.run().map(page),
        };
        result.unwrap_or_else(|Refusal { status, text }| {
            complain(text);
            ExitCode::from(status)
        })
    }
}

impl HostsOf {
    fn run(&self) -> Result<String, Refusal> {
        if let (Some(change), Some(name)) = (self.change, self.host.clone()) {
            return order(self.job, Command::Host { change: change.into(), name });
        }
        let hosts = begin(Some(self.job))?.hosts()?;
        Ok(if self.json { format!("{}\n", json!(hosts)) } else { words::hosts(&hosts) })
    }
}

/// All jobs. One that ends meanwhile is none; of one that does not answer only the number is known.
fn list(as_json: bool) -> String {
    let ask = |(job, path): (u32, PathBuf)| {
        let status = Inquiry::begin(job, &path).and_then(|mut inquiry| inquiry.status());
        match status {
            Ok(status) => Some((job, Some(status))),
            Err(InquiryError::Gone(_) | InquiryError::Ended { .. }) => None,
            Err(_) => Some((job, None)),
        }
    };
    let jobs: Vec<(u32, Option<Status>)> = jobs().into_iter().filter_map(ask).collect();
    if !as_json {
        return words::jobs(&jobs);
    }
    let whole = |(job, status): &(u32, Option<Status>)| {
        status.as_ref().map_or(json!({ "job": job }), |status| json!(status))
    };
    format!("{}\n", jobs.iter().map(whole).collect::<Value>())
}

fn status(job: Option<u32>, as_json: bool) -> Result<String, Refusal> {
    let status = begin(job)?.status()?;
    Ok(match as_json {
        true => format!("{}\n", json!(status)),
        false => words::text(&words::status(&status)),
    })
}

fn order(job: u32, command: Command) -> Result<String, Refusal> {
    let said = begin(Some(job))?.order(command)?;
    Ok(format!("job {job}: {said}\n"))
}

/// Goes to the desk of a job, or of the only one.
fn begin(job: Option<u32>) -> Result<Inquiry, Refusal> {
    let usage = |text: String| Refusal { status: 2, text };
    let jobs = jobs();
    let found = match (job, &jobs[..]) {
        (Some(job), all) => all.iter().find(|(number, _)| *number == job).ok_or_else(|| {
            usage(format!(
                "there is no job {job} of this user on this host; 'ftrun ps' lists those that there are"
            ))
        }),
        (None, [one]) => Ok(one),
        (None, []) => Err(usage("no job of this user runs on this host".into())),
        (None, all) => {
            let numbers: Vec<String> = all.iter().map(|(number, _)| number.to_string()).collect();
            Err(usage(format!("say which job: there are {}", numbers.join(", "))))
        }
    };
    let (job, path) = found?;
    Ok(Inquiry::begin(*job, path)?)
}
