//! Only who was lost goes back: what a rank has to remember of its messages since the last committed line, so that a replacement can be brought to where the lost one was.
//!
//! A sender keeps what it has sent since its line (D. B. Johnson, W. Zwaenepoel, Sender-based message logging, FTCS 1987). A receiver counts what has come, by [`Signature`], since the lines of the
//! senders. After a loss each two ranks tell each other what has come ([`Account`]): what has not is sent from the journal, and what a replacement says again is swallowed.
//!
//! How it came out what the program does not determine is a [`Determinant`]. Nobody may depend on one that can get lost. So a message that leaves has all of them before it
//! that its sender knows and its receiver may not ([`Luggage`]), but those that so many others have as may be lost at once (L. Alvisi, K. Marzullo, Message logging: pessimistic, optimistic,
//! causal, and optimal, IEEE Trans. Softw. Eng. 24, 1998; family-based logging). A replacement learns its own from the survivors.
//!
//! A line that is under way when a rank is lost is abandoned, by all: so that behind a repair there is one line, the committed one, that all journals begin at.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rustc_hash::FxHashMap;

use super::{Lines, Log, Outcome, Phase, Signature};
use crate::matching::Envelope;
use crate::planted;
use crate::rank::Rank;

/// How something has come out that the program did not determine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Determined {
    /// A question, or what was done of several things.
    Came(Outcome),
    /// The receive with this number ([`Lines::choose`]) has taken the one with this source and tag.
    Took(u64, (u32, u32)),
}

/// The same, of whom and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Determinant {
    /// Where it has come out.
    pub owner: u32,
    /// Which one of this rank, counted from the beginning of the job.
    pub number: u64,
    /// Lines that the rank had drawn.
    pub line: u64,
    /// How it came out.
    pub what: Determined,
}

/// What goes before a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Luggage {
    /// What its receiver may not know.
    pub determinants: Vec<Determinant>,
    /// The sender has all determinants of the receiver below this number that the receiver has told it of.
    pub got: u64,
    /// As many of the sender's own are safe: nobody needs to pass them on.
    pub safe: u64,
}

/// What has come of one signature, counted from the committed line of the sender on: all below `next`, and what is `early`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Has {
    /// The first number that has not come.
    pub next: u64,
    /// Numbers above of what is there all the same.
    pub early: BTreeSet<u64>,
}

/// What a rank tells another after a loss.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// What has come from the other one, by context and tag.
    pub has: BTreeMap<(u32, u32), Has>,
    /// If the other one has gone back, its determinants, as far as they are known, and those of who tells it.
    pub determinants: Vec<Determinant>,
}

/// More ranks are lost than may be: nobody knows what came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nobody that is left knows what number {number} of rank {rank} came out as")]
pub struct Missing {
    /// Who has gone back.
    pub rank: Rank,
    /// The first one that is not known.
    pub number: u64,
}

#[derive(Debug)]
struct Sent<B> {
    line: u64,
    context: u32,
    tag: u32,
    bytes: B,
    length: u64,
}

/// A message that is to be sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Again<B> {
    /// Context of its communicator.
    pub context: u32,
    /// Tag.
    pub tag: u32,
    /// What it says.
    pub bytes: B,
}

/// Which message of its sender, context and tag one is that has come, counted from the beginning of the job or the line that the rank has gone back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nth {
    /// What it is told apart by.
    pub signature: Signature,
    /// Its number among these.
    pub number: u64,
}

#[derive(Clone, Debug, Default)]
struct Arrived {
    /// Number of the first one behind the committed line of the sender, and of the next to come.
    first: u64,
    next: u64,
    /// Where later lines of the sender begin.
    starts: VecDeque<(u64, u64)>,
    /// Numbers above that are there.
    early: BTreeSet<u64>,
}

/// See the module. Bytes of messages are `B`, which may be a reference.
#[derive(Debug)]
pub struct Journal<B> {
    me: Rank,
    /// So many other ranks may be lost together with this one.
    tolerance: usize,
    /// The last committed line.
    line: u64,
    /// If it has drawn the next one: what it had sent before.
    before: Option<Vec<u64>>,
    /// What the line itself says of what came out behind it, until the rank has learned the rest.
    logged: (VecDeque<Outcome>, BTreeMap<u64, (u32, u32)>),
    /// Receives that take again what they took before.
    known: BTreeSet<u64>,
    sent: Vec<VecDeque<Sent<B>>>,
    /// Bytes of these messages.
    kept_bytes: u64,
    arrived: Vec<FxHashMap<(u32, u32), Arrived>>,
    /// By owner, those behind the line; the own ones are all there.
    determinants: Vec<VecDeque<Determinant>>,
    /// Number of the next own one.
    determined: u64,
    /// By receiver and owner, up to which number it was told.
    told: BTreeMap<(Rank, Rank), u64>,
    /// By receiver, the line that this rank had drawn when it told it of some.
    told_behind: Vec<Option<u64>>,
    /// By holder, up to which number it says that it has the own ones.
    acknowledged: Vec<u64>,
    /// By owner, how many are safe.
    safe: Vec<u64>,
    /// By owner, up to which number it has told this rank, and how much of this it knows.
    got: Vec<(u64, u64)>,
}

