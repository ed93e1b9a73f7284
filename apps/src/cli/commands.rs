//! The commands as clap knows them: `ftrun` with any program, with a bundled app, and `ftrun bench`.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::parser::ValueSource;
use clap::{Args as _, Command, Error, FromArgMatches as _, Parser, Subcommand as _, ValueHint};
use ft_comm::fault;

use super::stop::Stop;
use super::tools::{self, BENCH};
use crate::app::AnyApp;
use crate::bench::Bench;
use crate::bundled::{BUNDLED, Bundled};
use crate::options::Options;

/// `ftrun` with any program.
#[derive(Debug, Parser)]
#[command(name = "ftrun", version, max_term_width = 110)]
#[command(about = "Run a program as ranks that survive the loss of some of them")]
#[command(override_usage = "ftrun [OPTIONS] PROGRAM [ARGS...]", after_help = after_help())]
pub(super) struct AnyProgram {
    #[command(flatten)]
    pub(super) options: Options,
    /// A bundled app, or another program: a file or a name in $PATH; what follows that belongs to it
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, value_hint = ValueHint::CommandWithArguments)]
    pub(super) command: Vec<OsString>,
}

/// `ftrun bench`, of which the word `bench` has been taken out.
#[derive(Debug, Parser)]
#[command(name = BENCH, display_name = "ftrun bench", bin_name = "ftrun bench", version, max_term_width = 110)]
#[command(about = "Measure what this machine makes of it")]
#[command(disable_help_subcommand = true, arg_required_else_help = false)]
pub(super) struct WithBench {
    #[command(subcommand)]
    pub(super) bench: Bench,
}

/// `ftrun` with a bundled app, whose name has been taken out.
pub(super) fn of_app(app: &Bundled) -> Command {
    let usage = format!("ftrun [OPTIONS] {} {} [OPTIONS]", app.name, app.usage).replace("  ", " ");
    let command = Command::new(app.name).display_name(format!("ftrun {}", app.name));
    let command = command.version(env!("CARGO_PKG_VERSION")).max_term_width(110);
    let command = Options::augment_args((app.options)(command));
    signed(command.about(app.purpose).override_usage(usage))
}

/// Reads the words of a command line with a bundled app.
///
/// The app's own words come too, in the order of its help.
pub(super) fn read_app(app: &Bundled, argv: &[OsString]) -> Result<(Options, Box<dyn AnyApp>, String), Stop> {
    let stop = |error: Error| Stop::of(&error, &format!("ftrun {}", app.name));
    let matches = of_app(app).try_get_matches_from(argv).map_err(stop)?;
    let mut own = String::new();
    for arg in (app.options)(Command::new("")).get_arguments() {
        if matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine) {
            let _ = write!(own, " --{}", arg.get_long().unwrap_or(arg.get_id().as_str()));
            let values = matches.get_raw(arg.get_id().as_str()).into_iter().flatten();
            for value in values.filter(|_| arg.get_action().takes_values()) {
                let _ = write!(own, " {}", value.display());
            }
        }
    }
    let options = Options::from_arg_matches(&matches).map_err(stop)?;
    Ok((options, (app.read)(&matches).map_err(stop)?, own))
}

/// The first of the words behind a program of the user's that is an option of `ftrun`, without its
/// value. `-n` counts if there is none in front of the program (`has_ranks`).
pub(super) fn option_among(words: &[OsString], has_ranks: bool) -> Option<String> {
    let command = Options::augment_args(Command::new(""));
    let is_long = |word: &str| command.get_arguments().any(|arg| arg.get_long() == Some(word));
    let words = words.iter().map(|word| word.to_string_lossy()).take_while(|word| word != "--");
    words.filter_map(|word| Some(word.split('=').next()?.to_owned())).find(|word| {
        match word.strip_prefix("--") {
            Some(long) => is_long(long),
            None => !has_ranks && (word == "-n" || word == "-np"),
        }
    })
}

/// Reads the words of one of the other commands.
pub(super) fn read<'a, C: Parser>(argv: impl IntoIterator<Item = &'a OsString>) -> Result<C, Stop> {
    let command = signed(C::command());
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    let matches = command.try_get_matches_from(argv);
    matches.and_then(|matches| C::from_arg_matches(&matches)).map_err(|error| Stop::of(&error, &name))
}

/// The same command, which takes "-1" for a number and not for options: who writes it wants to hear what is wrong with it.
fn signed(command: Command) -> Command {
    let command = command.mut_args(|arg| match arg.is_positional() || !arg.get_action().takes_values() {
        true => arg,
        false => arg.allow_negative_numbers(true),
    });
    command.mut_subcommands(signed)
}

fn after_help() -> String {
    let mut text = String::from("Bundled apps ('ftrun APP --help' says more):\n");
    for Bundled { name, purpose, .. } in BUNDLED {
        let _ = writeln!(text, "  {name:<18}{purpose}");
    }
    let _ = writeln!(text, "\nTools ('ftrun TOOL --help' says more):");
    for bench in Bench::augment_subcommands(Command::new(BENCH)).get_subcommands() {
        let about = bench.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(text, "  {:<18}{about}", format!("{BENCH} {}", bench.get_name()));
    }
    for (word, purpose) in tools::PURPOSES {
        let _ = writeln!(text, "  {word:<18}{purpose}");
    }
    let grammar = format!("{}\n{}", fault::grammar(), fault::grammar_of_links());
    let _ = write!(text, "\nFailures to inject:\n  {}", grammar.replace('\n', "\n  "));
    text
}
