//! Philox 4x32-10: ten rounds of multiplication and XOR that turn a counter into four random words.
//!
//! There is no state to advance, to save or to share out: word `i` of a stream costs the same whichever words were
//! drawn before it, and on whichever rank. Passes all of `TestU01`'s `BigCrush` (section 5 of the paper).
//!
//! J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, Parallel random numbers: as easy as 1, 2, 3, SC 2011.

/// Counters that [`philox4x32_10_batch`] works on at once: two AVX-512 registers of 64-bit products.
pub const LANES: usize = 16;

const ROUNDS: u32 = 10;

/// Multipliers of words 0 and 2 of the counter.
const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];

/// Steps of the key from one round to the next: the golden ratio and `sqrt(3) - 1`.
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// Four random words for `counter` under `key`.
///
/// Always inlined, so that a loop over counters becomes vector code for the processor that the caller is compiled
/// for.
#[inline(always)]
pub fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    // Words are kept in 64 bits, as the products are: narrowing them costs vector code a shuffle in each round.
    let mut words = counter.map(u64::from);
    let mut key = key;
    for _ in 0..ROUNDS {
        let product0 = words[0] * u64::from(MULTIPLIERS[0]);
        let product1 = words[2] * u64::from(MULTIPLIERS[1]);
        words = [
            high(product1) ^ words[1] ^ u64::from(key[0]),
            low(product1),
            high(product0) ^ words[3] ^ u64::from(key[1]),
            low(product0),
        ];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    words.map(|word| word as u32)
}

/// [`philox4x32_10`] of the counters `first`, `first + 1`, .. (wrapping), as word 0 of all lanes, word 1 of all
/// lanes, and so on. A counter fills words 0 (low) and 1 (high) of the 128 bits; the others are 0.
///
/// Always inlined, see [`philox4x32_10`].
#[inline(always)]
pub fn philox4x32_10_batch(first: u64, key: [u32; 2]) -> [[u32; LANES]; 4] {
    let mut words = [[0; LANES]; 4];
    for lane in 0..LANES {
        let [low, high] = halves(first.wrapping_add(lane as u64));
        let out = philox4x32_10([low, high, 0, 0], key);
        for (word, out) in words.iter_mut().zip(out) {
            word[lane] = out;
        }
    }
    words
}

/// Low and high half of `number`: how a seed becomes a key, and an index a counter.
#[inline(always)]
pub(crate) fn halves(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

#[inline(always)]
fn high(product: u64) -> u64 {
    product >> 32
}

#[inline(always)]
fn low(product: u64) -> u64 {
    product & u64::from(u32::MAX)
}
