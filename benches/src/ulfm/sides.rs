//! Both sides: a job is started, and its answer held against the one that is due.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::job::{Job, PEER, Side, Start, Task};
use super::marks::Marks;
use super::report;
use crate::comparison::{Watch, built, folder};
use crate::mpi::{Mpi, OPENMPI};
use ft_tools::harness::{Children, HarnessError, Parting};

/// Longest time of a job of no size, and what each MiB of state adds to it.
const PATIENCE_S: (f64, f64) = (30.0, 0.05);
/// What Open MPI gets to end after all ranks have said all.
pub(super) const GRACE: Duration = Duration::from_secs(3);

/// Figures by their names, in seconds.
pub(super) type Figures = Vec<(&'static str, f64)>;

/// What a start took.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Took {
    pub(super) figures: Figures,
    /// How the launcher ended after that.
    pub(super) parting: Parting,
}

/// The programs of both sides, and the answers of jobs without failures.
pub(super) struct Sides<'a> {
    children: Children<'a>,
    ftrun: PathBuf,
    mpi: Option<Mpi>,
    answers: BTreeMap<Job, String>,
}

impl<'a> Sides<'a> {
    /// Finds ours and compiles theirs. From now on the calling process adopts orphans among its descendants, and after each job all
    /// its children are ended.
    pub(super) fn find(openmpi: Option<&Path>, watch: &Watch<'a>) -> Result<Self, HarnessError> {
        let children = Children::adopting(watch.is_interrupted);
        let ftrun = built(&folder()?, "ftrun", "-p ft-apps")?;
        let sources = [(PEER, include_str!("../../peers/ulfm_recovery.c"))];
        let mpi =
            openmpi.map(|prefix| Mpi::compile(prefix, OPENMPI, &sources, &[], &children)).transpose()?;
        Ok(Self { children, ftrun, mpi, answers: BTreeMap::new() })
    }

    /// Starts a job; its failure is the one that was ordered, and its answer is right.
    pub(super) fn measure(&mut self, Start { side, job }: Start) -> Result<Took, HarnessError> {
        let wrong = |why| HarnessError::Output { command: job.to_string(), why };
        let (figures, parting) = match side {
            Side::Ours => {
                let ended = self.children.run(job.ours(&self.ftrun), patience(&job))?;
                (report::figures(&ended.output, &job), ended.parting)
            }
            Side::Ulfm => {
                let due = self.answer(&job)?;
                let (marks, parting) = self.marks(&job)?;
                (marks.figures(&job, &due), parting)
            }
        };
        Ok(Took { figures: figures.map_err(wrong)?, parting })
    }

    /// What the ranks have to have in the end: in a rebuild what they have when nobody dies, which is run once.
    fn answer(&mut self, job: &Job) -> Result<String, HarnessError> {
        match job.task {
            Task::Shrink => return Ok(format!("{:016x}", job.ranks - job.lost)),
            Task::Agree => return Ok(format!("{:016x}", 0)),
            Task::Rebuild => {}
        }
        let undisturbed = job.undisturbed();
        if let Some(answer) = self.answers.get(&undisturbed) {
            return Ok(answer.clone());
        }
        let (marks, _) = self.marks(&undisturbed)?;
        let wrong = |why| HarnessError::Output { command: undisturbed.to_string(), why };
        let answer = marks.answer(&undisturbed).map_err(wrong)?.to_owned();
        self.answers.insert(undisturbed, answer.clone());
        Ok(answer)
    }

    /// Runs a job of theirs.
    fn marks(&self, job: &Job) -> Result<(Marks, Parting), HarnessError> {
        let mpi = self.mpi.as_ref().expect("jobs of ULFM are planned where it is");
        let file = mpi.program("marks");
        let trouble = |error| HarnessError::Folder(format!("{}: {error}", file.display()));
        std::fs::write(&file, "").map_err(trouble)?;
        let read = || std::fs::read_to_string(&file);
        let is_done = || {
            let marks = read().ok().and_then(|text| text.parse::<Marks>().ok());
            marks.is_some_and(|marks| marks.are_complete(job))
        };
        let command = job.ulfm(mpi, &file);
        let words = format!("{command:?}");
        let ended = self.children.run_until(command, patience(job), &is_done, GRACE)?;
        let marks = read().map_err(trouble)?.parse();
        Ok((marks.map_err(|why| HarnessError::Output { command: words, why })?, ended.parting))
    }
}

/// A busy machine may need long for large states; whoever hangs is not waited for much longer.
fn patience(job: &Job) -> Duration {
    let (least, each) = PATIENCE_S;
    Duration::from_secs_f64(least + each * (job.ranks * job.mib) as f64)
}

#[cfg(test)]
mod tests {
    use super::super::job::tests::FRESH;
    use super::*;

    #[test]
    fn patience_grows_with_the_state() {
        let job = Job { ranks: 16, mib: 64, ..FRESH };
        assert_eq!(patience(&job), Duration::from_secs_f64(30.0 + 51.2));
    }
}
