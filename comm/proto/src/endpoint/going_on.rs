//! Operations that outlast a repair, where only who was lost goes back ([`crate::lines::Journal`]): sends are in the journal, receives wait on, and what was under way comes again.
//!
//! While the repair is under way no message of the program gets to a receive: its memory is that of a call that waits. A message that had come in part keeps its place in the queue, or its receive, and
//! is *due*: when it comes again it is known by which one of its signature it is.

use super::bounced::{Claimed, State as Message};
use super::credit::Cost;
use super::peer::{About, Peer};
use super::reading::Announced;
use super::{BounceId, Endpoint, Landing, Mode, Op, OpId, Outcome, State, Task};
use crate::lines::{self, Account, Again, Journal, Lines, Luggage, Missing};
use crate::matching::{Envelope, Pattern};
use crate::planted;
use crate::rank::{Generation, Rank};
use crate::stamp::{Mark, Stamp};
use crate::wire::header::{Header, Kind};

/// Context of what has to be known before the messages behind it.
pub const CONTEXT_LUGGAGE: u32 = 8;

/// More messages come again to a rank while fewer frames than this wait for its link, and fewer long messages for its word.
const FEW_BEFORE: usize = 256;

impl<P> Endpoint<P> {
    /// Whether only who was lost goes back.
    #[inline]
    pub fn has_journal(&self) -> bool {
        self.lined.as_deref().is_some_and(|lined| lined.journal.is_some())
    }

    fn journal(&mut self) -> Option<(&mut Journal<P>, &mut Lines<P>)> {
        let lined = self.lined.as_deref_mut()?;
        Some((lined.journal.as_mut()?, &mut lined.lines))
    }

    /// Bytes of messages that the journal has.
    pub fn journal_bytes(&self) -> u64 {
        let journal = self.lined.as_deref().and_then(|lined| lined.journal.as_ref());
        journal.map_or(0, Journal::kept_bytes)
    }

    /// Whether a message with this context and stamp waits for the end of a repair. Receives of before the repair want no other either: what ranks that go back say to each other then
    /// ([`Endpoint::forget`]) may have the tags of then.
    #[inline]
    pub(super) fn waits_for_repair(&self, context: u32, stamp: Stamp) -> bool {
        self.repairs && (stamp.is_lined() || lines::cover(context) && context.is_multiple_of(2))
    }

    /// Whether a repair is under way that operations outlast.
    pub fn repairs(&self) -> bool {
        self.repairs
    }

    /// The message whose payload came from a rank is whole.
    #[inline]
    pub(super) fn is_whole(&mut self, from: Rank) {
        if let Some(lined) = &mut self.lined {
            lined.coming[from] = None;
        }
    }

    /// A message has come that is known by its envelope only.
    pub(super) fn is_announced(&mut self, from: Rank, envelope: &Envelope) {
        if let Some(lined) = &mut self.lined
            && let Some(place) = lined.coming[from].take()
        {
            lined.announced.insert((envelope.source, envelope.mark.number()), place);
        }
    }

    /// A message was read where it lay.
    pub(super) fn is_read(&mut self, envelope: &Envelope) {
        if let Some(lined) = &mut self.lined {
            lined.announced.remove(&(envelope.source, envelope.mark.number()));
        }
    }

    /// Where the message belongs that has just come, if it was under way when a rank was lost.
    #[inline]
    pub(super) fn due(&mut self, from: Rank) -> Option<BounceId> {
        let lined = self.lined.as_deref_mut()?;
        if lined.due.is_empty() {
            return None; // as nearly always
        }
        lined.due.remove(&lined.coming[from]?)
    }

    pub(super) fn due_comes(
        &mut self,
        bounce: BounceId,
        envelope: Envelope,
        make: impl FnOnce(usize) -> P,
    ) -> Result<Landing, String> {
        match self.claimed_due(bounce, envelope)? {
            Some(op) => Ok(Landing::Op(op)),
            None => {
                let state = Message::Arriving(make(envelope.length as usize), None);
                self.bounced.set(bounce, envelope, state);
                Ok(Landing::Bounce(bounce))
            }
        }
    }

