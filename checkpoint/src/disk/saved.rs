//! Checkpoints that a job has left in files.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::DiskError;
use super::sets::{Identity, Set, Sets};
use crate::region::{FieldOutline, StatePart, read_outline};
use crate::store::ShardMeta;

/// The checkpoints in the folder of one job.
#[derive(Clone, Debug)]
pub struct SavedSets {
    sets: Sets,
}

/// The parts of the state of one rank: constant and variable, each with what is known of it.
pub(crate) type Shards = [(ShardMeta, Vec<u8>); 2];

impl SavedSets {
    /// Those in `dir`: the folder of a job, or a directory with such folders, of which the one with the newest complete checkpoint counts.
    /// A folder may have any name: its files say which job wrote them. Of copies of one job the
    /// farthest counts, and of equal ones the folder that still has the name of the job.
    ///
    /// # Errors
    /// There is none; something cannot be read.
    pub fn find(dir: &Path) -> Result<Self, DiskError> {
        let here = Self { sets: Sets::of(dir)? };
        if !here.complete()?.is_empty() {
            return Ok(here);
        }
        let (mut found, mut is_unfinished) = (Vec::new(), here.sets.is_begun());
        for entry in fs::read_dir(dir).map_err(DiskError::read(dir))? {
            let path = entry.map_err(DiskError::read(dir))?.path();
            // What is not a folder of a job, or is being removed, or cannot be read, is nobody's business.
            if !path.is_dir() || Sets::is_removed(&path) {
                continue;
            }
            let Ok(sets) = Sets::of(&path) else { continue };
            is_unfinished |= sets.is_begun();
            let sets = Self { sets };
            found.extend(sets.written().map(|written| (written, sets)));
        }
        found.sort_by_key(|(written, _)| std::cmp::Reverse(*written));
        // Half a copy beside a whole folder does no harm.
        let sound = |(_, sets): &(_, Self)| Some((sets.soundest()?, sets.clone()));
        let mut sound = found.iter().filter_map(sound);
        let Some(mut best) = sound.next() else {
            let first = found.into_iter().next().map(|(_, sets)| sets);
            return first.ok_or_else(|| match is_unfinished {
                true => DiskError::Unfinished { path: dir.to_owned() },
                false => DiskError::Nothing { path: dir.to_owned() },
            });
        };
        let (_, job) = best.0;
        let rank = |((number, _), sets): &((u32, Identity), Self)| (*number, sets.sets.is_named_after(job));
        for copy in sound.filter(|((_, of), _)| *of == job) {
            if rank(&copy) > rank(&best) {
                best = copy;
            }
        }
        Ok(best.1)
    }

    /// When the newest complete checkpoint was written; none if there is none, or that cannot be
    /// told.
    fn written(&self) -> Option<SystemTime> {
        let newest = *self.complete().ok()?.first()?;
        fs::metadata(self.sets.manifest_path(Set::Epoch(newest))).ok()?.modified().ok()
    }

    /// The number of the newest checkpoint of which all files are there with the right headers, and
    /// the job that wrote it.
    fn soundest(&self) -> Option<(u32, Identity)> {
        let is_sound = |number: &u32| {
            let [constant, variable] = self.manifests(*number)?;
            let metas = constant.into_iter().zip(variable).map(<[_; 2]>::from).enumerate();
            metas.into_iter().try_for_each(|(rank, metas)| self.check_headers(*number, rank, metas))
        };
        let number = self.complete().ok()?.into_iter().find(|number| is_sound(number).is_ok())?;
        Some((number, self.sets.job_of(Set::Epoch(number)).ok()?))
    }

    /// Removes the folder of a job whose result is known. Cut short, it leaves nothing that looks like a checkpoint.
    ///
    /// # Errors
    /// Something cannot be removed.
    pub fn remove(folder: &Path) -> Result<(), DiskError> {
        Sets::remove_folder(folder)
    }

    /// The folder of the job.
    pub fn folder(&self) -> &Path {
        self.sets.root()
    }

