//! Enums, structs that are values, and the collections: made while they are loaded.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt::Debug;
use std::ops::Range;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone, PartialEq, Field)]
struct Point {
    at: [f32; 2],
    name: String,
    #[protect(skip)]
    seen: u32,
}

#[derive(Debug, Clone, PartialEq, Field)]
struct Pair<T>(T, #[protect(serde)] Option<T>)
where
    T: Serialize + serde::de::DeserializeOwned;

/// Every kind of variant and of field; the first variant that ends is not the first.
#[derive(Debug, Clone, PartialEq, Protect)]
enum Shape<T> {
    Group { parts: Vec<Shape<T>>, label: Option<Box<Shape<T>>> },
    Nothing,
    Circle(Point, T),
    Named(#[protect(serde)] BTreeMap<String, u8>, #[protect(derived)] Vec<T>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Protect)]
#[repr(u8)]
enum Color {
    Red = 7,
    Green = 3,
}

type Everything = (
    (Vec<Shape<u16>>, Option<Color>, Box<(u8, Color)>, Pair<i64>),
    (BTreeMap<String, Vec<f64>>, HashMap<u32, Option<bool>>, BTreeSet<Color>, HashSet<String>),
    (VecDeque<(u8, String)>, Result<u8, String>, Range<u64>, Duration),
);

#[derive(Debug, Clone, PartialEq, Protect)]
struct All {
    all: Everything,
}

impl All {
    fn blank() -> Self {
        Self { all: Field::blank() }
    }
}

fn point() -> impl Strategy<Value = Point> {
    (any::<[i8; 2]>(), "\\PC{0,4}").prop_map(|(at, name)| Point { at: at.map(f32::from), name, seen: 0 })
}

fn shape() -> impl Strategy<Value = Shape<u16>> {
    let leaf = prop_oneof![
        Just(Shape::Nothing),
        (point(), any::<u16>()).prop_map(|(point, size)| Shape::Circle(point, size)),
        prop::collection::btree_map("[a-z]{0,3}", any::<u8>(), 0..3)
            .prop_map(|map| Shape::Named(map, vec![])),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        (prop::collection::vec(inner.clone(), 0..3), prop::option::of(inner.prop_map(Box::new)))
            .prop_map(|(parts, label)| Shape::Group { parts, label })
    })
}

fn color() -> impl Strategy<Value = Color> {
    prop_oneof![Just(Color::Red), Just(Color::Green)]
}

fn all() -> impl Strategy<Value = All> {
    (
        (
            prop::collection::vec(shape(), 0..4),
            prop::option::of(color()),
            (any::<u8>(), color()).prop_map(Box::new),
            (any::<i64>(), any::<Option<i64>>()).prop_map(|(a, b)| Pair(a, b)),
        ),
        (
            prop::collection::btree_map("\\PC{0,3}", prop::collection::vec(-1.0..1.0f64, 0..3), 0..4),
            prop::collection::hash_map(any::<u32>(), any::<Option<bool>>(), 0..5),
            prop::collection::btree_set(color(), 0..3),
            prop::collection::hash_set("[a-z]{0,2}", 0..5),
        ),
        (
            prop::collection::vec_deque((any::<u8>(), "[a-z]{0,2}"), 0..4),
            prop_oneof![any::<u8>().prop_map(Ok), "[a-z]{0,3}".prop_map(Err)],
            any::<Range<u64>>(),
            any::<Duration>(),
        ),
    )
        .prop_map(|all| All { all })
}

proptest! {
    #[test]
    fn values_come_back_whatever_was_there_and_give_the_same_bytes_again(value in all(), other in all()) {
        let shard = saved(&mut value.clone(), StatePart::Variable);
        for mut start in [All::blank(), other, value.clone()] {
            load(&mut start, StatePart::Variable, &shard).expect("load");
            prop_assert_eq!(&start, &value);
            prop_assert_eq!(&saved(&mut start, StatePart::Variable), &shard);
        }
    }

    #[test]
    fn a_truncation_is_an_error_wherever_it_strikes(value in all(), other in all()) {
        let shard = saved(&mut value.clone(), StatePart::Variable);
        for bytes in 0..shard.len() {
            prop_assert!(load(&mut other.clone(), StatePart::Variable, &shard[..bytes]).is_err());
        }
    }

    #[test]
    fn no_byte_that_is_flipped_makes_a_panic(value in all(), to in any::<u8>()) {
        let shard = saved(&mut value.clone(), StatePart::Variable);
        for at in 0..shard.len() {
            let mut broken = shard.clone();
            broken[at] ^= to;
            // What is loaded from such bytes is a value, if it is anything.
            let mut loaded = All::blank();
            if load(&mut loaded, StatePart::Variable, &broken).is_ok() {
                saved(&mut loaded, StatePart::Variable);
            }
        }
    }
}

/// A state of one field.
#[derive(Debug, PartialEq, Protect)]
struct One<T>(T);

/// A wrong number of items at the start of a value is always noticed.
fn refuses_wrong_lengths<T: Field + Clone + Debug>(value: &T) {
    let shard = saved(&mut One(value.clone()), StatePart::Variable);
    let items = u64::from_ne_bytes(shard[..8].try_into().expect("a length"));
    for wrong in [0, items - 1, items + 1, 2 * items, 1 << 20, 1 << 61, u64::MAX] {
        let broken = [&wrong.to_ne_bytes()[..], &shard[8..]].concat();
        assert!(load(&mut One(value.clone()), StatePart::Variable, &broken).is_err(), "{value:?} {wrong}");
        assert!(load(&mut One(T::blank()), StatePart::Variable, &broken).is_err(), "{value:?} {wrong}");
    }
}

#[test]
fn wrong_lengths_are_refused() {
    refuses_wrong_lengths(&"text".to_owned());
    refuses_wrong_lengths(&VecDeque::from([1u16, 2, 3]));
    refuses_wrong_lengths(&BTreeMap::from([(1u32, 0.5f64), (7, 0.25)]));
    refuses_wrong_lengths(&HashMap::from([(1u32, 0.5f64), (7, 0.25)]));
    refuses_wrong_lengths(&BTreeSet::from([(1u8, 2u8), (1, 3)]));
    refuses_wrong_lengths(&HashSet::from(['a', 'z']));
    refuses_wrong_lengths(&vec![Color::Red, Color::Green, Color::Red]);
    refuses_wrong_lengths(&vec![Some(Box::new((1u8, true))), None]);
}

#[test]
fn golden_bytes_of_values() {
    let bytes = |index: u32, rest: &[u8]| [&index.to_ne_bytes()[..], rest].concat();
    assert_eq!(
        saved(&mut One(Color::Green), StatePart::Variable),
        bytes(1, &[]),
        "the order of the source counts"
    );
    assert_eq!(saved(&mut Color::Red, StatePart::Variable), bytes(0, &[]));
    assert_eq!(saved(&mut Color::Red, StatePart::Constant), Vec::<u8>::new());
    let mut circle = Shape::Circle(Point { at: [0.0; 2], name: "a".into(), seen: 9 }, 0x0202u16);
    let rest = [&[0; 8][..], &1u64.to_ne_bytes(), b"a", &[2, 2]].concat();
    assert_eq!(saved(&mut circle, StatePart::Variable), bytes(2, &rest));
    // Keys in order, then values in the order of the keys.
    let expected = [&2u64.to_ne_bytes()[..], &[3, 5, 30, 50]].concat();
    assert_eq!(saved(&mut One(HashMap::from([(5u8, 50u8), (3, 30)])), StatePart::Variable), expected);
    assert_eq!(saved(&mut One(BTreeMap::from([(5u8, 50u8), (3, 30)])), StatePart::Variable), expected);
    assert_eq!(saved(&mut One(Ok::<u8, u16>(4)), StatePart::Variable), [1, 4]);
}

#[test]
fn maps_that_are_equal_give_equal_bytes() {
    let mut one: HashMap<u32, u8> = (0..100).map(|key| (key, 1)).collect();
    let mut two: HashMap<u32, u8> = (0..1000).rev().map(|key| (key, 1)).collect();
    two.retain(|key, _| *key < 100);
    assert_eq!(saved(&mut One(one.clone()), StatePart::Variable), saved(&mut One(two), StatePart::Variable));
    // What is in no order, or twice, no save has written.
    for keys in [[3u8, 3], [5, 3]] {
        let broken = [&2u64.to_ne_bytes()[..], &keys, &[1, 2]].concat();
        let error =
            load(&mut One(BTreeMap::<u8, u8>::new()), StatePart::Variable, &broken).expect_err("keys");
        assert_eq!(error.kind, ProtectErrorKind::Invalid { what: "order of keys" });
    }
    one.clear();
    load(
        &mut One(one),
        StatePart::Variable,
        &saved(&mut One(HashMap::from([(1u32, 2u8)])), StatePart::Variable),
    )
    .expect("load");
}

#[test]
fn errors_name_variant_and_field() {
    let text = |shard: &[u8]| {
        load(&mut One(Shape::<u16>::Nothing), StatePart::Variable, shard).expect_err("broken").to_string()
    };
    assert_eq!(text(&9u32.to_ne_bytes()), "field 0: not a valid variant of Shape at byte 4 of the shard");
    assert_eq!(
        text(&[&2u32.to_ne_bytes()[..], &[0; 8], &9u64.to_ne_bytes()].concat()),
        "field 0.Circle.0.name: 9 bytes wanted, 0 left at byte 20 of the shard"
    );
    let nanos = [&[0; 8][..], &1_000_000_000u32.to_ne_bytes()].concat();
    let error = load(&mut One(Duration::ZERO), StatePart::Variable, &nanos).expect_err("nanoseconds");
    assert_eq!(error.kind, ProtectErrorKind::Invalid { what: "duration" });
}

#[test]
fn a_load_keeps_what_is_skipped_as_long_as_the_variant_stays() {
    let circle = |seen| Shape::Circle(Point { at: [1.0; 2], name: String::new(), seen }, 1u16);
    let shard = saved(&mut circle(5), StatePart::Variable);
    let (mut same, mut other) = (circle(6), Shape::Nothing);
    load(&mut same, StatePart::Variable, &shard).expect("load");
    load(&mut other, StatePart::Variable, &shard).expect("load");
    assert_eq!((same, other), (circle(6), circle(0)));
}

#[derive(Debug, PartialEq, Protect)]
enum List {
    Longer(u8, Box<List>),
    End,
}

/// A list of `length` values.
fn list(length: usize) -> List {
    (0..length).fold(List::End, |list, _| List::Longer(7, Box::new(list)))
}

#[test]
fn values_in_values_end_before_the_stack_does() {
    let mut state = One(list(DEPTH_MAX - 1));
    let shard = saved(&mut state, StatePart::Variable);
    let mut loaded = One(List::End);
    load(&mut loaded, StatePart::Variable, &shard).expect("as deep as can be");
    assert_eq!(loaded, state);
    let error = size(&mut One(list(DEPTH_MAX)), StatePart::Variable).expect_err("too deep");
    assert!(error.to_string().contains("values in values, more than 128 deep"), "{error}");
    let endless = [0, 0, 0, 0, 7].repeat(1_000_000);
    let error = load(&mut loaded, StatePart::Variable, &endless).expect_err("too deep");
    assert_eq!(error.kind, ProtectErrorKind::Deep);
}

/// A mode as `$name`, for each thing that a new build may change.
macro_rules! modes {
    ($($name:ident { $($body:tt)* })+) => {$(
        mod $name {
            #[allow(dead_code)]
            #[derive(crate::Protect)]
            pub(super) enum Mode { $($body)* }
        }
    )+};
}

modes! {
    as_it_was { Cold, Warm(u8), Hot { degrees: f32 } }
    order { Warm(u8), Cold, Hot { degrees: f32 } }
    one_more { Cold, Warm(u8), Hot { degrees: f32 }, Molten }
    type_of_a_field { Cold, Warm(u8), Hot { degrees: f64 } }
    name_of_a_variant { Cool, Warm(u8), Hot { degrees: f32 } }
    one_that_is_skipped { Cold, Warm(u8), Hot { degrees: f32, #[protect(skip)] since: u64 } }
}

#[test]
fn a_fingerprint_knows_the_variants() {
    fn text<P: Protect>() -> String {
        let mut text = String::new();
        P::describe(&mut text);
        // These types differ in the modules that they are in.
        text.replace(module_path!(), "").split_once("::Mode").expect("the name").1.to_owned()
    }
    let was = text::<as_it_was::Mode>();
    let others = [
        text::<order::Mode>(),
        text::<one_more::Mode>(),
        text::<type_of_a_field::Mode>(),
        text::<name_of_a_variant::Mode>(),
    ];
    assert!(others.iter().all(|other| *other != was), "{was} {others:?}");
    assert_eq!(text::<one_that_is_skipped::Mode>(), was);
    assert_ne!(fingerprint::<One<Vec<order::Mode>>>(), fingerprint::<One<Vec<as_it_was::Mode>>>());
    assert_ne!(fingerprint::<One<Vec<u8>>>(), fingerprint::<One<Box<[u8]>>>());
    // Types that hold themselves come to an end.
    assert_ne!(fingerprint::<One<List>>(), fingerprint::<One<Shape<u8>>>());
}

/// A value that loses what it skips would be seen here.
#[derive(Debug, PartialEq, Protect)]
struct Cached {
    x: Vec<f64>,
    #[protect(skip)]
    cache: Vec<f64>,
    #[protect(derived)]
    plan: Option<u8>,
}

#[test]
fn skipped_and_derived_fields_are_in_no_part_and_stay_as_they_are() {
    let mut state = Cached { x: vec![1.0], cache: vec![2.0], plan: Some(3) };
    assert_eq!(saved(&mut state, StatePart::Constant), Vec::<u8>::new());
    let shard = saved(&mut state, StatePart::Variable);
    assert_eq!(shard.len(), 16);
    let mut other = Cached { x: vec![], cache: vec![9.0], plan: None };
    load(&mut other, StatePart::Variable, &shard).expect("load");
    assert_eq!(other, Cached { x: vec![1.0], cache: vec![9.0], plan: None });
}
