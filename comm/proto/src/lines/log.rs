//! Lines by logs. Whoever has drawn its line logs late messages, and how what was not determined has come out, until nothing that others keep depends on it any more.
//!
//! A rank counts what it has sent to each other one since its line before. All add these counts up when they draw the next, so each knows how many messages it
//! should have received before the others' lines, and that all lines are drawn: the line is *whole* at a rank when it has, or has logged, that many.
//! A rank stops to log outcomes when all have drawn their lines, as no message that it sends from then on can be early; or when it
//! receives a message from one that has stopped, which may depend on what was not logged. So whatever an early message depends on was
//! logged: its sender, going back, says the same again.
//!
//! Each message has a [`Stamp`]. Two of its bits count lines: between two ranks there is never more than one, as the next line begins when the last is committed.
//! An early message is known by its [`Signature`], and by how many of that signature its sender has sent since its line. This does not depend on what
//! else the sender has under way, and messages of one signature do not overtake each other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rustc_hash::FxHashMap;

use crate::matching::{Envelope, Pattern};
use crate::planted;
use crate::rank::Rank;
use crate::stamp::Stamp;

/// How far a rank is with its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// There is none that is not committed.
    Running,
    /// Outcomes are logged, and late messages.
    Logging,
    /// Late messages are logged.
    Collecting,
    /// The rank's part of the line is whole; whoever commits it waits for that.
    Whole,
}

/// How something has come out that the program did not determine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A question for a message was answered: this source and tag, or that there is none.
    Found(Option<(u32, u32)>),
    /// Of several things that might have happened this one did; whether something was done: 0 or 1.
    Chose(u32),
}

/// What messages of two ranks are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signature {
    /// The other rank.
    pub peer: u32,
    /// Context of the communicator.
    pub context: u32,
    /// Tag.
    pub tag: u32,
}

/// Which messages of each signature, counted from the line of their sender on, are not to be sent again.
pub type Swallowed = BTreeMap<Signature, BTreeSet<u32>>;

/// What belongs to a line beside the state of the rank, with messages of type `B`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log<B> {
    /// Number of the line, from 1 on; 0 is the beginning of the job.
    pub line: u64,
    /// Receives before it, from the beginning of the job on, that might have taken several messages.
    pub chosen: u64,
    /// Determinants before it ([`crate::lines::Journal`]); 0 if nobody counts them.
    pub determined: u64,
    /// Late messages, and those that had been kept with the line before and were not received yet; each sender's in their order.
    pub late: Vec<(Envelope, B)>,
    /// How questions were answered, in order.
    pub outcomes: VecDeque<Outcome>,
    /// Which message, by source and tag, a receive has taken that may take several; receives by their number.
    pub choices: BTreeMap<u64, (u32, u32)>,
    /// Which messages behind the lines of their senders were received before this one.
    pub early: Swallowed,
    /// Of collectives and exchanges that were under way at it: how many messages they had sent, which do not leave again when they begin again.
    pub repeated: BTreeMap<Signature, u32>,
}

/// What has crossed a line of a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crossings {
    /// Messages that were under way, and are kept.
    pub kept: u64,
    /// Their bytes.
    pub kept_bytes: u64,
    /// Messages that had been received too early, and are not to be sent again.
    pub early: u64,
    /// What was not determined, and has to come out so again.
    pub outcomes: u64,
}

/// A message has a stamp that it cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of rank {from} is of another recovery line than it can be")]
pub struct Astray {
    /// Its sender.
    pub from: Rank,
}

/// One rank's part in lines.
#[derive(Debug)]
pub struct Lines<B> {
    phase: Phase,
    /// Of the line that is drawn, or of the last one.
    log: Log<B>,
    /// By receiver, messages that were sent since the own line.
    sent: Vec<u64>,
    /// Messages that were received: of those before the lines that were drawn last, and of those since. Early ones are apart.
    received: [u64; 2],
    /// How many were sent to this rank before the lines, once all are drawn.
    due: Option<u64>,
    /// Early messages of the line that comes next.
    early: Swallowed,
    /// Of messages behind the next lines of their senders: how many have come of a signature, and which of them is which.
    coming: FxHashMap<Signature, u32>,
    places: FxHashMap<(u32, u32), u32>,
    /// Receives that might take several messages.
    chosen: u64,
    /// What is to be done again: how it came out.
    outcomes: VecDeque<Outcome>,
    choices: BTreeMap<u64, (u32, u32)>,
    /// Which of the own messages their receivers have already, and how many of these signatures were sent.
    swallowed: Swallowed,
    again: FxHashMap<Signature, u32>,
    /// Messages of before the line that come once more, and do not leave.
    repeated: BTreeMap<Signature, u32>,
}

