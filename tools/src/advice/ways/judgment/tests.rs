use super::super::measured::tests::round;
use super::*;

fn experiment() -> AdviceExperiment {
    AdviceExperiment {
        ftrun: "ftrun".into(),
        command: vec!["cg".into(), "--poisson".into(), "64".into()],
        whole: false,
        ranks: 4,
        schemes: vec!["xor".into()],
        seconds: 2.0,
        repeat: 2,
        mtbfs_s: vec![60.0, 3600.0],
        survive: 1,
        failures: vec![],
        ways: Way::EACH.into(),
    }
}

/// What is measured of ways with such times of a step, where a late loss costs so much, and an early one, if only the lost goes back.
fn judged(ways: &[(Way, f64, Option<f64>, f64)]) -> WaysAdvice {
    let rounds =
        ways.iter().map(|(way, step_s, early_s, late_s)| (*way, vec![round(*step_s, *early_s, *late_s); 2]));
    judge(&experiment(), "xor", Plan::of(40), &rounds.collect::<Vec<_>>(), vec![])
}

#[test]
fn what_to_expect_is_what_the_model_says() {
    let advice = judged(&[(Way::Global, 0.05, None, 0.82), (Way::Local, 0.0505, Some(0.1), 0.3)]);
    let [global, local] = &advice.candidates[..] else { panic!("{advice:?}") };
    assert!((advice.step_s - 0.05).abs() < 1e-12);
    assert!((local.costs.log - 0.01).abs() < 1e-12 && (global.costs.log, global.costs.held) == (0.0, 1.0));
    // 0.2 s more for 12 steps of 50.5 ms more.
    assert!((local.costs.held - 0.2 / 0.606).abs() < 1e-12, "{local:?}");
    for candidate in [global, local] {
        for at in &candidate.outlook {
            assert!((at.steps as f64 * advice.step_s - at.interval_s).abs() < 1e-9);
            assert_eq!(at.overhead, candidate.costs.overhead(at.mtbf_s, at.interval_s));
        }
    }
    // Four ranks go back, or one.
    let again = |candidate: &WayCandidate| candidate.again_rank_s.unwrap();
    assert!((again(global) - 4.0 * 16.0 * 0.05).abs() < 1e-12);
    assert!((again(local) - 16.0 * 0.0505).abs() < 1e-12);
    let ranks = global.outlook[0].again_rank_s / global.costs.again(60.0, global.outlook[0].interval_s);
    assert!((ranks - 4.0).abs() < 1e-12);
    assert_eq!((global.check.losses, local.stayed, global.steps_again), (8, 3.0, Some(16.0)));
    // All that a loss costs, four times; on average a loss strikes in the middle, and not late.
    assert!(global.check.ratio.median > 1.0 && global.check.measured_s > global.check.foretold_s);
}

#[test]
fn the_simplest_of_those_that_cost_hardly_more() {
    let back = |way, step_s| (way, step_s, None, 0.82);
    let alone = |step_s, late_s| (Way::Local, step_s, Some(0.021), late_s);
    let local = judged(&[back(Way::Global, 0.05), back(Way::Lines, 0.05), alone(0.05, 0.021)]);
    assert_eq!(local.recommended, Some(Way::Local));
    let expected = "ftrun -n 4 --scheme xor --interval auto --lines log --recovery local cg --poisson 64";
    assert_eq!(local.command.as_deref(), Some(expected));
    assert!(local.reason.starts_with("local is best: at an MTBF of 1"), "{}", local.reason);
    assert!(local.reason.contains("the next best, global, "), "{}", local.reason);

    let global = judged(&[back(Way::Global, 0.05), alone(0.06, 0.021)]);
    assert_eq!(global.recommended, Some(Way::Global), "a fifth of all time is more than any loss costs");

    // 0.58 s more for 0.6 s of work more.
    let close = judged(&[back(Way::Lines, 0.05), alone(0.05, 0.601)]);
    assert_eq!(close.recommended, Some(Way::Lines));
    assert!(
        close.reason.contains("hardly more than") && close.reason.contains("with local"),
        "{}",
        close.reason
    );

    let only = judged(&[back(Way::Lines, 0.05)]);
    assert!(only.reason.starts_with("lines is the only one"), "{}", only.reason);

    let none = judged(&[]);
    assert_eq!((none.recommended, none.command), (None, None));
}

/// What is better by less than the jobs spread is not recommended over what is simpler.
#[test]
fn noise_recommends_nothing() {
    let global = (Way::Global, vec![round(0.05, None, 0.82); 3]);
    let local =
        |steps_s: [f64; 3]| (Way::Local, steps_s.map(|step_s| round(step_s, Some(0.021), 0.021)).into());
    let judged = |local: (Way, Vec<Round>)| {
        judge(&experiment(), "xor", Plan::of(40), &[global.clone(), local], vec![])
    };
    let noisy = judged(local([0.03, 0.05, 0.07]));
    let [one, other] = &noisy.candidates[..] else { panic!("{noisy:?}") };
    assert!(other.outlook[0].overhead < one.outlook[0].overhead && other.at_worst > one.outlook[0].overhead);
    assert_eq!(noisy.recommended, Some(Way::Global));
    assert!(
        noisy.reason.contains("these jobs spread so much") && noisy.reason.contains("--repeat"),
        "{}",
        noisy.reason
    );
    let quiet = judged(local([0.05, 0.05, 0.0501]));
    assert_eq!(quiet.recommended, Some(Way::Local), "{}", quiet.reason);
}

#[test]
fn a_model_that_does_not_hold_is_told() {
    // A loss in the middle costs half of a late one of nine tenths, nearly.
    let holds = judged(&[(Way::Global, 0.05, None, 0.4)]);
    assert!(holds.candidates[0].check.holds() && !holds.text().contains("trust"), "{}", holds.text());
    let off = judged(&[(Way::Global, 0.05, None, 9.0)]);
    assert!(off.text().contains("  global: these jobs took "), "{}", off.text());
    assert!(off.text().contains("do not trust the model for it\n"), "{}", off.text());
}

#[test]
fn work_that_never_ends_has_a_number() {
    let costs = WayCosts { checkpoint_s: 1e6, recovery_s: 1e6, log: 0.0, held: 1.0 };
    let outlook = outlook(&costs, 1.0, 0.1, 4.0);
    assert_eq!((outlook.overhead, outlook.again_rank_s), (f64::MAX, f64::MAX));
}
