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
    let send = pair.0[0].send(1, 1, 7, 100, Mode::Standard, None);
    assert!(!pair.0[0].is_finished(send));
    assert_eq!(pair.deliver(0), [Kind::Eager]);
    assert!(pair.0[0].is_finished(send));
    let Some(Outcome::Done(envelope)) = pair.0[1].finish(op) else { panic!() };
    assert_eq!((envelope.source, envelope.tag, envelope.length), (0, 7, 100));
}

#[test]
fn a_long_message_waits_for_its_receive() {
    let mut pair = Pair::new();
    let long = EAGER_BYTES_MAX as u64 + 1;
    let send = pair.0[0].send(1, 1, 7, long, Mode::Standard, None);
    let small = pair.0[0].send(1, 1, 8, 4, Mode::Standard, None);
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
        pair.0[0].send(1, 1, tag, length, Mode::Standard, None);
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
    pair.0[0].send(1, 1, 7, 11, Mode::Standard, None);
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
        place: 0,
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
/// A receiver, rank 0, and senders that all speak to it; what it holds of each is counted.
struct Star {
    hub: Endpoint,
    senders: Vec<Endpoint>,
    /// Cost of the unreceived eager messages of each rank.
    held: Vec<u64>,
    /// Unmatched envelopes of each rank.
    announced: Vec<u32>,
}

impl Star {
    fn new(senders: usize) -> Self {
        let endpoint = |rank| Endpoint::new(rank, senders + 1, 0);
        Self {
            hub: endpoint(0),
            senders: (1..=senders).map(endpoint).collect(),
            held: vec![0; senders + 1],
            announced: vec![0; senders + 1],
        }
    }

    /// Moves frames until none is left. All the time what is held is within the limits.
    fn settle(&mut self) {
        loop {
            let mut quiet = true;
            for from in 1..=self.senders.len() {
                let sender = &mut self.senders[from - 1];
                if let Some(frame) = sender.frames(0).front().cloned() {
                    sender.left(0);
                    self.hear(from, &Header::decode(&frame.header).unwrap());
                    quiet = false;
                }
                let sender = &mut self.senders[from - 1];
                if let Some(frame) = self.hub.frames(from).front().cloned() {
                    self.hub.left(from);
                    let header = Header::decode(&frame.header).unwrap();
                    let landing = sender.arrived(0, &header).unwrap();
                    assert_eq!(sender.landed(0, &header, landing), None);
                    quiet = false;
                }
            }
            if quiet {
                break;
            }
        }
    }

    fn hear(&mut self, from: Rank, header: &Header) {
        let landing = self.hub.arrived(from, header).unwrap();
        match landing {
            Landing::Bounce(_) => self.held[from] += cost(header.length),
            Landing::Nowhere if header.kind == Kind::Envelope => self.announced[from] += 1,
            _ => {}
        }
        assert!(self.held[from] <= CREDIT_BYTES, "{} bytes of rank {from}", self.held[from]);
        assert!(self.announced[from] <= ENVELOPES_MAX, "{} envelopes of rank {from}", self.announced[from]);
        self.hub.landed(from, header, landing);
    }

    /// Receives whatever is first, which is there; the message.
    fn receive(&mut self) -> Envelope {
        let due = self.hub.probe(&ANY).expect("something is there");
        let (op, bounce) = self.hub.receive(ANY, 2 * EAGER_BYTES_MAX);
        match bounce {
            Some(bounce) => {
                self.hub.taken(op, bounce);
                self.held[due.source as Rank] -= cost(due.length);
            }
            None => self.announced[due.source as Rank] -= 1,
        }
        self.settle();
        assert_eq!(self.hub.finish(op), Some(Outcome::Done(due)));
        due
    }
}

#[test]
fn what_seven_senders_flood_a_late_receiver_with_is_bounded_and_arrives_in_order() {
    const MESSAGES: u32 = 200;
    let mut star = Star::new(7);
    let lengths = [EAGER_BYTES_MAX, 1000, EAGER_BYTES_MAX + 1, 0, EAGER_BYTES_MAX / 2];
    for sender in &mut star.senders {
        for tag in 0..MESSAGES {
            sender.send(0, 1, tag, lengths[tag as usize % lengths.len()] as u64, Mode::Standard, None);
        }
    }
    star.settle();
    // The credit is used, and the rest is announced.
    for rank in 1..=7 {
        assert!(star.held[rank] > CREDIT_BYTES / 2 && star.announced[rank] > MESSAGES / 4);
    }
    let mut next = [0; 8];
    for _ in 0..7 * MESSAGES {
        let message = star.receive();
        let next = &mut next[message.source as usize];
        assert_eq!(message.tag, *next, "of rank {}", message.source);
        assert_eq!(message.length, lengths[*next as usize % lengths.len()] as u64);
        *next += 1;
    }
    assert_eq!((&star.held[..], &star.announced[..]), (&[0; 8][..], &[0; 8][..]));
}

#[test]
fn empty_messages_that_nobody_receives_are_bounded_too() {
    let mut star = Star::new(1);
    for _ in 0..ENVELOPES_MAX + 20_000 {
        star.senders[0].send(0, 1, 0, 0, Mode::Standard, None);
    }
    star.settle();
    assert_eq!((star.held[1], star.announced[1]), (CREDIT_BYTES, ENVELOPES_MAX));
    for _ in 0..ENVELOPES_MAX + 20_000 {
        assert_eq!(star.receive().length, 0);
    }
    assert_eq!(star.hub.probe(&ANY), None);
}

#[test]
fn the_first_communicator_that_is_made_may_be_used_before_its_receiver_has_made_it() {
    let mut pair = Pair::new();
    let first = CONTEXT_DYNAMIC;
    pair.0[0].open_context(first);
    pair.0[0].send(1, first, 7, 4, Mode::Standard, None);
    pair.deliver(0);
    pair.0[1].open_context(first);
    let (_, bounce) = pair.0[1].receive(Pattern { context: first, ..ANY }, 4);
    assert!(bounce.is_some());
}

#[test]
fn what_needs_a_lost_rank_ends_and_what_has_come_from_it_is_kept() {
    let mut pair = Pair::new();
    let long = EAGER_BYTES_MAX as u64 + 1;
    pair.0[0].send(1, 1, 1, 4, Mode::Standard, None);
    pair.0[0].send(1, 1, 2, long, Mode::Standard, None);
    pair.deliver(0);
    let from = |tag| Pattern { context: 1, source: Some(0), tag: Some(tag) };
    let endpoint = &mut pair.0[1];
    let (asked, _) = endpoint.receive(from(2), long as usize);
    let (posted, _) = endpoint.receive(from(3), 4);
    let (anybody, _) = endpoint.receive(ANY, 0);
    let offered = endpoint.send(0, 1, 9, long, Mode::Standard, None);
    endpoint.lose(0);
    let late_send = endpoint.send(0, 1, 9, 4, Mode::Standard, None);
    let (late_receive, _) = endpoint.receive(from(3), 4);
    for op in [asked, posted, offered, late_send, late_receive] {
        assert_eq!(endpoint.finish(op), Some(Outcome::Failed(0)));
    }
    // The one that is here is still good; it had no room for that.
    assert!(matches!(endpoint.finish(anybody), Some(Outcome::Truncated { .. })));
    let (_, bounce) = endpoint.receive(from(1), 4);
    assert!(bounce.is_some() && endpoint.busy().is_empty() && endpoint.frames(0).is_empty());
    // Anybody may still be somebody else, unless nobody vouches for that.
    let (anybody, _) = endpoint.receive(Pattern { tag: Some(50), ..ANY }, 4);
    assert!(!endpoint.is_finished(anybody));
    endpoint.lose_wildcards(2, 0);
    assert!(!endpoint.is_finished(anybody));
    endpoint.lose_wildcards(1, 0);
    assert_eq!(endpoint.finish(anybody), Some(Outcome::Failed(0)));
}

#[test]
fn calls_on_a_revoked_communicator_end_on_both_sides() {
    let mut pair = Pair::new();
    let long = EAGER_BYTES_MAX as u64 + 1;
    let send = pair.0[0].send(1, 1, 1, long, Mode::Standard, None);
    let other = pair.0[0].send(1, 5, 1, long, Mode::Standard, None);
    pair.deliver(0);
    let (asked, _) = pair.0[1].receive(ANY, long as usize);
    let (posted, _) = pair.0[1].receive(ANY, 4);
    pair.0.iter_mut().for_each(|endpoint| endpoint.revoke(1));
    assert_eq!(pair.0[0].finish(send), Some(Outcome::Revoked));
    assert_eq!(pair.0[1].finish(asked), Some(Outcome::Revoked));
    assert_eq!(pair.0[1].finish(posted), Some(Outcome::Revoked));
    // The ask that was on its way finds nothing; messages of others go on.
    assert_eq!(pair.deliver(1), [Kind::Ask]);
    assert_eq!(pair.deliver(0), []);
    let (op, _) = pair.0[1].receive(Pattern { context: 5, ..ANY }, long as usize);
    pair.deliver(1);
    pair.deliver(0);
    assert!(pair.0[1].is_finished(op) && pair.0[0].is_finished(other));
}

/// Both can read the other's memory.
fn neighbors() -> Pair {
    let mut pair = Pair::new();
    for rank in [0, 1] {
        pair.0[rank].greet(1 - rank, 0x1000, 77);
        pair.0[rank].greet(1 - rank, 0x1000, 77);
        assert_eq!(pair.deliver(rank), [Kind::Greeting], "once");
        let greeting = pair.0[1 - rank].next_greeting().unwrap();
        assert_eq!((greeting.from, greeting.seal_at, greeting.seal), (rank, 0x1000, 77));
        pair.0[1 - rank].can_read(greeting);
        assert_eq!(pair.deliver(1 - rank), [Kind::Readable]);
    }
    pair
}

/// Just not sent at once.
const LONG: u64 = EAGER_BYTES_MAX as u64 + 1;
const OFFER: Option<Offer> = Some(Offer { place: 0x2000, seal: 77 });

#[test]
fn an_offered_message_is_read_and_its_receipt_ends_the_send() {
    let mut pair = neighbors();
    let [sender, receiver] = &mut pair.0;
    // The first is posted before it comes, the second after that.
    let (early, _) = receiver.receive(ANY, 1 << 20);
    let sends = [1, 2].map(|tag| sender.send(1, 1, tag, LONG, Mode::Standard, OFFER));
    assert_eq!(pair.deliver(0), [Kind::Envelope; 2]);
    let (late, bounce) = pair.0[1].receive(ANY, 1 << 20);
    assert_eq!(bounce, None);
    for (op, send, tag) in [(early, sends[0], 1), (late, sends[1], 2)] {
        let fetch = pair.0[1].next_fetch().unwrap();
        assert_eq!((fetch.op, fetch.from, fetch.length), (op, 0, LONG as usize));
        assert_eq!((Some(fetch.offer), fetch.seal_at), (OFFER, 0x1000));
        assert!(!pair.0[1].is_finished(op) && !pair.0[0].is_finished(send));
        pair.0[1].fetched(fetch, true);
        let Some(Outcome::Done(envelope)) = pair.0[1].finish(op) else { panic!() };
        assert_eq!(envelope.tag, tag);
        assert_eq!(pair.deliver(1), [Kind::Receipt]);
        assert!(pair.0[0].is_finished(send));
    }
    assert!(pair.0[1].next_fetch().is_none());
}

#[test]
fn what_cannot_be_read_is_asked_for() {
    let mut pair = neighbors();
    let (op, _) = pair.0[1].receive(ANY, 1 << 20);
    let send = pair.0[0].send(1, 1, 7, 1 << 20, Mode::Standard, OFFER);
    assert_eq!(pair.deliver(0), [Kind::Envelope]);
    let fetch = pair.0[1].next_fetch().unwrap();
    pair.0[1].fetched(fetch, false);
    assert_eq!(pair.deliver(1), [Kind::Ask]);
    assert_eq!(pair.deliver(0), [Kind::Payload]);
    assert!(pair.0[0].is_finished(send) && pair.0[1].is_finished(op));
}

#[test]
fn short_messages_and_those_of_strangers_are_not_offered() {
    let mut pair = neighbors();
    pair.0[0].send(1, 1, 7, LONG - 1, Mode::Standard, OFFER);
    assert_eq!(pair.deliver(0), [Kind::Eager]);
    let mut pair = Pair::new();
    pair.0[0].greet(1, 0x1000, 77);
    pair.deliver(0);
    // The seal was not found; rank 1 says nothing, and nothing is offered to it.
    assert!(pair.0[1].next_greeting().is_some());
    pair.0[0].send(1, 1, 7, 1 << 20, Mode::Standard, OFFER);
    pair.deliver(0);
    let (_, bounce) = pair.0[1].receive(ANY, 1 << 20);
    assert!(bounce.is_none() && pair.0[1].next_fetch().is_none());
    assert_eq!(pair.deliver(1), [Kind::Ask]);
}

#[test]
fn a_message_that_nobody_wants_is_not_sent() {
    let mut pair = neighbors();
    let sends = [OFFER, None].map(|offer| pair.0[0].send(1, 1, 7, 1 << 20, Mode::Standard, offer));
    pair.deliver(0);
    for send in sends {
        let (bounce, _) = pair.0[1].claim_message(&ANY).unwrap();
        assert!(!pair.0[1].drop_claimed(bounce));
        assert_eq!(pair.deliver(1), [Kind::Receipt]);
        assert!(pair.0[0].is_finished(send));
    }
}
