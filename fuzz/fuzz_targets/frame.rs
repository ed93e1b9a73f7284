//! Frame headers, and an endpoint whose peers send any frames that they like while its own rank sends and receives.

#![no_main]

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use arbitrary::{Arbitrary, Unstructured};
use ft_proto::endpoint::{
    AHEAD_BYTES, CREDIT_BYTES, ENVELOPES_MAX, Endpoint, Landing, MESSAGE_COST, Mode, Offer, OpId, Outcome,
    Outgoing, Taken, Task,
};
use ft_proto::lines::Lines;
use ft_proto::matching::{Envelope, Pattern};
use ft_proto::stamp::Stamp;
use ft_proto::wire::header::{HEADER_BYTES, Header, Kind};
use libfuzzer_sys::fuzz_target;

/// Ranks of the job; the endpoint is that of the first, the others are hostile.
const RANKS: u8 = 3;
const GENERATION: u32 = 5;
/// Frames of one input, so that it stays a matter of milliseconds; enough to use up all credit.
const FRAMES_MAX: usize = 80_000;

/// What happens next.
#[derive(Arbitrary, Debug)]
enum Deed {
    /// A peer sends a frame; again and again if `flood` is 255.
    Frame {
        from: u8,
        frame: Frame,
        flood: u8,
        lands: bool,
    },
    /// The payload of the frame that came last from this peer is whole.
    Lands {
        from: u8,
    },
    Receive {
        source: Option<u8>,
        tag: Option<u8>,
        room: Length,
    },
    Send {
        to: u8,
        tag: u8,
        length: Length,
    },
    Probe {
        source: Option<u8>,
        tag: Option<u8>,
    },
    /// A message is taken out of the queue, and received or given up.
    Claim {
        source: Option<u8>,
        tag: Option<u8>,
        keep: bool,
    },
    Cancel {
        at: u8,
    },
    Finish {
        at: u8,
    },
    /// This many frames to a peer have left.
    Leave {
        to: u8,
        count: u8,
    },
    /// A frame comes while somebody waits for what a pattern accepts, with all of its payload or not.
    Awaited {
        from: u8,
        frame: Frame,
        tag: Option<u8>,
        room: Length,
        is_whole: bool,
    },
    /// A message leaves at once, if it may; all of it, or not.
    Express {
        to: u8,
        tag: u8,
        length: Length,
        has_left: bool,
    },
}

#[derive(Arbitrary, Debug)]
struct Frame {
    kind: u8,
    odd: Odd,
    tag: u8,
    length: Length,
    subject: Subject,
}

impl Frame {
    const KINDS: [Kind; 7] =
        [Kind::Eager, Kind::Envelope, Kind::Ask, Kind::Payload, Kind::Credit, Kind::Greeting, Kind::Receipt];

    /// Of the frame that comes from there, and is due to have this number.
    fn header(&self, from: usize, sequence: u64) -> Header {
        let (subject, place) = self.subject.words();
        let mut header = Header {
            kind: Self::KINDS[usize::from(self.kind) % Self::KINDS.len()],
            stamp: Stamp::from_bits(self.tag >> 4).unwrap_or(Stamp::NONE),
            generation: GENERATION,
            context: 2,
            source: from as u32,
            tag: u32::from(self.tag % 4),
            sequence,
            length: self.length.bytes(),
            subject,
            place,
        };
        match self.odd {
            Odd::Nothing | Odd::NothingEither => {}
            Odd::Generation(generation) => header.generation = generation,
            Odd::Source(source) => header.source = source,
            Odd::Sequence(sequence) => header.sequence = sequence,
        }
        header
    }
}

/// What is wrong with a frame that is not as it should be.
#[derive(Arbitrary, Debug, Clone, Copy, PartialEq)]
enum Odd {
    Nothing,
    NothingEither,
    Generation(u32),
    Source(u32),
    Sequence(u64),
}

#[derive(Arbitrary, Debug, Clone, Copy)]
enum Length {
    Small(u8),
    Middle(u16),
    /// About the length from which on messages are announced.
    Eager(i8),
    Any(u64),
}

#[derive(Arbitrary, Debug, Clone, Copy)]
enum Subject {
    Small(u8),
    Credit(u32),
    Any(u64),
}

impl Subject {
    /// The subject of a frame, and its place.
    fn words(self) -> (u64, u64) {
        match self {
            Self::Small(small) => (small.into(), u64::from(small) % 2),
            Self::Credit(credit) => (credit.into(), 0),
            Self::Any(any) => (any, any),
        }
    }
}

