//! What is to be measured.

use std::ffi::OsString;
use std::path::PathBuf;

use ft_checkpoint::{GroupLayout, Scheme};

use super::failures::{FailureKind, Losses};
use super::ways::Way;
use crate::recovery::FRESH_DISK;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct AdviceExperiment {
    /// The launcher.
    pub ftrun: PathBuf,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Each job goes to the program's end, as its ranks take steps of their own: nobody could say after which of them it was measured enough.
    pub whole: bool,
    /// Ranks of each job.
    pub ranks: usize,
    /// Schemes to compare; [`FRESH_DISK`] stands for a fresh folder in the system's temporary folder.
    pub schemes: Vec<String>,
    /// Seconds of each job, about.
    pub seconds: f64,
    /// How often each scheme is measured.
    pub repeat: usize,
    /// Mean times between failures of the job to look ahead for, in seconds; rising, at least one.
    pub mtbfs_s: Vec<f64>,
    /// Losses at once that are to be survived, wherever they strike.
    pub survive: usize,
    /// Kinds of failures to combine several levels of protection for; none if that is not asked for.
    pub failures: Vec<FailureKind>,
    /// Ways to go back to compare under the scheme that is recommended; none if that is not asked for.
    pub ways: Vec<Way>,
}

impl AdviceExperiment {
    /// The program and its arguments as one line.
    pub(super) fn program(&self) -> String {
        let words: Vec<String> = self.command.iter().map(|word| word.display().to_string()).collect();
        words.join(" ")
    }
}

/// Most data blocks a stripe of the Reed-Solomon schemes that are compared if none are named.
const DATA_MAX: usize = 8;

/// The schemes that are compared if none are named: those with one or two losses a group, those that survive so many or the losses of a
/// kind of failure, and disk, as far as they fit the ranks.
pub fn schemes_for(ranks: usize, survive: usize, failures: &[FailureKind]) -> Vec<String> {
    let mut all = vec!["neighbor:1".to_owned(), "xor".to_owned()];
    let mut losses = vec![2, survive];
    losses.extend(failures.iter().filter_map(|kind| match kind.losses {
        Losses::AtOnce(count) => Some(count),
        Losses::All => None,
    }));
    losses.sort_unstable();
    losses.dedup();
    losses.retain(|parity| (2..ranks).contains(parity));
    for parity in losses {
        all.push(format!("neighbor:{parity}"));
        all.push(format!("rs:{}+{parity}", ranks.saturating_sub(parity).min(DATA_MAX)));
    }
    all.push(FRESH_DISK.to_owned());
    all.retain(|scheme| losses_survived(scheme, ranks).is_ok());
    all
}

/// How many losses at once a scheme survives wherever they strike.
///
/// # Errors
/// It cannot be read, or does not fit the ranks.
pub fn losses_survived(scheme: &str, ranks: usize) -> Result<usize, String> {
    let text = if scheme == FRESH_DISK { "disk:." } else { scheme };
    let scheme: Scheme = text.parse().map_err(|error: ft_checkpoint::SchemeError| error.to_string())?;
    let layout = GroupLayout::new(scheme.clone(), ranks, 0, None).map_err(|error| error.to_string())?;
    Ok(match scheme {
        Scheme::Disk { .. } => ranks,
        _ => layout.groups.iter().map(|group| group.tolerance()).min().unwrap_or(0),
    })
}

/// Whether checkpoints go to files, which are there to compare with.
pub(crate) fn is_disk(scheme: &str) -> bool {
    scheme.starts_with("disk")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_fit_the_ranks() {
        assert_eq!(schemes_for(1, 1, &[]), ["disk"]);
        assert_eq!(schemes_for(2, 1, &[]), ["neighbor:1", "xor", "disk"]);
        assert_eq!(schemes_for(4, 1, &[]), ["neighbor:1", "xor", "neighbor:2", "rs:2+2", "disk"]);
        let of_eight = ["neighbor:1", "xor", "neighbor:2", "rs:6+2", "neighbor:3", "rs:5+3", "disk"];
        assert_eq!(schemes_for(8, 3, &[]), of_eight);
        let kind = |losses| FailureKind { losses, mtbf_s: 60.0 };
        let kinds = [Losses::All, Losses::AtOnce(3), Losses::AtOnce(1)].map(kind);
        assert_eq!(schemes_for(8, 1, &kinds), of_eight);
    }

    #[test]
    fn losses_by_hand() {
        let all = [("none", 0), ("neighbor:2", 2), ("xor", 1), ("rs:2+2", 2), ("disk", 4), ("disk:/a", 4)];
        for (scheme, losses) in all {
            assert_eq!(losses_survived(scheme, 4), Ok(losses), "{scheme}");
        }
        assert!(losses_survived("rs:4+2", 4).is_err_and(|why| why.contains("needs 6 ranks")));
        assert!(losses_survived("raid5", 4).is_err());
    }
}
