use super::*;
use crate::stamp::Stamp;
use crate::wire::header::Header;

mod credit;
mod detached;

const ANY: Pattern = Pattern { context: 1, source: None, tag: None };

/// A place is a number: of bytes, where the endpoint asks for one.
type End = Endpoint<usize>;

fn message(context: u32, tag: u32, length: u64) -> Outgoing {
    Outgoing { context, tag, length, mode: Mode::Standard, offer: None }
}

/// A receive of up to `room` bytes.
fn receive(end: &mut End, pattern: Pattern, room: usize) -> OpId {
    end.receive(pattern, room, None, 0)
}

/// The outcome of an operation that has ended.
fn finish(end: &mut End, op: OpId) -> Option<Outcome> {
    end.finish(op).map(|(outcome, _)| outcome)
}

/// The next task is to copy a message: to which receive, and from where.
fn copy(end: &mut End) -> (OpId, usize) {
    let Some(Task::Copy { op, from, .. }) = end.poll_task() else { panic!("nothing to copy") };
    (op, from)
}

/// The next task is to read a message.
fn fetch(end: &mut End) -> Fetch {
    let Some(Task::Fetch(fetch)) = end.poll_task() else { panic!("nothing to read") };
    fetch
}

/// Two endpoints and a wire between them that carries headers in order.
struct Pair([End; 2]);

impl Pair {
    fn new() -> Self {
        Self([Endpoint::new(0, 2, 0), Endpoint::new(1, 2, 0)])
    }

    /// Moves every frame of `from` across; payloads land at once.
    fn deliver(&mut self, from: Rank) -> Vec<Kind> {
        let mut kinds = Vec::new();
        while let Some(frame) = self.0[from].frames(1 - from).front().cloned() {
            self.0[from].handle_sent(1 - from);
            let header = Header::decode(&frame.header).unwrap();
            kinds.push(header.kind);
            let there = &mut self.0[1 - from];
            let landing = there.handle_header(from, &header, |bytes| bytes).unwrap();
            there.handle_payload(from, &header, landing);
        }
        kinds
    }
}

#[test]
fn an_eager_message_lands_in_the_posted_receive() {
    let mut pair = Pair::new();
    let op = pair.0[1].receive(ANY, 100, None, 77);
    let send = pair.0[0].send(1, message(1, 7, 100), 0);
    assert!(!pair.0[0].is_finished(send));
    assert_eq!(pair.deliver(0), [Kind::Eager]);
    assert!(pair.0[0].is_finished(send));
    assert_eq!(pair.0[1].place(op), Some(&77));
    let Some((Outcome::Done(envelope), 77)) = pair.0[1].finish(op) else { panic!() };
    assert_eq!((envelope.source, envelope.tag, envelope.length), (0, 7, 100));
    assert!(pair.0[1].poll_task().is_none() && pair.0[1].is_idle());
}

#[test]
fn a_long_message_waits_for_its_receive() {
    let mut pair = Pair::new();
    let long = EAGER_BYTES_MAX as u64 + 1;
    let send = pair.0[0].send(1, message(1, 7, long), 0);
    let small = pair.0[0].send(1, message(1, 8, 4), 0);
    assert_eq!(pair.deliver(0), [Kind::Envelope, Kind::Eager]);
    assert!(pair.0[0].is_finished(small) && !pair.0[0].is_finished(send));
    // The later, small one is received first; then the long one.
    let op = receive(&mut pair.0[1], Pattern { tag: Some(8), ..ANY }, 4);
    assert_eq!(copy(&mut pair.0[1]), (op, 4));
    assert!(pair.0[1].is_finished(op));
    let op = receive(&mut pair.0[1], ANY, long as usize);
    assert_eq!(pair.deliver(1), [Kind::Ask]);
    assert_eq!(pair.deliver(0), [Kind::Payload]);
    assert!(pair.0[0].is_finished(send) && pair.0[1].is_finished(op));
}