impl<B> Log<B> {
    /// Of a line that nothing has crossed.
    pub fn empty(line: u64) -> Self {
        Self {
            line,
            chosen: 0,
            determined: 0,
            late: vec![],
            outcomes: VecDeque::new(),
            choices: BTreeMap::new(),
            early: Swallowed::new(),
            repeated: BTreeMap::new(),
        }
    }

    /// The same, of messages as `make` makes them.
    pub fn map<C>(self, make: impl Fn(B) -> C) -> Log<C> {
        let Self { line, chosen, determined, late, outcomes, choices, early, repeated } = self;
        let late = late.into_iter().map(|(message, bytes)| (message, make(bytes))).collect();
        Log { line, chosen, determined, late, outcomes, choices, early, repeated }
    }

    /// How much there is of all, with so many bytes in each message.
    pub fn crossings(&self) -> Crossings {
        Crossings {
            kept: self.late.len() as u64,
            kept_bytes: self.late.iter().map(|(message, _)| message.length).sum(),
            early: self.early.values().map(|numbers| numbers.len() as u64).sum(),
            outcomes: (self.outcomes.len() + self.choices.len()) as u64,
        }
    }

    /// Whether nothing was under way at the line.
    pub fn is_empty(&self) -> bool {
        self.late.is_empty()
            && self.outcomes.is_empty()
            && self.choices.is_empty()
            && self.early.is_empty()
            && self.repeated.is_empty()
    }
}

impl<B> Lines<B> {
    /// Of one of `size` ranks, at a line that no message has crossed.
    pub fn new(size: usize, line: u64) -> Self {
        Self::restore(size, Log::empty(line)).0
    }

    /// Of one of `size` ranks that goes back to a line, and the messages that it is to find in its queue, as if they had just come. [`Lines::swallow`] belongs behind it.
    pub fn restore(size: usize, log: Log<B>) -> (Self, Vec<(Envelope, B)>) {
        let Log { line, chosen, late, outcomes, choices, early, repeated, .. } = log;
        let received = [0, early.values().map(|numbers| numbers.len() as u64).sum()];
        let lines = Self {
            phase: Phase::Running,
            log: Log::empty(line),
            sent: vec![0; size],
            received,
            due: None,
            early: Swallowed::new(),
            coming: FxHashMap::default(),
            places: FxHashMap::default(),
            chosen,
            outcomes,
            choices,
            swallowed: Swallowed::new(),
            again: FxHashMap::default(),
            repeated,
        };
        (lines, late)
    }

    /// Receivers of this rank's messages have these already, as their logs say ([`Log::early`]).
    pub fn swallow(&mut self, swallowed: Swallowed) {
        if !planted::has(planted::SENDS_EARLY_AGAIN) {
            self.swallowed = swallowed;
        }
    }

    /// How far it is.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Lines that were drawn.
    pub fn line(&self) -> u64 {
        self.log.line
    }

    /// Whether the next line may be drawn: the last one is committed, and all that did not come out by itself was done again.
    pub fn may_draw(&self) -> bool {
        self.phase == Phase::Running && !self.is_replaying()
    }

    /// Whether something is to be done again that has come out in one way before.
    pub fn is_replaying(&self) -> bool {
        !(self.outcomes.is_empty()
            && self.choices.is_empty()
            && self.swallowed.is_empty()
            && self.repeated.is_empty())
    }

    /// Whether messages were received from behind the next line of others: who has not drawn it is behind them.
    pub fn is_behind(&self) -> bool {
        !self.early.is_empty()
    }

    /// How many lines the sender of a message had drawn when it left; none if lines do not matter to it.
    pub fn line_of(&self, message: &Envelope) -> Option<u64> {
        let ahead = message.mark.stamp().is_lined().then(|| self.ahead(message))?;
        if ahead == 3 { self.log.line.checked_sub(1) } else { Some(self.log.line + u64::from(ahead)) }
    }

    /// The line that is under way is given up, by all ranks together: what is received or sent from now on is behind the last committed line, as what was received
    /// and sent since. If this rank has drawn it, `before` is what [`Lines::draw`] gave.
    pub(super) fn abandon(&mut self, before: Option<&[u64]>) {
        if let Some(sent) = before {
            self.log = Log::empty(self.log.line - 1);
            self.sent.iter_mut().zip(sent).for_each(|(count, before)| *count += before);
            self.received = [0, self.received.iter().sum()];
        }
        self.received[1] += self.early.values().map(|numbers| numbers.len() as u64).sum::<u64>();
        self.early.clear();
        self.coming.clear();
        self.places.clear();
        self.due = None;
        self.phase = Phase::Running;
    }

    /// So many determinants are before the line that was drawn now.
    pub(super) fn count_determinants(&mut self, determined: u64) {
        self.log.determined = determined;
    }

