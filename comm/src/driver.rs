//! The driver of the data links: moves bytes between the transport and memory as the endpoint says, waits,
//! and turns news of failures into errors.
//!
//! Memory of blocking calls is borrowed for the call only: operations hold ranges of the call's [`Memory`],
//! never references. Before a call returns, its operations are finished, or the driver is interrupted and
//! touches no memory until the next generation, which begins with a new endpoint.

use std::collections::HashMap;
use std::io::{IoSlice, IoSliceMut};
use std::time::Duration;

use crate::error::CommError;
use crate::proto::endpoint::{BounceId, Endpoint, Landing, OpId, Outcome};
use crate::proto::matching::{Envelope, Pattern};
use crate::proto::member::News;
use crate::rank::{Generation, Membership, PeerId, Rank, Tag};
use crate::service::Service;
use crate::time::Clock;
use crate::transport::{LinkError, LinkId, Patience, Transport};
use crate::wire::control::ToArbiter;
use crate::wire::header::{HEADER_BYTES, Header};
use crate::wire::wait::Awaited;

mod memory;
mod watchdog;

pub(crate) use memory::{Memory, Place};
use watchdog::{Call, Watchdog};

/// Bytes that are read ahead from a link, so that many small messages cost one read.
const STAGING_BYTES: usize = 32 << 10;
/// Longest sleep between looks at the news.
const NAP: Duration = Duration::from_millis(100);

#[derive(Debug)]
enum State {
    Running,
    Interrupted(Vec<Rank>),
    Ended { code: i32, message: String },
}

/// What has come over a link and was not used yet.
struct Inbound {
    rank: Rank,
    staging: Box<[u8]>,
    start: usize,
    end: usize,
    body: Option<Body>,
}

struct Body {
    header: Header,
    landing: Landing,
    done: usize,
    length: usize,
}

pub(crate) struct Driver {
    transport: Box<dyn Transport>,
    service: Box<dyn Service>,
    patience: Patience,
    state: State,
    me: Rank,
    membership: Membership,
    endpoint: Endpoint,
    /// The link on which frames to a rank leave; it never changes within a generation.
    outbound: Vec<Option<LinkId>>,
    /// The link on which something from a rank came last. Two ranks that open a link at the same time have two,
    /// each of which carries frames one way.
    heard: Vec<Option<LinkId>>,
    /// Bytes of the first frame to a rank that have left already.
    left: Vec<usize>,
    inbound: HashMap<LinkId, Inbound>,
    spare: Vec<Box<[u8]>>,
    places: HashMap<OpId, Place>,
    bounces: HashMap<BounceId, Vec<u8>>,
    /// Receives that nobody waits for any more; their memory is freed when their message has come.
    detached: Vec<OpId>,
    ready: Vec<LinkId>,
    /// The rank is done and waits for the others.
    leaving: bool,
    /// All ranks are done.
    finalized: bool,
    /// The call that the program is in: its name, context and tag.
    call: (&'static str, u32, Option<Tag>),
    watchdog: Watchdog,
    /// Read by the watchdog only.
    clock: Clock,
    pub(crate) bytes_sent: u64,
}

impl Driver {
    pub(crate) fn new(transport: Box<dyn Transport>, service: Box<dyn Service>, me: Rank) -> Self {
        Self {
            transport,
            service,
            patience: Patience::default(),
            state: State::Running,
            me,
            membership: Membership {
                generation: 0,
                seats: vec![],
                failed: vec![],
                reports: vec![],
                marked: false,
            },
            endpoint: Endpoint::new(me, 0, 0),
            outbound: vec![],
            heard: vec![],
            left: vec![],
            inbound: HashMap::new(),
            spare: vec![],
            places: HashMap::new(),
            bounces: HashMap::new(),
            detached: vec![],
            ready: vec![],
            leaving: false,
            finalized: false,
            call: ("", 0, None),
            watchdog: Watchdog::default(),
            clock: Clock::start(),
            bytes_sent: 0,
        }
    }

    pub(crate) fn generation(&self) -> Generation {
        self.membership.generation
    }

