//! Messages that may cross recovery lines (`ft_proto::lines`): copies of what belongs to a line.

use ft_proto::endpoint::OpId;
use ft_proto::lines::{self, Crossings, Lines, Log, Outcome, Swallowed};
use ft_proto::matching::Envelope;

use super::Engine;
use crate::driver::memory::{Memory, Place};

impl Engine {
    /// A late message is in the place of its receive.
    pub(super) fn keep(&mut self, op: OpId, message: Envelope, memory: &Memory<'_>) {
        let Self { endpoint, stock, .. } = self;
        if let Some(place) = endpoint.place_mut(op) {
            let taken = stock.taken(place, message.length as usize, memory);
            endpoint.keep(message, Place::Kept(taken));
        }
    }

    /// A message has come into a cell; gives it as its receive is to know it.
    #[inline(never)]
    pub(super) fn has_come_beside(&mut self, envelope: Envelope, bytes: &[u8]) -> Envelope {
        let envelope = self.endpoint.beside(envelope);
        if self.endpoint.has_delivered(&envelope) {
            let bytes = &bytes[..bytes.len().min(envelope.length as usize)];
            self.endpoint.keep(envelope, Place::Kept(bytes.to_vec()));
        }
        envelope
    }

    /// Messages may cross lines from now on, behind one that no message has crossed.
    pub(crate) fn begin_lines(&mut self, ranks: usize) {
        self.endpoint.begin_lines(Lines::new(ranks, 0));
    }

    /// They cross none any more.
    pub(crate) fn end_lines(&mut self) {
        self.endpoint.end_lines();
    }

    /// The program is inside what lines are drawn in, or leaves it.
    pub(crate) fn enter_lines(&mut self, inside: bool) {
        self.endpoint.enter_lines(inside);
    }

    /// This rank's part in lines, if there are any.
    pub(crate) fn lines_mut(&mut self) -> Option<&mut Lines<Place>> {
        self.endpoint.lines_mut()
    }

    /// Whether this rank has received what was sent behind a line that it has not drawn.
    pub(crate) fn is_behind_line(&self) -> bool {
        self.endpoint.lines().is_some_and(Lines::is_behind)
    }

    /// This rank goes back to a line. Gives what its receivers of then are to be told: the early messages.
    pub(crate) fn go_back_to_line(&mut self, ranks: usize, log: Log<Vec<u8>>) -> Swallowed {
        let told = log.early.clone();
        let (lines, late) = Lines::restore(ranks, log.map(Place::Kept));
        self.endpoint.begin_lines(lines);
        late.into_iter().for_each(|(message, place)| self.endpoint.put_back(message, place));
        told
    }

    /// Whether nothing is under way that a line would cut, but for so many `others`, so that it can be drawn.
    pub(crate) fn may_draw_line(&mut self, others: usize) -> bool {
        self.sweep();
        let sends = self.detached.iter().filter(|op| self.endpoint.is_send(**op)).count();
        self.endpoint.may_draw_line(others + sends)
    }

    /// The line is drawn; gives how many messages each rank was sent before.
    pub(crate) fn draw_line(&mut self) -> Vec<u64> {
        let Self { endpoint, stock, .. } = self;
        endpoint.draw_line(|place| Place::Kept(stock.copy(place, &Memory::none())))
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

fn kept(place: &Place) -> &[u8] {
    match place {
        Place::Kept(bytes) => bytes,
        _ => unreachable!("copies are the driver's own"),
    }
}
