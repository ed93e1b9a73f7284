//! Kills of any rank, in any step and at any time, from a seed. `FT_SEED=N` repeats a run, `FT_RUNS=200` makes it a soak.

use std::hash::{BuildHasher, RandomState};

use crate::common::{PATIENT, POISSON, Run, poisson_answer};

/// Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014.
pub(crate) struct SplitMix(pub(crate) u64);

impl SplitMix {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

pub(crate) fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable}: '{text}'")))
}

pub(crate) fn seed() -> u64 {
    let seed = number("FT_SEED").unwrap_or_else(|| RandomState::new().hash_one(0) >> 32);
    println!("FT_SEED={seed}");
    seed
}

#[test]
fn of_any_rank_in_any_step() {
    let seed = seed();
    let mut random = SplitMix(seed);
    let steps = poisson_answer().iterations();
    for run in 0..number("FT_RUNS").unwrap_or(20) {
        let (rank, step) = (random.below(4), random.below(steps) + 1);
        let scheme = ["xor", "xor:2", "rs:2+2", "neighbor", "neighbor:2"][random.below(5) as usize];
        let way = ["", ":exit"][random.below(2) as usize];
        let kill = format!("--scheme {scheme} --kill {rank}@step={step}{way}");
        let outcome = Run::ftrun(&format!("-n 4 --json {PATIENT} {kill} {POISSON}")).finish().expect(0);
        let report = outcome.report();
        assert_eq!(report.answer(), poisson_answer().answer(), "FT_SEED={seed}, run {run}: {outcome}");
        assert_eq!(report.unfired(), [""; 0], "FT_SEED={seed}, run {run}: {outcome}");
        assert_eq!(report.failures().len(), 1, "FT_SEED={seed}, run {run}: {outcome}");
    }
}

/// Moments that have no name: two kills each, so that some strike in the middle of a repair. The seed gives the same
/// ones again, but not at the same instruction. The end of the job has a test of its own in `kills`.
#[test]
fn of_any_two_ranks_at_any_time() {
    let seed = seed();
    let mut random = SplitMix(seed);
    let elapsed_s = poisson_answer().0["elapsed_s"].as_f64().unwrap();
    for run in 0..number("FT_RUNS").unwrap_or(20) {
        let first = random.below((elapsed_s * 0.3e6) as u64);
        let second = first + random.below((elapsed_s * 0.2e6) as u64);
        let mut kill = |micros: u64| format!("--kill {}@time={}", random.below(4), micros as f64 * 1e-6);
        let kills = format!("--scheme rs:2+2 {} {}", kill(first), kill(second));
        let outcome = Run::ftrun(&format!("-n 4 --json {PATIENT} {kills} {POISSON}")).finish().expect(0);
        assert_eq!(
            outcome.report().answer(),
            poisson_answer().answer(),
            "FT_SEED={seed}, run {run}: {outcome}"
        );
    }
}
