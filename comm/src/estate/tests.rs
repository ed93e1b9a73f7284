use std::os::fd::{AsFd, AsRawFd, IntoRawFd};
use std::process::Command;

use super::*;

fn ground() -> Ground {
    Ground::new().unwrap().simulated(7, |other| other == 9)
}

fn claim(ground: &Ground, rank: Rank) -> Estate {
    ground.claim(rank).unwrap().expect("nobody else has it")
}

/// Bytes of the file that take memory.
fn used(ground: &Ground) -> u64 {
    rustix::fs::fstat(&*ground.file).unwrap().st_blocks as u64 * 512
}

fn found(generation: Generation, report: u64, text: &[u8]) -> Option<Found> {
    Some(Found { generation, report, text: text.to_vec() })
}

#[test]
fn a_successor_finds_what_was_noted_last_and_the_memory_of_then() {
    let ground = ground();
    let mut first = claim(&ground, 3);
    assert_eq!(first.found(), None);
    let mut room = first.room(10_000).unwrap();
    assert_eq!(room.len(), 12_288);
    room[..5].copy_from_slice(b"state");
    room[12_287] = 9;
    let at = room.at();
    first.note(4, 77, Some(b"at the start")).unwrap();
    first.note(5, 78, Some(b"later")).unwrap();
    first.note(6, 79, None).unwrap();
    drop((first, room));

    let mut other = claim(&ground, 2);
    assert_eq!(other.found(), None, "the estate of another rank");
    assert!(other.open(at, 5).unwrap().unwrap().iter().all(|byte| *byte == 0));
    let mut second = claim(&ground, 3);
    assert_eq!(second.found().cloned(), found(6, 79, b"later"));
    let room = second.open(at, 12_288).unwrap().unwrap();
    assert_eq!((&room[..5], room[12_287]), (&b"state"[..], 9));
    assert!(second.open(at, 10).unwrap().is_none(), "it is open");
    assert!(second.open(at + 4096, 4096).unwrap().is_none(), "a part of it");
    for wrong in [0, 1, at + 1, PART, u64::MAX] {
        assert!(second.open(wrong, 1).unwrap().is_none(), "{wrong}");
    }
    // New memory is elsewhere, and of zeros.
    let new = second.room(1 << 20).unwrap();
    assert!(new.iter().all(|byte| *byte == 0));
    assert_eq!(&room[..5], b"state");
    assert!(second.open(1 << 30, 1).unwrap().is_none(), "it is too late");
}

#[test]
fn what_is_of_another_generation_or_was_forgotten_is_not_found() {
    let ground = ground();
    let mut first = claim(&ground, 0);
    first.note(4, 77, Some(b"text")).unwrap();
    let report = |joining| claim(&ground, 0).report(joining);
    assert_eq!([4, 5, 6].map(report), [0, 77, 0]);
    first.forget();
    assert_eq!(report(5), 0);
    first.note(7, 80, None).unwrap();
    assert_eq!(report(8), 0, "there is no text that could stay");
    first.note(8, 81, Some(b"")).unwrap();
    assert_eq!(claim(&ground, 0).found().cloned(), found(8, 81, b""));
}

#[test]
fn memory_that_is_given_back_is_there_until_the_next_note_and_then_gone() {
    let ground = ground();
    let mut estate = claim(&ground, 1);
    let mut old = estate.room(1 << 20).unwrap();
    old.fill(7);
    estate.note(1, 1, Some(b"old")).unwrap();
    let at = old.at();
    drop(old);
    assert_eq!(claim(&ground, 1).open(at, 1 << 20).unwrap().unwrap()[77], 7);
    let before = used(&ground);
    let new = estate.room(1 << 20).unwrap();
    assert_ne!(new.at(), at, "a note speaks of it");
    estate.note(1, 2, Some(b"new")).unwrap();
    assert!(used(&ground) <= before + 8192, "{before} {}", used(&ground));
    assert_eq!(estate.room(1 << 20).unwrap().at(), at);
    assert!(estate.room(usize::MAX).is_err() && estate.room(PART as usize).is_err());
    // A successor that opens nothing gives all of it back.
    drop((estate, new));
    let mut successor = claim(&ground, 1);
    successor.room(1).unwrap();
    assert!(used(&ground) < 64 << 10, "{}", used(&ground));
}

