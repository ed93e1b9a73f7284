//! How a call waits: for something on the links, or for a word of the launcher.

use std::time::Duration;

use super::company::Company;
use super::doubt::Doubt;
use super::looks::GLANCES;
use super::watchdog::{Call, Watchdog};
use super::{ActivityId, Driver, Memory, NAP, State};
use crate::service::Question;
use crate::time::Clock;
use crate::transport::Patience;
use ft_proto::error::CommError;
use ft_proto::rank::{MessageMode, Rank, Tag};
use ft_proto::wire::control::News;
use ft_proto::wire::wait::{Awaited, Place};

/// An alarm is followed by what it was raised for within so long.
const DETAILS_WITHIN: Duration = Duration::from_secs(1);
/// A caller that never sleeps looks at the watchdog so often.
const LOOKS_BETWEEN_WATCHES: u32 = 1 << 16;
/// A program that looks without waiting asks for signs of life so often at most.
const LOOKS_BETWEEN_DOUBTS: u32 = 64;
/// A caller that never sleeps announces more of what comes again to a rank so often.
const LOOKS_BETWEEN_FEEDS: u32 = 1 << 10;
/// Of so many looks at the awaited link alone the last one is at all links.
const LOOKS_AT_ONE: u32 = 16;
/// What was recorded is here: who does not find it after so many looks waits for something else.
const LOOKS_AT_TAPE: u32 = 2;
/// Of so many calls that may find at once what they wait for one looks at all links.
const CALLS_BETWEEN_LOOKS: u32 = 64;

/// What a blocked caller waits for.
#[derive(Clone, Copy)]
pub(super) enum Hint {
    /// Anything.
    Any,
    /// A message from this rank.
    From(Rank),
    /// The next message of a step list.
    Activity(ActivityId),
    /// The others, who are not done yet.
    Others,
}

impl From<Option<Rank>> for Hint {
    fn from(rank: Option<Rank>) -> Self {
        rank.map_or(Self::Any, Self::From)
    }
}

/// How this rank waits, and what it does about waits that are long.
pub(crate) struct Waiting {
    pub(super) patience: Patience,
    /// Read by the watchdog, for doubts and while the caller yields.
    pub(super) clock: Clock,
    /// The call that the program is in: its name, context and tag.
    call: (&'static str, u32, Option<Tag>),
    /// How far the program is, if all ranks take the same steps.
    pub(crate) place: Option<Place>,
    watchdog: Watchdog,
    doubt: Doubt,
    pub(super) company: Company,
    looks: u32,
    /// That may find at once what they wait for.
    calls: u32,
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            patience: Patience::default(),
            clock: Clock::start(),
            call: ("", 0, None),
            place: None,
            watchdog: Watchdog::default(),
            doubt: Doubt::default(),
            company: Company::default(),
            looks: 0,
            calls: 0,
        }
    }
}

impl Waiting {
    /// Lets long waits be reported, each after `patience`.
    pub(crate) fn watch(&mut self, patience: Duration) {
        self.watchdog = Watchdog::new(patience);
    }

    /// Lets awaited ranks be asked for a sign of life, after so long.
    pub(crate) fn doubt_after(&mut self, patience: Duration) {
        self.doubt = Doubt::new(patience);
    }

    /// A call begins that may find at once what it waits for; whether it is to look at everything first.
    pub(super) fn is_turn_of_all(&mut self) -> bool {
        self.calls = self.calls.wrapping_add(1);
        self.calls.is_multiple_of(CALLS_BETWEEN_LOOKS)
    }

    /// The call that the program is in.
    pub(crate) fn call(&self) -> (&'static str, u32, Option<Tag>) {
        self.call
    }

    /// It goes on with a call.
    pub(crate) fn resume(&mut self, call: (&'static str, u32, Option<Tag>)) {
        self.call = call;
    }

    /// The program enters this call, whose messages have this context and, if it is one, this tag.
    pub(crate) fn enter(&mut self, name: &'static str, context: u32, tag: Option<Tag>) {
        self.call = (name, context, tag);
    }
}

impl Driver {
    /// Before a sleep: reports a wait that has become too long.
    fn look_at_watch(&mut self, hint: Hint) {
        if self.waiting.watchdog.is_on() {
            let now = self.service.now(&self.waiting.clock);
            if let Some(waited) = self.waiting.watchdog.look(now) {
                let (name, context, tag) = self.waiting.call;
                let (awaited, place) = (self.awaited_by(hint), self.waiting.place);
                let call = Call { name, context, tag, awaited, place };
                self.submit(call.waits(waited));
            }
        }
    }

    /// Something moved, or a call returns.
    fn moved(&mut self) {
        if let Some(report) = self.waiting.watchdog.moved() {
            self.submit(report);
        }
    }

    /// Waits for the next news that `wanted` accepts; the end of the job is an error, other news is noted.
    pub(crate) fn await_news<T>(&mut self, wanted: impl Fn(&News) -> Option<T>) -> Result<T, CommError> {
        self.await_word(false, |_, news| news.and_then(&wanted))
    }

