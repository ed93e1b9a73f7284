//! The simulated network: byte streams between processes, whose bytes arrive late and in pieces, and cuts.
//!
//! Each direction of a link is first in, first out, and takes only so many bytes at a time; different links
//! know nothing of each other's order. A link whose other end has died takes bytes for a while as if nothing
//! had happened.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{IoSlice, IoSliceMut, Read};
use std::time::Duration;

use rand::RngExt;

use super::happening::{ConnId, Happening};
use super::kernel::Kernel;
use super::process::{Blocked, Knock, Opened};
use ft_comm::time::Time;
use ft_comm::transport::{LinkError, LinkId};
use ft_proto::rank::PeerId;

/// The links that there are, and what cuts them.
#[derive(Debug, Default)]
pub(super) struct Net {
    pub(super) conns: BTreeMap<ConnId, Conn>,
    pub(super) next_conn: u64,
    /// Active cuts, and healed ones with nobody inside.
    pub(super) cuts: Vec<Cut>,
}

/// How the network behaves.
#[derive(Clone, Debug)]
pub struct Network {
    /// Shortest and longest usual latency of a link; each direction of each link draws its own.
    pub latency: (Duration, Duration),
    /// Least and most bytes that one direction of a link takes at a time.
    pub window: (usize, usize),
    /// Of a thousand pieces, how many take ten times as long; and of a thousand turns of a process.
    pub hiccups: u32,
    /// Of a thousand calls to transport or service, how many let others run first.
    pub preemptions: u32,
    /// Longest time until a new process has connected to the launcher.
    pub start: Duration,
    /// How long an unanswered attempt to open a link lasts, and a cut link that nobody notices otherwise.
    pub give_up: Duration,
    /// Whether a cut link is noticed after that time; else only who asks finds out.
    pub notices_cuts: bool,
    /// Whether processes can read each other's memory.
    pub near: bool,
}

impl Network {
    /// Fast and regular.
    pub fn calm() -> Self {
        Self {
            latency: (Duration::from_micros(20), Duration::from_micros(40)),
            window: (256 << 10, 256 << 10),
            hiccups: 0,
            preemptions: 0,
            start: Duration::from_millis(1),
            give_up: Duration::from_millis(500),
            notices_cuts: true,
            near: false,
        }
    }

    /// Slow, irregular, in small pieces.
    pub fn rough() -> Self {
        Self {
            latency: (Duration::from_micros(5), Duration::from_micros(500)),
            window: (300, 128 << 10),
            hiccups: 10,
            preemptions: 20,
            start: Duration::from_millis(10),
            give_up: Duration::from_millis(300),
            notices_cuts: true,
            near: false,
        }
    }
}

/// One end of a connection; `sent` travels from here to the other end.
#[derive(Debug)]
pub(super) struct End {
    pub(super) peer: PeerId,
    /// The name of the link at this end, once it is taken into use.
    pub(super) link: Option<LinkId>,
    pub(super) sent: VecDeque<u8>,
    pub(super) arrived: VecDeque<u8>,
    /// A piece of `sent` is on its way.
    moving: bool,
    latency: Duration,
    window: usize,
    /// This end is not used any more.
    closed: bool,
    /// This end knows that the other one is gone.
    pub(super) down: bool,
}

#[derive(Debug)]
pub(super) struct Conn {
    pub(super) ends: [End; 2],
}

impl Conn {
    fn room(&self, side: usize) -> usize {
        let taken = self.ends[side].sent.len() + self.ends[1 - side].arrived.len();
        self.ends[side].window.saturating_sub(taken)
    }

    pub(super) fn writable(&self, side: usize) -> bool {
        self.ends[side].down || self.ends[1 - side].closed || self.room(side) > 0
    }

    pub(super) fn readable(&self, side: usize) -> bool {
        self.ends[side].down || !self.ends[side].arrived.is_empty()
    }
}

