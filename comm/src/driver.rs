//! The driver of the data links: moves bytes between the transport and memory as the endpoint says, waits,
//! and turns news of failures into errors.
//!
//! Memory of blocking calls is borrowed for the call only: operations hold ranges of the call's [`Memory`],
//! never references. Before a call returns, its operations are finished, or the driver is interrupted and
//! touches no memory until the next generation, which begins with a new endpoint.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use crate::service::alarm::Alarm;
use crate::service::{Question, Service};
use crate::time::Clock;
use crate::transport::{LinkId, Patience, Transport};
use ft_proto::endpoint::{CONTEXT_DYNAMIC, Endpoint, OpId};
use ft_proto::error::CommError;
use ft_proto::member::News;
use ft_proto::rank::{Generation, Membership, MessageMode, PeerId, Rank, Seat, Tag};
use ft_proto::wire::control::{ToArbiter, Verdict};
use ft_proto::wire::wait::Awaited;

mod activity;
mod agreement;
mod doubt;
mod links;
mod losses;
mod memory;
mod operations;
mod reading;
mod watchdog;

use activity::Running;
pub(crate) use activity::{Message, StepList};
use doubt::Doubt;
use links::Inbound;
pub use memory::Spaces;
use memory::Stock;
pub(crate) use memory::{ActivityId, Apply, Buffer, Combine, Extent, Memory, Place, SCRATCH_ALIGN};
use reading::Seal;
use watchdog::{Call, Watchdog};

/// Longest sleep between looks at the news.
const NAP: Duration = Duration::from_millis(100);
/// An alarm is followed by what it was raised for within so long.
const DETAILS_WITHIN: Duration = Duration::from_secs(1);
/// A caller that never sleeps looks at the watchdog so often.
const LOOKS_BETWEEN_WATCHES: u32 = 1 << 16;
/// A program that looks without waiting asks for signs of life so often at most.
const LOOKS_BETWEEN_DOUBTS: u32 = 64;
/// Bytes of small messages that are gathered before they leave together.
const GATHER_BYTES: usize = 16 << 10;

/// When the frames of a send leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// At once.
    Now,
    /// At once if it is the first to its rank since the links were last looked at; what follows it is gathered until
    /// the next look, or until there is much of it.
    Soon,
}

/// What a blocked caller waits for.
#[derive(Clone, Copy)]
pub(crate) enum Hint {
    /// Anything.
    Any,
    /// A message from this rank.
    From(Rank),
    /// The next message of a step list.
    Activity(ActivityId),
}

impl From<Option<Rank>> for Hint {
    fn from(rank: Option<Rank>) -> Self {
        rank.map_or(Self::Any, Self::From)
    }
}

