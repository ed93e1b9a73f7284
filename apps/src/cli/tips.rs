//! What helps somebody whose command line is wrong.

use std::ffi::OsStr;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::commands;
use super::tools::{BENCH, PURPOSES};
use crate::bundled::BUNDLED;

/// Where everything stands.
pub(super) const HINT: &str = "See 'ftrun --help'.";

/// Names of schemes, which a user may write in the place of a program.
const SCHEMES: [&str; 6] = ["none", "neighbor", "xor", "rs", "checksum", "disk"];

/// Where the options of a command stand: `ftrun`, `ftrun cg`.
pub(super) fn help_of(command: &str) -> String {
    format!("See '{command} --help'.")
}

/// Returns the remedy for a command line that `command` refused with `error`.
pub(super) fn on(error: &clap::Error, command: &str) -> String {
    let hint = help_of(command);
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
        Some(similar) => format!("Tip: did you mean '{similar}'? {hint}"),
        None => hint,
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
    let wrong = name.to_string_lossy();
    if let Some(scheme) = SCHEMES.iter().find(|scheme| wrong.split(':').next() == Some(scheme)) {
        return format!(
            "Tip: '{scheme}' is a scheme, which --scheme takes: 'ftrun --scheme {wrong} PROGRAM'. {HINT}"
        );
    }
    let tools = PURPOSES.iter().map(|(word, _)| *word).chain([BENCH]);
    match closest(&wrong, BUNDLED.iter().map(|app| app.name).chain(tools)) {
        Some(right) => format!("Tip: did you mean '{right}'? {HINT}"),
        None => HINT.to_owned(),
    }
}

/// Returns the word that is closest to `wrong`, by the number of letters that are wrong, missing,
/// added or swapped with their neighbor.
fn closest(wrong: &str, words: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let distances = words.map(|word| (slips(wrong, word), word));
    let (fewest, word) = distances.min_by_key(|(slips, _)| *slips)?;
    // One in a short word is enough to make another of it.
    let is_alike =
        word.len() > 2 || fewest == 0 || letters(wrong) == letters(word) || wrong.starts_with(word);
    (is_alike && fewest <= (word.len() / 3).max(1)).then_some(word)
}

/// The letters of a word in alphabetical order.
fn letters(word: &str) -> Vec<char> {
    let mut letters: Vec<char> = word.chars().collect();
    letters.sort_unstable();
    letters
}

/// How many slips make one word of another (optimal string alignment).
fn slips(wrong: &str, right: &str) -> usize {
    let (wrong, right): (Vec<char>, Vec<char>) = (wrong.chars().collect(), right.chars().collect());
    let mut rows = vec![(0..=right.len()).collect::<Vec<usize>>()];
    for i in 1..=wrong.len() {
        let mut row = vec![i];
        for j in 1..=right.len() {
            let differs = usize::from(wrong[i - 1] != right[j - 1]);
            let mut least = (rows[i - 1][j - 1] + differs).min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && wrong[i - 1] == right[j - 2] && wrong[i - 2] == right[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[wrong.len()][right.len()]
}
