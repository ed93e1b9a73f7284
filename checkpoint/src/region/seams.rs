//! Where the doubles of a shard of [two strings](super::apart) belong among its exact bytes: for who has to read it without the walk that
//! wrote it. Joined at its seams it is the shard that any other scheme would have made of the state.
//!
//! ```text
//! | exact bytes | bytes of doubles | exact bytes | bytes of doubles | ...      how many of each come next, 8 bytes each, little endian
//! ```

use serde::{Serialize, de::DeserializeOwned};

use super::apart::{Apart, Strings};
use super::walk::Size;
use super::{Protect, ProtectError, Spread, StatePart, Walk};

/// Takes them down.
struct Seams {
    size: Size,
    apart: Apart<()>,
    /// Bytes of each kind, in turn; the first are exact.
    runs: Vec<u64>,
    /// Exact bytes that are in a run.
    told: usize,
}

impl Seams {
    /// The exact bytes since the last doubles.
    fn end_exact(&mut self) {
        let exact = self.size.offset();
        self.runs.push((exact - self.told) as u64);
        self.told = exact;
    }
}

impl Walk for Seams {
    fn bytes(&mut self, bytes: &mut [u8]) -> Result<(), ProtectError> {
        self.size.bytes(bytes)
    }

    fn doubles(&mut self, bytes: &mut [u8]) -> Result<(), ProtectError> {
        if self.apart.open().is_none() {
            return self.bytes(bytes);
        }
        match self.runs.last_mut().filter(|_| self.told == self.size.offset()) {
            Some(doubles) => *doubles += bytes.len() as u64,
            None => {
                self.end_exact();
                self.runs.push(bytes.len() as u64);
            }
        }
        Ok(())
    }

    fn enter(&mut self, spread: Option<Spread>) -> bool {
        self.apart.enter(spread)
    }

    fn leave(&mut self, outer: bool) {
        self.apart.leave(outer);
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

/// The seams of `part` of `state`, which is not changed, as bytes; never empty.
///
/// # Errors
/// As [`size`](super::size).
pub(crate) fn seams<P: Protect>(state: &mut P, part: StatePart) -> Result<Vec<u8>, ProtectError> {
    let mut walk = Seams { size: Size::default(), apart: Apart::to(()), runs: vec![], told: 0 };
    state.walk(part, &mut walk)?;
    walk.end_exact();
    Ok(walk.runs.iter().flat_map(|run| run.to_le_bytes()).collect())
}

/// The one string that `shard` is at these seams; none if they are not its own.
pub(crate) fn join(shard: &[u8], seams: &[u8]) -> Option<Vec<u8>> {
    let (runs, []) = seams.as_chunks() else { return None };
    let runs = || runs.iter().map(|run| u64::from_le_bytes(*run)).enumerate();
    let total = |odd: usize| {
        let mut of_kind = runs().filter(|(at, _)| at % 2 == odd);
        of_kind.try_fold(0_usize, |sum, (_, run)| sum.checked_add(usize::try_from(run).ok()?))
    };
    let strings = Strings { exact: total(0)?, doubles: total(1)? };
    if strings.exact > shard.len() || strings.doubles > shard.len() || strings.bytes() != shard.len() {
        return None;
    }
    let mut left = [&shard[..strings.exact], &shard[strings.start()..]];
    let mut joined = Vec::with_capacity(strings.exact + strings.doubles);
    for (at, run) in runs() {
        let (piece, rest) = left[at % 2].split_at(run as usize);
        joined.extend_from_slice(piece);
        left[at % 2] = rest;
    }
    Some(joined)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::region::{save, save_apart, size_apart};

    #[derive(Clone, crate::Protect)]
    struct Mixed {
        step: u8,
        x: Vec<f64>,
        #[protect(replicated)]
        same: Vec<f64>,
        rows: Vec<Vec<f64>>,
        names: Vec<String>,
        table: [f64; 70],
        beside: [f64; 64],
        #[protect(serde)]
        last: Vec<f64>,
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn what_was_taken_apart_is_joined(
            lengths in prop::collection::vec(0..200_usize, 0..6),
            x in 0..300_usize,
            names in prop::collection::vec("[a-z]{0,9}", 0..3),
        ) {
            let values = |len: usize| (0..len).map(|at| at as f64 + 0.5).collect::<Vec<_>>();
            let rows = lengths.iter().map(|len| values(*len)).collect();
            let (table, beside) = ([1.5; 70], [2.5; 64]);
            let same = values(100);
            let mut state = Mixed { step: 7, x: values(x), same, rows, names, table, beside, last: values(80) };
            let part = StatePart::Variable;
            let strings = size_apart(&mut state, part).unwrap();
            let mut shard = vec![1; strings.bytes()];
            save_apart(&mut state, part, &mut shard, strings).unwrap();
            let mut due = vec![];
            save(&mut state, part, &mut due).unwrap();
            let seams = seams(&mut state, part).unwrap();
            prop_assert_eq!(join(&shard, &seams), Some(due));
            // Those of another shard.
            prop_assert_eq!(join(&shard[..shard.len() - 8], &seams), None);
            prop_assert_eq!(join(&shard, &seams[8..]), None);
            prop_assert_eq!(join(&shard, &seams[1..]), None);
        }

        #[test]
        fn any_seams_are_followed_or_refused(shard in prop::collection::vec(any::<u8>(), 0..99), runs in prop::collection::vec(0..60_u64, 0..6), large in any::<u64>()) {
            let seams = |runs: &[u64]| runs.iter().flat_map(|run| run.to_le_bytes()).collect::<Vec<u8>>();
            let _ = join(&shard, &seams(&runs));
            let _ = join(&shard, &seams(&[&runs[..], &[large, u64::MAX]].concat()));
        }
    }
}
