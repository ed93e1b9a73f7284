//! Failures while the others go on (message mode `Continue`), and communicators that are revoked.

use super::{Driver, State};
use ft_proto::error::CommError;
use ft_proto::rank::{MessageMode, Rank};
use ft_proto::wire::control::ToArbiter;

impl Driver {
    pub(crate) fn mode(&self) -> MessageMode {
        self.mode
    }

    pub(crate) fn set_mode(&mut self, mode: MessageMode) {
        self.mode = mode;
        match (mode, &self.state) {
            (MessageMode::Continue, State::Interrupted) => {
                self.state = State::Running;
                let known = self.failures.all();
                self.bury(&known);
            }
            (MessageMode::Nop, State::Running) if !self.failures.news().is_empty() => self.interrupt(),
            _ => {}
        }
    }

    /// The link to `rank` is of no use, and this is what was seen of it: its process is gone, or the link is cut. An error unless the program goes on;
    /// then what needs that rank waits for the word of the launcher, which declares somebody lost. Who is leaving needs no link.
    pub(super) fn lost(&mut self, rank: Rank, why: &str) -> Result<(), CommError> {
        if self.leaving {
            self.engine.shut(rank);
            return Ok(());
        }
        let goes_on = self.mode == MessageMode::Continue;
        match self.state {
            State::Running if goes_on => self.engine.shut(rank),
            State::Running => self.interrupt(),
            _ => return Err(self.failure()),
        }
        let generation = self.generation();
        self.submit(ToArbiter::Suspect { generation, rank, goes_on, why: why.to_owned() });
        if goes_on { Ok(()) } else { Err(self.failure()) }
    }

    /// These ranks have failed, and the others go on.
    pub(super) fn bury(&mut self, ranks: &[Rank]) {
        self.take_back();
        self.failures.add(ranks);
        let generation = self.generation();
        for &rank in ranks {
            if self.engine.endpoint.is_lost(rank) {
                continue;
            }
            self.engine.bury(rank, &self.failures.with_member(rank));
            let error = || CommError::PeerFailed { ranks: vec![rank], generation };
            self.lists.break_off(|list| list.needs(rank), error);
        }
    }

    /// A communicator was made from another one: it is revoked with that, now or later.
    pub(crate) fn derived(&mut self, context: u32, parent: u32) {
        if self.failures.derive(context, parent) {
            self.revoked(context);
        }
    }

    /// The communicator with this context was revoked, and with it all that were made from it.
    pub(crate) fn revoked(&mut self, context: u32) {
        let generation = self.generation();
        for context in self.failures.revoke(context) {
            self.engine.revoke(context);
            let error = || CommError::Revoked { generation };
            self.lists.break_off(|list| list.context & !1 == context, error);
        }
    }
}