    pub(super) fn due_is_announced(
        &mut self,
        from: Rank,
        bounce: BounceId,
        envelope: Envelope,
        announced: Announced,
    ) -> Result<Landing, String> {
        match self.claimed_due(bounce, envelope)? {
            Some(op) => self.want(envelope, announced, Some(op)),
            None => {
                self.bounced.set(bounce, envelope, Message::Announced(announced));
                if announced.wants_credit {
                    self.is_announced_ahead(from, bounce);
                }
            }
        }
        Ok(Landing::Nowhere)
    }

    /// The receive of a message that was due.
    fn claimed_due(&mut self, bounce: BounceId, envelope: Envelope) -> Result<Option<OpId>, String> {
        let same = self.bounced.envelope(bounce).is_some_and(|due| due.length == envelope.length);
        let differs = || format!("a message of {} bytes in the place of another one", envelope.length);
        same.then_some(()).ok_or_else(differs)?;
        Ok(self.bounced.claimed_due(bounce))
    }

    /// Whether there is room at a rank for a message of so many bytes that comes again: credit for a short one, few others that are announced for a long one, and few frames before either.
    pub fn has_room(&self, to: Rank, length: u64) -> bool {
        let peer = &self.peers[to];
        let few = if planted::has(planted::HAS_LITTLE_CREDIT) { 2 } else { FEW_BEFORE };
        peer.frames().len() < few
            && match peer.may_be_eager(Mode::Standard, length, false) {
                true => peer.credit.covers(Cost::eager(length)),
                false => peer.offered.len() < few,
            }
    }

    /// What has to be with a rank before the next message is.
    pub fn luggage(&mut self, to: Rank) -> Option<Luggage> {
        let (journal, _) = self.journal()?;
        journal.luggage(to)
    }

    /// Sends what is in `place`, before all messages that begin from now on. It costs no credit, as it takes no place at the other end.
    pub fn send_luggage(&mut self, to: Rank, length: u64, place: P) -> OpId {
        let (context, source) = (CONTEXT_LUGGAGE, self.source());
        let envelope = Envelope { context, source, tag: 0, mark: Mark::NONE, length };
        let op = self.start(State::Send(envelope, Mode::Standard, None), place);
        self.post(to, Kind::Eager, envelope, About::default(), Some(op));
        op
    }

    pub(super) fn luggage_comes(
        &mut self,
        header: &Header,
        make: impl FnOnce(usize) -> P,
    ) -> Result<Landing, String> {
        if !self.has_journal() {
            return Err("it tells of what was not determined, and nobody here keeps a journal".into());
        }
        let envelope = Envelope::from(header);
        let state = Message::Arriving(make(envelope.length as usize), None);
        Ok(Landing::Bounce(self.bounced.keep(envelope, state)))
    }

    pub(super) fn luggage_came(&mut self, from: Rank, landing: Landing) {
        let Landing::Bounce(bounce) = landing else { return };
        self.bounced.landed(bounce);
        if let Some((_, Claimed::Here(luggage))) = self.bounced.claim(bounce) {
            self.tasks.push_back(Task::Carry { from, luggage });
        }
    }

    /// What came before messages of a rank.
    pub fn carries(&mut self, from: Rank, luggage: Luggage) {
        if let Some((journal, _)) = self.journal() {
            journal.carries(from, luggage);
        }
    }

