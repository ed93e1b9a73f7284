use ft_checkpoint::interval::Costs;
use proptest::prelude::*;
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::*;

fn level(checkpoint_s: f64, recovery_s: f64, mtbf_s: f64) -> Level {
    Level { checkpoint_s, recovery_s, failures_per_s: 1.0 / mtbf_s }
}

/// Work over time with a first interval of `interval_s` and levels at every so-many-th checkpoint.
fn efficiency(levels: &[Level], interval_s: f64, every: &[u64]) -> f64 {
    Sums::of(levels, every).efficiency(interval_s)
}

fn any_level() -> impl Strategy<Value = Level> {
    let powers = |low: f64, high: f64| (low..high).prop_map(|power| 10f64.powf(power));
    (powers(-2.0, 1.0), 0.0..5.0, powers(2.0, 5.0)).prop_map(|(c, r, mtbf_s)| level(c, r, mtbf_s))
}

/// Efficiencies on a fine grid: the greatest with numbers up to `most`, of two or three levels.
fn by_force(levels: &[Level], most: u64, intervals_s: &[f64]) -> f64 {
    let third = if levels.len() > 2 { most } else { 1 };
    let mut greatest = 0f64;
    for (two, three) in (1..=most).flat_map(|two| (1..=third).map(move |three| (two, three))) {
        let every = [1, two, three];
        let at = |interval_s: &f64| efficiency(levels, *interval_s, &every[..levels.len()]);
        greatest = intervals_s.iter().map(at).fold(greatest, f64::max);
    }
    greatest
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// The plan is as good as the best of a grid that is finer than any difference counts, and no better than what it says.
    #[test]
    fn nothing_on_a_grid_is_better(levels in prop::collection::vec(any_level(), 2..=3)) {
        let grid: Vec<f64> = (0..160).map(|at| 0.05 * 1.08f64.powi(at)).collect();
        let forced = by_force(&levels, 30, &grid);
        let Some(plan) = best(&levels, 0.0) else {
            prop_assert!(forced <= 0.0);
            return Ok(());
        };
        prop_assert_eq!(plan.efficiency, efficiency(&levels, plan.interval_s, &plan.every));
        prop_assert!(plan.efficiency >= forced * (1.0 - 1e-12), "{:?}, and {} by force", plan, forced);
        if plan.every.iter().all(|k| *k <= 30) && plan.interval_s > 0.1 {
            prop_assert!(plan.efficiency <= forced + 0.01, "{:?}, and {} by force", plan, forced);
        }
    }

    /// The same with intervals of whole steps, which the grid has all of: the very same plan.
    #[test]
    fn nothing_on_the_grid_of_steps_is_better(
        levels in prop::collection::vec(any_level(), 2..=3),
        step_s in 20.0..200.0f64,
    ) {
        let grid: Vec<f64> = (1..=60).map(|steps| f64::from(steps) * step_s).collect();
        let forced = by_force(&levels, 30, &grid);
        let Some(plan) = best(&levels, step_s) else {
            prop_assert!(forced <= 0.0);
            return Ok(());
        };
        prop_assert!(plan.efficiency >= forced * (1.0 - 1e-12), "{:?}, and {} by force", plan, forced);
        if plan.every.iter().all(|k| *k <= 30) && plan.interval_s <= 60.0 * step_s {
            prop_assert!((plan.efficiency - forced).abs() <= 1e-12, "{:?}, and {} by force", plan, forced);
        }
    }

    /// A single level is Young's and Daly's, and so is a first one whose second is never needed.
    #[test]
    fn a_level_that_is_never_needed(mtbf_s in 1e3..1e6f64, share in 1e-6..1e-3f64, second in 0.0..10.0f64) {
        let costs = Costs { checkpoint_s: share * mtbf_s, recovery_s: 0.0 };
        let one = level(costs.checkpoint_s, 0.0, mtbf_s);
        let alone = best(&[one], 0.0).unwrap();
        let first_order = costs.young_s(mtbf_s) - costs.checkpoint_s;
        prop_assert!((alone.interval_s / first_order - 1.0).abs() < 1e-9, "{:?}", alone);
        prop_assert!((alone.interval_s / costs.daly_s(mtbf_s) - 1.0).abs() < 0.02, "{:?}", alone);
        let dalys = costs.efficiency(mtbf_s, costs.daly_s(mtbf_s));
        prop_assert!((alone.overhead() / (1.0 / dalys - 1.0) - 1.0).abs() < 0.05, "{:?} and {}", alone, dalys);
        let never = level(second * costs.checkpoint_s, 0.0, 1e15 * mtbf_s);
        let both = best(&[one, never], 0.0).unwrap();
        prop_assert!((both.interval_s / alone.interval_s - 1.0).abs() < 0.01, "{:?} and {:?}", both, alone);
        prop_assert!((both.overhead() / alone.overhead() - 1.0).abs() < 0.01, "{:?} and {:?}", both, alone);
    }

    /// What costs more, or is needed more often, is no better.
    #[test]
    fn more_of_anything_costs_more(
        levels in prop::collection::vec(any_level(), 1..=4),
        at in any::<prop::sample::Index>(),
        times in 1.01..3.0f64,
        step_s in prop_oneof![Just(0.0), 0.1..30.0f64],
    ) {
        let at = at.index(levels.len());
        let before = best(&levels, step_s).map_or(0.0, |plan| plan.efficiency);
        let changes: [fn(&mut Level, f64); 3] = [
            |level, times| level.checkpoint_s *= times,
            |level, times| level.recovery_s *= times,
            |level, times| level.failures_per_s *= times,
        ];
        for change in changes {
            let mut dearer = levels.clone();
            change(&mut dearer[at], times);
            let after = best(&dearer, step_s).map_or(0.0, |plan| plan.efficiency);
            prop_assert!(after <= before + 1e-12, "{:?}: {} and then {}", levels, before, after);
        }
    }

    /// No input makes it panic, or run for ever.
    #[test]
    fn any_numbers(levels in prop::collection::vec([0.0..f64::MAX, 0.0..f64::MAX, 0.0..f64::MAX], 0..=4), step_s in 0.0..1e300f64) {
        let all: Vec<Level> = levels
            .into_iter()
            .map(|[checkpoint_s, recovery_s, failures_per_s]| Level { checkpoint_s, recovery_s, failures_per_s })
            .collect();
        prop_assert!(best(&all, step_s).is_none_or(|plan| plan.efficiency > 0.0));
    }
}

