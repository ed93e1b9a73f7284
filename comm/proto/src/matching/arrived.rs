//! Messages that nobody wanted yet. There is a queue for each communicator and sender: a search does not pass the messages of others, however many there are.

use std::collections::BTreeMap;
use std::hash::Hash;

use super::queue::{Keyed, Queue};
use super::{Envelope, Pattern};
use crate::planted;

/// Queues whose memory is kept when they are empty.
const SPARES: usize = 4;

/// Context and sender.
type Key = (u32, u32);

/// A message, with its place among all that came.
#[derive(Clone, Copy, Debug)]
struct Entry<M>(u64, M, Envelope);

/// What a message is looked up by among those of its communicator and sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum By<M> {
    Tag(u32),
    Message(M),
}

impl<M: Copy + Eq + Hash> Keyed for Entry<M> {
    type Key = By<M>;

    fn keys(&self) -> [By<M>; 2] {
        [By::Tag(self.2.tag), By::Message(self.1)]
    }
}

/// The messages. A search costs O(log q + log m), where q queues are not empty and have m messages
/// at most; from any source it costs that for each sender.
#[derive(Debug)]
pub(super) struct Arrived<M: Copy + Eq + Hash> {
    /// None of them is empty.
    queues: BTreeMap<Key, Queue<Entry<M>>>,
    spare: Vec<Queue<Entry<M>>>,
    /// Messages that came so far.
    came: u64,
}

impl<M: Copy + Eq + Hash> Default for Arrived<M> {
    fn default() -> Self {
        Self { queues: BTreeMap::new(), spare: vec![], came: 0 }
    }
}

/// Where a message is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    key: Key,
    number: u64,
}

impl<M: Copy + Eq + Hash> Arrived<M> {
    #[inline]
    pub(super) fn push(&mut self, message: M, envelope: Envelope) {
        let entry = Entry(self.came, message, envelope);
        self.came += 1;
        let Self { queues, spare, .. } = self;
        let queue = queues.entry((envelope.context, envelope.source));
        queue.or_insert_with(|| spare.pop().unwrap_or_default()).push(entry);
    }

    /// The first message that `pattern` accepts.
    #[inline]
    pub(super) fn first(&self, pattern: &Pattern) -> Option<Place> {
        let context = pattern.context;
        match pattern.source {
            Some(source) => {
                let key = (context, source);
                let number = self.queues.get(&key).and_then(|queue| find(queue, pattern));
                number.map(|number| Place { key, number })
            }
            None => self.first_of_any(pattern),
        }
    }

    fn first_of_any(&self, pattern: &Pattern) -> Option<Place> {
        let queues = self.queues.range((pattern.context, 0)..=(pattern.context, u32::MAX));
        let found = queues.filter_map(|(key, queue)| {
            let number = find(queue, pattern)?;
            Some((queue.get(number)?.0, Place { key: *key, number }))
        });
        let turn = |number: u64| if planted::has(planted::TAKES_LAST) { !number } else { number };
        found.min_by_key(|(number, _)| turn(*number)).map(|(_, place)| place)
    }

    #[inline]
    pub(super) fn get(&self, place: Place) -> (M, Envelope) {
        let Entry(_, message, envelope) = self.queues[&place.key].get(place.number).expect("it was found");
        (*message, *envelope)
    }

    #[inline]
    pub(super) fn remove(&mut self, place: Place) -> Option<(M, Envelope)> {
        let queue = self.queues.get_mut(&place.key)?;
        let Entry(_, message, envelope) = queue.take(place.number)?;
        if queue.is_empty() {
            self.put_aside(place.key);
        }
        Some((message, envelope))
    }

    /// A queue has nothing left: the next one gets its memory.
    fn put_aside(&mut self, key: Key) {
        if let Some(queue) = self.queues.remove(&key)
            && self.spare.len() < SPARES
        {
            self.spare.push(queue);
        }
    }

    /// Where a message is whose envelope, but for the mark, is known.
    pub(super) fn place_of(&self, message: M, envelope: &Envelope) -> Option<Place> {
        let key = (envelope.context, envelope.source);
        let queue = self.queues.get(&key)?;
        let number = queue.first_of(|| [By::Message(message)], |Entry(_, kept, _)| *kept == message)?;
        Some(Place { key, number })
    }

