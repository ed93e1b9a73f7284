//! What is rebuilt is as near to what was lost as the bound says, every time.

use ft_encoders::{Bound, Checksum, Drift, add_product, largest};
use proptest::prelude::*;

use crate::samples::{
    Draws, KINDS, Rebuilt, encoded, largest_error, rebuilt, slices, slices_mut, stripe, subsets,
};

/// Data and checksums.
fn whole(code: &Checksum, data: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let blocks = encoded(code, &data);
    data.into_iter().chain(blocks).collect()
}

fn hold_bounds(code: &Checksum, stripe: &[Vec<f64>], lost: &[usize]) {
    for Rebuilt { index, bound, error, .. } in rebuilt(code, stripe, lost) {
        let text = format!("{code:?}, lost {lost:?}, block {index}: {error:e} off, bound {bound}");
        assert!(error <= bound.absolute && bound.absolute.is_finite(), "{text}");
    }
}

#[test]
fn every_pattern_of_losses_is_rebuilt_within_its_bound() {
    for (data, redundant) in [4, 8, 16].into_iter().flat_map(|data| (1..=4).map(move |m| (data, m))) {
        let code = Checksum::new(data, redundant).unwrap();
        let patterns = subsets(data + redundant, redundant);
        for (kind, seed) in (0..KINDS).map(|kind| (kind, 1)).chain([(3, 2), (3, 3), (3, 5)]) {
            let stripe = whole(&code, stripe(data, 9, kind, seed));
            patterns.iter().for_each(|lost| hold_bounds(&code, &stripe, lost));
        }
    }
}

/// Numbers of one magnitude: rigorous bounds are larger than real errors, as roundings seldom all have one sign, but not by orders of orders.
#[test]
fn bounds_are_not_absurd() {
    let mut worst: f64 = 0.0;
    for (data, redundant) in [(4, 1), (4, 2), (4, 4), (8, 3), (16, 1), (16, 4), (60, 4)] {
        let code = Checksum::new(data, redundant).unwrap();
        let stripe = whole(&code, stripe(data, 2000, 0, 3));
        let mut draws = Draws(5);
        let mut ratios: Vec<f64> = Vec::new();
        for _ in 0..40 {
            let mut lost: Vec<usize> = (0..redundant).map(|_| draws.below(data + redundant)).collect();
            lost.sort_unstable();
            lost.dedup();
            let all = rebuilt(&code, &stripe, &lost).into_iter();
            ratios.extend(all.map(|block| block.bound.absolute / block.error));
        }
        ratios.sort_by(f64::total_cmp);
        println!(
            "{code:?}: bound over error {:.0}, at most {:.0}",
            ratios[ratios.len() / 2],
            ratios[ratios.len() - 1]
        );
        worst = worst.max(ratios[ratios.len() - 1]);
    }
    assert!(worst < 1000.0, "a bound is {worst} times the error");
}

#[test]
fn a_single_loss_is_as_near_as_a_difference_of_sums() {
    let code = Checksum::new(8, 2).unwrap();
    let stripe = whole(&code, stripe(8, 1000, 0, 11));
    let block = &rebuilt(&code, &stripe, &[3])[0];
    // 8 members of magnitude 1: gamma(8) * 8 for the sum, gamma(9 + 1) * 15 for the difference.
    assert!(block.bound.absolute < 250.0 * f64::EPSILON / 2.0, "{}", block.bound);
    assert!(block.error < 20.0 * f64::EPSILON);
}

/// Sums of integers that are exact come back exact, and the bound says nothing of that: it is not to be relied upon.
#[test]
fn lost_checksums_of_whole_data_are_the_bits_of_encoding() {
    for (data, redundant) in [(4, 1), (8, 3), (16, 4)] {
        let code = Checksum::new(data, redundant).unwrap();
        for kind in 0..KINDS {
            let stripe = whole(&code, stripe(data, 300, kind, 2));
            let lost: Vec<usize> = (data..data + redundant).collect();
            for block in rebuilt(&code, &stripe, &lost) {
                let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<u64>>();
                assert_eq!(
                    bits(&block.values),
                    bits(&stripe[block.index]),
                    "{code:?}, block {}",
                    block.index
                );
            }
        }
    }
}

#[test]
fn zeros_are_rebuilt_as_zeros_and_not_refused() {
    let code = Checksum::new(4, 2).unwrap();
    let stripe = whole(&code, vec![vec![0.0; 20]; 4]);
    for block in rebuilt(&code, &stripe, &[0, 2]) {
        assert_eq!(block.values, [0.0; 20]);
        assert!(block.bound.is_within(&Bound::relative_to_largest(1e-12)));
    }
}

/// A large member drowns small ones: the absolute bound is of the size of its rounding, and the relative one says that no digit is right.
#[test]
fn a_small_member_beside_a_large_one_is_not_taken_for_good() {
    let code = Checksum::new(4, 1).unwrap();
    let data = vec![vec![1e20; 8], vec![1.0; 8], vec![2.0; 8], vec![3.0; 8]];
    let stripe = whole(&code, data);
    let blocks = rebuilt(&code, &stripe, &[1]);
    assert!(blocks[0].error >= 1.0 && blocks[0].bound.relative_to_largest > 0.1);
    let large = &rebuilt(&code, &stripe, &[0])[0];
    assert!(large.bound.relative_to_largest < 1e-14);
}

