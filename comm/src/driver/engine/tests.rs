use super::super::looks::with_looks;
use super::super::memory::Extent;
use super::super::wires::{Wires, engines};
use super::*;
use ft_proto::endpoint::EAGER_BYTES_MAX;
use ft_proto::layout::Layout;
use ft_proto::wire::header::Kind;
use std::rc::Rc;

fn letter(to: Rank, tag: Tag) -> Letter {
    Letter { to, context: 0, tag, mode: Mode::Standard, urgency: Urgency::Now }
}

fn from(source: Rank, tag: Tag) -> Pattern {
    Pattern { context: 0, source: Some(source as u32), tag: Some(tag) }
}

fn owned(bytes: &[u8]) -> Place {
    Place::Owned(Box::new(bytes.to_vec()))
}

fn numbers(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at % 251) as u8).collect()
}

/// Lets all go on, so many times.
fn turn(engines: &mut [Engine], times: usize) {
    for _ in 0..times {
        for engine in &mut *engines {
            engine.accept();
            engine.flush_all(&Memory::none());
            engine.wait(Duration::ZERO, &mut Memory::none());
        }
    }
}

/// Starts a receive of so many bytes.
fn receive(engine: &mut Engine, source: Rank, tag: Tag, room: usize) -> OpId {
    engine.receive(from(source, tag), owned(&vec![0; room]), None, &mut Memory::none())
}

/// The bytes of a receive that has ended.
fn bytes(engine: &mut Engine, op: OpId) -> Vec<u8> {
    match engine.finish(op).expect("it has ended").expect("it has ended well") {
        (Outcome::Done(_), Some(Place::Owned(buffer))) => buffer.bytes().to_vec(),
        _ => panic!("not done"),
    }
}

#[test]
fn messages_of_any_length_arrive_however_few_bytes_a_link_takes() {
    for most in [1, 7, 100, 1 << 20] {
        let (mut engines, _) = engines(2, most);
        let lengths = [0, 1, 100, 5000, if most > 7 { EAGER_BYTES_MAX + 1 } else { 0 }];
        let receives: Vec<OpId> =
            (0..).zip(lengths).map(|(tag, length)| receive(&mut engines[1], 0, tag, length)).collect();
        for (tag, length) in (0..).zip(lengths) {
            let op = engines[0].send(letter(1, tag), owned(&numbers(length)), &mut Memory::none());
            engines[0].detach(op);
        }
        turn(&mut engines, 2 * (EAGER_BYTES_MAX + 10_000) / most + 10);
        for (op, length) in receives.into_iter().zip(lengths) {
            assert_eq!(bytes(&mut engines[1], op), numbers(length), "{length} bytes, {most} at a time");
        }
        engines[0].sweep();
        assert!(engines[0].endpoint.is_idle(), "the memory of sends is freed");
        assert_eq!(engines[0].traffic().0, lengths.iter().sum::<usize>() as u64);
    }
}