/// An active cut.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) inside: BTreeSet<PeerId>,
    /// Of the ranks on the other side only these; without it all of them.
    pub(super) outside: Option<BTreeSet<PeerId>>,
    pub(super) from_ranks: bool,
    pub(super) from_launcher: bool,
    pub(super) until: Option<Time>,
}

/// Whether something passes between two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Open,
    CutUntil(Time),
    CutForEver,
}

impl Kernel {
    pub(super) fn way(&self, a: PeerId, b: PeerId) -> Way {
        let separates = |cut: &&Cut| {
            let launcher = a == PeerId::LAUNCHER || b == PeerId::LAUNCHER;
            let wanted = if launcher { cut.from_launcher } else { cut.from_ranks };
            let far = |peer: PeerId| cut.outside.as_ref().is_none_or(|outside| outside.contains(&peer));
            let across = |a: PeerId, b: PeerId| cut.inside.contains(&a) && !cut.inside.contains(&b) && far(b);
            wanted && (across(a, b) || across(b, a))
        };
        self.net.cuts.iter().filter(separates).fold(Way::Open, |way, cut| match (way, cut.until) {
            (_, None) | (Way::CutForEver, _) => Way::CutForEver,
            (Way::Open, Some(until)) => Way::CutUntil(until),
            (Way::CutUntil(other), Some(until)) => Way::CutUntil(other.max(until)),
        })
    }

    /// A time that one piece or message takes.
    pub(super) fn travel(&mut self, latency: Duration) -> Duration {
        let nanos = latency.as_nanos() as u64;
        let nanos = self.random.random_range(nanos / 2..=nanos * 3 / 2 + 1);
        Duration::from_nanos(if self.hiccup() { nanos * 10 } else { nanos })
    }

    pub(super) fn hiccup(&mut self) -> bool {
        self.config.network.hiccups > 0
            && self.random.random_ratio(self.config.network.hiccups.min(1000), 1000)
    }

    pub(super) fn latency(&mut self) -> Duration {
        let (least, most) = self.config.network.latency;
        Duration::from_nanos(self.random.random_range(least.as_nanos() as u64..=most.as_nanos() as u64))
    }

    // ---- opening ----

    /// `from` tries to open a link to `to`.
    pub(super) fn open_begin(&mut self, from: PeerId, to: PeerId) {
        let token = self.block(from, Blocked::Open, Some(self.config.network.give_up));
        let latency = self.latency();
        let due = self.now.after(self.travel(2 * latency));
        self.at(due, Happening::OpenArrives { from, token, to });
    }

    pub(super) fn open_arrives(&mut self, from: PeerId, token: u64, to: PeerId) {
        if !self.is_blocked(from, token) {
            return; // given up
        }
        let answer = match self.process(to) {
            Some(there) if there.alive() && there.stopped => None,
            Some(there) if there.alive() => match self.way(from, to) {
                Way::Open => Some(true),
                Way::CutUntil(_) | Way::CutForEver => None,
            },
            _ => Some(false),
        };
        let Some(up) = answer else {
            let due = self.now.after(Duration::from_millis(2));
            return self.at(due, Happening::OpenArrives { from, token, to });
        };
        let opened = if up { Opened::Link(self.connect(from, to)) } else { Opened::Refused };
        if let Some(process) = self.process_mut(from) {
            process.wires.opened = Some(opened);
        }
        self.wake_now(from);
    }

    fn connect(&mut self, from: PeerId, to: PeerId) -> LinkId {
        let generation = self.process(from).and_then(|process| process.wires.generation).unwrap_or(0);
        let id = ConnId(self.net.next_conn);
        self.net.next_conn += 1;
        let ends = [from, to].map(|peer| {
            let (least, most) = self.config.network.window;
            End {
                peer,
                link: None,
                sent: VecDeque::new(),
                arrived: VecDeque::new(),
                moving: false,
                latency: self.latency(),
                // Most links are wide, or a long message takes for ever.
                window: if self.random.random_ratio(3, 4) {
                    most
                } else {
                    self.random.random_range(least..=most)
                },
                closed: false,
                down: false,
            }
        });
        self.net.conns.insert(id, Conn { ends });
        let link = self.adopt(from, id, 0);
        if let Some(there) = self.process_mut(to) {
            there.wires.inbox.push(Knock { from, generation, conn: id });
        }
        self.ring(to);
        link
    }

