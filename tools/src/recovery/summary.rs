//! Medians over the repetitions, and what the noise of the machine leaves open.

use ft_checkpoint::interval::Costs;
use serde::Serialize;

use super::experiment::{Kind, is_disk};
use super::measurement::Measurement;
use super::stats::{Spread, median};
use super::units::{bytes, ms, percent};

/// Name of the runs without protection.
pub const UNPROTECTED: &str = "none";

/// Noise above which times without failures say nothing: interquartile range over median, without protection.
const TOO_NOISY: f64 = 0.1;
/// Repetitions below which quartiles say nothing.
pub(crate) const TOO_FEW: usize = 3;

/// What one scheme costs with one size of the state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Protected state of each rank.
    pub state_bytes: u64,
    /// Name of the scheme; [`UNPROTECTED`] for none.
    pub scheme: String,
    /// Seconds from the first step to the last, without failures.
    pub loop_s: Spread,
    /// Its median as a multiple of that without protection.
    pub times: f64,
    /// Seconds of such a job before the first step and after the last one.
    pub outside_s: f64,
    /// Most bytes of memory that a rank has used.
    pub vm_hwm_bytes: f64,
    /// What is due to protection; none without it.
    pub protected: Option<Protected>,
}

/// What is due to protection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Protected {
    /// Seconds of one checkpoint.
    pub checkpoint_s: Spread,
    /// Its parts ([`super::CHECKPOINT_PHASES`]): they fill the median, in the proportion of their own medians.
    pub checkpoint_phases_s: [f64; 4],
    /// Bytes that a rank sends or writes for a checkpoint.
    pub moved_bytes: f64,
    /// Bytes in memory for each byte of state, the state included.
    pub memory_overhead: f64,
    /// Seconds from a kill to the resumption.
    pub recovery_s: Spread,
    /// Its parts ([`super::RECOVERY_PHASES`]), likewise.
    pub recovery_phases_s: [f64; 6],
    /// Steps that were done again.
    pub steps_lost: f64,
}

impl Protected {
    /// Medians for the model.
    pub fn costs(&self) -> Costs {
        Costs { checkpoint_s: self.checkpoint_s.median, recovery_s: self.recovery_s.median }
    }
}

/// One for each size of the state and scheme, in this order; the first of each size is without protection.
pub(crate) fn summaries(
    states: &[u64],
    schemes: &[String],
    ranks: usize,
    measurements: &[Measurement],
) -> Vec<Summary> {
    let mut all: Vec<Summary> = Vec::new();
    for &state in states {
        let mut unprotected_s = 0.0;
        for scheme in std::iter::once(UNPROTECTED).chain(schemes.iter().map(String::as_str)) {
            let mine = measurements.iter().filter(|m| m.state_bytes == state && m.scheme == scheme);
            let plain: Vec<&Measurement> = mine.clone().filter(|m| m.kind == Kind::Plain).collect();
            let killed: Vec<&Measurement> = mine.filter(|m| matches!(m.kind, Kind::Kill { .. })).collect();
            let loop_s = Spread::of(plain.iter().map(|m| m.loop_s));
            if scheme == UNPROTECTED {
                unprotected_s = loop_s.median;
            }
            all.push(Summary {
                state_bytes: state,
                scheme: scheme.to_owned(),
                loop_s,
                times: if unprotected_s > 0.0 { loop_s.median / unprotected_s } else { 1.0 },
                outside_s: median(plain.iter().map(|m| m.elapsed_s - m.loop_s)),
                vm_hwm_bytes: median(plain.iter().map(|m| m.vm_hwm_bytes as f64)),
                protected: (scheme != UNPROTECTED).then(|| protected(ranks, &plain, &killed)),
            });
        }
    }
    all
}

fn protected(ranks: usize, plain: &[&Measurement], killed: &[&Measurement]) -> Protected {
    let of_plain = |part: &dyn Fn(&Measurement) -> f64| Spread::of(plain.iter().map(|m| part(m)));
    let of_killed = |part: &dyn Fn(&Measurement) -> f64| Spread::of(killed.iter().map(|m| part(m)));
    let moved = |m: &Measurement| {
        let bytes = if is_disk(&m.scheme) { m.bytes_protected } else { m.bytes_sent };
        bytes as f64 / (m.checkpoints.max(1) * ranks as u64) as f64
    };
    let checkpoint_s = of_plain(&|m| m.checkpoint_s / m.checkpoints.max(1) as f64);
    let checkpoint_phases_s = std::array::from_fn(|at| of_plain(&|m| m.checkpoint_phases_s()[at]).median);
    let recovery_s = of_killed(&Measurement::recovery_s);
    let recovery_phases_s = std::array::from_fn(|at| of_killed(&|m| m.recovery_phases_s()[at]).median);
    Protected {
        checkpoint_s,
        checkpoint_phases_s: filling(checkpoint_s.median, checkpoint_phases_s),
        moved_bytes: of_plain(&moved).median,
        memory_overhead: of_plain(&|m| m.memory_overhead).median,
        recovery_s,
        recovery_phases_s: filling(recovery_s.median, recovery_phases_s),
        steps_lost: of_killed(&|m| m.steps_lost as f64).median,
    }
}

