use proptest::prelude::*;

use super::*;

const HOUR: f64 = 3600.0;

fn kinds(all: &[(&str, f64)]) -> Vec<FailureKind> {
    all.iter()
        .map(|(losses, mtbf_s)| FailureKind { losses: losses.parse().unwrap(), mtbf_s: *mtbf_s })
        .collect()
}

fn measured(all: &[(&str, f64, f64)]) -> Vec<Measured> {
    let one = |(scheme, checkpoint_s, recovery_s): &(&str, f64, f64)| Measured {
        scheme: (*scheme).to_owned(),
        checkpoint_s: *checkpoint_s,
        recovery_s: *recovery_s,
    };
    all.iter().map(one).collect()
}

fn advised(schemes: &[(&str, f64, f64)], failures: &[(&str, f64)], step_s: f64) -> LevelAdvice {
    let experiment = AdviceExperiment {
        ftrun: "ftrun".into(),
        command: vec!["cg".into(), "--poisson".into(), "64".into()],
        ranks: 4,
        schemes: vec![],
        seconds: 2.0,
        repeat: 1,
        mtbfs_s: vec![60.0],
        survive: 1,
        failures: kinds(failures),
        whole: false,
        ways: vec![],
    };
    weigh(&measured(schemes), &experiment, step_s)
}

const SCHEMES: [(&str, f64, f64); 4] =
    [("neighbor:1", 0.02, 0.1), ("xor", 0.03, 0.15), ("rs:2+2", 0.5, 0.2), ("disk", 30.0, 60.0)];

#[test]
fn the_line_that_can_be_pasted() {
    let failures = [("all", 720.0 * HOUR), ("1", HOUR / 6.0), ("2", 24.0 * HOUR)];
    let advice = advised(&SCHEMES, &failures, 0.1);
    assert!(advice.failures.is_sorted_by_key(|kind| kind.losses));
    // 4.9 s of Young's and Daly's; the others are as far apart as sqrt(C M) is.
    let expected = "--levels neighbor:1@4.9s,rs:2+2@4.82min,spill@3.435h --spill DIR";
    let best = advice.recommended.unwrap();
    assert_eq!(best.options, expected);
    assert_eq!(advice.command, Some(format!("ftrun -n 4 {expected} cg --poisson 64")));
    let expected =
        "3 levels are best: 1.68 % with neighbor:1, rs:2+2, spill; 60.38 % with the best single one, disk.";
    assert_eq!(advice.reason.replace(NO_BREAK, " "), expected);
    let every: Vec<u64> = best.levels.iter().map(|level| level.every).collect();
    assert_eq!(best.levels[1].interval_s, every[1] as f64 * best.levels[0].interval_s);
    assert!(every[0] == 1 && every.is_sorted(), "{every:?}");
}

#[test]
fn each_level_is_the_first_to_survive_something() {
    let failures = [("1", HOUR), ("2", 24.0 * HOUR), ("all", 720.0 * HOUR)];
    let mut lists: Vec<String> = advised(&SCHEMES, &failures, 0.1)
        .combinations
        .iter()
        .map(|one| one.levels.iter().map(|level| level.scheme.as_str()).collect::<Vec<_>>().join(" "))
        .collect();
    lists.sort();
    let expected =
        ["disk", "neighbor:1 disk", "neighbor:1 rs:2+2 disk", "rs:2+2 disk", "xor disk", "xor rs:2+2 disk"];
    assert_eq!(lists, expected);
}

#[test]
fn a_single_level_is_said_to_be_the_best() {
    let failures = [("1", HOUR), ("2", 24.0 * HOUR)];
    let with = |checkpoint_s: f64| {
        advised(&[("neighbor:1", 0.020, 0.1), ("rs:2+2", checkpoint_s, 0.1)], &failures, 0.1)
    };
    let reason = |advice: &LevelAdvice| advice.reason.replace(NO_BREAK, " ");
    let least = with(0.021);
    assert_eq!(least.combinations[0].levels.len(), 1);
    let expected =
        "A single level is best: 0.35 % with rs:2+2; 0.41 % with the best of several, neighbor:1, rs:2+2.";
    assert_eq!(reason(&least), expected);
    assert_eq!(least.recommended.unwrap().options, "--scheme rs:2+2 --interval 12");
    // Two levels cost less, but not by what could be measured.
    let close = with(0.035);
    assert_eq!(close.combinations[0].levels.len(), 2);
    let expected =
        "A single level is best: 0.45 % with rs:2+2, hardly more than 0.43 % with neighbor:1, rs:2+2.";
    assert_eq!(reason(&close), expected);
    let far = with(0.5);
    assert!(reason(&far).starts_with("2 levels are best: "), "{}", reason(&far));
    // One kind of failure never takes two.
    let advice = advised(&SCHEMES, &[("1", HOUR)], 0.1);
    assert!(advice.combinations.iter().all(|one| one.levels.len() == 1));
    assert_eq!(advice.recommended.unwrap().levels[0].scheme, "neighbor:1");
    let files = advised(&[("disk:/a", 0.01, 0.1)], &[("1", HOUR), ("all", HOUR)], 0.1);
    let options = files.recommended.unwrap().options;
    assert!(options.starts_with("--scheme disk:/a --interval "), "{options}");
}

#[test]
fn files_of_a_folder_that_was_named() {
    let schemes = [("xor", 0.01, 0.1), ("disk:/a", 20.0, 9.0)];
    let advice = advised(&schemes, &[("1", 60.0), ("all", 24.0 * HOUR)], 0.1);
    let options = advice.recommended.unwrap().options;
    assert!(options.ends_with(" --spill /a") && options.contains(",spill@"), "{options}");
}

#[test]
fn nothing_comes_to_its_end() {
    let advice = advised(&[("xor", 100.0, 100.0)], &[("1", 10.0)], 0.1);
    assert_eq!((advice.combinations.len(), advice.recommended, advice.command), (0, None, None));
    assert!(advice.reason.contains("come to its end"), "{}", advice.reason);
}

proptest! {
    /// A kind of failure more, or a more frequent one, costs more; the best of all combinations costs no more than any single scheme.
    #[test]
    fn more_failures_cost_more(costs in prop::array::uniform4(0.001..5.0f64), mtbfs_h in prop::array::uniform3(0.1..1000.0f64)) {
        let mut schemes = SCHEMES;
        schemes.iter_mut().zip(costs).for_each(|(scheme, cost)| scheme.1 = cost);
        let kinds: Vec<(&str, f64)> = ["1", "2", "all"].into_iter().zip(mtbfs_h.map(|hours| hours * HOUR)).collect();
        let least = |kinds: &[(&str, f64)]| advised(&schemes, kinds, 0.01).combinations.first().map_or(f64::MAX, |one| one.overhead);
        let all = least(&kinds);
        prop_assert!(least(&kinds[..2]) <= all && least(&kinds[..1]) <= least(&kinds[..2]));
        let mut rarer = kinds.clone();
        rarer[1].1 *= 2.0;
        prop_assert!(least(&rarer) <= all);
        let disk = advised(&schemes[3..], &kinds, 0.01).combinations[0].overhead;
        prop_assert!(all <= disk);
    }
}