/// Some leave at once, some in part, some behind others; some give their buffer back. Some are waited for, and have no operation there.
#[test]
fn messages_that_leave_at_once_keep_their_order() {
    let mut choices = 1_u64;
    let mut below = |end: u64| {
        choices = choices.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (choices >> 33) % end
    };
    for most in [61, 64, 200, 1 << 20] {
        let (mut engines, _) = engines(2, most);
        let (mut begun, mut left, mut awaited, mut sent) = (vec![], 0, 0, 0);
        for number in 0..500_u64 {
            let length = [0, 8, 8, 8, 100, 3000][below(6) as usize];
            let message: Vec<u8> = numbers(length).iter().map(|byte| byte ^ number as u8).collect();
            let urgency = if below(2) == 0 { Urgency::Now } else { Urgency::Soon };
            let letter = Letter { urgency, ..letter(1, 1) };
            if below(2) == 0 {
                begun.push((engines[0].send(letter, owned(&message), &mut Memory::none()), message.clone()));
            } else {
                match engines[0].send_owned(letter, message.clone()) {
                    Sent::Begun(op) => begun.push((op, message.clone())),
                    Sent::Left(back, envelope) => {
                        left += 1;
                        assert_eq!((&back, envelope.length, envelope.tag), (&message, length as u64, 1));
                    }
                }
            }
            sent += length as u64;
            let turns = [0, 0, 1, 70][below(4) as usize];
            turn(&mut engines, turns);
            if below(2) == 0 || number == 499 {
                turn(&mut engines, 100);
            }
            let (mut place, pattern) = (owned(&vec![0; length]), from(0, 1));
            let came = with_looks(below(40) as u32, |looks| {
                engines[1].receive_within(looks, (&pattern, None), &mut place, &mut Memory::none())
            });
            let received = match (came, place) {
                (Some(envelope), Place::Owned(buffer)) => {
                    awaited += 1;
                    assert_eq!((envelope.length, envelope.tag), (length as u64, 1));
                    buffer.bytes().to_vec()
                }
                (_, place) => {
                    let op = engines[1].receive(pattern, place, None, &mut Memory::none());
                    turn(&mut engines, 70);
                    bytes(&mut engines[1], op)
                }
            };
            assert_eq!(received, message, "message {number}, {most} bytes at a time");
        }
        turn(&mut engines, 100);
        for (op, message) in begun {
            assert_eq!(bytes(&mut engines[0], op), message, "it has its own buffer back");
        }
        assert!(left > 50 || most < 64, "{left} of them, {most} bytes at a time");
        assert!(awaited > 10, "{awaited} of them, {most} bytes at a time");
        assert!(engines.iter().all(|engine| engine.endpoint.is_idle()));
        assert_eq!(engines[0].traffic().0, sent);
    }
}

/// Who waits for a message gets that one, and what comes with it stays for others.
#[test]
fn what_is_awaited_is_taken_out_of_the_midst_of_others() {
    let wait = |engine: &mut Engine, pattern: Pattern, room: usize| {
        let mut place = owned(&vec![0; room]);
        let came = with_looks(30, |looks| {
            engine.receive_within(looks, (&pattern, None), &mut place, &mut Memory::none())
        });
        let Place::Owned(buffer) = place else { panic!("it was owned") };
        came.map(|envelope| (envelope.tag, buffer.bytes()[..envelope.length as usize].to_vec()))
    };
    for most in [1, 60, 1 << 20] {
        let (mut engines, _) = engines(2, most);
        let send = |engines: &mut Vec<Engine>, tag: Tag, text: &[u8]| {
            let op = engines[0].send(letter(1, tag), owned(text), &mut Memory::none());
            engines[0].detach(op);
        };
        // Nothing has come from there yet: nobody knows on which link it would.
        assert_eq!(wait(&mut engines[1], from(0, 1), 8), None);
        send(&mut engines, 9, b"first");
        turn(&mut engines, 100);
        let posted = receive(&mut engines[1], 0, 3, 8);
        for (tag, text) in [(1, "one"), (2, "two"), (3, "three"), (3, "four"), (3, "five is long")] {
            send(&mut engines, tag, text.as_bytes());
        }
        engines[1].accept();
        let mut two = None;
        for _ in 0..1000 {
            engines[0].flush_all(&Memory::none());
            two = two.or_else(|| wait(&mut engines[1], from(0, 2), 8));
        }
        assert_eq!(two, Some((2, b"two".to_vec())), "{most}");
        turn(&mut engines, 1000);
        // The receive that was posted has the first of its tag, whoever looked for what; the one before is there still.
        assert_eq!(bytes(&mut engines[1], posted)[..5], *b"three");
        assert_eq!(wait(&mut engines[1], from(0, 3), 8), None, "it has come: a receive takes it");
        for (tag, text, room) in [(3, "four", 8), (1, "one", 8), (9, "first", 8), (3, "five is long", 12)] {
            let op = receive(&mut engines[1], 0, tag, room);
            turn(&mut engines, 1);
            assert_eq!(bytes(&mut engines[1], op)[..text.len()], *text.as_bytes());
        }
        engines[0].sweep();
        assert!(engines.iter().all(|engine| engine.endpoint.is_idle()));
        // What is too long for it stays.
        send(&mut engines, 4, b"too long");
        assert_eq!(wait(&mut engines[1], from(0, 4), 3), None);
        turn(&mut engines, 100);
        let op = receive(&mut engines[1], 0, 4, 3);
        let Some(Ok((Outcome::Truncated { room: 3, .. }, _))) = engines[1].finish(op) else { panic!("cut") };
    }
}

