//! Collections of `std` beside `Vec`. Maps and sets travel in the order of their keys, so equal ones give equal
//! bytes, in whatever order they were filled.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, Hash};

use super::field::describe_many;
use super::{Array, Field, ProtectError, Walk};

impl<T: Field> Field for VecDeque<T> {
    fn blank() -> Self {
        Self::new()
    }

    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
        let mut items: Vec<T> = std::mem::take(self).into();
        let walked = items.walk(walk);
        *self = items.into();
        walked
    }

    fn describe(text: &mut String) {
        describe_many::<T>(" queue of", text);
    }

    fn array(&self) -> Option<Array> {
        T::fixed_array()?.times(self.len())
    }
}

/// Hands sorted `keys` to the walk. Keys that are loaded must ascend: only such bytes are what a save has written.
fn walk_keys<K: Field + Ord, W: Walk>(keys: &mut Vec<K>, walk: &mut W) -> Result<(), ProtectError> {
    keys.walk(walk)?;
    match keys.is_sorted_by(|a, b| a < b) {
        true => Ok(()),
        false => Err(walk.invalid("order of keys")),
    }
}

/// The keys, then the values. A walk copies the keys; values whose key stays are overwritten in place.
impl<K: Field + Ord + Clone, V: Field> Field for BTreeMap<K, V> {
    fn blank() -> Self {
        Self::new()
    }

    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
        let mut keys: Vec<K> = self.keys().cloned().collect();
        walk_keys(&mut keys, walk)?;
        if !self.keys().eq(&keys) {
            *self = keys.into_iter().map(|key| (key, V::blank())).collect();
        }
        self.values_mut().try_for_each(|value| value.walk(walk))
    }

    fn describe(text: &mut String) {
        describe_many::<K>(" map from", text);
        describe_many::<V>(" to", text);
    }
}

/// The keys in ascending order, then the values. A walk copies and sorts the keys.
impl<K, V, S> Field for HashMap<K, V, S>
where
    K: Field + Ord + Hash + Clone,
    V: Field,
    S: BuildHasher + Default,
{
    fn blank() -> Self {
        Self::default()
    }

    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
        let mut keys: Vec<K> = self.keys().cloned().collect();
        keys.sort_unstable();
        walk_keys(&mut keys, walk)?;
        if keys.len() != self.len() || !keys.iter().all(|key| self.contains_key(key)) {
            *self = keys.iter().map(|key| (key.clone(), V::blank())).collect();
        }
        keys.iter().filter_map(|key| self.get_mut(key).map(|value| value.walk(walk))).collect()
    }

    fn describe(text: &mut String) {
        describe_many::<K>(" map from", text);
        describe_many::<V>(" to", text);
    }
}

impl<K: Field + Ord + Clone> Field for BTreeSet<K> {
    fn blank() -> Self {
        Self::new()
    }

    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
        let mut keys: Vec<K> = self.iter().cloned().collect();
        walk_keys(&mut keys, walk)?;
        if !self.iter().eq(&keys) {
            *self = keys.into_iter().collect();
        }
        Ok(())
    }

    fn describe(text: &mut String) {
        describe_many::<K>(" set of", text);
    }
}

impl<K, S> Field for HashSet<K, S>
where
    K: Field + Ord + Hash + Clone,
    S: BuildHasher + Default,
{
    fn blank() -> Self {
        Self::default()
    }

    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
        let mut keys: Vec<K> = self.iter().cloned().collect();
        keys.sort_unstable();
        walk_keys(&mut keys, walk)?;
        if keys.len() != self.len() || !keys.iter().all(|key| self.contains(key)) {
            *self = keys.into_iter().collect();
        }
        Ok(())
    }

    fn describe(text: &mut String) {
        describe_many::<K>(" set of", text);
    }
}
