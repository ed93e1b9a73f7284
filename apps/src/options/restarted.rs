//! A job that Slurm has started again goes on from the files that it has written itself.
//!
//! Slurm does so when a job was preempted, has lost its first node, or was told to (`scontrol requeue`): the same script runs again from its
//! beginning, under the same number (`SLURM_JOB_ID`), and `SLURM_RESTART_COUNT` says how often that has happened. So the folder into
//! which a job of Slurm writes has that number in its name, and a job that is started again looks for such folders of the same command.

use std::fs::File;
use std::path::Path;

use ft_checkpoint::SavedSets;

/// A job of Slurm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlurmJob {
    /// Its number.
    id: u64,
    /// How often it was started again.
    pub(super) restarts: u64,
}

impl SlurmJob {
    /// That which this is part of, where `variable` gives the environment.
    pub(super) fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name: &str| variable(name)?.parse().ok();
        Some(Self { id: number("SLURM_JOB_ID")?, restarts: number("SLURM_RESTART_COUNT").unwrap_or(0) })
    }

    /// A name for a folder of files that is not there yet: a script may start several jobs of ours.
    pub(super) fn folder(&self) -> String {
        format!("slurm-{}.{}-{}", self.id, self.restarts, std::process::id())
    }

    /// Whether that is the name of a folder of this job.
    fn wrote(&self, folder: &str) -> bool {
        folder.strip_prefix(&format!("slurm-{}.", self.id)).is_some()
    }

    /// What `command` has written into `dir` in this job: of several that can be gone on from, what is farthest. Those of another that
    /// goes on already are not.
    pub(super) fn written(&self, dir: &Path, command: &str) -> Option<SavedSets> {
        let folders = std::fs::read_dir(dir).ok()?.flatten();
        let own = folders.filter(|entry| self.wrote(&entry.file_name().to_string_lossy()));
        let sets = own.filter_map(|entry| SavedSets::find(&entry.path()).ok());
        let is_ours = |sets: &SavedSets| sets.command().is_ok_and(|then| then.as_deref() == Some(command));
        let fits = |sets: &SavedSets| is_ours(sets) && is_free(sets.folder());
        let newest = |sets: &SavedSets| {
            let whole = sets.inspect(false).ok()?.into_iter().find(|set| set.is_whole());
            whole.map(|set| set.number)
        };
        let found = sets.filter(fits).filter_map(|sets| Some((newest(&sets)?, sets)));
        found.max_by_key(|(number, _)| *number).map(|(_, sets)| sets)
    }

    /// What is to be said of a job that was started again.
    pub(super) fn news(&self, then: &str) -> String {
        format!("Slurm has started job {} again: {then}", self.id)
    }
}

/// Whether nobody goes on in that folder.
fn is_free(folder: &Path) -> bool {
    File::open(folder).is_ok_and(|held| !matches!(held.try_lock(), Err(std::fs::TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_have_the_number_of_the_job() {
        let job = |id: &'static str, restarts: Option<&'static str>| {
            SlurmJob::of(
                |name| if name == "SLURM_JOB_ID" { Some(id.into()) } else { restarts.map(Into::into) },
            )
        };
        let first = job("17", None).unwrap();
        let again = job("17", Some("2")).unwrap();
        assert_eq!((first.restarts, again.restarts), (0, 2));
        assert!(again.wrote(&first.folder()) && again.wrote("slurm-17.1-4711"));
        assert!(!job("1", None).unwrap().wrote(&first.folder()) && !again.wrote("17"));
        assert_eq!(job("../x", None), None);
        assert_eq!(SlurmJob::of(|_| None), None);
    }
}
