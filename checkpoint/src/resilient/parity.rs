//! A dedicated parity rank: takes part in restores and checkpoints, and knows of no section.

use ft_comm::World;

use super::job::{Job, order};
use super::{Problem, activity};
use crate::error::CheckpointError;

impl Job {
    /// Everything from the start or the last repair to the end of the job.
    pub(super) fn serve<E>(&mut self) -> Result<(), Problem<E>> {
        let mut nothing = ();
        if let Some(repair) = &self.restoring {
            self.world.activity(activity::REBUILDING);
            self.checkpointer.restore(&self.world, repair, Some(&mut nothing))?;
            self.is_repaired();
            self.resumed(0);
        }
        self.world.activity(activity::WAITING);
        let mut seen = 0;
        loop {
            let mut told = [0; 2];
            self.orders.recv(&mut told, 0, 0)?;
            let [order, steps] = told;
            strike(&self.world, seen + 1..=steps)?;
            seen = steps;
            if order == order::FINISH {
                return Ok(self.leave(Vec::new(), None)?);
            }
            self.world.activity(activity::CHECKPOINT);
            if order == order::ANEW {
                self.checkpointer.begin_anew(&self.world)?;
            }
            if order == order::LINE {
                self.checkpointer.begin_line(&self.world, &mut nothing, true)?;
                self.checkpointer.wait(&self.world)?;
            } else if self.is_waited_for() {
                self.checkpointer.checkpoint(&self.world, &mut nothing)?;
            } else {
                self.checkpointer.begin(&self.world, &mut nothing)?;
                self.checkpointer.wait(&self.world)?;
            }
            self.tell_of_checkpoint();
            self.world.activity(activity::WAITING);
        }
    }
}

/// Failures that are to strike in a step of the others strike here once that step is over.
fn strike(world: &World, mut steps: impl Iterator<Item = u64>) -> Result<(), CheckpointError> {
    Ok(steps.try_for_each(|step| world.fault_point("step", step, None))?)
}
