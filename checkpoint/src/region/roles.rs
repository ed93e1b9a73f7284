//! Values that say by their type what they are to the other ranks, as fields of a state say it by an attribute.

use bytemuck::Pod;
use serde::{Serialize, de::DeserializeOwned};

use super::walk::Size;
use super::{Field, Protect, ProtectError, Spread, StatePart, Walk};

/// A value that is the same on all ranks: what a protected run gives where that has to be known ([`Job::run`](crate::Job::run)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replicated<T>(pub T);

/// This rank's block of an array that all ranks have together, in the order of ranks: what a protected run gives where that has to be
/// known ([`Job::run`](crate::Job::run)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distributed<T> {
    items: Vec<T>,
    /// So many items stay together; 0: there is no rule.
    unit: u64,
}

impl<T> Distributed<T> {
    /// A block of an array that is cut anywhere: on other ranks each has as many items as any other, or one more.
    pub fn new(items: Vec<T>) -> Self {
        Self::in_units(items, 1)
    }

    /// A block of an array that is cut after every `unit` items only: on other ranks each has as many units as any other, or one
    /// more; the last unit may be shorter. The same on all ranks. 0: the program alone knows how it is cut, so it cannot be dealt out.
    pub fn in_units(items: Vec<T>, unit: usize) -> Self {
        Self { items, unit: unit as u64 }
    }

    /// The items of this rank.
    pub fn into_items(self) -> Vec<T> {
        self.items
    }
}

impl<T: Field> Field for Replicated<T> {
    fn blank() -> Self {
        Self(T::blank())
    }

    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
        let outer = walk.enter(Some(Spread::Replicated));
        let walked = self.0.walk(walk);
        walk.leave(outer);
        walked
    }

    fn describe(text: &mut String) {
        *text += " the same on all ranks:";
        T::describe(text);
    }
}

impl<T: Field + Pod> Field for Distributed<T> {
    fn blank() -> Self {
        Self::in_units(vec![], 0)
    }

    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
        let outer = walk.enter((self.unit > 0).then_some(Spread::Distributed));
        let walked = Field::walk(&mut self.unit, walk).and_then(|()| self.items.walk(walk));
        walk.leave(outer);
        walked
    }

    fn describe(text: &mut String) {
        *text += " a block of:";
        T::describe(text);
    }
}

/// What lies in the bytes of a value and says what it is to the other ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Replicated or distributed.
    pub(crate) spread: Spread,
    /// Its bytes.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A walk that takes these down.
#[derive(Default)]
struct Roles {
    size: Size,
    is_within: bool,
    pieces: Vec<Piece>,
}

impl Walk for Roles {
    fn bytes(&mut self, bytes: &mut [u8]) -> Result<(), ProtectError> {
        self.size.bytes(bytes)
    }

    fn enter(&mut self, spread: Option<Spread>) -> bool {
        let spread = spread.filter(|spread| !self.is_within && *spread != Spread::Private);
        let at = self.offset();
        self.pieces.extend(spread.map(|spread| Piece { spread, start: at, end: at }));
        self.is_within |= spread.is_some();
        spread.is_some()
    }

    fn leave(&mut self, is_outermost: bool) {
        let at = self.offset();
        if let Some(piece) = self.pieces.last_mut().filter(|_| is_outermost) {
            (piece.end, self.is_within) = (at, false);
        }
    }

    fn length(&mut self, items: usize, item_bytes: usize) -> Result<usize, ProtectError> {
        self.size.length(items, item_bytes)
    }

    fn serde<T: Serialize + DeserializeOwned>(&mut self, value: &mut T) -> Result<(), ProtectError> {
        self.size.serde(value)
    }

    fn offset(&self) -> usize {
        self.size.offset()
    }

    fn depth(&mut self) -> &mut usize {
        self.size.depth()
    }
}

/// The pieces of `part` of `state`, which is not changed, in order; what lies in none is private to its rank.
///
/// # Errors
/// As [`size`](super::size).
pub(crate) fn roles<P: Protect>(state: &mut P, part: StatePart) -> Result<Vec<Piece>, ProtectError> {
    let mut walk = Roles::default();
    state.walk(part, &mut walk)?;
    Ok(walk.pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::{load, save};

    struct Value<T>(T);

    impl<T: Field> Protect for Value<T> {
        fn walk<W: Walk>(&mut self, part: StatePart, walk: &mut W) -> Result<(), ProtectError> {
            if part == StatePart::Variable { self.0.walk(walk) } else { Ok(()) }
        }
    }

    fn pieces<T: Field>(value: T) -> Vec<(&'static str, usize, usize)> {
        let roles = roles(&mut Value(value), StatePart::Variable).unwrap();
        roles.into_iter().map(|piece| (piece.spread.name(), piece.start, piece.end)).collect()
    }

    #[test]
    fn values_say_what_they_are() {
        let rows = Distributed::in_units(vec![[1.5_f64; 2]; 3], 2);
        assert_eq!(pieces(Replicated(7_u32)), [("replicated", 0, 4)]);
        assert_eq!(
            pieces((Replicated(7_u32), 1_u8, rows.clone())),
            [("replicated", 0, 4), ("distributed", 5, 5 + 16 + 48)]
        );
        assert_eq!(pieces((3_u64, vec![1_u8])), []);
        let lists = vec![Replicated(vec![1_u8, 2]), Replicated(vec![])];
        assert_eq!(pieces(lists), [("replicated", 8, 18), ("replicated", 18, 26)]);
        // All of what is the same on all ranks is.
        assert_eq!(pieces(Replicated(rows.clone())), [("replicated", 0, 64)]);
        assert_eq!(pieces(Distributed::in_units(vec![1_u8], 0)), []);

        let mut shard = vec![];
        save(&mut Value((Replicated(7_u32), rows.clone())), StatePart::Variable, &mut shard).unwrap();
        let mut read = Value((Replicated(0_u32), Distributed::blank()));
        load(&mut read, StatePart::Variable, &shard).unwrap();
        assert_eq!(read.0, (Replicated(7), rows));
    }
}
