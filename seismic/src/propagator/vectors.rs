//! Slices of fields as vectors, and sums over the neighbors of a point.

use pulp::Simd;

use crate::boundary::{REACH, STRIP};

/// `sum_k weights[k] (after - before)`, the pair at distance `k + 1`.
#[inline(always)]
pub(super) fn difference<S: Simd, const R: usize>(
    simd: S,
    weights: &[S::f32s; R],
    pair: impl Fn(usize) -> (S::f32s, S::f32s),
) -> S::f32s {
    let term = |k| {
        let (before, after) = pair(k);
        simd.mul_f32s(weights[k], simd.sub_f32s(after, before))
    };
    let mut sum = term(0);
    for k in 1..R {
        sum = simd.add_f32s(sum, term(k));
    }
    sum
}

/// `center u + sum_k weights[k] (before + after)`, the pair at distance `k + 1`.
#[inline(always)]
pub(super) fn curvature<S: Simd, const R: usize>(
    simd: S,
    center: S::f32s,
    u: S::f32s,
    weights: &[S::f32s; R],
    pair: impl Fn(usize) -> (S::f32s, S::f32s),
) -> S::f32s {
    let mut sum = simd.mul_f32s(center, u);
    for (k, &weight) in weights.iter().enumerate() {
        let (before, after) = pair(k);
        sum = simd.add_f32s(sum, simd.mul_f32s(weight, simd.add_f32s(before, after)));
    }
    sum
}

/// `n` vectors from `start` on.
#[inline(always)]
pub(super) fn vectors<S: Simd>(values: &[f32], start: usize, n: usize) -> &[S::f32s] {
    &S::as_simd_f32s(&values[start..][..n * S::F32_LANES]).0[..n]
}

/// `n` vectors from `start` on.
#[inline(always)]
pub(super) fn vectors_mut<S: Simd>(values: &mut [f32], start: usize, n: usize) -> &mut [S::f32s] {
    &mut S::as_mut_simd_f32s(&mut values[start..][..n * S::F32_LANES]).0[..n]
}

/// As [`std::array::from_fn`], which would not be inlined into code for one instruction set.
#[inline(always)]
pub(super) fn each<T: Copy, const N: usize>(at: impl Fn(usize) -> T) -> [T; N] {
    let mut all = [at(0); N];
    for (k, one) in all.iter_mut().enumerate().skip(1) {
        *one = at(k);
    }
    all
}

/// The vectors of a strip.
#[inline(always)]
pub(super) fn strip<S: Simd>(values: &[f32]) -> &[S::f32s] {
    S::as_simd_f32s(&values[..STRIP]).0
}

/// The vectors of a strip.
#[inline(always)]
pub(super) fn strip_mut<S: Simd>(values: &mut [f32]) -> &mut [S::f32s] {
    S::as_mut_simd_f32s(&mut values[..STRIP]).0
}

/// The vectors at distances of 1 to `R` before and after a strip that has [`REACH`] values on both sides.
#[inline(always)]
pub(super) fn beside_strip<S: Simd, const R: usize>(padded: &[f32]) -> [[&[S::f32s]; R]; 2] {
    let padded = &padded[..STRIP + 2 * REACH];
    [each(|k| strip::<S>(&padded[REACH - k - 1..])), each(|k| strip::<S>(&padded[REACH + k + 1..]))]
}

/// `n` vectors at distances of 1 to `R` times `distance` before and after `start`.
#[inline(always)]
pub(super) fn beside<S: Simd, const R: usize>(
    values: &[f32],
    start: usize,
    distance: usize,
    n: usize,
) -> [[&[S::f32s]; R]; 2] {
    [
        each(|k| vectors::<S>(values, start - (k + 1) * distance, n)),
        each(|k| vectors::<S>(values, start + (k + 1) * distance, n)),
    ]
}
