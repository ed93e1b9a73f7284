//! The whole command line in one piece: manual pages, and what shells complete it by.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Command, CommandFactory, Parser};
use clap_complete::Shell;
use clap_mangen::Man;

use super::commands::{self, AnyProgram, WithBench, read};
use super::stop::Stop;
use super::tips::HINT;
use super::tools::{COMPLETIONS, MANUAL, purpose};
use crate::advise::Advise;
use crate::bundled::BUNDLED;
use crate::desk::{Checkpoint, HostsOf, Kill, Ps, StatusOf, StopJob, Top};
use crate::inspect::Inspect;
use crate::picture::Picture;
use crate::say;
use crate::sbatch::Sbatch;

/// A page to print.
#[derive(Debug)]
pub(crate) struct Page(Vec<u8>);

/// The arguments of `completions`.
#[derive(Debug, Parser)]
#[command(name = COMPLETIONS, bin_name = "ftrun completions", about = purpose(COMPLETIONS))]
struct Completions {
    /// The shell; bash reads the page by: source <(ftrun completions bash)
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// The arguments of `man`.
#[derive(Debug, Parser)]
#[command(name = MANUAL, bin_name = "ftrun man", about = purpose(MANUAL))]
struct Manual {
    /// An app or a tool; to read a page: ftrun man | man -l -
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

impl Completions {
    fn page(&self) -> Page {
        let mut bytes = vec![];
        clap_complete::generate(self.shell, &mut whole(), "ftrun", &mut bytes);
        Page(bytes)
    }
}

impl Manual {
    /// # Errors
    /// There is no such page.
    fn page(&self) -> Result<Page, String> {
        let command = match &self.name {
            None => AnyProgram::command(),
            Some(name) => parts()
                .find(|part| part.get_name() == name)
                .ok_or_else(|| format!("'{name}' is neither a bundled app nor a tool"))?
                .display_name(format!("ftrun-{name}")),
        };
        let mut bytes = vec![];
        Man::new(command).render(&mut bytes).map_err(|error| error.to_string())?;
        Ok(Page(bytes))
    }
}

impl Page {
    pub(crate) fn print(&self) -> ExitCode {
        say::page(&self.0)
    }
}

/// Apps and tools.
fn parts() -> impl Iterator<Item = Command> {
    let tools =
        [WithBench::command(), Advise::command(), Inspect::command(), Picture::command(), Sbatch::command()];
    let desk = [Ps::command(), StatusOf::command(), Top::command(), Kill::command()];
    let desk = desk.into_iter().chain([Checkpoint::command(), StopJob::command(), HostsOf::command()]);
    let pages = [Completions::command(), Manual::command()];
    BUNDLED.iter().map(commands::of_app).chain(tools).chain(desk).chain(pages)
}

fn whole() -> Command {
    // A subcommand is the program.
    AnyProgram::command().subcommand_negates_reqs(true).subcommands(parts())
}

/// Reads the word of a page, and what stands behind it.
pub(super) fn parse(argv: &[OsString]) -> Result<Page, Stop> {
    if argv.first().is_some_and(|word| word == COMPLETIONS) {
        return Ok(read::<Completions>(argv)?.page());
    }
    read::<Manual>(argv)?.page().map_err(|complaint| Stop::usage(&complaint, HINT))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All options and arguments of a command and of what it has below it, with the words that lead
    /// there.
    fn arguments(command: &Command, words: &str) -> Vec<(String, clap::Arg)> {
        let name = format!("{words} {}", command.get_name());
        let own = command.get_arguments().map(|arg| (format!("{name} {}", arg.get_id()), arg.clone()));
        own.chain(command.get_subcommands().flat_map(|below| arguments(below, &name))).collect()
    }

    /// Parses a value with the parser of an option.
    fn read_alone(arg: &clap::Arg, value: &str) -> Result<(), String> {
        let parser = arg.get_value_parser().clone();
        let alone = clap::Arg::new("x").long("x").value_parser(parser).allow_hyphen_values(true);
        let argv = ["ftrun".to_owned(), format!("--x={value}")];
        Command::new("ftrun")
            .arg(alone)
            .try_get_matches_from(argv)
            .map(drop)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn every_number_has_a_range_that_is_named() {
        let (mut numbers, mut all) = (0, arguments(&whole(), ""));
        all.retain(|(_, arg)| arg.get_action().takes_values());
        for (name, arg) in all {
            let reads = |value: &str| read_alone(&arg, value).is_ok();
            // Times may have units, `auto` may stand for a number, lists have their own rules.
            let is_number = ["3", "64", "1000"].into_iter().any(reads) && !reads("word");
            if !is_number {
                continue;
            }
            numbers += 1;
            for value in
                ["1e300", "18446744073709551615", "18446744073709551616", "-1", "NaN", "inf", "", "3 4"]
            {
                let is_meters = name.contains("seismic") && value == "-1";
                if name.ends_with(" seed") && value == "18446744073709551615" || is_meters {
                    continue;
                }
                let why = read_alone(&arg, value).expect_err(&format!("{name}: {value}"));
                let of_rust = ["digit found", "number too", "float literal", "cannot parse", "non-zero type"];
                assert!(!of_rust.iter().any(|part| why.contains(part)), "{name}: {why}");
            }
        }
        assert!(numbers > 60, "{numbers} numbers were found");
    }

    #[test]
    fn the_whole_is_sound() {
        whole().debug_assert();
        for part in parts() {
            let name = part.get_name().to_owned();
            let page = Manual { name: Some(name.clone()) }.page().unwrap();
            assert!(String::from_utf8(page.0).unwrap().contains(&format!(".TH ftrun-{name} 1")), "{name}");
        }
    }
}
