//! `ftrun`: starts a program as the ranks of a job and sees it through failures.

use std::ffi::OsString;
use std::process::ExitCode;

#[allow(dead_code, reason = "the launcher, which reads the rest, is still to come")]
mod cli;

fn main() -> ExitCode {
    let argv: Vec<OsString> = std::env::args_os().collect();
    match cli::parse(&argv) {
        Ok(_) => ExitCode::SUCCESS,
        Err(stop) => stop.print(),
    }
}