    pub(super) fn retain(&mut self, which: impl Fn(&Envelope) -> bool) {
        self.queues.values_mut().for_each(|queue| queue.retain(|Entry(_, _, envelope)| which(envelope)));
        self.queues.retain(|_, queue| !queue.is_empty());
    }

    /// All, in the order in which they came.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (M, Envelope)> + use<M> {
        let mut all: Vec<Entry<M>> = self.queues.values().flat_map(Queue::iter).copied().collect();
        all.sort_unstable_by_key(|Entry(number, ..)| *number);
        all.into_iter().map(|Entry(_, message, envelope)| (message, envelope))
    }

    /// What they are matched by, in no order; context, source and tag stay as they are.
    pub(super) fn envelopes_mut(&mut self) -> impl Iterator<Item = &mut Envelope> {
        self.queues.values_mut().flat_map(Queue::iter_mut).map(|Entry(_, _, envelope)| envelope)
    }
}

/// What a pattern accepts first in a queue.
#[inline]
fn find<M: Copy + Eq + Hash>(queue: &Queue<Entry<M>>, pattern: &Pattern) -> Option<u64> {
    let fits = |Entry(_, _, envelope): &Entry<M>| pattern.accepts(envelope);
    if planted::has(planted::TAKES_LAST) {
        return queue.numbered().rev().find(|(_, entry)| fits(entry)).map(|(number, _)| number);
    }
    match pattern.tag {
        Some(tag) => queue.first_of(|| [By::Tag(tag)], fits),
        None => queue.first(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stamp::Mark;

    #[derive(Clone, Debug)]
    enum Act {
        Push(u32, u32, u32),
        Take(Pattern),
        /// The message that came as this one, if it is still there.
        Forget(usize),
        Drop(u32),
    }

    fn act() -> impl Strategy<Value = Act> {
        let some = || proptest::option::of(0u32..3);
        let pattern = (0u32..2, some(), some());
        prop_oneof![
            4 => (0u32..2, 0u32..3, 0u32..3).prop_map(|(context, source, tag)| Act::Push(context, source, tag)),
            3 => pattern.prop_map(|(context, source, tag)| Act::Take(Pattern { context, source, tag })),
            1 => (0usize..60).prop_map(Act::Forget),
            1 => (0u32..2).prop_map(Act::Drop),
        ]
    }

    proptest! {
        /// As one list of all messages, in which each search begins at its front.
        #[test]
        fn the_queues_are_one_in_order(acts in proptest::collection::vec(act(), 0..120)) {
            let (mut arrived, mut list) = (Arrived::default(), Vec::<(usize, Envelope)>::new());
            let mut came = vec![];
            for act in acts {
                match act {
                    Act::Push(context, source, tag) => {
                        let message = Envelope { context, source, tag, mark: Mark::NONE, length: 0 };
                        arrived.push(came.len(), message);
                        list.push((came.len(), message));
                        came.push(message);
                    }
                    Act::Take(pattern) => {
                        let at = list.iter().position(|(_, message)| pattern.accepts(message));
                        let place = arrived.first(&pattern);
                        prop_assert_eq!(place.map(|place| arrived.get(place)), at.map(|at| list[at]));
                        prop_assert_eq!(place.and_then(|place| arrived.remove(place)), at.map(|at| list.remove(at)));
                    }
                    Act::Forget(number) => {
                        let Some(envelope) = came.get(number) else { continue };
                        let at = list.iter().position(|(other, _)| *other == number);
                        let place = arrived.place_of(number, envelope);
                        prop_assert_eq!(place.and_then(|place| arrived.remove(place)), at.map(|at| list.remove(at)));
                    }
                    Act::Drop(tag) => {
                        arrived.retain(|message| message.tag != tag);
                        list.retain(|(_, message)| message.tag != tag);
                    }
                }
                prop_assert_eq!(arrived.in_order().collect::<Vec<_>>(), list.clone());
                prop_assert!(arrived.queues.values().all(|queue| !queue.is_empty()));
                prop_assert!(arrived.spare.len() <= SPARES);
            }
        }
    }
}