#[derive(Debug)]
enum State {
    Running,
    Interrupted,
    Ended { code: i32, message: String },
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
    /// Ranks to which something left since the links were last looked at.
    begun: Vec<bool>,
    inbound: BTreeMap<LinkId, Inbound>,
    spare: Vec<Box<[u8]>>,
    packing: Vec<u8>,
    /// Changed before memory that others were offered; so it comes before that memory here.
    seal: Seal,
    stock: Stock,
    running: Vec<(ActivityId, Box<Running>)>,
    /// Operations that nobody waits for any more; their memory is freed when they are finished.
    detached: Vec<OpId>,
    detached_activities: Vec<ActivityId>,
    /// Contexts of communicators that are gone, but for step lists under way.
    closing: Vec<u32>,
    /// Counts what has come or gone over links, and what step lists have made of it.
    moves: u64,
    ready: Vec<LinkId>,
    mode: MessageMode,
    /// Ranks of this generation that have failed, holes included.
    failed: BTreeSet<Rank>,
    /// Those that the program knows of and has said so.
    acknowledged: BTreeSet<Rank>,
    /// Ranks that no link leads to any more, although they may live.
    cut: Vec<bool>,
    /// Contexts of communicators that were revoked.
    revoked: BTreeSet<u32>,
    /// By the context of a communicator that of the one from which it was made.
    parents: HashMap<u32, u32>,
    /// World ranks of the communicators, by their context.
    rosters: HashMap<u32, std::rc::Rc<[Rank]>>,
    /// Outcomes of agreements that the launcher has told.
    agreed: HashMap<u32, (u32, Verdict)>,
    /// Step lists have been broken off, and their operations still hold memory.
    broken_off: bool,
    /// The rank is done and waits for the others.
    leaving: bool,
    /// All ranks are done.
    finalized: bool,
    /// The call that the program is in: its name, context and tag.
    call: (&'static str, u32, Option<Tag>),
    watchdog: Watchdog,
    doubt: Doubt,
    /// Nobody looks for news; see [`Driver::rest`].
    rests: bool,
    looks: u32,
    /// Positions of the cuts that have struck.
    cuts: Vec<usize>,
    /// Read by the watchdog and for doubts only.
    clock: Clock,
    pub(crate) bytes_sent: u64,
    /// Those that were read from the memory of others.
    pub(crate) bytes_read: u64,
}

impl Driver {
    pub(crate) fn new(transport: Box<dyn Transport>, service: Box<dyn Service>, me: Rank) -> Self {
        Self {
            transport,
            service,
            patience: Patience::default(),
            state: State::Running,
            me,
            membership: Membership::default(),
            endpoint: Endpoint::new(me, 0, 0),
            outbound: vec![],
            heard: vec![],
            left: vec![],
            begun: vec![],
            inbound: BTreeMap::new(),
            spare: vec![],
            packing: vec![],
            seal: Seal::new(),
            stock: Stock::default(),
            running: vec![],
            detached: vec![],
            detached_activities: vec![],
            closing: vec![],
            moves: 0,
            ready: vec![],
            mode: MessageMode::Nop,
            failed: BTreeSet::new(),
            acknowledged: BTreeSet::new(),
            cut: vec![],
            revoked: BTreeSet::new(),
            parents: HashMap::new(),
            rosters: HashMap::new(),
            agreed: HashMap::new(),
            broken_off: false,
            leaving: false,
            finalized: false,
            call: ("", 0, None),
            watchdog: Watchdog::default(),
            doubt: Doubt::default(),
            rests: false,
            looks: 0,
            cuts: vec![],
            clock: Clock::start(),
            bytes_sent: 0,
            bytes_read: 0,
        }
    }

    pub(crate) fn generation(&self) -> Generation {
        self.membership.generation
    }

    /// How many ranks there are, in all or of those that compute, and which one this is.
    pub(crate) fn count(&self, all: bool) -> (usize, Rank) {
        (if all { self.membership.seats.len() } else { self.membership.compute }, self.me)
    }

    pub(crate) fn membership(&self) -> &Membership {
        &self.membership
    }

    pub(crate) fn submit(&self, message: ToArbiter) {
        self.service.submit(message);
    }

    pub(crate) fn alarm(&self) -> Alarm {
        self.service.alarm()
    }

    pub(crate) fn close(&mut self) {
        self.service.close();
    }

    /// Lets long waits be reported, each after `patience`.
    pub(crate) fn watch(&mut self, patience: Option<Duration>) {
        self.watchdog = Watchdog::new(patience);
    }

    /// Lets awaited ranks be asked for a sign of life, after so long.
    pub(crate) fn doubt_after(&mut self, patience: Duration) {
        self.doubt = Doubt::new(patience);
    }

    /// Leaves out what is done for the case of a failure, or does it again: to measure what that costs.
    pub(crate) fn rest(&mut self, rests: bool) {
        self.rests = rests;
        self.service.rest(rests);
    }

    /// Whether the cut at this position has struck.
    pub(crate) fn has_cut(&self, spec: usize) -> bool {
        self.cuts.contains(&spec)
    }

    /// The program enters this call, whose messages have this context and, if it is one, this tag.
    pub(crate) fn enter(&mut self, name: &'static str, context: u32, tag: Option<Tag>) {
        self.call = (name, context, tag);
    }