    /// Gives one end of a connection the name of a link.
    pub(super) fn adopt(&mut self, peer: PeerId, id: ConnId, side: usize) -> LinkId {
        let process = self.process_mut(peer).expect("a process that calls is known to the kernel");
        let link = LinkId(process.wires.next_link);
        process.wires.next_link += 1;
        process.wires.links.insert(link, (id, side));
        if let Some(conn) = self.net.conns.get_mut(&id) {
            conn.ends[side].link = Some(link);
        }
        link
    }

    // ---- bytes ----

    /// Whether the process at the other end of a link lives, has it in use, and can be reached.
    pub(super) fn is_open(&self, peer: PeerId, link: LinkId) -> bool {
        let conn = self.link(peer, link).ok().and_then(|(id, side)| Some((self.net.conns.get(&id)?, side)));
        conn.is_some_and(|(conn, side)| {
            let other = &conn.ends[1 - side];
            !conn.ends[side].down && !other.closed && self.way(peer, other.peer) == Way::Open
        })
    }

    fn link(&self, peer: PeerId, link: LinkId) -> Result<(ConnId, usize), LinkError> {
        let found = self.process(peer).and_then(|process| process.wires.links.get(&link).copied());
        found.ok_or_else(|| LinkError::Down("closed".into()))
    }

