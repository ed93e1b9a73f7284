//! The transition table, the packing of reports, and the choice.

use super::*;

fn ledger(committed: u32, state: State) -> Ledger {
    let mut ledger = Ledger::new(1);
    ledger.committed = committed;
    ledger.state = state;
    ledger
}

/// Each state (with epoch 4 committed) against each event: the new state and committed epoch, or the error.
#[test]
fn transition_table() {
    use Event::{
        Begin, CommittedElsewhere, Interrupted as Fail, PassedBy, Restored, Staged as Done, VoteFailed,
        VotePassed,
    };
    use State::{Idle, Interrupted, Staged, Staging};
    let events = [
        Begin(4),
        Begin(5),
        Begin(6),
        Done(5),
        Done(6),
        VotePassed(5),
        VotePassed(4),
        VoteFailed(5),
        VoteFailed(6),
        Fail,
        Restored(0),
        Restored(3),
        Restored(4),
        Restored(5),
        Restored(6),
        CommittedElsewhere(5),
        CommittedElsewhere(4),
        PassedBy(0),
        PassedBy(3),
        PassedBy(5),
    ];
    let mut table = String::new();
    for state in [Idle, Staging(5), Staged(5), Interrupted(None), Interrupted(Some(5))] {
        table.push_str(&format!("{state:?}\n"));
        for event in events {
            let before = ledger(4, state);
            let mut after = before.clone();
            let line = match after.apply(event) {
                Ok(new) => {
                    assert_eq!(new, after.state());
                    format!("{new:?}, committed {}", after.committed)
                }
                Err(error) => {
                    assert_eq!(after, before, "an error changes nothing");
                    match error {
                        LedgerError::OutOfOrder { .. } => "-".to_owned(),
                        LedgerError::WrongEpoch { expected, .. } => format!("! {expected} is due"),
                        other => format!("! {other}"),
                    }
                }
            };
            table.push_str(&format!("    {:<21} {line}\n", format!("{event:?}")));
        }
    }
    assert_eq!(table, include_str!("table.txt"), "\n{table}");
}

#[test]
fn errors_have_the_numbers() {
    let text = |mut ledger: Ledger, event| ledger.apply(event).expect_err("refused").to_string();
    assert_eq!(text(ledger(4, State::Idle), Event::Staged(5)), "Staged(5) in state Idle");
    assert_eq!(text(ledger(4, State::Idle), Event::Begin(6)), "Begin(6) where epoch 5 is due");
    let older = text(ledger(4, State::Idle), Event::Restored(3));
    assert_eq!(older, "restore to epoch 3, older than the committed epoch 4");
    let large = text(ledger(EPOCH_MAX, State::Idle), Event::Begin(EPOCH_MAX + 1));
    assert_eq!(large, "epoch 16777216 does not fit into 24 bits");
    assert_eq!(text(ledger(0, State::Idle), Event::Restored(EPOCH_MAX + 1)), large);
}

#[test]
fn a_replacement_is_restored_to_any_epoch() {
    let mut fresh = Ledger::new(1);
    assert_eq!(fresh.committed(), None);
    assert_eq!(fresh.apply(Event::Restored(17)), Ok(State::Idle));
    assert_eq!((fresh.committed(), fresh.next_epoch()), (Some(17), 18));
}

#[test]
fn reports_pack_and_unpack() {
    let report = Report { session: 0xabcd, committed: 0x12_3456, staged: 0x12_3457 };
    assert_eq!(u64::from(report), 0xabcd_1234_5712_3456);
    assert_eq!(Report::from(u64::from(report)), report);
    let largest = Report { session: u16::MAX, committed: EPOCH_MAX, staged: EPOCH_MAX };
    assert_eq!(u64::from(largest), u64::MAX);
    assert_eq!(Report::from(0), Report::default());
    assert_eq!(ledger(4, State::Staging(5)).report(), Report { session: 1, committed: 4, staged: 0 });
    for state in [State::Staged(5), State::Interrupted(Some(5))] {
        assert_eq!(ledger(4, state).report(), Report { session: 1, committed: 4, staged: 5 });
    }
}

#[test]
fn the_newest_committed_epoch_is_chosen() {
    let report = |session, committed, staged| u64::from(Report { session, committed, staged });
    let nothing = choose(&[0, report(1, 0, 1), report(1, 0, 0)]);
    assert_eq!(nothing, Choice { session: 0, epoch: None, holders: vec![false; 3] });

    let mixed = choose(&[report(1, 7, 0), report(1, 6, 7), 0, report(1, 6, 0)]);
    assert_eq!(mixed, Choice { session: 1, epoch: Some(7), holders: vec![true, true, false, false] });

    let staged_only = choose(&[report(1, 6, 7), report(1, 6, 7), 0]);
    assert_eq!(staged_only, Choice { session: 1, epoch: Some(6), holders: vec![true, true, false] });

    let sessions = choose(&[report(1, 9, 0), report(2, 0, 1), report(1, 9, 0)]);
    assert_eq!((sessions.session, sessions.epoch, sessions.holders), (1, Some(9), vec![true, false, true]));
    let sessions = choose(&[report(1, 9, 0), report(2, 1, 0), report(2, 0, 1)]);
    assert_eq!((sessions.session, sessions.epoch, sessions.holders), (2, Some(1), vec![false, true, true]));
    assert_eq!(choose(&[]).epoch, None);
}

#[test]
fn a_replacement_knows_nothing_until_it_is_restored() {
    let mut ledger = Ledger::replacement(1);
    assert_eq!(u64::from(ledger.report()), 0);
    ledger.apply(Event::Interrupted).unwrap();
    assert!(ledger.report().knows_nothing(), "its restore was interrupted");
    ledger.apply(Event::Restored(0)).unwrap();
    assert!(!ledger.report().knows_nothing(), "it starts from `init` with the others");
    // Who was there from the start knows that nothing was committed.
    assert!(!Ledger::new(1).report().knows_nothing());
}

#[test]
fn who_is_passed_by_has_nothing_until_the_next_commit() {
    let mut ledger = ledger(4, State::Interrupted(None));
    ledger.apply(Event::PassedBy(5)).unwrap();
    assert_eq!(ledger.report(), Report { session: 1, committed: 0, staged: 0 });
    assert_eq!(ledger.next_epoch(), 6);
    // Those who had what it counts may be gone.
    let mut back = ledger.clone();
    back.apply(Event::Restored(4)).unwrap();
    assert_eq!(back.report().committed, 4);
    for event in [Event::Begin(6), Event::Staged(6)] {
        ledger.apply(event).unwrap();
    }
    assert_eq!(ledger.report(), Report { session: 1, committed: 0, staged: 6 });
    ledger.apply(Event::VotePassed(6)).unwrap();
    assert_eq!(ledger.report().committed, 6);
}