impl Length {
    fn bytes(self) -> u64 {
        match self {
            Self::Small(bytes) => bytes.into(),
            Self::Middle(bytes) => bytes.into(),
            Self::Eager(more) => (ft_comm::EAGER_BYTES_MAX as u64).saturating_add_signed(more.into()),
            Self::Any(bytes) => bytes,
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    header(bytes);
    let _ = play(&mut Unstructured::new(bytes));
});

/// What decodes encodes to the same bytes.
fn header(bytes: &[u8]) {
    let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else { return };
    if let Ok(header) = Header::decode(bytes) {
        assert_eq!(header.encode(), *bytes);
    }
}

fn play(script: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let mut game = Game::new();
    while !script.is_empty() {
        game.act(Deed::arbitrary(script)?);
    }
    game.end();
    Ok(())
}

/// Where the bytes of a message are, as the driver would have it.
struct Place {
    bytes: u64,
    /// What its peer fills of the driver's memory, if it is there.
    filled: Option<Rc<Cell<u64>>>,
}

impl Place {
    fn of(bytes: u64) -> Self {
        Self { bytes, filled: None }
    }

    /// Memory for a message that comes before its receive.
    fn filling(filled: &Rc<Cell<u64>>, bytes: usize) -> Self {
        let bytes = bytes as u64;
        filled.set(filled.get() + bytes + MESSAGE_COST);
        assert!(
            filled.get() <= CREDIT_BYTES + AHEAD_BYTES,
            "one peer fills {} bytes of memory",
            filled.get()
        );
        Self { bytes, filled: Some(filled.clone()) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(filled) = &self.filled {
            filled.set(filled.get() - self.bytes - MESSAGE_COST);
        }
    }
}

/// What the driver would know of one peer.
#[derive(Default)]
struct Peer {
    sequence: u64,
    /// It broke the protocol: its link is closed.
    closed: bool,
    /// The payload that is arriving.
    body: Option<(Header, Landing)>,
    /// Bytes and costs of its messages in memory of the driver.
    filled: Rc<Cell<u64>>,
    /// Its envelopes that were not asked for.
    announced: u32,
}

struct Game {
    endpoint: Endpoint<Place>,
    peers: Vec<Peer>,
    /// Receives by their room, and sends, that are under way.
    receives: HashMap<OpId, u64>,
    sends: HashMap<OpId, u64>,
    /// All operations, in order, to pick from.
    all: Vec<OpId>,
    frames: usize,
}

impl Game {
    fn new() -> Self {
        let mut endpoint = Endpoint::new(0, RANKS.into(), GENERATION);
        // What is said of recovery lines is not believed either.
        endpoint.begin_lines(Lines::new(RANKS.into(), 0), None);
        endpoint.enter_lines(true);
        Self {
            endpoint,
            peers: (0..RANKS).map(|_| Peer::default()).collect(),
            receives: HashMap::new(),
            sends: HashMap::new(),
            all: vec![],
            frames: 0,
        }
    }

    fn act(&mut self, deed: Deed) {
        match deed {
            Deed::Frame { from, frame, flood, lands } => {
                let times = if flood == u8::MAX { FRAMES_MAX } else { 1 };
                self.comes(peer(from), &frame, times, lands);
            }
            Deed::Lands { from } => self.lands(peer(from)),
            Deed::Receive { source, tag, room } => {
                let (pattern, room) = (pattern(source, tag), room.bytes());
                let op = self.endpoint.receive(pattern, room as usize, None, Place::of(room));
                self.all.push(op);
                self.receives.insert(op, room);
                self.act_on_tasks();
            }
            Deed::Send { to, tag, length } => self.send(peer(to), tag, length.bytes()),
            Deed::Probe { source, tag } => {
                let pattern = pattern(source, tag);
                assert!(self.endpoint.probe(&pattern).is_none_or(|found| pattern.accepts(&found)));
            }
            Deed::Claim { source, tag, keep } => self.claim(pattern(source, tag), keep),
            Deed::Cancel { at } => self.pick(at).into_iter().for_each(|op| self.cancel(op)),
            Deed::Finish { at } => self.pick(at).into_iter().for_each(|op| self.finish(op)),
            Deed::Awaited { from, frame, tag, room, is_whole } => {
                let pattern = pattern(Some(peer(from) as u8), tag);
                self.comes_to(peer(from), &frame, &pattern, room.bytes(), is_whole);
            }
            Deed::Express { to, tag, length, has_left } => {
                self.express(peer(to), tag, length.bytes(), has_left);
            }
            Deed::Leave { to, count } => (0..count).for_each(|_| self.leave(peer(to))),
        }
    }

    fn pick(&self, at: u8) -> Option<OpId> {
        self.all.get(usize::from(at) % self.all.len().max(1)).copied()
    }

