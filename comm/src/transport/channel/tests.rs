use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use proptest::prelude::*;

use super::super::seal::Suite;
use super::*;

/// Two ends of a link between hosts.
fn pair() -> (Channel, Channel) {
    let (one, two) = UnixStream::pair().unwrap();
    let half = |key| Half::new(Suite::ChaCha, &[key; 32]);
    let end = |stream: UnixStream, ours, theirs| {
        stream.set_nonblocking(true).unwrap();
        let socket = Socket::from(std::os::fd::OwnedFd::from(stream));
        Channel::new(socket, Carriage::Sealed(Box::new(Sealed::new(half(ours), half(theirs)))))
    };
    (end(one, 1, 2), end(two, 2, 1))
}

fn receive(channel: &mut Channel, room: usize) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; room];
    let count = channel.receive(&mut [IoSliceMut::new(&mut buffer)])?;
    buffer.truncate(count);
    Ok(buffer)
}

fn text(length: usize) -> Vec<u8> {
    (0..length as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Pieces of any lengths, offered again as the contract says, come whole and in order, into room of any size.
    #[test]
    fn bytes_come_as_they_were_sent(
        lengths in proptest::collection::vec(prop_oneof![0..3usize, 0..200usize, 60_000..140_000usize], 1..12),
        rooms in proptest::collection::vec(1..100_000usize, 1..6),
    ) {
        let (mut one, mut two) = pair();
        let sent = text(lengths.iter().sum());
        let (mut gone, mut got, mut turn) = (0, Vec::new(), 0);
        while got.len() < sent.len() {
            // What is left of each piece.
            let (mut start, mut pieces) = (0, Vec::new());
            for length in &lengths {
                let end = start + length;
                pieces.push(IoSlice::new(&sent[start.max(gone).min(end)..end]));
                start = end;
            }
            let offered: usize = pieces.iter().map(|piece| piece.len()).sum();
            let count = one.send(&pieces).unwrap();
            prop_assert!(count <= offered);
            gone += count;
            let came = receive(&mut two, rooms[turn % rooms.len()]).unwrap();
            got.extend(came);
            turn += 1;
        }
        prop_assert!(got == sent);
        prop_assert_eq!(gone, sent.len());
        prop_assert!(!two.holds_back());
    }
}

/// A byte that is owed belongs to a message that has begun: the first byte of a piece never is, unless the piece is but that.
#[test]
fn a_message_that_was_not_begun_is_not_bound_to_leave() {
    let (first, second) = (vec![1; TEXT_MAX - 1], vec![2; 1000]);
    let mut gathered = vec![];
    let pieces = [IoSlice::new(&first), IoSlice::new(&second)];
    assert_eq!(next_text(&pieces, 0, &mut gathered).len(), TEXT_MAX - 1);
    let pieces = [IoSlice::new(&second[..1]), IoSlice::new(&first), IoSlice::new(&second)];
    assert_eq!(next_text(&pieces, 1, &mut gathered).len(), TEXT_MAX - 1);
    assert_eq!(next_text(&pieces, 0, &mut gathered).len(), TEXT_MAX);
    assert_eq!(next_text(&pieces, 2, &mut gathered).len(), TEXT_MAX);
    assert!(
        gathered.len() == TEXT_MAX && gathered.ends_with(&[2, 2]),
        "the second of two bytes may be there"
    );
}

#[test]
fn what_was_said_to_have_gone_leaves_without_further_calls() {
    let (mut one, mut two) = pair();
    let fill = text(TEXT_MAX);
    let mut gone = 0;
    loop {
        let count = one.send(&[IoSlice::new(&fill)]).unwrap();
        gone += count;
        if count < fill.len() {
            break;
        }
    }
    // One byte is owed, and nothing else is missing: all but that byte's record is on its way or in the last, half-sent record.
    let mut got = 0;
    while let Ok(bytes @ [_, ..]) = receive(&mut two, 1 << 20).as_deref() {
        got += bytes.len();
    }
    assert!(got <= gone && gone - got < TEXT_MAX, "{got} of {gone}");
    // There is room now: whoever offers the same bytes again finds that the owed one has gone.
    let at = gone % TEXT_MAX;
    assert_eq!(one.send(&[IoSlice::new(&fill[at..=at])]).unwrap(), 1);
    while let Ok(bytes @ [_, ..]) = receive(&mut two, 1 << 20).as_deref() {
        got += bytes.len();
    }
    assert_eq!(got, gone + 1);
}

#[test]
fn what_was_read_ahead_is_known() {
    let (mut one, mut two) = pair();
    one.send(&[IoSlice::new(b"abc")]).unwrap();
    one.send(&[IoSlice::new(b"def")]).unwrap();
    assert!(!two.holds_back());
    assert_eq!(receive(&mut two, 2).unwrap(), b"ab");
    assert!(two.holds_back(), "the rest of a record");
    assert_eq!(receive(&mut two, 1).unwrap(), b"c");
    assert!(two.holds_back(), "a whole record");
    assert_eq!(receive(&mut two, 9).unwrap(), b"def");
    assert!(!two.holds_back());
}

#[test]
fn nothing_behind_a_changed_byte_is_believed() {
    let (mut one, two) = pair();
    let mut two = two;
    one.send(&[IoSlice::new(b"right")]).unwrap();
    one.send(&[IoSlice::new(b"wrong")]).unwrap();
    one.send(&[IoSlice::new(b"later")]).unwrap();
    // On the way one bit of the second record changes.
    let mut wire = vec![0; 1000];
    let count = two.socket().read(&mut wire).unwrap();
    wire.truncate(count);
    wire[count / 2] ^= 1;
    one.socket().write_all(&wire).unwrap();
    assert_eq!(receive(&mut two, 100).unwrap(), b"right");
    assert!(two.holds_back(), "that the link is broken");
    for _ in 0..2 {
        let error = receive(&mut two, 100).unwrap_err();
        assert!(error.to_string().contains("changes what is sent"), "{error}");
    }
}
