//! What calls of the program ask for: each looks at the news, has its owner do it, and settles what came of it.

use super::engine::{Finished, Letter, Sent};
use super::lists::{Own, StepList};
use super::memory::{Buffer, Buffers};
use super::waiting::Hint;
use super::{ActivityId, Driver, Memory, Place};
use ft_proto::endpoint::{BounceId, OpId, Outcome};
use ft_proto::error::CommError;
use ft_proto::matching::{Envelope, Pattern};
use ft_proto::rank::Rank;
use ft_proto::wire::control::{CommunicatorId, ToArbiter, Verdict, Word};

impl Driver {
    /// Looks at the news, and refuses what has not begun on a communicator that was revoked: what ends with a revocation is what has begun
    /// before it is noted, and it may be noted in this very look.
    fn check_context(&mut self, context: u32) -> Result<(), CommError> {
        self.check()?;
        match self.failures.is_revoked(context) {
            true => Err(CommError::Revoked { generation: self.generation() }),
            false => Ok(()),
        }
    }

    /// Starts a send.
    pub(crate) fn send(
        &mut self,
        letter: Letter,
        place: Place,
        memory: &mut Memory<'_>,
    ) -> Result<OpId, CommError> {
        self.check_context(letter.context)?;
        let op = self.engine.send(letter, place, memory);
        self.settle(memory)?;
        Ok(op)
    }