    /// What is to come out as it came out before, behind the line that this rank has gone back to.
    pub(super) fn foresee(&mut self, outcomes: VecDeque<Outcome>, choices: BTreeMap<u64, (u32, u32)>) {
        (self.outcomes, self.choices) = (outcomes, choices);
    }

    /// Of messages to one rank, which it has already: of each signature how many were sent since the line, and the numbers of those to come that are not to leave.
    pub(super) fn swallow_of(
        &mut self,
        peer: Rank,
        has: impl Iterator<Item = (Signature, u32, BTreeSet<u32>)>,
    ) {
        self.swallowed.retain(|signature, _| signature.peer as Rank != peer);
        self.again.retain(|signature, _| signature.peer as Rank != peer);
        for (signature, sent, numbers) in has {
            self.swallowed.insert(signature, numbers);
            self.again.insert(signature, sent);
        }
    }

    /// The rank has saved its state: its line is drawn here. Gives, by receiver, how many messages were sent since the line before.
    pub fn draw(&mut self) -> Vec<u64> {
        let early = std::mem::take(&mut self.early);
        self.log = Log { chosen: self.chosen, early, ..Log::empty(self.log.line + 1) };
        self.received = [self.received[1], self.log.early.values().map(|numbers| numbers.len() as u64).sum()];
        self.coming.clear();
        self.places.clear();
        self.phase = Phase::Logging;
        let size = self.sent.len();
        std::mem::replace(&mut self.sent, vec![0; size])
    }

    /// All have drawn the line, and had sent so many messages to this rank before.
    pub fn handle_drawn(&mut self, due: u64) {
        self.due = Some(due);
        if self.phase == Phase::Logging {
            self.phase = Phase::Collecting;
        }
        self.go_on();
    }

    /// The line is whole at all ranks: nobody goes back behind it.
    pub fn handle_commit(&mut self) {
        if self.phase == Phase::Whole {
            self.phase = Phase::Running;
            self.log = Log::empty(self.log.line);
        }
    }

    /// What messages have on them that leave now.
    #[inline]
    pub fn stamp(&self) -> Stamp {
        Stamp::new(self.log.line, self.phase == Phase::Logging)
    }

    /// A message begins to leave; false if its receiver has it already.
    #[inline]
    pub fn sends(&mut self, to: Rank, context: u32, tag: u32) -> bool {
        self.sent[to] += 1;
        self.swallowed.is_empty() || self.leaves(Signature { peer: to as u32, context, tag })
    }

    /// Whether a message that begins to leave has left before the line: it does not count again.
    #[inline]
    pub fn repeats(&mut self, to: Rank, context: u32, tag: u32) -> bool {
        !self.repeated.is_empty() && self.repeats_of(Signature { peer: to as u32, context, tag })
    }

    #[cold]
    fn repeats_of(&mut self, signature: Signature) -> bool {
        let Some(count) = self.repeated.get_mut(&signature) else { return false };
        *count -= 1;
        if *count == 0 {
            self.repeated.remove(&signature);
        }
        !planted::has(planted::SENDS_BEGUN_AGAIN)
    }

    /// A collective, or an exchange, that is under way at the line that was drawn now has sent so many messages.
    pub fn keep_repeated(&mut self, signature: Signature, count: u32) {
        *self.log.repeated.entry(signature).or_default() += count;
    }

    #[cold]
    fn leaves(&mut self, signature: Signature) -> bool {
        let Some(numbers) = self.swallowed.get_mut(&signature) else { return true };
        let count = self.again.entry(signature).or_default();
        let has = numbers.remove(count);
        *count += 1;
        if numbers.is_empty() {
            self.swallowed.remove(&signature);
            self.again.remove(&signature);
        }
        !has
    }

    /// How many lines the sender of a message had drawn more than this rank, modulo 4.
    #[inline]
    fn ahead(&self, message: &Envelope) -> u8 {
        let own = (self.log.line % 4) as u8;
        let modulus = if planted::has(planted::COUNTS_LINES_BY_TWO) { 2 } else { 4 };
        (message.mark.stamp().colour() + 4 - own) % modulus
    }

    /// A message has come, and may wait for its receive.
    ///
    /// # Errors
    /// It cannot have this stamp.
    #[inline]
    pub fn comes(&mut self, message: &Envelope) -> Result<(), Astray> {
        if !message.mark.stamp().is_lined() {
            return Ok(());
        }
        match self.ahead(message) {
            0 => Ok(()),
            1 => {
                let signature = signature(message);
                let count = self.coming.entry(signature).or_default();
                self.places.insert((message.source, message.mark.number()), *count);
                *count += 1;
                Ok(())
            }
            3 if matches!(self.phase, Phase::Logging | Phase::Collecting) => Ok(()),
            _ => Err(Astray { from: message.source as Rank }),
        }
    }

    /// Whether a message is late: what it says has to be logged.
    #[inline]
    pub fn is_late(&self, message: &Envelope) -> bool {
        message.mark.stamp().is_lined() && self.ahead(message) == 3
    }

