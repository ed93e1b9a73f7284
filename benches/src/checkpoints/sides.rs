//! The programs of all sides: what has to be there, and what one job took.

use std::path::Path;
use std::time::Duration;

use super::Options;
use super::job::{Job, PEER, Setup, Sizes};
use super::took::Took;
use crate::comparison::{Watch, built, folder};
use crate::mpi::{Mpi, OPENMPI};
use ft_tools::harness::{Children, HarnessError};

/// Longest time of a job.
const LIMIT: Duration = Duration::from_secs(180);
/// Steps of the solver by which its length is chosen.
const TRIAL_STEPS: u64 = 40;

/// All sides.
pub(super) struct Sides<'a> {
    children: Children<'a>,
    setup: Setup,
    /// Steps of the solver.
    steps: u64,
    /// The answer of the solver, which is the same with and without checkpoints.
    answer: Option<String>,
}

impl<'a> Sides<'a> {
    /// Finds ours and compiles theirs. From now on the calling process adopts orphans among its descendants, and after each job all
    /// its children are ended.
    pub(super) fn find(
        options: &Options,
        sizes: Sizes,
        files: &Path,
        watch: &Watch<'a>,
    ) -> Result<Self, HarnessError> {
        let children = Children::adopting(watch.is_interrupted);
        let programs = folder()?;
        for (name, from) in [
            ("ftrun", "-p ft-apps"),
            ("checkpoint_floor", "-p ft-benches"),
            ("examples/checkpoint", "-p ft-benches --examples"),
            ("examples/solver", "-p ft-benches --examples"),
        ] {
            built(&programs, name, from)?;
        }
        let sources = [(PEER, include_str!("../../peers/mpi_checkpoint.c"))];
        let compile = |prefix| Mpi::compile(prefix, OPENMPI, &sources, &[], &children);
        let mpi = options.openmpi.as_deref().map(compile).transpose()?;
        let congestion = options.comm_congestion.clone();
        let setup = Setup { programs, folder: files.to_owned(), congestion, sizes, mpi };
        Ok(Self { children, setup, steps: 0, answer: None })
    }

    fn took(&self, job: Job, steps: u64) -> Result<Took, HarnessError> {
        let ended = self.children.run(self.setup.command(job, steps), LIMIT)?;
        Took::read(job, &ended.output).map_err(|why| HarnessError::Output { command: job.to_string(), why })
    }

    /// The solver does as many steps as take the time that was asked for without checkpoints; says how many.
    pub(super) fn choose_steps(&mut self, watch: &Watch<'_>) -> Result<String, HarnessError> {
        watch.progress(0, 1, "how long a step of the solver takes");
        let took = self.took(Job::Solver { protected: false }, TRIAL_STEPS)?;
        let step_s = took.seconds / TRIAL_STEPS as f64;
        self.steps = (self.setup.sizes.solver_s / step_s.max(1e-6)).ceil() as u64;
        Ok(format!("The solver did {} steps.", self.steps))
    }

    /// Starts a job; equal work has equal answers.
    pub(super) fn measure(&mut self, job: Job) -> Result<Took, HarnessError> {
        let took = self.took(job, self.steps)?;
        let Some(answer) = &took.answer else { return Ok(took) };
        let due = self.answer.get_or_insert_with(|| answer.clone());
        if due == answer {
            return Ok(took);
        }
        let why = format!("its answer is {answer} and was {due} before");
        Err(HarnessError::Output { command: job.to_string(), why })
    }
}
