//! Something for each open link, found at once: links are numbered one after the other, and few are closed before their generation ends.

use std::fmt;

use super::LinkId;

/// A map from links, which come in the order of their numbers.
pub struct ByLink<T> {
    /// Number of the first place.
    first: u64,
    /// A link that was closed leaves its place empty.
    places: Vec<Option<T>>,
    count: usize,
}

impl<T> Default for ByLink<T> {
    fn default() -> Self {
        Self { first: 0, places: Vec::new(), count: 0 }
    }
}

impl<T: fmt::Debug> fmt::Debug for ByLink<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<T> ByLink<T> {
    #[inline]
    fn place(&self, link: LinkId) -> usize {
        usize::try_from(link.0.wrapping_sub(self.first)).unwrap_or(usize::MAX)
    }

    /// What belongs to `link`.
    #[inline]
    pub fn get(&self, link: LinkId) -> Option<&T> {
        self.places.get(self.place(link))?.as_ref()
    }

    /// The same, to change it.
    #[inline]
    pub fn get_mut(&mut self, link: LinkId) -> Option<&mut T> {
        let place = self.place(link);
        self.places.get_mut(place)?.as_mut()
    }

    /// Keeps `value` for `link`, whose number is no smaller than that of the first; gives back what was there.
    pub fn insert(&mut self, link: LinkId, value: T) -> Option<T> {
        if self.places.is_empty() {
            self.first = link.0;
        }
        let place = self.place(link);
        assert!(link.0 >= self.first, "links come in the order of their numbers");
        if place >= self.places.len() {
            self.places.resize_with(place + 1, || None);
        }
        let before = self.places[place].replace(value);
        self.count += usize::from(before.is_none());
        before
    }

    /// Gives back what belongs to `link`.
    pub fn remove(&mut self, link: LinkId) -> Option<T> {
        let place = self.place(link);
        let value = self.places.get_mut(place)?.take()?;
        self.count -= 1;
        Some(value)
    }

    /// How many links there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Gives back everything, in order.
    pub fn take(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.count = 0;
        std::mem::take(&mut self.places).into_iter().flatten()
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = (LinkId, &T)> {
        let all = self.places.iter().zip(self.first..);
        all.filter_map(|(value, number)| Some((LinkId(number), value.as_ref()?)))
    }

    /// All, in order, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (LinkId, &mut T)> {
        let all = self.places.iter_mut().zip(self.first..);
        all.filter_map(|(value, number)| Some((LinkId(number), value.as_mut()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_link_has_its_own_until_it_is_closed() {
        let mut map = ByLink::default();
        assert_eq!((map.get(LinkId(0)), map.count()), (None, 0));
        for (link, value) in [(7, 'a'), (8, 'b'), (11, 'z')] {
            assert_eq!(map.insert(LinkId(link), value), None);
        }
        assert_eq!(map.insert(LinkId(11), 'c'), Some('z'));
        assert_eq!(
            [6, 7, 8, 9, 11, 12, u64::MAX].map(|link| map.get(LinkId(link)).copied()),
            [None, Some('a'), Some('b'), None, Some('c'), None, None]
        );
        assert_eq!(
            (map.remove(LinkId(8)), map.remove(LinkId(8)), map.remove(LinkId(10))),
            (Some('b'), None, None)
        );
        map.iter_mut().for_each(|(link, value)| *value = char::from(b'0' + link.0 as u8 % 10));
        assert_eq!(map.iter().collect::<Vec<_>>(), [(LinkId(7), &'7'), (LinkId(11), &'1')]);
        assert_eq!((map.count(), map.take().collect::<String>(), map.count()), (2, "71".into(), 0));
        map.insert(LinkId(3), 'd');
        assert_eq!(map.get_mut(LinkId(3)), Some(&mut 'd'));
    }
}
