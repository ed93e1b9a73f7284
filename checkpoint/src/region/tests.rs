//! Round trips, broken bytes, and the derive as users see it.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::*;
use crate::changes::Use;
use crate::crc::BLOCK;

mod apart;
mod values;

mod as_it_was {
    #[derive(crate::Protect)]
    pub(super) struct S {
        pub(super) _x: Vec<f64>,
        pub(super) _y: u32,
    }
}

/// A module for each thing that a new build may change.
macro_rules! changed {
    ($($name:ident { $($body:tt)* })+) => {$(
        mod $name {
            #[allow(dead_code)]
            #[derive(crate::Protect)]
            pub(super) struct S { $($body)* }
        }
    )+};
}

changed! {
    order { _y: u32, _x: Vec<f64> }
    type_of_a_field { _x: Vec<f32>, _y: u32 }
    role { #[protect(constant)] _x: Vec<f64>, _y: u32 }
    by_serde { #[protect(serde)] _x: Vec<f64>, _y: u32 }
    name_of_a_field { _z: Vec<f64>, _y: u32 }
    one_more { _x: Vec<f64>, _y: u32, _z: u8 }
    one_more_that_is_derived { _x: Vec<f64>, _y: u32, #[protect(derived)] _z: u8 }
}

#[test]
fn a_fingerprint_tells_what_the_bytes_mean() {
    let was = fingerprint::<as_it_was::S>();
    assert_eq!(was, fingerprint::<as_it_was::S>());
    assert_eq!(was, fingerprint::<one_more_that_is_derived::S>(), "derived fields are in no shard");
    let others = [
        fingerprint::<order::S>(),
        fingerprint::<type_of_a_field::S>(),
        fingerprint::<role::S>(),
        fingerprint::<by_serde::S>(),
        fingerprint::<name_of_a_field::S>(),
        fingerprint::<one_more::S>(),
        fingerprint::<Generic<'static, u8, 3>>(),
        fingerprint::<Generic<'static, u8, 4>>(),
        fingerprint::<Generic<'static, u16, 3>>(),
        fingerprint::<()>(),
    ];
    let all: std::collections::BTreeSet<u64> = others.into_iter().chain([was]).collect();
    assert_eq!(all.len(), others.len() + 1);
    let mut text = String::new();
    State::describe(&mut text);
    assert!(text.contains("{ Inner scale: Constant f32 of 4 bytes,"), "nested states are described: {text}");
}

/// Pieces of all sizes around those that are copied at once.
#[derive(Debug, Clone, Default, PartialEq, Protect)]
struct Long {
    number: u64,
    first: Vec<u8>,
    #[protect(serde)]
    text: String,
    second: Vec<u64>,
    last: u8,
}

#[test]
fn the_checksum_is_that_of_the_shard_and_loads_agree_whether_they_spare_or_not() {
    for (first, second) in [(0, 0), (1, 70_000), (262_135, 1), (262_144, 32_768), (600_001, 100_003)] {
        let mut state = Long {
            number: 7,
            first: (0..first).map(|at| at as u8).collect(),
            text: "x".repeat(first % 1000),
            second: (0..second).map(|at| at * 0x9e37_79b9).collect(),
            last: 3,
        };
        let mut shard = vec![];
        let crc = save_with_crc(&mut state, StatePart::Variable, &mut shard).unwrap();
        assert_eq!(crc, crate::ShardMeta::of(&shard).crc, "{first} {second}");
        // A state that differs in places.
        let mut other = state.clone();
        other.number = 8;
        other.first.iter_mut().skip(5).step_by(9000).for_each(|byte| *byte ^= 1);
        other.second.truncate(second as usize / 2);
        for (mut start, spares) in [(Long::default(), false), (other.clone(), false), (other, true)] {
            let (seen, loaded) = load_with_crc(&mut start, StatePart::Variable, &shard, spares, &[]);
            assert_eq!((seen, loaded), (crc, Ok(())));
            assert!(start == state, "{first} {second} {spares}");
        }
        // Broken bytes have another checksum, wherever the load gives up.
        for at in [0, 8, shard.len() / 2, shard.len() - 1] {
            let mut broken = shard.clone();
            broken[at] ^= 0x80;
            assert_ne!(
                load_with_crc(&mut Long::default(), StatePart::Variable, &broken, false, &[]).0,
                crc,
                "{at}"
            );
        }
    }
}

#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Default, bytemuck::Pod, bytemuck::Zeroable)]
struct Particle {
    position: [f64; 3],
    mass: f64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
struct Nothing;

crate::plain!(Particle, Nothing);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Mode {
    Warm,
    Hot { degrees: f32, tags: Vec<String> },
}

#[derive(Debug, Clone, PartialEq, Protect)]
struct Inner {
    #[protect(constant)]
    scale: f32,
    label: String,
}

#[derive(Debug, Clone, PartialEq, Protect)]
struct State {
    #[protect(constant)]
    rows: Vec<u32>,
    #[protect(constant, serde)]
    names: BTreeMap<String, u64>,
    x: Vec<f64>,
    #[protect(variable)]
    fixed: [u16; 5],
    frozen: Box<[i32]>,
    particles: Vec<Particle>,
    ragged: Vec<Vec<u8>>,
    pairs: Vec<(u64, f32)>,
    empty: Vec<[f64; 0]>,
    flags: Vec<bool>,
    best: Option<(char, Vec<u32>)>,
    #[protect(serde)]
    mode: Mode,
    #[protect(nested)]
    inner: Inner,
    #[protect(derived)]
    cache: Vec<f64>,
}

fn blank() -> State {
    State {
        rows: vec![],
        names: BTreeMap::new(),
        x: vec![9.0; 3],
        fixed: [0; 5],
        frozen: Box::new([]),
        particles: vec![],
        ragged: vec![vec![1, 2], vec![3], vec![4]],
        pairs: vec![],
        empty: vec![],
        flags: vec![],
        best: Some(('x', vec![1])),
        mode: Mode::Warm,
        inner: Inner { scale: 0.0, label: "old".into() },
        cache: vec![],
    }
}

prop_compose! {
    fn arbitrary_state()(
        (rows, names, x, fixed) in (
            prop::collection::vec(any::<u32>(), 0..9),
            prop::collection::btree_map("[a-z]{0,4}", any::<u64>(), 0..4),
            prop::collection::vec(-1e9..1e9f64, 0..40),
            any::<[u16; 5]>(),
        ),
        (frozen, masses, ragged, pairs) in (
            prop::collection::vec(any::<i32>(), 0..5),
            prop::collection::vec(0.0..1.0f64, 0..4),
            prop::collection::vec(prop::collection::vec(any::<u8>(), 0..5), 0..5),
            prop::collection::vec((any::<u64>(), -1.0..1.0f32), 0..5),
        ),
        (empties, flags, best, tags) in (
            0..4usize,
            prop::collection::vec(any::<bool>(), 0..5),
            prop::option::of((any::<char>(), prop::collection::vec(any::<u32>(), 0..3))),
            prop::option::of(prop::collection::vec("\\PC{0,3}", 0..3)),
        ),
        (scale, label, cache) in (-1.0..1.0f32, "\\PC{0,6}", prop::collection::vec(-1.0..1.0f64, 0..3)),
    ) -> State {
        State {
            rows, names, x, fixed, frozen: frozen.into(), ragged, pairs, flags, best, cache,
            particles: masses.iter().map(|&mass| Particle { position: [mass; 3], mass }).collect(),
            empty: vec![[]; empties],
            mode: tags.map_or(Mode::Warm, |tags| Mode::Hot { degrees: scale, tags }),
            inner: Inner { scale, label },
        }
    }
}

fn saved<P: Protect>(state: &mut P, part: StatePart) -> Vec<u8> {
    let mut shard = Vec::new();
    save(state, part, &mut shard).expect("save");
    assert_eq!(shard.len(), size(state, part).expect("size"));
    shard
}

proptest! {
    #[test]
    fn round_trip(state in arbitrary_state()) {
        let mut source = state.clone();
        let constant = saved(&mut source, StatePart::Constant);
        let variable = saved(&mut source, StatePart::Variable);
        prop_assert_eq!(&source, &state);

        let mut target = blank();
        load(&mut target, StatePart::Variable, &variable).expect("load");
        prop_assert!(target.rows.is_empty() && target.inner.scale == 0.0, "constants are untouched");
        load(&mut target, StatePart::Constant, &constant).expect("load");
        prop_assert!(target.cache.is_empty(), "derived fields are in no part");
        target.cache = source.cache.clone();
        prop_assert_eq!(target, source);
    }

    #[test]
    fn every_truncation_is_an_error_and_so_is_every_extension(state in arbitrary_state()) {
        let mut state = state;
        let shard = saved(&mut state, StatePart::Variable);
        for bytes in 0..shard.len() {
            prop_assert!(load(&mut blank(), StatePart::Variable, &shard[..bytes]).is_err());
        }
        let long = [&shard[..], &[0]].concat();
        let error = load(&mut blank(), StatePart::Variable, &long).expect_err("trailing");
        prop_assert_eq!(error.kind, ProtectErrorKind::Trailing { left: 1 });
    }

    #[test]
    fn random_bytes_never_panic(shard in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = load(&mut blank(), StatePart::Variable, &shard);
        let _ = load(&mut blank(), StatePart::Constant, &shard);
    }

    #[test]
    fn flipped_bytes_never_panic(state in arbitrary_state(), at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let mut state = state;
        let mut shard = saved(&mut state, StatePart::Variable);
        let at = at.index(shard.len());
        shard[at] = to;
        let _ = load(&mut blank(), StatePart::Variable, &shard);
    }
}

#[derive(Debug, PartialEq, Protect)]
struct Small {
    x: Vec<f64>,
    #[protect(nested)]
    inner: Inner,
}

#[test]
fn errors_name_field_offset_and_bytes() {
    let mut state = Small { x: vec![1.0, 2.0], inner: Inner { scale: 1.0, label: "ab".into() } };
    let shard = saved(&mut state, StatePart::Variable);
    assert_eq!(shard.len(), 8 + 16 + 8 + 2);
    let text = |shard: &[u8], state: &mut Small| {
        load(state, StatePart::Variable, shard).expect_err("broken").to_string()
    };
    assert_eq!(text(&shard[..20], &mut state), "field x: 16 bytes wanted, 12 left at byte 8 of the shard");
    assert_eq!(
        text(&shard[..33], &mut state),
        "field inner.label: 2 bytes wanted, 1 left at byte 32 of the shard"
    );
    let mut broken = shard.clone();
    broken[32] = 0xff;
    assert_eq!(
        text(&broken, &mut state),
        "field inner.label: not a valid UTF-8 string at byte 34 of the shard"
    );
    assert_eq!(
        text(&[&shard[..], &[1, 2]].concat(), &mut state),
        "2 bytes left over at the end at byte 34 of the shard"
    );
}

#[test]
fn a_bad_length_takes_no_memory_and_no_time() {
    for items in [u64::MAX, u64::MAX / 8, 1 << 60, 1 << 40] {
        let shard = [&items.to_ne_bytes()[..], &[0; 64]].concat();
        #[derive(Protect)]
        struct One<T>(T);
        fn refuse<T: Field>(shard: &[u8]) {
            let error = load(&mut One(T::blank()), StatePart::Variable, shard).expect_err("too long");
            assert!(matches!(error.kind, ProtectErrorKind::Short { .. }), "{error}");
            assert_eq!(error.field, "0");
        }
        refuse::<Vec<f64>>(&shard);
        refuse::<Box<[Particle]>>(&shard);
        refuse::<Vec<Vec<f64>>>(&[&shard[..], &shard[..]].concat());
        refuse::<Vec<[f64; 0]>>(&shard);
        refuse::<Vec<Nothing>>(&shard);
        refuse::<Vec<PhantomData<u8>>>(&shard);
        refuse::<Vec<Option<[f64; 1000]>>>(&shard);
        refuse::<String>(&shard);
        #[cfg(feature = "nalgebra")]
        refuse::<::nalgebra::DVector<f64>>(&shard);
    }
}

#[derive(Debug, PartialEq, Protect)]
struct Generic<'a, T, const N: usize>
where
    T: Copy,
{
    many: Vec<T>,
    #[protect(constant)]
    few: [T; N],
    #[protect(derived)]
    borrowed: Option<&'a str>,
}

#[derive(Debug, PartialEq, Protect)]
struct Tuple(#[protect(constant)] u8, i64, #[protect(serde)] Result<u8, String>);

#[derive(Debug, PartialEq, Protect)]
struct Unit;

/// Parameters with the names that derived code might use, raw field names, and all three kinds of bounds.
#[derive(Debug, PartialEq, Protect)]
struct Awkward<W, P, S> {
    r#type: Option<W>,
    #[protect(nested)]
    part: P,
    #[protect(constant, serde)]
    walk: Vec<S>,
}

#[test]
fn awkward_names_derive() {
    let new = |a, b: &str, c| Awkward { r#type: a, part: Tuple(1, 2, Err(b.into())), walk: c };
    let mut state = new(Some(3u8), "x", vec!["s".to_owned()]);
    let (constant, variable) =
        (saved(&mut state, StatePart::Constant), saved(&mut state, StatePart::Variable));
    let mut target = new(None, "", vec![]);
    load(&mut target, StatePart::Constant, &constant).expect("load");
    load(&mut target, StatePart::Variable, &variable).expect("load");
    assert_eq!(target, state);
    assert_eq!(load(&mut target, StatePart::Variable, &[]).expect_err("empty").field, "type");
    assert_eq!(load(&mut target, StatePart::Variable, &[0]).expect_err("short").field, "part.1");
    let error = load(&mut target, StatePart::Constant, &[0]).expect_err("short");
    assert_eq!((error.field.as_str(), error.offset), ("walk", 1));
}

#[test]
fn generics_tuples_and_units_derive() {
    let mut state = Generic { many: vec![1u32, 2], few: [3, 4, 5], borrowed: Some("kept") };
    let shards = [saved(&mut state, StatePart::Constant), saved(&mut state, StatePart::Variable)];
    assert_eq!([shards[0].len(), shards[1].len()], [12, 16]);
    let mut target = Generic { many: vec![], few: [0; 3], borrowed: Some("kept") };
    load(&mut target, StatePart::Constant, &shards[0]).expect("load");
    load(&mut target, StatePart::Variable, &shards[1]).expect("load");
    assert_eq!(target, state);

    let mut tuple = Tuple(1, -2, Err("no".into()));
    let shard = saved(&mut tuple, StatePart::Variable);
    let mut target = Tuple(7, 0, Ok(0));
    load(&mut target, StatePart::Variable, &shard).expect("load");
    assert_eq!(target, Tuple(7, -2, Err("no".into())));

    assert_eq!(saved(&mut Unit, StatePart::Variable), saved(&mut (), StatePart::Constant));
}

#[test]
fn values_without_bytes_keep_their_number() {
    #[derive(Debug, PartialEq, Protect)]
    struct Empty(Vec<Nothing>, Vec<[f64; 0]>, Vec<[[u8; 2]; 2]>, [Nothing; 3], (), PhantomData<u8>);
    let mut state =
        Empty(vec![Nothing; 3], vec![[]; 2], vec![[[1, 2], [3, 4]]; 2], [Nothing; 3], (), PhantomData);
    let shard = saved(&mut state, StatePart::Variable);
    assert_eq!(shard.len(), 8 + 3 + 8 + 2 + 8 + 8);
    let mut target = Empty(vec![], vec![[]; 9], vec![], [Nothing; 3], (), PhantomData);
    load(&mut target, StatePart::Variable, &shard).expect("load");
    assert_eq!(target, state);
}

#[test]
fn golden_bytes() {
    let mut state = Small { x: vec![1.0], inner: Inner { scale: 0.5, label: "é".into() } };
    let expected =
        [&1u64.to_ne_bytes()[..], &1.0f64.to_ne_bytes(), &2u64.to_ne_bytes(), "é".as_bytes()].concat();
    assert_eq!(saved(&mut state, StatePart::Variable), expected);
    assert_eq!(saved(&mut state, StatePart::Constant), 0.5f32.to_ne_bytes());
}

#[test]
fn save_reuses_the_buffer() {
    let mut state = Small { x: vec![1.0; 100], inner: Inner { scale: 1.0, label: String::new() } };
    let mut shard = Vec::new();
    save(&mut state, StatePart::Variable, &mut shard).expect("save");
    let (start, capacity) = (shard.as_ptr(), shard.capacity());
    state.x.truncate(3);
    save(&mut state, StatePart::Variable, &mut shard).expect("save");
    assert_eq!((shard.as_ptr(), shard.capacity(), shard.len()), (start, capacity, 8 + 24 + 8));

    let short = save_into(&mut state, StatePart::Variable, &mut shard[..30]).expect_err("too short");
    assert_eq!(short.kind, ProtectErrorKind::Short { wanted: 24, left: 22 });
    shard.push(0);
    let long = save_into(&mut state, StatePart::Variable, &mut shard).expect_err("too long");
    assert_eq!(long.kind, ProtectErrorKind::Trailing { left: 1 });
}

#[cfg(feature = "nalgebra")]
#[test]
fn nalgebra_round_trip() {
    use ::nalgebra::{DMatrix, DVector, SMatrix};
    #[derive(Debug, Clone, PartialEq, Protect)]
    struct Dense {
        v: DVector<f64>,
        m: DMatrix<f32>,
        e: DMatrix<f64>,
        fixed: Vec<SMatrix<f32, 2, 3>>,
    }
    let mut state = Dense {
        v: DVector::from_fn(5, |i, _| i as f64),
        m: DMatrix::from_fn(2, 3, |i, j| (10 * i + j) as f32),
        e: DMatrix::zeros(0, 4),
        fixed: vec![SMatrix::from_fn(|i, j| (10 * i + j) as f32); 2],
    };
    let shard = saved(&mut state, StatePart::Variable);
    let mut target =
        Dense { v: DVector::zeros(1), m: DMatrix::zeros(3, 2), e: DMatrix::zeros(0, 0), fixed: vec![] };
    load(&mut target, StatePart::Variable, &shard).expect("load");
    assert_eq!(target, state);
    for bytes in 0..shard.len() {
        assert!(load(&mut target.clone(), StatePart::Variable, &shard[..bytes]).is_err());
    }
    let mut broken = shard.clone();
    broken[48] = 9; // the rows of `m`
    let error = load(&mut target, StatePart::Variable, &broken).expect_err("shape");
    assert_eq!(error.kind, ProtectErrorKind::Invalid { what: "shape of a matrix" });
}

#[derive(Debug, Clone, Default, PartialEq, Protect)]
struct Told {
    name: String,
    first: Tracked<u32>,
    number: u64,
    second: Tracked<f64>,
    rest: Vec<u8>,
}

/// A copy with what was noted of it.
#[derive(Clone, Default)]
struct Taken {
    shard: Vec<u8>,
    crc: u64,
    notes: Vec<Note>,
}

impl Taken {
    /// The copy is overwritten, by what has changed if that is `told`.
    fn renew(&mut self, state: &mut Told, told: bool) {
        let part = StatePart::Variable;
        let len = size(state, part).unwrap();
        let mut changes = (told && self.shard.len() == len).then(|| Changes::new(len, usize::MAX, vec![]));
        let before = self.shard.clone();
        self.shard.resize(len, 0);
        self.crc = save_with_notes(state, part, &mut self.shard, changes.as_mut(), &mut self.notes).unwrap();
        let Some(changes) = changes else { return };
        let (delta, of_use) = changes.finish(crate::ShardMeta::of(&before).crc);
        assert_eq!(of_use, Use::Whole);
        let mut patched = before;
        for run in delta.pages.runs(&(0..len)) {
            let pairs = patched[run.at..][..run.len].iter_mut().zip(&delta.packed[run.from..]);
            pairs.for_each(|(byte, delta)| *byte ^= delta);
        }
        assert!(patched == self.shard, "what has changed is all that has");
    }

    /// The state goes back to it.
    fn load(&self, state: &mut Told) -> (u64, Result<(), ProtectError>) {
        load_with_crc(state, StatePart::Variable, &self.shard, true, &self.notes)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Two copies in turn, as checkpoints are, and states that go back to either, under anything that a program may do in between.
    #[test]
    fn what_is_told_is_as_good_as_a_look_at_everything(
        lens in [0..100_000_usize, 0..40_000],
        name in 0..3000_usize,
        deeds in prop::collection::vec((0..9_u8, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..40),
    ) {
        let mut state = Told {
            name: "n".repeat(name),
            first: Tracked::from((0..lens[0] as u32).collect::<Vec<_>>()),
            number: 1,
            second: Tracked::from(vec![0.5; lens[1]]),
            rest: vec![1; 300_000],
        };
        let (mut copies, mut due) = ([Taken::default(), Taken::default()], [Told::default(), Told::default()]);
        for (deed, one, other) in deeds {
            let at = usize::from(one.index(2) == 0);
            match deed {
                0 | 1 => {
                    copies[at].renew(&mut state, deed == 0);
                    due[at] = state.clone();
                    prop_assert_eq!(copies[at].crc, crate::ShardMeta::of(&copies[at].shard).crc);
                }
                2 | 3 if !copies[at].shard.is_empty() => {
                    prop_assert_eq!(copies[at].load(&mut state), (copies[at].crc, Ok(())));
                    prop_assert!(state == due[at]);
                }
                4 => state.first = Tracked::from(vec![7; other.index(lens[0] + 1)]),
                5 => {
                    let copy = state.second.clone();
                    state.second.write_all().fill(3.25);
                    state.second = copy;
                }
                6 if !state.second.is_empty() => {
                    let at = one.index(state.second.len());
                    state.second.set(at, other.index(1000) as f64);
                }
                _ => {
                    let len = state.first.len();
                    let (one, other) = (one.index(len + 1), other.index(len + 1));
                    state.first.write(one.min(other)..one.max(other)).iter_mut().for_each(|word| *word ^= 5);
                    state.number += 1;
                }
            }
        }
    }
}

#[test]
fn a_state_goes_back_by_what_was_written_alone() {
    let words = 10 * BLOCK / size_of::<u32>();
    let mut state = Told { first: Tracked::from(vec![1; words]), ..Told::default() };
    let mut copy = Taken::default();
    copy.renew(&mut state, false);
    let due = state.clone();
    state.first.set(words / 2, 9);
    // Behind its back: only where nothing was written this is not looked at.
    let unseen = copy.shard.len() / 5;
    copy.shard[unseen] ^= 1;
    assert_eq!(copy.load(&mut state), (copy.crc, Ok(())));
    assert!(state == due);
    state.first.set(words / 2, 9);
    let seen = copy.notes[0].at + 4 * (words / 2);
    copy.shard[seen] ^= 1;
    assert_ne!(copy.load(&mut state).0, copy.crc, "what is taken is checked");
    // One of another array is of no use.
    copy.shard[seen] ^= 1;
    state.first = state.first.clone();
    assert_ne!(copy.load(&mut state).0, copy.crc, "all of it was looked at");
}
