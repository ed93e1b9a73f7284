use proptest::prelude::*;

use super::*;

fn labels(ticks: &Ticks) -> Vec<&str> {
    ticks.ticks.iter().map(|tick| tick.label.as_str()).collect()
}

/// A label read back.
fn read(label: &str) -> f64 {
    label.replace('−', "-").parse().unwrap()
}

#[test]
fn labels_have_the_decimals_of_the_step_and_no_more() {
    assert_eq!(labels(&Ticks::within(0.0, 1.0, 4)), ["0.0", "0.5", "1.0"]);
    assert_eq!(labels(&Ticks::within(-0.25, 0.25, 4)), ["−0.2", "0.0", "0.2"]);
    assert_eq!(labels(&Ticks::within(0.0, 3e6, 3)), ["0", "1e6", "2e6", "3e6"]);
    assert_eq!(labels(&Ticks::within(0.0, 3e-7, 3)), ["0", "1e−7", "2e−7", "3e−7"]);
    assert_eq!(labels(&Ticks::within(999_000.0, 1_001_000.0, 2)), ["9.99e5", "1.000e6", "1.001e6"]);
}

#[test]
fn one_value_is_a_range_too() {
    let flat = Ticks::widened(7.0, 7.0, 5);
    assert!(flat.from < 7.0 && flat.to > 7.0 && flat.ticks.len() >= 3, "{flat:?}");
    let zero = Ticks::widened(0.0, 0.0, 5);
    assert!(zero.from < 0.0 && zero.to > 0.0);
    let one = Ticks::decimal(1.0, 1.0, 5);
    assert_eq!(labels(&one), ["1", "2"]);
}

#[test]
fn logarithmic_labels() {
    assert_eq!(labels(&Ticks::decimal(0.3, 40.0, 9)), ["0.2", "0.5", "1", "2", "5", "10", "20", "50"]);
    assert_eq!(labels(&Ticks::decimal(0.3, 40.0, 4)), ["1", "10"]);
    assert_eq!(labels(&Ticks::decimal(2e-10, 3.0, 4)), ["1e−9", "1e−6", "1e−3", "1e0"]);
    assert_eq!(labels(&Ticks::decimal(1e6, 4e6, 4)), ["1e6", "2e6", "5e6"]);
    assert_eq!(labels(&Ticks::binary(1024.0, 2f64.powi(24), 4)), ["1Ki", "32Ki", "1Mi"]);
    assert_eq!(Ticks::decimal(1.0, 10.0, 2).faint, [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
}

proptest! {
    #[test]
    fn linear_ticks_ascend_in_equal_steps_and_cover_the_data(
        low in -1e9..1e9f64, span in 1e-3..1e9f64, most in 2usize..13
    ) {
        let ticks = Ticks::widened(low, low + span, most);
        let values: Vec<f64> = ticks.ticks.iter().map(|tick| tick.value).collect();
        let step = values[1] - values[0];
        prop_assert!(step > 0.0);
        prop_assert!(values.windows(2).all(|pair| (pair[1] - pair[0] - step).abs() < 1e-5 * step));
        prop_assert!(ticks.from <= low + 1e-5 * step && ticks.to >= low + span - 1e-5 * step);
        prop_assert_eq!((values[0], values[values.len() - 1]), (ticks.from, ticks.to));
        prop_assert!((2..=most + 2).contains(&values.len()), "{} ticks", values.len());
        // 1, 2 or 5 times a power of ten.
        let digit = step / 10f64.powf((step.log10() + 1e-6).floor());
        prop_assert!([1.0, 2.0, 5.0].iter().any(|round| (digit - round).abs() < 1e-3), "step {step}");
    }

    #[test]
    fn labels_say_the_value(low in -1e7..1e7f64, span in 1e-6..1e7f64, most in 2usize..13) {
        let ticks = Ticks::within(low, low + span, most);
        for pair in ticks.ticks.windows(2) {
            let step = pair[1].value - pair[0].value;
            prop_assert!((read(&pair[0].label) - pair[0].value).abs() < 1e-3 * step, "{pair:?}");
        }
        for tick in &ticks.ticks {
            prop_assert!(tick.value >= low - 1e-5 * span && tick.value <= low + span * (1.0 + 1e-5));
        }
    }

    #[test]
    fn logarithmic_ticks_ascend_within_a_range_around_the_data(
        low in -140.0..140.0f64, span in 0.0..9.0f64, most in 2usize..13
    ) {
        let (low, high) = (10f64.powf(low), 10f64.powf(low + span));
        let ticks = Ticks::decimal(low, high, most);
        prop_assert!(ticks.from <= low * 1.000_001 && ticks.to >= high * 0.999_999);
        prop_assert!(ticks.from > low / 3.0 && ticks.to < high * 5.1);
        prop_assert!(ticks.ticks.windows(2).all(|pair| pair[0].value < pair[1].value));
        prop_assert!(!ticks.ticks.is_empty());
        for tick in &ticks.ticks {
            prop_assert!((ticks.from..=ticks.to).contains(&tick.value));
        }
        for line in &ticks.faint {
            prop_assert!((ticks.from..=ticks.to).contains(line));
        }
    }

    #[test]
    fn any_two_finite_numbers_have_ticks(a in any::<f64>(), b in any::<f64>(), most in 2usize..13) {
        let (a, b) = (a.clamp(-1e300, 1e300), b.clamp(-1e300, 1e300));
        prop_assume!(a.is_finite() && b.is_finite());
        let ticks = Ticks::widened(a.min(b), a.max(b), most);
        prop_assert!(ticks.from < ticks.to && ticks.from.is_finite() && ticks.to.is_finite());
        prop_assert!((2..=most + 2).contains(&ticks.ticks.len()), "{ticks:?}");
    }
}
