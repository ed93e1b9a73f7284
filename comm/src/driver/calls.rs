//! What calls of the program ask for: each looks at the news, has its owner do it, and settles what came of it.

use std::time::Duration;

use super::engine::{Finished, Letter, Sent};
use super::lists::{Own, StepList};
use super::looks::Looks;
use super::memory::{Buffer, Buffers};
use super::short::Walk;
use super::waiting::Hint;
use super::{ActivityId, Driver, Memory, Place};
use ft_proto::endpoint::{BounceId, OpId, Outcome};
use ft_proto::error::CommError;
use ft_proto::lines::Outcome as LineOutcome;
use ft_proto::matching::{Envelope, Pattern};
use ft_proto::rank::Rank;
use ft_proto::wire::control::{CommunicatorId, ToArbiter, Verdict, Word};

impl Driver {
    /// Looks at the news, and refuses what has not begun on a communicator that was revoked: what ends with a revocation is what has begun
    /// before it is noted, and it may be noted in this very look.
    fn check_context(&mut self, context: u32) -> Result<(), CommError> {
        self.may_begin()?;
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
        self.settle_begun(memory)?;
        Ok(op)
    }

    /// Starts a send that owns its buffer.
    #[inline]
    pub(crate) fn send_owned<B: Buffer + 'static>(
        &mut self,
        letter: Letter,
        buffer: B,
    ) -> Result<Sent<B>, CommError> {
        self.check_context(letter.context)?;
        let sent = self.engine.send_owned(letter, buffer);
        self.settle_begun(&Memory::none())?;
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
        let missing = if self.is_patient() { None } else { self.failures.missing_sender(&pattern) };
        let op = self.engine.receive(pattern, place, missing, memory);
        self.settle_begun(memory)?;
        Ok(op)
    }

    /// As [`Driver::receive`] of one that had begun before the line to which this rank has gone back.
    pub(crate) fn receive_again(
        &mut self,
        pattern: Pattern,
        number: Option<u64>,
        place: Place,
    ) -> Result<OpId, CommError> {
        self.check_context(pattern.context)?;
        let missing = if self.is_patient() { None } else { self.failures.missing_sender(&pattern) };
        let op = self.engine.receive_again(pattern, number, place, missing);
        self.settle_begun(&Memory::none())?;
        Ok(op)
    }

    /// Sends; gives what is to be waited for until the memory may be changed.
    #[inline]
    pub(crate) fn begin_send(
        &mut self,
        letter: Letter,
        place: Place,
        memory: &mut Memory<'_>,
    ) -> Result<Option<OpId>, CommError> {
        self.check_context(letter.context)?;
        let sent = self.engine.begin_send(letter, place, memory);
        self.settle_begun(memory)?;
        match sent {
            Sent::Left(..) => {
                self.has_waited();
                Ok(None)
            }
            Sent::Begun(op) => Ok(Some(op)),
        }
    }

    /// Receives a message that is short and comes soon, without an operation; else gives one that is to be waited for.
    #[inline]
    pub(crate) fn begin_receive(
        &mut self,
        pattern: Pattern,
        mut place: Place,
        memory: &mut Memory<'_>,
    ) -> Result<Result<Outcome, OpId>, CommError> {
        self.check_context(pattern.context)?;
        self.look_now_and_then(memory)?;
        let mut looks = Looks::new(&mut self.waiting, &*self.service);
        let came = self.engine.receive_within(&mut looks, (&pattern, None), &mut place, memory);
        self.lists.advance(&mut self.engine, memory); // what they wait for may have come along
        self.settle_begun(memory)?;
        match came {
            Some(envelope) => {
                self.has_waited();
                Ok(Ok(Outcome::Done(envelope)))
            }
            None => self.receive(pattern, place, memory).map(Err),
        }
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
            self.engine.drop_claimed(bounce, place.len());
            return Err(error);
        }
        let op = self.engine.receive_claimed(bounce, place, memory);
        self.settle_begun(memory)?;
        Ok(op)
    }

    /// The first message that `pattern` accepts among those that are here, as the program may know of it.
    pub(crate) fn probe(&mut self, pattern: &Pattern) -> Option<Envelope> {
        let found = self.engine.endpoint.probe(pattern);
        self.engine.found(pattern.context, found.as_ref());
        found
    }

    /// What a question for messages has found when it was asked for the first time, if it is asked again.
    pub(crate) fn replay_found(&mut self, pattern: &Pattern) -> Result<Option<Option<Pattern>>, CommError> {
        let named = |(source, tag)| Pattern { source: Some(source), tag: Some(tag), ..*pattern };
        match self.engine.replay(pattern.context) {
            None => Ok(None),
            Some(LineOutcome::Found(found)) => Ok(Some(found.map(named))),
            Some(LineOutcome::Chose(_)) => Err(CommError::Diverged),
        }
    }

    /// Waits for a message that `pattern` accepts; nothing is noted of it.
    pub(crate) fn probe_until(&mut self, pattern: &Pattern) -> Result<Envelope, CommError> {
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
    #[inline]
    pub(crate) fn wait(&mut self, op: OpId, hint: Option<Rank>, memory: &mut Memory<'_>) -> Finished {
        self.engine.act_on_rest(memory);
        // A short send is mostly finished when it begins.
        if let Some(finished) = self.engine.finish(op) {
            self.has_waited();
            return finished;
        }
        self.wait_until(memory, hint.into(), |driver| driver.engine.finish(op))?
    }

    /// Calls that find at once what they wait for look at nothing else; so every so often one looks at everything first, as others may wait for
    /// this rank.
    #[inline]
    fn look_now_and_then(&mut self, memory: &mut Memory<'_>) -> Result<(), CommError> {
        if self.waiting.is_turn_of_all() { self.look_at_all(memory) } else { Ok(()) }
    }

    #[cold]
    fn look_at_all(&mut self, memory: &mut Memory<'_>) -> Result<(), CommError> {
        let looked = self.progress(Duration::ZERO, memory).map(|_| ());
        self.endure(looked)
    }

    /// A call had nothing to wait for. What is sent next leaves at once, as behind any call that waits.
    pub(crate) fn has_waited(&mut self) {
        self.engine.links.looked();
    }

    /// Waits until something has moved since there were so many moves; for operations that own their memory.
    pub(crate) fn await_change_since(&mut self, before: u64) -> Result<(), CommError> {
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
        self.may_start(&list)?;
        let id = self.lists.start(&mut self.engine, list, own, Walk::default(), memory);
        self.settle_begun(memory)?;
        Ok(id)
    }

    /// Runs a step list in lent memory, to its end if that comes soon; else gives what is to be waited for.
    pub(crate) fn begin(
        &mut self,
        list: StepList,
        memory: &mut Memory<'_>,
    ) -> Result<Option<ActivityId>, CommError> {
        self.may_start(&list)?;
        self.look_now_and_then(memory)?;
        let mut looks = Looks::new(&mut self.waiting, &*self.service);
        let walk = list.walk(&mut self.engine, &mut looks, memory);
        self.lists.advance(&mut self.engine, memory); // what they wait for may have come along
        let walk = walk?;
        let is_over = walk.steps == list.steps.len() && walk.under_way.is_none();
        let settled = self.settle_begun(memory);
        if is_over {
            walk.give_up(&mut self.engine);
            self.has_waited();
            return settled.map(|()| None);
        }
        // On the way a rank may have been found lost, whose lists are broken off: this is none of them yet.
        if let Err(error) = settled.and_then(|()| self.may_start(&list)) {
            if let Some(op) = walk.under_way {
                self.engine.abandon(op, memory);
            }
            walk.give_up(&mut self.engine);
            return Err(error);
        }
        let id = self.lists.start(&mut self.engine, list, Own::default(), walk, memory);
        self.settle_begun(memory)?;
        Ok(Some(id))
    }

    /// Whether a step list may start: nothing that it needs has failed.
    fn may_start(&mut self, list: &StepList) -> Result<(), CommError> {
        self.check_context(list.context & !1)?;
        let generation = self.generation();
        let needs_all = list.is_collective() && !self.is_patient();
        let ranks = if needs_all { self.failures.of(&list.world) } else { vec![] };
        if ranks.is_empty() { Ok(()) } else { Err(CommError::PeerFailed { ranks, generation }) }
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
    use std::cell::{Cell, RefCell};

    use super::*;
    use crate::driver::wires::{Wires, membership, wires};
    use crate::service::Service;
    use crate::service::alarm::Alarm;
    use crate::service::alone::Alone;
    use crate::service::verdicts::Verdicts;
    use ft_proto::endpoint::Mode;
    use ft_proto::rank::MessageMode;
    use ft_proto::wire::control::News;

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

    fn send_wait(driver: &mut Driver, letter: Letter, place: Place, memory: &mut Memory<'_>) {
        if let Some(op) = driver.begin_send(letter, place, memory).unwrap() {
            driver.wait(op, Some(letter.to), memory).unwrap();
        }
    }

    fn receive_wait(driver: &mut Driver, pattern: Pattern, place: Place, memory: &mut Memory<'_>) {
        if let Err(op) = driver.begin_receive(pattern, place, memory).unwrap() {
            driver.wait(op, None, memory).unwrap();
        }
    }

    /// Who waits for each message, though not for long, has all of them leave at once.
    #[test]
    fn what_is_sent_behind_a_wait_leaves_at_once() {
        let mut driver = driver(wires(2, 1000).remove(0), 0, 2);
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

    /// Rank `me` of so many.
    fn driver(wires: Wires, me: Rank, ranks: usize) -> Driver {
        let mut driver = Driver::new(Box::new(wires), Box::new(Alone::default()), me);
        driver.change(membership(ranks, &[]));
        driver
    }

    /// Rank 1 is quick, and rank 2 opens a link meanwhile.
    #[test]
    fn who_finds_at_once_what_it_waits_for_looks_at_others_too() {
        let mut wires = wires(3, 1000);
        let net = wires[0].clone();
        let (mut quick, mut mine) = (driver(wires.remove(1), 1, 3), driver(wires.remove(0), 0, 3));
        let urgency = crate::driver::engine::Urgency::Now;
        let letter = Letter { to: 0, context: 0, tag: 7, mode: Mode::Standard, urgency };
        let place = || Place::Owned(Box::new(vec![0u8; 4]));
        for number in 0..200 {
            let pattern = Pattern { context: 0, source: Some(1), tag: Some(7) };
            send_wait(&mut quick, letter, place(), &mut Memory::none());
            receive_wait(&mut mine, pattern, place(), &mut Memory::none());
            if number == 20 {
                net.is_called_by(3);
            }
        }
        assert!(mine.engine.links.outbound(2).is_some(), "it was never looked for");
    }

    /// What a list waits for comes along with what a receive waits for.
    #[test]
    fn lists_go_on_with_what_comes_along() {
        let mut wires = wires(2, 1000);
        let (mut other, mut mine) = (driver(wires.remove(1), 1, 2), driver(wires.remove(0), 0, 2));
        let urgency = crate::driver::engine::Urgency::Now;
        let send = |driver: &mut Driver, context: u32, tag: u32| {
            let letter = Letter { to: 0, context, tag, mode: Mode::Standard, urgency };
            send_wait(driver, letter, Place::Owned(Box::new(vec![7u8; 4])), &mut Memory::none());
        };
        let receive = |driver: &mut Driver| {
            let pattern = Pattern { context: 0, source: Some(1), tag: Some(7) };
            receive_wait(driver, pattern, Place::Owned(Box::new(vec![0u8; 4])), &mut Memory::none());
        };
        send(&mut other, 0, 7);
        receive(&mut mine);
        let list = StepList {
            name: "list",
            steps: vec![ft_proto::collective::Step::recv(1, 0..4)].into(),
            world: vec![0, 1].into(),
            context: 1,
            tag: 5,
            messages: None,
            element: 1,
            apply: None,
        };
        let own = Own { buffer: Some(Box::new(vec![0u8; 4])), ..Own::default() };
        let id = mine.start(list, own, &mut Memory::none()).unwrap();
        send(&mut other, 1, 5);
        send(&mut other, 0, 7);
        receive(&mut mine);
        assert!(mine.lists.is_done(id));
    }

    /// News that comes at the second look at it.
    struct Late {
        looks: Cell<u32>,
        news: RefCell<Option<News>>,
        other: Alone,
    }

    impl Service for Late {
        fn submit(&self, _: ToArbiter) {}
        fn has_news(&self) -> bool {
            self.looks.set(self.looks.get() + 1);
            self.looks.get() > 1 && self.news.borrow().is_some()
        }
        fn take_news(&self) -> Option<News> {
            self.news.borrow_mut().take()
        }
        fn alarm(&self) -> Alarm {
            self.other.alarm()
        }
        fn verdicts(&self) -> Verdicts {
            self.other.verdicts()
        }
        fn close(&mut self) {}
    }

    /// A rank is found lost when a collective has begun, but is no list yet that its loss would break off.
    #[test]
    fn a_collective_does_not_outlive_a_loss_that_is_heard_of_on_its_way() {
        let news = News::Failed { generation: 3, ranks: vec![1] };
        let late = Late { looks: Cell::new(0), news: RefCell::new(Some(news)), other: Alone::default() };
        let mut driver = Driver::new(Box::new(wires(3, 100).remove(0)), Box::new(late), 0);
        driver.change(membership(3, &[]));
        driver.set_mode(MessageMode::Continue);
        (0..63).for_each(|_| assert!(!driver.waiting.is_turn_of_all()));
        let list = StepList {
            name: "list",
            steps: vec![ft_proto::collective::Step::recv(2, 0..4)].into(),
            world: vec![0, 1, 2].into(),
            context: 1,
            tag: 5,
            messages: None,
            element: 1,
            apply: None,
        };
        let mut bytes = [0; 4];
        let result = driver.begin(list, &mut Memory::of(&[], &mut bytes));
        assert_eq!(result.map(|_| ()), Err(CommError::PeerFailed { ranks: vec![1], generation: 3 }));
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

    /// Others say nothing while a rank does a part of its program again out of a record.
    #[test]
    fn who_waits_for_what_was_not_recorded_is_told_so() {
        const CONTEXT: u32 = 2;
        let mut driver = Driver::new(Box::new(wires(2, 100).remove(0)), Box::new(Alone::default()), 0);
        driver.change(membership(2, &[]));
        driver.engine.begin_lines(2, None);
        driver.engine.play_tape(vec![]);
        let pattern = Pattern { context: CONTEXT, source: Some(1), tag: Some(7) };
        let op = driver.receive(pattern, Place::Owned(Box::new(vec![0u8; 4])), &mut Memory::none()).unwrap();
        let waited = driver.wait(op, Some(1), &mut Memory::none());
        assert_eq!(waited.map(|_| ()), Err(CommError::Diverged));
    }
}