    /// Waits for a word of the launcher: `wanted` is asked about what was noted before the next news is taken, and about each news
    /// before it is noted; one that it gives something for is not noted. The end of the job is an error, an interruption is none. What
    /// is under way on links goes on if `moves` and as far as it can.
    pub(super) fn await_word<T>(
        &mut self,
        moves: bool,
        wanted: impl Fn(&mut Self, Option<&News>) -> Option<T>,
    ) -> Result<T, CommError> {
        loop {
            self.calls.count();
            if let Some(found) = wanted(self, None) {
                self.moved();
                return Ok(found);
            }
            if let Some(news) = self.service.take_news() {
                if let Some(found) = wanted(self, Some(&news)) {
                    self.moved();
                    return Ok(found);
                }
                self.note(news);
                continue;
            }
            if self.has_ended() {
                return Err(self.failure());
            }
            self.look_at_watch(Hint::Others);
            match self.state {
                State::Running if moves => drop(self.progress(NAP, &mut Memory::none())),
                _ => self.engine.links.transport.idle(NAP),
            }
        }
    }

    /// As [`Driver::check`], and waits for the details of a failure that the launcher has raised the alarm for; not for ever, as
    /// the launcher may have mourned a process that nobody needs any more.
    pub(crate) fn check_alarm(&mut self) -> Result<(), CommError> {
        self.check()?;
        if !self.rests && self.service.alarm().is_raised() && self.failures.news().is_empty() {
            let until = self.waiting.clock.now().after(DETAILS_WITHIN);
            while self.failures.news().is_empty() && self.waiting.clock.now() < until {
                self.engine.links.transport.idle(NAP);
                self.check()?;
            }
        }
        Ok(())
    }

    /// Waits until all ranks are done; a failure before that is an error.
    ///
    /// With `repairs` a failure is one in every message mode.
    ///
    /// Operations that nobody waits for go on meanwhile. A link that breaks is no failure here: others may have
    /// heard earlier that all are done.
    pub(crate) fn await_done(&mut self, repairs: bool) -> Result<(), CommError> {
        self.leaving = true;
        let result = self.wait_until(&mut Memory::none(), Hint::Others, |driver| {
            // News that was noted elsewhere is not lost: the end may have come with it.
            if let Err(error) = driver.check() {
                return Some(Err(error));
            }
            if driver.told.finalized {
                return Some(Ok(()));
            }
            let (ranks, generation) = (driver.failures.news(), driver.generation());
            (repairs && !ranks.is_empty()).then_some(Err(CommError::PeerFailed { ranks, generation }))
        });
        self.leaving = false;
        result?
    }

    /// Looks at the links once, without waiting.
    pub(crate) fn look(&mut self) -> Result<(), CommError> {
        // A program that only ever looks waits as well.
        self.waiting.looks = self.waiting.looks.wrapping_add(1);
        if self.waiting.looks.is_multiple_of(LOOKS_BETWEEN_DOUBTS) {
            self.ask_if_in_doubt(Hint::Any)?;
            self.engine.feed_more();
        }
        self.engine.act_on_rest(&mut Memory::none());
        self.progress(Duration::ZERO, &mut Memory::none()).map(|_| ())
    }

    /// Moves what can be moved until `done` gives something.
    pub(super) fn wait_until<T>(
        &mut self,
        memory: &mut Memory<'_>,
        hint: Hint,
        done: impl FnMut(&mut Self) -> Option<T>,
    ) -> Result<T, CommError> {
        let result = self.try_until(memory, hint, done);
        self.moved();
        self.waiting.doubt.over();
        result
    }

    fn try_until<T>(
        &mut self,
        memory: &mut Memory<'_>,
        hint: Hint,
        mut done: impl FnMut(&mut Self) -> Option<T>,
    ) -> Result<T, CommError> {
        let (mut idle, mut turns) = (0, 0_u32);
        self.engine.act_on_rest(memory);
        self.engine.links.looked();
        loop {
            self.lists.release(&mut self.engine, memory);
            if let Some(result) = done(self) {
                return Ok(result);
            }
            if idle > LOOKS_AT_TAPE && self.engine.endpoint.plays_tape() {
                return Err(CommError::Diverged);
            }
            let Patience { spins, yields, gives_way } = self.waiting.patience;
            let sleeps_soon = gives_way.is_some() && self.waiting.company.is_there();
            let awake = spins.saturating_add(if sleeps_soon { 0 } else { yields });
            turns = turns.wrapping_add(1);
            if idle >= awake || turns % LOOKS_BETWEEN_WATCHES == 0 {
                self.ask_if_in_doubt(hint)?;
            }
            if idle % LOOKS_BETWEEN_FEEDS == LOOKS_BETWEEN_FEEDS - 1 {
                self.engine.feed_more();
            }
            // The awaited link alone is cheap to look at; every so often all of them are.
            let hinted = self.hinted(hint);
            if let Some(link) = hinted
                && idle < spins
            {
                self.engine.links.transport.glance(link, GLANCES);
            }
            let moved = match hinted {
                Some(link) if idle < awake && idle % LOOKS_AT_ONE != LOOKS_AT_ONE - 1 => {
                    self.check()?;
                    self.engine.flush_all(memory);
                    let moved = self.engine.drain(link, memory);
                    if moved {
                        self.lists.advance(&mut self.engine, memory);
                    }
                    self.settle(memory)?;
                    moved
                }
                _ => {
                    let sleep = if idle >= awake { NAP } else { Duration::ZERO };
                    // Not at the first look, which most calls need alone; and such a look is at all links.
                    if !sleep.is_zero() || idle % LOOKS_BETWEEN_WATCHES == LOOKS_BETWEEN_WATCHES - 1 {
                        self.look_at_watch(hint);
                    }
                    let moved = self.progress(sleep, memory)?;
                    if !sleep.is_zero() {
                        self.waiting.company.slept();
                    }
                    moved
                }
            };
            if moved {
                self.moved();
            }
            idle = if moved { 0 } else { u32::wrapping_add(idle, 1) }; // who never sleeps may count far
            if idle > spins && idle <= awake {
                let Self { engine, service, waiting: Waiting { company, clock, .. }, .. } = self;
                let mut relax = || engine.links.transport.relax();
                match gives_way {
                    Some(slice) => company.yields(idle - spins, slice, || service.now(clock), relax),
                    None => relax(),
                }
            }
        }
    }

