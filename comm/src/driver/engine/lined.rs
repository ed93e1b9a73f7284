//! Messages that may cross recovery lines (`ft_proto::lines`): copies of what belongs to a line.

use ft_proto::endpoint::{Mode, OpId, Outgoing};
use ft_proto::lines::{self, Again, Crossings, Journal, Lines, Log, Luggage, Outcome, Signature};
use ft_proto::matching::Envelope;
use ft_proto::planted;
use ft_proto::rank::{Rank, Tag};

use super::{Engine, Letter};
use crate::driver::memory::{Memory, Place, Stock};

/// Determinants that are told at once.
const TOLD_AT_ONCE: usize = 4096;

/// What becomes of a message that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::driver) enum Leaving {
    /// Its receiver has it already.
    Not,
    Free,
    /// Behind a frame that was just queued.
    Behind,
}

impl Engine {
    /// A message of what is in a place begins.
    #[inline]
    pub(in crate::driver) fn leaving(
        &mut self,
        to: Rank,
        key: (u32, Tag),
        place: &Place,
        memory: &Memory<'_>,
    ) -> Leaving {
        match self.endpoint.has_lines() {
            true => self.leaving_lined(to, key, place.len(), |stock| Place::Kept(stock.copy(place, memory))),
            false => Leaving::Free,
        }
    }

    /// The same of one that has memory of its own.
    #[inline]
    pub(super) fn leaving_owned(&mut self, letter: &Letter, bytes: &[u8]) -> Leaving {
        match self.endpoint.has_lines() {
            true => {
                let key = (letter.context, letter.tag);
                self.leaving_lined(letter.to, key, bytes.len(), |_| Place::Kept(bytes.into()))
            }
            false => Leaving::Free,
        }
    }

    #[inline(never)]
    fn leaving_lined(
        &mut self,
        to: Rank,
        key: (u32, Tag),
        length: usize,
        copy: impl FnOnce(&Stock) -> Place,
    ) -> Leaving {
        self.feed_all(to);
        let Self { endpoint, stock, .. } = self;
        if !endpoint.leaves(to, key, length, || copy(stock)) {
            return Leaving::Not;
        }
        if endpoint.has_journal() && self.is_lined(key.0) && self.tell(to) {
            Leaving::Behind
        } else {
            Leaving::Free
        }
    }

    /// Tells a rank what it has to know before the messages that begin now; whether there was something.
    fn tell(&mut self, to: Rank) -> bool {
        if to == self.me || planted::has(planted::TELLS_LATE) {
            return false;
        }
        let Some(Luggage { determinants, got, safe }) = self.endpoint.luggage(to) else { return false };
        let chunks = determinants.chunks(TOLD_AT_ONCE).map(<[_]>::to_vec);
        let chunks: Vec<_> = if determinants.is_empty() { vec![vec![]] } else { chunks.collect() };
        for determinants in chunks {
            let bytes = lines::write_luggage(&Luggage { determinants, got, safe });
            let op = self.endpoint.send_luggage(to, bytes.len() as u64, Place::Kept(bytes.into()));
            self.detach(op);
        }
        true
    }

    /// What has to be known before the messages behind it has come.
    pub(super) fn carry(&mut self, from: Rank, luggage: &Place) {
        let luggage = if let Place::Kept(bytes) = luggage { lines::read_luggage(bytes) } else { None };
        match luggage {
            Some(luggage) => self.endpoint.carries(from, luggage),
            None => self.findings.broke(from, "what came over it cannot be read"),
        }
    }

    /// Sends a message of the journal.
    pub(super) fn send_again(&mut self, to: Rank, message: Again<Place>) {
        let Again { context, tag, bytes } = message;
        self.tell(to);
        let length = bytes.len() as u64;
        self.sent += length;
        let op = self.endpoint.send(
            to,
            Outgoing { context, tag, length, mode: Mode::Standard, offer: None },
            bytes,
        );
        self.detach(op);
    }

    /// What a rank tells of itself after a repair; gives what is to be sent to it.
    pub(crate) fn settle_journal(
        &mut self,
        from: Rank,
        account: lines::Account,
        lost: &[Rank],
    ) -> Vec<Again<Place>> {
        let Self { endpoint, stock, .. } = self;
        let copy = |place: &Place| Place::Kept(stock.copy(place, &Memory::none()));
        endpoint.settle(from, account, lost, copy)
    }

