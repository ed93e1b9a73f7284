//! Programs whose messages cross checkpoints: random ones, with ranks that are killed at any moment and go back to states of different moments. At the end each message must have been
//! received once, in order, with what its sender's last history says, and each collective must have given what it had to: nobody can tell that anything was lost.

#[path = "lines/credit.rs"]
mod credit;
#[path = "lines/judge.rs"]
mod judge;
#[path = "lines/left_over.rs"]
mod left_over;
#[path = "lines/moved.rs"]
mod moved;
#[path = "lines/plan.rs"]
mod plan;
#[path = "lines/random.rs"]
mod random;
#[path = "lines/rebuilt.rs"]
mod rebuilt;
#[path = "lines/schedules.rs"]
mod schedules;

use std::cell::Cell;
use std::time::Duration;

use ft_checkpoint::resilient::RankReport;
use ft_checkpoint::stats::Stats;
use ft_checkpoint::{CheckpointError, Interval, Lines, Protection, Recovery, RunError};
use ft_comm::Rank;
use ft_proto::planted;
use ft_sim::{self as sim, Blow, Config, Fault, Faults, SimOutcome, Trigger};

use self::judge::judge;
use self::plan::plan;
use self::random::{History, Random};
use super::{Choices, Course, checker, commit, finds, for_seeds, planted_or_little_credit};

/// Words of a message that does not leave before its receive has matched.
const LONG: usize = 40_000;

fn mix(value: u64) -> u64 {
    Choices(value).below(u64::MAX)
}

type Outcome = SimOutcome<Result<(), String>>;

/// How messages cross lines, and who goes back.
type Mode = (Lines, Recovery);

const LOG: Mode = (Lines::Log, Recovery::Global);
const DRAIN: Mode = (Lines::Drain, Recovery::Global);
const LOCAL: Mode = (Lines::Log, Recovery::Local);

/// Whether programs keep records of what is under way.
fn has_records(seed: u64) -> bool {
    (seed / 2).is_multiple_of(2)
}

fn simulate(seed: u64, (lines, recovery): Mode, bug: &'static str) -> Outcome {
    let (scheme, ranks, parity) = commit::job(seed);
    let mut choices = Choices(seed ^ 0x11ae5);
    let interval = Interval::Steps(1 + choices.below(5));
    let checkpoints = commit::of_either_kind(seed / 2);
    let protection = Protection { lines, recovery, checkpoints, ..Protection::new(scheme, interval) };
    let bug = planted_or_little_credit(seed, bug);
    let mut config = Config { parity, bug, ..Config::rough(seed, ranks) };
    config.faults = Faults {
        cuts: commit::cuts(seed),
        cuts_forever: commit::cuts_forever(seed),
        together_max: 1 + choices.below(2) as usize,
        ..match recovery {
            Recovery::Global => Faults::kills(1 + choices.below(4) as u32, Duration::from_millis(60)),
            Recovery::Local => Faults::kills(1 + choices.below(6) as u32, Duration::from_millis(120)),
        }
    };
    // Another one while the first is made good; where only the lost go back, a row of them.
    let is_local = recovery == Recovery::Local;
    let row = if is_local { choices.below(6) as u32 } else { u32::from(choices.below(3) == 0) };
    // In most rows the ranks that are left are back at work when the next one is lost.
    let shortest = if is_local && choices.below(3) > 0 { 14 } else { 0 };
    for losses in 1..=row {
        let delay = Duration::from_micros(1 << (shortest + choices.below(17 - shortest)));
        let again = Trigger::AfterLoss { losses, delay };
        config
            .faults
            .explicit
            .push(Fault { trigger: again, blow: Blow::Kill(vec![choices.below(ranks as u64) as Rank]) });
    }
    let plan = plan(seed, ranks, (lines, recovery), has_records(seed));
    sim::run(config, |world| {
        let actions = plan.get(world.rank()).cloned().unwrap_or_default();
        ft_checkpoint::run(world, protection.clone(), &mut Random::new(actions, has_records(seed)))
            .map(|_| ())
            .map_err(|error| error.to_string())
    })
}

fn check(seed: u64, mode: Mode, bug: &'static str) -> Result<Course, String> {
    check_and(seed, mode, bug, |_| {})
}

/// The same, and looks at the reports of all ranks.
fn check_and(
    seed: u64,
    mode: Mode,
    bug: &'static str,
    look: impl Fn(&[RankReport]),
) -> Result<Course, String> {
    let outcome = simulate(seed, mode, bug);
    let course = commit::check_end(seed, &outcome)?;
    if let Course::Undisturbed | Course::Repaired = course {
        let ranks = commit::job(seed).1;
        let outputs = checker::outputs(&outcome).ok_or("no outputs")?;
        let reports = outputs[..ranks].iter().map(|bytes| RankReport::read(bytes));
        let reports = reports.collect::<Option<Vec<_>>>().ok_or("no reports")?;
        look(&reports);
        let histories: Vec<_> = reports.iter().map(|report| History::read(&report.output)).collect();
        judge(&histories, &plan(seed, ranks, mode, has_records(seed)))?;
    }
    Ok(course)
}

const COURSES: [Course; 3] = [Course::Undisturbed, Course::Repaired, Course::BeyondTolerance];

