//! MPI's matching rules: which message a receive takes (MPI 4.1, section 3.5, "Semantics of point-to-point
//! communication").
//!
//! Two queues in order: receives posted that nothing has matched, and messages arrived that nobody wanted
//! yet. A message takes the first posted receive that it fits, a receive the first arrived message; so two
//! messages of one source, communicator and tag are received in the order in which they were sent.

use std::hash::Hash;

use self::arrived::Arrived;
use self::queue::{Keyed, Queue};
use crate::stamp::Mark;
use crate::wire::header::Header;

mod arrived;
mod queue;

/// What a receive accepts; ranks are world ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pattern {
    /// Context of the communicator.
    pub context: u32,
    /// `None` is `MPI_ANY_SOURCE`.
    pub source: Option<u32>,
    /// `None` is `MPI_ANY_TAG`.
    pub tag: Option<u32>,
}

/// What a message is matched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Context of the communicator.
    pub context: u32,
    /// World rank of the sender.
    pub source: u32,
    /// Tag.
    pub tag: u32,
    /// What is noted of it beyond that.
    pub mark: Mark,
    /// Bytes of the message.
    pub length: u64,
}

impl From<&Header> for Envelope {
    #[inline]
    fn from(header: &Header) -> Self {
        let Header { stamp, context, source, tag, length, .. } = *header;
        Self { context, source, tag, mark: Mark::of(stamp), length }
    }
}

impl Envelope {
    /// Whether a header says the same of a message.
    pub(crate) fn is_of(&self, header: &Header) -> bool {
        Self { mark: Mark::of(self.mark.stamp()), ..*self } == Self::from(header)
    }
}

impl Pattern {
    /// Whether messages of several kinds fit it.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.source.is_none() || self.tag.is_none()
    }

    /// Whether a receive with this pattern takes `envelope`.
    #[inline]
    pub fn accepts(&self, envelope: &Envelope) -> bool {
        self.context == envelope.context
            && self.source.is_none_or(|source| source == envelope.source)
            && self.tag.is_none_or(|tag| tag == envelope.tag)
    }
}

impl Envelope {
    /// The patterns that accept it.
    fn patterns(&self) -> [Pattern; 4] {
        let Self { context, source, tag, .. } = *self;
        let (source, tag) = (Some(source), Some(tag));
        [(source, tag), (source, None), (None, tag), (None, None)].map(|(source, tag)| Pattern {
            context,
            source,
            tag,
        })
    }
}

/// What a posted receive is looked up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum By<R> {
    Receive(R),
    Pattern(Pattern),
}

impl<R: Copy + Eq + Hash> Keyed for (R, Pattern) {
    type Key = By<R>;

    fn keys(&self) -> [By<R>; 2] {
        [By::Receive(self.0), By::Pattern(self.1)]
    }
}

/// The two queues; `R` names a receive, `M` a message. The cost of a search grows with the
/// logarithm of their lengths.
#[derive(Debug)]
pub struct Matching<R: Copy + Eq + Hash, M: Copy + Eq + Hash> {
    posted: Queue<(R, Pattern)>,
    arrived: Arrived<M>,
}

impl<R: Copy + Eq + Hash, M: Copy + Eq + Hash> Default for Matching<R, M> {
    fn default() -> Self {
        Self { posted: Queue::default(), arrived: Arrived::default() }
    }
}

impl<R: Copy + Eq + Hash, M: Copy + Eq + Hash> Matching<R, M> {
    /// The first arrived message that `pattern` accepts; it stays in the queue.
    #[inline]
    pub fn find(&self, pattern: &Pattern) -> Option<(M, Envelope)> {
        self.arrived.first(pattern).map(|place| self.arrived.get(place))
    }

    /// Takes the first arrived message that `pattern` accepts out of the queue.
    pub fn take(&mut self, pattern: &Pattern) -> Option<(M, Envelope)> {
        self.arrived.remove(self.arrived.first(pattern)?)
    }

    /// As [`Matching::take`], unless that message is longer than `room`: it stays in the queue then, and is the error.
    pub fn take_within(&mut self, pattern: &Pattern, room: u64) -> Option<Result<(M, Envelope), Envelope>> {
        let place = self.arrived.first(pattern)?;
        let (_, envelope) = self.arrived.get(place);
        if envelope.length > room { Some(Err(envelope)) } else { self.arrived.remove(place).map(Ok) }
    }

    /// Queues a receive; the caller has seen that no arrived message fits it.
    pub fn post(&mut self, receive: R, pattern: Pattern) {
        self.posted.push((receive, pattern));
    }

    /// Takes the first posted receive that accepts `envelope` out of the queue.
    pub fn matched(&mut self, envelope: &Envelope) -> Option<R> {
        self.posted.take(self.first_posted(envelope)?).map(|(receive, _)| receive)
    }

    /// Whether a posted receive accepts `envelope`.
    pub fn is_wanted(&self, envelope: &Envelope) -> bool {
        self.first_posted(envelope).is_some()
    }

    /// Whether a receive is posted, and no message has matched it.
    pub fn is_posted(&self, receive: R) -> bool {
        self.place_of_posted(receive).is_some()
    }

    #[inline]
    fn first_posted(&self, envelope: &Envelope) -> Option<u64> {
        let keys = || envelope.patterns().map(By::Pattern);
        self.posted.first_of(keys, |(_, pattern)| pattern.accepts(envelope))
    }

    fn place_of_posted(&self, receive: R) -> Option<u64> {
        self.posted.first_of(|| [By::Receive(receive)], |(posted, _)| *posted == receive)
    }