#[test]
fn plans_by_hand() {
    // C / f is 100 and 10000: the second interval is ten times the first. A = 1 + 1, B = (0.01 + 0.001 * 10) / 2.
    let levels = [level(1.0, 0.0, 100.0), level(10.0, 0.0, 1000.0)];
    let plan = best(&levels, 0.0).unwrap();
    assert_eq!(plan.every, [1, 10]);
    assert!((plan.interval_s - (200f64.sqrt() - 2.0)).abs() < 1e-12, "{plan:?}");
    assert!((plan.efficiency - (1.0 - 0.02f64.sqrt()).powi(2)).abs() < 1e-12, "{plan:?}");
    // Steps are long: 1 / (1 + (1 + 10 / K) / 40) - 0.2 - 0.02 K is 0.630, 0.642 and 0.640 for 2, 3 and 4.
    let plan = best(&levels, 40.0).unwrap();
    assert_eq!((plan.interval_s, &plan.every[..]), (40.0, &[1, 3][..]), "{plan:?}");
}

#[test]
fn no_plan() {
    assert_eq!(best(&[], 1.0), None);
    assert_eq!(best(&[Level { checkpoint_s: 1.0, recovery_s: 0.0, failures_per_s: 0.0 }], 0.0), None);
    let recoveries = level(0.1, 10.0, 9.0);
    assert_eq!(best(&[recoveries], 0.1), None, "there is no time beside the recoveries");
    assert_eq!(best(&[level(10.0, 0.0, 4.0)], 0.1), None, "a checkpoint takes longer than all goes well");
    let free = best(&[level(0.0, 1.0, 100.0)], 0.0).unwrap();
    assert_eq!((free.interval_s, free.efficiency), (0.0, 0.99));
}