impl<B> Journal<B> {
    /// Of rank `me` of `size`, in a job that may lose `tolerance` ranks at once, which goes back to a line. The messages are to be in the queue of the rank, as if they had just
    /// come. [`Journal::learn`] belongs behind it, and before, if it goes back alone, what all others know of it ([`Journal::settle`]).
    pub fn restore(
        me: Rank,
        size: usize,
        tolerance: usize,
        log: Log<B>,
    ) -> (Self, Lines<B>, Vec<(Envelope, B)>) {
        let mut journal = Self {
            me,
            tolerance: tolerance.min(size - 1),
            line: log.line,
            before: None,
            logged: (log.outcomes.clone(), log.choices.clone()),
            known: BTreeSet::new(),
            sent: (0..size).map(|_| VecDeque::new()).collect(),
            kept_bytes: 0,
            arrived: vec![FxHashMap::default(); size],
            determinants: vec![VecDeque::new(); size],
            determined: log.determined,
            told: BTreeMap::new(),
            told_behind: vec![None; size],
            acknowledged: vec![0; size],
            safe: vec![0; size],
            got: vec![(0, 0); size],
        };
        for (Signature { peer, context, tag }, numbers) in &log.early {
            let early = numbers.iter().map(|number| u64::from(*number)).collect();
            journal.arrived[*peer as Rank].insert((*context, *tag), Arrived { early, ..Arrived::default() });
        }
        let (lines, late) = Lines::restore(size, log);
        (journal, lines, late)
    }

    fn note(&mut self, line: u64, what: Determined) {
        let (owner, number) = (self.me as u32, self.determined);
        self.determined += 1;
        self.determinants[self.me].push_back(Determinant { owner, number, line, what });
        self.look_at_safety();
    }

    /// How many messages are kept, and determinants.
    pub fn kept(&self) -> (usize, usize) {
        let messages = self.sent.iter().map(VecDeque::len).sum();
        (messages, self.determinants.iter().map(VecDeque::len).sum())
    }

