//! Lines by logs. Whoever has drawn its line logs late messages, and how what was not determined has come out, until nothing that others keep depends on it any more.
//!
//! A rank tells each other one, when it draws its line, how many messages it had sent to it. That is the news that the line is drawn, and by the counts each rank knows when
//! all late messages are there. A rank stops to log outcomes when all have drawn their lines, as no message that it sends from then on can be early; or when it
//! receives a message from one that has stopped, which may depend on what was not logged. So whatever an early message depends on was
//! logged: its sender, going back, says the same again.
//!
//! Each message has a [`Stamp`] of three bits. Two of them count lines: between two ranks there is never more than one, as the next line begins when the last is committed.

use std::collections::{BTreeSet, VecDeque};

use crate::matching::{Envelope, Pattern};
use crate::planted;
use crate::rank::Rank;

/// What is said with each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Lines that its sender has drawn, modulo 4.
    pub colour: u8,
    /// Whether its sender logs outcomes.
    pub logs: bool,
}

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
    /// A receive that may take several messages has taken this one.
    Took(Envelope),
    /// A question whether something is there was answered so.
    Answered(bool),
}

/// What belongs to a line beside the state of the rank, with messages of type `B`.
#[derive(Clone, Debug)]
pub struct Log<B> {
    /// Number of the line, from 1 on.
    line: u64,
    late: VecDeque<(Envelope, B)>,
    outcomes: VecDeque<Outcome>,
    /// By sender, which of its messages behind its line were received before this one: their numbers, from 0 on.
    early: Vec<BTreeSet<u64>>,
}

/// What a receive is to do while a rank does again what it had done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replay<B> {
    /// It takes this message.
    Take(Envelope, B),
    /// It waits for a message with this pattern, as ever.
    Await(Pattern),
}

/// A message has a stamp that it cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of rank {from} is two recovery lines away")]
pub struct Astray {
    /// Its sender.
    pub from: Rank,
}

/// One rank's part in lines.
#[derive(Debug)]
pub struct Lines<B> {
    me: Rank,
    phase: Phase,
    /// Of the line that is drawn, or of the last one.
    log: Log<B>,
    /// By receiver, messages that were sent since the own line.
    sent: Vec<u64>,
    /// By sender, messages of it that were received: of those before the line that was drawn last, and of those since. Early ones are apart.
    received: [Vec<u64>; 2],
    /// By sender, how many it had sent before the line, once it has said so.
    due: Vec<Option<u64>>,
    /// By sender, early messages of the line that comes next: their numbers.
    early: Vec<BTreeSet<u64>>,
    /// What is to be done again.
    replayed: VecDeque<(Envelope, B)>,
    outcomes: VecDeque<Outcome>,
    /// By receiver, which of the own messages it has already.
    swallowed: Vec<BTreeSet<u64>>,
}

impl<B: Clone> Lines<B> {
    /// Of rank `me` of `size`, at the beginning of the job, which is line 0.
    pub fn new(me: Rank, size: usize) -> Self {
        let log = Log {
            line: 0,
            late: VecDeque::new(),
            outcomes: VecDeque::new(),
            early: vec![BTreeSet::new(); size],
        };
        Self::restore(me, log, vec![BTreeSet::new(); size])
    }

