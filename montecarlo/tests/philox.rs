//! Philox against the published answers, and the batch against one counter at a time.

use ft_montecarlo::{LANES, philox4x32_10, philox4x32_10_batch};
use proptest::prelude::*;

/// The file `kat_vectors` of the authors' library Random123.
#[test]
fn known_answers() {
    let ones = u32::MAX;
    assert_eq!(philox4x32_10([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    assert_eq!(philox4x32_10([ones; 4], [ones; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    // Digits of pi.
    let counter = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
    let words = philox4x32_10(counter, [0xa409_3822, 0x299f_31d0]);
    assert_eq!(words, [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
}

fn assert_batch_equals_single(first: u64, key: [u32; 2]) {
    let batch = philox4x32_10_batch(first, key);
    for lane in 0..LANES {
        let counter = first.wrapping_add(lane as u64);
        let single = philox4x32_10([counter as u32, (counter >> 32) as u32, 0, 0], key);
        assert_eq!(batch.map(|word| word[lane]), single, "counter {counter:#x}, lane {lane}");
    }
}

#[test]
fn the_counter_carries_into_its_high_word_and_wraps() {
    assert_batch_equals_single((1 << 32) - 7, [1, 2]);
    assert_batch_equals_single(u64::MAX - 7, [1, 2]);
}

proptest! {
    #[test]
    fn batch_equals_single(first: u64, key: [u32; 2]) {
        assert_batch_equals_single(first, key);
    }
}
