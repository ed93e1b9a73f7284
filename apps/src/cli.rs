//! The command line of `ftrun`, as values.
//!
//! The options of a job stand before the program. A bundled app takes them behind its name as well, mixed with its
//! own; so for a bundled app both sides are read together as one. What follows the path of any other program belongs
//! to that program, whatever it looks like.

use std::ffi::OsString;

use ft_checkpoint::{Lines, Recovery};

use crate::advise::Advise;
use crate::bench::Bench;
use crate::bundled;
use crate::desk::Call;
use crate::inspect::Inspect;
use crate::invocation::{Invocation, Program};
use crate::options::Options;
use crate::picture::Picture;
use crate::sbatch::Sbatch;

mod commands;
mod mpirun;
mod pages;
mod program;
mod stop;
#[cfg(test)]
mod tests;
mod tips;
mod tools;

use commands::{AnyProgram, WithBench, read, read_app};
use pages::Page;
use stop::Stop;
use tips::HINT;
use tools::{
    ADVISE, BENCH, CHECKPOINT, COMPLETIONS, HELP, HOSTS, INSPECT, KILL, MANUAL, PICTURE, PS, SBATCH, STATUS,
    STOP, TOP,
};

const ADVISE_HINT: &str = "See 'ftrun advise --help'.";
const BENCH_HINT: &str = "See 'ftrun bench --help'.";
const SBATCH_HINT: &str = "See 'ftrun sbatch --help'.";

/// What a command line asks for.
#[derive(Debug)]
pub(crate) enum Asked {
    /// A job.
    Job(Box<Invocation>),
    /// Measurements, which start jobs of their own.
    Bench(Bench),
    /// What is best for a program.
    Advise(Box<Advise>),
    /// A look at files that a job has left.
    Inspect(Inspect),
    /// A picture of a file.
    Picture(Box<Picture>),
    /// Something of a job that runs.
    Desk(Call),
    /// A job script for Slurm.
    Sbatch {
        /// Which.
        sbatch: Sbatch,
        /// The job writes its checkpoints to files.
        writes_files: bool,
    },
    /// A page about this program.
    Page(Page),
}

/// Reads a command line; `argv[0]` is the name of this program.
///
/// # Errors
/// A [`Stop`] to print and to end with.
pub(crate) fn parse(given: &[OsString]) -> Result<Asked, Stop> {
    let argv = mpirun::translated(given);
    let any: AnyProgram = read(&argv)?;
    let (before, command) = argv.split_at(argv.len() - any.command.len());
    let is_separated = before.last().is_some_and(|word| word == "--");
    let (name, args) = command.split_first().expect("clap asks for a program");
    // What belongs to a program stays as it is.
    let own_args = &given[argv.len() - args.len()..];
    // The `--` of `ftrun -n 4 -- cg` has served its purpose.
    let before = before.strip_suffix(&[OsString::from("--")]).unwrap_or(before);
    match name.to_str().unwrap_or_default() {
        BENCH => bench(before, args).map(Asked::Bench),
        ADVISE => advise(before, own_args).map(|advise| Asked::Advise(Box::new(advise))),
        INSPECT => inspect(before, args).map(Asked::Inspect),
        PICTURE => picture(before, args).map(|picture| Asked::Picture(Box::new(picture))),
        word @ (PS | STATUS | TOP | KILL | CHECKPOINT | STOP | HOSTS) => {
            desk(word, before, args).map(Asked::Desk)
        }
        SBATCH => sbatch(before, own_args),
        word @ (COMPLETIONS | MANUAL) => {
            nothing_before(word, before)?;
            pages::parse(command).map(Asked::Page)
        }
        HELP => parse(&[before, args, &["--help".into()]].concat()),
        _ => {
            let mut job = job(any.options, before, command, own_args)?;
            job.misplaced = job.misplaced.filter(|_| !is_separated);
            Ok(Asked::Job(Box::new(job)))
        }
    }
}