    /// A peer sends a frame so many times, if its link stays open and there have not been too many.
    fn comes(&mut self, from: usize, frame: &Frame, times: usize, lands: bool) {
        for _ in 0..times {
            if self.peers[from].closed || self.frames == FRAMES_MAX {
                return;
            }
            self.frames += 1;
            self.arrives(from, &frame.header(from, self.peers[from].sequence));
            if lands {
                self.lands(from);
            }
        }
    }

    fn send(&mut self, to: usize, tag: u8, length: u64) {
        let mode = if tag & 4 == 0 { Mode::Standard } else { Mode::Synchronous };
        let offer = (tag & 128 == 0).then_some(Offer { place: 1, seal: 2 });
        let message = Outgoing { context: 2, tag: u32::from(tag % 4), length, mode, offer };
        let op = self.endpoint.send(to, message, Place::of(length));
        self.all.push(op);
        self.sends.insert(op, length);
    }

    /// As [`Game::comes`], to somebody who has posted no receive.
    fn comes_to(&mut self, from: usize, frame: &Frame, pattern: &Pattern, room: u64, is_whole: bool) {
        self.lands(from);
        if self.peers[from].closed || self.frames == FRAMES_MAX || !self.endpoint.may_take(pattern) {
            return;
        }
        self.frames += 1;
        let header = frame.header(from, self.peers[from].sequence);
        match self.endpoint.take(from, &header, pattern, room as usize, is_whole) {
            Taken::Yes => {
                let right = (GENERATION, from as u32, self.peers[from].sequence);
                assert_eq!((header.generation, header.source, header.sequence), right, "taken: {header:?}");
                assert!(is_whole && header.kind == Kind::Eager && header.length <= room);
                assert!(pattern.accepts(&Envelope::from(&header)));
                self.peers[from].sequence += 1;
            }
            Taken::Later => assert!(!is_whole),
            Taken::No => self.arrives(from, &header),
            Taken::Astray => {
                assert!(header.stamp.is_lined() && header.stamp.colour() > 1, "{header:?}");
                self.peers[from].closed = true;
            }
        }
    }

    fn express(&mut self, to: usize, tag: u8, length: u64, has_left: bool) {
        let message =
            Outgoing { context: 2, tag: u32::from(tag % 4), length, mode: Mode::Standard, offer: None };
        let is_free = self.endpoint.frames(to).is_empty();
        let Some(header) = self.endpoint.express(to, &message) else { return };
        assert!(is_free, "it overtakes a frame");
        let decoded = Header::decode(&header).expect("an own frame");
        assert_eq!((decoded.kind, decoded.length), (Kind::Eager, length));
        let op = if has_left {
            self.endpoint.has_left(self.endpoint.envelope(&message), Place::of(length))
        } else {
            self.endpoint.has_begun(to, &message, header, Place::of(length))
        };
        assert_eq!(self.endpoint.is_finished(op), has_left);
        self.all.push(op);
        self.sends.insert(op, length);
    }

    fn cancel(&mut self, op: OpId) {
        if let Some(place) = self.endpoint.cancel(op) {
            assert_eq!(self.receives.remove(&op), Some(place.bytes), "only receives are cancelled");
            assert!(!self.endpoint.holds(op));
        }
    }

    /// As the driver does it: one payload after the other, memory when it is asked for.
    fn arrives(&mut self, from: usize, header: &Header) {
        self.lands(from);
        let filled = self.peers[from].filled.clone();
        let make = |bytes| Place::filling(&filled, bytes);
        let Ok(landing) = self.endpoint.handle_header(from, header, make) else {
            self.peers[from].closed = true;
            return;
        };
        let right = (GENERATION, from as u32, self.peers[from].sequence);
        assert_eq!((header.generation, header.source, header.sequence), right, "taken: {header:?}");
        let peer = &mut self.peers[from];
        peer.sequence += 1;
        let place = self.endpoint.landing_mut(landing).map(|place| place.bytes);
        match landing {
            Landing::Nowhere => assert_eq!(header.body_bytes(), 0, "nowhere to put {header:?}"),
            Landing::Op(op) => {
                assert!(self.receives.contains_key(&op), "a payload lands in a receive that is under way");
                assert!(place.is_some_and(|room| header.length <= room), "{header:?} in a room of {place:?}");
            }
            Landing::Bounce(_) => assert_eq!(place, Some(header.length)),
            Landing::Sink => assert_eq!(place, None),
        }
        if header.kind == Kind::Envelope {
            peer.announced += 1;
        }
        self.peers[from].body = Some((*header, landing));
        self.act_on_tasks();
        self.count_envelopes(from);
    }