    /// Before a sleep: reports a wait that has become too long.
    fn look_at_watch(&mut self, awaited: impl FnOnce(&Self) -> Awaited) {
        if self.watchdog.is_on() {
            let (name, context, tag) = self.call;
            let call = Call { name, context, tag, awaited: awaited(self) };
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
            self.look_at_watch(|_| Awaited::Others);
            self.transport.idle(NAP);
        }
    }

    /// Waits until all ranks are done; a failure before that is an error.
    ///
    /// With `repairs` a failure is one in every message mode.
    ///
    /// Operations that nobody waits for go on meanwhile. A link that breaks is no failure here: others may have
    /// heard earlier that all are done.
    pub(crate) fn await_done(&mut self, repairs: bool) -> Result<(), CommError> {
        self.leaving = true;
        let result = self.run_until_done(repairs);
        self.moved();
        self.leaving = false;
        result
    }

    fn run_until_done(&mut self, repairs: bool) -> Result<(), CommError> {
        loop {
            // News that was noted elsewhere is not lost: the end may have come with it.
            self.check()?;
            let ranks = self.news_of_failures();
            if repairs && !ranks.is_empty() && !self.finalized {
                return Err(CommError::PeerFailed { ranks, generation: self.generation() });
            }
            if self.finalized {
                return Ok(());
            }
            self.accept();
            let busy: Vec<Rank> =
                self.endpoint.busy().iter().copied().filter(|rank| self.outbound[*rank].is_some()).collect();
            let mut blocked = Vec::with_capacity(busy.len());
            for rank in busy {
                if self.flush(rank, &Memory::none()).is_ok() && !self.endpoint.frames(rank).is_empty() {
                    blocked.extend(self.outbound[rank]);
                }
            }
            let mut ready = std::mem::take(&mut self.ready);
            ready.clear();
            self.look_at_watch(|_| Awaited::Others);
            self.transport.wait(&blocked, NAP, &mut ready);
            for link in &ready {
                if self.drain(*link, &mut Memory::none()).is_err() {
                    self.inbound.remove(link);
                    self.transport.close(*link);
                }
            }
            self.ready = ready;
            // What fails here has nobody to tell.
            let _ = self.advance_all(&mut Memory::none());
        }
    }

    /// So many ranks share the host of this one, itself included.
    pub(crate) fn beside(&mut self, ranks: usize) {
        self.patience = self.transport.patience(ranks);
    }

    /// Takes the seat of rank `me` of a world of so many ranks, which is about to be joined.
    pub(crate) fn seat(&mut self, me: Rank, compute: usize, total: usize) {
        (self.me, self.patience) = (me, self.transport.patience(total));
        let nobody = Seat { peer: PeerId::LAUNCHER, incarnation: 0, address: String::new() };
        (self.membership.seats, self.membership.compute) = (vec![nobody; total], compute);
    }

    fn note(&mut self, news: News) {
        match news {
            News::Failed { generation, ranks } if generation == self.generation() => {
                if self.mode == MessageMode::Continue {
                    return self.bury(&ranks);
                }
                self.failed.extend(ranks);
                if let State::Running = self.state {
                    self.interrupt();
                }
            }
            News::Agreed { context, number, verdict } => drop(self.agreed.insert(context, (number, verdict))),
            News::Revoked { context } => self.revoked(context),
            News::Ended { code, message } => {
                self.seal.change();
                self.state = State::Ended { code, message };
            }
            News::Finalized => self.finalized = true,
            News::Cut { spec, .. } => self.cuts.push(spec),
            News::Failed { .. } | News::Welcome(_) | News::Decided(_) | News::Asked { .. } | News::Die => {}
        }
    }

    /// What was offered of memory that was lent is not to be read any more: a call has ended in the middle, and is the last one.
    pub(crate) fn take_back(&mut self) {
        self.seal.change();
    }

    /// Calls end from now on, and with them what they have lent.
    fn interrupt(&mut self) {
        self.seal.change();
        self.state = State::Interrupted;
    }