#[test]
fn messages_cross_lines_of_logs_and_nobody_can_tell() {
    for_seeds("messages_cross_lines_of_logs", &COURSES, |seed| check(seed, LOG, ""));
}

#[test]
fn messages_that_cross_a_step_are_drained_and_come_back() {
    for_seeds("messages_that_cross_a_step", &COURSES, |seed| check(seed, DRAIN, ""));
}

#[test]
fn only_the_lost_go_back_and_nobody_can_tell() {
    let (stayed, gone) = (Cell::new(0), Cell::new(0));
    for_seeds("only_the_lost_go_back", &COURSES, |seed| {
        check_and(seed, LOCAL, "", |reports| {
            let stats = reports.iter().map(|report| report.stats.clone()).reduce(Stats::merge);
            for restore in stats.into_iter().flat_map(|stats| stats.restores) {
                let count = if restore.stayed > 0 { &stayed } else { &gone };
                count.set(count.get() + 1);
            }
        })
    });
    println!("in {} repairs only the lost went back, in {} all did", stayed.get(), gone.get());
    assert!(stayed.get() > 0, "always all went back");
}

/// Each was wrong once, of ten thousand: a message that did not come ahead, a sum of a part twice, determinants that were overtaken, messages that were not copied yet.
#[test]
fn seeds_that_were_wrong_once_are_right() {
    let seeds = vec![677, 920, 5970, 7382, 8159];
    super::for_all(seeds, "seeds_that_were_wrong_once", &[], |seed| check(seed, LOCAL, ""));
}

#[test]
fn planted_a_late_message_that_is_forgotten_is_caught() {
    finds(planted::FORGETS_LATE, |seed| check(seed, LOG, planted::FORGETS_LATE));
    finds(planted::FORGETS_LATE, |seed| check(seed, DRAIN, planted::FORGETS_LATE));
}

#[test]
fn planted_an_early_message_that_is_sent_again_is_caught() {
    finds(planted::SENDS_EARLY_AGAIN, |seed| check(seed, LOG, planted::SENDS_EARLY_AGAIN));
}

#[test]
fn planted_a_wildcard_that_is_replayed_in_another_order_is_caught() {
    finds(planted::REPLAYS_IN_ANOTHER_ORDER, |seed| check(seed, LOG, planted::REPLAYS_IN_ANOTHER_ORDER));
}

#[test]
fn planted_a_colour_that_wraps_wrongly_is_caught() {
    finds(planted::COUNTS_LINES_BY_TWO, |seed| check(seed, LOG, planted::COUNTS_LINES_BY_TWO));
}

#[test]
fn planted_open_receives_that_are_forgotten_are_caught() {
    finds(planted::FORGETS_OPEN, |seed| check(seed, LOG, planted::FORGETS_OPEN));
}

#[test]
fn planted_collectives_that_send_all_again_are_caught() {
    finds(planted::SENDS_BEGUN_AGAIN, |seed| check(seed, LOG, planted::SENDS_BEGUN_AGAIN));
}

#[test]
fn planted_collectives_that_are_counted_anew_are_caught() {
    finds(planted::COUNTS_COLLECTIVES_ANEW, |seed| check(seed, LOG, planted::COUNTS_COLLECTIVES_ANEW));
}

#[test]
fn planted_contexts_behind_the_line_are_caught() {
    finds(planted::GOES_ON_WITH_CONTEXTS, |seed| check(seed, LOG, planted::GOES_ON_WITH_CONTEXTS));
}

#[test]
fn planted_determinants_that_come_too_late_are_caught() {
    finds(planted::TELLS_LATE, |seed| check(seed, LOCAL, planted::TELLS_LATE));
}

#[test]
fn planted_journals_that_are_freed_early_are_caught() {
    finds(planted::FREES_JOURNAL_EARLY, |seed| check(seed, LOCAL, planted::FREES_JOURNAL_EARLY));
}

#[test]
fn planted_messages_that_survivors_have_and_get_again_are_caught() {
    finds(planted::REPEATS_ITSELF, |seed| check(seed, LOCAL, planted::REPEATS_ITSELF));
}

/// What cannot be had together is said at the start.
#[test]
fn lines_are_refused_with_what_does_not_go_with_them() {
    let of = Protection { lines: Lines::Log, ..Protection::new("xor".parse().unwrap(), Interval::Steps(1)) };
    for (protection, with) in [
        (Protection { incremental: true, ..of.clone() }, "`--incremental`"),
        (Protection { scrub: true, ..of.clone() }, "`--scrub`"),
        (Protection { levels: vec!["rs:2+1@3".parse().unwrap()], ..of }, "`--levels`"),
    ] {
        let outcome = sim::run(Config::calm(3), |world| {
            let ran = ft_checkpoint::run(world, protection.clone(), &mut Random::new(vec![], false));
            match ran.expect_err(with) {
                RunError::Checkpoint(CheckpointError::Unfit(why)) => why,
                other => other.to_string(),
            }
        });
        let whys = outcome.finished.into_iter().filter_map(|finished| finished.result.ok());
        let whys: Vec<String> = whys.collect();
        assert!(!whys.is_empty() && whys.iter().any(|why| why.contains(with)), "{whys:?}");
    }
}