/// Steps of levels under random failures, in seconds that no clock counts.
struct Simulation<'a, R> {
    levels: &'a [Level],
    random: R,
    time_s: f64,
    /// Intervals of the first level that are done.
    done: u64,
}

impl<R: Rng> Simulation<'_, R> {
    /// Spends `seconds`, or less up to a failure: then the level that it strikes.
    fn spend(&mut self, seconds: f64) -> Option<usize> {
        let rate: f64 = self.levels.iter().map(|level| level.failures_per_s).sum();
        let until_s = -(1.0 - self.random.random::<f64>()).ln() / rate;
        if until_s >= seconds {
            self.time_s += seconds;
            return None;
        }
        self.time_s += until_s;
        let mut place = self.random.random::<f64>() * rate;
        let struck = self.levels.iter().position(|level| {
            place -= level.failures_per_s;
            place < 0.0
        });
        struck.or(Some(self.levels.len() - 1))
    }

    /// One interval with its checkpoints, or what a failure makes of it.
    fn interval(&mut self, plan: &Plan) {
        let ends = |k: &u64| (self.done + 1).is_multiple_of(*k);
        let costs = self.levels.iter().zip(&plan.every).filter(|(_, k)| ends(k));
        let held_s: f64 = costs.map(|(level, _)| level.checkpoint_s).sum();
        let mut struck = self.spend(plan.interval_s + held_s);
        if struck.is_none() {
            self.done += 1;
        }
        while let Some(level) = struck {
            self.done -= self.done % plan.every[level];
            struck = self.spend(self.levels[level].recovery_s);
        }
    }
}

/// The overhead of a run of `intervals`.
fn simulated(levels: &[Level], plan: &Plan, intervals: u64, seed: u64) -> f64 {
    let mut run = Simulation { levels, random: Pcg64::seed_from_u64(seed), time_s: 0.0, done: 0 };
    while run.done < intervals {
        run.interval(plan);
    }
    run.time_s / (intervals as f64 * plan.interval_s) - 1.0
}

#[test]
fn a_simulation_takes_as_long_as_is_expected() {
    let cases = [
        vec![level(0.02, 0.1, 60.0)],
        vec![level(0.02, 0.1, 600.0), level(0.3, 1.0, 6000.0)],
        vec![level(1.0, 0.2, 70.0)],
        vec![level(0.05, 0.2, 300.0), level(0.2, 0.5, 1000.0)],
        vec![level(0.02, 0.1, 600.0), level(0.1, 0.5, 6000.0), level(3.0, 20.0, 60_000.0)],
    ];
    for (seed, levels) in cases.iter().enumerate() {
        let plan = best(levels, 0.1).unwrap();
        // Where the formula holds.
        let share = |(level, k): (&Level, &u64)| level.failures_per_s * plan.interval_s * *k as f64;
        let longest = levels.iter().zip(&plan.every).map(share).fold(0.0, f64::max);
        assert!(longest < 0.2, "{longest} of a time between failures: {plan:?}");
        let overhead = simulated(levels, &plan, 2_000_000, seed as u64);
        assert!(
            (overhead / plan.overhead() - 1.0).abs() < 0.03,
            "{overhead} and {}: {plan:?}",
            plan.overhead()
        );
    }
}

/// Other plans do worse in the simulation too: the optimum is not one of the formula alone.
#[test]
fn a_simulation_of_other_plans_takes_longer() {
    let levels = [level(0.05, 0.2, 300.0), level(0.5, 1.0, 3000.0)];
    let plan = best(&levels, 0.0).unwrap();
    let overhead = |interval_s: f64, k: u64| {
        let other = Plan { interval_s, every: vec![1, k], efficiency: 0.0 };
        simulated(&levels, &other, 1_000_000, 7)
    };
    let (best, k) = (overhead(plan.interval_s, plan.every[1]), plan.every[1]);
    for (interval_s, k) in [(2.0, k), (0.5, k), (1.0, 3 * k), (1.0, 1)].map(|(x, k)| (x * plan.interval_s, k))
    {
        assert!(overhead(interval_s, k) > 1.05 * best, "{interval_s} s and every {k}: {plan:?}");
    }
}