    /// A generation begins that operations outlast. Links are others; payloads were `coming` over the old ones.
    pub fn go_on(&mut self, generation: Generation, coming: &[(Rank, Landing)]) {
        self.generation = generation;
        self.repairs = true;
        let mut parts: Vec<(Envelope, Landing)> = vec![];
        for (from, landing) in coming {
            if let Some(envelope) = self.lined.as_deref().and_then(|lined| lined.came[*from].1) {
                parts.push((envelope, *landing));
            }
        }
        for peer in &mut self.peers {
            parts.extend(peer.asked.drain().map(|(_, (landing, envelope))| (envelope, landing)));
        }
        self.peers.iter_mut().for_each(|peer| *peer = Peer::default());
        self.busy.clear();
        self.tasks.clear();
        self.drop_others();
        // Credit is counted anew: what is here has none to give back.
        let free = |envelope: &mut Envelope| envelope.mark = envelope.mark.fetched();
        self.matching.envelopes_mut().for_each(free);
        self.bounced.envelopes_mut().for_each(free);
        let mut missing = vec![];
        let Some(lined) = self.lined.as_deref_mut() else { return };
        lined.is_on = false;
        // Payloads on links, and those that were asked for.
        for (envelope, landing) in parts {
            let key = (envelope.source, envelope.mark.number());
            let coming = &mut lined.coming[envelope.source as Rank];
            let place = lined.announced.remove(&key).or_else(|| coming.take());
            let Some(place) = place.filter(|_| lines::cover(envelope.context)) else { continue };
            let bounce = match landing {
                Landing::Op(op) if self.ops.contains_key(op) => {
                    let bounce = self.bounced.keep(envelope, Message::Due(None));
                    lined.claims.push((op, bounce));
                    bounce
                }
                Landing::Bounce(bounce) => {
                    lined.claims.extend(self.bounced.becomes_due(bounce).map(|op| (op, bounce)));
                    bounce
                }
                _ => continue,
            };
            lined.due.insert(place, bounce);
            missing.push(place);
        }
        // Those that were announced.
        for (bounce, envelope) in self.bounced.announced() {
            let key = (envelope.source, envelope.mark.number());
            let Some(place) = lined.announced.remove(&key) else { continue };
            self.bounced.becomes_due(bounce);
            lined.due.insert(place, bounce);
            missing.push(place);
        }
        // Those that were due before.
        lined.claims.extend(self.bounced.release_due());
        lined.coming.fill(None);
        lined.announced.clear();
        // Messages that are here are before those that come: their numbers go on.
        lined.came.iter_mut().for_each(|(_, incoming)| *incoming = None);
        if planted::has(planted::NUMBERS_ANEW) {
            lined.came.fill((0, None));
        }
        if let Some(journal) = &mut lined.journal {
            journal.lose(missing);
        }
    }

    /// Of operations and messages only those of the program outlast a repair. Its sends are over: the journal has them.
    fn drop_others(&mut self) {
        let Self { ops, over, .. } = self;
        ops.retain(|id, op| match op.state {
            State::Send(envelope, ..) => {
                op.state = State::Finished(Outcome::Done(envelope));
                over.extend(op.is_detached.then_some(id));
                lines::cover(envelope.context) || envelope.context == CONTEXT_LUGGAGE
            }
            State::Receive { context, .. } => lines::cover(context),
            State::Finished(Outcome::Done(message) | Outcome::Truncated { message, .. }) => {
                lines::cover(message.context) || message.context == CONTEXT_LUGGAGE
            }
            State::Finished(_) => true,
        });
        self.matching.withdraw(|pattern| !lines::cover(pattern.context));
        self.matching.forget_messages(|envelope| !is_of_program(envelope));
        self.bounced.retain(is_of_program);
    }

    /// An operation of a list that does not outlast a repair is gone.
    pub fn drop_operation(&mut self, op: OpId) {
        self.matching.cancel(op);
        self.ops.remove(op);
    }

    /// A rank was lost, and this one goes on: no line is under way any more, but that the last one may have been committed without this rank's having heard of it.
    pub fn stay(&mut self, is_committed: bool) {
        let Some((journal, lines)) = self.journal() else { return };
        if is_committed {
            journal.handle_commit(lines);
        }
        journal.abandon(lines);
        let stamp = lines.stamp();
        let restamp = |envelope: &mut Envelope| {
            if envelope.mark.stamp().is_lined() {
                envelope.mark = envelope.mark.stamped(stamp);
            }
        };
        self.matching.envelopes_mut().for_each(restamp);
        self.bounced.envelopes_mut().for_each(restamp);
    }

