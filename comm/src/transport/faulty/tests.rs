use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::*;

const ME: PeerId = PeerId(1);
const OTHER: PeerId = PeerId(2);
const LINK: LinkId = LinkId(7);

/// What the links of the transport below hold, and how it was used.
#[derive(Default)]
struct World {
    sent: Vec<u8>,
    incoming: VecDeque<u8>,
    broken: bool,
    closed: bool,
    waits: Vec<(Vec<LinkId>, Duration)>,
}

/// One link to [`OTHER`], whose bytes the test sees and makes up.
#[derive(Clone, Default)]
struct Script(Rc<RefCell<World>>);

impl Transport for Script {
    fn change(&mut self, _: Generation, _: &[(PeerId, String)]) {}

    fn open(&mut self, _: PeerId) -> Result<LinkId, LinkError> {
        Ok(LINK)
    }

    fn accepted(&mut self) -> Option<(PeerId, LinkId)> {
        None
    }

    fn send(&mut self, _: LinkId, pieces: &[IoSlice<'_>]) -> Result<usize, LinkError> {
        let before = self.0.borrow().sent.len();
        pieces.iter().for_each(|piece| self.0.borrow_mut().sent.extend_from_slice(piece));
        Ok(self.0.borrow().sent.len() - before)
    }

    fn receive(&mut self, _: LinkId, pieces: &mut [IoSliceMut<'_>]) -> Result<usize, LinkError> {
        let mut world = self.0.borrow_mut();
        if world.incoming.is_empty() && world.broken {
            return Err(down("closed by the other side"));
        }
        let count = pieces[0].len().min(world.incoming.len());
        world.incoming.drain(..count).zip(pieces[0].iter_mut()).for_each(|(from, to)| *to = from);
        Ok(count)
    }

    fn wait(&mut self, writing: &[LinkId], timeout: Duration, ready: &mut Vec<LinkId>) {
        let mut world = self.0.borrow_mut();
        world.waits.push((writing.to_vec(), timeout));
        if !world.closed && (!world.incoming.is_empty() || world.broken) {
            ready.push(LINK);
        }
    }

    fn relax(&mut self) {}

    fn close(&mut self, _: LinkId) {
        self.0.borrow_mut().closed = true;
    }
}

struct Bench {
    clock: Rc<Cell<u64>>,
    below: Script,
    cuts: Cuts,
    transport: FaultyTransport<Script>,
}

impl Bench {
    /// Two ranks; this is rank 0.
    fn new(slow: &[&str]) -> Self {
        let (clock, below, cuts) = (Rc::new(Cell::new(0)), Script::default(), Cuts::default());
        let (time, slow) = (clock.clone(), slow.iter().map(|text| text.parse().unwrap()).collect());
        let now = move || Time(time.get());
        let mut transport = FaultyTransport::new(below.clone(), ME, cuts.clone(), slow, now);
        transport.change(0, &[(ME, String::new()), (OTHER, String::new())]);
        Self { clock, below, cuts, transport }
    }

    fn at(&self, micros: u64) {
        self.clock.set(micros * 1000);
    }

    fn cut(&self, lasts: Option<Duration>) {
        self.cuts.cut(Time(self.clock.get()), &[OTHER], lasts);
    }

    fn send(&mut self, bytes: &[u8]) -> usize {
        self.transport.send(LINK, &[IoSlice::new(bytes)]).unwrap()
    }

    fn receive(&mut self) -> Result<Vec<u8>, LinkError> {
        let mut buffer = [0; 4];
        let count = self.transport.receive(LINK, &mut [IoSliceMut::new(&mut buffer)])?;
        Ok(buffer[..count].to_vec())
    }

    fn wait(&mut self, writing: &[LinkId]) -> Vec<LinkId> {
        let mut ready = vec![];
        self.transport.wait(writing, Duration::from_secs(1), &mut ready);
        ready
    }

    fn last_wait(&self) -> (Vec<LinkId>, Duration) {
        self.below.0.borrow().waits.last().unwrap().clone()
    }
}

#[test]
fn a_cut_link_passes_nothing_and_what_was_under_way_comes_in_order_when_it_heals() {
    let mut bench = Bench::new(&[]);
    assert_eq!(bench.transport.open(OTHER), Ok(LINK));
    assert_eq!(bench.send(b"before"), 6);
    bench.below.0.borrow_mut().incoming.extend(b"under ");
    bench.cut(Some(Duration::from_micros(100)));
    assert_eq!((bench.send(b"during"), bench.receive()), (0, Ok(vec![])));
    // It neither wakes the caller nor is lost, and is waited for no longer than the cut lasts.
    assert_eq!(bench.wait(&[LINK]), []);
    assert_eq!(bench.last_wait(), (vec![], Duration::from_micros(100)));
    assert!(bench.below.0.borrow().incoming.is_empty(), "it would be ready again and again");
    bench.at(99);
    bench.below.0.borrow_mut().incoming.extend(b"way");
    assert_eq!((bench.wait(&[]), bench.receive()), (vec![], Ok(vec![])));
    bench.at(100);
    bench.below.0.borrow_mut().incoming.extend(b"!!");
    assert_eq!(bench.wait(&[LINK]), [LINK]);
    assert_eq!(bench.last_wait(), (vec![LINK], Duration::ZERO));
    let mut came = vec![];
    while let Ok(bytes) = bench.receive()
        && !bytes.is_empty()
    {
        came.extend(bytes);
    }
    assert_eq!(came, b"under way!!");
    assert_eq!((bench.send(b" after"), &bench.below.0.borrow().sent[..]), (6, &b"before after"[..]));
}

#[test]
fn the_end_of_a_cut_link_is_seen_when_the_cut_heals() {
    let mut bench = Bench::new(&[]);
    bench.transport.open(OTHER).unwrap();
    bench.cut(Some(Duration::from_micros(100)));
    bench.below.0.borrow_mut().incoming.extend(b"last");
    bench.below.0.borrow_mut().broken = true;
    assert_eq!(bench.wait(&[]), []);
    assert_eq!(bench.wait(&[]), [], "and it keeps nobody busy");
    assert_eq!(bench.send(b"x"), 0);
    bench.at(200);
    assert_eq!((bench.wait(&[]), bench.receive()), (vec![LINK], Ok(b"last".to_vec())));
    assert_eq!(bench.wait(&[]), [LINK]);
    assert_eq!(bench.receive(), Err(down("closed by the other side")));
    assert!(bench.transport.send(LINK, &[IoSlice::new(b"x")]).is_err());
}

#[test]
fn a_link_to_who_is_cut_off_is_tried_for_a_while() {
    let mut bench = Bench::new(&[]);
    bench.cut(None);
    assert_eq!(bench.transport.open(OTHER), Err(LinkError::Interrupted));
    bench.at(OPEN_TIMEOUT.as_micros() as u64 - 1);
    assert_eq!(bench.transport.open(OTHER), Err(LinkError::Interrupted));
    // The next generation starts anew.
    bench.transport.change(1, &[]);
    bench.at(OPEN_TIMEOUT.as_micros() as u64);
    assert_eq!(bench.transport.open(OTHER), Err(LinkError::Interrupted));
    bench.at(2 * OPEN_TIMEOUT.as_micros() as u64);
    assert!(matches!(bench.transport.open(OTHER), Err(LinkError::Down(_))));
}

#[test]
fn pieces_leave_a_slow_link_late_and_one_after_the_other() {
    // 10 times the latency of 20 us and 0.5 ns a byte more.
    let mut bench = Bench::new(&["0-1:11"]);
    bench.transport.open(OTHER).unwrap();
    assert_eq!(bench.send(b"0123"), 0);
    assert_eq!(bench.wait(&[LINK]), []);
    assert_eq!(bench.last_wait(), (vec![], Duration::from_nanos(200_020)));
    bench.at(200);
    // What is added meanwhile belongs to the next piece.
    assert_eq!(bench.send(b"0123456789"), 0);
    bench.at(201);
    assert_eq!(bench.send(b"0123456789"), 4);
    assert_eq!(bench.send(b"456789"), 0);
    bench.at(402);
    assert_eq!(bench.send(b"456789"), 6);
    assert_eq!(bench.below.0.borrow().sent, b"0123456789");
    // A long message costs its bytes: 16 pieces of 64 KiB.
    let mut sent = 0;
    let long = vec![1; 1 << 20];
    let start = 1000;
    let mut micros = start;
    bench.at(start);
    while sent < long.len() {
        sent += bench.send(&long[sent..]);
        micros += 1;
        bench.at(micros);
    }
    let due = 16.0 * (200.0 + 10.0 * 0.5e-3 * 65536.0);
    let took = (micros - start) as f64;
    assert!((due..due + 32.0).contains(&took), "{took} us, not {due}");
}

#[test]
fn links_between_other_ranks_are_as_fast_as_ever() {
    for slow in ["1-2:100", "0-2:100"] {
        let mut bench = Bench::new(&[slow]);
        bench.transport.open(OTHER).unwrap();
        assert_eq!(bench.send(b"now"), 3, "{slow}");
    }
}
