use std::io::{IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use loom::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence as loom_fence};
use loom::sync::{Arc as LoomArc, Condvar, Mutex};
use proptest::prelude::*;

use super::*;

/// Two ends of a link with memory.
fn pair(capacity: usize) -> ((Ring, Socket), (Ring, Socket)) {
    let (one, two) = UnixStream::pair().unwrap();
    let socket = |stream: UnixStream| {
        stream.set_nonblocking(true).unwrap();
        Socket::from(OwnedFd::from(stream))
    };
    let (ring, file) = Ring::create(capacity).unwrap();
    let other = Ring::adopt(&file).unwrap();
    ((ring, socket(one)), (other, socket(two)))
}

fn half(capacity: usize) -> (Half, Half) {
    let memory = Arc::new(Mapped::create(capacity).unwrap().0);
    (Half::new(Arc::clone(&memory), true), Half::new(memory, true))
}

fn bytes(from: u64, count: usize) -> Vec<u8> {
    (from..from + count as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

#[test]
fn both_sides_send_at_once_and_nothing_is_mixed_up() {
    let ((mut one, near), (mut two, far)) = pair(4096);
    for round in 0..10_u64 {
        let (there, back) = (bytes(round, 3000), bytes(round + 7, 2000));
        assert_eq!(one.send(&near, &[IoSlice::new(&there[..1]), IoSlice::new(&there[1..])]).unwrap(), 3000);
        assert_eq!(two.send(&far, &[IoSlice::new(&back)]).unwrap(), 2000);
        let mut into = vec![0; 4000];
        let count = two.receive(&far, &mut [IoSliceMut::new(&mut into)]).unwrap();
        assert_eq!(into[..count], there);
        let count = one.receive(&near, &mut [IoSliceMut::new(&mut into)]).unwrap();
        assert_eq!(into[..count], back);
    }
}

#[test]
fn who_sleeps_is_woken_once_and_who_is_awake_is_not() {
    let ((mut one, near), (mut two, far)) = pair(4096);
    let woken = |socket: &Socket| rustix::io::read(socket, &mut [0; 8]).unwrap_or(0);
    one.send(&near, &[IoSlice::new(b"a")]).unwrap();
    assert_eq!(woken(&far), 0);
    two.receive(&far, &mut [IoSliceMut::new(&mut [0])]).unwrap();
    two.sleeps(true, false);
    fence();
    assert!(!two.has_come());
    one.send(&near, &[IoSlice::new(b"b")]).unwrap();
    one.send(&near, &[IoSlice::new(b"c")]).unwrap();
    assert_eq!((woken(&far), two.has_come()), (1, true));
    two.receive(&far, &mut [IoSliceMut::new(&mut [0; 2])]).unwrap();
    // A sender that waits for room hears of it when there is some.
    assert_eq!(one.send(&near, &[IoSlice::new(&[0; 5000])]).unwrap(), 4096 - 3);
    assert_eq!(
        one.send(&near, &[IoSlice::new(&[0; 5000])]).unwrap(),
        0,
        "it was not told of the first three"
    );
    one.sleeps(true, true);
    fence();
    assert!(!one.has_room());
    two.receive(&far, &mut [IoSliceMut::new(&mut [0; 100])]).unwrap();
    assert_eq!(woken(&near), 0, "not for so little");
    two.receive(&far, &mut [IoSliceMut::new(&mut [0; 1000])]).unwrap();
    assert_eq!((woken(&near), one.has_room()), (1, true));
}

#[test]
fn the_end_comes_after_what_was_sent() {
    let ((mut one, near), (mut two, far)) = pair(4096);
    one.send(&near, &[IoSlice::new(b"last words")]).unwrap();
    drop((one, near));
    two.hear(&far);
    assert!(two.has_come() && two.has_room(), "so that it is looked at");
    let mut into = [0; 20];
    assert_eq!(two.receive(&far, &mut [IoSliceMut::new(&mut into)]).unwrap(), 10);
    assert_eq!(&into[..10], b"last words");
    let end = two.receive(&far, &mut [IoSliceMut::new(&mut into)]).unwrap_err();
    assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(two.send(&far, &[IoSlice::new(b"x")]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn only_memory_that_cannot_change_its_size_is_taken() {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
    let file = |bytes: u64, seals: SealFlags| {
        let file = memfd_create("stranger", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&file, bytes).unwrap();
        fcntl_add_seals(&file, seals).unwrap();
        file
    };
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    assert!(Ring::adopt(&file(4096 + 2 * 4096, seals)).is_ok());
    for bytes in [0, 1, 4096, 4096 + 4096, 4096 + 2 * 4096 + 1, 4096 + 2 * 4097, 4096 + (4 << 20), 1 << 40] {
        assert!(Ring::adopt(&file(bytes, seals)).is_err(), "{bytes} bytes");
    }
    for seals in [SealFlags::empty(), SealFlags::SHRINK, SealFlags::SHRINK | SealFlags::GROW] {
        assert!(Ring::adopt(&file(4096 + 2 * 4096, seals)).is_err(), "{seals:?}");
    }
    let (pipe, _end) = rustix::pipe::pipe().unwrap();
    assert!(Ring::adopt(&pipe).is_err());
}

proptest! {
    /// What is received is what was sent, in pieces of any length on both sides, and a ring is never filled beyond its end.
    #[test]
    fn bytes_come_as_they_were_sent(deeds in proptest::collection::vec((any::<bool>(), 0..6000_usize, 0..100_usize), 1..60)) {
        let (one, two) = half(4096);
        let (mut sender, mut receiver) = (Sender::new(one), Receiver::new(two));
        let (mut sent, mut received) = (0, 0);
        for (sends, length, first) in deeds {
            let first = first.min(length);
            if sends {
                let text = bytes(sent, length);
                let pieces = [IoSlice::new(&text[..first]), IoSlice::new(&text[first..])];
                let count = sender.send(&pieces).unwrap();
                prop_assert!(count == length || sent + count as u64 - received >= 3 * 1024);
                sent += count as u64;
                prop_assert!(sent - received <= 4096);
            } else {
                let mut into = vec![0; length];
                let (head, rest) = into.split_at_mut(first);
                let (count, _) = receiver.receive(&mut [IoSliceMut::new(head), IoSliceMut::new(rest)]).unwrap();
                prop_assert_eq!(count as u64, (length as u64).min(sent - received));
                prop_assert_eq!(&into[..count], &bytes(received, count)[..]);
                received += count as u64;
            }
        }
    }

    /// Whatever the other side writes into the words: what is counted stays within the ring, or the link is found to be of no use.
    #[test]
    fn numbers_that_cannot_be_end_the_link(numbers in proptest::collection::vec((0..4_u8, prop_oneof![any::<u64>(), 0..9000_u64]), 1..40)) {
        let (one, two) = half(4096);
        let (other, again) = (Half::new(Arc::clone(one.memory()), true), Half::new(Arc::clone(two.memory()), true));
        let (mut sender, mut receiver) = (Sender::new(one), Receiver::new(two));
        let mut into = vec![0; 10_000];
        for (word, number) in numbers {
            let word = [Word::Head, Word::Tail, Word::ReceiverSleeps, Word::SenderSleeps][word as usize];
            other.store(word, number);
            match sender.send(&[IoSlice::new(&[1; 5000])]) {
                Ok(count) => prop_assert!(count <= 4096 && sender.room() <= 4096),
                Err(Nonsense) => return Ok(()),
            }
            again.store(word, number);
            match receiver.receive(&mut [IoSliceMut::new(&mut into)]) {
                Ok((count, _)) => prop_assert!(count <= 10_000 && receiver.seen() <= 4096),
                Err(Nonsense) => return Ok(()),
            }
        }
    }
}

/// What a memory may do wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    None,
    /// A number may be seen before the bytes that it stands for.
    PublishesEarly,
    /// Who is about to sleep may miss what is published meanwhile.
    HasNoFence,
}

/// The memory of a ring in all the ways in which two processors may see it.
struct Seen {
    words: [AtomicU64; 4],
    row: [AtomicU8; Self::CAPACITY],
    flaw: Flaw,
}

impl Seen {
    const CAPACITY: usize = 4;
}

impl Shared for LoomArc<Seen> {
    fn capacity(&self) -> usize {
        Seen::CAPACITY
    }
    fn load(&self, word: Word) -> u64 {
        self.words[word as usize].load(Ordering::Acquire)
    }
    fn store(&self, word: Word, value: u64) {
        let is_early = self.flaw == Flaw::PublishesEarly;
        self.words[word as usize].store(value, if is_early { Ordering::Relaxed } else { Ordering::Release });
    }
    fn fence(&self) {
        if self.flaw != Flaw::HasNoFence {
            loom_fence(Ordering::SeqCst);
        }
    }
    fn read(&self, at: usize, into: &mut [u8]) {
        let row = self.row[at..].iter();
        into.iter_mut().zip(row).for_each(|(into, byte)| *into = byte.load(Ordering::Relaxed));
    }
    fn write(&self, at: usize, from: &[u8]) {
        let row = self.row[at..].iter();
        from.iter().zip(row).for_each(|(from, byte)| byte.store(*from, Ordering::Relaxed));
    }
}

fn seen(flaw: Flaw) -> LoomArc<Seen> {
    LoomArc::new(Seen {
        words: std::array::from_fn(|_| AtomicU64::new(0)),
        row: std::array::from_fn(|_| AtomicU8::new(0)),
        flaw,
    })
}

/// What wakes a thread: rung before it sleeps, it does not.
#[derive(Default)]
struct Bell(Mutex<bool>, Condvar);

impl Bell {
    fn ring(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_one();
    }

    fn wait(&self) {
        let mut is_rung = self.0.lock().unwrap();
        while !std::mem::take(&mut *is_rung) {
            is_rung = self.1.wait(is_rung).unwrap();
        }
    }
}

/// Two threads, one of which sends more than there is room for; both sleep when they have nothing to do. In every order of what they do (with up to three
/// preemptions), and of what they see of it, all bytes arrive and nobody sleeps for ever.
#[test]
fn all_bytes_arrive_in_every_order_and_nobody_sleeps_for_ever() {
    const TEXT: [u8; 6] = [1, 2, 3, 4, 5, 6];
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let memory = seen(Flaw::None);
        let (bell_there, bell_here) = (LoomArc::new(Bell::default()), LoomArc::new(Bell::default()));
        let (mut sender, mut receiver) =
            (Sender::new(LoomArc::clone(&memory)), Receiver::new(LoomArc::clone(&memory)));
        let (there, here) = (LoomArc::clone(&bell_there), LoomArc::clone(&bell_here));
        let thread = loom::thread::spawn(move || {
            let mut rest = &TEXT[..];
            while !rest.is_empty() {
                let count = sender.send(&[IoSlice::new(rest)]).unwrap();
                if count > 0 && sender.must_wake() {
                    there.ring();
                }
                rest = &rest[count..];
                if count == 0 {
                    sender.sleeps(true);
                    sender.memory.fence();
                    if sender.look() == Ok(0) {
                        here.wait();
                    }
                    sender.sleeps(false);
                }
            }
        });
        let mut got = Vec::new();
        while got.len() < TEXT.len() {
            let mut into = [0; 3];
            let (count, wakes) = receiver.receive(&mut [IoSliceMut::new(&mut into)]).unwrap();
            if wakes {
                bell_here.ring();
            }
            got.extend_from_slice(&into[..count]);
            if count == 0 {
                receiver.sleeps(true);
                receiver.memory.fence();
                if receiver.look() == Ok(0) {
                    bell_there.wait();
                }
                receiver.sleeps(false);
            }
        }
        assert_eq!(got, TEXT);
        thread.join().unwrap();
    });
}

/// Whether, in some order, one byte is read before it is there, and the receiver goes to sleep although it came.
fn what_goes_wrong(flaw: Flaw) -> (bool, bool) {
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    let found = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
    let wrong = Arc::clone(&found);
    loom::model(move || {
        let memory = seen(flaw);
        let (mut sender, mut receiver) =
            (Sender::new(LoomArc::clone(&memory)), Receiver::new(LoomArc::clone(&memory)));
        let thread = loom::thread::spawn(move || {
            sender.send(&[IoSlice::new(&[7])]).unwrap();
            sender.must_wake()
        });
        receiver.sleeps(true);
        receiver.memory.fence();
        let has_come = receiver.look() != Ok(0);
        let mut into = [0];
        let (count, _) = receiver.receive(&mut [IoSliceMut::new(&mut into)]).unwrap();
        let is_woken = thread.join().unwrap();
        wrong[0].fetch_or(count == 1 && into != [7], SeqCst);
        wrong[1].fetch_or(!has_come && !is_woken, SeqCst);
    });
    (found[0].load(SeqCst), found[1].load(SeqCst))
}

#[test]
fn a_memory_without_order_is_found_out() {
    assert_eq!(what_goes_wrong(Flaw::None), (false, false));
    assert_eq!(what_goes_wrong(Flaw::PublishesEarly), (true, false), "a byte that is not there");
    assert_eq!(what_goes_wrong(Flaw::HasNoFence), (false, true), "a wake-up that is lost");
}