/// Reads a job: a bundled app with the options on both sides of its name, or another program with those `before` it.
fn job(
    options: Options,
    before: &[OsString],
    command: &[OsString],
    own_args: &[OsString],
) -> Result<Invocation, Stop> {
    let (name, args) = (&command[0], &command[1..]);
    let invocation = if let Some(bundled) = bundled::find(name) {
        let (mut options, app, own) = read_app(bundled, &[before, args].concat())?;
        let least = if options.recovery == Recovery::Local { Lines::Log } else { app.crosses() };
        options.lines.get_or_insert(least);
        let command = format!("{}{own}, seed {}", bundled.name, options.seed);
        Invocation { options, program: Program::App(bundled.name, app), command, misplaced: None }
    } else {
        let path = program::own_program(name)?;
        let words = path.file_name().into_iter().chain(own_args.iter().map(OsString::as_os_str));
        let command = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let misplaced = commands::option_among(own_args, options.has_ranks());
        Invocation { options, program: Program::Own { path, args: own_args.to_vec() }, command, misplaced }
    };
    let hint = match &invocation.program {
        Program::App(app, _) => tips::help_of(&format!("ftrun {app}")),
        Program::Own { .. } => HINT.to_owned(),
    };
    invocation.options.check().map_err(|complaint| Stop::usage(&complaint, &hint))?;
    Ok(invocation)
}

/// Reads what stands before and behind the word `bench`.
fn bench(before: &[OsString], args: &[OsString]) -> Result<Bench, Stop> {
    let program = nothing_before(BENCH, before)?;
    let with: WithBench = read(std::iter::once(program).chain(args))?;
    with.bench.check().map_err(|complaint| Stop::usage(&complaint, BENCH_HINT))?;
    Ok(with.bench)
}

/// Reads what stands before and behind the word `advise`, and the job that is to be measured.
fn advise(before: &[OsString], args: &[OsString]) -> Result<Advise, Stop> {
    let mut advise: Advise = read(std::iter::once(nothing_before(ADVISE, before)?).chain(args))?;
    if tools::is_tool(&advise.program()) {
        let complaint = format!("'{}' is no program that could be measured", advise.program());
        return Err(Stop::usage(&complaint, ADVISE_HINT));
    }
    if let Asked::Job(job) = parse(&advise.job())? {
        advise.whole = job.options.lines() != Lines::Meet;
    }
    advise.check().map_err(|complaint| Stop::usage(&complaint, ADVISE_HINT))?;
    Ok(advise)
}

/// Reads what stands before and behind the word `inspect`.
fn inspect(before: &[OsString], args: &[OsString]) -> Result<Inspect, Stop> {
    read(std::iter::once(nothing_before(INSPECT, before)?).chain(args))
}

/// Reads what stands before and behind the word `picture`.
fn picture(before: &[OsString], args: &[OsString]) -> Result<Picture, Stop> {
    read(std::iter::once(nothing_before(PICTURE, before)?).chain(args))
}

/// Reads what stands before and behind a word that is about a job which runs.
fn desk(word: &str, before: &[OsString], args: &[OsString]) -> Result<Call, Stop> {
    let argv = || std::iter::once(&before[0]).chain(args);
    nothing_before(word, before)?;
    Ok(match word {
        PS => Call::Ps(read(argv())?),
        STATUS => Call::Status(read(argv())?),
        TOP => Call::Top(read(argv())?),
        KILL => Call::Kill(read(argv())?),
        CHECKPOINT => Call::Checkpoint(read(argv())?),
        HOSTS => Call::Hosts(read(argv())?),
        _ => Call::Stop(read(argv())?),
    })
}

/// Reads what stands before and behind the word `sbatch`, and the job that is to be queued.
fn sbatch(before: &[OsString], args: &[OsString]) -> Result<Asked, Stop> {
    let program = nothing_before(SBATCH, before)?;
    let end = args.iter().position(|word| word == "--").unwrap_or(args.len());
    let (options, job) = (&args[..end], args.get(end + 1..).unwrap_or_default());
    let sbatch = read::<Sbatch>(std::iter::once(program).chain(options))?.of_job(job);
    sbatch.check().map_err(|complaint| Stop::usage(&complaint, SBATCH_HINT))?;
    match parse(&[std::slice::from_ref(program), job].concat())? {
        Asked::Job(job) => {
            let writes_files = job.options.spill_folder("").is_some();
            Ok(Asked::Sbatch { sbatch, writes_files })
        }
        _ => {
            let complaint = format!("'{}' is no program that Slurm could run as a job", job[0].display());
            Err(Stop::usage(&complaint, SBATCH_HINT))
        }
    }
}

/// The name of this program, if nothing else stands before `word`.
fn nothing_before<'a>(word: &str, before: &'a [OsString]) -> Result<&'a OsString, Stop> {
    let (program, options) =
        before.split_first().expect("a command line begins with the name of the program");
    let Some(option) = options.first() else { return Ok(program) };
    let complaint = format!(
        "'{}' stands before '{word}', which is no job and takes options behind its name only",
        option.display()
    );
    Err(Stop::usage(&complaint, HINT))
}
