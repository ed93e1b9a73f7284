//! All go back to the last line: by logs of what is late, or with a wait at the line.

use super::job::{Seen, run};
use super::seeds;
use crate::lines::{Lines, Log, Phase};
#[cfg(feature = "planted-bugs")]
use crate::planted;

#[test]
fn ranks_go_back_to_states_of_different_moments_and_nobody_could_tell() {
    let mut seen = Seen::default();
    for seed in 0..seeds() {
        run(seed, false, &mut seen).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    println!("{seen:?}");
    let Seen { lines, rollbacks, late, outcomes, early, .. } = seen;
    assert!(
        [lines, rollbacks, late, outcomes, early].iter().all(|count| *count > 1000),
        "too little was seen"
    );
}

#[cfg(feature = "planted-bugs")]
#[test]
fn planted_defects_are_found() {
    for bug in [
        planted::FORGETS_LATE,
        planted::SENDS_EARLY_AGAIN,
        planted::REPLAYS_IN_ANOTHER_ORDER,
        planted::COUNTS_LINES_BY_TWO,
        planted::FREES_EARLY,
    ] {
        planted::plant(bug);
        let found = (0..2000).find_map(|seed| Some((seed, run(seed, false, &mut Seen::default()).err()?)));
        planted::plant("");
        let (seed, error) = found.unwrap_or_else(|| panic!("no seed finds '{bug}'"));
        println!("'{bug}' is found by seed {seed}: {}", error.chars().take(200).collect::<String>());
    }
}

#[test]
fn a_line_without_messages_is_whole_when_all_have_drawn_it() {
    let mut lines: Lines<u64> = Lines::new(3, 0);
    assert_eq!((lines.draw(), lines.phase()), (vec![0; 3], Phase::Logging));
    lines.handle_drawn(0);
    assert_eq!(lines.phase(), Phase::Whole);
    assert!(lines.whole().is_some_and(Log::is_empty) && !lines.may_draw());
    lines.handle_commit();
    assert!(lines.may_draw() && lines.line() == 1);
}