    pub(crate) fn membership(&self) -> &Membership {
        &self.membership
    }

    pub(crate) fn submit(&self, message: ToArbiter) {
        self.service.submit(message);
    }

    pub(crate) fn close(&mut self) {
        self.service.close();
    }

    /// Lets long waits be reported, each after `patience`.
    pub(crate) fn watch(&mut self, patience: Option<Duration>) {
        self.watchdog = Watchdog::new(patience);
    }

    /// The program enters this call, whose messages have this context and, if it is one, this tag.
    pub(crate) fn enter(&mut self, name: &'static str, context: u32, tag: Option<Tag>) {
        self.call = (name, context, tag);
    }

    /// Before a sleep: reports a wait that has become too long.
    fn look_at_watch(&mut self, awaited: impl FnOnce() -> Awaited) {
        if self.watchdog.is_on() {
            let (name, context, tag) = self.call;
            let call = Call { name, context, tag, awaited: awaited() };
            let report = self.watchdog.look(self.clock.now(), &call);
            report.into_iter().for_each(|report| self.submit(report));
        }
    }

    /// Something moved, or a call returns.
    fn moved(&mut self) {
        let report = self.watchdog.moved();
        report.into_iter().for_each(|report| self.submit(report));
    }

    /// Waits for the next news that `wanted` accepts; the end of the job is an error, other news is noted.
    pub(crate) fn await_news<T>(&mut self, wanted: impl Fn(&News) -> Option<T>) -> Result<T, CommError> {
        loop {
            while let Some(news) = self.service.take_news() {
                if let Some(found) = wanted(&news) {
                    self.moved();
                    return Ok(found);
                }
                self.note(news);
            }
            if let State::Ended { .. } = self.state {
                return Err(self.failure());
            }
            self.look_at_watch(|| Awaited::Others);
            self.transport.idle(NAP);
        }
    }

    /// Waits until all ranks are done; a failure before that is an error.
    ///
    /// Operations that nobody waits for go on meanwhile. A link that breaks is no failure here: others may have
    /// heard earlier that all are done.
    pub(crate) fn await_done(&mut self) -> Result<(), CommError> {
        self.leaving = true;
        let result = self.run_until_done();
        self.moved();
        self.leaving = false;
        result
    }

    fn run_until_done(&mut self) -> Result<(), CommError> {
        loop {
            // News that was noted elsewhere is not lost: the end may have come with it.
            self.check()?;
            if self.finalized {
                return Ok(());
            }
            self.accept();
            let busy: Vec<Rank> =
                self.endpoint.busy().filter(|rank| self.outbound[*rank].is_some()).collect();
            let mut blocked = Vec::with_capacity(busy.len());
            for rank in busy {
                if self.flush(rank, &Memory::none()).is_ok() && self.endpoint.front(rank).is_some() {
                    blocked.extend(self.outbound[rank]);
                }
            }
            let mut ready = std::mem::take(&mut self.ready);
            ready.clear();
            self.look_at_watch(|| Awaited::Others);
            self.transport.wait(&blocked, NAP, &mut ready);
            for link in &ready {
                if self.drain(*link, &mut Memory::none()).is_err() {
                    self.inbound.remove(link);
                    self.transport.close(*link);
                }
            }
            self.ready = ready;
        }
    }

    /// Takes the seat of rank `me` of `ranks`.
    pub(crate) fn seat(&mut self, me: Rank, ranks: usize) {
        (self.me, self.patience) = (me, self.transport.patience(ranks));
    }

    fn note(&mut self, news: News) {
        match news {
            News::Failed { generation, ranks } if generation == self.generation() => match &mut self.state {
                State::Running => self.state = State::Interrupted(ranks),
                State::Interrupted(known) => {
                    known.extend(ranks);
                    known.sort_unstable();
                    known.dedup();
                }
                State::Ended { .. } => {}
            },
            News::Ended { code, message } => self.state = State::Ended { code, message },
            News::Finalized => self.finalized = true,
            News::Failed { .. } | News::Welcome(_) | News::Decided(_) | News::Die => {}
        }
    }