    /// What another rank has to hear from this one after the repair of those that are `lost`.
    pub fn account(&mut self, of: Rank, lost: &[Rank]) -> Account {
        self.journal().map(|(journal, _)| journal.account(of, lost)).unwrap_or_default()
    }

    /// What a rank tells of itself after a repair: gives what is to be sent to it.
    pub fn settle(
        &mut self,
        from: Rank,
        account: Account,
        lost: &[Rank],
        copy: impl Fn(&P) -> P,
    ) -> Vec<Again<P>> {
        let settle =
            |(journal, lines): (&mut Journal<P>, _)| journal.settle(lines, from, account, lost, copy);
        self.journal().map(settle).unwrap_or_default()
    }

    /// This rank has gone back, and all have said what they know of it: gives what all others have to hear.
    ///
    /// # Errors
    /// More ranks are lost than may be.
    pub fn learn(&mut self) -> Result<Luggage, Missing> {
        let Some((journal, lines)) = self.journal() else { return Ok(Luggage::default()) };
        journal.learn(lines)?;
        Ok(Luggage { determinants: journal.learned(), ..Luggage::default() })
    }

    /// The repair is over: operations go on.
    pub fn resume(&mut self) {
        if !std::mem::take(&mut self.repairs) {
            return;
        }
        let claims = self.lined.as_deref_mut().map(|lined| std::mem::take(&mut lined.claims));
        for (op, bounce) in claims.into_iter().flatten() {
            self.receive_into(op, bounce);
        }
        // What came meanwhile was not looked at.
        let posted: Vec<(OpId, Pattern)> = self.matching.posted().copied().collect();
        for (op, pattern) in posted {
            let Some(&Op { state: State::Receive { room, context }, .. }) = self.ops.get(op) else {
                continue;
            };
            if !lines::cover(context) {
                continue;
            }
            let Some(taken) = self.matching.take_within(&pattern, room as u64) else { continue };
            self.matching.cancel(op);
            match taken {
                Ok((bounce, envelope)) => {
                    self.takes(op, &envelope);
                    self.receive_into(op, bounce);
                }
                Err(message) => {
                    self.end(op, Outcome::Truncated { message, room });
                    self.chooses_no_more(op);
                }
            }
        }
    }

    /// A receive that was there takes a message that is out of the queue.
    fn receive_into(&mut self, op: OpId, bounce: BounceId) {
        if !self.ops.contains_key(op) {
            return;
        }
        match self.bounced.claim(bounce) {
            Some((envelope, Claimed::Here(from))) => {
                self.end(op, Outcome::Done(envelope));
                self.deliver(op, envelope, from);
            }
            Some((_, Claimed::Arriving(claim))) => *claim = Some(op),
            Some((envelope, Claimed::Announced(announced))) => self.want(envelope, announced, Some(op)),
            Some((envelope, Claimed::Lost)) => self.end(op, Outcome::Failed(envelope.source as Rank)),
            None => {}
        }
    }

    /// All go back: nothing of the program outlasts the repair.
    pub fn forget(&mut self) {
        if !std::mem::take(&mut self.repairs) {
            return;
        }
        self.ops.retain(|_, op| match op.state {
            State::Receive { context, .. } => !lines::cover(context),
            State::Send(message, ..)
            | State::Finished(Outcome::Done(message) | Outcome::Truncated { message, .. }) => {
                !lines::cover(message.context)
            }
            State::Finished(_) => true,
        });
        self.matching.withdraw(|pattern| lines::cover(pattern.context));
        self.matching.forget_messages(is_of_program);
        self.bounced.retain(|envelope| !is_of_program(envelope));
    }
}

