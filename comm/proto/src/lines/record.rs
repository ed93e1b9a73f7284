//! What belongs to a line as bytes, to be kept with the state of its rank: numbers of 32 bits, little endian, with the bytes of messages between them.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;

use super::{Log, Outcome, Signature, Swallowed};
use crate::matching::Envelope;
use crate::stamp::Mark;

/// Writes a log behind what is in `into`; `bytes` says what a message says.
pub fn write<B>(log: &Log<B>, bytes: impl Fn(&B) -> &[u8], into: &mut Vec<u8>) {
    let word = |value: u32, into: &mut Vec<u8>| into.extend(value.to_le_bytes());
    [log.line, log.chosen, log.determined].into_iter().for_each(|value| into.extend(value.to_le_bytes()));
    word(count(log.early.len()), into);
    for (Signature { peer, context, tag }, numbers) in &log.early {
        [*peer, *context, *tag, count(numbers.len())].into_iter().for_each(|value| word(value, into));
        numbers.iter().for_each(|number| word(*number, into));
    }
    word(count(log.outcomes.len()), into);
    for outcome in &log.outcomes {
        let words = match *outcome {
            Outcome::Found(None) => [0, 0, 0],
            Outcome::Found(Some((source, tag))) => [1, source, tag],
            Outcome::Chose(which) => [2, which, 0],
        };
        words.into_iter().for_each(|value| word(value, into));
    }
    word(count(log.choices.len()), into);
    for (number, (source, tag)) in &log.choices {
        into.extend(number.to_le_bytes());
        [*source, *tag].into_iter().for_each(|value| word(value, into));
    }
    word(count(log.repeated.len()), into);
    for (Signature { peer, context, tag }, count) in &log.repeated {
        [*peer, *context, *tag, *count].into_iter().for_each(|value| word(value, into));
    }
    word(count(log.late.len()), into);
    for (Envelope { context, source, tag, .. }, message) in &log.late {
        let message = bytes(message);
        [*context, *source, *tag].into_iter().for_each(|value| word(value, into));
        into.extend((message.len() as u64).to_le_bytes());
        into.extend_from_slice(message);
    }
}

/// Reads what [`write()`] wrote; none if that is something else.
pub fn read(bytes: &[u8]) -> Option<Log<Vec<u8>>> {
    let mut left = bytes;
    let left = &mut left;
    let (line, chosen, determined) = (long(left)?, long(left)?, long(left)?);
    let mut early = Swallowed::new();
    for _ in 0..word(left)? {
        let [peer, context, tag] = words(left)?;
        let numbers = (0..word(left)?).map(|_| word(left)).collect::<Option<_>>()?;
        early.insert(Signature { peer, context, tag }, numbers);
    }
    let mut outcomes = VecDeque::new();
    for _ in 0..word(left)? {
        outcomes.push_back(match words(left)? {
            [0, 0, 0] => Outcome::Found(None),
            [1, source, tag] => Outcome::Found(Some((source, tag))),
            [2, which, 0] => Outcome::Chose(which),
            _ => return None,
        });
    }
    let mut choices = BTreeMap::new();
    for _ in 0..word(left)? {
        let number = long(left)?;
        let [source, tag] = words(left)?;
        choices.insert(number, (source, tag));
    }
    let mut repeated = BTreeMap::new();
    for _ in 0..word(left)? {
        let [peer, context, tag, count] = words(left)?;
        // Nobody writes that nothing is repeated, and it would never be over.
        repeated.insert(Signature { peer, context, tag }, NonZeroU32::new(count)?.get());
    }
    let mut late = vec![];
    for _ in 0..word(left)? {
        let [context, source, tag] = words(left)?;
        let length = long(left)?;
        let (message, rest) = left.split_at_checked(usize::try_from(length).ok()?)?;
        *left = rest;
        late.push((Envelope { context, source, tag, mark: Mark::PUT_BACK, length }, message.to_vec()));
    }
    left.is_empty().then_some(Log { line, chosen, determined, late, outcomes, choices, early, repeated })
}

fn count(count: usize) -> u32 {
    u32::try_from(count).expect("less than memory can hold")
}

fn word(left: &mut &[u8]) -> Option<u32> {
    let (word, rest) = left.split_first_chunk()?;
    *left = rest;
    Some(u32::from_le_bytes(*word))
}

fn words<const COUNT: usize>(left: &mut &[u8]) -> Option<[u32; COUNT]> {
    let mut words = [0; COUNT];
    for each in &mut words {
        *each = word(left)?;
    }
    Some(words)
}

fn long(left: &mut &[u8]) -> Option<u64> {
    let (word, rest) = left.split_first_chunk()?;
    *left = rest;
    Some(u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn logs()(
            line: u64, chosen: u64, determined: u64,
            late in proptest::collection::vec((any::<[u32; 3]>(), any::<Vec<u8>>()), 0..4),
            outcomes in proptest::collection::vec((0..3_u32, any::<u32>(), any::<u32>()), 0..4),
            choices: BTreeMap<u64, (u32, u32)>,
            repeated in proptest::collection::btree_map(any::<(u32, u32, u32)>(), 1..=u32::MAX, 0..4),
            early in proptest::collection::btree_map(any::<(u32, u32, u32)>(), any::<std::collections::BTreeSet<u32>>(), 0..4),
        ) -> Log<Vec<u8>> {
            let message = |([context, source, tag], bytes): ([u32; 3], Vec<u8>)| {
                (Envelope { context, source, tag, mark: Mark::PUT_BACK, length: bytes.len() as u64 }, bytes)
            };
            let outcome = |(kind, source, tag)| match kind {
                0 => Outcome::Found(None),
                1 => Outcome::Found(Some((source, tag))),
                _ => Outcome::Chose(source),
            };
            let signature = |((peer, context, tag), numbers)| (Signature { peer, context, tag }, numbers);
            Log {
                line,
                chosen,
                determined,
                late: late.into_iter().map(message).collect(),
                outcomes: outcomes.into_iter().map(outcome).collect(),
                choices,
                early: early.into_iter().map(signature).collect(),
                repeated: repeated
                    .into_iter()
                    .map(|((peer, context, tag), count)| (Signature { peer, context, tag }, count))
                    .collect(),
            }
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(log in logs(), cut in any::<prop::sample::Index>()) {
            let mut bytes = vec![];
            write(&log, |bytes| bytes, &mut bytes);
            prop_assert_eq!(read(&bytes), Some(log));
            prop_assert_eq!(read(&bytes[..cut.index(bytes.len())]), None);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            if let Some(log) = read(&bytes) {
                let mut again = vec![];
                write(&log, |bytes| bytes, &mut again);
                prop_assert_eq!(read(&again), Some(log));
            }
        }
    }
}
