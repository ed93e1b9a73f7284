//! What ranks tell each other for the journals of messages ([`super::Journal`]) as bytes: numbers of 64 bits, little endian.

use std::collections::{BTreeMap, BTreeSet};

use super::{Account, Determinant, Determined, Has, Luggage, Outcome};

/// Words of a determinant.
const WORDS: usize = 6;

/// What goes before a message.
pub fn write_luggage(luggage: &Luggage) -> Vec<u8> {
    let mut words = vec![luggage.got, luggage.safe];
    put_determinants(&luggage.determinants, &mut words);
    bytes(&words)
}

/// Reads what [`write_luggage`] wrote; none if that is something else.
pub fn read_luggage(bytes: &[u8]) -> Option<Luggage> {
    let mut words = Words::of(bytes)?;
    let [got, safe] = words.take()?;
    let determinants = take_determinants(&mut words)?;
    words.is_over().then_some(Luggage { determinants, got, safe })
}

/// What a rank tells another after a loss.
pub fn write_account(account: &Account) -> Vec<u8> {
    let mut words = vec![account.has.len() as u64];
    for ((context, tag), Has { next, early }) in &account.has {
        words.extend([u64::from(*context), u64::from(*tag), *next, early.len() as u64]);
        words.extend(early);
    }
    put_determinants(&account.determinants, &mut words);
    bytes(&words)
}

/// Reads what [`write_account`] wrote; none if that is something else.
pub fn read_account(bytes: &[u8]) -> Option<Account> {
    let mut words = Words::of(bytes)?;
    let mut has = BTreeMap::new();
    for _ in 0..words.one()? {
        let [context, tag, next, count] = words.take()?;
        let early = (0..count).map(|_| words.one()).collect::<Option<BTreeSet<u64>>>()?;
        has.insert((narrow(context)?, narrow(tag)?), Has { next, early });
    }
    let determinants = take_determinants(&mut words)?;
    words.is_over().then_some(Account { has, determinants })
}

fn put_determinants(determinants: &[Determinant], words: &mut Vec<u64>) {
    words.push(determinants.len() as u64);
    for Determinant { owner, number, line, what } in determinants {
        let pair = |(one, other): (u32, u32)| u64::from(one) << 32 | u64::from(other);
        let [kind, receive, value] = match *what {
            Determined::Came(Outcome::Found(None)) => [0, 0, 0],
            Determined::Came(Outcome::Found(Some(found))) => [1, 0, pair(found)],
            Determined::Came(Outcome::Chose(which)) => [2, 0, u64::from(which)],
            Determined::Took(receive, taken) => [3, receive, pair(taken)],
        };
        words.extend([u64::from(*owner), *number, *line, kind, receive, value]);
    }
}

fn take_determinants(words: &mut Words<'_>) -> Option<Vec<Determinant>> {
    let count = usize::try_from(words.one()?).ok()?;
    // What is not there is not asked for.
    (count <= words.0.len() / WORDS).then_some(())?;
    let pair = |word: u64| ((word >> 32) as u32, word as u32);
    let determinant = |words: &mut Words<'_>| {
        let [owner, number, line, kind, receive, value] = words.take()?;
        let what = match (kind, receive, value) {
            (0, 0, 0) => Determined::Came(Outcome::Found(None)),
            (1, 0, found) => Determined::Came(Outcome::Found(Some(pair(found)))),
            (2, 0, which) => Determined::Came(Outcome::Chose(narrow(which)?)),
            (3, receive, taken) => Determined::Took(receive, pair(taken)),
            _ => return None,
        };
        Some(Determinant { owner: narrow(owner)?, number, line, what })
    };
    (0..count).map(|_| determinant(words)).collect()
}

fn narrow(word: u64) -> Option<u32> {
    u32::try_from(word).ok()
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// What is left to read.
struct Words<'a>(&'a [[u8; 8]]);

impl<'a> Words<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks();
        rest.is_empty().then_some(Self(words))
    }

    fn one(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    fn take<const COUNT: usize>(&mut self) -> Option<[u64; COUNT]> {
        let (words, rest) = self.0.split_first_chunk::<COUNT>()?;
        self.0 = rest;
        Some(words.map(u64::from_le_bytes))
    }

    fn is_over(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn determinants()(
            all in proptest::collection::vec((any::<u32>(), any::<[u64; 3]>(), 0..4_u32, any::<(u32, u32)>()), 0..4),
        ) -> Vec<Determinant> {
            let of = |(owner, [number, line, receive], kind, (one, other)): (u32, [u64; 3], u32, (u32, u32))| {
                let what = match kind {
                    0 => Determined::Came(Outcome::Found(None)),
                    1 => Determined::Came(Outcome::Found(Some((one, other)))),
                    2 => Determined::Came(Outcome::Chose(one)),
                    _ => Determined::Took(receive, (one, other)),
                };
                Determinant { owner, number, line, what }
            };
            all.into_iter().map(of).collect()
        }
    }

    proptest! {
        #[test]
        fn luggage_comes_as_it_left(determinants in determinants(), got: u64, safe: u64, cut in any::<prop::sample::Index>()) {
            let luggage = Luggage { determinants, got, safe };
            let bytes = write_luggage(&luggage);
            prop_assert_eq!(read_luggage(&bytes), Some(luggage));
            prop_assert_eq!(read_luggage(&bytes[..cut.index(bytes.len())]), None);
        }

        #[test]
        fn an_account_comes_as_it_left(
            has in proptest::collection::btree_map(any::<(u32, u32)>(), (any::<u64>(), any::<BTreeSet<u64>>()), 0..4),
            determinants in determinants(),
            cut in any::<prop::sample::Index>(),
        ) {
            let has = has.into_iter().map(|(key, (next, early))| (key, Has { next, early })).collect();
            let account = Account { has, determinants };
            let bytes = write_account(&account);
            prop_assert_eq!(read_account(&bytes), Some(account));
            prop_assert_eq!(read_account(&bytes[..cut.index(bytes.len())]), None);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = (read_luggage(&bytes), read_account(&bytes));
        }
    }
}
