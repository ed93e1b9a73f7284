//! Messages that come beside the frames of a link, through cells (`crate::cells`): whole, and each for one receive alone.

use super::{Endpoint, OpId, Outcome, State};
use crate::matching::Envelope;

impl<P> Endpoint<P> {
    /// Whether a receive waits for its message.
    pub fn is_awaited(&self, op: OpId) -> bool {
        self.ops.get(op).is_some_and(|posted| matches!(posted.state, State::Receive { .. }))
            && self.matching.is_posted(op)
    }

    /// The message that a receive waits for has come beside all frames: the receive is finished. Gives its place, for the bytes that there is room for.
    pub fn handle_beside(&mut self, op: OpId, envelope: Envelope) -> Option<&mut P> {
        let State::Receive { room, .. } = self.ops.get(op)?.state else { return None };
        if !self.matching.cancel(op) {
            return None;
        }
        let fits = envelope.length <= room as u64;
        let outcome =
            if fits { Outcome::Done(envelope) } else { Outcome::Truncated { message: envelope, room } };
        self.takes(op, &envelope);
        self.end(op, outcome);
        self.place_mut(op)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::Pattern;
    use crate::stamp::Mark;

    #[test]
    fn a_message_beside_the_frames_ends_the_receive_that_waits_for_it() {
        let mut end: Endpoint<usize> = Endpoint::new(1, 2, 0);
        let pattern = Pattern { context: 1, source: Some(0), tag: Some(7) };
        let envelope = Envelope { context: 1, source: 0, tag: 7, mark: Mark::NONE, length: 8 };
        let (fits, cut) = (end.receive(pattern, 8, None, 33), end.receive(pattern, 7, None, 44));
        assert!(end.is_awaited(fits) && end.is_awaited(cut));
        assert_eq!(end.handle_beside(fits, envelope).copied(), Some(33));
        assert!(!end.is_awaited(fits) && end.handle_beside(fits, envelope).is_none(), "once");
        assert_eq!(end.finish(fits), Some((Outcome::Done(envelope), 33)));
        end.handle_beside(cut, envelope);
        assert_eq!(end.finish(cut), Some((Outcome::Truncated { message: envelope, room: 7 }, 44)));
        assert!(end.is_idle());
        // One that has ended otherwise waits for nothing.
        let lost = end.receive(pattern, 8, None, 55);
        end.handle_loss(0, &[]);
        assert!(!end.is_awaited(lost) && end.handle_beside(lost, envelope).is_none());
        assert_eq!(end.finish(lost), Some((Outcome::Failed(0), 55)));
    }
}
