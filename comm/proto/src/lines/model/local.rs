//! Only who was lost goes back, and the others go on where they are.

use super::job::{Job, Seen, run};
use super::seeds;
use crate::lines::journal::Again;
use crate::lines::{Account, Journal, Lines, Log, Luggage};
use crate::matching::{Envelope, Pattern};
#[cfg(feature = "planted-bugs")]
use crate::planted;
use crate::rank::Rank;
use crate::stamp::Mark;

impl Job {
    /// These are lost, and replaced: they go back to the committed line, and are fed by the others.
    pub(super) fn repair(&mut self, lost: &[Rank], seen: &mut Seen) -> Result<(), String> {
        let size = self.processes.len();
        self.forget();
        for rank in std::mem::take(&mut self.unheard) {
            self.processes[rank].hear_commit();
        }
        for (me, process) in self.processes.iter_mut().enumerate() {
            if lost.contains(&me) {
                process.arrived = process.restore(me, size, self.tolerance);
                continue;
            }
            process.drawn = None;
            let Some(journal) = &mut process.journal else { return Err("a rank without a journal".into()) };
            journal.abandon(&mut process.lines);
            let stamp = process.lines.stamp();
            for (message, _) in
                process.arrived.iter_mut().filter(|(message, _)| message.mark.stamp().is_lined())
            {
                message.mark = message.mark.stamped(stamp);
            }
        }
        let pairs = || {
            (0..size).flat_map(|me| (0..size).map(move |other| (me, other))).filter(|(me, other)| me != other)
        };
        let mut accounts = vec![];
        for (teller, hearer) in pairs() {
            let journal = self.processes[teller].journal.as_ref();
            accounts.push((teller, hearer, journal.map(|journal| journal.account(hearer, lost))));
        }
        let mut again = vec![];
        for (teller, hearer, account) in accounts {
            let process = &mut self.processes[hearer];
            let (Some(journal), Some(account)) = (&mut process.journal, account) else { continue };
            let messages = journal.settle(&mut process.lines, teller, account, lost, |bytes| *bytes);
            again.extend(messages.into_iter().map(|Again { tag, bytes, .. }| (hearer, teller, tag, bytes)));
        }
        seen.repairs += 1;
        seen.lost += lost.len() as u64;
        seen.fed += again.len() as u64;
        for rank in lost {
            let process = &mut self.processes[*rank];
            let Some(journal) = &mut process.journal else { continue };
            journal.learn(&mut process.lines).map_err(|error| error.to_string())?;
            let learned = journal.learned();
            seen.learned += learned.len() as u64;
            for other in (0..size).filter(|other| other != rank) {
                let luggage = Luggage { determinants: learned.clone(), ..Luggage::default() };
                self.processes[other]
                    .journal
                    .iter_mut()
                    .for_each(|journal| journal.carries(*rank, luggage.clone()));
            }
        }
        for (me, to, tag, bytes) in again {
            self.send(me, to, tag, bytes);
        }
        Ok(())
    }
}

