//! The bound of one element, computed apart: by another elimination, and by iteration in the place of a sum of powers.

use ft_encoders::{Bound, Checksum, Drift};

use crate::samples::{encoded, slices_mut, stripe};
use crate::weights::{inverse, table};

const UNIT_ROUNDOFF: f64 = f64::EPSILON / 2.0;

/// What is known when blocks are rebuilt: all members there, the lost ones as rebuilt, and the checksum blocks.
struct Element {
    data: Vec<f64>,
    sums: Vec<f64>,
    drift: Vec<f64>,
}

/// The errors of lost members: the smallest solution of `error = computing + encoding(error)`.
fn errors(code: &Checksum, lost: &[usize], helpers: &[usize], element: &Element) -> Vec<f64> {
    let (weights, k) = (table(code), code.data());
    let gamma = |n: usize| n as f64 * UNIT_ROUNDOFF / (1.0 - n as f64 * UNIT_ROUNDOFF);
    let part = helpers.iter().map(|block| lost.iter().map(|member| weights[*block][*member]).collect());
    let c = inverse(part.collect());
    let there: Vec<usize> = (0..k).filter(|member| !lost.contains(member)).collect();
    let mut errors = vec![0.0; lost.len()];
    for _ in 0..3 {
        let magnitude = |member: usize| {
            let error = lost.iter().position(|other| *other == member).map_or(0.0, |at| errors[at]);
            element.data[member].abs() + error
        };
        let error = |c: &Vec<f64>| {
            let helped = || helpers.iter().zip(c);
            let of_members = there.iter().map(|member| {
                helped().map(|(block, c)| c * weights[*block][*member]).sum::<f64>().abs()
                    * magnitude(*member)
            });
            let of_sums = helped().map(|(block, c)| (c * element.sums[*block]).abs());
            let encoding = |block: usize| {
                let sum: f64 = (0..k).map(|member| weights[block][member].abs() * magnitude(member)).sum();
                gamma(k) * sum + element.drift[block]
            };
            let of_encoding = helped().map(|(block, c)| c.abs() * encoding(*block));
            gamma(k + 1) * (of_members.sum::<f64>() + of_sums.sum::<f64>()) + of_encoding.sum::<f64>()
        };
        errors = c.iter().map(error).collect();
    }
    errors
}

#[test]
fn bounds_are_those_of_the_analysis() {
    for (data, redundant) in [(4, 2), (8, 3), (16, 4)] {
        let code = Checksum::new(data, redundant).unwrap();
        for (seed, drift) in (0..20).flat_map(|seed| [0.0, 3e-16].map(|drift| (seed, drift))) {
            let mut data: Vec<f64> = stripe(data, 1, 0, seed).concat();
            // Now one that is lost is large beside the others, now one that is there.
            data[seed as usize % 4] *= 1e9;
            let one_each: Vec<Vec<f64>> = data.iter().map(|value| vec![*value]).collect();
            let blocks = encoded(&code, &one_each);
            let lost: Vec<usize> = (0..redundant).collect();
            let present: Vec<bool> = (0..data.len() + redundant).map(|index| index >= redundant).collect();
            let drift = vec![drift; redundant];
            let recovery = code.recovery(&present, &lost).unwrap();
            let recovery = recovery.with_drift(&Drift::from(drift.clone())).unwrap();
            let all: Vec<&Vec<f64>> = one_each.iter().chain(&blocks).collect();
            let sources: Vec<&[f64]> =
                recovery.sources().iter().map(|index| all[*index].as_slice()).collect();
            let mut made = vec![vec![0.0]; redundant];
            let bounds = recovery.rebuild(&sources, &mut slices_mut(&mut made), Bound::UNLIMITED).unwrap();

            lost.iter().zip(&made).for_each(|(member, value)| data[*member] = value[0]);
            let helpers: Vec<usize> = (0..redundant).collect();
            let element = Element { data, sums: blocks.concat(), drift };
            for (bound, expected) in bounds.iter().zip(errors(&code, &lost, &helpers, &element)) {
                let ratio = bound.absolute / expected;
                assert!(
                    (1.0..1.0 + 1e-7).contains(&ratio),
                    "{code:?}, seed {seed}: {bound}, not {expected:e}"
                );
            }
        }
    }
}
