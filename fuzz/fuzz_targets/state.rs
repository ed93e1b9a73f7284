//! The bytes of a protected state: what is loaded saves to the same bytes, and lengths in them ask for no more memory than
//! there are bytes for.

#![no_main]

use std::collections::{BTreeMap, HashSet, VecDeque};

use ft_checkpoint::{Protect, StatePart, load, save};
use ft_fuzz::{BUFFERS, within};
use libfuzzer_sys::fuzz_target;
use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Protect)]
struct State {
    number: u64,
    flag: bool,
    letter: char,
    text: String,
    values: Vec<f64>,
    rows: Vec<Vec<u16>>,
    pairs: Vec<(u32, Option<String>)>,
    units: Vec<()>,
    map: BTreeMap<u32, Vec<u8>>,
    set: HashSet<u16>,
    queue: VecDeque<i16>,
    phase: Phase,
    boxed: Option<Box<[u32]>>,
    #[protect(serde)]
    other: Other,
}

#[derive(Debug, Default, Protect)]
enum Phase {
    #[default]
    Start,
    Middle(u8, Vec<u16>),
    End {
        reason: String,
    },
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Other {
    names: Vec<String>,
    numbers: Vec<(u64, i32)>,
}

fuzz_target!(|bytes: &[u8]| {
    let mut state = State::default();
    if within(BUFFERS + 100 * bytes.len(), || load(&mut state, StatePart::Variable, bytes)).is_err() {
        return;
    }
    let (mut first, mut second) = (vec![], vec![]);
    save(&mut state, StatePart::Variable, &mut first).expect("a state can be saved");
    let mut again = State::default();
    load(&mut again, StatePart::Variable, &first).expect("it was saved");
    save(&mut again, StatePart::Variable, &mut second).expect("a state can be saved");
    // The order of a set is not kept, and numbers may be written in more than one way by serde.
    assert_eq!(first.len(), second.len());
    assert_eq!(format!("{:?}", state.map), format!("{:?}", again.map));
    assert_eq!(
        (state.text, state.rows, state.pairs, state.set),
        (again.text, again.rows, again.pairs, again.set)
    );
});