#[test]
fn pieces_of_memory_go_where_their_layout_says() {
    let (mut engines, _) = engines(2, 11);
    let layout = Rc::new(Layout::strided(10, 30, 7, 31).unwrap());
    let (source, mut target) = (numbers(1000), vec![0; 1000]);
    let extent = |layout: &Rc<Layout>| Extent::Layout(layout.clone());
    let send = engines[0].send(letter(1, 5), Place::Read(extent(&layout)), &mut Memory::of(&source, &mut []));
    let place = Place::Write(extent(&layout));
    let receive = engines[1].receive(from(0, 5), place, None, &mut Memory::of(&[], &mut target));
    for _ in 0..200 {
        engines[0].flush_all(&Memory::of(&source, &mut []));
        engines[1].accept();
        engines[1].wait(Duration::ZERO, &mut Memory::of(&[], &mut target));
    }
    assert!(engines[0].is_finished(send) && engines[1].is_finished(receive));
    for (at, (got, sent)) in target.iter().zip(&source).enumerate() {
        let is_in = layout.iter().any(|piece| piece.contains(&at));
        assert_eq!(*got, if is_in { *sent } else { 0 }, "byte {at}");
    }
}

#[test]
fn a_send_that_is_abandoned_sends_what_was_there() {
    let (mut engines, _) = engines(2, 64);
    let source = numbers(5000);
    let send =
        engines[0].send(letter(1, 1), Place::Read(Extent::Range(0..5000)), &mut Memory::of(&source, &mut []));
    assert!(!engines[0].is_finished(send));
    engines[0].abandon(send, &mut Memory::of(&source, &mut []));
    drop(source);
    let op = receive(&mut engines[1], 0, 1, 5000);
    turn(&mut engines, 1000);
    assert_eq!(bytes(&mut engines[1], op), numbers(5000));
}

#[test]
fn gathered_messages_leave_at_the_next_look() {
    let (mut engines, net) = engines(2, 1 << 20);
    let soon = |tag| Letter { urgency: Urgency::Soon, ..letter(1, tag) };
    let first = engines[0].send(soon(1), owned(b"a"), &mut Memory::none());
    let second = engines[0].send(soon(2), owned(b"b"), &mut Memory::none());
    assert!(engines[0].is_finished(first), "the first leaves at once");
    assert!(!engines[0].is_finished(second), "what follows is gathered");
    engines[0].links.looked();
    let third = engines[0].send(soon(3), owned(b"c"), &mut Memory::none());
    assert!(engines[0].is_finished(second) && engines[0].is_finished(third));
    let fourth = engines[0].send(soon(4), owned(&numbers(GATHER_BYTES)), &mut Memory::none());
    assert!(engines[0].is_finished(fourth), "much is not gathered");
    drop(net);
}

#[test]
fn what_is_first_leaves_at_once_where_no_link_was_open_yet() {
    let soon = Letter { urgency: Urgency::Soon, ..letter(1, 1) };
    for mode in [Mode::Standard, Mode::Synchronous] {
        let (mut engines, _) = engines(2, 1 << 20);
        let Sent::Begun(_) = engines[0].send_owned(Letter { mode, ..soon }, vec![7u8; 8]) else {
            panic!("it has to open a link, or to wait for its receive")
        };
        assert!(engines[0].endpoint.frames(1).is_empty(), "{mode:?} waits for a look");
    }
}