    /// A late message is in the place of its receive.
    pub(super) fn keep(&mut self, op: OpId, message: Envelope, memory: &Memory<'_>) {
        let Self { endpoint, stock, .. } = self;
        if let Some(place) = endpoint.place_mut(op) {
            let taken = stock.taken(place, message.length as usize, memory);
            endpoint.keep(message, Place::Kept(taken), copy_of_kept);
        }
    }

    /// A message has come into a cell; gives it as its receive is to know it.
    #[inline(never)]
    pub(super) fn has_come_beside(&mut self, envelope: Envelope, bytes: &[u8]) -> Envelope {
        let envelope = self.endpoint.beside(envelope);
        if self.endpoint.has_delivered(&envelope) {
            let bytes = &bytes[..bytes.len().min(envelope.length as usize)];
            self.endpoint.keep(envelope, Place::Kept(bytes.into()), copy_of_kept);
        }
        envelope
    }

    /// Messages may cross lines from now on, behind one that no message has crossed.
    pub(crate) fn begin_lines(&mut self, ranks: usize, tolerance: Option<usize>) {
        let _ = self.start_lines(ranks, tolerance, Log::empty(0));
    }

    /// The protocol begins at a line, with a journal if only who is lost goes back, of so many at once. Gives messages that are to be in the queue.
    fn start_lines(
        &mut self,
        ranks: usize,
        tolerance: Option<usize>,
        log: Log<Place>,
    ) -> Vec<(Envelope, Place)> {
        let (lines, journal, late) = match tolerance {
            None => {
                let (lines, late) = Lines::restore(ranks, log);
                (lines, None, late)
            }
            Some(tolerance) => {
                let (journal, lines, late) = Journal::restore(self.me, ranks, tolerance, log);
                (lines, Some(journal), late)
            }
        };
        self.endpoint.begin_lines(lines, journal);
        late
    }

    /// What comes is kept from now on ([`Engine::take_tape`]).
    pub(crate) fn record_tape(&mut self) {
        self.endpoint.record_tape();
    }

    /// The tape is over; whether all of it was received.
    pub(crate) fn end_tape(&mut self) -> bool {
        self.endpoint.end_tape()
    }

    /// What has come since the tape records, as bytes.
    pub(crate) fn take_tape(&mut self) -> Vec<u8> {
        let log = Log { late: self.endpoint.take_tape(), ..Log::empty(0) };
        let mut bytes = vec![];
        lines::write(&log, kept, &mut bytes);
        bytes
    }

    /// These messages come again, and nothing leaves.
    pub(crate) fn play_tape(&mut self, messages: Vec<(Envelope, Vec<u8>)>) {
        let messages = messages.into_iter().map(|(message, bytes)| (message, Place::Kept(bytes.into())));
        self.endpoint.play_tape(messages.collect());
    }

    /// They cross none any more.
    pub(crate) fn end_lines(&mut self) {
        self.endpoint.end_lines();
    }

    /// The program is inside what lines are drawn in, or leaves it.
    pub(crate) fn enter_lines(&mut self, inside: bool) {
        if !inside {
            self.feed_everybody();
        }
        self.endpoint.enter_lines(inside);
    }

    /// Bytes of messages that the journal has.
    pub(crate) fn journal_bytes(&self) -> u64 {
        self.endpoint.journal_bytes()
    }

    /// The line is committed.
    pub(crate) fn line_is_committed(&mut self) {
        self.endpoint.line_is_committed();
    }

    /// This rank's part in lines, if there are any.
    pub(crate) fn lines_mut(&mut self) -> Option<&mut Lines<Place>> {
        self.endpoint.lines_mut()
    }

    /// Whether this rank has received what was sent behind a line that it has not drawn.
    pub(crate) fn is_behind_line(&self) -> bool {
        self.endpoint.lines().is_some_and(Lines::is_behind)
    }

    /// Whether something is done again that has come out in one way before.
    pub(crate) fn is_replaying(&self) -> bool {
        self.endpoint.lines().is_some_and(Lines::is_replaying)
    }

    /// A line begins here to which this rank goes back. Gives the late messages, which are not in the queue yet.
    pub(crate) fn restore_line(
        &mut self,
        ranks: usize,
        tolerance: Option<usize>,
        log: Log<Vec<u8>>,
    ) -> Vec<(Envelope, Place)> {
        self.start_lines(ranks, tolerance, log.map(|bytes: Vec<u8>| Place::Kept(bytes.into())))
    }