#[test]
fn without_credit_messages_are_announced_in_order_and_memory_is_bounded() {
    let mut pair = Pair::new();
    let length = EAGER_BYTES_MAX as u64;
    for tag in 0..40 {
        pair.0[0].send(1, message(1, tag, length), 0);
    }
    let kinds = pair.deliver(0);
    let eager = kinds.iter().filter(|kind| **kind == Kind::Eager).count() as u64;
    assert_eq!(eager, CREDIT_BYTES / (length + MESSAGE_COST));
    assert_eq!(kinds.len(), 40);
    for tag in 0..40 {
        let op = receive(&mut pair.0[1], ANY, length as usize);
        pair.deliver(1);
        pair.deliver(0);
        let Some(Outcome::Done(envelope)) = finish(&mut pair.0[1], op) else { panic!("message {tag}") };
        assert_eq!(envelope.tag, tag);
    }
    // All credit came back, but for less than a quarter.
    let again = CREDIT_BYTES / 4 * 3 / (length + MESSAGE_COST);
    for _ in 0..again {
        pair.0[0].send(1, message(1, 0, length), 0);
    }
    assert_eq!(pair.deliver(0), vec![Kind::Eager; again as usize]);
}

#[test]
fn a_short_buffer_consumes_nothing() {
    let mut pair = Pair::new();
    let posted = receive(&mut pair.0[1], ANY, 10);
    pair.0[0].send(1, message(1, 7, 11), 0);
    pair.deliver(0);
    let end = &mut pair.0[1];
    assert!(matches!(finish(end, posted), Some(Outcome::Truncated { room: 10, .. })));
    let late = receive(end, ANY, 10);
    assert!(matches!(finish(end, late), Some(Outcome::Truncated { .. })));
    let enough = receive(end, ANY, 11);
    assert_eq!(copy(end), (enough, 11));
    assert!(matches!(finish(end, enough), Some(Outcome::Done(_))));
}

#[test]
fn violations_are_values() {
    let fresh = || Endpoint::new(1, 3, 2);
    let good = Header {
        stamp: Stamp::NONE,
        kind: Kind::Eager,
        generation: 2,
        context: 1,
        source: 0,
        tag: 0,
        sequence: 0,
        length: 0,
        subject: 0,
        place: 0,
    };
    for bad in [
        Header { generation: 1, ..good },
        Header { source: 2, ..good },
        Header { sequence: 1, ..good },
        Header { length: EAGER_BYTES_MAX as u64 + 1, ..good },
        Header { kind: Kind::Ask, ..good },
        Header { kind: Kind::Payload, ..good },
        Header { kind: Kind::Credit, subject: 1, ..good },
        Header { kind: Kind::Receipt, ..good },
        Header { kind: Kind::Envelope, length: u64::MAX, subject: 1, ..good },
    ] {
        assert!(fresh().handle_header(0, &bad, |_| ()).is_err(), "{bad:?}");
    }
    assert!(fresh().handle_header(0, &good, |_| ()).is_ok());
}

/// A peer that keeps to no limit fills no more memory than one that does.
#[test]
fn credit_that_was_not_given_cannot_be_used() {
    let good = Header {
        stamp: Stamp::NONE,
        kind: Kind::Eager,
        generation: 0,
        context: 1,
        source: 0,
        tag: 0,
        sequence: 0,
        length: 0,
        subject: 0,
        place: 0,
    };
    let floods = [
        (
            Header { length: EAGER_BYTES_MAX as u64, ..good },
            CREDIT_BYTES / (EAGER_BYTES_MAX as u64 + MESSAGE_COST),
        ),
        (good, CREDIT_BYTES / MESSAGE_COST),
        (Header { kind: Kind::Envelope, length: 1 << 30, ..good }, ENVELOPES_MAX.into()),
    ];
    for (header, limit) in floods {
        let mut end = Endpoint::new(1, 2, 0);
        let mut send = |sequence| {
            let header = Header { sequence, ..header };
            let landing = end.handle_header(0, &header, |_| ())?;
            end.handle_payload(0, &header, landing);
            Ok::<(), Violation>(())
        };
        for sequence in 0..limit {
            send(sequence).unwrap();
        }
        assert!(send(limit).is_err(), "{limit} of {header:?} and one more");
    }
}

/// Who waits for what is on its way ahead of its receive hears of a revocation.
#[test]
fn a_revocation_ends_receives_of_what_was_to_come_ahead() {
    let mut pair = Pair::new();
    let length = EAGER_BYTES_MAX as u64;
    let eager = CREDIT_BYTES / (length + MESSAGE_COST);
    for tag in 0..=eager {
        pair.0[0].send(1, message(1, tag as u32, length), 0);
    }
    pair.deliver(0);
    let end = &mut pair.0[1];
    let Some(Task::Ahead(0)) = end.poll_task() else { panic!("the last was only announced") };
    end.fetch_ahead(0, |bytes| bytes);
    let op = receive(end, Pattern { tag: Some(eager as u32), ..ANY }, length as usize);
    assert!(!end.is_finished(op));
    end.handle_revocation(1);
    assert_eq!(finish(end, op), Some(Outcome::Revoked));
    pair.deliver(1);
    pair.deliver(0);
}