/// What is told of broken links once something has moved.
fn broken_after(prepare: impl Fn(&Wires, &mut [Engine])) -> Vec<Vec<(Rank, String)>> {
    let (mut engines, net) = engines(2, 1 << 20);
    let op = engines[0].send(letter(1, 1), owned(b"hello"), &mut Memory::none());
    engines[0].detach(op);
    turn(&mut engines, 2);
    prepare(&net, &mut engines);
    turn(&mut engines, 3);
    engines.iter_mut().map(|engine| engine.findings.take_broken()).collect()
}

#[test]
fn a_link_that_breaks_is_told_once_and_to_the_ends_that_use_it() {
    assert_eq!(broken_after(|_, _| ()), [vec![], vec![]]);
    let cut = broken_after(|net, _| net.cut(0, 1));
    assert_eq!(cut, [vec![], vec![(0, "cut".to_owned())]], "the other end has nothing to send");
    let nonsense = broken_after(|net, _| net.inject(0, 1, &[0xff; 500]));
    assert_eq!(nonsense, [vec![], vec![(0, "what came over it is no message".to_owned())]]);
}

#[test]
fn who_cannot_be_reached_is_told_and_what_waits_for_it_ends_when_it_is_buried() {
    let (mut engines, net) = engines(3, 1 << 20);
    net.cut(0, 2);
    let send = engines[0].send(letter(2, 1), owned(b"hello"), &mut Memory::none());
    let named = receive(&mut engines[0], 2, 1, 5);
    let any =
        engines[0].receive(Pattern { source: None, ..from(2, 1) }, owned(&[0; 5]), None, &mut Memory::none());
    assert_eq!(engines[0].findings.take_broken(), [(2, "nobody is there".to_owned())]);
    assert!(!engines[0].is_finished(send));
    engines[0].bury(2, &[0]);
    for op in [send, named, any] {
        let ended = engines[0].finish(op).expect("it has ended").map(|_| ());
        assert_eq!(ended, Err(CommError::PeerFailed { ranks: vec![2], generation: 3 }));
    }
    engines[0].flush_all(&Memory::none());
    assert_eq!(engines[0].findings.take_broken(), [], "no link is tried again");
}

#[test]
fn news_while_a_link_is_opened_stops_what_needs_it_until_it_was_heard() {
    let (mut engines, net) = engines(2, 1 << 20);
    net.rings();
    let send = engines[0].send(letter(1, 1), owned(b"hello"), &mut Memory::none());
    assert!(!engines[0].is_finished(send));
    assert!(engines[0].was_interrupted() && !engines[0].was_interrupted());
    engines[0].flush_all(&Memory::none());
    assert!(engines[0].is_finished(send) && !engines[0].was_interrupted());
}

#[test]
fn what_is_offered_waits_for_a_link_that_news_have_delayed() {
    let long = numbers(EAGER_BYTES_MAX + 1);
    for awaits in [false, true] {
        let (mut engines, net) = engines(2, 1 << 20);
        net.are_near();
        if awaits {
            net.rings();
        }
        let send = engines[0].send(letter(1, 1), owned(&long), &mut Memory::none());
        let behind = engines[0].send(letter(1, 2), owned(b"behind"), &mut Memory::none());
        assert_eq!(engines[0].was_interrupted(), awaits);
        assert_eq!(engines[0].is_finished(behind), !awaits, "nothing overtakes it");
        if awaits {
            net.rings(); // and once more
            engines[0].flush_all(&Memory::none());
            assert!(engines[0].was_interrupted() && !engines[0].is_finished(behind));
        }
        engines[0].flush_all(&Memory::none());
        assert!(!engines[0].is_finished(send) && engines[0].is_finished(behind));
        let headers = net.headers(0, 1);
        let kinds: Vec<Kind> = headers.iter().map(|header| header.kind).collect();
        assert_eq!(kinds[..2], [Kind::Greeting, Kind::Envelope]);
        assert_ne!(headers[1].place, 0, "it is offered");
        // Nothing can be read over these wires, and so it is asked for.
        let op = receive(&mut engines[1], 0, 1, long.len());
        turn(&mut engines, 4);
        assert_eq!(bytes(&mut engines[1], op), long);
        assert!(engines[0].is_finished(send) && engines[0].unreached.is_empty());
    }
}

