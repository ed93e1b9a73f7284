//! A bag of tasks that every rank knows by heart: the ledger of a program that hands out independent work, without a
//! master that could die.
//!
//! Every rank has the same [`Bag`] and changes it by the same facts in the same order. At a *meeting* all ranks say
//! what they have done since the last one ([`Fact`]; an allgather), and each computes from that who does what next.
//! So any rank may be lost. Survivors may differ by one meeting then, as a failure strikes some in a meeting that
//! others have finished: they take the bag with the highest [`Bag::round`], and what the lost ranks held goes back.
//!
//! A rank holds the task that it is at and one to go on with, so that it need not wait for a meeting; one that has
//! nothing left is given what others hold in reserve.
//!
//! Tasks must be such that one may be done twice with the same outcome. [`crate::Worker`] brings the messages.

use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// Number of a rank.
type Rank = usize;

/// Number of a task, from 0.
pub type TaskId = usize;

/// Words of a [`Fact`] in a message.
pub const FACT_WORDS: usize = 3;

/// What one rank says at a meeting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// Tasks that are done and not yet known to be; what is known already does no harm.
    pub done: [Option<TaskId>; 2],
    /// Steps done of the task that it is at.
    pub progress: u64,
}

impl Fact {
    /// As words of a message.
    pub fn to_words(self) -> [u64; FACT_WORDS] {
        let word = |task: Option<TaskId>| task.map_or(0, |task| task as u64 + 1);
        [word(self.done[0]), word(self.done[1]), self.progress]
    }

    /// From words of a message.
    pub fn from_words(words: &[u64; FACT_WORDS]) -> Self {
        let task = |word: u64| usize::try_from(word).ok().and_then(|word| word.checked_sub(1));
        Self { done: [task(words[0]), task(words[1])], progress: words[2] }
    }
}

/// How a run of a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is still under way.
    Running,
    /// Done.
    Done,
    /// Its rank was lost, and the task went back into the bag.
    Lost,
}

/// One attempt at a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// By this rank.
    pub rank: Rank,
    /// How it ended.
    pub outcome: Outcome,
    /// Steps that its rank was known to have done when it was lost, and that had to be done again.
    pub steps_lost: u64,
    /// How often it went on in the middle, from a checkpoint.
    pub resumed: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Hand {
    current: Option<TaskId>,
    reserve: Option<TaskId>,
    progress: u64,
    /// Its rank is gone for good.
    gone: bool,
}

/// The ledger of a bag of tasks: which are done, which are under way, and who does what next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bag {
    round: u64,
    /// Per task its runs, the last of which may be done or under way.
    runs: Vec<Vec<Run>>,
    /// Per rank.
    hands: Vec<Hand>,
}

impl Bag {
    /// A bag of `tasks` tasks, of which each of `ranks` ranks has its first.
    pub fn new(tasks: usize, ranks: usize) -> Self {
        let mut bag = Self { round: 0, runs: vec![vec![]; tasks], hands: vec![Hand::default(); ranks] };
        bag.deal();
        bag
    }

    /// Counts meetings and losses: of two bags the one with the higher number is newer.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// The task that `rank` is at.
    pub fn task_of(&self, rank: Rank) -> Option<TaskId> {
        self.hands[rank].current
    }

    /// The task that `rank` is to go on with.
    pub fn reserve_of(&self, rank: Rank) -> Option<TaskId> {
        self.hands[rank].reserve
    }

    /// Whether `task` is done.
    pub fn is_done(&self, task: TaskId) -> bool {
        self.runs[task].last().is_some_and(|run| run.outcome == Outcome::Done)
    }

    /// Number of tasks that are done.
    pub fn done(&self) -> usize {
        (0..self.runs.len()).filter(|task| self.is_done(*task)).count()
    }

    /// Steps that are done of the tasks under way, as known at the last meeting.
    pub fn progress(&self) -> u64 {
        self.hands.iter().filter(|hand| hand.current.is_some()).map(|hand| hand.progress).sum()
    }

    /// Whether all tasks are done.
    pub fn is_empty(&self) -> bool {
        self.done() == self.runs.len()
    }

    /// The runs of each task, in order.
    pub fn runs(&self) -> &[Vec<Run>] {
        &self.runs
    }

