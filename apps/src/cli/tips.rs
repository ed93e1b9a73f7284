//! What helps somebody whose command line is wrong.

use std::ffi::{OsStr, OsString};

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::commands;
use super::tools::{ADVISE, BENCH, INSPECT, PICTURE, SBATCH};
use crate::bundled::BUNDLED;

/// Where everything stands.
pub(super) const HINT: &str = "See 'ftrun --help'.";

/// What to try in place of what `error` complains of.
pub(super) fn on(error: &clap::Error) -> String {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        // The best comes last.
        Some(ContextValue::Strings(texts)) => texts.last().map(String::as_str),
        _ => None,
    };
    if let (ErrorKind::UnknownArgument, Some(option)) = (error.kind(), text(ContextKind::InvalidArg))
        && let Some(app) = BUNDLED.iter().find(|app| has(&commands::of_app(app), option))
    {
        return format!(
            "Tip: '{option}' is an option of '{0}' and stands behind that word; see 'ftrun {0} --help'.",
            app.name
        );
    }
    let similar = [ContextKind::SuggestedArg, ContextKind::SuggestedValue, ContextKind::SuggestedSubcommand];
    let similar = similar.into_iter().find_map(text);
    let wrong = [ContextKind::InvalidArg, ContextKind::InvalidValue, ContextKind::InvalidSubcommand];
    let wrong = wrong.into_iter().find_map(text).unwrap_or_default();
    match similar.filter(|similar| is_slip(wrong, similar)) {
        Some(similar) => format!("Tip: did you mean '{similar}'? {HINT}"),
        None => HINT.to_owned(),
    }
}

/// Whether somebody may have meant `right` who has written `wrong`: they begin alike. What is alike otherwise, by the measure of
/// clap, is often as different as `--dry-run` and `--parity-ranks`.
fn is_slip(wrong: &str, right: &str) -> bool {
    let letters =
        |word: &str| word.trim_start_matches('-').to_lowercase().chars().take(2).collect::<String>();
    let (wrong, right) = (letters(wrong), letters(right));
    wrong.chars().zip(right.chars()).any(|(a, b)| a == b)
}

/// Whether a command has this option.
fn has(command: &Command, option: &str) -> bool {
    let Some(long) = option.strip_prefix("--") else { return false };
    command.get_arguments().any(|arg| arg.get_long() == Some(long))
}

/// What to write in place of the name of a program that is not there.
pub(super) fn on_program(name: &OsStr) -> String {
    let names = BUNDLED.iter().map(|app| app.name).chain([BENCH, ADVISE, INSPECT, PICTURE, SBATCH]);
    let command = Command::new("ftrun").subcommands(names.map(Command::new));
    let argv: [OsString; 2] = ["ftrun".into(), name.to_owned()];
    let error = command.try_get_matches_from(argv).err();
    error.map_or(HINT.to_owned(), |error| on(&error))
}
