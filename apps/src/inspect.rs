//! `ftrun inspect`: what there is in the files that a job has left.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use ft_checkpoint::{DiskError, SavedRank, SavedSet, SavedSets};
use serde_json::{Value, json};

use crate::say::complain;
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
}

impl Inspect {
    /// Status 2 if there is nothing to look at.
    pub(crate) fn run(&self) -> ExitCode {
        match self.look() {
            Ok((sets, found)) => {
                print!("{}", if self.json { in_json(&sets, &found) } else { in_words(&sets, &found) });
                ExitCode::SUCCESS
            }
            Err(error) => {
                complain(error);
                ExitCode::from(2)
            }
        }
    }

    fn look(&self) -> Result<(SavedSets, Vec<SavedSet>), DiskError> {
        let sets = SavedSets::find(&self.dir)?;
        let found = sets.inspect(self.all_bytes)?;
        Ok((sets, found))
    }
}

fn in_words(sets: &SavedSets, found: &[SavedSet]) -> String {
    let mut lines = vec![sets.folder().display().to_string()];
    lines.extend(sets.command().map(|command| format!("  {command}")));
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
        })
    };
    let all = json!({
        "folder": sets.folder().display().to_string(),
        "command": sets.command(),
        "checkpoints": found.iter().map(set).collect::<Vec<Value>>(),
    });
    format!("{all}\n")
}