    /// Queues a message; the caller has seen that no posted receive fits it.
    pub fn keep(&mut self, message: M, envelope: Envelope) {
        self.arrived.push(message, envelope);
    }

    /// Takes all receives and messages of a context out of the queues.
    pub fn remove_context(&mut self, context: u32) -> Vec<M> {
        let of = |envelope: &Envelope| envelope.context == context;
        let removed =
            self.arrived.in_order().filter(|(_, envelope)| of(envelope)).map(|(id, _)| id).collect();
        self.arrived.retain(|envelope| !of(envelope));
        removed
    }

    /// Takes all receives whose pattern `which` chooses out of the queue.
    pub fn withdraw(&mut self, which: impl Fn(&Pattern) -> bool) -> Vec<R> {
        let chosen = self.posted.iter().filter(|(_, pattern)| which(pattern)).map(|(id, _)| *id).collect();
        self.posted.retain(|(_, pattern)| !which(pattern));
        chosen
    }

    /// The receives that wait, in order.
    pub fn posted(&self) -> impl Iterator<Item = &(R, Pattern)> {
        self.posted.iter()
    }

    /// What the messages that have arrived are matched by, to change what is noted of them.
    pub fn envelopes_mut(&mut self) -> impl Iterator<Item = &mut Envelope> {
        self.arrived.envelopes_mut()
    }

    /// Takes all messages that `which` chooses out of the queue.
    pub fn forget_messages(&mut self, which: impl Fn(&Envelope) -> bool) {
        self.arrived.retain(|envelope| !which(envelope));
    }

    /// The messages that have arrived, in order.
    pub fn arrived(&self) -> impl Iterator<Item = (M, Envelope)> + use<R, M> {
        self.arrived.in_order()
    }

    /// Takes a message with this envelope out of the queue; false if it was not there.
    pub fn forget(&mut self, message: M, envelope: &Envelope) -> bool {
        let place = self.arrived.place_of(message, envelope);
        place.map(|place| self.arrived.remove(place)).is_some()
    }

    /// Takes a receive out of the queue; false if it was matched already.
    pub fn cancel(&mut self, receive: R) -> bool {
        self.place_of_posted(receive).and_then(|number| self.posted.take(number)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn envelope(source: u32, tag: u32) -> Envelope {
        Envelope { context: 1, source, tag, mark: Mark::NONE, length: 0 }
    }

    #[test]
    fn wildcards_take_the_first_that_arrived() {
        let mut queues = Matching::<u32, u32>::default();
        queues.keep(10, envelope(2, 5));
        queues.keep(11, envelope(1, 5));
        let any = Pattern { context: 1, source: None, tag: Some(5) };
        assert_eq!(queues.take(&any).unwrap().0, 10);
        assert_eq!(queues.take(&any).unwrap().0, 11);
        assert_eq!(queues.take(&any), None);
    }

    #[test]
    fn what_is_too_long_stays_and_nothing_overtakes_it() {
        let mut queues = Matching::<u32, u32>::default();
        let (long, short) = (Envelope { length: 9, ..envelope(2, 5) }, envelope(2, 5));
        queues.keep(10, long);
        queues.keep(11, short);
        let any = Pattern { context: 1, source: None, tag: None };
        assert_eq!(queues.take_within(&any, 8), Some(Err(long)));
        assert_eq!(queues.take_within(&any, 9), Some(Ok((10, long))));
        assert_eq!(queues.take_within(&any, 8), Some(Ok((11, short))));
        assert_eq!(queues.take_within(&any, 8), None);
    }

    #[test]
    fn contexts_never_meet() {
        let mut queues = Matching::<u32, u32>::default();
        queues.post(1, Pattern { context: 2, source: None, tag: None });
        assert_eq!(queues.matched(&envelope(0, 0)), None);
    }

    #[test]
    fn a_cancelled_receive_takes_nothing() {
        let mut queues = Matching::<u32, u32>::default();
        queues.post(1, Pattern { context: 1, source: None, tag: None });
        assert!(queues.cancel(1));
        assert!(!queues.cancel(1));
        assert_eq!(queues.matched(&envelope(0, 0)), None);
    }

    proptest! {
        /// Messages of one source and tag are taken in order, whatever else is received in between.
        #[test]
        fn no_overtaking(messages in proptest::collection::vec((0u32..3, 0u32..3), 0..40),
                         receives in proptest::collection::vec((0u32..4, 0u32..4, any::<bool>()), 0..60)) {
            let mut queues = Matching::<usize, usize>::default();
            let mut taken: Vec<(usize, u32, u32)> = Vec::new();
            let mut sent = messages.iter().enumerate();
            for (id, (source, tag, first)) in receives.into_iter().enumerate() {
                let pattern = Pattern {
                    context: 1,
                    source: (source < 3).then_some(source),
                    tag: (tag < 3).then_some(tag),
                };
                if first && let Some((number, &(source, tag))) = sent.next() {
                    let message = envelope(source, tag);
                    match queues.matched(&message) {
                        Some(_) => taken.push((number, source, tag)),
                        None => queues.keep(number, message),
                    }
                }
                match queues.take(&pattern) {
                    Some((number, message)) => {
                        prop_assert!(pattern.accepts(&message));
                        taken.push((number, message.source, message.tag));
                    }
                    None => queues.post(id, pattern),
                }
            }
            for source in 0..3 {
                for tag in 0..3 {
                    let order: Vec<usize> =
                        taken.iter().filter(|t| t.1 == source && t.2 == tag).map(|t| t.0).collect();
                    prop_assert!(order.is_sorted(), "{order:?}");
                }
            }
        }
    }
}
