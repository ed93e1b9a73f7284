use std::cell::RefCell;
use std::rc::Rc;

use loom::sync::Arc as LoomArc;
use proptest::prelude::*;

use super::*;
use crate::shared::WORDS;
use crate::shared::seen::{Bell, Flaw, Seen, seen};

struct Memory {
    words: [u64; WORDS],
    cells: [[u8; CELL_BYTES]; SLOTS],
}

/// Memory that both sides see at once.
#[derive(Clone)]
struct Plain(Rc<RefCell<Memory>>);

impl Plain {
    fn new() -> Self {
        Self(Rc::new(RefCell::new(Memory { words: [0; WORDS], cells: [[0; CELL_BYTES]; SLOTS] })))
    }
}

impl Shared for Plain {
    fn capacity(&self) -> usize {
        0
    }
    fn load(&self, word: Word) -> u64 {
        self.0.borrow().words[word.number()]
    }
    fn store(&self, word: Word, value: u64) {
        self.0.borrow_mut().words[word.number()] = value;
    }
    fn fence(&self) {}
    fn read(&self, _at: usize, _into: &mut [u8]) {}
    fn write(&self, _at: usize, _from: &[u8]) {}
    fn read_cell(&self, cell: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.0.borrow().cells[cell][..into.len()]);
    }
    fn write_cell(&self, cell: usize, from: &[u8]) {
        self.0.borrow_mut().cells[cell][..from.len()].copy_from_slice(from);
    }
}

/// Both ends of the cells of a link, and its memory, by who sends.
fn ends() -> ([Cells<Plain>; 2], [Plain; 2]) {
    let memory = [Plain::new(), Plain::new()];
    let end = |side: usize| Cells::new(memory[side].clone(), memory[1 - side].clone());
    ([end(0), end(1)], memory.clone())
}

fn label(tag: u32) -> Label {
    Label { context: 3, tag }
}

/// What a message with this tag says.
fn text(tag: u32) -> Vec<u8> {
    (0..tag as usize * 37 % (CELL_BYTES + 1)).map(|at| (at as u32 * 5 + tag) as u8).collect()
}

fn taken(end: &mut Cells<Plain>, tag: u32) -> Option<Vec<u8>> {
    let mut into = [0; CELL_BYTES];
    end.take(label(tag), &mut into).unwrap().map(|length| into[..length].to_vec())
}

proptest! {
    /// Messages both ways, taken in any order: each is taken once, with its bytes, and a message is refused only if another one is there.
    #[test]
    fn what_is_put_is_taken_once_in_any_order(
        turns in prop::collection::vec((0..2_usize, any::<bool>(), 0..3_usize), 1..600),
    ) {
        let (mut ends, _) = ends();
        let (mut there, mut next): ([Vec<u32>; 2], u32) = Default::default();
        for (side, puts, which) in turns {
            if puts {
                let is_put = ends[side].put(label(next), &text(next));
                let before = there[side].len();
                prop_assert!(if is_put { before < SLOTS } else { before > 0 }, "{before} were there: {is_put}");
                prop_assert_eq!(ends[1 - side].look(), Ok(is_put));
                prop_assert_eq!(ends[1 - side].notice(), is_put);
                prop_assert_eq!(ends[1 - side].look(), Ok(false), "it was noticed");
                if is_put {
                    there[side].push(next);
                }
                next += 1;
            } else {
                prop_assert_eq!(taken(&mut ends[side], next), None);
                if which < there[1 - side].len() {
                    let tag = there[1 - side].remove(which);
                    prop_assert_eq!(taken(&mut ends[side], tag), Some(text(tag)));
                    prop_assert_eq!(taken(&mut ends[side], tag), None);
                }
            }
        }
    }
}

/// What was said of a cell long ago says nothing of it now.
#[test]
fn a_full_cell_is_full_however_often_it_was_filled() {
    let ((mut ends, _), mut twice) = (ends(), 0);
    for tag in 0..200_000 {
        assert!(ends[0].put(label(tag), &[1]), "{tag}");
        // Both ways, as a sum of two ranks has it, and one way, as a broadcast has it.
        if tag % 70_000 < 1000 {
            assert!(ends[1].put(label(tag), &[2]), "{tag}");
            assert_eq!(taken(&mut ends[0], tag), Some(vec![2]));
        } else if tag % 3 == 1 && ends[0].put(label(tag + (1 << 31)), &[3]) {
            assert!(!ends[0].put(label(0), &[4]), "{tag}: both are full");
            assert_eq!(taken(&mut ends[1], tag + (1 << 31)), Some(vec![3]));
            twice += 1;
        }
        assert_eq!(taken(&mut ends[1], tag), Some(vec![1]));
    }
    assert!(twice > 10_000, "{twice}");
}

#[test]
fn what_does_not_fit_is_refused_or_cut_off() {
    let (mut ends, _) = ends();
    assert!(!ends[0].put(label(1), &[0; CELL_BYTES + 1]));
    assert!(ends[0].put(label(1), &[7; CELL_BYTES]));
    let other = Label { context: 4, ..label(1) };
    assert_eq!(ends[1].take(other, &mut []), Ok(None), "of another communicator");
    let mut into = [0; 3];
    assert_eq!(ends[1].take(label(1), &mut into), Ok(Some(CELL_BYTES)));
    assert_eq!(into, [7; 3]);
}