    /// They are from now on.
    pub(crate) fn put_back(&mut self, late: Vec<(Envelope, Place)>) {
        late.into_iter().for_each(|(message, place)| self.endpoint.put_back(message, place));
    }

    /// Whether nothing is under way that a line would cut, but for so many `others`, so that it can be drawn.
    pub(crate) fn may_draw_line(&mut self, others: usize) -> bool {
        self.sweep();
        self.endpoint.may_draw_line(others)
    }

    /// The state of this rank has a record of an operation ([`ft_proto::endpoint::Endpoint::record`]).
    pub(crate) fn record(&mut self, op: OpId, context: u32, is_receive: bool) -> Option<u64> {
        self.endpoint.record(op, context, is_receive)
    }

    /// A collective begins that does not block its caller ([`ft_proto::endpoint::Endpoint::begin_collective`]).
    pub(crate) fn begin_collective(&mut self, context: u32, tag: Tag) {
        self.endpoint.begin_collective(context, tag);
    }

    /// The state of this rank has a record of it.
    pub(crate) fn record_collective(&mut self, context: u32, tag: Tag) {
        self.endpoint.record_collective(context, tag);
    }

    /// It is over, or nobody waits for it any more.
    pub(crate) fn end_collective(&mut self, context: u32, tag: Tag) {
        self.endpoint.end_collective(context, tag);
    }

    /// Whether operations can be made again that were under way at a line: the messages of then are there.
    pub(crate) fn may_receive_again(&self) -> bool {
        !self.endpoint.has_lines() || self.endpoint.is_in_lines()
    }

    /// The line is drawn; gives how many messages each rank was sent before. Exchanges that begin again behind it have received `came`, and `sent` these.
    pub(crate) fn draw_line(&mut self, came: Vec<(Envelope, Place)>, sent: Vec<Signature>) -> Vec<u64> {
        // They are of before the line.
        self.feed_everybody();
        let Self { endpoint, stock, .. } = self;
        let copy = |place: &Place, length| {
            let mut copy = stock.copy(place, &Memory::none());
            copy.truncate(length);
            Place::Kept(copy)
        };
        let counts = endpoint.draw_line(copy, came);
        if let Some(lines) = endpoint.lines_mut() {
            sent.into_iter().for_each(|signature| lines.keep_repeated(signature, 1));
        }
        counts
    }

    /// Keeps late messages that nobody has received; those that were announced are fetched if they are to be.
    pub(crate) fn keep_late(&mut self, fetches: bool) {
        let Self { endpoint, stock, .. } = self;
        endpoint.keep_late(|place| Place::Kept(stock.copy(place, &Memory::none())), fetches, Place::kept);
    }

    /// What belongs to the line, if it is whole, behind what is in `into`; what that is.
    pub(crate) fn write_line(&self, into: &mut Vec<u8>) -> Option<Crossings> {
        let log = self.endpoint.lines().and_then(Lines::whole)?;
        lines::write(log, kept, into);
        Some(log.crossings())
    }

    /// Whether the program's messages with this context may cross lines now.
    #[inline]
    pub(crate) fn is_lined(&self, context: u32) -> bool {
        self.endpoint.is_in_lines() && lines::cover(context)
    }

    /// Whether the program's messages with this context are recorded, or come out of a record.
    #[inline]
    pub(crate) fn is_taped(&self, context: u32) -> bool {
        self.endpoint.has_tape() && lines::cover(context)
    }

    /// How a question came out when it was asked for the first time, if it is to come out so again.
    pub(crate) fn replay(&mut self, context: u32) -> Option<Outcome> {
        if lines::cover(context) { self.endpoint.replay_outcome() } else { None }
    }

    /// Of several things that might have happened this one did, on a communicator with this context.
    pub(crate) fn note(&mut self, context: u32, chose: u32) {
        if lines::cover(context) {
            self.endpoint.note(chose);
        }
    }

    /// A question for a message has found this one, or none.
    pub(crate) fn found(&mut self, context: u32, message: Option<&Envelope>) {
        if lines::cover(context) {
            self.endpoint.found(message);
        }
    }
}

/// The same again.
pub(super) fn copy_of_kept(place: &Place) -> Place {
    Place::Kept(kept(place).into())
}

fn kept(place: &Place) -> &[u8] {
    match place {
        Place::Kept(bytes) => bytes,
        _ => unreachable!("copies are the driver's own"),
    }
}
