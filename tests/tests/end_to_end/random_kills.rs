//! Kills of any rank in any step, from a seed. `FT_SEED=N` repeats a run, `FT_RUNS=200` makes it a soak.

use std::hash::{BuildHasher, RandomState};

use crate::common::{POISSON, Run, poisson_answer};

/// Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable}: '{text}'")))
}

#[test]
fn of_any_rank_in_any_step() {
    let seed = number("FT_SEED").unwrap_or_else(|| RandomState::new().hash_one(0) >> 32);
    println!("FT_SEED={seed}");
    let mut random = SplitMix(seed);
    let steps = poisson_answer().iterations();
    for run in 0..number("FT_RUNS").unwrap_or(20) {
        let (rank, step) = (random.below(4), random.below(steps) + 1);
        let scheme = ["xor", "xor:2", "rs:2+2", "neighbor", "neighbor:2"][random.below(5) as usize];
        let way = ["", ":exit"][random.below(2) as usize];
        let kill = format!("--scheme {scheme} --kill {rank}@step={step}{way}");
        let outcome = Run::ftrun(&format!("-n 4 --json {kill} {POISSON}")).finish().expect(0);
        let report = outcome.report();
        assert_eq!(report.answer(), poisson_answer().answer(), "FT_SEED={seed}, run {run}: {outcome}");
        assert_eq!(report.unfired(), [""; 0], "FT_SEED={seed}, run {run}: {outcome}");
        assert_eq!(report.failures().len(), 1, "FT_SEED={seed}, run {run}: {outcome}");
    }
}
