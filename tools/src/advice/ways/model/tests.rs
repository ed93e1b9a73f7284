use ft_checkpoint::interval::Costs;
use proptest::prelude::*;

use super::WayCosts;

/// All ranks go back, and nothing is kept of messages.
fn global(checkpoint_s: f64, recovery_s: f64) -> WayCosts {
    WayCosts { checkpoint_s, recovery_s, log: 0.0, held: 1.0 }
}

fn close(one: f64, other: f64) -> bool {
    (one / other - 1.0).abs() < 1e-12
}

#[test]
fn of_one_interval_by_hand() {
    // S = 8 * 1.25 = 10 = M, R = 0, k = 1/2: 1 + 1/4 + 1/2 * 3/4 / 6 + 1/2 * 3/4 * 7/8 / 24 + ... times 10.
    let costs = WayCosts { checkpoint_s: 0.0, log: 0.25, recovery_s: 0.0, held: 0.5 };
    let terms = [1.0, 0.25, 0.0625, 0.013_671_875, 0.002_563_476_562_5, 0.000_413_894_653_320_312_5];
    let least = 10.0 * terms.iter().sum::<f64>();
    let seconds = costs.seconds_for(10.0, 8.0);
    // What follows is less than the last of them.
    assert!(seconds > least && seconds < least + 10.0 * terms[5], "{seconds}");
    // A recovery takes M (exp(R / M) - 1) with those that strike it; without work to be done again nothing else matters.
    let free = WayCosts { checkpoint_s: 2.0, log: 0.0, recovery_s: 10.0, held: 0.0 };
    assert!(close(free.seconds_for(10.0, 8.0), 10.0 * 1f64.exp()));
    assert!(close(free.overhead(10.0, 8.0), 10.0 * 1f64.exp() / 8.0 - 1.0));
    // 1 s of 100 is a checkpoint, and a failure in 1000 s costs 10 s and half of 100.
    let all = global(1.0, 10.0);
    assert!((all.overhead(1e3, 99.0) - (1.0 / 99.0 + 0.06)).abs() < 0.003, "{}", all.overhead(1e3, 99.0));
    assert!(close(all.total_s(500.0, 1e3, 99.0), 500.0 * (1.0 + all.overhead(1e3, 99.0))));
}

#[test]
fn a_run_with_the_failures_it_had_by_hand() {
    // 10 s of work a tenth longer, 5 checkpoints of 0.5 s, 2 failures of 1 s and a quarter of half of 2.7 s.
    let costs = WayCosts { checkpoint_s: 0.5, log: 0.1, recovery_s: 1.0, held: 0.25 };
    assert!(close(costs.seconds_with(2, 10.0, 2.0), 11.0 + 2.5 + 2.0 * (1.0 + 0.25 * 2.7 / 2.0)));
    let (all, costs) = (global(0.5, 1.0), Costs { checkpoint_s: 0.5, recovery_s: 1.0 });
    assert!(close(all.seconds_with(3, 10.0, 2.0), costs.seconds_with(3, 10.0, 2.0)));
}

#[test]
fn the_best_interval_by_hand() {
    // C = 2, M = 100: Daly has 18.69. The first order without a share is sqrt(2 * 2 * 100) = 20.
    assert!((global(2.0, 7.0).best_interval_s(100.0) / 18.689 - 1.0).abs() < 0.01);
    // Where a tenth holds up the job it is sqrt(10) times as long, to first order, and shorter by what the log takes.
    let tenth = WayCosts { held: 0.1, log: 0.21, ..global(0.02, 0.0) };
    let expected = (2.0 * 0.02 * 100.0 / 0.1f64).sqrt() / 1.21;
    assert!((tenth.best_interval_s(100.0) / expected - 1.0).abs() < 0.03, "{}", tenth.best_interval_s(100.0));
    // Nobody waits: the longer the better.
    assert_eq!(WayCosts { held: 0.0, ..global(1.0, 1.0) }.best_interval_s(100.0), 100.0);
    // Checkpoints that take for ever.
    let hopeless = global(1e9, 1.0);
    assert_eq!(hopeless.best_interval_s(1.0), 1.0);
    assert_eq!(hopeless.overhead(1.0, 1.0), f64::INFINITY);
}

#[test]
fn failures_that_never_come_leave_what_is_always_paid() {
    let costs = WayCosts { checkpoint_s: 0.01, log: 0.03, recovery_s: 5.0, held: 0.4 };
    let interval_s = costs.best_interval_s(1e12);
    assert!((costs.overhead(1e12, interval_s) - 0.03).abs() < 1e-6);
    assert!(costs.again(1e12, interval_s) < 1e-6);
}

#[test]
fn work_done_again_by_hand() {
    // Of 10 s since a checkpoint at M = 1000: half of that, less a twelfth of a hundredth, and 1.01 (1 + 0.005) seconds for each of work.
    let again = global(0.0, 10.0).again(1000.0, 10.0);
    let expected =
        (10.0 / 1000f64).exp() * (1000.0 * (0.01f64).exp_m1()) / 10.0 / 1000.0 * 10.0 * (0.5 - 0.01 / 12.0);
    assert!((again / expected - 1.0).abs() < 1e-6, "{again} and not {expected}");
    // Where an interval has many failures, the mean distance of two of them is lost each time: all time but what is left.
    let dense = global(0.0, 0.0);
    let (again, overhead) = (dense.again(1.0, 5.0), dense.overhead(1.0, 5.0));
    assert!((again / overhead - 1.0).abs() < 1e-9, "all that is beyond the work is work done again");
}