#[test]
fn numbers_that_cannot_be_are_found_out() {
    let first = 1 << LENGTH_BITS;
    for word in [first + 1 + CELL_BYTES as u64, 2 * first, first | 0xffff, u64::MAX] {
        let (mut ends, memory) = ends();
        memory[0].store(Word::Filled(0), word);
        let is_seen = word >> LENGTH_BITS != 1; // that a message is too long is seen by who takes it
        assert_eq!(ends[1].look(), if is_seen { Err(Nonsense) } else { Ok(true) });
        assert!(ends[1].notice());
        assert_eq!(ends[1].take(label(1), &mut [0; 8]), Err(Nonsense), "{word:x}");
    }
    // What was taken may be any number: a cell that is full is free too early, and nobody else has harm of it.
    let (mut ends, memory) = ends();
    (0..2).for_each(|tag| assert!(ends[0].put(label(tag), &[tag as u8])));
    assert!(!ends[0].put(label(2), &[2]));
    memory[0].store(Word::Taken(1), u64::MAX);
    assert!(ends[0].put(label(2), &[2]));
    assert_eq!(ends[1].take(label(2), &mut [0; 8]), Err(Nonsense), "one was put over another");
}

fn loom_ends(flaw: Flaw) -> [Cells<LoomArc<Seen>>; 2] {
    let memory = [seen(flaw), seen(flaw)];
    let end = |side: usize| Cells::new(LoomArc::clone(&memory[side]), LoomArc::clone(&memory[1 - side]));
    [end(0), end(1)]
}

/// As a rank that waits: it takes the message, and sleeps while that is not there.
fn wait_for(end: &mut Cells<LoomArc<Seen>>, tag: u32, bell: &Bell) -> [u8; 1] {
    let mut into = [0];
    loop {
        if end.take(label(tag), &mut into).unwrap().is_some() {
            return into;
        }
        end.into.store(Word::ReceiverSleeps, 1);
        end.into.fence();
        if !end.notice() {
            bell.wait();
        }
        end.into.store(Word::ReceiverSleeps, 0);
    }
}

/// Two threads exchange a message twice, as in two sums, and sleep while it is not there: in every order (with up to two preemptions) each gets what the other has said.
#[test]
fn two_sides_exchange_in_every_order() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let [mut here, mut there] = loom_ends(Flaw::None);
        let bells = LoomArc::new([Bell::default(), Bell::default()]);
        let of_both = LoomArc::clone(&bells);
        let exchange = |end: &mut Cells<_>, own: &Bell, other: &Bell, first: u8| {
            for tag in 0..2 {
                assert!(end.put(label(tag), &[first + tag as u8]));
                if end.must_wake() {
                    other.ring();
                }
                assert_eq!(wait_for(end, tag, own), [first.wrapping_neg() + tag as u8]);
            }
        };
        let thread = loom::thread::spawn(move || exchange(&mut there, &of_both[1], &of_both[0], 100));
        exchange(&mut here, &bells[0], &bells[1], 156);
        thread.join().unwrap();
    });
}

/// One thread puts three messages, as often as there is a free cell, and the other takes them in another order: what comes is what was put.
#[test]
fn a_cell_is_not_filled_before_it_was_read_in_any_order() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let [mut here, mut there] = loom_ends(Flaw::None);
        let thread = loom::thread::spawn(move || {
            (0..3).map(|tag| here.put(label(tag), &[tag as u8 + 1])).collect::<Vec<_>>()
        });
        let mut came = vec![];
        for tag in [1, 0, 2, 0, 1, 2] {
            let mut into = [0];
            if there.take(label(tag), &mut into).unwrap().is_some() {
                came.push((tag, into));
            }
        }
        let put = thread.join().unwrap();
        assert!(
            put[0]
                && put[1]
                && came.iter().all(|(tag, byte)| *byte == [*tag as u8 + 1] && put[*tag as usize])
        );
    });
}

/// Whether, in some order, a message is taken before it is there, and its receiver sleeps although it has come.
fn what_goes_wrong(flaw: Flaw) -> (bool, bool) {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    let found = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
    let wrong = Arc::clone(&found);
    loom::model(move || {
        let [mut here, mut there] = loom_ends(flaw);
        let thread = loom::thread::spawn(move || {
            here.put(label(1), &[7]);
            here.must_wake()
        });
        there.into.store(Word::ReceiverSleeps, 1);
        there.into.fence();
        let has_come = there.notice();
        let mut into = [0];
        // A word that is seen before the label is that of another message.
        let is_torn = match there.take(label(1), &mut into) {
            Ok(Some(_)) => into != [7],
            Ok(None) => there.into.load(Word::Filled(0)) != 0 && there.into.load(Word::Label(0)) == 0,
            Err(Nonsense) => true,
        };
        let is_woken = thread.join().unwrap();
        wrong[0].fetch_or(is_torn, SeqCst);
        wrong[1].fetch_or(!has_come && !is_woken, SeqCst);
    });
    (found[0].load(SeqCst), found[1].load(SeqCst))
}

#[test]
fn a_memory_without_order_is_found_out() {
    assert_eq!(what_goes_wrong(Flaw::None), (false, false));
    assert_eq!(what_goes_wrong(Flaw::PublishesEarly), (true, false), "a message that is not there");
    assert_eq!(what_goes_wrong(Flaw::HasNoFence), (false, true), "a wake-up that is lost");
}