    fn failure(&self) -> CommError {
        match &self.state {
            State::Ended { code, message } => CommError::Ended { code: *code, message: message.clone() },
            State::Interrupted(ranks) => {
                CommError::PeerFailed { ranks: ranks.clone(), generation: self.generation() }
            }
            State::Running => unreachable!("only asked after a failure"),
        }
    }

    /// Looks at the news; an error if calls are interrupted.
    pub(crate) fn check(&mut self) -> Result<(), CommError> {
        if self.service.has_news() {
            while let Some(news) = self.service.take_news() {
                self.note(news);
            }
        }
        match self.state {
            State::Running => Ok(()),
            State::Interrupted(_) | State::Ended { .. } => Err(self.failure()),
        }
    }

    /// Starts the generation of `membership` with new links and nothing under way.
    pub(crate) fn change(&mut self, membership: Membership) {
        let size = membership.seats.len();
        let peers: Vec<(PeerId, String)> =
            membership.seats.iter().map(|seat| (seat.peer, seat.address.clone())).collect();
        self.transport.change(membership.generation, &peers);
        self.endpoint = Endpoint::new(self.me, size, membership.generation);
        self.outbound = vec![None; size];
        self.heard = vec![None; size];
        self.left = vec![0; size];
        self.spare.extend(self.inbound.drain().map(|(_, inbound)| inbound.staging));
        self.places.clear();
        self.bounces.clear();
        self.detached.clear();
        self.membership = membership;
        if !matches!(self.state, State::Ended { .. }) {
            self.state = State::Running;
        }
    }

    /// The link to `rank` is of no use: its process is gone, or the link is cut.
    fn lost(&mut self, rank: Rank) -> CommError {
        if self.leaving {
            return CommError::PeerFailed { ranks: vec![rank], generation: self.generation() };
        }
        if let State::Running = self.state {
            self.state = State::Interrupted(vec![rank]);
            self.submit(ToArbiter::Suspect { generation: self.generation(), rank });
        }
        self.failure()
    }

    // ---- operations ----

    /// Starts a send; what can leave at once does.
    pub(crate) fn send(
        &mut self,
        to: Rank,
        context: u32,
        tag: u32,
        place: Place,
        memory: &mut Memory<'_>,
    ) -> Result<OpId, CommError> {
        self.check()?;
        let length = place.bytes(memory).len();
        self.bytes_sent += length as u64;
        if to == self.me {
            return Ok(self.send_to_self(context, tag, place, memory));
        }
        let op = self.endpoint.send(to, context, tag, length as u64, 0);
        self.places.insert(op, place);
        self.flush(to, memory)?;
        Ok(op)
    }

    fn send_to_self(&mut self, context: u32, tag: u32, place: Place, memory: &mut Memory<'_>) -> OpId {
        let bytes = place.bytes(memory).to_vec();
        let landing = self.endpoint.local(context, tag, bytes.len() as u64, 0);
        match landing {
            Landing::Op(op) => {
                let source = u32::try_from(self.me).expect("ranks are few");
                let length = bytes.len() as u64;
                let envelope = Envelope { context, source, tag, length, stamp: 0 };
                let target = self.places.get_mut(&op).expect("a posted receive has memory");
                target.bytes_mut(memory)[..bytes.len()].copy_from_slice(&bytes);
                self.endpoint.local_landed(op, envelope);
            }
            Landing::Bounce(bounce) => {
                self.bounces.insert(bounce, bytes);
                let claimed = self.endpoint.bounce_landed(bounce);
                debug_assert!(claimed.is_none(), "nobody can claim in between");
            }
            Landing::Nowhere => {}
        }
        let op = self.endpoint.finished_send();
        self.places.insert(op, place);
        op
    }

    /// Posts a receive; a message that has arrived already is taken at once.
    pub(crate) fn receive(
        &mut self,
        pattern: Pattern,
        place: Place,
        memory: &mut Memory<'_>,
    ) -> Result<OpId, CommError> {
        self.check()?;
        let room = place.bytes(memory).len();
        let (op, bounce) = self.endpoint.receive(pattern, room);
        self.places.insert(op, place);
        if let Some(bounce) = bounce {
            self.take(op, bounce, memory);
        }
        Ok(op)
    }