#[test]
fn the_first_communicator_that_is_made_may_be_used_before_its_receiver_has_made_it() {
    let mut pair = Pair::new();
    let first = CONTEXT_DYNAMIC;
    pair.0[0].open_context(first);
    pair.0[0].send(1, message(first, 7, 4), 0);
    pair.deliver(0);
    pair.0[1].open_context(first);
    let op = receive(&mut pair.0[1], Pattern { context: first, ..ANY }, 4);
    assert_eq!(copy(&mut pair.0[1]), (op, 4));
}

#[test]
fn what_needs_a_lost_rank_ends_and_what_has_come_from_it_is_kept() {
    let mut pair = Pair::new();
    let long = EAGER_BYTES_MAX as u64 + 1;
    pair.0[0].send(1, message(1, 1, 4), 0);
    pair.0[0].send(1, message(1, 2, long), 0);
    pair.deliver(0);
    let from = |tag| Pattern { context: 1, source: Some(0), tag: Some(tag) };
    let endpoint = &mut pair.0[1];
    let asked = receive(endpoint, from(2), long as usize);
    let posted = receive(endpoint, from(3), 4);
    let anybody = receive(endpoint, ANY, 0);
    let offered = endpoint.send(0, message(1, 9, long), 0);
    endpoint.handle_loss(0, &[]);
    let late_send = endpoint.send(0, message(1, 9, 4), 0);
    let late_receive = receive(endpoint, from(3), 4);
    for op in [asked, posted, offered, late_send, late_receive] {
        assert_eq!(finish(endpoint, op), Some(Outcome::Failed(0)));
    }
    // The one that is here is still good; it had no room for that.
    assert!(matches!(finish(endpoint, anybody), Some(Outcome::Truncated { .. })));
    let op = receive(endpoint, from(1), 4);
    assert_eq!(copy(endpoint), (op, 4));
    assert!(endpoint.busy().is_empty() && endpoint.frames(0).is_empty());
}

#[test]
fn a_receive_from_anybody_ends_with_a_rank_of_its_communicator() {
    let mut end = End::new(1, 3, 0);
    let [anybody, elsewhere] = [1, 5].map(|context| receive(&mut end, Pattern { context, ..ANY }, 4));
    end.handle_loss(0, &[1]);
    assert_eq!(finish(&mut end, anybody), Some(Outcome::Failed(0)));
    assert!(!end.is_finished(elsewhere), "it may still be somebody else");
    let late = end.receive(ANY, 4, Some(0), 0);
    assert_eq!(finish(&mut end, late), Some(Outcome::Failed(0)));
    end.send_to_self(1, 7, 4, 1, 2);
    let late = end.receive(ANY, 4, Some(0), 0);
    assert_eq!(copy(&mut end), (late, 2), "what is here can be had");
}

#[test]
fn a_payload_that_is_torn_ends_its_receive() {
    let mut pair = Pair::new();
    let op = receive(&mut pair.0[1], ANY, 4);
    pair.0[0].send(1, message(1, 7, 4), 0);
    let header = Header::decode(&pair.0[0].frames(1)[0].header).unwrap();
    let landing = pair.0[1].handle_header(0, &header, |bytes| bytes).unwrap();
    assert_eq!((landing, pair.0[1].landing_mut(landing)), (Landing::Op(op), Some(&mut 0)));
    pair.0[1].handle_torn(0, landing);
    assert_eq!(finish(&mut pair.0[1], op), Some(Outcome::Failed(0)));
}

#[test]
fn what_was_claimed_of_a_lost_rank_ends_when_it_is_received() {
    let mut pair = Pair::new();
    for length in [LONG, LONG, 4] {
        pair.0[0].send(1, message(1, 7, length), 0);
    }
    pair.deliver(0);
    let end = &mut pair.0[1];
    let [first, second, third] = [(); 3].map(|()| end.claim_message(&ANY).unwrap().0);
    end.handle_loss(0, &[]);
    let op = end.receive_claimed(first, 0);
    assert_eq!(finish(end, op), Some(Outcome::Failed(0)));
    end.drop_claimed(second);
    let op = end.receive_claimed(third, 0);
    assert_eq!(copy(end), (op, 4));
    assert!(matches!(finish(end, op), Some(Outcome::Done(_))) && end.is_idle());
}

