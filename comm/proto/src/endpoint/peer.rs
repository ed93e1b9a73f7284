//! What an endpoint knows of one other rank: the frames to it, in order, and what both have to say yet about messages that were announced.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::ahead::Ahead;
use super::credit::{Cost, Credit, EAGER_BYTES_MAX, EAGER_BYTES_MAX_NEAR, Grant};
use super::reading::Nearness;
use super::{Landing, Mode, OpId};
use crate::matching::Envelope;
use crate::rank::Generation;
use crate::wire::header::{HEADER_BYTES, Header, Kind};

/// A frame to be sent: the header, then `length` bytes of the place of `body`.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Encoded header.
    pub header: [u8; HEADER_BYTES],
    /// The send from whose place bytes follow.
    pub body: Option<OpId>,
    /// Bytes of it.
    pub length: usize,
}

/// What a frame is about, beside its message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct About {
    pub(super) subject: u64,
    pub(super) place: u64,
}

impl About {
    pub(super) fn subject(subject: u64) -> Self {
        Self { subject, place: 0 }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Peer {
    /// Frames that have not left; they are numbered without gaps.
    frames: VecDeque<Frame>,
    /// Number of the next frame to it.
    next: u64,
    /// Number of the next frame from it.
    due: u64,
    pub(super) credit: Credit,
    pub(super) grant: Grant,
    /// Sends that wait for credit, in order.
    pub(super) parked: VecDeque<OpId>,
    /// My announced messages about which it has said nothing yet, by the number of their envelope.
    pub(super) offered: FxHashMap<u64, OpId>,
    /// Its announced messages that I have asked for, by the same, and where they belong.
    pub(super) asked: FxHashMap<u64, (Landing, Envelope)>,
    pub(super) ahead: Ahead,
    pub(super) nearness: Nearness,
    pub(super) is_gone: bool,
}

impl Peer {
    /// Queues a frame; gives its number.
    #[inline]
    pub(super) fn post(
        &mut self,
        kind: Kind,
        generation: Generation,
        message: Envelope,
        about: About,
        body: Option<OpId>,
    ) -> u64 {
        let (header, encoded) = self.number(kind, generation, message, about);
        let length = usize::try_from(header.body_bytes()).expect("the body of a frame lies in memory");
        self.queue(Frame { header: encoded, body, length });
        header.sequence
    }

    /// The header of the next frame to it, which leaves before any other.
    #[inline]
    pub(super) fn number(
        &mut self,
        kind: Kind,
        generation: Generation,
        message: Envelope,
        about: About,
    ) -> (Header, [u8; HEADER_BYTES]) {
        let sequence = self.next;
        self.next += 1;
        let Envelope { context, source, tag, mark, length } = message;
        let About { subject, place } = about;
        let stamp = mark.stamp();
        let header =
            Header { kind, stamp, generation, context, source, tag, sequence, length, subject, place };
        (header, header.encode())
    }

    /// Queues the frame that was numbered last.
    #[inline]
    pub(super) fn queue(&mut self, frame: Frame) {
        self.frames.push_back(frame);
    }

    /// Frames that have not left, in order.
    #[inline]
    pub(super) fn frames(&self) -> &VecDeque<Frame> {
        &self.frames
    }

    /// The first frame has left.
    #[inline]
    pub(super) fn left(&mut self) -> Option<Frame> {
        self.frames.pop_front()
    }

    /// A frame of this number came.
    ///
    /// # Errors
    /// Another one was due: this.
    #[inline]
    pub(super) fn count(&mut self, sequence: u64) -> Result<(), u64> {
        if sequence != self.due {
            return Err(self.due);
        }
        self.due += 1;
        Ok(())
    }

    /// Whether a message may be sent before its receive is posted, if there is credit. If it can be read where it lies, `is_read`, fewer are.
    #[inline]
    pub(super) fn may_be_eager(&self, mode: Mode, length: u64, is_read: bool) -> bool {
        let most = if is_read { EAGER_BYTES_MAX_NEAR } else { EAGER_BYTES_MAX };
        mode == Mode::Standard && length <= most as u64
    }

    /// Pays for a message to it: how it leaves, if there is credit for that.
    #[inline]
    pub(super) fn pay(&mut self, mode: Mode, length: u64, is_read: bool) -> Option<Kind> {
        if self.may_be_eager(mode, length, is_read) && self.credit.pay(Cost::eager(length)) {
            return Some(Kind::Eager);
        }
        self.credit.pay(Cost::ENVELOPE).then_some(Kind::Envelope)
    }

    /// It has failed: nothing goes to it or comes from it any more. Gives the operations that waited for that.
    pub(super) fn lose(&mut self) -> Vec<OpId> {
        self.is_gone = true;
        let mut ops: Vec<OpId> = self.parked.drain(..).collect();
        ops.extend(self.offered.drain().map(|(_, op)| op));
        ops.extend(self.frames.drain(..).filter_map(|frame| frame.body));
        ops.extend(self.asked.drain().filter_map(|(_, (landing, _))| match landing {
            Landing::Op(op) => Some(op),
            _ => None,
        }));
        ops
    }
}

#[cfg(test)]
mod tests {
    use super::super::ENVELOPES_MAX;
    use super::*;
    use crate::stamp::Mark;

    const MESSAGE: Envelope = Envelope { context: 1, source: 2, tag: 3, mark: Mark::NONE, length: 40 };

    #[test]
    fn frames_are_numbered_and_leave_in_order() {
        let mut peer = Peer::default();
        for (number, kind) in [Kind::Eager, Kind::Envelope, Kind::Credit].into_iter().enumerate() {
            assert_eq!(peer.post(kind, 7, MESSAGE, About::subject(9), None), number as u64);
        }
        for (number, bytes) in [40, 0, 0].into_iter().enumerate() {
            let frame = peer.left().unwrap();
            let header = Header::decode(&frame.header).unwrap();
            assert_eq!((header.sequence, header.generation, header.subject), (number as u64, 7, 9));
            assert_eq!((Envelope::from(&header), frame.length), (MESSAGE, bytes));
        }
        assert!(peer.left().is_none() && peer.frames().is_empty());
    }

    #[test]
    fn no_frame_is_missed_or_taken_twice() {
        let mut peer = Peer::default();
        assert_eq!(
            [0, 1, 1, 3, 2].map(|number| peer.count(number)),
            [Ok(()), Ok(()), Err(2), Err(2), Ok(())]
        );
    }

    #[test]
    fn what_is_long_or_synchronous_or_without_credit_is_announced() {
        let mut peer = Peer::default();
        let most = EAGER_BYTES_MAX as u64;
        assert_eq!(peer.pay(Mode::Standard, most, false), Some(Kind::Eager));
        assert_eq!(peer.pay(Mode::Standard, most + 1, false), Some(Kind::Envelope));
        assert_eq!(peer.pay(Mode::Synchronous, 0, false), Some(Kind::Envelope));
        while peer.pay(Mode::Standard, most, false) == Some(Kind::Eager) {}
        // Three envelopes are gone by now.
        assert!((3..ENVELOPES_MAX).all(|_| peer.pay(Mode::Standard, most, false) == Some(Kind::Envelope)));
        assert_eq!(peer.pay(Mode::Standard, most, false), None);
        assert_eq!(peer.pay(Mode::Standard, 0, false), Some(Kind::Eager), "there is credit for a short one");
    }
}
