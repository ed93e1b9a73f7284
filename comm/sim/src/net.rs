//! The simulated network: byte streams between processes, whose bytes arrive late and in pieces, and cuts.
//!
//! Each direction of a link is first in, first out, and takes only so many bytes at a time; different links
//! know nothing of each other's order. A link whose other end has died takes bytes for a while as if nothing
//! had happened. Processes of one host may have memory beside a link (`net/beside.rs`): then bytes need no time, and nothing of what was sent is lost
//! with who has sent it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{IoSlice, IoSliceMut, Read};
use std::time::Duration;

use rand::RngExt;

use self::beside::Beside;
use super::agenda::Agenda;
use super::happening::{ConnId, Happening};
use ft_comm::time::Time;
use ft_comm::transport::LinkError;
use ft_proto::cells::Label;
use ft_proto::rank::PeerId;
use ft_proto::shared::Nonsense;

mod beside;

/// The links that there are, and what cuts them. It knows who is at their ends, and nothing else of processes.
#[derive(Debug, Default)]
pub(super) struct Net {
    conns: BTreeMap<ConnId, Conn>,
    next_conn: u64,
    /// Active cuts, and healed ones with nobody inside.
    cuts: Vec<Cut>,
}

/// One end of a connection.
pub(super) type EndId = (ConnId, usize);

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
    /// Whether links have memory beside them.
    pub rings: bool,
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
            rings: false,
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
            rings: false,
        }
    }
}

/// One end of a connection; `sent` travels from here to the other end.
#[derive(Debug)]
struct End {
    peer: PeerId,
    sent: VecDeque<u8>,
    arrived: VecDeque<u8>,
    /// A piece of `sent` is on its way.
    moving: bool,
    latency: Duration,
    window: usize,
    /// This end is not used any more.
    closed: bool,
    /// This end knows that the other one is gone.
    down: bool,
}

#[derive(Debug)]
struct Conn {
    ends: [End; 2],
    /// Bytes go through this, if it is there.
    beside: Option<Beside>,
}

impl Conn {
    fn room(&self, side: usize) -> usize {
        let taken = self.ends[side].sent.len() + self.ends[1 - side].arrived.len();
        self.ends[side].window.saturating_sub(taken)
    }

    fn writable(&self, side: usize) -> bool {
        if let Some(beside) = &self.beside {
            return self.ends[side].down || beside.is_called(side);
        }
        self.ends[side].down || self.ends[1 - side].closed || self.room(side) > 0
    }

