//! Hits against a plain loop over single counters, and against golden counts.

use std::f64::consts::PI;
use std::ops::Range;

use ft_montecarlo::{Estimate, hits, philox4x32_10};
use proptest::prelude::*;

/// The definition, one sample at a time, compiled for the least processor.
fn plain_hits(seed: u64, samples: Range<u64>) -> u64 {
    let key = [seed as u32, (seed >> 32) as u32];
    let unit = |low: u32, high: u32| {
        ((u64::from(high) << 32 | u64::from(low)) >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    };
    let is_hit = |&i: &u64| {
        let words = philox4x32_10([i as u32, (i >> 32) as u32, 0, 0], key);
        let (x, y) = (unit(words[0], words[1]), unit(words[2], words[3]));
        x * x + y * y <= 1.0
    };
    samples.filter(is_hit).count() as u64
}

#[test]
fn a_million_samples() {
    assert_eq!(hits(42, 0..1_000_000), 785_784);
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn two_hundred_million_samples() {
    assert_eq!(hits(42, 0..200_000_000), 157_077_450);
}

#[test]
fn both_halves_of_seed_and_counter_matter() {
    let of = |seed: u64, start: u64| hits(seed, start..start + 100_000);
    let reference = of(1, 0);
    assert_ne!(of(2, 0), reference);
    assert_ne!(of(1 | 1 << 32, 0), reference);
    assert_ne!(of(1, 1 << 32), reference);
}

#[test]
fn nothing_is_hit_by_no_samples() {
    assert_eq!(hits(42, 5..5), 0);
    assert_eq!(hits(42, u64::MAX..u64::MAX), 0);
    #[expect(clippy::reversed_empty_ranges, reason = "a range is empty that way, too")]
    let reversed = 100..5;
    assert_eq!(hits(42, reversed), 0);
}

#[test]
fn estimate_by_hand() {
    let estimate = Estimate { samples: 400, hits: 320 };
    assert_eq!(estimate.pi(), 3.2);
    // 322 of 404
    assert!((estimate.standard_error() - 4.0 * (322.0f64 * 82.0 / 404.0).sqrt() / 404.0).abs() < 1e-15);
    let deviation = 20.0 * (3.2 - PI) / (PI * (4.0 - PI)).sqrt();
    assert!((estimate.deviation() - deviation).abs() < 1e-12);
}

#[test]
fn few_samples_have_an_error_too() {
    for (samples, hits) in [(1, 0), (1, 1), (2, 2), (7, 7), (30, 0)] {
        let estimate = Estimate { samples, hits };
        assert!(estimate.standard_error() > 0.1 && estimate.standard_error() < 1.0, "{estimate:?}");
        assert!(estimate.deviation().is_finite(), "{estimate:?}");
    }
    assert!(Estimate { samples: 30, hits: 0 }.deviation() > 8.0);
}

#[test]
fn a_million_samples_are_as_close_to_pi_as_they_claim() {
    for seed in 0..8 {
        let estimate = Estimate { samples: 1_000_000, hits: hits(seed, 0..1_000_000) };
        let miss = (estimate.pi() - PI).abs();
        assert!(miss < 4.0 * estimate.standard_error(), "seed {seed} misses pi by {miss}");
    }
}

/// Starts on both sides of the places where a counter's high word changes, and the last counters.
fn starts() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..1000_u64,
        (1_u64 << 32) - 300..(1 << 32) + 300,
        u64::MAX - 600..u64::MAX - 300,
        0..u64::MAX / 2
    ]
}

proptest! {
    #[test]
    fn same_as_a_plain_loop(seed: u64, start in starts(), len in 0..300_u64) {
        prop_assert_eq!(hits(seed, start..start + len), plain_hits(seed, start..start + len));
    }

    #[test]
    fn splits_add_up(seed: u64, start in starts(), first in 0..150_u64, second in 0..150_u64) {
        let (middle, end) = (start + first, start + first + second);
        prop_assert_eq!(hits(seed, start..middle) + hits(seed, middle..end), hits(seed, start..end));
    }
}

#[test]
fn the_last_counters() {
    let samples = u64::MAX - 37..u64::MAX;
    assert_eq!(hits(7, samples.clone()), plain_hits(7, samples));
}