/// The parts in their proportion, but with this sum: a whole and its parts are one set of figures then, which medians by
/// themselves are not.
fn filling<const N: usize>(whole: f64, parts: [f64; N]) -> [f64; N] {
    let sum: f64 = parts.iter().sum();
    if sum > 0.0 { parts.map(|part| part / sum * whole) } else { parts }
}

/// What cannot be said from these numbers, in plain words.
pub(crate) fn warnings(summaries: &[Summary], repeat: usize) -> Vec<String> {
    let mut all = Vec::new();
    if repeat < TOO_FEW {
        all.push(format!(
            "Only {repeat} of at least {TOO_FEW} repetitions: how far the runs spread is not known, so no difference \
             between them is to be relied on."
        ));
    }
    let mut unprotected = Spread::default();
    for Summary { state_bytes, scheme, loop_s, protected, .. } in summaries {
        let state = bytes(*state_bytes);
        if protected.is_none() {
            unprotected = *loop_s;
            let noise = loop_s.range() / loop_s.median.max(f64::MIN_POSITIVE);
            if noise > TOO_NOISY {
                all.push(format!(
                    "{state}: the machine was too noisy to compare times without failures: unprotected runs spread over \
                     {} of their median (quartiles {} to {} ms). Run it again when nothing else runs.",
                    percent(noise),
                    ms(loop_s.low),
                    ms(loop_s.high)
                ));
            }
            continue;
        }
        let (cost, spread) = (loop_s.median - unprotected.median, unprotected.range().max(loop_s.range()));
        if cost < spread {
            all.push(format!(
                "{state}, {scheme}: the cost without failures, {} ms a run, is within the spread of the runs, {} ms: \
                 it cannot be told from noise.",
                ms(cost),
                ms(spread)
            ));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::measurement::tests::measurement;

    fn runs(scheme: &str, loops: [f64; 3]) -> Vec<Measurement> {
        let plain = measurement(scheme, Kind::Plain);
        let mut all: Vec<Measurement> =
            loops.iter().map(|&loop_s| Measurement { loop_s, ..plain.clone() }).collect();
        if scheme != UNPROTECTED {
            all.push(measurement(scheme, Kind::Kill { victim: 0 }));
        }
        all
    }

    fn summed(unprotected: [f64; 3], xor: [f64; 3]) -> Vec<Summary> {
        let all = [runs(UNPROTECTED, unprotected), runs("xor", xor)].concat();
        summaries(&[1 << 20], &["xor".to_owned()], 4, &all)
    }

    #[test]
    fn medians_of_what_belongs_together() {
        let [none, xor] = &summed([2.0, 2.01, 1.99], [3.0, 3.01, 2.5])[..] else { panic!("two summaries") };
        assert_eq!((none.times, none.protected.as_ref()), (1.0, None));
        assert_eq!((xor.loop_s.median, xor.times), (3.0, 1.5));
        let protected = xor.protected.as_ref().unwrap();
        assert_eq!(protected.costs(), Costs { checkpoint_s: 0.125, recovery_s: 3.25 });
        assert_eq!(protected.checkpoint_phases_s, [0.015_625, 0.031_25, 0.0625, 0.015_625]);
        assert_eq!((protected.moved_bytes, protected.steps_lost), (f64::from(1 << 20), 2.0));
    }

    /// Medians of parts that come from different runs do not add up to the median of the whole.
    #[test]
    fn parts_fill_the_whole_however_the_runs_differ() {
        let killed = measurement("xor", Kind::Kill { victim: 0 });
        let times = [(0.125, 4.0), (2.0, 1.0), (1.0, 0.5)];
        let killed: Vec<Measurement> =
            times.map(|(detect_s, restore_s)| Measurement { detect_s, restore_s, ..killed.clone() }).into();
        let plain = measurement("xor", Kind::Plain);
        let plain: Vec<Measurement> = [(1.0, 2.0), (4.0, 0.5), (2.0, 1.0)]
            .map(|(copy_s, encode_s)| Measurement { copy_s, encode_s, ..plain.clone() })
            .into();
        let protected = protected(4, &plain.iter().collect::<Vec<_>>(), &killed.iter().collect::<Vec<_>>());
        let near = |parts: &[f64], whole: f64| (parts.iter().sum::<f64>() - whole).abs() < 1e-12;
        assert_eq!(protected.recovery_s.median, 4.0);
        assert!(near(&protected.recovery_phases_s, 4.0), "{:?}", protected.recovery_phases_s);
        assert!(near(&protected.checkpoint_phases_s, 0.125), "{:?}", protected.checkpoint_phases_s);
        assert_eq!(filling(1.0, [0.0; 2]), [0.0; 2]);
    }

    #[test]
    fn noise_is_said() {
        assert_eq!(warnings(&summed([2.0, 2.01, 1.99], [3.0, 3.01, 2.9]), 3), [""; 0]);
        let noisy = warnings(&summed([2.0, 3.0, 1.9], [4.0, 4.01, 3.9]), 3);
        assert!(noisy.len() == 1 && noisy[0].contains("too noisy"), "{noisy:?}");
        let small = warnings(&summed([2.0, 2.05, 1.95], [2.03, 2.04, 2.02]), 3);
        assert!(small.len() == 1 && small[0].contains("xor") && small[0].contains("noise"), "{small:?}");
        let few = warnings(&summed([2.0, 2.0, 2.0], [3.0, 3.0, 3.0]), 1);
        assert!(few.len() == 1 && few[0].contains("Only 1"), "{few:?}");
    }
}
