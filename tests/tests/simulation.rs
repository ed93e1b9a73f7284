//! Many seeds of small jobs in the simulator, with everything that can go wrong, against the invariants.
//!
//! `FT_SEEDS` is the number of seeds a test takes (default 200 for most), `FT_SEED` one seed to replay; with
//! `FT_SIM_TRACE` all that happens in it is printed.

#[path = "simulation/bag.rs"]
mod bag;
#[path = "../../comm/examples/conformance/call.rs"]
mod call;
#[path = "simulation/cells.rs"]
mod cells;
#[path = "simulation/checker.rs"]
mod checker;
#[path = "simulation/checksums.rs"]
mod checksums;
#[path = "simulation/collectives.rs"]
mod collectives;
#[path = "simulation/commit.rs"]
mod commit;
#[path = "simulation/damage.rs"]
mod damage;
#[path = "simulation/hosts.rs"]
mod hosts;
#[path = "simulation/increments.rs"]
mod increments;
#[path = "simulation/least.rs"]
mod least;
#[path = "simulation/levels.rs"]
mod levels;
#[path = "simulation/lines.rs"]
mod lines;
#[path = "simulation/messages.rs"]
mod messages;
#[path = "simulation/modes.rs"]
mod modes;
#[path = "simulation/panics.rs"]
mod panics;
#[path = "simulation/pipeline.rs"]
mod pipeline;
#[path = "simulation/problem.rs"]
mod problem;
#[path = "simulation/reading.rs"]
mod reading;
#[path = "simulation/repair.rs"]
mod repair;

#[path = "simulation/rings.rs"]
mod rings;
#[path = "../../comm/examples/scenario/row.rs"]
mod row;
#[path = "simulation/scenarios.rs"]
mod scenarios;
#[path = "simulation/sections.rs"]
mod sections;
#[path = "simulation/settings.rs"]
mod settings;
#[path = "simulation/shrink.rs"]
mod shrink;
#[path = "../../comm/examples/scenario/survival.rs"]
mod survival;
#[path = "simulation/ulfm.rs"]
mod ulfm;

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};

use ft_proto::planted;

/// Seeds that most tests take if they are not told.
const SEEDS: u64 = 200;

/// Which seeds a test is to take that takes `usual` ones if it is not told.
fn seeds(usual: u64) -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    match number("FT_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("FT_SEEDS").unwrap_or(usual)).collect(),
    }
}

/// How a job went well; a test that has not seen all of these has not tested much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Course {
    /// Nothing was lost.
    Undisturbed,
    /// It was repaired.
    Repaired,
    /// More was lost than the scheme survives, and the job said so.
    BeyondTolerance,
    /// Living ranks could never reach each other again, and the job said so.
    CutForEver,
}

/// Runs `check` with every seed; the first failures are reported with what replays them.
fn for_seeds(test: &str, courses: &[Course], check: impl Fn(u64) -> Result<Course, String>) {
    for_all(seeds(SEEDS), test, courses, check);
}

/// As [`for_seeds`], with these seeds.
fn for_all(seeds: Vec<u64>, test: &str, courses: &[Course], check: impl Fn(u64) -> Result<Course, String>) {
    let mut failures = Vec::new();
    let mut seen: BTreeMap<Course, u64> = BTreeMap::new();
    for &seed in &seeds {
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| check(seed)));
        let text = match outcome {
            Ok(Ok(course)) => {
                *seen.entry(course).or_default() += 1;
                continue;
            }
            Ok(Err(text)) => text,
            Err(_) => "panicked, see above".to_owned(),
        };
        failures.push(format!("seed {seed}: {text}"));
    }
    let shown: Vec<&str> = failures.iter().take(5).map(String::as_str).collect();
    assert!(
        failures.is_empty(),
        "{} seeds failed; replay one with FT_SEED=N FT_SIM_TRACE=1 cargo test -p ft-tests --test simulation {test} \
         -- --nocapture\n{}",
        failures.len(),
        shown.join("\n"),
    );
    println!("{test}: {seen:?}");
    let all = courses.iter().all(|course| seen.contains_key(course));
    assert!(all || (seeds.len() as u64) < SEEDS, "{courses:?} were to be seen, only {seen:?} were");
}

/// The defect that a test plants; where it plants none, some jobs have credit for few messages.
fn planted_or_little_credit(seed: u64, bug: &'static str) -> &'static str {
    if bug.is_empty() && seed % 4 == 1 { planted::HAS_LITTLE_CREDIT } else { bug }
}

/// A checker that has found nothing is trusted only if it finds a bug that is there: some seed must fail, or a rank panic in it.
fn finds(bug: &'static str, check: impl Fn(u64) -> Result<Course, String>) {
    finds_from(0, bug, check);
}

/// The same, from this seed on at first: one of those behind it is known to find it.
fn finds_from(first: u64, bug: &'static str, check: impl Fn(u64) -> Result<Course, String>) {
    for seed in (first..2000).chain(0..first) {
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| check(seed)));
        if let Err(text) = outcome.unwrap_or_else(|_| Err("panicked, see above".into())) {
            let first = text.lines().next().unwrap_or_default().to_owned();
            println!("'{bug}' is found by seed {seed}: {first}");
            return;
        }
    }
    panic!("no seed finds the planted bug '{bug}'");
}

/// A small source of choices for scenarios.
struct Choices(u64);

impl Choices {
    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        // splitmix64: Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % end
    }
}
