//! What the test files share: the codes to try, and bytes to try them on.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(unreachable_pub, reason = "a module of each test file")]

use ft_encoders::{Code, Mirror, ReedSolomon, Xor, encode};

/// All codes of at most `blocks_max` blocks, data and redundant together.
pub fn codes(blocks_max: usize) -> Vec<Box<dyn Code>> {
    let mut codes: Vec<Box<dyn Code>> = Vec::new();
    for other in 1..blocks_max {
        codes.push(Box::new(Mirror::new(other).unwrap()));
        codes.push(Box::new(Xor::new(other).unwrap()));
        for redundant in 1..=blocks_max - other {
            codes.push(Box::new(ReedSolomon::new(other, redundant).unwrap()));
        }
    }
    codes
}

/// `length` bytes without a pattern, the same ones for the same seed (xorshift, Marsaglia 2003).
pub fn bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut state = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// The shards of all data members, `length` bytes each.
pub fn data(code: &dyn Code, length: usize, seed: u64) -> Vec<Vec<u8>> {
    (0..code.data()).map(|member| bytes(length, seed * 1000 + member as u64)).collect()
}

/// Redundant blocks of owned shards.
pub fn redundant(code: &dyn Code, data: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let shards: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    encode(code, &shards).unwrap()
}

/// A whole stripe: data shards of `length` bytes, then their redundant blocks.
pub fn stripe(code: &dyn Code, length: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut stripe = data(code, length, seed);
    stripe.extend(redundant(code, &stripe));
    stripe
}

/// The stripe without the blocks whose bit is set in `lost`.
pub fn without(stripe: &[Vec<u8>], lost: u32) -> Vec<Option<Vec<u8>>> {
    stripe.iter().enumerate().map(|(i, shard)| (lost >> i & 1 == 0).then(|| shard.clone())).collect()
}
