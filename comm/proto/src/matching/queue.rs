//! A queue from whose middle elements are taken, by what they are known by: its key.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Elements that a queue holds before it has an index: a search among fewer is faster without.
const LONG: usize = 64;

/// What an element of a queue can be looked up by.
pub(super) trait Keyed {
    type Key: Copy + Eq + Hash;

    fn keys(&self) -> [Self::Key; 2];
}

/// Elements in the order in which they came. The first one with a key is found, and taken, at a
/// cost of O(log n), however long the queue is; so is the first one of all.
#[derive(Debug)]
pub(super) struct Queue<T: Keyed> {
    /// By ascending number. Elements that were taken are `None`: neither the first nor the last one
    /// is, and at most half of a long queue are.
    elements: VecDeque<(u64, Option<T>)>,
    next: u64,
    len: usize,
    /// If the queue is long: for each key the numbers of its elements, ascending.
    index: Option<HashMap<T::Key, VecDeque<u64>>>,
}

impl<T: Keyed> Default for Queue<T> {
    fn default() -> Self {
        Self { elements: VecDeque::new(), next: 0, len: 0, index: None }
    }
}

impl<T: Keyed> Queue<T> {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(super) fn push(&mut self, element: T) {
        let number = self.next;
        self.next += 1;
        self.len += 1;
        if let Some(index) = &mut self.index {
            element.keys().into_iter().for_each(|key| index.entry(key).or_default().push_back(number));
        }
        self.elements.push_back((number, Some(element)));
        if self.len > LONG && self.index.is_none() {
            self.build_index();
        }
    }

    #[cold]
    fn build_index(&mut self) {
        let mut index = HashMap::<_, VecDeque<u64>>::new();
        for (number, element) in &self.elements {
            let keys = element.iter().flat_map(Keyed::keys);
            keys.for_each(|key| index.entry(key).or_default().push_back(*number));
        }
        self.index = Some(index);
    }

    /// The number of the first element with one of these keys, which are those of all elements that
    /// `fits` accepts.
    #[inline]
    pub(super) fn first_of<const KEYS: usize>(
        &self,
        keys: impl FnOnce() -> [T::Key; KEYS],
        fits: impl Fn(&T) -> bool,
    ) -> Option<u64> {
        match &self.index {
            None => self.numbered().find(|(_, element)| fits(element)).map(|(number, _)| number),
            Some(index) => {
                let first = |key: T::Key| index.get(&key).and_then(VecDeque::front).copied();
                keys().into_iter().filter_map(first).min()
            }
        }
    }

    /// The number of the first element.
    #[inline]
    pub(super) fn first(&self) -> Option<u64> {
        self.elements.front().map(|(number, _)| *number)
    }

    #[inline]
    fn place(&self, number: u64) -> Option<usize> {
        // As nearly always.
        if self.first() == Some(number) {
            return Some(0);
        }
        self.elements.binary_search_by_key(&number, |(number, _)| *number).ok()
    }

    #[inline]
    pub(super) fn get(&self, number: u64) -> Option<&T> {
        self.elements[self.place(number)?].1.as_ref()
    }

    /// Takes the element with this number.
    #[inline]
    pub(super) fn take(&mut self, number: u64) -> Option<T> {
        let at = self.place(number)?;
        let element = self.elements[at].1.take()?;
        self.len -= 1;
        if self.is_empty() {
            self.elements.clear();
            self.index = None;
            return Some(element);
        }
        if let Some(index) = &mut self.index {
            for key in element.keys() {
                let numbers = index.get_mut(&key).expect("each key has the numbers of its elements");
                match numbers.front() {
                    Some(first) if *first == number => drop(numbers.pop_front()),
                    _ => {
                        let at = numbers.binary_search(&number).expect("as above");
                        numbers.remove(at);
                    }
                }
                if numbers.is_empty() {
                    index.remove(&key);
                }
            }
        }
        while let Some((_, None)) = self.elements.front() {
            self.elements.pop_front();
        }
        while let Some((_, None)) = self.elements.back() {
            self.elements.pop_back();
        }
        if self.elements.len() > LONG.max(2 * self.len) {
            self.elements.retain(|(_, element)| element.is_some());
        }
        Some(element)
    }

