use super::*;

const ANY: Pattern = Pattern { context: 1, source: None, tag: None };

/// Two endpoints and a wire between them that carries headers in order.
struct Pair([Endpoint; 2]);

impl Pair {
    fn new() -> Self {
        Self([Endpoint::new(0, 2, 0), Endpoint::new(1, 2, 0)])
    }

    /// Moves every frame of `from` across; payloads land at once.
    fn deliver(&mut self, from: Rank) -> Vec<Kind> {
        let mut kinds = Vec::new();
        while let Some(frame) = self.0[from].frames(1 - from).front().cloned() {
            self.0[from].left(1 - from);
            let header = Header::decode(&frame.header).unwrap();
            kinds.push(header.kind);
            let there = &mut self.0[1 - from];
            let landing = there.arrived(from, &header).unwrap();
            if let (Some(op), Landing::Bounce(bounce)) = (there.landed(from, &header, landing), landing) {
                there.taken(op, bounce);
            }
        }
        kinds
    }
}

#[test]
fn an_eager_message_lands_in_the_posted_receive() {
    let mut pair = Pair::new();
    let (op, bounce) = pair.0[1].receive(ANY, 100);
    assert_eq!(bounce, None);
    let send = pair.0[0].send(1, 1, 7, 100, Mode::Standard);
    assert!(!pair.0[0].is_finished(send));
    assert_eq!(pair.deliver(0), [Kind::Eager]);
    assert!(pair.0[0].is_finished(send));
    let Some(Outcome::Done(envelope)) = pair.0[1].finish(op) else { panic!() };
    assert_eq!((envelope.source, envelope.tag, envelope.length, envelope.stamp), (0, 7, 100, 0));
}

#[test]
fn a_long_message_waits_for_its_receive() {
    let mut pair = Pair::new();
    let long = EAGER_BYTES_MAX as u64 + 1;
    let send = pair.0[0].send(1, 1, 7, long, Mode::Standard);
    let small = pair.0[0].send(1, 1, 8, 4, Mode::Standard);
    assert_eq!(pair.deliver(0), [Kind::Envelope, Kind::Eager]);
    assert!(pair.0[0].is_finished(small) && !pair.0[0].is_finished(send));
    // The later, small one is received first; then the long one.
    let (op, bounce) = pair.0[1].receive(Pattern { tag: Some(8), ..ANY }, 4);
    pair.0[1].taken(op, bounce.expect("it is here"));
    assert!(pair.0[1].is_finished(op));
    let (op, _) = pair.0[1].receive(ANY, long as usize);
    assert_eq!(pair.deliver(1), [Kind::Ask]);
    assert_eq!(pair.deliver(0), [Kind::Payload]);
    assert!(pair.0[0].is_finished(send) && pair.0[1].is_finished(op));
}

#[test]
fn without_credit_messages_are_announced_in_order_and_memory_is_bounded() {
    let mut pair = Pair::new();
    let length = EAGER_BYTES_MAX as u64;
    for tag in 0..40 {
        pair.0[0].send(1, 1, tag, length, Mode::Standard);
    }
    let kinds = pair.deliver(0);
    let eager = kinds.iter().filter(|kind| **kind == Kind::Eager).count() as u64;
    assert_eq!(eager, CREDIT_BYTES / cost(length));
    assert_eq!(kinds.len(), 40);
    for tag in 0..40 {
        let (op, bounce) = pair.0[1].receive(ANY, length as usize);
        if let Some(bounce) = bounce {
            pair.0[1].taken(op, bounce);
        }
        pair.deliver(1);
        pair.deliver(0);
        let Some(Outcome::Done(envelope)) = pair.0[1].finish(op) else { panic!("message {tag}") };
        assert_eq!(envelope.tag, tag);
    }
    // All credit came back, but for less than a quarter.
    assert!(pair.0[0].peers[1].credit > CREDIT_BYTES / 4 * 3);
}

#[test]
fn a_short_buffer_consumes_nothing() {
    let mut pair = Pair::new();
    let (posted, _) = pair.0[1].receive(ANY, 10);
    pair.0[0].send(1, 1, 7, 11, Mode::Standard);
    pair.deliver(0);
    assert!(matches!(pair.0[1].finish(posted), Some(Outcome::Truncated { room: 10, .. })));
    let (late, _) = pair.0[1].receive(ANY, 10);
    assert!(matches!(pair.0[1].finish(late), Some(Outcome::Truncated { .. })));
    let (enough, bounce) = pair.0[1].receive(ANY, 11);
    pair.0[1].taken(enough, bounce.unwrap());
    assert!(matches!(pair.0[1].finish(enough), Some(Outcome::Done(_))));
}

#[test]
fn violations_are_values() {
    let mut end = Endpoint::new(1, 3, 2);
    let good = Header {
        kind: Kind::Eager,
        generation: 2,
        context: 1,
        source: 0,
        tag: 0,
        sequence: 0,
        length: 0,
        subject: 0,
        stamp: 0,
    };
    for bad in [
        Header { generation: 1, ..good },
        Header { source: 2, ..good },
        Header { sequence: 1, ..good },
        Header { length: EAGER_BYTES_MAX as u64 + 1, ..good },
        Header { kind: Kind::Ask, ..good },
        Header { kind: Kind::Payload, ..good },
        Header { kind: Kind::Credit, subject: 1, ..good },
    ] {
        end.peers[0].receive_sequence = 0;
        assert!(end.arrived(0, &bad).is_err(), "{bad:?}");
    }
    end.peers[0].receive_sequence = 0;
    assert!(end.arrived(0, &good).is_ok());
}

/// A peer that keeps to no limit fills no more memory than one that does.
#[test]
fn credit_that_was_not_given_cannot_be_used() {
    let good = Header {
        kind: Kind::Eager,
        generation: 0,
        context: 1,
        source: 0,
        tag: 0,
        sequence: 0,
        length: 0,
        subject: 0,
        stamp: 0,
    };
    let floods = [
        (Header { length: EAGER_BYTES_MAX as u64, ..good }, CREDIT_BYTES / cost(EAGER_BYTES_MAX as u64)),
        (good, CREDIT_BYTES / MESSAGE_COST),
        (Header { kind: Kind::Envelope, length: 1 << 30, ..good }, ENVELOPES_MAX.into()),
    ];
    for (header, limit) in floods {
        let mut end = Endpoint::new(1, 2, 0);
        let mut send = |sequence| {
            let header = Header { sequence, ..header };
            let landing = end.arrived(0, &header)?;
            end.landed(0, &header, landing);
            Ok::<(), Violation>(())
        };
        for sequence in 0..limit {
            send(sequence).unwrap();
        }
        assert!(send(limit).is_err(), "{limit} of {header:?} and one more");
    }
}
