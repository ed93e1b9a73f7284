//! What is said in short: failures of ranks and links and schemes on a command line, addresses between processes. What is
//! read can be written and read.

#![no_main]

use std::fmt::{Debug, Display};
use std::str::FromStr;

use ft_checkpoint::{GroupLayout, Scheme};
use ft_comm::fault::{CutSpec, KillSpec, SlowSpec};
use ft_comm::transport::Address;
use ft_fuzz::{BUFFERS, within};
use libfuzzer_sys::fuzz_target;

/// Ranks of the job.
const RANKS: usize = 12;

fn read<T: FromStr<Err: Display> + Display + PartialEq + Debug>(text: &str) -> Option<T> {
    let read = within(BUFFERS + 100 * text.len(), || text.parse::<T>());
    let value = match read {
        Ok(value) => value,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return None;
        }
    };
    let written = value.to_string();
    match written.parse::<T>() {
        Ok(again) => assert_eq!(again, value, "{written}"),
        Err(error) => panic!("{text:?} is written {written:?}: {error}"),
    }
    Some(value)
}

fuzz_target!(|text: &str| {
    if let Some(address) = read::<Address>(text) {
        // Whoever is on the same host and whoever is not has a way to it.
        let _ = ["local", "elsewhere"].map(|from| address.nearest(from));
    }
    if let Some(kill) = read::<KillSpec>(text) {
        let exist = kill.ranks.iter().all(|rank| *rank < RANKS);
        assert_eq!(kill.validate(RANKS).is_ok(), exist);
    }
    if let Some(cut) = read::<CutSpec>(text) {
        assert_eq!(cut.validate(RANKS).is_ok(), cut.ranks().all(|rank| rank < RANKS));
        assert!(cut.lasts().is_none_or(|time| Some(time.as_secs_f64()) <= cut.seconds.map(|s| s + 1e-9)));
    }
    if let Some(slow) = read::<SlowSpec>(text) {
        let exist = slow.near.iter().chain(&slow.far).all(|rank| *rank < RANKS);
        assert_eq!(slow.validate(RANKS).is_ok(), exist);
        assert!(SlowSpec::delay(slow.factor, 1 << 20) >= SlowSpec::delay(slow.factor, 0));
    }
    if let Some(scheme) = read::<Scheme>(text) {
        for parity in 0..3 {
            if let Ok(layout) = GroupLayout::new(scheme.clone(), RANKS, parity, None) {
                assert_eq!((layout.ranks(), layout.scheme()), (RANKS, &scheme));
            }
        }
    }
});
