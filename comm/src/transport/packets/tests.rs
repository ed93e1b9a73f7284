use std::cell::RefCell;
use std::rc::Rc;

use proptest::prelude::*;
use rustix::event::EventfdFlags;

use super::*;

#[derive(Debug, Default)]
struct Post {
    /// Packets that have come to each process.
    boxes: Vec<VecDeque<(usize, Vec<u8>)>>,
    /// Packets that have not left, of each process.
    held: Vec<VecDeque<(usize, Vec<u8>)>>,
    /// Nothing leaves.
    is_stuck: bool,
    gone: Vec<usize>,
    losses: usize,
}

/// The packets of one process.
#[derive(Clone, Debug)]
struct Mail {
    me: usize,
    post: Rc<RefCell<Post>>,
}

impl Packets for Mail {
    fn blank(&mut self) -> Vec<u8> {
        vec![]
    }

    fn recycle(&mut self, _: Vec<u8>) {}

    fn post(&mut self, to: usize, packet: Vec<u8>) {
        let post = &mut *self.post.borrow_mut();
        match post.is_stuck {
            true => post.held[self.me].push_back((to, packet)),
            false => post.boxes[to].push_back((self.me, packet)),
        }
    }

    fn under_way(&self, to: usize) -> usize {
        let held = &self.post.borrow().held[self.me];
        held.iter().filter(|(there, _)| *there == to).map(|(_, packet)| packet.len()).sum()
    }

    fn next(&mut self) -> Option<(usize, Vec<u8>)> {
        let post = &mut *self.post.borrow_mut();
        if !post.is_stuck {
            for (to, packet) in post.held[self.me].drain(..) {
                post.boxes[to].push_back((self.me, packet));
            }
        }
        post.boxes[self.me].pop_front()
    }

    fn trouble(&self, process: usize) -> Option<String> {
        self.post.borrow().gone.contains(&process).then(|| "it has failed".to_owned())
    }

    fn has_losses(&mut self) {
        self.post.borrow_mut().losses += 1;
    }
}

type One = PacketTransport<Mail>;

/// So many processes.
fn all(count: usize) -> (Vec<One>, Rc<RefCell<Post>>) {
    let empty = || vec![VecDeque::new(); count];
    let post = Rc::new(RefCell::new(Post { boxes: empty(), held: empty(), ..Post::default() }));
    let bell = || Arc::new(rustix::event::eventfd(0, EventfdFlags::NONBLOCK).unwrap());
    let one = |me| PacketTransport::new(Mail { me, post: post.clone() }, Waiting::Sleep, bell());
    ((0..count).map(one).collect(), post)
}

/// Two of them in generation 0, and a link from the first to the second.
fn pair() -> (One, One, LinkId, LinkId, Rc<RefCell<Post>>) {
    let (mut both, post) = all(2);
    both.iter_mut().for_each(|one| one.change(0, &[]));
    let (mut there, mut here) = (both.remove(1), both.remove(0));
    let out = here.open(PeerId(2)).unwrap();
    let (from, link) = next(&mut there).unwrap();
    assert_eq!(from, PeerId(1));
    (here, there, out, link, post)
}

fn look(one: &mut One) -> Vec<LinkId> {
    let mut ready = vec![];
    one.wait(&[], Duration::ZERO, &mut ready);
    ready
}

fn next(one: &mut One) -> Option<(PeerId, LinkId)> {
    look(one);
    one.accepted()
}

fn send(one: &mut One, link: LinkId, bytes: &[u8]) -> Result<usize, LinkError> {
    one.send(link, &[IoSlice::new(bytes)])
}

/// What is there, at most so much of it.
fn receive(one: &mut One, link: LinkId, most: usize) -> Result<Vec<u8>, LinkError> {
    let mut bytes = vec![0; most];
    let count = one.receive(link, &mut [IoSliceMut::new(&mut bytes)])?;
    bytes.truncate(count);
    Ok(bytes)
}

#[test]
fn a_link_carries_bytes_both_ways() {
    let (mut here, mut there, out, link, _) = pair();
    assert_eq!(send(&mut here, out, b"hello"), Ok(5));
    assert_eq!(send(&mut there, link, b"well"), Ok(4));
    assert_eq!((look(&mut there), look(&mut here)), (vec![link], vec![out]));
    assert_eq!(receive(&mut there, link, 3).unwrap(), b"hel");
    assert_eq!(look(&mut there), [link], "something is left");
    assert_eq!(receive(&mut there, link, 9).unwrap(), b"lo");
    assert_eq!((receive(&mut there, link, 9).unwrap(), look(&mut there)), (vec![], vec![]));
    assert_eq!(receive(&mut here, out, 9).unwrap(), b"well");
}

#[test]
fn two_links_of_the_same_number_are_two() {
    let (mut here, mut there, out, link, _) = pair();
    let back = there.open(PeerId(1)).unwrap();
    let (_, other) = next(&mut here).unwrap();
    assert_ne!((out, link), (other, back));
    send(&mut here, out, b"first").unwrap();
    send(&mut here, other, b"second").unwrap();
    assert_eq!(receive(&mut there, back, 9).unwrap(), b"second");
    assert_eq!(receive(&mut there, link, 9).unwrap(), b"first");
}

