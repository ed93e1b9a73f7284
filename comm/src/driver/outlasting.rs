//! Operations of the program that outlast a repair, where only who was lost goes back (`ft_proto::lines::Journal`).
//!
//! A call that begins something begins it, whatever has failed: a send is in the journal, a receive waits. A call that waits is interrupted as ever, and its caller has the world repaired
//! ([`crate::core::Core`]); meanwhile the operations are there, and no message gets to them.

use super::{Driver, Memory, State};
use ft_proto::error::CommError;
use ft_proto::lines::{self, Account, Luggage, Missing};
use ft_proto::rank::{Generation, Rank};

impl Driver {
    /// Whether a failure ends no call from now on.
    pub(crate) fn set_patient(&mut self, patient: bool) {
        self.patient = patient;
    }

    /// Whether it ends none now.
    pub(super) fn is_patient(&self) -> bool {
        self.patient && self.engine.endpoint.is_in_lines()
    }

    /// Whether a call that was interrupted may wait on behind a repair.
    pub(crate) fn may_wait_on(&self) -> bool {
        self.is_patient() && matches!(self.state, State::Interrupted)
    }

    /// What a call that begins something makes of this.
    #[inline]
    pub(super) fn endure(&self, result: Result<(), CommError>) -> Result<(), CommError> {
        match result {
            Err(_) if self.may_wait_on() => Ok(()),
            result => result,
        }
    }

    /// Looks at the news before something begins.
    #[inline]
    pub(crate) fn may_begin(&mut self) -> Result<(), CommError> {
        // As nearly always, and then no error, which is long, goes through memory.
        if matches!(self.state, State::Running) && (self.rests || !self.service.has_news()) {
            return Ok(());
        }
        self.hear_before_beginning()
    }

    #[cold]
    fn hear_before_beginning(&mut self) -> Result<(), CommError> {
        let checked = self.check();
        self.endure(checked)
    }

    /// As [`Driver::settle`], behind the beginning of something.
    #[inline]
    pub(super) fn settle_begun(&mut self, memory: &Memory<'_>) -> Result<(), CommError> {
        if self.engine.findings.is_empty() {
            return Ok(()); // as nearly always
        }
        self.settle_findings_begun(memory)
    }

    #[cold]
    fn settle_findings_begun(&mut self, memory: &Memory<'_>) -> Result<(), CommError> {
        let settled = self.settle(memory);
        self.endure(settled)
    }

    /// The generation in which an operation on the communicator with this context begins now, or may have begun if it is under way still.
    #[inline]
    pub(crate) fn age(&self, context: u32) -> Generation {
        match self.engine.endpoint.has_journal() && lines::cover(context) {
            true => self.since,
            false => self.generation(),
        }
    }

    /// Calls end from now on, as all ranks are to go back.
    pub(crate) fn give_way(&mut self) {
        if let State::Running = self.state {
            self.interrupt();
        }
    }

    /// They go back now: calls work again, unless there was another failure.
    pub(crate) fn go_back(&mut self) {
        if matches!(self.state, State::Interrupted) && self.failures.news().is_empty() {
            self.state = State::Running;
        }
    }

    /// What the program had under way is gone, and operations begin anew.
    pub(crate) fn forget(&mut self) {
        self.since = self.generation();
        self.again.clear();
        self.engine.feed_nobody();
        self.lists.forget(&mut self.engine);
        self.engine.endpoint.forget();
    }

    /// This rank goes on where it is; the last line may have been committed without its having heard of it.
    pub(crate) fn stay(&mut self, is_committed: bool) {
        self.engine.endpoint.stay(is_committed);
    }

    /// What another rank has to hear of this one's messages after the repair of those that are `lost`.
    pub(crate) fn account(&mut self, of: Rank, lost: &[Rank]) -> Account {
        self.engine.endpoint.account(of, lost)
    }

    /// What a rank tells of itself; what it needs is sent when the repair is over.
    pub(crate) fn settle_account(&mut self, from: Rank, account: Account, lost: &[Rank]) {
        let again = self.engine.settle_journal(from, account, lost);
        self.again.push((from, again));
    }

    /// This rank has gone back alone; gives what the others have to hear.
    pub(crate) fn learn(&mut self) -> Result<Luggage, Missing> {
        self.engine.endpoint.learn()
    }

    /// What another rank that has gone back has learned.
    pub(crate) fn hear(&mut self, from: Rank, luggage: Luggage) {
        self.engine.endpoint.carries(from, luggage);
    }

    /// The repair is over: what was under way goes on. What is to be put into memory is put there by the call that lends it ([`Driver::wait_until`]).
    pub(crate) fn resume(&mut self) {
        if self.engine.endpoint.repairs() {
            for (to, again) in std::mem::take(&mut self.again) {
                self.engine.feed(to, again);
            }
            self.engine.endpoint.resume();
            self.lists.resume();
            self.engine.moves += 1;
        }
    }

    /// The same where nobody waits in a call.
    pub(crate) fn resume_here(&mut self) {
        self.resume();
        self.engine.act_on_rest(&mut Memory::none());
    }
}
