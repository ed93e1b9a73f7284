//! Messages that nobody wanted yet. There is a queue for each communicator and sender: a search does not pass the messages of others, however many there are.

use std::collections::{BTreeMap, VecDeque};

use super::{Envelope, Pattern};
use crate::planted;

/// Queues whose memory is kept when they are empty.
const SPARES: usize = 4;

/// Context and sender.
type Key = (u32, u32);

/// A message, with its place among all that came.
type Entry<M> = (u64, M, Envelope);

/// The messages. A search costs O(log q + m), where q queues are not empty and m messages are before the one that is found; from any source it costs that for each sender.
#[derive(Debug)]
pub(super) struct Arrived<M> {
    /// None of them is empty.
    queues: BTreeMap<Key, VecDeque<Entry<M>>>,
    spare: Vec<VecDeque<Entry<M>>>,
    /// Messages that came so far.
    came: u64,
}

impl<M> Default for Arrived<M> {
    fn default() -> Self {
        Self { queues: BTreeMap::new(), spare: vec![], came: 0 }
    }
}

/// Where a message is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    key: Key,
    at: usize,
}

impl<M: Copy> Arrived<M> {
    #[inline]
    pub(super) fn push(&mut self, message: M, envelope: Envelope) {
        let entry = (self.came, message, envelope);
        self.came += 1;
        let Self { queues, spare, .. } = self;
        let queue = queues.entry((envelope.context, envelope.source));
        queue.or_insert_with(|| spare.pop().unwrap_or_default()).push_back(entry);
    }

    /// The first message that `pattern` accepts.
    #[inline]
    pub(super) fn first(&self, pattern: &Pattern) -> Option<Place> {
        let context = pattern.context;
        match pattern.source {
            Some(source) => {
                let key = (context, source);
                self.queues.get(&key).and_then(|queue| find(queue, pattern)).map(|at| Place { key, at })
            }
            None => self.first_of_any(pattern),
        }
    }

    fn first_of_any(&self, pattern: &Pattern) -> Option<Place> {
        let queues = self.queues.range((pattern.context, 0)..=(pattern.context, u32::MAX));
        let found = queues
            .filter_map(|(key, queue)| find(queue, pattern).map(|at| (queue[at].0, Place { key: *key, at })));
        let turn = |number: u64| if planted::has(planted::TAKES_LAST) { !number } else { number };
        found.min_by_key(|(number, _)| turn(*number)).map(|(_, place)| place)
    }

    #[inline]
    pub(super) fn get(&self, place: Place) -> (M, Envelope) {
        let (_, message, envelope) = self.queues[&place.key][place.at];
        (message, envelope)
    }

    #[inline]
    pub(super) fn remove(&mut self, place: Place) -> Option<(M, Envelope)> {
        let queue = self.queues.get_mut(&place.key)?;
        let (_, message, envelope) = queue.remove(place.at)?;
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
    pub(super) fn place_of(&self, message: M, envelope: &Envelope) -> Option<Place>
    where
        M: PartialEq,
    {
        let key = (envelope.context, envelope.source);
        let at = self.queues.get(&key)?.iter().position(|(_, kept, _)| *kept == message)?;
        Some(Place { key, at })
    }

    pub(super) fn retain(&mut self, which: impl Fn(&Envelope) -> bool) {
        self.queues.values_mut().for_each(|queue| queue.retain(|(_, _, envelope)| which(envelope)));
        self.queues.retain(|_, queue| !queue.is_empty());
    }

    /// All, in the order in which they came.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (M, Envelope)> + use<M> {
        let mut all: Vec<Entry<M>> = self.queues.values().flatten().copied().collect();
        all.sort_unstable_by_key(|(number, ..)| *number);
        all.into_iter().map(|(_, message, envelope)| (message, envelope))
    }

    /// What they are matched by, in no order; context and source stay as they are.
    pub(super) fn envelopes_mut(&mut self) -> impl Iterator<Item = &mut Envelope> {
        self.queues.values_mut().flatten().map(|(_, _, envelope)| envelope)
    }
}

/// The place in a queue of what a pattern accepts first.
#[inline]
fn find<M>(queue: &VecDeque<Entry<M>>, pattern: &Pattern) -> Option<usize> {
    let fits = |(_, _, envelope): &Entry<M>| pattern.accepts(envelope);
    if planted::has(planted::TAKES_LAST) {
        return queue.iter().rposition(fits);
    }
    queue.iter().position(fits)
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