#[test]
fn survivors_go_on_and_nobody_could_tell() {
    let mut seen = Seen::default();
    for seed in 0..seeds() {
        run(seed, true, &mut seen).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    println!("{seen:?}");
    let Seen { lines, rollbacks, late, outcomes, early, repairs, lost, fed, learned } = seen;
    let counts = [lines, late, outcomes, early, repairs, 2 * (lost - repairs), fed, learned];
    assert!(counts.iter().all(|count| *count > 1000) && rollbacks > 100, "too little was seen");
}

#[cfg(feature = "planted-bugs")]
#[test]
fn planted_defects_are_found() {
    for bug in [
        planted::FORGETS_LATE,
        planted::REPLAYS_IN_ANOTHER_ORDER,
        planted::COUNTS_LINES_BY_TWO,
        planted::TELLS_LATE,
        planted::FREES_JOURNAL_EARLY,
        planted::REPEATS_ITSELF,
    ] {
        planted::plant(bug);
        let found = (0..4000).find_map(|seed| Some((seed, run(seed, true, &mut Seen::default()).err()?)));
        planted::plant("");
        let (seed, error) = found.unwrap_or_else(|| panic!("no seed finds '{bug}'"));
        println!("'{bug}' is found by seed {seed}: {}", error.chars().take(200).collect::<String>());
    }
}

fn message(source: u32, tag: u32, lines: &Lines<u64>) -> Envelope {
    Envelope { context: 0, source, tag, mark: Mark::of(lines.stamp()), length: 8 }
}

#[test]
fn nothing_is_kept_behind_a_committed_line() {
    let (mut journal, mut lines, _) = Journal::restore(0, 2, 1, Log::<u64>::empty(0));
    assert!(journal.sends(&mut lines, 1, (0, 7), (70, 8)));
    assert_eq!(journal.kept_bytes(), 8);
    let pattern = Pattern { context: 0, source: None, tag: Some(7) };
    let (number, _) = lines.choose(pattern);
    let came = message(1, 7, &lines);
    assert_eq!(journal.comes(&lines, &came).map(|place| place.number), Some(0));
    journal.chose(&mut lines, number, &came);
    assert_eq!(lines.deliver(&came), Ok(false));
    assert_eq!(journal.kept(), (1, 1));
    journal.draw(&mut lines);
    lines.handle_drawn(1);
    assert_eq!(lines.whole().map(|log| (log.chosen, log.determined)), Some((1, 1)));
    assert_eq!(journal.kept(), (1, 1), "the line is not committed");
    journal.handle_commit(&mut lines);
    assert_eq!((journal.kept(), journal.kept_bytes()), ((0, 0), 0));
    assert_eq!(journal.account(1, &[]), Account::default());
}

#[test]
fn a_message_that_was_announced_only_is_sent_again_and_one_behind_it_is_not() {
    let new = |me| Journal::restore(me, 2, 1, Log::<u64>::empty(0));
    let (mut sender, mut lines, _) = new(0);
    for bytes in 0..5 {
        assert!(sender.sends(&mut lines, 1, (0, 7), (bytes, 8)));
    }
    let (mut receiver, theirs, _) = new(1);
    let came = message(0, 7, &lines);
    let places: Vec<_> = (0..4).filter_map(|_| receiver.comes(&theirs, &came)).collect();
    assert_eq!(places.iter().map(|place| place.number).collect::<Vec<_>>(), [0, 1, 2, 3]);
    // What two are missing, and what is lost a second time.
    for _ in 0..2 {
        receiver.lose(vec![places[1], places[3]]);
    }
    let account = receiver.account(0, &[]);
    let again = |bytes: &[u64]| {
        bytes.iter().map(|bytes| Again { context: 0, tag: 7, bytes: *bytes }).collect::<Vec<_>>()
    };
    assert_eq!(sender.settle(&mut lines, 1, account, &[], |bytes| *bytes), again(&[1, 3, 4]));
    // Who says all again says these.
    let account = receiver.account(0, &[0]);
    let (mut replacement, mut lines, _) = new(0);
    assert_eq!(replacement.settle(&mut lines, 1, account, &[0], |bytes| *bytes), []);
    replacement.learn(&mut lines).unwrap();
    let sends = |bytes| replacement.sends(&mut lines, 1, (0, 7), (bytes, 8));
    let leaves: Vec<bool> = (0..5).map(sends).collect();
    assert_eq!(leaves, [false, true, false, true, true]);
    // They have the numbers that are missing.
    let numbers = (0..3).filter_map(|_| receiver.comes(&theirs, &came)).map(|place| place.number);
    assert_eq!(numbers.collect::<Vec<_>>(), [1, 3, 4]);
}

#[test]
fn what_so_many_have_as_may_be_lost_is_not_passed_on() {
    let new = |me| Journal::restore(me, 3, 1, Log::<u64>::empty(0));
    let (mut one, mut lines, _) = new(0);
    one.found(&mut lines, None);
    let luggage = one.luggage(1).unwrap();
    assert_eq!((luggage.determinants.len(), luggage.safe), (1, 0));
    assert_eq!(one.luggage(1), None, "it was told");
    let (mut two, _, _) = new(1);
    two.carries(0, luggage.clone());
    // Nobody has said yet that it is safe.
    assert_eq!(two.luggage(2).unwrap().determinants, luggage.determinants);
    let back = two.luggage(0).unwrap();
    assert_eq!((back.determinants.len(), back.got), (0, 1));
    one.carries(1, back);
    assert_eq!(one.luggage(2), None, "one other has it, and one may be lost with this one");
}

#[test]
fn a_gap_in_what_is_known_is_said() {
    let (mut one, mut lines, _) = Journal::restore(0, 2, 1, Log::<u64>::empty(0));
    for _ in 0..3 {
        one.found(&mut lines, None);
    }
    let mut determinants = one.learned();
    determinants.remove(1);
    let (mut again, mut lines, _) = Journal::restore(0, 2, 1, Log::<u64>::empty(0));
    again.settle(&mut lines, 1, Account { determinants, ..Account::default() }, &[0], |bytes| *bytes);
    assert_eq!(
        again.learn(&mut lines).unwrap_err().to_string(),
        "nobody that is left knows what number 1 of rank 0 came out as"
    );
}

/// A way on which messages overtake others is closed to a rank until nothing that it was told of matters any more.
#[test]
fn what_has_to_be_known_before_is_not_overtaken_until_it_is_of_no_matter() {
    let (mut journal, mut lines, _) = Journal::<u64>::restore(0, 3, 1, Log::empty(0));
    assert!(journal.is_clear(1) && journal.luggage(1).is_none());
    journal.chooses(&mut lines, 1);
    assert!(journal.luggage(1).is_some() && !journal.is_clear(1) && journal.is_clear(2));
    journal.draw(&mut lines);
    journal.chooses(&mut lines, 0);
    assert!(journal.luggage(2).is_some());
    lines.handle_drawn(0);
    journal.handle_commit(&mut lines);
    assert!(journal.is_clear(1), "the line is behind it");
    assert!(!journal.is_clear(2), "that is behind the line");
}