    /// Of a rank that goes back to a line; of its messages, its receivers have `swallowed` already ([`Log::early_of`] of each).
    pub fn restore(me: Rank, log: Log<B>, swallowed: Vec<BTreeSet<u64>>) -> Self {
        let size = log.early.len();
        Self {
            me,
            phase: Phase::Running,
            sent: vec![0; size],
            received: [vec![0; size], counts(&log.early)],
            due: vec![None; size],
            early: vec![BTreeSet::new(); size],
            replayed: log.late.clone(),
            outcomes: log.outcomes.clone(),
            swallowed: if planted::has(planted::SENDS_EARLY_AGAIN) {
                vec![BTreeSet::new(); size]
            } else {
                swallowed
            },
            log,
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

    /// Of the line that was drawn last, as far as it is.
    pub fn log(&self) -> &Log<B> {
        &self.log
    }

    /// Whether the next line may be drawn: the last one is committed, and nothing is to be done again.
    pub fn may_draw(&self) -> bool {
        let is_over = self.replayed.is_empty() && self.outcomes.is_empty();
        self.phase == Phase::Running && is_over && self.swallowed.iter().all(BTreeSet::is_empty)
    }

    /// The rank has saved its state: its line is drawn here. Gives, by receiver, what [`Lines::handle_drawn`] there is to be told.
    pub fn draw(&mut self) -> Vec<u64> {
        let size = self.sent.len();
        let early = std::mem::replace(&mut self.early, vec![BTreeSet::new(); size]);
        self.log = Log { line: self.log.line + 1, late: VecDeque::new(), outcomes: VecDeque::new(), early };
        self.received.swap(0, 1);
        self.received[1] = counts(&self.log.early);
        self.phase = Phase::Logging;
        let sent = std::mem::replace(&mut self.sent, vec![0; size]);
        self.due[self.me] = Some(sent[self.me]);
        self.go_on();
        sent
    }

    /// A rank has drawn the line that comes next, or was drawn last here, and had sent so many messages to this one before.
    pub fn handle_drawn(&mut self, by: Rank, sent: u64) {
        self.due[by] = Some(sent);
        self.go_on();
    }

    /// The line is whole at all ranks: nobody goes back behind it.
    pub fn handle_commit(&mut self) {
        if self.phase == Phase::Whole {
            self.phase = Phase::Running;
        }
    }

    /// A message begins to leave: its number since the line, and its stamp; none if its receiver has it already.
    pub fn send(&mut self, to: Rank) -> Option<(u64, Stamp)> {
        let number = self.sent[to];
        self.sent[to] += 1;
        let stamp = Stamp { colour: (self.log.line % 4) as u8, logs: self.phase == Phase::Logging };
        (!self.swallowed[to].remove(&number)).then_some((number, stamp))
    }

    /// The program receives a message, which has this number; where it chose among several, [`Lines::note`] belongs behind it.
    ///
    /// # Errors
    /// It cannot have this stamp.
    pub fn receive(
        &mut self,
        message: &Envelope,
        number: u64,
        stamp: Stamp,
        bytes: &B,
    ) -> Result<(), Astray> {
        let from = message.source as Rank;
        let own = (self.log.line % 4) as u8;
        let modulus = if planted::has(planted::COUNTS_LINES_BY_TWO) { 2 } else { 4 };
        match (stamp.colour + 4 - own) % modulus {
            0 => {
                self.received[1][from] += 1;
                if self.phase == Phase::Logging && !stamp.logs {
                    self.phase = Phase::Collecting;
                }
            }
            1 => {
                self.early[from].insert(number);
            }
            3 if matches!(self.phase, Phase::Logging | Phase::Collecting) => {
                self.received[0][from] += 1;
                if !planted::has(planted::FORGETS_LATE) {
                    self.log.late.push_back((*message, bytes.clone()));
                }
            }
            _ => return Err(Astray { from }),
        }
        self.go_on();
        Ok(())
    }

    /// Something has come out so.
    pub fn note(&mut self, outcome: Outcome) {
        if self.phase == Phase::Logging {
            self.log.outcomes.push_back(outcome);
        }
    }

    /// How a question was answered when it was asked for the first time; none if that is not known, or did not matter.
    pub fn answered(&mut self) -> Option<bool> {
        match self.outcomes.front()? {
            Outcome::Answered(answer) => {
                let answer = *answer;
                self.outcomes.pop_front();
                Some(answer)
            }
            Outcome::Took(_) => None,
        }
    }

    /// What a receive with this pattern is to do.
    pub fn replay(&mut self, mut pattern: Pattern) -> Replay<B> {
        let is_named = pattern.source.is_some() && pattern.tag.is_some();
        if !is_named && let Some(Outcome::Took(message)) = self.outcomes.front() {
            pattern =
                Pattern { context: message.context, source: Some(message.source), tag: Some(message.tag) };
            if planted::has(planted::REPLAYS_IN_ANOTHER_ORDER) {
                self.outcomes.pop_back();
            } else {
                self.outcomes.pop_front();
            }
        }
        let fits = |(message, _): &(Envelope, B)| pattern.accepts(message);
        let at = self.replayed.iter().position(fits);
        match at.and_then(|at| self.replayed.remove(at)) {
            Some((message, bytes)) => Replay::Take(message, bytes),
            None => Replay::Await(pattern),
        }
    }

    /// What belongs to the line, if that is whole here.
    pub fn whole(&self) -> Option<&Log<B>> {
        (self.phase == Phase::Whole).then_some(&self.log)
    }

    /// Looks whether something that was waited for is there.
    fn go_on(&mut self) {
        if self.phase == Phase::Logging && self.due.iter().all(Option::is_some) {
            self.phase = Phase::Collecting;
        }
        let is_there = |(due, received): (&Option<u64>, &u64)| due.is_some_and(|due| due == *received);
        let mut senders =
            self.due.iter().zip(&self.received[0]).enumerate().filter(|(rank, _)| *rank != self.me);
        if self.phase == Phase::Collecting && senders.all(|(_, sender)| is_there(sender)) {
            self.phase = Phase::Whole;
            self.due.fill(None);
        }
    }
}

fn counts(early: &[BTreeSet<u64>]) -> Vec<u64> {
    early.iter().map(|numbers| numbers.len() as u64).collect()
}

impl<B> Log<B> {
    /// Messages of a rank that this one had received before its line, though they were sent behind that rank's.
    pub fn early_of(&self, sender: Rank) -> &BTreeSet<u64> {
        &self.early[sender]
    }

    /// Messages and outcomes in it.
    pub fn len(&self) -> (usize, usize) {
        (self.late.len(), self.outcomes.len())
    }

    /// Whether nothing was under way at the line.
    pub fn is_empty(&self) -> bool {
        self.len() == (0, 0)
    }
}
