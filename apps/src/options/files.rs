//! Checkpoints in files: where the job writes them, and from which it goes on.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use ft_checkpoint::{DiskError, Resume, SavedSets, Scheme, Spill};

use super::{Options, SlurmJob};

/// The checkpoint from which a job goes on.
#[derive(Clone, Debug)]
pub(crate) struct Resumed {
    /// The folder of the job that it is of.
    folder: PathBuf,
    /// Ranks that computed then.
    ranks: usize,
    /// The program and its arguments, if the job has written them down and they can be read.
    command: Result<Option<String>, DiskError>,
}

impl Options {
    /// Looks for the checkpoint from which the job is to go on, if it is to; the job has as many ranks, if nothing else is asked for. One
    /// that Slurm has started again goes on from what the same `command` has written in it.
    ///
    /// # Errors
    /// There is none where there should be one.
    pub(crate) fn find_resumed(&mut self, command: &str) -> Result<(), String> {
        self.slurm = self.spill.as_ref().and_then(|_| SlurmJob::of(|name| std::env::var(name).ok()));
        let again = self.slurm.as_ref().filter(|job| job.restarts > 0);
        let own = again.zip(self.spill.as_deref()).and_then(|(job, dir)| job.written(dir, command));
        let Some(dir) = own.map(|sets| sets.folder().to_owned()).or(self.resume.clone()) else {
            return Ok(());
        };
        let found = SavedSets::find(&dir).and_then(|sets| {
            // One that is damaged is not used by the ranks, which say so.
            let ranks = sets.complete()?.into_iter().map(|number| sets.ranks(number)).reduce(Result::or);
            let ranks = ranks.unwrap_or_else(|| Err(DiskError::Nothing { path: dir.clone() }))?;
            Ok(Resumed { folder: sets.folder().to_owned(), ranks, command: sets.command() })
        });
        let found = found.map_err(|error| format!("--resume: {error}"))?;
        self.ranks = self.ranks.or(self.hosts.is_none().then_some(found.ranks));
        self.resumed = Some(found);
        Ok(())
    }

    /// Makes the path of files independent of the folder that ranks work in, here and on other hosts.
    ///
    /// # Errors
    /// It is empty.
    pub(crate) fn anchor_files(&mut self) -> Result<(), String> {
        let Some(dir) = &mut self.spill else { return Ok(()) };
        *dir = std::path::absolute(&dir).map_err(|error| format!("--spill: {error}"))?;
        Ok(())
    }

    /// Keeps other jobs from going on in the folder in which this one does, as long as what it gives is kept.
    ///
    /// # Errors
    /// Another one does already.
    pub(crate) fn lock_folder(&self) -> Result<Option<File>, String> {
        let (Some(resumed), Some(Spill { folder: Some(name), .. })) = (&self.resumed, self.spill()) else {
            return Ok(None);
        };
        if resumed.folder.file_name() != Some(name.as_ref()) {
            return Ok(None);
        }
        let folder = resumed.folder.display();
        let held = File::open(&resumed.folder).map_err(|error| format!("--resume: {folder}: {error}"))?;
        match held.try_lock() {
            Err(TryLockError::WouldBlock) => Err(format!(
                "--resume: another job goes on in {folder} already: let it end, or give this one another --spill"
            )),
            // A file system without locks cannot tell.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(held)),
        }
    }

    /// Where checkpoints are written to files.
    pub(super) fn spill(&self) -> Option<Spill> {
        let dir = self.spill.clone()?;
        let same = |resumed: &&Resumed| {
            let parent = resumed.folder.parent().map(Path::to_owned);
            std::fs::canonicalize(&dir).ok().is_some_and(|dir| Some(dir) == parent)
        };
        // A job that goes on where it was writes on where it did.
        let folder = self.resumed.as_ref().filter(same).and_then(|resumed| resumed.folder.file_name());
        let folder = folder.and_then(|name| name.to_str()).map(str::to_owned);
        Some(Spill {
            folder: folder.or_else(|| self.slurm.as_ref().map(SlurmJob::folder)),
            dir,
            every: self
                .levels
                .as_ref()
                .and_then(|levels| levels.spill)
                .or(self.spill_every)
                .unwrap_or_default(),
            keep: self.keep.unwrap_or(Spill::KEEP),
        })
    }

    /// From what the job goes on.
    pub(super) fn resume(&self) -> Option<Resume> {
        let folder = self.resumed.as_ref()?.folder.clone();
        Some(Resume { folder, accept_build: self.accept_build })
    }

    /// The folder into which `job` writes its checkpoints.
    pub(crate) fn spill_folder(&self, job: &str) -> Option<PathBuf> {
        self.spill().map(|spill| spill.dir.join(spill.folder.as_deref().unwrap_or(job)))
    }

    /// Whether the job goes on from the checkpoints of another one.
    pub(crate) fn is_resumed(&self) -> bool {
        self.resumed.is_some()
    }

    /// Refuses the checkpoint of another `command` than this, unless other arguments are accepted.
    pub(crate) fn check_command(&self, command: &str) -> Result<(), String> {
        let Some(Resumed { folder, command: Ok(Some(then)), .. }) = &self.resumed else { return Ok(()) };
        if then == command || self.accept_arguments {
            return Ok(());
        }
        Err(format!(
            "--resume: the checkpoint in {} is that of '{then}', and this is '{command}': give the same arguments, or \
             --accept-arguments if the state means the same with these",
            folder.display()
        ))
    }

    /// From which folder the job goes on, in words; or that one which was started again does not.
    pub(crate) fn resumed_from(&self) -> Option<String> {
        let from = self.resumed.as_ref().map(|resumed| match &resumed.command {
            Ok(_) => format!("goes on from {}", resumed.folder.display()),
            Err(error) => format!(
                "goes on from {}; its arguments were not compared with those of now: {error}",
                resumed.folder.display()
            ),
        });
        let Some(again) = self.slurm.as_ref().filter(|job| job.restarts > 0) else { return from };
        let anew = || "it begins anew, as no checkpoint of it in files is whole".to_owned();
        Some(again.news(&from.unwrap_or_else(anew)))
    }

    /// Whether they go with the `scheme`.
    pub(crate) fn check_spill(&self, scheme: &Scheme) -> Result<(), String> {
        match (scheme, &self.spill) {
            (Scheme::Disk { .. }, Some(_)) => {
                Err("--spill writes checkpoints in memory to files, and those of disk:DIR are files".into())
            }
            _ => Ok(()),
        }
    }
}