    fn take(&mut self, op: OpId, bounce: BounceId, memory: &mut Memory<'_>) {
        let bytes = self.bounces.remove(&bounce).unwrap_or_default();
        if let Some(place) = self.places.get_mut(&op) {
            place.bytes_mut(memory)[..bytes.len()].copy_from_slice(&bytes);
        }
        self.endpoint.taken(op, bounce);
    }

    /// The first message that `pattern` accepts, after a look at the links.
    pub(crate) fn probe(&mut self, pattern: &Pattern) -> Result<Option<Envelope>, CommError> {
        self.progress(Duration::ZERO, &mut Memory::none())?;
        Ok(self.endpoint.probe(pattern))
    }

    /// Waits for a message that `pattern` accepts.
    pub(crate) fn probe_wait(&mut self, pattern: &Pattern) -> Result<Envelope, CommError> {
        let hint = pattern.source.map(|source| source as Rank);
        self.run_until(&mut Memory::none(), hint, |driver| driver.endpoint.probe(pattern))
    }

    /// Waits until `op` is finished; gives its outcome and its memory back.
    pub(crate) fn wait(
        &mut self,
        op: OpId,
        hint: Option<Rank>,
        memory: &mut Memory<'_>,
    ) -> Result<(Outcome, Option<Place>), CommError> {
        let outcome = self.run_until(memory, hint, |driver| driver.endpoint.finish(op))?;
        Ok((outcome, self.places.remove(&op)))
    }

    /// The outcome of `op` if it is finished, after a look at the links.
    pub(crate) fn test(&mut self, op: OpId) -> Result<Option<(Outcome, Option<Place>)>, CommError> {
        self.progress(Duration::ZERO, &mut Memory::none())?;
        let outcome = self.endpoint.finish(op);
        Ok(outcome.map(|outcome| (outcome, self.places.remove(&op))))
    }

    /// Nobody waits for `op` any more: a receive that nothing has matched is withdrawn, other operations
    /// finish behind the program's back.
    pub(crate) fn detach(&mut self, op: OpId) {
        if self.endpoint.cancel(op) || self.endpoint.finish(op).is_some() {
            self.places.remove(&op);
        } else if self.places.contains_key(&op) {
            self.detached.push(op);
        }
    }

    // ---- progress ----

    fn run_until<T>(
        &mut self,
        memory: &mut Memory<'_>,
        hint: Option<Rank>,
        done: impl FnMut(&mut Self) -> Option<T>,
    ) -> Result<T, CommError> {
        let result = self.try_until(memory, hint, done);
        self.moved();
        result
    }

    fn try_until<T>(
        &mut self,
        memory: &mut Memory<'_>,
        hint: Option<Rank>,
        mut done: impl FnMut(&mut Self) -> Option<T>,
    ) -> Result<T, CommError> {
        let mut idle = 0;
        loop {
            if let Some(result) = done(self) {
                return Ok(result);
            }
            let Patience { spins, yields } = self.patience;
            // The awaited link alone is cheap to look at; every so often all of them are.
            let moved = if idle < spins && idle % 16 != 15 && self.hinted(hint).is_some() {
                self.check()?;
                self.flush_all(memory)?;
                let link = self.hinted(hint).expect("just seen");
                self.drain(link, memory)?
            } else {
                let sleep = if idle >= spins + yields { NAP } else { Duration::ZERO };
                if !sleep.is_zero() {
                    self.look_at_watch(|| hint.map_or(Awaited::Anybody, |rank| Awaited::Ranks(vec![rank])));
                }
                self.progress(sleep, memory)?
            };
            if moved {
                self.moved();
            }
            idle = if moved { 0 } else { idle + 1 };
            if idle > spins && idle <= spins + yields {
                self.transport.relax();
            }
        }
    }

    /// The link on which something from the awaited rank came last.
    fn hinted(&self, hint: Option<Rank>) -> Option<LinkId> {
        *self.heard.get(hint?)?
    }