/// A death at any instruction of a note leaves the note before or the new one.
#[test]
fn a_note_is_whole_or_not_there() {
    let ground = ground();
    let mut estate = claim(&ground, 0);
    for number in 1..6_u32 {
        let text = vec![number as u8; 40 * number as usize];
        estate.note(number, number.into(), Some(&text)).unwrap();
        let newest = RECORDS[estate.count as usize % 2];
        // What the record was before each word of it was written, the first ones new and the others old.
        let words: Vec<u64> = estate
            .page
            .words(newest..newest + RECORD_WORDS)
            .iter()
            .map(|word| word.load(Ordering::Relaxed))
            .collect();
        for written in 0..RECORD_WORDS {
            estate.page.words(newest..newest + RECORD_WORDS).iter().enumerate().for_each(|(at, word)| {
                word.store(if at < written { words[at] } else { words[at] ^ 0x55 }, Ordering::Relaxed);
            });
            let found = claim(&ground, 0).found().map(|found| found.generation);
            assert_eq!(found, Some(number - 1).filter(|before| *before > 0), "{number} {written}");
        }
        estate.page.words(newest..newest + RECORD_WORDS).iter().zip(words).for_each(|(word, value)| {
            word.store(value, Ordering::Relaxed);
        });
        assert_eq!(claim(&ground, 0).found().map(|found| found.generation), Some(number));
    }
    // What is damaged is not believed: neither record nor text.
    let newest = RECORDS[estate.count as usize % 2];
    for bit in [0, 1, 40] {
        for word in newest..newest + RECORD_WORDS {
            estate.page.word(word).fetch_xor(1 << bit, Ordering::Relaxed);
            let found = claim(&ground, 0).found().map(|found| found.generation);
            assert!(found.is_none_or(|generation| generation == 4), "{bit} {word}: {found:?}");
            estate.page.word(word).fetch_xor(1 << bit, Ordering::Relaxed);
        }
    }
    assert_eq!(claim(&ground, 0).found().map(|found| found.generation), Some(5));
    estate.notes[estate.count as usize % 2].as_mut().unwrap()[3] ^= 1;
    assert_eq!(claim(&ground, 0).found(), None);
}

#[test]
fn an_estate_whose_owner_lives_is_not_given_away() {
    let ground = Ground::new().unwrap();
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    let start = Life::of(child.id().into()).unwrap().start;
    let page = Mapping::new(&ground.file, 0, PAGE as usize).unwrap();
    let own = |pid: u32, start: u64| {
        page.word(OWNER).store(pid.into(), Ordering::Relaxed);
        page.word(OWNER + 1).store(start, Ordering::Relaxed);
    };
    own(child.id(), start);
    assert!(ground.claim(0).unwrap().is_none());
    assert!(ground.claim(1).unwrap().is_some(), "that of another rank");
    own(child.id(), start + 1);
    assert!(ground.claim(0).unwrap().is_some(), "its number is that of another process now");
    own(child.id(), start);
    child.kill().unwrap();
    // It is not waited for yet.
    assert!(ground.claim(0).unwrap().is_some());
    child.wait().unwrap();
    own(child.id(), start);
    assert!(ground.claim(0).unwrap().is_some());
    assert_eq!(page.word(OWNER).load(Ordering::Relaxed), std::process::id().into());
}

#[test]
fn the_file_is_inherited_and_taken_by_nobody_who_asks_for_something_else() {
    let ground = Ground::new().unwrap();
    let handed = ground.hand_down().unwrap();
    assert!(!rustix::io::fcntl_getfd(&handed).unwrap().contains(FdFlags::CLOEXEC));
    claim(&ground, 5).note(1, 2, Some(b"text")).unwrap();
    let other = std::fs::File::open("/dev/null").unwrap();
    for wrong in ["", "x", "-1", "0", "99999999", &other.as_raw_fd().to_string()] {
        assert!(Ground::take(wrong).is_none(), "{wrong}");
    }
    let number = handed.into_raw_fd();
    let taken = Ground::take(&number.to_string()).unwrap();
    assert!(rustix::io::fcntl_getfd(taken.file.as_fd()).unwrap().contains(FdFlags::CLOEXEC));
    // This process owns it already, and lives.
    assert!(taken.claim(5).unwrap().is_none());
}