    fn failure(&self) -> CommError {
        match &self.state {
            State::Ended { code, message } => CommError::Ended { code: *code, message: message.clone() },
            State::Interrupted => match self.news_of_failures() {
                ranks if ranks.is_empty() => CommError::LinkBroke { generation: self.generation() },
                ranks => CommError::PeerFailed { ranks, generation: self.generation() },
            },
            State::Running => unreachable!("only asked after a failure"),
        }
    }

    /// Looks at the news; an error if calls are interrupted.
    pub(crate) fn check(&mut self) -> Result<(), CommError> {
        if !self.rests && self.service.has_news() {
            while let Some(news) = self.service.take_news() {
                self.note(news);
            }
        }
        match self.state {
            State::Running => Ok(()),
            State::Interrupted | State::Ended { .. } => Err(self.failure()),
        }
    }

    /// The same, and waits for the details of a failure that the launcher has raised the alarm for; not for ever, as the launcher
    /// may have mourned a process that nobody needs any more.
    pub(crate) fn check_alarm(&mut self) -> Result<(), CommError> {
        self.check()?;
        if !self.rests && self.service.alarm().is_raised() && self.news_of_failures().is_empty() {
            let until = self.clock.now().after(DETAILS_WITHIN);
            while self.news_of_failures().is_empty() && self.clock.now() < until {
                self.transport.idle(NAP);
                self.check()?;
            }
        }
        Ok(())
    }

    /// Starts the generation of `membership` with new links and nothing under way.
    pub(crate) fn change(&mut self, membership: Membership) {
        let size = membership.seats.len();
        let peers: Vec<(PeerId, String)> =
            membership.seats.iter().map(|seat| (seat.peer, seat.address.clone())).collect();
        self.seal.change();
        self.transport.change(membership.generation, &peers);
        self.service.alarm().entered(membership.generation);
        self.service.verdicts().entered(membership.generation);
        let before = membership.before.iter().position(|before| *before == Some(self.me));
        self.me = before.unwrap_or(self.me);
        self.endpoint = Endpoint::new(self.me, size, membership.generation);
        self.failed = membership.holes.iter().copied().collect();
        self.acknowledged.clone_from(&self.failed);
        self.failed.iter().for_each(|rank| drop(self.endpoint.lose(*rank)));
        self.rosters.retain(|context, _| *context < CONTEXT_DYNAMIC);
        self.cut = vec![false; size];
        self.revoked.clear();
        self.parents.clear();
        self.agreed.clear();
        self.broken_off = false;
        self.outbound = vec![None; size];
        self.heard = vec![None; size];
        self.left = vec![0; size];
        self.begun = vec![false; size];
        let inbound = std::mem::take(&mut self.inbound);
        self.spare.extend(inbound.into_values().map(|inbound| inbound.staging));
        self.stock.clear();
        self.running.clear();
        self.detached.clear();
        self.detached_activities.clear();
        self.closing.clear();
        self.membership = membership;
        if !matches!(self.state, State::Ended { .. }) {
            self.state = State::Running;
        }
    }

    /// Looks at the links once, without waiting.
    pub(crate) fn look(&mut self) -> Result<(), CommError> {
        // A program that only ever looks waits as well.
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(LOOKS_BETWEEN_DOUBTS) {
            self.ask_if_in_doubt(Hint::Any)?;
        }
        self.progress(Duration::ZERO, &mut Memory::none()).map(|_| ())
    }

    fn run_until<T>(
        &mut self,
        memory: &mut Memory<'_>,
        hint: Hint,
        done: impl FnMut(&mut Self) -> Option<T>,
    ) -> Result<T, CommError> {
        let result = self.try_until(memory, hint, done);
        self.moved();
        self.doubt.over();
        result
    }