#[test]
fn magnitudes_alone_give_a_bound_that_is_no_smaller() {
    for (data, redundant) in [(4, 2), (16, 4)] {
        let code = Checksum::new(data, redundant).unwrap();
        for (kind, lost) in
            (0..KINDS).flat_map(|kind| [[0, 3], [2, data], [data, data + 1]].map(|l| (kind, l)))
        {
            let stripe = whole(&code, stripe(data, 700, kind, 4));
            let all = rebuilt(&code, &stripe, &lost);
            let mut magnitudes: Vec<f64> = stripe.iter().map(|block| largest(block)).collect();
            all.iter().for_each(|block| magnitudes[block.index] = largest(&block.values));
            let present: Vec<bool> = (0..data + redundant).map(|index| !lost.contains(&index)).collect();
            let bounds = code.recovery(&present, &lost).unwrap().bounds(&magnitudes).unwrap();
            for (block, bound) in all.iter().zip(bounds) {
                assert!(block.bound.absolute <= bound.absolute * (1.0 + 1e-12));
                assert!(
                    kind != 0 || bound.absolute < 4.0 * block.bound.absolute,
                    "{bound} for {}",
                    block.bound
                );
            }
        }
    }
}

/// What is known before anything is lost gives a bound too, for all patterns and kinds of data.
#[test]
fn magnitudes_of_what_was_lost_give_a_bound_that_holds() {
    for (data, redundant) in [4, 8, 16].into_iter().flat_map(|data| (1..=4).map(move |m| (data, m))) {
        let code = Checksum::new(data, redundant).unwrap();
        let patterns = subsets(data + redundant, redundant);
        for kind in 0..KINDS {
            let stripe = whole(&code, stripe(data, 9, kind, 8));
            let magnitudes: Vec<f64> = stripe[..data].iter().map(|member| largest(member)).collect();
            for lost in patterns.iter().filter(|lost| !lost.is_empty()) {
                let present: Vec<bool> = (0..data + redundant).map(|index| !lost.contains(&index)).collect();
                let recovery = code.recovery(&present, lost).unwrap();
                let bounds = recovery.bounds_of_members(&magnitudes).unwrap();
                for (block, bound) in rebuilt(&code, &stripe, lost).iter().zip(bounds) {
                    let text = format!("{code:?}, lost {lost:?}, block {}: {bound}", block.index);
                    assert!(block.error <= bound.absolute, "{:e} off, {text}", block.error);
                    assert!(kind != 0 || bound.absolute < 10.0 * block.bound.absolute, "{text}");
                    if block.index < data && magnitudes[block.index] > 1e-300 {
                        let relative = bound.absolute / magnitudes[block.index];
                        assert_eq!(bound.relative_to_largest, relative, "{text}");
                    }
                }
            }
        }
    }
}

#[test]
fn no_bound_is_beyond_the_most_that_is_known_beforehand() {
    for (data, redundant) in [4, 7, 16].into_iter().flat_map(|data| (1..=4).map(move |m| (data, m))) {
        let code = Checksum::new(data, redundant).unwrap();
        let mut worst = 0.0_f64;
        for lost in subsets(data + redundant, redundant) {
            let present: Vec<bool> = (0..data + redundant).map(|index| !lost.contains(&index)).collect();
            let wanted: Vec<usize> = lost.into_iter().filter(|index| *index < data).collect();
            let bounds =
                code.recovery(&present, &wanted).unwrap().bounds_of_members(&vec![3.0; data]).unwrap();
            worst = bounds.iter().map(|bound| bound.relative_to_largest).fold(worst, f64::max);
        }
        println!("{code:?}: {worst:e}, {:e} at most", code.error_max());
        assert!(worst <= code.error_max() && worst > code.error_max() / 6.0, "{code:?}: {worst:e}");
    }
}

