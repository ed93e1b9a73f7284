//! From the command line to a job, and from its end to what people and programs read.

use std::ffi::OsString;
use std::process::ExitCode;

use ft_comm::launch::{Order, launch};
use ft_comm::proto::arbiter::{self, Config};

use crate::cli::{Invocation, OnFailure};

/// Runs the job and reports on it.
pub(crate) fn run(invocation: Invocation, arguments: &[OsString]) -> ExitCode {
    let options = &invocation.options;
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            eprintln!("ftrun: cannot find its own program: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut args: Vec<OsString> = vec![crate::RANK_OF.into(), std::process::id().to_string().into()];
    args.extend_from_slice(arguments);
    let compute = options.ranks();
    let config = Config {
        compute,
        total: compute,
        on_failure: match options.on_failure {
            OnFailure::Rebuild => arbiter::OnFailure::Rebuild,
            OnFailure::Abort => arbiter::OnFailure::Abort,
        },
        max_restarts: options.max_restarts as u32,
        interval: options.heartbeat_interval(),
        timeout: options.heartbeat_timeout(),
        settings: vec![
            ("scheme".into(), options.scheme().into()),
            ("every".into(), options.every.to_string()),
        ],
        kills: options.kill.clone(),
    };
    let order =
        Order { program, args, config, output_to_stderr: options.json, tag_output: options.verbose };
    let verbose = options.verbose;
    let result = launch(order, &mut |event, at| {
        if verbose {
            eprintln!("ftrun: {:.6} s: {event:?}", at.seconds());
        }
    });
    match result {
        Ok(ending) => {
            if !ending.message.is_empty() {
                eprintln!("ftrun: {}", ending.message);
            }
            if verbose {
                eprintln!("ftrun: {:?}", ending.failures);
            }
            ExitCode::from(u8::try_from(ending.code).unwrap_or(1))
        }
        Err(error) => {
            eprintln!("ftrun: {error}");
            ExitCode::FAILURE
        }
    }
}