    fn try_until<T>(
        &mut self,
        memory: &mut Memory<'_>,
        hint: Hint,
        mut done: impl FnMut(&mut Self) -> Option<T>,
    ) -> Result<T, CommError> {
        let (mut idle, mut turns) = (0, 0_u32);
        self.begun.fill(false);
        loop {
            self.release_broken_off(memory);
            if let Some(result) = done(self) {
                return Ok(result);
            }
            let Patience { spins, yields } = self.patience;
            turns = turns.wrapping_add(1);
            if idle >= spins.saturating_add(yields) || turns % LOOKS_BETWEEN_WATCHES == 0 {
                self.ask_if_in_doubt(hint)?;
            }
            // The awaited link alone is cheap to look at; every so often all of them are.
            let moved = match self.hinted(hint) {
                Some(link) if idle < spins.saturating_add(yields) && idle % 16 != 15 => {
                    self.check()?;
                    self.flush_all(memory)?;
                    let moved = self.drain(link, memory)?;
                    if moved {
                        self.advance_all(memory)?;
                    }
                    moved
                }
                _ => {
                    let sleep = if idle >= spins.saturating_add(yields) { NAP } else { Duration::ZERO };
                    if !sleep.is_zero() || idle % LOOKS_BETWEEN_WATCHES == 0 {
                        self.look_at_watch(|driver| driver.awaited_by(hint));
                    }
                    self.progress(sleep, memory)?
                }
            };
            if moved {
                self.moved();
            }
            idle = if moved { 0 } else { u32::wrapping_add(idle, 1) }; // who never sleeps may count far
            if idle > spins && idle <= spins.saturating_add(yields) {
                self.transport.relax();
            }
        }
    }

    /// Whom a call waits for.
    fn awaited_by(&self, hint: Hint) -> Awaited {
        match hint {
            Hint::Any => Awaited::Anybody,
            Hint::From(rank) => Awaited::Ranks(vec![rank]),
            Hint::Activity(id) => Awaited::Ranks(self.awaited_all(id)),
        }
    }

    /// Before a sleep, if ranks have been awaited for long: asks whether they are in reach, and gives up those of whose messages
    /// something was lost.
    fn ask_if_in_doubt(&mut self, hint: Hint) -> Result<(), CommError> {
        if !self.rests && self.doubt.look(self.service.now(&self.clock)) {
            let mut ranks = match self.awaited_by(hint) {
                Awaited::Ranks(ranks) => ranks,
                Awaited::Anybody | Awaited::Others => (0..self.membership.seats.len()).collect(),
            };
            ranks.extend(self.endpoint.busy());
            ranks.retain(|rank| *rank != self.me && !self.endpoint.is_lost(*rank));
            let ranks = self.doubt.choose(ranks).into_iter();
            let awaited: Vec<_> = ranks.map(|rank| (rank, self.membership.seats[rank].peer)).collect();
            for (rank, peer) in &awaited {
                if self.transport.misses(*peer) {
                    self.lost(*rank, "bytes that it had sent were lost on the way")?;
                }
            }
            let goes_on = self.mode == MessageMode::Continue;
            self.service.ask(Question { generation: self.generation(), awaited, goes_on });
        }
        Ok(())
    }

    /// The link on which something from the awaited rank came last.
    fn hinted(&self, hint: Hint) -> Option<LinkId> {
        let rank = match hint {
            Hint::Any => None,
            Hint::From(rank) => Some(rank),
            Hint::Activity(id) => self.awaited(id),
        };
        *self.heard.get(rank?)?
    }

    /// One look at everything: news, accepted links, frames to send, bytes that came.
    fn progress(&mut self, sleep: Duration, memory: &mut Memory<'_>) -> Result<bool, CommError> {
        self.check()?;
        self.begun.fill(false);
        self.accept();
        self.flush_all(memory)?;
        let blocked: Vec<LinkId> =
            self.endpoint.busy().iter().filter_map(|rank| self.outbound[*rank]).collect();
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
        self.advance_all(memory)?;
        self.sweep();
        Ok(moved)
    }

    fn sweep(&mut self) {
        if !self.detached.is_empty() {
            let detached = std::mem::take(&mut self.detached);
            detached.into_iter().for_each(|op| self.detach(op));
        }
    }
}
