use std::io::{IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use proptest::prelude::*;

use super::*;
use ft_proto::shared::{Shared, Word};

/// Two ends of a link with memory.
fn pair(capacity: usize) -> ((Ring, Socket), (Ring, Socket)) {
    let (one, two) = UnixStream::pair().unwrap();
    let socket = |stream: UnixStream| {
        stream.set_nonblocking(true).unwrap();
        Socket::from(OwnedFd::from(stream))
    };
    let (ring, file) = Ring::create(capacity, &Room::default()).unwrap();
    let other = Ring::adopt(&file, &Room::default()).unwrap();
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
    assert!(Ring::adopt(&file(4096 + 2 * 4096, seals), &Room::default()).is_ok());
    for bytes in [0, 1, 4096, 4096 + 4096, 4096 + 2 * 4096 + 1, 4096 + 2 * 4097, 4096 + (4 << 20), 1 << 40] {
        assert!(Ring::adopt(&file(bytes, seals), &Room::default()).is_err(), "{bytes} bytes");
    }
    for seals in [SealFlags::empty(), SealFlags::SHRINK, SealFlags::SHRINK | SealFlags::GROW] {
        assert!(Ring::adopt(&file(4096 + 2 * 4096, seals), &Room::default()).is_err(), "{seals:?}");
    }
    let (pipe, _end) = rustix::pipe::pipe().unwrap();
    assert!(Ring::adopt(&pipe, &Room::default()).is_err());
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
