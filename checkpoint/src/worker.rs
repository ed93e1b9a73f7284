//! One rank at work on a bag of tasks: [`crate::bag`] with messages, for programs that restore
//! [`crate::RestorePolicy::LostOnly`].
//!
//! The program works on [`Worker::task`], says how far it is ([`Worker::advance`]) and when it is done
//! ([`Worker::finish`]), and calls [`Worker::meet`] at the end of each step. In [`crate::Program::reconcile`] it calls
//! [`Worker::reconcile`].

use ft_comm::{CommError, Communicator, Rank};

use crate::Protect;
use crate::bag::{Bag, FACT_WORDS, Fact, TaskId};

/// Words that a rank says at a meeting: the number that it came with, and its fact.
const MEETING: usize = 1 + FACT_WORDS;

/// One rank at work on a bag of tasks. Protected as part of the state of its program.
#[derive(Clone, Debug, Default, PartialEq, Protect)]
pub struct Worker {
    /// This rank, by the number that it came with.
    me: Rank,
    #[protect(serde)]
    bag: Bag,
    #[protect(serde)]
    task: Option<TaskId>,
    progress: u64,
    /// Finished since the last meeting.
    #[protect(serde)]
    done: Vec<TaskId>,
}

impl Worker {
    /// The worker of `rank` on `tasks` tasks, the same number on all of `ranks` ranks.
    pub fn new(tasks: usize, rank: Rank, ranks: usize) -> Self {
        let bag = Bag::new(tasks, ranks);
        Self { me: rank, task: bag.task_of(rank), bag, progress: 0, done: vec![] }
    }

    /// The worker of this rank where a job goes on with another number of ranks: `own`, that of a rank of then whose place it takes, or none;
    /// collective. Whoever has none joins with a number of its own. [`Worker::reconcile`] is to follow: it gives what ranks held whose place
    /// nobody has taken back into the bag.
    ///
    /// # Errors
    /// A failure.
    pub fn take_up(own: Option<Self>, comm: &Communicator) -> Result<Self, CommError> {
        let mut takes = vec![0; comm.size()];
        comm.allgather(&[u8::from(own.is_some())], &mut takes)?;
        let root = takes.iter().position(|takes| *takes == 1).unwrap_or(0);
        let newcomers = |takes: &[u8]| takes.iter().filter(|takes| **takes == 0).count();
        let is_new = own.is_none();
        let mut worker = own.unwrap_or_default();
        worker.bag = share(&worker.bag, root, comm)?;
        if is_new {
            worker.me = worker.bag.size() + newcomers(&takes[..comm.rank()]);
        }
        worker.bag.join(newcomers(&takes));
        Ok(worker)
    }

    /// The task to work on; none: wait for the next meeting.
    pub fn task(&self) -> Option<TaskId> {
        self.task
    }

    /// Steps of the task that are done.
    pub fn progress(&self) -> u64 {
        self.progress
    }

    /// What all ranks knew at the last meeting.
    pub fn bag(&self) -> &Bag {
        &self.bag
    }

    /// Says that `steps` more steps of the task are done.
    pub fn advance(&mut self, steps: u64) {
        self.progress += steps;
    }

    /// Says that the task is done, for good. The next one may be there already.
    pub fn finish(&mut self) {
        self.done.extend(self.task);
        self.progress = 0;
        self.task = self.held();
    }

    /// What the bag gives to this rank and it has not done yet.
    fn held(&self) -> Option<TaskId> {
        let held = [self.bag.task_of(self.me), self.bag.reserve_of(self.me)];
        held.into_iter().flatten().find(|task| !self.done.contains(task))
    }

    fn fact(&self) -> Fact {
        let done = |at: usize| self.done.get(at).copied();
        Fact { done: [done(0), done(1)], progress: self.progress }
    }

    /// Tells all others what was done and hears what is next; collective. Gives whether all tasks are done. Costs an
    /// allgather of four words a rank.
    ///
    /// # Errors
    /// A failure: the worker is as before, but for [`Worker::reconcile`].
    pub fn meet(&mut self, comm: &Communicator) -> Result<bool, CommError> {
        let mut words = vec![0; MEETING * comm.size()];
        let fact = self.fact().to_words();
        comm.allgather(&[self.me as u64, fact[0], fact[1], fact[2]], &mut words)?;
        let mut facts = vec![Fact::default(); self.bag.size()];
        for said in words.chunks_exact(MEETING) {
            facts[said[0] as Rank] = read_fact(&said[1..]);
        }
        self.bag.meet(&facts);
        self.adopt();
        Ok(self.bag.is_empty())
    }