    /// Half of what could be read is, by its address.
    fn act_on_tasks(&mut self) {
        while let Some(task) = self.endpoint.poll_task() {
            match task {
                Task::Keep { .. } => unreachable!("no line is drawn"),
                Task::Carry { .. } => unreachable!("nobody keeps a journal"),
                Task::Ahead(from) => {
                    let filled = self.peers[from].filled.clone();
                    self.endpoint.fetch_ahead(from, |bytes| Place::filling(&filled, bytes));
                }
                Task::Copy { op, from, late } => {
                    assert_eq!(late, None);
                    let room = self.receives.get(&op).expect("it is copied for a receive that is under way");
                    assert!(from.bytes <= *room, "{} bytes in a room of {room}", from.bytes);
                    assert!(self.endpoint.is_finished(op));
                }
                Task::Answer(greeting) => {
                    if greeting.seal_at % 2 == 1 {
                        self.endpoint.handle_readable(greeting);
                    }
                }
                Task::Fetch(fetch) => {
                    let room =
                        self.receives.get(&fetch.op).expect("it is read for a receive that is under way");
                    assert!(fetch.length as u64 <= *room, "{} bytes in a room of {room}", fetch.length);
                    let is_whole = fetch.offer.place % 2 == 1;
                    let op = fetch.op;
                    self.endpoint.handle_fetched(fetch, is_whole);
                    assert_eq!(self.endpoint.is_finished(op), is_whole);
                }
            }
        }
    }

    /// Envelopes that were asked for are no burden any more.
    fn count_envelopes(&mut self, from: usize) {
        if self.peers[from].announced > ENVELOPES_MAX {
            self.drain(from);
            let announced = self.peers[from].announced;
            assert!(announced <= ENVELOPES_MAX, "one peer announces {announced} messages");
        }
    }

    fn lands(&mut self, from: usize) {
        let Some((header, landing)) = self.peers[from].body.take() else { return };
        self.endpoint.handle_payload(from, &header, landing);
        self.act_on_tasks();
        if let Landing::Op(op) = landing {
            assert!(self.endpoint.is_finished(op));
        }
    }

    /// A message is taken out of the queue, and received or given up.
    fn claim(&mut self, pattern: Pattern, keep: bool) {
        let Some((bounce, envelope)) = self.endpoint.claim_message(&pattern) else { return };
        assert!(pattern.accepts(&envelope));
        if keep {
            let op = self.endpoint.receive_claimed(bounce, Place::of(envelope.length));
            self.all.push(op);
            self.receives.insert(op, envelope.length);
            self.act_on_tasks();
        } else {
            self.endpoint.drop_claimed(bounce);
        }
    }

    fn finish(&mut self, op: OpId) {
        let Some((outcome, place)) = self.endpoint.finish(op) else { return };
        let (receive, send) = (self.receives.remove(&op), self.sends.remove(&op));
        assert_eq!(receive.or(send), Some(place.bytes), "its own place");
        match (receive, send, outcome) {
            (Some(room), None, Outcome::Done(envelope)) => assert!(envelope.length <= room),
            (Some(room), None, Outcome::Truncated { message, .. }) => assert!(message.length > room),
            (None, Some(length), Outcome::Done(envelope)) => assert_eq!(envelope.length, length),
            other => panic!("{op:?} ends as {other:?}"),
        }
    }

    fn leave(&mut self, to: usize) {
        let Some(frame) = self.endpoint.frames(to).front() else { return };
        let header = Header::decode(&frame.header).expect("an own frame");
        assert_eq!((header.source, header.generation), (0, GENERATION));
        assert_eq!(header.body_bytes(), frame.length as u64);
        if matches!(header.kind, Kind::Ask | Kind::Receipt) {
            self.peers[to].announced -= 1;
        }
        let body = frame.body;
        assert!(body.is_none_or(|op| self.sends.get(&op) == Some(&header.length)), "{header:?} of {body:?}");
        self.endpoint.handle_sent(to);
        assert!(body.is_none_or(|op| self.endpoint.is_finished(op)));
    }

    fn drain(&mut self, to: usize) {
        while self.endpoint.frames(to).front().is_some() {
            self.leave(to);
        }
    }

    /// All frames leave, and every operation is finished or can be withdrawn or waits for its peer.
    fn end(&mut self) {
        for peer in 1..RANKS.into() {
            self.lands(peer);
            self.drain(peer);
            self.count_envelopes(peer);
        }
        assert_eq!(self.endpoint.busy().len(), 0);
        std::mem::take(&mut self.all).into_iter().for_each(|op| self.finish(op));
    }
}

/// One of the others.
fn peer(number: u8) -> usize {
    usize::from(1 + number % (RANKS - 1))
}

fn pattern(source: Option<u8>, tag: Option<u8>) -> Pattern {
    Pattern {
        context: 2,
        source: source.map(|source| u32::from(source % RANKS)),
        tag: tag.map(|tag| u32::from(tag % 4)),
    }
}