/// Steps of a generator of pseudo-random numbers (SplitMix64), as exponential times.
struct Times(u64);

impl Times {
    fn next(&mut self, mean: f64) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        -mean * (1.0 - (bits >> 11) as f64 / (1u64 << 53) as f64).ln()
    }
}

/// Plays failures: what happens to the job, second after second.
fn played(costs: &WayCosts, mtbf_s: f64, interval_s: f64, intervals: usize) -> f64 {
    let span_s = interval_s * (1.0 + costs.log) + costs.checkpoint_s;
    let (mut times, mut passed_s) = (Times(7), 0.0);
    let mut left_s = times.next(mtbf_s);
    for _ in 0..intervals {
        let mut at_s = 0.0;
        while at_s + left_s < span_s {
            (at_s, passed_s) = ((at_s + left_s) * (1.0 - costs.held), passed_s + left_s);
            left_s = times.next(mtbf_s);
            while left_s < costs.recovery_s {
                passed_s += left_s;
                left_s = times.next(mtbf_s);
            }
            (passed_s, left_s) = (passed_s + costs.recovery_s, left_s - costs.recovery_s);
        }
        (passed_s, left_s) = (passed_s + span_s - at_s, left_s - (span_s - at_s));
    }
    passed_s / intervals as f64
}

/// The sum is what comes out where failures are played, also where they are dense.
#[test]
fn as_played() {
    for held in [0.0, 0.2, 0.5, 0.9, 1.0] {
        for (mtbf_s, interval_s) in [(100.0, 5.0), (10.0, 5.0), (4.0, 6.0)] {
            let costs = WayCosts { checkpoint_s: 0.5, log: 0.1, recovery_s: 1.0, held };
            let (said, seen) =
                (costs.seconds_for(mtbf_s, interval_s), played(&costs, mtbf_s, interval_s, 200_000));
            assert!((seen / said - 1.0).abs() < 0.02, "k = {held}, M = {mtbf_s}: {seen} and not {said}");
        }
    }
}

proptest! {
    /// Without a log, where all that is done again holds up all, it is the model of Daly.
    #[test]
    fn who_waits_for_all_of_it_goes_back_with_it(
        mtbf_s in 0.1..1e6f64,
        checkpoints in 1e-6..1.0f64,
        recoveries in 0.0..1.0f64,
        intervals in 1e-3..2.0f64,
    ) {
        let (checkpoint_s, recovery_s) = (checkpoints * mtbf_s, recoveries * mtbf_s);
        let costs = Costs { checkpoint_s, recovery_s };
        let interval_s = intervals * mtbf_s;
        let expected = 1.0 / costs.efficiency(mtbf_s, interval_s);
        prop_assert!(close(global(checkpoint_s, recovery_s).overhead(mtbf_s, interval_s) + 1.0, expected));
        // And nearly so with nearly all of it: the sum has no edge there.
        let nearly = WayCosts { held: 1.0 - 1e-9, ..global(checkpoint_s, recovery_s) };
        prop_assert!(((nearly.overhead(mtbf_s, interval_s) + 1.0) / expected - 1.0).abs() < 1e-7);
    }

    /// Whatever becomes dearer makes the whole no cheaper, and rarer failures no dearer, at any interval and at the best one.
    #[test]
    fn nothing_dearer_is_cheaper(
        mtbf_s in 1.0..1e6f64,
        checkpoints in 1e-6..0.1f64,
        log in 0.0..0.5f64,
        recoveries in 0.0..0.5f64,
        held in 0.0..2.0f64,
        intervals in 1e-3..1.0f64,
        more in 1.01..2.0f64,
    ) {
        let costs = WayCosts { checkpoint_s: checkpoints * mtbf_s, log, recovery_s: recoveries * mtbf_s, held };
        let at_best = |costs: &WayCosts, mtbf_s: f64| costs.overhead(mtbf_s, costs.best_interval_s(mtbf_s));
        let at = |costs: &WayCosts, mtbf_s: f64| costs.overhead(mtbf_s, intervals * mtbf_s);
        for dearer in [
            WayCosts { checkpoint_s: costs.checkpoint_s * more, ..costs },
            WayCosts { log: log * more, ..costs },
            WayCosts { recovery_s: costs.recovery_s * more, ..costs },
            WayCosts { held: held * more, ..costs },
        ] {
            prop_assert!(at(&dearer, mtbf_s) >= at(&costs, mtbf_s) * (1.0 - 1e-9), "{:?}", dearer);
            prop_assert!(at_best(&dearer, mtbf_s) >= at_best(&costs, mtbf_s) * (1.0 - 1e-9) - 1e-9, "{:?}", dearer);
        }
        prop_assert!(at_best(&costs, mtbf_s * more) <= at_best(&costs, mtbf_s) * (1.0 + 1e-9) + 1e-9);
        prop_assert!(at_best(&costs, mtbf_s) >= log);
    }

    /// No interval up to the longest that is looked at is better than the best one.
    #[test]
    fn no_interval_is_better(
        mtbf_s in 1.0..1e6f64,
        checkpoints in 1e-6..0.3f64,
        held in 0.0..1.5f64,
        other in 1e-4..1.0f64,
    ) {
        let costs = WayCosts { held, ..global(checkpoints * mtbf_s, 0.1 * mtbf_s) };
        let best = costs.overhead(mtbf_s, costs.best_interval_s(mtbf_s));
        prop_assert!(best <= costs.overhead(mtbf_s, other * mtbf_s) * (1.0 + 1e-9));
    }
}