    /// A meeting: `facts` of all ranks; nothing is to be said of those that are gone.
    pub fn meet(&mut self, facts: &[Fact]) {
        self.round += 1;
        for (rank, fact) in facts.iter().enumerate() {
            for task in fact.done.into_iter().flatten() {
                self.finish(rank, task);
            }
            self.hands[rank].progress = fact.progress;
        }
        self.deal();
    }

    fn finish(&mut self, rank: Rank, task: TaskId) {
        let hand = &mut self.hands[rank];
        if hand.current == Some(task) {
            hand.current = hand.reserve.take();
            if let Some(next) = hand.current {
                self.begin(rank, next);
            }
        }
        // Done is done, also by a rank that does not hold the task any more.
        if let Some(runs) =
            self.runs.get_mut(task).filter(|runs| !runs.iter().any(|r| r.outcome == Outcome::Done))
        {
            match runs.iter_mut().rev().find(|run| run.rank == rank) {
                Some(run) => run.outcome = Outcome::Done,
                None => runs.push(Run { rank, outcome: Outcome::Done, steps_lost: 0, resumed: 0 }),
            }
        }
    }

    /// The state of `rank` is lost, but for the task and its progress that a checkpoint had, if any. What it held goes
    /// back into the bag, unless it can go on with it. Gives the steps of its task that have to be done again.
    pub fn lose(&mut self, rank: Rank, restored: Option<(TaskId, u64)>) -> u64 {
        self.round += 1;
        let hand = &mut self.hands[rank];
        let known = hand.progress;
        let Some(task) = hand.current else { return 0 };
        let kept = restored.filter(|(at, _)| *at == task).map(|(_, progress)| progress);
        let lost = known.saturating_sub(kept.unwrap_or(0));
        hand.progress = kept.unwrap_or(0);
        if kept.is_none() {
            *hand = Hand::default();
        }
        if let Some(run) = self.runs[task].iter_mut().rev().find(|run| run.rank == rank) {
            run.steps_lost += lost;
            match kept {
                Some(_) => run.resumed += 1,
                None => run.outcome = Outcome::Lost,
            }
        }
        lost
    }

    /// `rank` is lost, and nobody takes its place: what it held goes back into the bag. Ranks keep the numbers that they
    /// came with.
    pub fn retire(&mut self, rank: Rank) {
        self.lose(rank, None);
        self.hands[rank] = Hand { gone: true, ..Hand::default() };
    }

    /// So many ranks more take part from now on, with the next numbers. They have nothing to do until the next [`Bag::deal`].
    pub fn join(&mut self, ranks: usize) {
        self.round += 1;
        self.hands.resize(self.hands.len() + ranks, Hand::default());
    }

    /// The ranks that are there, ascending.
    pub fn ranks(&self) -> impl Iterator<Item = Rank> {
        self.hands.iter().enumerate().filter(|(_, hand)| !hand.gone).map(|(rank, _)| rank)
    }

    /// The number of ranks that have ever been there.
    pub fn size(&self) -> usize {
        self.hands.len()
    }

    /// Gives work to those who have none, lowest numbers first; to be called after all losses are told.
    pub fn deal(&mut self) {
        for rank in 0..self.hands.len() {
            if self.hands[rank].current.is_none() && !self.hands[rank].gone {
                // With nothing left in the bag, somebody's reserve is better begun here and now.
                let given = self.open().or_else(|| {
                    let of = (0..self.hands.len()).max_by_key(|other| self.hands[*other].reserve)?;
                    self.hands[of].reserve.take()
                });
                if let Some(task) = given {
                    self.hands[rank] = Hand { current: Some(task), ..Hand::default() };
                    self.begin(rank, task);
                }
            }
        }
        for rank in 0..self.hands.len() {
            if self.hands[rank].current.is_some() && self.hands[rank].reserve.is_none() {
                self.hands[rank].reserve = self.open();
            }
        }
    }

    fn begin(&mut self, rank: Rank, task: TaskId) {
        self.runs[task].push(Run { rank, outcome: Outcome::Running, steps_lost: 0, resumed: 0 });
    }

    /// The first task that is neither done nor held.
    fn open(&self) -> Option<TaskId> {
        let held =
            |task| self.hands.iter().any(|hand| hand.current == Some(task) || hand.reserve == Some(task));
        (0..self.runs.len()).find(|task| !self.is_done(*task) && !held(*task))
    }
}