    /// Only those elements stay that `which` chooses.
    pub(super) fn retain(&mut self, which: impl Fn(&T) -> bool) {
        self.elements.retain(|(_, element)| element.as_ref().is_some_and(&which));
        self.len = self.elements.len();
        self.index = None;
        if self.len > LONG {
            self.build_index();
        }
    }

    /// The elements with their numbers, in order.
    #[inline]
    pub(super) fn numbered(&self) -> impl DoubleEndedIterator<Item = (u64, &T)> {
        self.elements.iter().filter_map(|(number, element)| Some((*number, element.as_ref()?)))
    }

    /// The elements, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.elements.iter().filter_map(|(_, element)| element.as_ref())
    }

    /// The elements, in order; their keys stay as they are.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.elements.iter_mut().filter_map(|(_, element)| element.as_mut())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    /// A color and a name.
    impl Keyed for (u8, u32) {
        type Key = Result<u8, u32>;

        fn keys(&self) -> [Self::Key; 2] {
            [Ok(self.0), Err(self.1)]
        }
    }

    fn first_of_color(queue: &Queue<(u8, u32)>, color: u8) -> Option<u64> {
        queue.first_of(|| [Ok(color)], |(other, _)| *other == color)
    }

    /// What is searched for is at the end, in the middle, or not there.
    #[test]
    fn a_search_of_a_long_queue_passes_no_other_elements() {
        let mut queue = Queue::default();
        (0..40_000).for_each(|name| queue.push((9, name)));
        let passed = Cell::new(0);
        for name in (0..50_000).rev() {
            let fits = |element: &(u8, u32)| {
                passed.set(passed.get() + 1);
                element.1 == name
            };
            let found = queue.first_of(|| [Err(name)], fits);
            assert_eq!(found.and_then(|number| queue.take(number)), (name < 40_000).then_some((9, name)));
        }
        assert!(queue.is_empty());
        assert!(passed.get() <= LONG * LONG, "{} elements", passed.get());
    }

    proptest! {
        /// As one list that is searched from its front, on both sides of the length at which there
        /// is an index.
        #[test]
        fn a_queue_is_a_list(acts in proptest::collection::vec((0u8..12, any::<u8>()), 0..800)) {
            let (mut queue, mut list) = (Queue::default(), Vec::<(u8, u32)>::new());
            for (name, (act, value)) in (0u32..).zip(acts) {
                let color = value % 5;
                let taken = match act {
                    0..7 => {
                        queue.push((color, name));
                        list.push((color, name));
                        continue;
                    }
                    7 | 8 => {
                        let at = list.iter().position(|(other, _)| *other == color);
                        (first_of_color(&queue, color), at)
                    }
                    9 => (queue.first(), (!list.is_empty()).then_some(0)),
                    10 => {
                        let at = (!list.is_empty()).then(|| usize::from(value) % list.len());
                        let name = at.map(|at| list[at].1);
                        (name.and_then(|name| queue.first_of(|| [Err(name)], |(_, other)| *other == name)), at)
                    }
                    _ => {
                        if value < 20 {
                            queue.retain(|(other, _)| *other != color);
                            list.retain(|(other, _)| *other != color);
                        }
                        continue;
                    }
                };
                let due = taken.1.map(|at| list.remove(at));
                prop_assert_eq!(taken.0.and_then(|number| queue.get(number)).copied(), due);
                prop_assert_eq!(taken.0.and_then(|number| queue.take(number)), due);
                prop_assert!(queue.iter().eq(&list));
                prop_assert!(queue.elements.len() <= LONG.max(2 * list.len()));
                prop_assert!(list.len() <= LONG || queue.index.is_some());
            }
        }
    }
}