    pub(super) fn send(
        &mut self,
        peer: PeerId,
        link: LinkId,
        pieces: &[IoSlice<'_>],
    ) -> Result<usize, LinkError> {
        let (id, side) = self.link(peer, link)?;
        let total = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let short = self.config.network.hiccups > 0 && self.random.random_ratio(1, 8);
        let conn = self.net.conns.get_mut(&id).ok_or_else(|| LinkError::Down("closed".into()))?;
        if conn.ends[side].down {
            return Err(LinkError::Down("closed by the other side".into()));
        }
        if conn.ends[1 - side].closed {
            return Ok(total); // swallowed: the news has not come yet
        }
        let mut count = total.min(conn.room(side));
        if short {
            count = self.random.random_range(0..=count);
        }
        let sent = &mut conn.ends[side].sent;
        let mut left = count;
        for piece in pieces {
            let some = &piece[..piece.len().min(left)];
            sent.extend(some);
            left -= some.len();
        }
        self.move_on(id, side);
        Ok(count)
    }

    /// Puts the next piece of what `side` has sent on its way.
    fn move_on(&mut self, id: ConnId, side: usize) {
        let Some(conn) = self.net.conns.get_mut(&id) else { return };
        let end = &mut conn.ends[side];
        if end.moving || end.sent.is_empty() {
            return;
        }
        end.moving = true;
        let latency = end.latency;
        let due = self.now.after(self.travel(latency));
        self.at(due, Happening::Arrive { conn: id, side });
    }

    pub(super) fn arrive(&mut self, id: ConnId, side: usize) {
        let Some(conn) = self.net.conns.get(&id) else { return };
        let (here, there) = (conn.ends[side].peer, conn.ends[1 - side].peer);
        let sent = conn.ends[side].sent.len();
        match self.way(here, there) {
            Way::Open => {}
            Way::CutUntil(heals) => {
                let due = heals.after(self.travel(Duration::from_micros(100)));
                return self.at(due, Happening::Arrive { conn: id, side });
            }
            Way::CutForEver => return,
        }
        // Small things mostly come whole.
        let whole = self.config.network.hiccups == 0 || self.random.random_ratio(1, 2);
        let count = if whole { sent } else { self.random.random_range(sent.min(1)..=sent) };
        let conn = self.net.conns.get_mut(&id).expect("just seen");
        let [one, other] = &mut conn.ends;
        let (from, into) = if side == 0 { (one, other) } else { (other, one) };
        from.moving = false;
        if count == from.sent.len() && into.arrived.is_empty() {
            std::mem::swap(&mut from.sent, &mut into.arrived);
        } else {
            let mut piece = vec![0; count];
            take(&mut from.sent, &mut piece);
            into.arrived.extend(&piece);
        }
        self.move_on(id, side);
        self.stir(there);
    }

    pub(super) fn receive(
        &mut self,
        peer: PeerId,
        link: LinkId,
        pieces: &mut [IoSliceMut<'_>],
    ) -> Result<usize, LinkError> {
        let (id, side) = self.link(peer, link)?;
        let conn = self.net.conns.get_mut(&id).ok_or_else(|| LinkError::Down("closed".into()))?;
        let end = &mut conn.ends[side];
        if end.arrived.is_empty() {
            let gone = || LinkError::Down("closed by the other side".into());
            return if end.down { Err(gone()) } else { Ok(0) };
        }
        let room = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let count = room.min(end.arrived.len());
        let mut left = count;
        for piece in pieces {
            let some = piece.len().min(left);
            take(&mut end.arrived, &mut piece[..some]);
            left -= some;
        }
        let other = conn.ends[1 - side].peer;
        self.stir(other);
        Ok(count)
    }

    // ---- closing ----

    pub(super) fn close_link(&mut self, peer: PeerId, link: LinkId) {
        let Some((id, side)) = self.process_mut(peer).and_then(|process| process.wires.links.remove(&link))
        else {
            return;
        };
        self.close_end(id, side);
    }

    /// One end is not used any more. Bytes that were under way arrive or not.
    pub(super) fn close_end(&mut self, id: ConnId, side: usize) {
        let reset = self.random.random_ratio(1, 2);
        let Some(conn) = self.net.conns.get_mut(&id) else { return };
        conn.ends[side].closed = true;
        conn.ends[side].arrived.clear();
        if conn.ends[1 - side].closed {
            self.net.conns.remove(&id);
            return;
        }
        if reset {
            conn.ends[side].sent.clear();
        }
        let latency = conn.ends[side].latency;
        let due = self.now.after(self.travel(latency));
        self.at(due, Happening::Down { conn: id, side: 1 - side });
    }

    /// The end `side` learns that the other one is gone, after the last bytes of it.
    pub(super) fn down(&mut self, id: ConnId, side: usize) {
        let Some(conn) = self.net.conns.get_mut(&id) else { return };
        let (here, there) = (conn.ends[side].peer, conn.ends[1 - side].peer);
        let pending = !conn.ends[1 - side].sent.is_empty();
        let later = match self.way(here, there) {
            Way::Open if pending => Some(self.now.after(Duration::from_micros(50))),
            Way::CutUntil(heals) => Some(heals.after(Duration::from_micros(50))),
            Way::Open | Way::CutForEver => None, // nothing comes any more
        };
        if let Some(due) = later {
            return self.at(due, Happening::Down { conn: id, side });
        }
        self.net.conns.get_mut(&id).expect("just seen").ends[side].down = true;
        self.stir(here);
    }

    /// Links that are still cut are noticed to be.
    pub(super) fn notice_cuts(&mut self) {
        let pairs: Vec<(ConnId, PeerId, PeerId)> =
            self.net.conns.iter().map(|(id, conn)| (*id, conn.ends[0].peer, conn.ends[1].peer)).collect();
        for (id, a, b) in pairs {
            if self.way(a, b) != Way::Open {
                let conn = self.net.conns.get_mut(&id).expect("just seen");
                conn.ends.iter_mut().for_each(|end| end.down = true);
                self.stir(a);
                self.stir(b);
            }
        }
    }
}

/// Moves the first bytes of `queue`, which has enough, into `into`.
fn take(queue: &mut VecDeque<u8>, into: &mut [u8]) {
    queue.read_exact(into).expect("no more is taken than has arrived");
}