    /// One look at everything: news, accepted links, frames to send, bytes that came.
    fn progress(&mut self, sleep: Duration, memory: &mut Memory<'_>) -> Result<bool, CommError> {
        self.check()?;
        self.accept();
        self.flush_all(memory)?;
        let blocked: Vec<LinkId> = self.endpoint.busy().filter_map(|rank| self.outbound[rank]).collect();
        let mut ready = std::mem::take(&mut self.ready);
        ready.clear();
        self.transport.wait(&blocked, sleep, &mut ready);
        let mut moved = false;
        let mut result = Ok(());
        for link in &ready {
            match self.drain(*link, memory) {
                Ok(some) => moved |= some,
                Err(error) => result = result.and(Err(error)),
            }
        }
        self.ready = ready;
        result?;
        self.check()?;
        self.accept();
        self.flush_all(memory)?;
        self.sweep();
        Ok(moved)
    }

    fn sweep(&mut self) {
        if !self.detached.is_empty() {
            let finished: Vec<OpId> =
                self.detached.iter().copied().filter(|op| self.endpoint.is_finished(*op)).collect();
            for op in finished {
                self.detached.retain(|other| *other != op);
                self.endpoint.finish(op);
                self.places.remove(&op);
            }
        }
    }

    fn accept(&mut self) {
        while let Some((peer, link)) = self.transport.accepted() {
            match self.membership.seats.iter().position(|seat| seat.peer == peer) {
                Some(rank) => self.adopt(rank, link),
                None => self.transport.close(link),
            }
        }
    }

    fn adopt(&mut self, rank: Rank, link: LinkId) {
        let staging = self.spare.pop().unwrap_or_else(|| vec![0; STAGING_BYTES].into_boxed_slice());
        self.inbound.insert(link, Inbound { rank, staging, start: 0, end: 0, body: None });
        self.outbound[rank].get_or_insert(link);
    }

    /// The link on which frames to `rank` leave.
    fn link_to(&mut self, rank: Rank) -> Result<LinkId, CommError> {
        loop {
            self.accept();
            if let Some(link) = self.outbound[rank] {
                return Ok(link);
            }
            match self.transport.open(self.membership.seats[rank].peer) {
                Ok(link) => {
                    self.adopt(rank, link);
                    return Ok(link);
                }
                Err(LinkError::Interrupted) => {
                    self.ready.clear();
                    self.transport.wait(&[], Duration::ZERO, &mut self.ready);
                    self.check()?;
                }
                Err(LinkError::Down(_)) => return Err(self.lost(rank)),
            }
        }
    }

    fn flush_all(&mut self, memory: &Memory<'_>) -> Result<(), CommError> {
        let busy: Vec<Rank> = self.endpoint.busy().collect();
        busy.into_iter().try_for_each(|rank| self.flush(rank, memory))
    }

    /// Sends frames to `rank` until its link takes no more.
    fn flush(&mut self, rank: Rank, memory: &Memory<'_>) -> Result<(), CommError> {
        if self.endpoint.front(rank).is_none() {
            return Ok(());
        }
        let link = self.link_to(rank)?;
        while let Some(frame) = self.endpoint.front(rank) {
            let done = self.left[rank];
            let body = match frame.body.and_then(|op| self.places.get(&op)) {
                Some(place) => &place.bytes(memory)[..frame.length],
                None => &[],
            };
            let total = HEADER_BYTES + body.len();
            let head = &frame.header[done.min(HEADER_BYTES)..];
            let rest = &body[done.saturating_sub(HEADER_BYTES)..];
            let sent = self.transport.send(link, &[IoSlice::new(head), IoSlice::new(rest)]);
            match sent {
                Ok(0) => return Ok(()),
                Ok(count) if done + count == total => {
                    self.left[rank] = 0;
                    self.endpoint.left(rank);
                }
                Ok(count) => self.left[rank] = done + count,
                Err(_) => return Err(self.lost(rank)),
            }
        }
        Ok(())
    }