    /// Bytes of the messages that are kept.
    pub fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }

    /// The program sends a message of `length` bytes: false if its receiver has it already.
    pub fn sends(
        &mut self,
        lines: &mut Lines<B>,
        to: Rank,
        (context, tag): (u32, u32),
        (bytes, length): (B, u64),
    ) -> bool {
        self.sent[to].push_back(Sent { line: lines.line(), context, tag, bytes, length });
        self.kept_bytes += length;
        lines.sends(to, context, tag)
    }

    /// What has to be with a rank before the next message is; none if that is nothing.
    pub fn luggage(&mut self, to: Rank) -> Option<Luggage> {
        let mut determinants = vec![];
        for (owner, known) in self.determinants.iter().enumerate().filter(|(owner, _)| *owner != to) {
            let Some(last) = known.back() else { continue };
            let told = self.told.entry((to, owner)).or_default();
            let from = self.safe[owner].max(*told);
            let new = known.iter().rev().take_while(|determinant| determinant.number >= from);
            let at = determinants.len();
            determinants.extend(new);
            determinants[at..].reverse();
            *told = last.number + 1;
        }
        if !determinants.is_empty() {
            self.told_behind[to] = Some(self.line + u64::from(self.before.is_some()));
        }
        let (got, known) = &mut self.got[to];
        let is_news = got != known;
        *known = *got;
        let luggage = Luggage { determinants, got: *got, safe: self.safe[self.me] };
        (is_news || !luggage.determinants.is_empty()).then_some(luggage)
    }

    /// Whether a message to a rank may take another way than what that has to know before it: nothing that still matters was told it.
    pub fn is_clear(&self, to: Rank) -> bool {
        self.told_behind[to].is_none_or(|line| line < self.line)
    }

    /// What came before a message.
    pub fn carries(&mut self, from: Rank, luggage: Luggage) {
        let Luggage { determinants, got, safe } = luggage;
        self.acknowledged[from] = self.acknowledged[from].max(got);
        self.safe[from] = self.safe[from].max(safe);
        self.look_at_safety();
        for determinant in determinants {
            if determinant.owner as Rank == from {
                self.got[from].0 = self.got[from].0.max(determinant.number + 1);
            }
            self.hold(determinant);
        }
    }

    fn hold(&mut self, determinant: Determinant) {
        let held = &mut self.determinants[determinant.owner as Rank];
        let at = held.partition_point(|other| other.number < determinant.number);
        if determinant.line >= self.line
            && held.get(at).is_none_or(|other| other.number != determinant.number)
        {
            held.insert(at, determinant);
        }
    }

    /// Own ones are safe if so many others have them as may be lost together with this rank.
    fn look_at_safety(&mut self) {
        let mut counts = self.acknowledged.clone();
        counts[self.me] = 0;
        counts.sort_unstable_by(|one, two| two.cmp(one));
        let safe = if self.tolerance == 0 { self.determined } else { counts[self.tolerance - 1] };
        self.safe[self.me] = self.safe[self.me].max(safe);
    }

    /// A message has come, or was announced: which one it is, if lines matter to it.
    pub fn comes(&mut self, lines: &Lines<B>, message: &Envelope) -> Option<Nth> {
        let line = lines.line_of(message)?;
        let arrived = self.arrived[message.source as Rank].entry((message.context, message.tag)).or_default();
        while arrived.early.remove(&arrived.next) {
            arrived.next += 1;
        }
        if line > self.line && arrived.starts.back().is_none_or(|(last, _)| *last < line) {
            arrived.starts.push_back((line, arrived.next));
        }
        arrived.next += 1;
        Some(Nth { signature: super::signature(message), number: arrived.next - 1 })
    }

    /// These have come in part, or were only announced, and what was on its way is gone.
    pub fn lose(&mut self, mut missing: Vec<Nth>) {
        missing.sort_unstable();
        for Nth { signature: Signature { peer, context, tag }, number } in missing.into_iter().rev() {
            let Some(arrived) = self.arrived[peer as Rank].get_mut(&(context, tag)) else { continue };
            arrived.early.extend(number + 1..arrived.next);
            arrived.early.remove(&number);
            arrived.next = number;
        }
    }

    /// A receive with this number takes this message ([`Lines::choose`]).
    pub fn chose(&mut self, lines: &mut Lines<B>, number: u64, message: &Envelope) {
        lines.chose(number, message);
        if !self.known.remove(&number) {
            self.note(lines.line(), Determined::Took(number, (message.source, message.tag)));
        }
    }

    /// A question for a message has found this one, or none.
    pub fn found(&mut self, lines: &mut Lines<B>, message: Option<&Envelope>) {
        lines.found(message);
        let outcome = Outcome::Found(message.map(|message| (message.source, message.tag)));
        self.note(lines.line(), Determined::Came(outcome));
    }

    /// Of several things that might have happened this one did.
    pub fn chooses(&mut self, lines: &mut Lines<B>, chose: u32) {
        lines.note(chose);
        self.note(lines.line(), Determined::Came(Outcome::Chose(chose)));
    }

    /// The rank draws its line; gives what [`Lines::draw`] does.
    pub fn draw(&mut self, lines: &mut Lines<B>) -> Vec<u64> {
        let sent = lines.draw();
        lines.count_determinants(self.determined);
        self.before = Some(sent.clone());
        if planted::has(planted::FREES_JOURNAL_EARLY) {
            self.free(lines.line());
        }
        sent
    }

    /// The line is committed: nobody goes back behind it. Where none is whole there was none.
    pub fn handle_commit(&mut self, lines: &mut Lines<B>) {
        if lines.phase() != Phase::Whole {
            return;
        }
        lines.handle_commit();
        self.before = None;
        self.line = lines.line();
        self.free(self.line);
    }

    /// Nobody has to be fed with what is before this line.
    fn free(&mut self, line: u64) {
        for sent in &mut self.sent {
            let freed = sent.drain(..sent.partition_point(|message| message.line < line));
            self.kept_bytes -= freed.map(|message| message.length).sum::<u64>();
        }
        for known in &mut self.determinants {
            known.drain(..known.partition_point(|determinant| determinant.line < line));
        }
        for arrived in &mut self.arrived {
            arrived.retain(|_, arrived| {
                while arrived.starts.front().is_some_and(|(start, _)| *start < line) {
                    arrived.starts.pop_front();
                }
                arrived.first = arrived.starts.front().map_or(arrived.next, |(_, number)| *number);
                if arrived.starts.front().is_some_and(|(start, _)| *start == line) {
                    arrived.starts.pop_front();
                }
                arrived.first < arrived.next
            });
        }
    }

    /// A rank was lost, and no line is under way any more. Messages that are here and wait for their receives are behind the committed line now.
    pub fn abandon(&mut self, lines: &mut Lines<B>) {
        lines.abandon(self.before.take().as_deref());
        let line = self.line;
        self.sent.iter_mut().flatten().for_each(|message| message.line = message.line.min(line));
        self.determinants.iter_mut().flatten().for_each(|other| other.line = other.line.min(line));
        self.arrived.iter_mut().flat_map(FxHashMap::values_mut).for_each(|arrived| arrived.starts.clear());
    }

    /// What another rank has to hear from this one after the repair of those that are `lost`. What was not whole is [lost](Journal::lose) before.
    pub fn account(&self, of: Rank, lost: &[Rank]) -> Account {
        let has = |(key, arrived): (&(u32, u32), &Arrived)| {
            let from_line = |number: &u64| number.checked_sub(arrived.first);
            let next = arrived.next.saturating_sub(arrived.first);
            (*key, Has { next, early: arrived.early.iter().filter_map(from_line).collect() })
        };
        let tells = lost.contains(&of);
        let both = [of, self.me].into_iter().filter(|_| tells);
        Account {
            has: self.arrived[of].iter().map(has).collect(),
            determinants: both.flat_map(|owner| self.determinants[owner].iter().copied()).collect(),
        }
    }

    /// What a rank tells of itself after a repair, in which those that are `lost` went back: gives what is to be sent to it, in order, as `copy` copies it.
    pub fn settle(
        &mut self,
        lines: &mut Lines<B>,
        from: Rank,
        account: Account,
        lost: &[Rank],
        copy: impl Fn(&B) -> B,
    ) -> Vec<Again<B>> {
        let Account { mut has, determinants } = account;
        // What was on its way is gone.
        self.told.retain(|(to, _), _| *to != from);
        let (was_lost, is_back) = (lost.contains(&self.me), lost.contains(&from));
        if is_back {
            // It knows what its accounts say.
            self.acknowledged[from] = if was_lost { 0 } else { self.determined };
            self.got[from].0 = 0;
        }
        determinants.into_iter().for_each(|determinant| self.hold(determinant));
        if was_lost && !is_back {
            self.got[from].0 = self.determinants[from].back().map_or(0, |last| last.number + 1);
        }
        self.got[from].1 = 0;
        let mut counts: FxHashMap<(u32, u32), u64> = FxHashMap::default();
        let mut again = vec![];
        for Sent { context, tag, bytes, .. } in &self.sent[from] {
            let count = counts.entry((*context, *tag)).or_default();
            if !has.get(&(*context, *tag)).is_some_and(|has| has.has(*count)) {
                again.push(Again { context: *context, tag: *tag, bytes: copy(bytes) });
            }
            *count += 1;
        }
        if planted::has(planted::REPEATS_ITSELF) && lost.contains(&self.me) {
            has.clear();
        }
        let swallowed = has.into_iter().filter_map(|((context, tag), has)| {
            let sent = counts.get(&(context, tag)).copied().unwrap_or(0);
            let numbers: BTreeSet<u32> = has.from(sent).map(|number| number as u32).collect();
            let signature = Signature { peer: from as u32, context, tag };
            (!numbers.is_empty()).then_some((signature, sent as u32, numbers))
        });
        lines.swallow_of(from, swallowed);
        again
    }

    /// What came out before, behind the line, is to come out again: all have said what they know of it, or all have gone back.
    ///
    /// # Errors
    /// Something is known that came behind what is not.
    pub fn learn(&mut self, lines: &mut Lines<B>) -> Result<(), Missing> {
        let (mut outcomes, mut choices) = (VecDeque::new(), BTreeMap::new());
        let learned = &self.determinants[self.me];
        for (number, determinant) in (self.determined..).zip(learned) {
            if determinant.number != number {
                return Err(Missing { rank: self.me, number });
            }
            match determinant.what {
                Determined::Came(outcome) => outcomes.push_back(outcome),
                Determined::Took(number, taken) => _ = choices.insert(number, taken),
            }
        }
        self.determined += learned.len() as u64;
        // Of what the line says others need not know anything: what they did may depend on it all the same, if they have saved that.
        let (came, took) = std::mem::take(&mut self.logged);
        for outcome in came.into_iter().skip(outcomes.len()) {
            self.note(self.line, Determined::Came(outcome));
            outcomes.push_back(outcome);
        }
        for (number, taken) in took {
            if choices.insert(number, taken).is_none() {
                self.note(self.line, Determined::Took(number, taken));
            }
        }
        self.known = choices.keys().copied().collect();
        lines.foresee(outcomes, choices);
        Ok(())
    }

    /// What a rank that has gone back has learned of itself, for all others: before they have it, no more may be lost than may be at once in all.
    pub fn learned(&self) -> Vec<Determinant> {
        self.determinants[self.me].iter().copied().collect()
    }
}

impl Has {
    /// Whether this number is there.
    fn has(&self, number: u64) -> bool {
        number < self.next || self.early.contains(&number)
    }

    /// All that are there from this number on.
    fn from(&self, first: u64) -> impl Iterator<Item = u64> {
        (first..self.next).chain(self.early.range(first.max(self.next)..).copied())
    }
}