    /// The program has received a message, or it was put where its receive wants it. Whether it is late: [`Lines::keep`] belongs behind it then.
    ///
    /// # Errors
    /// It cannot have this stamp.
    #[inline]
    pub fn deliver(&mut self, message: &Envelope) -> Result<bool, Astray> {
        let stamp = message.mark.stamp();
        if !stamp.is_lined() {
            return Ok(false);
        }
        match self.ahead(message) {
            0 => {
                self.received[1] += 1;
                self.logs_with(message);
                Ok(false)
            }
            1 => {
                let signature = signature(message);
                let place = self.places.remove(&(message.source, message.mark.number()));
                let number = place.unwrap_or_else(|| {
                    // It came and was taken at once.
                    let count = self.coming.entry(signature).or_default();
                    *count += 1;
                    *count - 1
                });
                self.early.entry(signature).or_default().insert(number);
                Ok(false)
            }
            3 if matches!(self.phase, Phase::Logging | Phase::Collecting) => Ok(true),
            _ => Err(Astray { from: message.source as Rank }),
        }
    }

    /// What a late message says.
    pub fn keep(&mut self, message: Envelope, bytes: B) {
        self.received[0] += 1;
        if !planted::has(planted::FORGETS_LATE) {
            self.keep_again(message, bytes);
        }
        self.go_on();
    }

    /// A message that was kept with the line before has not been received yet.
    pub fn keep_again(&mut self, message: Envelope, bytes: B) {
        // Each sender's in their order: one that was announced may have come behind others. Mostly it is the last.
        let mut at = self.log.late.len();
        for (place, (other, _)) in self.log.late.iter().enumerate().rev() {
            if other.source == message.source {
                if !message.mark.is_before(other.mark) {
                    break;
                }
                at = place;
            }
        }
        self.log.late.insert(at, (message, bytes));
    }

    /// A receive begins that may take several messages: its number, and what it is to take if it is done again.
    pub fn choose(&mut self, pattern: Pattern) -> (u64, Pattern) {
        let number = self.chosen;
        self.chosen += 1;
        (number, self.choose_again(number, pattern))
    }

    /// The same of one that has its number: it had begun before the line to which the rank has gone back.
    pub fn choose_again(&mut self, number: u64, pattern: Pattern) -> Pattern {
        let taken = match planted::has(planted::REPLAYS_IN_ANOTHER_ORDER) {
            true => self.choices.pop_last().map(|(_, taken)| taken),
            false => self.choices.remove(&number),
        };
        let named = |(source, tag)| Pattern { source: Some(source), tag: Some(tag), ..pattern };
        taken.map_or(pattern, named)
    }

    /// A receive with this number began before the line that was drawn now, has taken this one, by source and tag, and begins again behind it.
    pub fn keep_choice(&mut self, number: u64, taken: (u32, u32)) {
        self.log.choices.insert(number, taken);
    }

    /// A receive with this number takes this message.
    pub fn chose(&mut self, number: u64, message: &Envelope) {
        if self.logs_with(message) {
            self.log.choices.insert(number, (message.source, message.tag));
        }
    }

    /// A question for a message has found this one, or none.
    pub fn found(&mut self, message: Option<&Envelope>) {
        if message.map_or(self.phase == Phase::Logging, |message| self.logs_with(message)) {
            self.log.outcomes.push_back(Outcome::Found(message.map(|message| (message.source, message.tag))));
        }
    }

    /// Of several things that might have happened this one did.
    pub fn note(&mut self, chose: u32) {
        if self.phase == Phase::Logging {
            self.log.outcomes.push_back(Outcome::Chose(chose));
        }
    }

    /// Whether outcomes are logged still when this rank knows of a message: not if its sender has stopped.
    #[inline]
    fn logs_with(&mut self, message: &Envelope) -> bool {
        let stamp = message.mark.stamp();
        if self.phase == Phase::Logging && stamp.is_lined() && !stamp.logs() && self.ahead(message) == 0 {
            self.phase = Phase::Collecting;
            self.go_on();
        }
        self.phase == Phase::Logging
    }

    /// How the next question came out when it was asked for the first time; none if that is not known, or did not matter.
    pub fn replay(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    /// What belongs to the line, if that is whole here.
    pub fn whole(&self) -> Option<&Log<B>> {
        (self.phase == Phase::Whole).then_some(&self.log)
    }

    /// Looks whether something that was waited for is there.
    fn go_on(&mut self) {
        if self.phase == Phase::Collecting && self.due == Some(self.received[0]) {
            self.phase = Phase::Whole;
            self.due = None;
        }
    }
}

pub(super) fn signature(message: &Envelope) -> Signature {
    Signature { peer: message.source, context: message.context, tag: message.tag }
}
