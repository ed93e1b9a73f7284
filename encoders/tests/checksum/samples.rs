//! Stripes of doubles of many kinds, and the run that every one of them goes through.

use ft_encoders::{Bound, Checksum};

use crate::exact::distance;

/// Kinds of [`stripe`].
pub(crate) const KINDS: u64 = 7;

/// Numbers without a pattern, the same ones for the same seed (SplitMix64).
pub(crate) struct Draws(pub(crate) u64);

impl Draws {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// From -1 to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }
}

/// Shards of `members`, of one kind: 0 of one magnitude, then of any from 1e-300 to 1e300 element by element, of one such magnitude a member,
/// subnormal ones of one magnitude, sums that cancel, almost only zeros, and any bits of doubles up to 1e300.
pub(crate) fn stripe(members: usize, length: usize, kind: u64, seed: u64) -> Vec<Vec<f64>> {
    let mut draws = Draws(seed * KINDS + kind);
    let any = |draws: &mut Draws| 10_f64.powf(300.0 * draws.unit());
    let shift = draws.below(52);
    let common: Vec<f64> = (0..length).map(|_| draws.unit()).collect();
    let shard = |member: usize| {
        let scale = any(&mut draws);
        let value = |at: usize| match kind {
            0 => draws.unit(),
            1 => any(&mut draws) * draws.unit(),
            2 => scale * draws.unit(),
            3 => f64::from_bits(draws.bits() >> 12 >> shift) * draws.unit().signum(),
            4 => (common[at] + 1e-13 * draws.unit()) * if member.is_multiple_of(2) { 1.0 } else { -1.0 },
            5 => [0.0, 0.0, -0.0, 1.0, draws.unit()][draws.below(5)],
            _ => Some(f64::from_bits(draws.bits())).filter(|value| value.abs() < 1e300).unwrap_or(1.0),
        };
        (0..length).map(value).collect()
    };
    (0..members).map(shard).collect()
}

/// Borrowed as calls take it.
pub(crate) fn slices(shards: &[Vec<f64>]) -> Vec<&[f64]> {
    shards.iter().map(Vec::as_slice).collect()
}

/// Borrowed as calls take it, to be written.
pub(crate) fn slices_mut(shards: &mut [Vec<f64>]) -> Vec<&mut [f64]> {
    shards.iter_mut().map(Vec::as_mut_slice).collect()
}

/// The checksum blocks of shards, as long as the longest.
pub(crate) fn encoded(code: &Checksum, data: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let longest = data.iter().map(Vec::len).max().unwrap_or(0);
    let mut blocks = vec![vec![7.0; longest]; code.redundant()];
    code.encode(&slices(data), &mut slices_mut(&mut blocks)).unwrap();
    blocks
}

/// One block that was rebuilt.
pub(crate) struct Rebuilt {
    pub(crate) index: usize,
    pub(crate) values: Vec<f64>,
    pub(crate) bound: Bound,
    /// The largest distance from the data, or from its sum without rounding.
    pub(crate) error: f64,
}

/// Every lost block of a stripe of data and checksums, rebuilt from the others, with what its errors really are.
pub(crate) fn rebuilt(code: &Checksum, stripe: &[Vec<f64>], lost: &[usize]) -> Vec<Rebuilt> {
    let present: Vec<bool> = (0..stripe.len()).map(|index| !lost.contains(&index)).collect();
    let recovery = code.recovery(&present, lost).unwrap();
    let sources: Vec<&[f64]> = recovery.sources().iter().map(|index| stripe[*index].as_slice()).collect();
    let mut made = vec![vec![7.0; stripe[code.data()].len()]; lost.len()];
    let bounds = recovery.rebuild(&sources, &mut slices_mut(&mut made), Bound::UNLIMITED).unwrap();
    let pairs = lost.iter().zip(made).zip(bounds);
    pairs
        .map(|((&index, values), bound)| {
            let error = largest_error(code, &stripe[..code.data()], index, &values);
            Rebuilt { index, values, bound, error }
        })
        .collect()
}

/// How far `values` are from block `index` of the stripe over `data`, computed without rounding.
pub(crate) fn largest_error(code: &Checksum, data: &[Vec<f64>], index: usize, values: &[f64]) -> f64 {
    let part = |member: usize| match index.checked_sub(code.data()) {
        None => f64::from(u8::from(member == index)),
        Some(block) => code.weight(block, member),
    };
    let element = |(at, value): (usize, &f64)| {
        let terms = data
            .iter()
            .enumerate()
            .map(|(member, shard)| (part(member), shard.get(at).copied().unwrap_or(0.0)));
        distance(terms, *value)
    };
    values.iter().enumerate().map(element).fold(0.0, f64::max)
}

/// All sets of at most `most` of `0..of`.
pub(crate) fn subsets(of: usize, most: usize) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    let mut from = 0;
    for _ in 0..most {
        let until = all.len();
        for at in from..until {
            let next = all[at].last().map_or(0, |last| last + 1);
            all.extend((next..of).map(|more| [all[at].as_slice(), &[more]].concat()).collect::<Vec<_>>());
        }
        from = until;
    }
    all
}

#[test]
fn subsets_are_all() {
    assert_eq!(subsets(3, 2), [vec![], vec![0], vec![1], vec![2], vec![0, 1], vec![0, 2], vec![1, 2]]);
    assert_eq!(subsets(20, 4).len(), 1 + 20 + 190 + 1140 + 4845);
}
