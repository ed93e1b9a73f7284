//! `ftrun inspect`: what there is in the files that a job has left.

mod fields;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use ft_checkpoint::{DiskError, SavedRank, SavedSet, SavedSets};
use serde_json::{Value, json};

use crate::say::{complain, page};
use crate::value::{U32_MAX, from_to, rank};
use crate::words::{bytes, count};

/// Say which checkpoints there are in files, and whether they are whole
#[derive(Debug, Parser)]
#[command(
    name = "inspect",
    display_name = "ftrun inspect",
    bin_name = "ftrun inspect",
    version,
    max_term_width = 110
)]
pub(crate) struct Inspect {
    /// What --spill or --scheme disk:DIR named, or the folder of one job in it
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Read every file, and compare its bytes with their checksum; without it only headers are read
    #[arg(long)]
    all_bytes: bool,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
    /// Look at this checkpoint alone; without it the fields are those of the newest that is whole
    #[arg(long, value_name = "NUMBER", value_parser = from_to::<u32>(0..=U32_MAX))]
    checkpoint: Option<u32>,
    /// Take the field of this name out, of all ranks
    #[arg(long, value_name = "NAME", requires = "npy", conflicts_with_all = ["json", "all_bytes"])]
    field: Option<String>,
    /// The file that takes it, as an array of NumPy
    #[arg(long, value_name = "FILE", requires = "field")]
    npy: Option<PathBuf>,
    /// Take what this rank has of the field
    #[arg(long, value_name = "RANK", requires = "field", value_parser = rank)]
    rank: Option<usize>,
}

impl Inspect {
    /// Status 2 if there is nothing to look at, or not what was asked for.
    pub(crate) fn run(&self) -> ExitCode {
        match self.look() {
            Ok(text) => page(text),
            Err(error) => {
                complain(error);
                ExitCode::from(2)
            }
        }
    }

    /// What is to be printed.
    fn look(&self) -> Result<String, String> {
        if let Some(file) = &self.npy {
            let tried = ft_tools::harness::require_writable(file);
            tried.map_err(|error| format!("--npy: cannot write {}: {error}", file.display()))?;
        }
        let sets = SavedSets::find(&self.dir).map_err(in_text)?;
        if let Err(error) = sets.command() {
            complain(error);
        }
        let mut found = sets.inspect(self.all_bytes).map_err(in_text)?;
        if let Some(number) = self.checkpoint {
            let numbers: Vec<String> = found.iter().map(|set| set.number.to_string()).collect();
            found.retain(|set| set.number == number);
            if found.is_empty() {
                let folder = sets.folder().display();
                return Err(format!("no checkpoint {number} in {folder}; there are: {}", numbers.join(", ")));
            }
        }
        match (&self.field, &self.npy) {
            (Some(name), Some(file)) => fields::take_out(&sets, &found, name, self.rank, file),
            _ if self.json => Ok(in_json(&sets, &found)),
            _ => Ok(in_words(&sets, &found)),
        }
    }
}

fn in_text(error: DiskError) -> String {
    error.to_string()
}

fn in_words(sets: &SavedSets, found: &[SavedSet]) -> String {
    let newest = found.iter().find(|set| set.is_whole()).map(|set| set.number);
    let mut lines = vec![sets.folder().display().to_string()];
    lines.extend(sets.command().ok().flatten().map(|command| format!("  {command}")));
    for set in found {
        let size: u64 = set.ranks.iter().flat_map(|rank| rank.bytes).sum();
        let whole = if set.is_whole() { "whole" } else { "not whole" };
        let steps = set.steps.map_or(String::new(), |steps| format!(", after {}", count(steps, "step")));
        let ranks = count(set.ranks.len() as u64, "rank");
        let what = if set.ranks.is_empty() { String::new() } else { format!(", {ranks}, {}", bytes(size)) };
        lines.push(format!("  checkpoint {}: {whole}{steps}{what}", set.number));
        lines.extend(set.trouble.iter().map(|trouble| format!("    {trouble}")));
        for (rank, SavedRank { trouble, .. }) in set.ranks.iter().enumerate() {
            lines.extend(trouble.iter().map(|trouble| format!("    rank {rank}: {trouble}")));
        }
        if newest == Some(set.number) {
            lines.extend(fields::in_words(sets, set.number));
        }
    }
    lines.join("\n") + "\n"
}

fn in_json(sets: &SavedSets, found: &[SavedSet]) -> String {
    let rank = |SavedRank { bytes: [constant, variable], trouble }: &SavedRank| json!({ "constant_bytes": constant, "variable_bytes": variable, "trouble": trouble });
    let set = |set: &SavedSet| {
        json!({
            "number": set.number,
            "constant": set.constant,
            "whole": set.is_whole(),
            "steps": set.steps,
            "trouble": set.trouble,
            "ranks": set.ranks.iter().map(rank).collect::<Vec<Value>>(),
            "fields": fields::in_json(sets, set),
        })
    };
    let all = json!({
        "folder": sets.folder().display().to_string(),
        "command": sets.command().ok().flatten(),
        "checkpoints": found.iter().map(set).collect::<Vec<Value>>(),
    });
    format!("{all}\n")
}