/// Whether lines matter to a message that is here; what ranks say to each other between steps is of their calls then.
fn is_of_program(envelope: &Envelope) -> bool {
    lines::cover(envelope.context) && (envelope.mark.stamp().is_lined() || envelope.mark.is_kept())
}

#[cfg(test)]
mod tests {
    use super::super::Outgoing;
    use super::*;
    use crate::lines::Log;
    use crate::wire::wait::CONTEXT_COMPUTE;

    /// Ranks that go back say something to each other where their states are made, with a tag of before, and one of them is behind.
    #[test]
    fn what_is_said_where_all_go_back_is_for_no_receive_of_before() {
        const FROM: Pattern = Pattern { context: CONTEXT_COMPUTE, source: Some(0), tag: Some(7) };
        let mut end: Endpoint<u32> = Endpoint::new(1, 2, 0);
        let (journal, lines, _) = Journal::restore(1, 2, 1, Log::empty(0));
        end.begin_lines(lines, Some(journal));
        assert!(!end.outlasts_repairs(), "no step has begun");
        end.enter_lines(true);
        assert!(end.outlasts_repairs());
        let before = end.receive(FROM, 8, None, 1);
        end.go_on(1, &[]);
        let message =
            Outgoing { context: CONTEXT_COMPUTE, tag: 7, length: 8, mode: Mode::Standard, offer: None };
        let mut there: Endpoint<u32> = Endpoint::new(0, 2, 1);
        let header = Header::decode(&there.express(1, &message).unwrap()).unwrap();
        let landing = end.handle_header(0, &header, |_| 2).unwrap();
        end.handle_payload(0, &header, landing);
        assert!(!end.is_finished(before));
        end.forget();
        let behind = end.receive(FROM, 8, None, 3);
        assert!(end.is_finished(behind));
    }

    /// Messages of one sender that are late, some of which came before a repair: they are kept in their order.
    #[test]
    fn messages_of_before_a_repair_are_kept_before_those_that_came_since() {
        let message =
            |tag| Outgoing { context: CONTEXT_COMPUTE, tag, length: 8, mode: Mode::Standard, offer: None };
        let with_journal = |me, generation| {
            let mut end: Endpoint<u32> = Endpoint::new(me, 2, generation);
            let (journal, lines, _) = Journal::restore(me, 2, 1, Log::empty(0));
            end.begin_lines(lines, Some(journal));
            end.enter_lines(true);
            end
        };
        let passes = |there: &mut Endpoint<u32>, here: &mut Endpoint<u32>, tag: u32| {
            let header = Header::decode(&there.express(1, &message(tag)).unwrap()).unwrap();
            let landing = here.handle_header(0, &header, |_| tag).unwrap();
            here.handle_payload(0, &header, landing);
        };
        let mut end = with_journal(1, 0);
        let mut there = with_journal(0, 0);
        for tag in 0..3 {
            passes(&mut there, &mut end, tag);
        }
        // The first two are received, the third is not.
        for tag in 0..2 {
            let from = Pattern { context: CONTEXT_COMPUTE, source: Some(0), tag: Some(tag) };
            let taken = end.receive(from, 8, None, 0);
            assert!(end.is_finished(taken));
        }
        end.go_on(1, &[]);
        let third = Pattern { context: CONTEXT_COMPUTE, source: Some(0), tag: Some(2) };
        assert!(!end.probe(&third).unwrap().mark.has_credit(), "its sender counts anew");
        end.stay(false);
        end.enter_lines(true);
        end.resume();
        let mut there = with_journal(0, 1);
        for tag in 3..5 {
            passes(&mut there, &mut end, tag);
        }
        end.draw_line(|place, _| *place, vec![]);
        end.keep_late(|place| *place, false, |_| 0);
        end.lines_mut().unwrap().handle_drawn(5);
        let late: Vec<u32> = end.lines().unwrap().whole().unwrap().late.iter().map(|(_, tag)| *tag).collect();
        assert_eq!(late, [2, 3, 4]);
    }
}