    /// Takes up what the bag says.
    fn adopt(&mut self) {
        self.done.retain(|task| !self.bag.is_done(*task));
        let held = self.held();
        if held != self.task {
            (self.task, self.progress) = (held, 0);
        }
    }

    /// Settles the differences after a restore that only the ranks `lost` had, or after a repair in which ranks closed up;
    /// collective. What ranks that are not there any more held goes back into the bag. `resumes`, the same on all
    /// ranks, says that they can go on with the task that their checkpoint had. Gives the steps that this rank has to do
    /// again.
    ///
    /// # Errors
    /// A failure: there will be another one.
    pub fn reconcile(&mut self, comm: &Communicator, lost: &[Rank], resumes: bool) -> Result<u64, CommError> {
        let mut words = vec![0; Said::WORDS * comm.size()];
        let mine = Said { number: self.me, round: self.bag.round(), task: self.task, fact: self.fact() };
        comm.allgather(&mine.to_words(), &mut words)?;
        let said: Vec<Said> = words.chunks_exact(Said::WORDS).map(Said::from_words).collect();
        // If all were restored they come from one checkpoint and differ in nothing.
        let newest = (0..comm.size())
            .filter(|rank| lost.len() == comm.size() || !lost.contains(rank))
            .max_by_key(|rank| (said[*rank].round, comm.size() - rank))
            .unwrap_or(0);
        self.bag = share(&self.bag, newest, comm)?;

        let mut facts = vec![Fact::default(); self.bag.size()];
        said.iter().for_each(|said| facts[said.number] = said.fact);
        let is_missing = |number: &Rank| said.iter().all(|said| said.number != *number);
        let missing: Vec<Rank> = self.bag.ranks().filter(is_missing).collect();
        missing.into_iter().for_each(|number| self.bag.retire(number));
        let mut steps_lost = 0;
        for Said { number, task, fact, .. } in lost.iter().map(|rank| said[*rank]) {
            let restored = task.filter(|_| resumes).map(|task| (task, fact.progress));
            let goes_on = restored.is_some() && self.bag.task_of(number) == task;
            let again = self.bag.lose(number, restored);
            facts[number] = Fact { done: [None; 2], progress: if goes_on { fact.progress } else { 0 } };
            if number == self.me {
                steps_lost = again;
                self.done.clear();
                if !goes_on {
                    (self.task, self.progress) = (None, 0);
                }
            }
        }
        self.bag.meet(&facts);
        self.adopt();
        Ok(steps_lost)
    }
}

/// What a rank says in [`Worker::reconcile`].
#[derive(Clone, Copy)]
struct Said {
    /// The rank, by the number that it came with.
    number: Rank,
    /// Of its bag.
    round: u64,
    task: Option<TaskId>,
    fact: Fact,
}

impl Said {
    const WORDS: usize = 3 + FACT_WORDS;

    fn to_words(self) -> [u64; Self::WORDS] {
        let task = self.task.map_or(0, |task| task as u64 + 1);
        let fact = self.fact.to_words();
        [self.number as u64, self.round, task, fact[0], fact[1], fact[2]]
    }

    fn from_words(words: &[u64]) -> Self {
        let task = usize::try_from(words[2]).ok().and_then(|task| task.checked_sub(1));
        Self { number: words[0] as Rank, round: words[1], task, fact: read_fact(&words[3..]) }
    }
}

/// The bag of `root`, on all ranks.
fn share(bag: &Bag, root: Rank, comm: &Communicator) -> Result<Bag, CommError> {
    let mut bytes = postcard::to_stdvec(bag).expect("a bag can be written");
    let mut length = [bytes.len() as u64];
    comm.bcast(&mut length, root)?;
    bytes.resize(length[0] as usize, 0);
    comm.bcast(&mut bytes, root)?;
    Ok(postcard::from_bytes(&bytes).expect("what a rank has written can be read"))
}

fn read_fact(words: &[u64]) -> Fact {
    Fact::from_words(words.try_into().expect("a fact has three words"))
}