    /// Receives from `link` until nothing more is there; true if something came.
    fn drain(&mut self, link: LinkId, memory: &mut Memory<'_>) -> Result<bool, CommError> {
        let mut moved = false;
        loop {
            let Some(inbound) = self.inbound.get_mut(&link) else { return Ok(moved) };
            let rank = inbound.rank;
            // A body goes straight to its place; without one, the staging buffer is filled.
            let (result, wanted) = match &mut inbound.body {
                Some(body) => {
                    let target = target(&mut self.places, &mut self.bounces, body.landing, memory);
                    let rest = &mut target[body.done..body.length];
                    let result = self.transport.receive(link, &mut [IoSliceMut::new(rest)]);
                    if let Ok(count) = result {
                        body.done += count;
                    }
                    (result, rest.len())
                }
                None => {
                    if inbound.start > 0 {
                        inbound.staging.copy_within(inbound.start..inbound.end, 0);
                        (inbound.start, inbound.end) = (0, inbound.end - inbound.start);
                    }
                    let rest = &mut inbound.staging[inbound.end..];
                    let result = self.transport.receive(link, &mut [IoSliceMut::new(rest)]);
                    if let Ok(count) = result {
                        inbound.end += count;
                    }
                    (result, rest.len())
                }
            };
            match result {
                Ok(0) => return Ok(moved),
                Ok(count) => {
                    moved = true;
                    self.heard[rank] = Some(link);
                    self.digest(link, memory)?;
                    if count < wanted {
                        return Ok(true); // the socket is empty; asking again costs a call
                    }
                }
                Err(_) => return Err(self.lost(rank)),
            }
        }
    }

    /// Uses what is in the staging buffer of `link`, and finishes a body that is complete.
    fn digest(&mut self, link: LinkId, memory: &mut Memory<'_>) -> Result<(), CommError> {
        loop {
            let Some(inbound) = self.inbound.get_mut(&link) else { return Ok(()) };
            let rank = inbound.rank;
            if let Some(body) = &mut inbound.body {
                let staged = &inbound.staging[inbound.start..inbound.end];
                let count = staged.len().min(body.length - body.done);
                if count > 0 {
                    let target = target(&mut self.places, &mut self.bounces, body.landing, memory);
                    target[body.done..body.done + count].copy_from_slice(&staged[..count]);
                    body.done += count;
                    inbound.start += count;
                }
                if body.done < body.length {
                    return Ok(());
                }
                let Body { header, landing, .. } = inbound.body.take().expect("just seen");
                if let (Some(op), Landing::Bounce(bounce)) =
                    (self.endpoint.landed(rank, &header, landing), landing)
                {
                    self.take(op, bounce, memory);
                }
                continue;
            }
            let staged = &inbound.staging[inbound.start..inbound.end];
            let Some(bytes) = staged.first_chunk::<HEADER_BYTES>() else { return Ok(()) };
            let Ok(header) = Header::decode(bytes) else { return Err(self.lost(rank)) };
            inbound.start += HEADER_BYTES;
            let Ok(landing) = self.endpoint.arrived(rank, &header) else { return Err(self.lost(rank)) };
            if let Landing::Bounce(bounce) = landing {
                self.bounces.insert(bounce, vec![0; self.endpoint.bounce_bytes(bounce)]);
            }
            let length = header.body_bytes() as usize;
            let inbound = self.inbound.get_mut(&link).expect("still there");
            inbound.body = Some(Body { header, landing, done: 0, length });
        }
    }
}

/// The memory in which a payload lands.
fn target<'a>(
    places: &'a mut HashMap<OpId, Place>,
    bounces: &'a mut HashMap<BounceId, Vec<u8>>,
    landing: Landing,
    memory: &'a mut Memory<'_>,
) -> &'a mut [u8] {
    match landing {
        Landing::Nowhere => &mut [],
        Landing::Op(op) => places.get_mut(&op).map_or(&mut [], |place| place.bytes_mut(memory)),
        Landing::Bounce(bounce) => bounces.get_mut(&bounce).map_or(&mut [], Vec::as_mut_slice),
    }
}
