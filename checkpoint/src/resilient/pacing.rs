//! When the next checkpoint is due, the same on all ranks: rank 0 counts out the steps and tells the others, with all that it has
//! learned.

use ft_comm::CommError;

use super::job::Job;
use crate::pace::{Interval, Pace};

/// Tag of the word of rank 0 on how many steps it is to the next checkpoint, and why.
const PACE: u32 = 1;

impl Job {
    /// Counts out the steps from `step` to the next checkpoint. It depends on the pace only.
    pub(super) fn count_out(&mut self, step: u64) {
        self.due = step + self.pace.next(self.protection.interval);
        self.last = (step, self.clock.now());
    }

    pub(super) fn count_time(&mut self) {
        let now = self.clock.now();
        self.pace.elapse(now.since(self.counted).as_secs_f64());
        self.counted = now;
    }

    /// Whether what is learned of steps, checkpoints and failures decides when the next checkpoint is taken.
    fn is_paced(&self) -> bool {
        !matches!(self.protection.interval, Interval::Steps(_))
    }

    /// Rank 0 tells the others what it has learned, how many steps it is to the next checkpoint, and whether a trial is over.
    pub(super) fn agree_pace(&mut self, step: u64) -> Result<(), CommError> {
        if !self.is_paced() && !self.trial.is_wanted() {
            return Ok(());
        }
        self.over = self.trial.is_over(self.pace.elapsed(), step);
        let mut word = [0; Pace::WORDS + 2];
        let (flags, pace) = word.split_at_mut(2);
        flags.copy_from_slice(&[self.due, u64::from(self.over)]);
        pace.copy_from_slice(&self.pace.to_words());
        if self.world.rank() == 0 {
            return (1..self.world.size()).try_for_each(|rank| self.orders.send(&word, rank, PACE));
        }
        self.orders.recv(&mut word, 0, PACE)?;
        let [due, over, pace @ ..] = word;
        (self.due, self.over, self.pace) = (due, over != 0, Pace::from_words(pace));
        Ok(())
    }

    /// After a repair everybody goes on with what the one knows that has been there longest: rank 0 may be a new one. All
    /// count out the same steps from it, by the same arithmetic.
    pub(super) fn recall(&mut self) -> Result<(), CommError> {
        if !self.is_paced() {
            return Ok(());
        }
        self.count_time();
        let mut all = vec![0; Pace::WORDS * self.world.size()];
        self.world.comm().allgather(&self.pace.to_words(), &mut all)?;
        let (all, _) = all.as_chunks();
        self.pace = Pace::longest(all.iter().copied().map(Pace::from_words));
        Ok(())
    }
}
