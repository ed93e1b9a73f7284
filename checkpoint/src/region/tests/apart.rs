//! Two strings in one shard, of all kinds of fields.

use super::*;
use crate::region::apart::{ApartCrcs, DOUBLES_MIN};
use crate::store::ShardMeta;

#[derive(Debug, Clone, Default, PartialEq, Protect)]
struct Solver {
    #[protect(distributed)]
    x: Vec<f64>,
    #[protect(replicated)]
    norms: Vec<f64>,
    residual: f64,
}

#[derive(Debug, Clone, Default, PartialEq, Protect)]
struct Mixed {
    #[protect(constant)]
    matrix: Vec<f64>,
    step: u32,
    #[protect(nested)]
    own: Solver,
    #[protect(nested, replicated)]
    same: Solver,
    points: Vec<[f64; 3]>,
    single: Vec<f32>,
    counts: Vec<u64>,
    #[protect(serde)]
    text: Vec<f64>,
    ragged: Vec<Vec<f64>>,
    maybe: Option<Box<[f64]>>,
    map: BTreeMap<u32, Vec<f64>>,
    particles: Vec<Particle>,
}

fn doubles(most: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-1e300..1e300f64, 0..most)
}

fn solver() -> impl Strategy<Value = Solver> {
    (doubles(200), doubles(200), any::<i32>()).prop_map(|(x, norms, residual)| Solver {
        x,
        norms,
        residual: f64::from(residual),
    })
}

prop_compose! {
    fn mixed()(
        (matrix, step, own, same) in (doubles(100), any::<u32>(), solver(), solver()),
        (points, single, counts, text) in (
            prop::collection::vec([-1.0..1.0f64, -1.0..1.0, -1.0..1.0], 0..50),
            prop::collection::vec(-1.0..1.0f32, 0..200),
            prop::collection::vec(any::<u64>(), 0..200),
            doubles(100),
        ),
        (ragged, maybe, map, masses) in (
            prop::collection::vec(doubles(100), 0..4),
            prop::option::of(doubles(100)),
            prop::collection::btree_map(any::<u32>(), doubles(100), 0..4),
            prop::collection::vec(0.0..1.0f64, 0..80),
        ),
    ) -> Mixed {
        Mixed {
            matrix, step, own, same, points, single, counts, text, ragged, map,
            maybe: maybe.map(Vec::into_boxed_slice),
            particles: masses.iter().map(|&mass| Particle { position: [mass; 3], mass }).collect(),
        }
    }
}

/// The slices of doubles that go apart, in their order.
fn apart(state: &Mixed) -> Vec<f64> {
    let slices = std::iter::once(&state.own.x[..])
        .chain([state.points.as_flattened()])
        .chain(state.ragged.iter().map(|inner| &inner[..]))
        .chain(state.maybe.as_deref())
        .chain(state.map.values().map(|inner| &inner[..]));
    slices.filter(|slice| slice.len() >= DOUBLES_MIN).flatten().copied().collect()
}

fn saved_apart(state: &mut Mixed) -> (Vec<u8>, Strings, ApartCrcs) {
    let strings = size_apart(state, StatePart::Variable).expect("size");
    let mut shard = vec![0xee; strings.bytes()];
    let crcs = save_apart(state, StatePart::Variable, &mut shard, strings).expect("save");
    (shard, strings, crcs)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn doubles_lie_behind_all_else_and_come_back(state in mixed(), other in mixed()) {
        let mut source = state.clone();
        let (shard, strings, crcs) = saved_apart(&mut source);
        prop_assert_eq!(&source, &state);
        let behind: Vec<f64> = bytemuck::pod_collect_to_vec(&shard[strings.start()..]);
        prop_assert_eq!(behind, apart(&state));
        prop_assert_eq!(crcs.shard, ShardMeta::of(&shard).crc);
        prop_assert_eq!(crcs.exact, ShardMeta::of(&shard[..strings.exact]).crc);
        // The same bytes as ever, in another order.
        let plain = saved(&mut source, StatePart::Variable);
        prop_assert_eq!(plain.len(), strings.exact + strings.doubles);
        for (mut start, spares) in [(Mixed::default(), false), (other.clone(), false), (other, true)] {
            let (crc, loaded) = load_apart(&mut start, StatePart::Variable, &shard, strings, spares);
            prop_assert_eq!((crc, loaded), (crcs.shard, Ok(())));
            start.matrix.clone_from(&state.matrix);
            prop_assert_eq!(&start, &state);
        }
    }

    #[test]
    fn what_is_broken_is_an_error_or_a_state(state in mixed(), at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let (mut shard, strings, crcs) = saved_apart(&mut state.clone());
        let at = at.index(shard.len());
        let is_changed = shard[at] != to;
        shard[at] = to;
        let (crc, _) = load_apart(&mut Mixed::default(), StatePart::Variable, &shard, strings, false);
        prop_assert_eq!(crc != crcs.shard, is_changed);
    }
}

#[test]
fn without_doubles_the_shard_is_what_it_always_was() {
    let mut state = Mixed { step: 7, counts: vec![3; 300], text: vec![0.5; 90], ..Mixed::default() };
    state.own = Solver { x: vec![1.0; DOUBLES_MIN - 1], norms: vec![2.0; 900], residual: 0.1 };
    state.same.x = vec![4.0; 500];
    let (shard, strings, _) = saved_apart(&mut state);
    assert_eq!(strings.doubles, 0);
    assert_eq!(shard, saved(&mut state, StatePart::Variable));
}

#[test]
fn a_state_that_does_not_fit_the_strings_is_an_error() {
    let mut state = Mixed { points: vec![[1.0; 3]; 100], ..Mixed::default() };
    let (shard, strings, _) = saved_apart(&mut state);
    let load = |shard: &[u8], strings| {
        load_apart(&mut Mixed::default(), StatePart::Variable, shard, strings, false).1.unwrap_err().kind
    };
    let longer = Strings { doubles: strings.doubles + 8, ..strings };
    let more = [&shard[..], &[0; 8]].concat();
    assert_eq!(load(&more, longer), ProtectErrorKind::Trailing { left: 8 });
    let shorter = Strings { doubles: strings.doubles - 8, ..strings };
    assert!(matches!(load(&shard[..shard.len() - 8], shorter), ProtectErrorKind::Short { .. }));
    let mut room = vec![0; longer.bytes()];
    let error = save_apart(&mut state, StatePart::Variable, &mut room, longer).unwrap_err();
    assert_eq!(error.kind, ProtectErrorKind::Trailing { left: 8 });
}
