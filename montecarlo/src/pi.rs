//! Pi from random points of the unit square: the share that falls into the quarter circle is `pi / 4`.
//!
//! Sample `i` is a function of the seed and `i` alone, so any division of the samples over ranks, before or after a
//! failure, counts the same hits.

use std::f64::consts::PI;
use std::ops::Range;

use pulp::Arch;

use crate::philox::{LANES, halves, philox4x32_10_batch};

/// Points among `samples` of the stream `seed` that fall into the quarter circle `x^2 + y^2 <= 1`.
///
/// Sample `i` takes the words of [`philox4x32_10`](crate::philox4x32_10) for counter `i` and key `seed`: words 0
/// (low) and 1 (high) make `x`, words 2 and 3 make `y`, the upper 53 of 64 bits each. An empty range has no hits.
///
/// Hits of adjacent ranges add up to those of the whole, exactly, and are the same on every processor: the
/// instruction set chosen at run time changes the speed only.
pub fn hits(seed: u64, samples: Range<u64>) -> u64 {
    let key = halves(seed);
    Arch::new().dispatch(
        #[inline(always)]
        || count(key, samples),
    )
}

#[inline(always)]
fn count(key: [u32; 2], samples: Range<u64>) -> u64 {
    let Range { start, end } = samples;
    let mut lanes = [0; LANES];
    let mut first = start;
    while first < end && end - first >= LANES as u64 {
        add(&mut lanes, inside(first, key));
        first += LANES as u64;
    }
    let rest = end.saturating_sub(first) as usize;
    lanes.iter().sum::<u64>() + inside(first, key)[..rest].iter().sum::<u64>()
}

/// 1 for each of the samples from `first` on that is a hit, 0 for the others.
#[inline(always)]
fn inside(first: u64, key: [u32; 2]) -> [u64; LANES] {
    let words = philox4x32_10_batch(first, key);
    let mut inside = [0; LANES];
    for (lane, inside) in inside.iter_mut().enumerate() {
        let x = unit(words[0][lane], words[1][lane]);
        let y = unit(words[2][lane], words[3][lane]);
        *inside = u64::from(x * x + y * y <= 1.0);
    }
    inside
}

#[inline(always)]
fn add(sums: &mut [u64; LANES], terms: [u64; LANES]) {
    for (sum, term) in sums.iter_mut().zip(terms) {
        *sum += term;
    }
}

/// A number in `[0, 1)`, a multiple of `2^-53`.
#[inline(always)]
fn unit(low: u32, high: u32) -> f64 {
    const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
    let bits = u64::from(high) << 32 | u64::from(low);
    (bits >> 11) as f64 * STEP
}

/// What a count of hits says about pi.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Points drawn.
    pub samples: u64,
    /// Points inside the quarter circle.
    pub hits: u64,
}

impl Estimate {
    /// Four times the share of hits; not a number when there are no samples.
    pub fn pi(&self) -> f64 {
        4.0 * self.share()
    }

    /// Standard deviation of [`pi`](Self::pi) as the hits let it be estimated: `4 sqrt(p (1 - p) / n)` with `n` four more than
    /// the samples and `p` their share of hits if two of the four are hits. So it is not 0 where all samples are hits, or none.
    ///
    /// Source: Agresti, Coull: Approximate is better than "exact" for interval estimation of binomial proportions, The
    /// American Statistician, 1998.
    pub fn standard_error(&self) -> f64 {
        let samples = self.samples as f64 + 4.0;
        let share = (self.hits as f64 + 2.0) / samples;
        4.0 * (share * (1.0 - share) / samples).sqrt()
    }

    /// Distance of [`pi`](Self::pi) from pi in standard deviations, which are known: `sqrt(pi (4 - pi) / samples)`. Not a number
    /// when there are no samples.
    pub fn deviation(&self) -> f64 {
        (self.pi() - PI).abs() / (PI * (4.0 - PI) / self.samples as f64).sqrt()
    }

    fn share(&self) -> f64 {
        self.hits as f64 / self.samples as f64
    }
}