    fn readable(&self, side: usize) -> bool {
        if let Some(beside) = &self.beside {
            return self.ends[side].down || beside.is_called(side);
        }
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

impl Net {
    pub(super) fn way(&self, a: PeerId, b: PeerId) -> Way {
        let separates = |cut: &&Cut| {
            let launcher = a == PeerId::LAUNCHER || b == PeerId::LAUNCHER;
            let wanted = if launcher { cut.from_launcher } else { cut.from_ranks };
            let far = |peer: PeerId| cut.outside.as_ref().is_none_or(|outside| outside.contains(&peer));
            let across = |a: PeerId, b: PeerId| cut.inside.contains(&a) && !cut.inside.contains(&b) && far(b);
            wanted && (across(a, b) || across(b, a))
        };
        self.cuts.iter().filter(separates).fold(Way::Open, |way, cut| match (way, cut.until) {
            (_, None) | (Way::CutForEver, _) => Way::CutForEver,
            (Way::Open, Some(until)) => Way::CutUntil(until),
            (Way::CutUntil(other), Some(until)) => Way::CutUntil(other.max(until)),
        })
    }

    /// A cut begins; gives its number.
    pub(super) fn cut(&mut self, cut: Cut) -> usize {
        self.cuts.push(cut);
        self.cuts.len() - 1
    }

    /// A cut heals. Who sleeps at memory that was behind it looks there again.
    pub(super) fn heal(&mut self, agenda: &mut Agenda, number: usize) {
        self.cuts[number].inside.clear();
        let ids: Vec<ConnId> = self.conns.keys().copied().collect();
        for id in ids {
            [0, 1].into_iter().for_each(|side| self.call(agenda, (id, side)));
        }
    }

    /// Whether somebody who sleeps hears of it that something can be read there, be it the end; nothing of a connection that is gone.
    pub(super) fn readable(&self, (id, side): EndId) -> Option<bool> {
        self.conns.get(&id).map(|conn| conn.readable(side))
    }

    /// The same for something that can be written.
    pub(super) fn writable(&self, (id, side): EndId) -> Option<bool> {
        self.conns.get(&id).map(|conn| conn.writable(side))
    }

    /// Whether the process at the other end of a link lives, has it in use, and can be reached.
    pub(super) fn is_open(&self, (id, side): EndId) -> bool {
        self.conns.get(&id).is_some_and(|conn| {
            let [here, there] = [&conn.ends[side], &conn.ends[1 - side]];
            !here.down && !there.closed && self.way(here.peer, there.peer) == Way::Open
        })
    }

    /// A connection from one process to another, whose ends are 0 and 1.
    pub(super) fn connect(&mut self, agenda: &mut Agenda, from: PeerId, to: PeerId) -> ConnId {
        let id = ConnId(self.next_conn);
        self.next_conn += 1;
        let ends = [from, to].map(|peer| End {
            peer,
            sent: VecDeque::new(),
            arrived: VecDeque::new(),
            moving: false,
            latency: agenda.latency(),
            window: agenda.window(),
            closed: false,
            down: false,
        });
        let beside = agenda.network.rings.then(|| Beside::new(&mut agenda.random));
        self.conns.insert(id, Conn { ends, beside });
        id
    }

    /// Takes as much as there is room for.
    pub(super) fn send(
        &mut self,
        agenda: &mut Agenda,
        (id, side): EndId,
        pieces: &[IoSlice<'_>],
    ) -> Result<usize, LinkError> {
        let total = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let short = agenda.is_rough() && agenda.random.random_ratio(1, 8);
        let is_open = self.is_way_open(id);
        let conn = self.conns.get_mut(&id).ok_or_else(|| LinkError::Down("closed".into()))?;
        if conn.ends[side].down {
            return Err(LinkError::Down("closed by the other side".into()));
        }
        if let Some(beside) = &mut conn.beside {
            return if is_open { beside.send(side, pieces).map_err(overwritten) } else { Ok(0) };
        }
        if conn.ends[1 - side].closed {
            return Ok(total); // swallowed: the news has not come yet
        }
        let mut count = total.min(conn.room(side));
        if short {
            count = agenda.random.random_range(0..=count);
        }
        let sent = &mut conn.ends[side].sent;
        let mut left = count;
        for piece in pieces {
            let some = &piece[..piece.len().min(left)];
            sent.extend(some);
            left -= some.len();
        }
        self.move_on(agenda, (id, side));
        Ok(count)
    }

    /// Whether nothing cuts a connection.
    fn is_way_open(&self, id: ConnId) -> bool {
        self.conns
            .get(&id)
            .is_some_and(|Conn { ends: [one, other], .. }| self.way(one.peer, other.peer) == Way::Open)
    }

    /// Whether there is memory beside a connection.
    pub(super) fn has_ring(&self, (id, _): EndId) -> bool {
        self.conns.get(&id).is_some_and(|conn| conn.beside.is_some())
    }

    /// Whether something can be received, be it the end.
    pub(super) fn has_come(&mut self, (id, side): EndId) -> bool {
        let is_open = self.is_way_open(id);
        let Some(conn) = self.conns.get_mut(&id) else { return true };
        let Some(beside) = &mut conn.beside else { return conn.readable(side) };
        conn.ends[side].down || is_open && beside.has_come(side)
    }

    /// Whether something can be sent through memory, or the link is of no use.
    pub(super) fn has_room(&mut self, (id, side): EndId) -> bool {
        let is_open = self.is_way_open(id);
        let Some(conn) = self.conns.get_mut(&id) else { return true };
        let Some(beside) = &mut conn.beside else { return conn.writable(side) };
        conn.ends[side].down || is_open && beside.has_room(side)
    }

    /// Puts a message into a cell of a connection; whether it is there.
    pub(super) fn put(&mut self, (id, side): EndId, label: Label, bytes: &[u8]) -> bool {
        let is_open = self.is_way_open(id);
        let Some(Conn { beside: Some(beside), ends }) = self.conns.get_mut(&id) else { return false };
        is_open && !ends[side].down && beside.put(side, label, bytes)
    }

    /// Whether one end has sent something, and has not looked yet whether the other one sleeps.
    pub(super) fn is_sending(&self, (id, side): EndId) -> bool {
        let beside = self.conns.get(&id).and_then(|conn| conn.beside.as_ref());
        beside.is_some_and(|beside| beside.is_sending(side))
    }

    /// After messages were put into cells: wakes who sleeps at the other end.
    pub(super) fn rouse(&mut self, agenda: &mut Agenda, (id, side): EndId) {
        let Some(Conn { beside: Some(beside), .. }) = self.conns.get_mut(&id) else { return };
        if beside.must_rouse(side) {
            self.call(agenda, (id, 1 - side));
        }
    }

    /// Takes a message out of a cell of a connection.
    pub(super) fn take(
        &mut self,
        (id, side): EndId,
        label: Label,
        into: &mut [u8],
    ) -> Result<Option<usize>, LinkError> {
        let is_open = self.is_way_open(id);
        let Some(Conn { beside: Some(beside), .. }) = self.conns.get_mut(&id) else { return Ok(None) };
        if is_open { beside.take(side, label, into).map_err(overwritten) } else { Ok(None) }
    }

    /// Whether a message has come into a cell since the last call.
    pub(super) fn notices(&mut self, (id, side): EndId) -> bool {
        let is_open = self.is_way_open(id);
        let Some(Conn { beside: Some(beside), .. }) = self.conns.get_mut(&id) else { return false };
        is_open && beside.notices(side)
    }

    /// After something was sent: wakes who sleeps at the other end.
    pub(super) fn wake(&mut self, agenda: &mut Agenda, (id, side): EndId) {
        let Some(Conn { beside: Some(beside), .. }) = self.conns.get_mut(&id) else { return };
        if beside.must_wake(side) {
            self.call(agenda, (id, 1 - side));
        }
    }

    /// Somebody who sleeps hears soon that there is something for it.
    fn call(&mut self, agenda: &mut Agenda, (id, side): EndId) {
        let Some(Conn { beside: Some(beside), .. }) = self.conns.get_mut(&id) else { return };
        // Who hears the call sees what was stored before it.
        beside.fence(1 - side);
        if beside.call(side) {
            let takes = agenda.travel(Duration::from_micros(2));
            agenda.after(takes, Happening::Arrive { conn: id, side: 1 - side });
        }
    }

    /// One end is about to sleep, and waits for room or not, or is awake.
    pub(super) fn sleeps(&mut self, (id, side): EndId, does: bool, writing: bool) {
        if let Some(Conn { beside: Some(beside), .. }) = self.conns.get_mut(&id) {
            beside.sleeps(side, does, writing);
        }
    }

    /// What one end has stored is seen by the other.
    pub(super) fn fence(&self, (id, side): EndId) {
        if let Some(Conn { beside: Some(beside), .. }) = self.conns.get(&id) {
            beside.fence(side);
        }
    }

    /// Whether nothing will wake one end, although there are bytes for it.
    pub(super) fn is_forgotten(&mut self, (id, side): EndId) -> bool {
        let is_open = self.is_way_open(id);
        let Some(Conn { beside: Some(beside), ends }) = self.conns.get_mut(&id) else { return false };
        is_open && !ends[side].down && !ends[1 - side].closed && beside.is_forgotten(side)
    }

    /// One end writes nonsense into the memory that both have.
    pub(super) fn overwrite(&mut self, (id, side): EndId) {
        if let Some(Conn { beside: Some(beside), .. }) = self.conns.get_mut(&id) {
            beside.overwrite(side);
        }
    }

    /// Puts the next piece of what one end has sent on its way.
    fn move_on(&mut self, agenda: &mut Agenda, (id, side): EndId) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        let end = &mut conn.ends[side];
        if end.moving || end.sent.is_empty() {
            return;
        }
        end.moving = true;
        let takes = agenda.travel(end.latency);
        agenda.after(takes, Happening::Arrive { conn: id, side });
    }

    /// A piece of what one end has sent arrives at the other one; gives who is there.
    pub(super) fn arrive(&mut self, agenda: &mut Agenda, (id, side): EndId) -> Option<PeerId> {
        let conn = self.conns.get_mut(&id)?;
        let (here, there) = (conn.ends[side].peer, conn.ends[1 - side].peer);
        if let Some(beside) = &mut conn.beside {
            beside.hear(1 - side);
            return Some(there);
        }
        let sent = conn.ends[side].sent.len();
        match self.way(here, there) {
            Way::Open => {}
            Way::CutUntil(heals) => {
                let due = heals.after(agenda.travel(Duration::from_micros(100)));
                agenda.at(due, Happening::Arrive { conn: id, side });
                return None;
            }
            Way::CutForEver => return None,
        }
        // Small things mostly come whole.
        let whole = !agenda.is_rough() || agenda.random.random_ratio(1, 2);
        let count = if whole { sent } else { agenda.random.random_range(sent.min(1)..=sent) };
        let conn = self.conns.get_mut(&id).expect("just seen");
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
        self.move_on(agenda, (id, side));
        Some(there)
    }

    /// Gives how many bytes were read, and who may have waited for room at the other end.
    pub(super) fn receive(
        &mut self,
        agenda: &mut Agenda,
        (id, side): EndId,
        pieces: &mut [IoSliceMut<'_>],
    ) -> Result<(usize, Option<PeerId>), LinkError> {
        let is_open = self.is_way_open(id);
        let conn = self.conns.get_mut(&id).ok_or_else(|| LinkError::Down("closed".into()))?;
        if let Some(beside) = &mut conn.beside {
            let (count, wakes) =
                if is_open { beside.receive(side, pieces).map_err(overwritten)? } else { (0, false) };
            if wakes {
                self.call(agenda, (id, 1 - side));
            }
            let is_down = self.conns.get(&id).is_none_or(|conn| conn.ends[side].down);
            let gone = count == 0 && is_down;
            return if gone {
                Err(LinkError::Down("closed by the other side".into()))
            } else {
                Ok((count, None))
            };
        }
        let end = &mut conn.ends[side];
        if end.arrived.is_empty() {
            let gone = || LinkError::Down("closed by the other side".into());
            return if end.down { Err(gone()) } else { Ok((0, None)) };
        }
        let room = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let count = room.min(end.arrived.len());
        let mut left = count;
        for piece in pieces {
            let some = piece.len().min(left);
            take(&mut end.arrived, &mut piece[..some]);
            left -= some;
        }
        Ok((count, Some(conn.ends[1 - side].peer)))
    }

    /// One end is not used any more. Bytes that were under way arrive or not.
    pub(super) fn close(&mut self, agenda: &mut Agenda, (id, side): EndId) {
        let reset = agenda.random.random_ratio(1, 2);
        let Some(conn) = self.conns.get_mut(&id) else { return };
        if let Some(beside) = &mut conn.beside {
            beside.die(side);
        }
        conn.ends[side].closed = true;
        conn.ends[side].arrived.clear();
        if conn.ends[1 - side].closed {
            self.conns.remove(&id);
            return;
        }
        if reset {
            conn.ends[side].sent.clear();
        }
        let takes = agenda.travel(conn.ends[side].latency);
        agenda.after(takes, Happening::Down { conn: id, side: 1 - side });
    }

    /// One end learns that the other one is gone, after the last bytes of it; gives who is there.
    pub(super) fn down(&mut self, agenda: &mut Agenda, (id, side): EndId) -> Option<PeerId> {
        let conn = self.conns.get(&id)?;
        let (here, there) = (conn.ends[side].peer, conn.ends[1 - side].peer);
        let pending = !conn.ends[1 - side].sent.is_empty();
        let later = match self.way(here, there) {
            Way::Open if pending => Some(agenda.now.after(Duration::from_micros(50))),
            Way::CutUntil(heals) => Some(heals.after(Duration::from_micros(50))),
            Way::Open | Way::CutForEver => None, // nothing comes any more
        };
        if let Some(due) = later {
            agenda.at(due, Happening::Down { conn: id, side });
            return None;
        }
        self.conns.get_mut(&id).expect("just seen").ends[side].down = true;
        Some(here)
    }

    /// Links that are still cut are noticed to be; gives who is at their ends.
    pub(super) fn notice_cuts(&mut self) -> Vec<PeerId> {
        let ends = |conn: &Conn| [conn.ends[0].peer, conn.ends[1].peer];
        let cut = |[a, b]: [PeerId; 2]| self.way(a, b) != Way::Open;
        let ids: Vec<ConnId> =
            self.conns.iter().filter(|(_, conn)| cut(ends(conn))).map(|(id, _)| *id).collect();
        let mut there = vec![];
        for id in ids {
            let conn = self.conns.get_mut(&id).expect("just seen");
            conn.ends.iter_mut().for_each(|end| end.down = true);
            there.extend(ends(conn));
        }
        there
    }
}

/// What a link is that has nonsense in its memory.
fn overwritten(_: Nonsense) -> LinkError {
    LinkError::Down("the shared memory of the link was overwritten".into())
}

/// Moves the first bytes of `queue`, which has enough, into `into`.
fn take(queue: &mut VecDeque<u8>, into: &mut [u8]) {
    queue.read_exact(into).expect("no more is taken than has arrived");
}

#[cfg(test)]
mod tests;