#[test]
fn a_message_that_is_claimed_while_it_comes_is_copied_when_it_is_whole() {
    let mut pair = Pair::new();
    pair.0[0].send(1, message(1, 7, 4), 0);
    let header = Header::decode(&pair.0[0].frames(1)[0].header).unwrap();
    let end = &mut pair.0[1];
    let landing = end.handle_header(0, &header, |bytes| bytes).unwrap();
    assert_eq!(end.landing_mut(landing), Some(&mut 4));
    let op = receive(end, ANY, 10);
    assert!(end.poll_task().is_none() && !end.is_finished(op) && end.cancel(op).is_none());
    end.handle_payload(0, &header, landing);
    assert_eq!(copy(end), (op, 4));
    assert!(end.is_finished(op));
}

#[test]
fn a_message_to_oneself_goes_to_its_receive_or_waits_for_it() {
    let mut end = End::new(0, 1, 0);
    let early = receive(&mut end, ANY, 4);
    let sends = [1, 2].map(|tag| end.send_to_self(1, tag, 4, 10, tag as usize));
    assert_eq!(copy(&mut end), (early, 1));
    let late = receive(&mut end, ANY, 4);
    assert_eq!(copy(&mut end), (late, 2));
    for (op, tag) in [(sends[0], 1), (sends[1], 2), (early, 1), (late, 2)] {
        let envelope = Envelope { context: 1, source: 0, tag, mark: Mark::NONE, length: 4 };
        assert_eq!(finish(&mut end, op), Some(Outcome::Done(envelope)));
    }
    assert!(end.is_idle() && end.busy().is_empty());
}

#[test]
fn a_receive_that_nothing_has_matched_can_be_withdrawn() {
    let mut pair = Pair::new();
    let op = pair.0[1].receive(ANY, 4, None, 77);
    assert_eq!((pair.0[1].cancel(op), pair.0[1].cancel(op)), (Some(77), None));
    let send = pair.0[0].send(1, message(1, 7, 4), 0);
    assert_eq!(pair.0[0].cancel(send), None);
    assert!(pair.0[0].holds(send) && !pair.0[1].holds(op));
}

#[test]
fn calls_on_a_revoked_communicator_end_on_both_sides() {
    let mut pair = Pair::new();
    let long = EAGER_BYTES_MAX as u64 + 1;
    let send = pair.0[0].send(1, message(1, 1, long), 0);
    let other = pair.0[0].send(1, message(5, 1, long), 0);
    pair.deliver(0);
    let asked = receive(&mut pair.0[1], ANY, long as usize);
    let posted = receive(&mut pair.0[1], ANY, 4);
    pair.0.iter_mut().for_each(|endpoint| endpoint.handle_revocation(1));
    assert_eq!(finish(&mut pair.0[0], send), Some(Outcome::Revoked));
    assert_eq!(finish(&mut pair.0[1], asked), Some(Outcome::Revoked));
    assert_eq!(finish(&mut pair.0[1], posted), Some(Outcome::Revoked));
    // The ask that was on its way finds nothing; messages of others go on.
    assert_eq!(pair.deliver(1), [Kind::Ask]);
    assert_eq!(pair.deliver(0), []);
    let op = receive(&mut pair.0[1], Pattern { context: 5, ..ANY }, long as usize);
    pair.deliver(1);
    pair.deliver(0);
    assert!(pair.0[1].is_finished(op) && pair.0[0].is_finished(other));
}

/// Both can read the other's memory.
fn neighbors() -> Pair {
    let mut pair = Pair::new();
    for rank in [0, 1] {
        pair.0[rank].handle_near(1 - rank, 0x1000, 77);
        pair.0[rank].handle_near(1 - rank, 0x1000, 77);
        assert_eq!(pair.deliver(rank), [Kind::Greeting], "once");
        let Some(Task::Answer(greeting)) = pair.0[1 - rank].poll_task() else { panic!() };
        assert_eq!((greeting.from, greeting.seal_at, greeting.seal), (rank, 0x1000, 77));
        pair.0[1 - rank].handle_readable(greeting);
    }
    pair
}

