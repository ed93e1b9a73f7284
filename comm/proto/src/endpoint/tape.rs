//! What a rank receives in a part of its program, kept so that it can do that part again without the others.
//!
//! While the tape records, a copy of what comes is kept. While it plays, the messages of then are there from the beginning, and nothing that is sent leaves. So the part has to send and to receive
//! the same whenever it is done, and has to be done by all ranks at one place.

use super::{Endpoint, lined::Lined};
use crate::lines;
use crate::matching::Envelope;
use crate::rank::Rank;
use crate::stamp::Mark;

/// Collectives that are recorded, or done again out of a record, have this bit in their tag.
pub const TAPED_TAG: u32 = 1 << 30;

/// See the module.
#[derive(Debug)]
pub(super) enum Tape<P> {
    Rests,
    /// What has come, in the order in which it was received.
    Records(Vec<(Envelope, P)>),
    Plays,
}

impl<P> Lined<P> {
    /// Whether the tape is to have a message of another rank.
    pub(super) fn records(&self, message: &Envelope, me: Rank) -> bool {
        matches!(self.tape, Tape::Records(_)) && lines::cover(message.context) && message.source as Rank != me
    }

    /// Whether a message to another rank is not to leave, as it has left before.
    pub(super) fn plays_for(&self, to: Rank, context: u32, me: Rank) -> bool {
        matches!(self.tape, Tape::Plays) && lines::cover(context) && to != me
    }
}

impl<P> Endpoint<P> {
    /// What comes is kept from now on.
    pub fn record_tape(&mut self) {
        if let Some(lined) = self.lined.as_deref_mut() {
            lined.tape = Tape::Records(vec![]);
        }
    }

    /// What has come since.
    pub fn take_tape(&mut self) -> Vec<(Envelope, P)> {
        let tape = self.lined.as_deref_mut().map(|lined| std::mem::replace(&mut lined.tape, Tape::Rests));
        if let Some(Tape::Records(messages)) = tape { messages } else { vec![] }
    }

    /// These messages come again.
    pub fn play_tape(&mut self, messages: Vec<(Envelope, P)>) {
        if let Some(lined) = self.lined.as_deref_mut() {
            lined.tape = Tape::Plays;
        }
        messages.into_iter().for_each(|(message, place)| self.put_back(message, place));
    }

    /// The tape is over; whether all of it was received.
    pub fn end_tape(&mut self) -> bool {
        if let Some(lined) = self.lined.as_deref_mut() {
            lined.tape = Tape::Rests;
        }
        !self.matching.arrived().any(|(_, message)| message.mark == Mark::PUT_BACK)
    }

    /// Whether the tape records or plays.
    #[inline]
    pub fn has_tape(&self) -> bool {
        self.lined.as_deref().is_some_and(|lined| !matches!(lined.tape, Tape::Rests))
    }

    /// Whether the tape plays: what is not here will not come.
    #[inline]
    pub fn plays_tape(&self) -> bool {
        self.lined.as_deref().is_some_and(|lined| matches!(lined.tape, Tape::Plays))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Mode, Outgoing};
    use super::*;
    use crate::lines::Lines;
    use crate::matching::Pattern;
    use crate::wire::header::Header;
    use crate::wire::wait::CONTEXT_COMPUTE;

    const MESSAGE: Outgoing =
        Outgoing { context: CONTEXT_COMPUTE, tag: 7, length: 8, mode: Mode::Standard, offer: None };
    const FROM: Pattern = Pattern { context: CONTEXT_COMPUTE, source: Some(0), tag: Some(7) };

    fn with_lines(me: Rank) -> Endpoint<u32> {
        let mut end = Endpoint::new(me, 2, 0);
        end.begin_lines(Lines::new(2, 0), None);
        end
    }

    #[test]
    fn what_was_received_comes_again_and_what_is_sent_does_not_leave() {
        let (mut there, mut here) = (with_lines(0), with_lines(1));
        here.record_tape();
        let first = Header::decode(&there.express(1, &MESSAGE).unwrap()).unwrap();
        assert!(here.take(0, &first, &FROM, 8, true) == super::super::Taken::Yes);
        let came = here.came(0, &first);
        assert!(here.has_delivered(&came), "so it is to be kept");
        here.keep(came, 33, |place| *place);
        let to_itself = Envelope { source: 1, ..came };
        assert!(!here.has_delivered(&to_itself), "that it says again");
        let tape = here.take_tape();
        assert_eq!(tape.iter().map(|(message, place)| (message.tag, *place)).collect::<Vec<_>>(), [(7, 33)]);
        assert!(!here.has_delivered(&came), "the tape rests");
        assert!(here.leaves(0, (CONTEXT_COMPUTE, 7), 8, || 0));

        let mut again = with_lines(1);
        again.play_tape(tape);
        assert!(again.plays_tape() && !again.leaves(0, (CONTEXT_COMPUTE, 7), 8, || 0));
        assert!(again.leaves(1, (CONTEXT_COMPUTE, 7), 8, || 0), "to itself");
        assert!(again.leaves(0, (0, 7), 8, || 0), "not the program's");
        let op = again.receive(FROM, 8, None, 0);
        assert!(again.is_finished(op));
        assert!(again.end_tape() && !again.plays_tape());
    }

    #[test]
    fn what_is_left_of_a_tape_is_seen() {
        let mut again = with_lines(1);
        let envelope = Envelope { context: CONTEXT_COMPUTE, source: 0, tag: 7, mark: Mark::NONE, length: 8 };
        again.play_tape(vec![(envelope, 5)]);
        assert!(!again.end_tape());
    }
}
