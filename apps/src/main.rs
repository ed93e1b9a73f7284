//! `ftrun`: starts a program as the ranks of a job and sees it through failures.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

mod app;
mod bench;
mod cg;
mod cli;
mod collective;
mod collective_times;
mod ep;
mod heat;
mod job;
mod load;
mod pi;
mod picture;
mod progress;
mod rank;
mod report;
mod ring;
mod seismic;
mod simulator;
mod size;
mod timeline;

use crate::cli::{Asked, Program};

/// First argument of the processes that the launcher starts, followed by the launcher's process number and
/// the launcher's own arguments.
const RANK_OF: &str = "--rank-of";

fn main() -> ExitCode {
    let argv: Vec<OsString> = std::env::args_os().collect();
    let launcher = match &argv[..] {
        [_, flag, pid, ..] if flag == RANK_OF => pid.to_str().and_then(|pid| pid.parse().ok()),
        _ => None,
    };
    match launcher {
        Some(launcher) => as_rank(launcher, argv),
        None => match cli::parse(&argv) {
            Ok(Asked::Job(invocation)) => job::run(&invocation, &argv[1..]),
            Ok(Asked::Bench(bench)) => bench.run(),
            Ok(Asked::Picture(picture)) => picture.run(),
            Err(stop) => stop.print(),
        },
    }
}

/// One rank of a job: a bundled app in this process, or another program in its place.
fn as_rank(launcher: u32, mut argv: Vec<OsString>) -> ExitCode {
    if ft_comm::launch::die_with_launcher(launcher).is_err() {
        return ExitCode::FAILURE;
    }
    argv.drain(1..3);
    match cli::parse(&argv) {
        Ok(Asked::Job(invocation)) => match invocation.program {
            Program::Own { path, args } => {
                let error = Command::new(&path).args(args).exec();
                eprintln!("ftrun: cannot run {}: {error}", path.display());
                ExitCode::from(2)
            }
            Program::App(_, app) => app.rank(),
        },
        // No launcher starts one.
        Ok(Asked::Bench(_) | Asked::Picture(_)) => ExitCode::FAILURE,
        Err(stop) => stop.print(),
    }
}
