//! What the test files share: the codes to try, and bytes to try them on.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(unreachable_pub, reason = "a module of each test file")]

use ft_encoders::{Code, Combination, Combinations, Mirror, ReedSolomon, Xor};

/// All codes of at most `blocks_max` blocks, data and redundant together.
pub fn codes(blocks_max: usize) -> Vec<Box<dyn Code>> {
    let mut codes: Vec<Box<dyn Code>> = Vec::new();
    for other in 1..blocks_max {
        codes.push(Box::new(Mirror::new(other).unwrap()));
        codes.push(Box::new(Xor::new(other).unwrap()));
        for redundant in 1..=blocks_max - other {
            codes.push(Box::new(ReedSolomon::new(other, redundant).unwrap()));
            codes.push(Box::new(ReedSolomon::vandermonde(other, redundant).unwrap()));
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

/// Redundant blocks of owned shards, as long as the longest, made at once and held against those made shard by shard.
pub fn redundant(code: &dyn Code, data: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let shards: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    let longest = data.iter().map(Vec::len).max().unwrap_or(0);
    let mut blocks = vec![vec![0xee; longest]; code.redundant()];
    let mut into: Vec<&mut [u8]> = blocks.iter_mut().map(Vec::as_mut_slice).collect();
    code.encode(&shards, &mut into).unwrap();
    for (block, made) in blocks.iter().enumerate() {
        let mut sum = vec![0; longest];
        for (member, shard) in shards.iter().enumerate() {
            code.accumulate(block, member, shard, &mut sum).unwrap();
        }
        assert_eq!(&sum, made, "{code:?}, block {block}");
    }
    blocks
}

/// All blocks of a stripe again, the missing ones from the others: at once, and held against those that are made one by
/// one, source by source.
pub fn recovered(code: &dyn Code, damaged: &[Option<Vec<u8>>]) -> Vec<Vec<u8>> {
    let present: Vec<bool> = damaged.iter().map(Option::is_some).collect();
    let lost: Vec<usize> = (0..damaged.len()).filter(|i| !present[*i]).collect();
    let length = damaged.iter().flatten().next().map_or(0, Vec::len);
    let block = |index: usize| damaged[index].as_deref().expect("a combination reads what is present");

    let combinations: Vec<Combination> =
        lost.iter().map(|wanted| code.combination(&present, *wanted).unwrap()).collect();
    let one_by_one: Vec<Vec<u8>> = combinations
        .iter()
        .map(|combination| {
            let sources: Vec<&[u8]> = combination.sources().map(|(index, _)| block(index)).collect();
            let (mut whole, mut sum) = (vec![0xee; length], vec![0; length]);
            combination.rebuild(&sources, &mut whole).unwrap();
            for (at, source) in sources.iter().enumerate().rev() {
                combination.add(at, source, &mut sum).unwrap();
            }
            assert_eq!(whole, sum, "{code:?}, lost {lost:?}");
            whole
        })
        .collect();

    let together: Combinations = combinations.into_iter().collect();
    let sources: Vec<&[u8]> = together.sources().iter().map(|index| block(*index)).collect();
    let mut made = vec![vec![0xee; length]; lost.len()];
    let mut into: Vec<&mut [u8]> = made.iter_mut().map(Vec::as_mut_slice).collect();
    together.rebuild(&sources, &mut into).unwrap();
    assert_eq!(made, one_by_one, "{code:?}, lost {lost:?}");

    let mut stripe = damaged.to_vec();
    lost.iter().zip(made).for_each(|(index, block)| stripe[*index] = Some(block));
    stripe.into_iter().flatten().collect()
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