    /// The program and its arguments, in one line, if the job has written them down.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn command(&self) -> Result<Option<String>, DiskError> {
        self.sets.command()
    }

    /// Numbers of the complete checkpoints, newest first. Damage may be found in them when they are read.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn complete(&self) -> Result<Vec<u32>, DiskError> {
        self.sets.with_manifest()
    }

    /// Ranks that computed when checkpoint `number` was taken.
    ///
    /// # Errors
    /// Its manifest cannot be read, or is damaged.
    pub fn ranks(&self, number: u32) -> Result<usize, DiskError> {
        Ok(self.sets.manifest(Set::Epoch(number))?.len())
    }

    /// Numbers of all checkpoints, newest first, also of those that are not complete.
    pub(crate) fn all(&self) -> Result<Vec<u32>, DiskError> {
        let epoch = |set: Set| if let Set::Epoch(epoch) = set { Some(epoch) } else { None };
        let mut numbers: Vec<u32> = self.sets.all()?.into_iter().filter_map(epoch).collect();
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        Ok(numbers)
    }

    /// The number of the constant part that goes with checkpoint `number`.
    pub(crate) fn constant_of(&self, number: u32) -> Result<Option<u32>, DiskError> {
        self.sets.constant_of(number)
    }

    /// What the manifests of checkpoint `number` say of all ranks, constant and variable part.
    pub(crate) fn manifests(&self, number: u32) -> Result<[Vec<ShardMeta>; 2], DiskError> {
        let [constant, variable] = self.parts(number)?.map(|set| self.sets.manifest(set));
        let (constant, variable) = (constant?, variable?);
        if constant.len() != variable.len() {
            let what = format!("{} ranks, the constant part is that of {}", variable.len(), constant.len());
            return Err(DiskError::damaged(&self.sets.manifest_path(Set::Epoch(number)), what));
        }
        Ok([constant, variable])
    }

    /// Compares the headers of the files of `rank` with what the manifests say.
    pub(crate) fn check_headers(
        &self,
        number: u32,
        rank: usize,
        metas: [ShardMeta; 2],
    ) -> Result<(), DiskError> {
        let parts = self.parts(number)?;
        parts.into_iter().zip(metas).try_for_each(|(set, meta)| self.sets.check_header(set, rank, meta))
    }

    fn parts(&self, number: u32) -> Result<[Set; 2], DiskError> {
        Ok([self.set(number, StatePart::Constant)?, self.set(number, StatePart::Variable)?])
    }

    fn set(&self, number: u32, part: StatePart) -> Result<Set, DiskError> {
        match part {
            // If there is none, that of the first epoch is missed.
            StatePart::Constant => {
                let constant = Set::Constant(self.sets.constant_of(number)?.unwrap_or(1));
                match self.sets.job_of(constant)? == self.sets.job_of(Set::Epoch(number))? {
                    true => Ok(constant),
                    false => {
                        let path = self.sets.manifest_path(constant);
                        Err(DiskError::damaged(
                            &path,
                            format!("it is of another job than checkpoint {number}"),
                        ))
                    }
                }
            }
            StatePart::Variable => Ok(Set::Epoch(number)),
        }
    }

    /// The parts of the state of `rank` in checkpoint `number`, compared with the manifests.
    ///
    /// # Errors
    /// A file is missing or damaged.
    pub(crate) fn read(&self, number: u32, rank: usize) -> Result<Shards, DiskError> {
        let [constant, variable] = StatePart::BOTH.map(|part| self.read_part(number, part, rank));
        Ok([constant?, variable?])
    }

    /// As [`SavedSets::read`], one part.
    pub(crate) fn read_part(
        &self,
        number: u32,
        part: StatePart,
        rank: usize,
    ) -> Result<(ShardMeta, Vec<u8>), DiskError> {
        let set = self.set(number, part)?;
        let manifest = self.sets.manifest(set)?;
        let Some(meta) = manifest.get(rank).copied() else {
            let what = format!("{} ranks, there is a rank {rank}", manifest.len());
            return Err(DiskError::damaged(&self.sets.manifest_path(set), what));
        };
        let mut bytes = Vec::new();
        self.sets.read_shard(set, rank, meta, &mut bytes)?;
        Ok((meta, bytes))
    }

    /// The fields in one part of the state of `rank` in checkpoint `number`; none if its file does not tell them.
    ///
    /// # Errors
    /// The file is missing, or what tells the fields is damaged.
    pub(crate) fn read_fields(
        &self,
        number: u32,
        part: StatePart,
        rank: usize,
        meta: ShardMeta,
    ) -> Result<Option<Vec<FieldOutline>>, DiskError> {
        let set = self.set(number, part)?;
        // How long the outline may be follows from the length of the shard.
        self.sets.check_header(set, rank, meta)?;
        let Some(bytes) = self.sets.read_outline(set, rank)? else { return Ok(None) };
        let fields = read_outline(&bytes, meta.len);
        fields
            .map(Some)
            .map_err(|error| DiskError::damaged(&self.sets.shard_path(set, rank), error.to_string()))
    }

    /// Removes what is after checkpoint `number`: it was not complete, or is damaged.
    pub(crate) fn remove_after(&self, number: u32) -> Result<(), DiskError> {
        self.sets.remove_after(number)
    }

    /// There are so many checkpoints, and none can be used.
    pub(crate) fn none_whole(&self, sets: usize) -> DiskError {
        DiskError::NoneWhole { path: self.sets.root().to_owned(), sets }
    }

    /// Where a set is, for people.
    pub(crate) fn path(&self, number: u32) -> PathBuf {
        self.sets.folder(Set::Epoch(number))
    }
}