    /// Whom a call waits for.
    fn awaited_by(&self, hint: Hint) -> Awaited {
        match hint {
            Hint::Any => Awaited::Anybody,
            Hint::From(rank) => Awaited::Ranks(vec![rank]),
            Hint::Activity(id) => Awaited::Ranks(self.lists.awaited_all(id)),
            Hint::Others => Awaited::Others,
        }
    }

    /// The link on which something from the awaited rank came last.
    fn hinted(&self, hint: Hint) -> Option<crate::transport::LinkId> {
        let rank = match hint {
            Hint::Any | Hint::Others => None,
            Hint::From(rank) => Some(rank),
            Hint::Activity(id) => self.lists.awaited(id),
        };
        self.engine.links.heard(rank?)
    }

    /// Before a sleep, if ranks have been awaited for long: asks whether they are in reach, and gives up those of whose messages
    /// something was lost. Who is leaving has no doubts: others may have left already.
    fn ask_if_in_doubt(&mut self, hint: Hint) -> Result<(), CommError> {
        let now = self.service.now(&self.waiting.clock);
        if self.rests || self.leaving || !self.waiting.doubt.look(now) {
            return Ok(());
        }
        let mut ranks = match self.awaited_by(hint) {
            Awaited::Ranks(ranks) => ranks,
            Awaited::Anybody | Awaited::Others => (0..self.membership.seats.len()).collect(),
        };
        let endpoint = &self.engine.endpoint;
        ranks.extend(endpoint.busy());
        ranks.retain(|rank| *rank != self.engine.me && !endpoint.is_lost(*rank));
        let ranks = self.waiting.doubt.choose(ranks).into_iter();
        let awaited: Vec<_> = ranks.map(|rank| (rank, self.membership.seats[rank].peer)).collect();
        for (rank, _) in &awaited {
            if self.engine.links.misses(*rank) {
                self.lost(*rank, "bytes that it had sent were lost on the way")?;
            }
        }
        let goes_on = self.mode == MessageMode::Continue;
        self.service.ask(Question { generation: self.generation(), awaited, goes_on });
        Ok(())
    }

    /// One look at everything: news, accepted links, frames to send, bytes that came.
    pub(super) fn progress(&mut self, sleep: Duration, memory: &mut Memory<'_>) -> Result<bool, CommError> {
        self.calls.count();
        self.check()?;
        self.engine.links.looked();
        self.engine.accept();
        let before = self.engine.moves;
        let sleep = if !sleep.is_zero() && self.engine.feed_more() { Duration::ZERO } else { sleep };
        self.engine.flush_all(memory);
        self.settle(memory)?;
        // What is awaited may have left just now: nobody wakes who sleeps on that.
        let has_left = self.engine.moves != before;
        let moved = self.engine.wait(if has_left { Duration::ZERO } else { sleep }, memory) | has_left;
        self.settle(memory)?;
        self.check()?;
        self.engine.accept();
        self.engine.flush_all(memory);
        self.lists.advance(&mut self.engine, memory);
        self.settle(memory)?;
        self.engine.sweep();
        Ok(moved)
    }

    /// Settles what the engine has found out: links that are of no use, and news that came while one was being opened.
    #[inline]
    pub(super) fn settle(&mut self, memory: &Memory<'_>) -> Result<(), CommError> {
        if self.engine.findings.is_empty() {
            return Ok(()); // as nearly always
        }
        self.settle_findings(memory)
    }

    fn settle_findings(&mut self, memory: &Memory<'_>) -> Result<(), CommError> {
        loop {
            if self.engine.findings.has_broken() {
                let mut result = Ok(());
                for (rank, why) in self.engine.findings.take_broken() {
                    result = result.and(self.lost(rank, &why));
                }
                result?;
            }
            if !self.engine.was_interrupted() {
                return Ok(());
            }
            self.check()?;
            self.engine.flush_all(memory);
        }
    }
}
