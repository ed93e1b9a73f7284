//! What one rank may leave unreceived at another: floods of messages that nobody receives yet.

use super::*;

/// A receiver, rank 0, and senders that all speak to it; what it holds of each is counted.
struct Star {
    hub: End,
    senders: Vec<End>,
    /// Cost of the unreceived eager messages of each rank.
    held: Vec<u64>,
    /// Unmatched envelopes of each rank.
    announced: Vec<u32>,
    /// How often messages were asked for ahead.
    rounds: u64,
}

impl Star {
    fn new(senders: usize) -> Self {
        let endpoint = |rank| Endpoint::new(rank, senders + 1, 0);
        Self {
            hub: endpoint(0),
            senders: (1..=senders).map(endpoint).collect(),
            held: vec![0; senders + 1],
            announced: vec![0; senders + 1],
            rounds: 0,
        }
    }

    /// Moves frames until none is left. All the time what is held is within the limits.
    fn settle(&mut self) {
        loop {
            let mut quiet = true;
            for from in 1..=self.senders.len() {
                let sender = &mut self.senders[from - 1];
                if let Some(frame) = sender.frames(0).front().cloned() {
                    sender.handle_sent(0);
                    self.hear(from, &Header::decode(&frame.header).unwrap());
                    quiet = false;
                }
                let sender = &mut self.senders[from - 1];
                if let Some(frame) = self.hub.frames(from).front().cloned() {
                    self.hub.handle_sent(from);
                    let header = Header::decode(&frame.header).unwrap();
                    let landing = sender.handle_header(0, &header, |bytes| bytes).unwrap();
                    sender.handle_payload(0, &header, landing);
                    quiet = false;
                }
            }
            if quiet {
                break;
            }
        }
    }

    fn hear(&mut self, from: Rank, header: &Header) {
        let landing = self.hub.handle_header(from, header, |bytes| bytes).unwrap();
        match landing {
            Landing::Bounce(_) => {
                self.held[from] += header.length + MESSAGE_COST;
                self.announced[from] -= u32::from(header.kind == Kind::Payload);
            }
            Landing::Nowhere if header.kind == Kind::Envelope => self.announced[from] += 1,
            _ => {}
        }
        let most = CREDIT_BYTES + AHEAD_BYTES;
        assert!(self.held[from] <= most, "{} bytes of rank {from}", self.held[from]);
        assert!(self.announced[from] <= ENVELOPES_MAX, "{} envelopes of rank {from}", self.announced[from]);
        self.hub.handle_payload(from, header, landing);
        assert_eq!(self.act(), None, "nothing is received yet");
    }

    /// Asks for what is to come ahead; what is to be copied.
    fn act(&mut self) -> Option<(OpId, usize)> {
        let mut copied = None;
        while let Some(task) = self.hub.poll_task() {
            match task {
                Task::Ahead(from) => {
                    self.hub.fetch_ahead(from, |bytes| bytes);
                    self.rounds += 1;
                }
                Task::Copy { op, from, .. } => copied = Some((op, from)),
                _ => panic!("{task:?}"),
            }
        }
        copied
    }

    /// Receives whatever is first, which is there; the message.
    fn receive(&mut self) -> Envelope {
        let due = self.hub.probe(&ANY).expect("something is there");
        let op = receive(&mut self.hub, ANY, 2 * EAGER_BYTES_MAX);
        match self.act() {
            Some((to, from)) => {
                assert_eq!((to, from as u64), (op, due.length));
                self.held[due.source as Rank] -= due.length + MESSAGE_COST;
            }
            None => self.announced[due.source as Rank] -= 1,
        }
        self.settle();
        let Some(Outcome::Done(came)) = finish(&mut self.hub, op) else { panic!("{due:?} has not come") };
        assert_eq!(Envelope { mark: due.mark, ..came }, due);
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
            sender.send(0, message(1, tag, lengths[tag as usize % lengths.len()] as u64), 0);
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
        star.senders[0].send(0, message(1, 0, 0), 0);
    }
    star.settle();
    // Those that were announced first are there, too.
    let ahead = (AHEAD_BYTES / MESSAGE_COST) as u32;
    assert_eq!((star.held[1], star.announced[1]), (CREDIT_BYTES + AHEAD_BYTES, ENVELOPES_MAX - ahead));
    star.rounds = 0;
    for _ in 0..ENVELOPES_MAX + 20_000 {
        assert_eq!(star.receive().length, 0);
    }
    assert_eq!(star.hub.probe(&ANY), None);
    let each = AHEAD_BYTES / MESSAGE_COST / 2;
    assert!(star.rounds <= u64::from(ENVELOPES_MAX) / each + 20, "{} round trips", star.rounds);
}

/// What comes before its receive takes a place, and is not asked for without end.
#[test]
fn messages_that_come_ahead_and_are_not_received_hold_up_the_next_ones() {
    let mut star = Star::new(1);
    let length = EAGER_BYTES_MAX as u64;
    let [credit, ahead] = [CREDIT_BYTES, AHEAD_BYTES].map(|bytes| (bytes / (length + MESSAGE_COST)) as u32);
    for tag in 0..3 * credit {
        star.senders[0].send(0, message(1, tag, length), 0);
    }
    star.settle();
    let held = u64::from(credit + ahead) * (length + MESSAGE_COST);
    assert_eq!((star.held[1], star.announced[1]), (held, 2 * credit - ahead));
    for tag in (2 * credit..3 * credit).rev() {
        let op = receive(&mut star.hub, Pattern { tag: Some(tag), ..ANY }, length as usize);
        assert_eq!(star.act(), None);
        star.announced[1] -= 1;
        star.settle();
        assert!(matches!(finish(&mut star.hub, op), Some(Outcome::Done(_))));
        assert_eq!(star.held[1], held);
    }
    (0..2 * credit).for_each(|tag| assert_eq!(star.receive().tag, tag));
    assert_eq!((star.held[1], star.announced[1]), (0, 0));
}

/// What came ahead and was received makes room also while nothing else waits to come.
#[test]
fn messages_come_ahead_in_each_of_many_floods() {
    let mut star = Star::new(1);
    let length = EAGER_BYTES_MAX as u64;
    let count = (CREDIT_BYTES / (length + MESSAGE_COST)) as u32;
    for flood in 0..20 {
        // From the second flood on the last three come ahead, as credit goes back in lumps.
        for tag in 0..count {
            star.senders[0].send(0, message(1, tag, length), 0);
        }
        star.settle();
        let held = u64::from(count) * (length + MESSAGE_COST);
        assert_eq!((star.held[1], star.announced[1]), (held, 0), "flood {flood}");
        (0..count).for_each(|tag| assert_eq!(star.receive().tag, tag));
    }
}

/// The send of a synchronous message ends when its receive has started, not before.
#[test]
fn only_what_was_announced_for_want_of_credit_comes_before_its_receive() {
    let mut star = Star::new(1);
    let length = EAGER_BYTES_MAX as u64;
    for _ in 0..CREDIT_BYTES / (length + MESSAGE_COST) {
        star.senders[0].send(0, message(1, 0, length), 0);
    }
    let sender = &mut star.senders[0];
    let synchronous = sender.send(0, Outgoing { mode: Mode::Synchronous, ..message(1, 7, 0) }, 0);
    let long = sender.send(0, message(1, 7, length + 1), 0);
    let short = sender.send(0, message(1, 7, length), 0);
    star.settle();
    assert_eq!(
        [synchronous, long, short].map(|send| star.senders[0].is_finished(send)),
        [false, false, true]
    );
}
