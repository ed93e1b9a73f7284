//! What there is in the files that a job has left, for people who look.

mod fields;

pub use self::fields::{FieldError, SavedArray, SavedField, SavedPiece};
use crate::disk::{DiskError, SavedSets};
use crate::resilient::steps_of;

/// One checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedSet {
    /// Its number; later ones have larger numbers.
    pub number: u32,
    /// The number of the constant part that goes with it.
    pub constant: Option<u32>,
    /// What is wrong with it as a whole, if anything is.
    pub trouble: Option<String>,
    /// What is there of each rank; empty if it has no manifest.
    pub ranks: Vec<SavedRank>,
    /// Steps of the job that were done, if they can be read.
    pub steps: Option<u64>,
}

/// What is there of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedRank {
    /// Bytes of the constant part and of the variable part, as the manifests say.
    pub bytes: [u64; 2],
    /// What is wrong with its files, if anything is.
    pub trouble: Option<String>,
}

impl SavedSet {
    /// Whether all of it is there.
    pub fn is_whole(&self) -> bool {
        self.trouble.is_none() && self.ranks.iter().all(|rank| rank.trouble.is_none())
    }
}

impl SavedSets {
    /// All checkpoints, newest first, also those that are not complete. With `all_bytes` every file is read and compared with its
    /// checksum, else its header alone.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn inspect(&self, all_bytes: bool) -> Result<Vec<SavedSet>, DiskError> {
        let complete = self.complete()?;
        let one = |number: u32| {
            let constant = self.constant_of(number)?;
            let mut set = SavedSet { number, constant, trouble: None, ranks: vec![], steps: None };
            if !complete.contains(&number) {
                set.trouble = Some("it was not finished: there is no manifest".into());
                return Ok(set);
            }
            let [constant, variable] = match self.manifests(number) {
                Ok(manifests) => manifests,
                Err(error) => return Ok(SavedSet { trouble: Some(error.to_string()), ..set }),
            };
            for (rank, metas) in constant.into_iter().zip(variable).map(<[_; 2]>::from).enumerate() {
                let files = match all_bytes {
                    true => self.read(number, rank).map(|_| ()),
                    false => self.check_headers(number, rank, metas),
                };
                let trouble = files.err().map(|error| error.to_string());
                set.ranks.push(SavedRank { bytes: metas.map(|meta| meta.len), trouble });
            }
            set.steps =
                self.read(number, 0).ok().and_then(|[constant, variable]| steps_of(&constant.1, &variable.1));
            Ok(set)
        };
        self.all()?.into_iter().map(one).collect()
    }
}