    /// Starts a send that owns its buffer.
    pub(crate) fn send_owned<B: Buffer + 'static>(
        &mut self,
        letter: Letter,
        buffer: B,
    ) -> Result<Sent<B>, CommError> {
        self.check_context(letter.context)?;
        let sent = self.engine.send_owned(letter, buffer);
        self.settle(&Memory::none())?;
        Ok(sent)
    }

    /// Posts a receive; a message that has arrived already is taken at once.
    pub(crate) fn receive(
        &mut self,
        pattern: Pattern,
        place: Place,
        memory: &mut Memory<'_>,
    ) -> Result<OpId, CommError> {
        self.check_context(pattern.context)?;
        let op = self.engine.receive(pattern, place, self.failures.missing_sender(&pattern), memory);
        self.settle(memory)?;
        Ok(op)
    }

    /// Starts the receive of a message that was claimed on the communicator with this context; after an error it is given up.
    pub(crate) fn receive_claimed(
        &mut self,
        context: u32,
        bounce: BounceId,
        place: Place,
        memory: &mut Memory<'_>,
    ) -> Result<OpId, CommError> {
        if let Err(error) = self.check_context(context) {
            self.engine.drop_claimed(bounce);
            return Err(error);
        }
        let op = self.engine.receive_claimed(bounce, place, memory);
        self.settle(memory)?;
        Ok(op)
    }

    /// The first message that `pattern` accepts, after a look at the links.
    pub(crate) fn probe(&mut self, pattern: &Pattern) -> Result<Option<Envelope>, CommError> {
        self.look()?;
        Ok(self.engine.endpoint.probe(pattern))
    }

    /// Waits for a message that `pattern` accepts.
    pub(crate) fn probe_wait(&mut self, pattern: &Pattern) -> Result<Envelope, CommError> {
        let hint = pattern.source.map(|source| source as Rank);
        self.wait_until(&mut Memory::none(), hint.into(), |driver| {
            let engine = &driver.engine;
            let found = engine.endpoint.probe(pattern).map(Ok);
            let broken = || {
                let named = engine.endpoint.failed_source(pattern);
                let gone = named.or_else(|| driver.failures.missing_sender(pattern)).map(Outcome::Failed);
                let revoked = driver.failures.is_revoked(pattern.context).then_some(Outcome::Revoked);
                gone.or(revoked).and_then(|outcome| engine.well(outcome).err()).map(Err)
            };
            found.or_else(broken)
        })?
    }

    /// Waits until `op` is finished; gives its outcome and its memory back.
    pub(crate) fn wait(&mut self, op: OpId, hint: Option<Rank>, memory: &mut Memory<'_>) -> Finished {
        // A short send is mostly finished when it begins.
        if let Some(finished) = self.engine.finish(op) {
            self.has_waited();
            return finished;
        }
        self.wait_until(memory, hint.into(), |driver| driver.engine.finish(op))?
    }

    /// A call had nothing to wait for. What is sent next leaves at once, as behind any call that waits.
    pub(crate) fn has_waited(&mut self) {
        self.engine.links.looked();
    }

    /// Waits until something has moved; for operations that own their memory.
    pub(crate) fn await_change(&mut self) -> Result<(), CommError> {
        let before = self.engine.moves;
        let memory = &mut Memory::none();
        // Another call may have sent or received what a step list waited for.
        self.lists.advance(&mut self.engine, memory);
        self.settle(memory)?;
        self.wait_until(memory, Hint::Any, |driver| (driver.engine.moves != before).then_some(()))
    }

    /// Starts a step list. Memory that it does not own is lent by every call until [`Driver::wait_activity`] returns.
    pub(crate) fn start(
        &mut self,
        list: StepList,
        own: Own,
        memory: &mut Memory<'_>,
    ) -> Result<ActivityId, CommError> {
        self.check_context(list.context & !1)?;
        let generation = self.generation();
        let ranks = if list.is_collective() { self.failures.of(&list.world) } else { vec![] };
        if !ranks.is_empty() {
            return Err(CommError::PeerFailed { ranks, generation });
        }
        let id = self.lists.start(&mut self.engine, list, own, memory);
        self.settle(memory)?;
        Ok(id)
    }

    /// Waits until a step list is done.
    pub(crate) fn wait_activity(&mut self, id: ActivityId, memory: &mut Memory<'_>) -> Result<(), CommError> {
        self.wait_until(memory, Hint::Activity(id), |driver| driver.lists.is_done(id).then_some(()))
    }

    /// Takes a step list that is done; gives its own input and buffer back.
    pub(crate) fn finish_activity(&mut self, id: ActivityId) -> Result<Buffers, CommError> {
        self.lists.finish(&mut self.engine, id)
    }

    /// Nobody waits for a step list any more; it goes on behind the program's back.
    pub(crate) fn detach_activity(&mut self, id: ActivityId) {
        self.lists.detach(&mut self.engine, id);
    }

    /// The communicator with this context is gone (`MPI_Comm_free`).
    pub(crate) fn close_context(&mut self, context: u32) {
        self.lists.close_context(&mut self.engine, context);
        self.failures.strike_off(context);
    }

    /// An agreement of the communicator with this context is over here without the launcher's help.
    pub(crate) fn agreed_here(&mut self, of: CommunicatorId, number: u32, verdict: Verdict) {
        let message = self.service.verdicts().over(of, number, verdict);
        message.into_iter().for_each(|message| self.submit(message));
    }

    /// Gives this rank's word to the launcher and waits for the outcome. Works while calls are interrupted; what is under
    /// way on links goes on, if it can.
    pub(crate) fn agree(
        &mut self,
        of: CommunicatorId,
        number: u32,
        word: Word,
    ) -> Result<Verdict, CommError> {
        let generation = self.generation();
        self.submit(ToArbiter::Agree { generation, of, number, word });
        self.await_word(true, |driver, _| driver.told.verdict(of.context, number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::wires::{membership, wires};
    use crate::service::Service as _;
    use crate::service::alone::Alone;
    use ft_proto::endpoint::Mode;

    /// A revocation comes between the look of the communicator, which does not know of it yet, and that of the driver.
    #[test]
    fn nothing_begins_on_a_communicator_that_is_found_revoked() {
        const CONTEXT: u32 = 2;
        let revoked = || {
            let service = Alone::default();
            service.submit(ToArbiter::Revoke { generation: 3, context: CONTEXT, members: vec![0, 1] });
            let mut driver = Driver::new(Box::new(wires(2, 100).remove(0)), Box::new(service), 0);
            driver.change(membership(2, &[]));
            assert!(!driver.failures.is_revoked(CONTEXT));
            driver
        };
        let due = CommError::Revoked { generation: 3 };
        let (mut memory, bytes) = (Memory::none(), || Place::Owned(Box::new(vec![0u8; 4])));
        let (to, tag, mode, urgency) = (1, 7, Mode::Standard, crate::driver::engine::Urgency::Now);
        for context in [CONTEXT, 4] {
            let letter = Letter { to, context, tag, mode, urgency };
            let sent = revoked().send(letter, bytes(), &mut memory);
            let pattern = Pattern { context, source: Some(1), tag: None };
            let received = revoked().receive(pattern, bytes(), &mut memory);
            if context == CONTEXT {
                assert_eq!((sent.unwrap_err(), received.unwrap_err()), (due.clone(), due.clone()));
            } else {
                assert!(sent.is_ok() && received.is_ok(), "another one is not");
            }
        }
        let mut driver = revoked();
        let op = driver.receive_claimed(CONTEXT, BounceId::default(), bytes(), &mut memory);
        assert_eq!(op.unwrap_err(), due);
    }

    /// Who waits for each message, though not for long, has all of them leave at once.
    #[test]
    fn what_is_sent_behind_a_wait_leaves_at_once() {
        let mut driver = Driver::new(Box::new(wires(2, 1000).remove(0)), Box::new(Alone::default()), 0);
        driver.change(membership(2, &[]));
        let urgency = crate::driver::engine::Urgency::Soon;
        let letter = Letter { to: 1, context: 0, tag: 7, mode: Mode::Standard, urgency };
        let mut memory = Memory::none();
        for _ in 0..3 {
            let op = driver.send(letter, Place::Owned(Box::new(vec![0u8; 4])), &mut memory).unwrap();
            assert!(driver.engine.is_finished(op));
            driver.wait(op, None, &mut memory).unwrap();
        }
        for _ in 0..3 {
            let sent = driver.send_owned(letter, vec![0u8; 4]).unwrap();
            assert!(matches!(sent, Sent::Left(..)));
            driver.has_waited();
        }
    }

    /// The outcome of an agreement and the revocation behind it came while the program computed.
    #[test]
    fn news_behind_an_outcome_is_not_lost() {
        const CONTEXT: u32 = 2;
        let (of, number) = (CommunicatorId { context: CONTEXT, first: 0 }, 1);
        let word = Word::Gives { members: vec![0], flags: 5, context: 9, acknowledged: vec![] };
        let service = Alone::default();
        service.submit(ToArbiter::Agree { generation: 3, of, number, word: word.clone() });
        service.submit(ToArbiter::Revoke { generation: 3, context: CONTEXT, members: vec![0] });
        let mut driver = Driver::new(Box::new(wires(2, 100).remove(0)), Box::new(service), 0);
        driver.change(membership(2, &[]));
        assert_eq!(driver.agree(of, number, word).unwrap().agreement.flags, 5);
        driver.check().unwrap();
        assert!(driver.failures.is_revoked(CONTEXT));
    }
}