/// Just not sent at once.
const LONG: u64 = EAGER_BYTES_MAX as u64 + 1;
const OFFER: Option<Offer> = Some(Offer { place: 0x2000, seal: 77 });

fn offered(tag: u32, length: u64) -> Outgoing {
    Outgoing { offer: OFFER, ..message(1, tag, length) }
}

#[test]
fn an_offered_message_is_read_and_its_receipt_ends_the_send() {
    let mut pair = neighbors();
    let [sender, receiver] = &mut pair.0;
    // The first is posted before it comes, the second after that.
    let early = receive(receiver, ANY, 1 << 20);
    let sends = [1, 2].map(|tag| sender.send(1, offered(tag, LONG), 0));
    assert_eq!(pair.deliver(0), [Kind::Envelope; 2]);
    let late = receive(&mut pair.0[1], ANY, 1 << 20);
    for (op, send, tag) in [(early, sends[0], 1), (late, sends[1], 2)] {
        let fetch = fetch(&mut pair.0[1]);
        assert_eq!((fetch.op, fetch.from, fetch.length), (op, 0, LONG as usize));
        assert_eq!((Some(fetch.offer), fetch.seal_at), (OFFER, 0x1000));
        assert!(!pair.0[1].is_finished(op) && !pair.0[0].is_finished(send));
        pair.0[1].handle_fetched(fetch, true);
        let Some(Outcome::Done(envelope)) = finish(&mut pair.0[1], op) else { panic!() };
        assert_eq!(envelope.tag, tag);
        assert_eq!(pair.deliver(1), [Kind::Receipt]);
        assert!(pair.0[0].is_finished(send));
    }
    assert!(pair.0[1].poll_task().is_none());
}

#[test]
fn what_cannot_be_read_is_asked_for() {
    let mut pair = neighbors();
    let op = receive(&mut pair.0[1], ANY, 1 << 20);
    let send = pair.0[0].send(1, offered(7, 1 << 20), 0);
    assert_eq!(pair.deliver(0), [Kind::Envelope]);
    let fetch = fetch(&mut pair.0[1]);
    pair.0[1].handle_fetched(fetch, false);
    assert_eq!(pair.deliver(1), [Kind::Ask]);
    assert_eq!(pair.deliver(0), [Kind::Payload]);
    assert!(pair.0[0].is_finished(send) && pair.0[1].is_finished(op));
}

/// The longest message that is sent eagerly to who can read it.
const NEAR: u64 = super::credit::EAGER_BYTES_MAX_NEAR as u64;

#[test]
fn short_messages_are_not_offered_and_who_cannot_read_asks() {
    // Who can read gets less eagerly than who cannot.
    for (length, kind) in [(NEAR, Kind::Eager), (NEAR + 1, Kind::Envelope)] {
        let mut pair = neighbors();
        pair.0[0].send(1, offered(7, length), 0);
        assert_eq!(pair.deliver(0), [kind]);
    }
    let mut pair = neighbors();
    pair.0[0].send(1, message(1, 7, LONG - 1), 0);
    assert_eq!(pair.deliver(0), [Kind::Eager], "it is not offered");
    let mut pair = Pair::new();
    pair.0[0].handle_near(1, 0x1000, 77);
    pair.deliver(0);
    // The seal was not found, so rank 1 cannot read what is offered.
    assert!(matches!(pair.0[1].poll_task(), Some(Task::Answer(_))));
    pair.0[0].send(1, offered(7, 1 << 20), 0);
    pair.deliver(0);
    receive(&mut pair.0[1], ANY, 1 << 20);
    assert!(pair.0[1].poll_task().is_none());
    assert_eq!(pair.deliver(1), [Kind::Ask]);
}

#[test]
fn a_message_that_nobody_wants_is_not_sent() {
    let mut pair = neighbors();
    let sends = [OFFER, None].map(|offer| pair.0[0].send(1, Outgoing { offer, ..message(1, 7, 1 << 20) }, 0));
    pair.deliver(0);
    for send in sends {
        let (bounce, _) = pair.0[1].claim_message(&ANY).unwrap();
        pair.0[1].drop_claimed(bounce);
        assert_eq!(pair.deliver(1), [Kind::Receipt]);
        assert!(pair.0[0].is_finished(send));
    }
}