/// Members are updated many times, and by large numbers that go away again.
#[test]
fn drift_of_updates_is_in_the_bound() {
    for (kind, scale) in (0..KINDS).flat_map(|kind| [1.0, 1e6].map(|scale| (kind, scale))) {
        let code = Checksum::new(8, 3).unwrap();
        let mut data = stripe(8, 40, kind, 6);
        let mut blocks = encoded(&code, &data);
        let mut drift = Drift::none(3);
        for round in 0..30 {
            let member = round % 8;
            let mut new = stripe(8, 40, kind, 100 + round as u64)[member].clone();
            let factor = if round < 15 { scale } else { 1.0 };
            new.iter_mut().for_each(|value| *value = (*value * factor).clamp(-1e300, 1e300));
            // Parts at first, the whole in the end, so that nothing large is left but what it has rounded.
            let from = if round < 20 { round % 3 * 10 } else { 0 };
            let mut parts: Vec<&mut [f64]> = blocks.iter_mut().map(|block| &mut block[from..]).collect();
            code.update(member, &data[member][from..], &new[from..], &mut parts, &mut drift).unwrap();
            data[member][from..].copy_from_slice(&new[from..]);
        }
        let recovery =
            code.recovery(&[false, true, true, false, true, true, false, true, true, true, true], &[0, 3, 6]);
        let recovery = recovery.unwrap().with_drift(&drift).unwrap();
        let stripe: Vec<Vec<f64>> = data.iter().chain(&blocks).cloned().collect();
        let sources: Vec<&[f64]> = recovery.sources().iter().map(|index| stripe[*index].as_slice()).collect();
        let mut made = vec![vec![0.0; 40]; 3];
        let bounds = recovery.rebuild(&sources, &mut slices_mut(&mut made), Bound::UNLIMITED).unwrap();
        for ((index, values), bound) in [0, 3, 6].into_iter().zip(&made).zip(bounds) {
            let error = largest_error(&code, &data, index, values);
            assert!(error <= bound.absolute, "kind {kind}, block {index}: {error:e} off, bound {bound}");
        }
    }
}

proptest! {
    #[test]
    fn any_stripe_is_rebuilt_within_its_bound(
        (data, redundant) in (1..=60_usize, 1..=4_usize),
        kind in 0..KINDS,
        length in 0..600_usize,
        seed in any::<u32>(),
    ) {
        let code = Checksum::new(data, redundant).unwrap();
        let mut draws = Draws(u64::from(seed) << 8);
        let mut shards = stripe(data, length, kind, u64::from(seed));
        // Some are shorter, one is not.
        for shard in shards.iter_mut().skip(1) {
            shard.truncate(length.min(draws.below(2 * length + 1)));
        }
        let mut stripe = whole(&code, shards);
        // The members in another order, or by trees: another rounding.
        for (block, sums) in stripe.clone().iter().enumerate().skip(data) {
            if draws.below(2) == 0 {
                let (mut low, mut high) = (vec![0.0; sums.len()], vec![0.0; sums.len()]);
                for member in (0..data).rev() {
                    let half = if draws.below(2) == 0 { &mut low } else { &mut high };
                    code.accumulate(block - data, member, &stripe[member], half).unwrap();
                }
                add_product(1.0, &high, &mut low).unwrap();
                stripe[block] = low;
            }
        }
        let mut lost: Vec<usize> = (0..redundant).map(|_| draws.below(data + redundant)).collect();
        lost.sort_unstable();
        lost.dedup();
        for block in rebuilt(&code, &stripe, &lost) {
            prop_assert!(block.error <= block.bound.absolute, "block {}: {:e} off, bound {}", block.index, block.error, block.bound);
        }
    }

    #[test]
    fn ranges_give_the_bits_of_the_whole(kind in 0..KINDS, length in 1..900_usize, seed in any::<u32>()) {
        let code = Checksum::new(8, 3).unwrap();
        let mut draws = Draws(u64::from(seed));
        let data = stripe(8, length, kind, u64::from(seed));
        let stripe = whole(&code, data.clone());
        let lost = [1, 6, 9];
        let present: Vec<bool> = (0..11).map(|index| !lost.contains(&index)).collect();
        let recovery = code.recovery(&present, &lost).unwrap();
        let all = rebuilt(&code, &stripe, &lost);

        let (mut from, mut worst) = (0, vec![0.0_f64; 3]);
        while from < length {
            let until = length.min(from + 1 + draws.below(400));
            let range = |shards: &[Vec<f64>]| shards.iter().map(|shard| shard[from..until].to_vec()).collect::<Vec<_>>();
            prop_assert_eq!(encoded(&code, &range(&data)), range(&stripe[8..]));
            let sources: Vec<&[f64]> = recovery.sources().iter().map(|index| &stripe[*index][from..until]).collect();
            let mut made = vec![vec![0.0; until - from]; 3];
            let bounds = recovery.rebuild(&sources, &mut slices_mut(&mut made), Bound::UNLIMITED).unwrap();
            for ((block, made), (worst, bound)) in all.iter().zip(&made).zip(worst.iter_mut().zip(bounds)) {
                prop_assert_eq!(&block.values[from..until], &made[..]);
                *worst = worst.max(bound.absolute);
            }
            from = until;
        }
        prop_assert!(all.iter().map(|block| block.bound.absolute).eq(worst));

        // Source after source, as they arrive from others.
        for (at, block) in all.iter().enumerate() {
            let mut sum = vec![0.0; length];
            for (index, weight) in recovery.sources().iter().zip(recovery.weights(at).unwrap()) {
                add_product(*weight, &stripe[*index], &mut sum).unwrap();
            }
            prop_assert_eq!(&sum, &block.values);
        }
        // And sums of members as they are encoded.
        for (block, sums) in stripe[8..].iter().enumerate() {
            let mut sum = vec![0.0; length];
            for (member, shard) in slices(&data).iter().enumerate() {
                code.accumulate(block, member, shard, &mut sum).unwrap();
            }
            prop_assert_eq!(&sum, sums);
        }
    }
}
