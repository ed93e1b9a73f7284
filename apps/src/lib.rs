//! `ftrun`: starts a program as the ranks of a job and sees it through failures.
//!
//! `ftrun --help` has its options, and the handbook in `docs/` says how it is used. For a program of your own:
//!
//! | crate | what it has |
//! |---|---|
//! | [`ft_checkpoint`] | a state that is protected, and the loop that survives failures: begin here |
//! | [`ft_comm`] | messages between ranks, collectives, repair |
//! | [`ft_linalg`] | distributed matrices and vectors, and solvers that survive failures |
//! | [`ft_proto`] | the protocols under `ft_comm`, as values |
//! | [`ft_launch`] | the launcher, for programs that start jobs themselves |
//! | [`ft_tools`] | what `ftrun bench` and `ftrun advise` measure |
//! | [`ft_seismic`], [`ft_montecarlo`] | numerics of the bundled apps |
//! | [`ft_figures`] | charts, timelines and fields as SVG and PNG |

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::process::ExitCode;

mod advise;
mod app;
mod bench;
mod bundled;
mod cli;
mod collective;
mod desk;
mod ep;
mod farm;
mod footing;
mod heat;
mod hpcg;
mod inspect;
mod invocation;
mod jacobi;
mod job;
mod load;
mod npb_cg;
mod number;
mod options;
mod pi;
mod picture;
mod pipeline;
mod progress;
mod rank;
mod report;
mod ring;
mod say;
mod sbatch;
mod seismic;
mod settings;
mod shell;
mod simulator;
mod size;
mod solve;
mod text_file;
mod timeline;
mod value;
mod wavefront;
mod words;

use ft_launch::MpiTask;

use crate::cli::Asked;
use crate::invocation::{Invocation, Program};
use crate::job::{AS_AGENT, AS_GUARDIAN, AS_KEEPER, AS_RANK, KEPT};

/// What the command `ftrun` does, with the arguments of this process: launcher, keeper, agent, guardian or rank.
pub fn main() -> ExitCode {
    ft_launch::reset_signals();
    ft_comm::limits::report_failed_writes();
    let argv: Vec<OsString> = std::env::args_os().collect();
    keep_name();
    match &argv[..] {
        [_, flag, ..] if flag == AS_RANK => as_rank(argv),
        [_, flag] if flag == AS_AGENT => {
            say::complain(ft_launch::agent(AS_KEEPER, ft_checkpoint::build_number()));
            ExitCode::FAILURE
        }
        [_, flag] if flag == AS_KEEPER => match ft_launch::keep([AS_AGENT, KEPT]) {
            Ok(status) => ExitCode::from(status),
            Err(error) => {
                say::complain(error);
                ExitCode::FAILURE
            }
        },
        [_, flag, kept] if flag == AS_AGENT && kept == KEPT => as_agent(),
        [_, flag, mark] if flag == AS_GUARDIAN => {
            ft_launch::guard(&mark.to_string_lossy());
            ExitCode::SUCCESS
        }
        _ => match cli::parse(&argv) {
            // The first one says what is wrong.
            Err(_) if is_follower(&argv) => ExitCode::from(2),
            Ok(Asked::Job(invocation)) if let Some(task) = follower(&invocation) => {
                job::stand_for_task(&invocation, task, &argv[1..])
            }
            // The first task of a step starts the job of all.
            Ok(Asked::Job(_)) if tasks().is_some_and(|tasks| !tasks.is_first) => ExitCode::SUCCESS,
            Ok(Asked::Job(invocation)) => job::run(&invocation, &argv[1..]),
            Ok(Asked::Bench(bench)) => bench.run(),
            Ok(Asked::Advise(advise)) => advise.run(),
            Ok(Asked::Inspect(inspect)) => inspect.run(),
            Ok(Asked::Picture(picture)) => picture.run(),
            Ok(Asked::Sbatch { sbatch, writes_files }) => sbatch.run(writes_files),
            Ok(Asked::Desk(call)) => call.run(),
            Ok(Asked::Page(page)) => page.print(),
            Err(stop) => stop.print(),
        },
    }
}

/// Names this process `ftrun` for `ps` and `pkill` if it was started as `/proc/self/exe`, which the
/// kernel makes `exe` of.
fn keep_name() {
    if rustix::thread::name().is_ok_and(|name| name.as_bytes() == b"exe") {
        let _ = rustix::thread::set_name(c"ftrun");
    }
}

/// Which process of `mpirun` this is, if these are to be ranks and it is not the first, which starts the job of all and says what is wrong with it.
fn follower(invocation: &Invocation) -> Option<MpiTask> {
    invocation.options.mpi_task().ok()?.filter(|task| !task.is_first())
}

/// The same, of a command line that cannot be read.
fn is_follower(argv: &[OsString]) -> bool {
    let is_over_mpi = argv.windows(2).any(|pair| pair[0] == "--transport" && pair[1] == "mpi")
        || argv.iter().any(|argument| argument == "--transport=mpi");
    is_over_mpi && MpiTask::of(&|name| std::env::var(name).ok()).is_some_and(|task| !task.is_first())
}

/// Those that `srun` has started with this one.
fn tasks() -> Option<ft_launch::Tasks> {
    ft_launch::Tasks::of(&|name| std::env::var(name).ok())
}

/// Has ranks on this host for the launcher on another one.
fn as_agent() -> ExitCode {
    match ft_launch::kept_agent() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::complain(error);
            ExitCode::FAILURE
        }
    }
}

/// One rank of a job: a bundled app in this process, or another program in its place.
fn as_rank(mut argv: Vec<OsString>) -> ExitCode {
    if let Err(why) = ft_launch::die_with_launcher() {
        say::as_rank(why);
        return ExitCode::FAILURE;
    }
    argv.remove(1);
    match cli::parse(&argv) {
        Ok(Asked::Job(invocation)) => match invocation.program {
            Program::Own { path, args } => {
                let error = ft_launch::become_program(&path, &args);
                say::complain(format_args!("cannot run {}: {error}", path.display()));
                ExitCode::from(2)
            }
            Program::App(_, app) => app.rank(),
        },
        // No launcher starts one.
        Ok(_) => ExitCode::FAILURE,
        Err(stop) => stop.print(),
    }
}