#[test]
fn what_is_offered_to_who_cannot_be_reached_ends_with_it() {
    let (mut engines, net) = engines(2, 1 << 20);
    net.rings();
    let long = numbers(EAGER_BYTES_MAX + 1);
    let send = engines[0].send(letter(1, 1), owned(&long), &mut Memory::none());
    assert!(engines[0].was_interrupted());
    net.cut(0, 1);
    engines[0].flush_all(&Memory::none());
    assert_eq!(engines[0].findings.take_broken(), [(1, "nobody is there".to_owned())]);
    engines[0].bury(1, &[0]);
    let ended = engines[0].finish(send).expect("it has ended").map(|_| ());
    assert_eq!(ended, Err(CommError::PeerFailed { ranks: vec![1], generation: 3 }));
    engines[0].flush_all(&Memory::none());
    assert!(engines[0].findings.take_broken().is_empty() && engines[0].unreached.is_empty());
}

#[test]
fn a_rank_talks_to_itself() {
    let (mut engines, _) = engines(1, 1);
    let early = engines[0].send(letter(0, 1), owned(b"one"), &mut Memory::none());
    let first = receive(&mut engines[0], 0, 1, 3);
    let second = receive(&mut engines[0], 0, 2, 3);
    let late = engines[0].send(letter(0, 2), owned(b"two"), &mut Memory::none());
    assert!(engines[0].is_finished(early) && engines[0].is_finished(late));
    assert_eq!(
        (bytes(&mut engines[0], first), bytes(&mut engines[0], second)),
        (b"one".to_vec(), b"two".to_vec())
    );
}

#[test]
fn what_is_claimed_and_dropped_is_freed() {
    let (mut engines, _) = engines(2, 1 << 20);
    let op = engines[0].send(letter(1, 1), owned(b"hello"), &mut Memory::none());
    engines[0].detach(op);
    turn(&mut engines, 2);
    let (bounce, envelope) = engines[1].claim(&from(0, 1)).expect("it has come");
    assert_eq!((envelope.length, engines[1].claim(&from(0, 1))), (5, None));
    assert!(!engines[1].endpoint.is_idle());
    engines[1].drop_claimed(bounce, 0);
    assert!(engines[1].endpoint.is_idle());
}

#[test]
fn what_was_claimed_of_a_rank_that_fails_ends_and_nothing_is_left_of_it() {
    let (mut engines, _) = engines(2, 1 << 20);
    let long = numbers(EAGER_BYTES_MAX + 1);
    for _ in 0..2 {
        let op = engines[0].send(letter(1, 1), owned(&long), &mut Memory::none());
        engines[0].detach(op);
    }
    turn(&mut engines, 2);
    let claimed = [(); 2].map(|()| engines[1].claim(&from(0, 1)).expect("it was announced").0);
    engines[1].bury(0, &[]);
    let op = engines[1].receive_claimed(claimed[0], owned(&long), &mut Memory::none());
    let ended = engines[1].finish(op).expect("it has ended").map(|_| ());
    assert_eq!(ended, Err(CommError::PeerFailed { ranks: vec![0], generation: 3 }));
    engines[1].drop_claimed(claimed[1], 0);
    assert!(engines[1].endpoint.is_idle());
}

#[test]
fn a_receive_whose_communicator_is_gone_holds_no_memory() {
    let (mut engines, _) = engines(1, 1);
    let context = ft_proto::endpoint::CONTEXT_DYNAMIC;
    engines[0].open_context(context);
    let pattern = Pattern { context, ..from(0, 1) };
    let op = engines[0].receive(pattern, owned(&[0; 3]), None, &mut Memory::none());
    assert!(engines[0].holds(op));
    engines[0].close_context(context);
    assert!(!engines[0].holds(op) && engines[0].endpoint.is_idle());
}