#[test]
fn no_more_is_taken_than_there_is_room_for() {
    let (mut here, mut there, out, link, post) = pair();
    post.borrow_mut().is_stuck = true;
    let bytes: Vec<u8> = (0..2 * WINDOW_BYTES).map(|at| (at % 251) as u8).collect();
    let sent = send(&mut here, out, &bytes).unwrap();
    assert!((WINDOW_BYTES - PIECE_BYTES..WINDOW_BYTES + PIECE_BYTES).contains(&sent), "{sent}");
    assert_eq!(send(&mut here, out, &bytes[sent..]), Ok(0));
    assert!(!here.is_due(&[out], &mut vec![]));
    post.borrow_mut().is_stuck = false;
    assert!(here.is_due(&[out], &mut vec![]), "there is room again");
    assert_eq!(send(&mut here, out, &bytes[sent..]), Ok(bytes.len() - sent));
    assert!(receive(&mut there, link, bytes.len()).unwrap() == bytes);
}

#[test]
fn a_link_that_is_closed_there_gives_what_has_come_first() {
    let (mut here, mut there, out, link, _) = pair();
    send(&mut here, out, b"last").unwrap();
    here.close(out);
    assert_eq!(look(&mut there), [link]);
    assert_eq!(receive(&mut there, link, 9).unwrap(), b"last");
    assert_eq!(look(&mut there), [link], "its end is news");
    let end = "closed by the other side";
    assert_eq!(receive(&mut there, link, 9).unwrap_err().why(), end);
    assert_eq!(send(&mut there, link, b"x").unwrap_err().why(), end);
    // What was on the way to the closed one is lost.
    assert_eq!(look(&mut here), []);
    assert_eq!(receive(&mut here, out, 9).unwrap_err().why(), "closed");
}

#[test]
fn generations_do_not_mix() {
    let (mut here, mut there, out, link, post) = pair();
    send(&mut here, out, b"old").unwrap();
    assert_eq!(look(&mut there), [link]);
    here.change(1, &[]);
    assert_eq!(send(&mut here, out, b"x").unwrap_err().why(), "closed");
    let new = here.open(PeerId(2)).unwrap();
    send(&mut here, new, b"new").unwrap();
    // What is of the next generation waits, and what is of this one can still be had.
    assert_eq!((look(&mut there), next(&mut there)), (vec![link], None));
    send(&mut there, link, b"late").unwrap();
    there.change(1, &[]);
    let (from, link) = next(&mut there).unwrap();
    assert_eq!((from, receive(&mut there, link, 9).unwrap()), (PeerId(1), b"new".to_vec()));
    assert_eq!(look(&mut here), [], "what is late goes nowhere");
    assert_eq!(post.borrow().losses, 2, "both know of a loss");
}

#[test]
fn who_has_failed_by_the_word_of_the_library_has_links_that_are_down() {
    let (mut here, mut there, out, link, post) = pair();
    send(&mut here, out, b"last").unwrap();
    look(&mut there);
    post.borrow_mut().gone = vec![0];
    assert_eq!(look(&mut there), [link]);
    assert_eq!(receive(&mut there, link, 9).unwrap(), b"last");
    for down in [
        receive(&mut there, link, 9).unwrap_err(),
        send(&mut there, link, b"x").unwrap_err(),
        there.open(PeerId(1)).unwrap_err(),
    ] {
        assert_eq!(down.why(), "it has failed");
    }
}

#[test]
fn what_is_no_packet_is_dropped() {
    let (mut here, mut there, _, _, post) = pair();
    let header = |what: u8, opener| [&[0; 4][..], &[9, 0, 0, 0, opener, what]].concat();
    for packet in [vec![], vec![0; 9], header(3, 1), header(255, 1), header(0, 0), header(1, 1), header(2, 0)]
    {
        post.borrow_mut().boxes[1].push_back((0, packet));
    }
    assert_eq!((look(&mut there), next(&mut there)), (vec![], None));
    assert!(here.open(PeerId(0)).is_err());
}

#[test]
fn news_ends_a_wait() {
    let (mut both, _) = all(1);
    let mut one = both.remove(0);
    one.change(0, &[]);
    rustix::io::write(&*one.wake, &1u64.to_ne_bytes()).unwrap();
    one.wait(&[], Duration::from_secs(3600), &mut vec![]);
    one.wait(&[], Duration::from_millis(1), &mut vec![]);
}

proptest! {
    #[test]
    fn what_is_sent_in_pieces_arrives_as_one(
        pieces in proptest::collection::vec(0..100_000_usize, 1..6),
        room in 1..100_000_usize,
    ) {
        let (mut here, mut there, out, link, _) = pair();
        let parts: Vec<Vec<u8>> = pieces.iter().enumerate()
            .map(|(at, length)| (0..*length).map(|byte| (byte * 31 + at) as u8).collect()).collect();
        let slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let all = parts.concat();
        prop_assert_eq!(here.send(out, &slices), Ok(all.len()));
        let mut got = vec![];
        loop {
            let more = receive(&mut there, link, room).unwrap();
            if more.is_empty() {
                break;
            }
            got.extend(more);
        }
        prop_assert!(got == all);
    }
}
