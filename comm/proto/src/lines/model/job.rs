//! Ranks with lines, on links that deliver when they like, from a seed to the end of their program.

use std::collections::{BTreeSet, VecDeque};

use super::{Action, Choices, State, judge, program};
use crate::lines::{Journal, Lines, Log, Luggage, Outcome, Phase, Swallowed};
use crate::matching::{Envelope, Pattern};
use crate::planted;
use crate::rank::Rank;
use crate::stamp::Mark;

/// A message and what it says.
pub(super) type Message = (Envelope, u64);

/// What goes over a link, in order.
pub(super) enum Packet {
    Luggage(Luggage),
    Message(Message),
}

pub(super) struct Process {
    pub(super) lines: Lines<u64>,
    /// If only who was lost goes back.
    pub(super) journal: Option<Journal<u64>>,
    pub(super) state: State,
    /// Messages that have arrived.
    pub(super) arrived: Vec<Message>,
    /// By sender, how many have.
    came: Vec<u32>,
    /// The receive that it is in, as the log has changed it, and its number if it chooses.
    pub(super) awaits: Option<(Pattern, Option<u64>)>,
    pub(super) drawn: Option<State>,
    pub(super) committed: (State, Log<u64>),
}

pub(super) struct Job {
    pub(super) processes: Vec<Process>,
    pub(super) links: Vec<Vec<VecDeque<Packet>>>,
    /// How many ranks may be lost at once, if only these go back.
    pub(super) tolerance: Option<usize>,
    /// By rank, how many messages it had sent to each other one before its line, if it has drawn the one that is under way.
    told: Vec<Option<Vec<u64>>>,
    /// Who has not heard yet that all have drawn it.
    pub(super) unaware: Vec<Rank>,
    /// Who has not heard of the last commit.
    pub(super) unheard: Vec<Rank>,
    /// A line is to be drawn; if all wait at their line, at the end of this round.
    pub(super) wanted: Option<(u64, Option<usize>)>,
}

/// How often something was seen, so that a test knows that it has tested it.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) lines: u64,
    pub(super) rollbacks: u64,
    pub(super) late: u64,
    pub(super) outcomes: u64,
    pub(super) early: u64,
    /// Repairs after which only the lost have gone back, how many these were, what they were fed with, and what was swallowed.
    pub(super) repairs: u64,
    pub(super) lost: u64,
    pub(super) fed: u64,
    pub(super) learned: u64,
}

fn links(size: usize) -> Vec<Vec<VecDeque<Packet>>> {
    (0..size).map(|_| (0..size).map(|_| VecDeque::new()).collect()).collect()
}

impl Job {
    pub(super) fn new(size: usize, tolerance: Option<usize>) -> Self {
        let process = |me| Process {
            lines: Lines::new(size, 0),
            journal: tolerance.map(|tolerance| Journal::restore(me, size, tolerance, Log::empty(0)).0),
            state: State::default(),
            arrived: vec![],
            came: vec![0; size],
            awaits: None,
            drawn: None,
            committed: (State::default(), Log::empty(0)),
        };
        Self {
            processes: (0..size).map(process).collect(),
            links: links(size),
            tolerance,
            told: vec![None; size],
            unaware: vec![],
            unheard: vec![],
            wanted: None,
        }
    }

    /// A rank does what is next, if it can.
    fn step(&mut self, me: Rank, program: &[Action], draws: bool) -> Result<(), String> {
        let process = &mut self.processes[me];
        let waits = self.wanted.is_some_and(|(_, round)| round.is_some()) && process.drawn.is_some();
        if waits && !matches!(process.lines.phase(), Phase::Whole | Phase::Running) {
            process.collect();
            return Ok(());
        }
        let Some(action) = program.get(process.state.at) else { return Ok(()) };
        match *action {
            Action::Send(to, tag) => {
                let bytes = process.state.says(to, tag);
                let leaves = match &mut process.journal {
                    Some(journal) => journal.sends(&mut process.lines, to, (0, tag), (bytes, 8)),
                    None => process.lines.sends(to, 0, tag),
                };
                if leaves {
                    self.send(me, to, tag, bytes);
                }
            }
            Action::Receive(from, tag) => return process.receive(from, tag),
            Action::Ask(tag) => {
                let found = match process.lines.replay() {
                    Some(Outcome::Found(found)) => found,
                    Some(other) => return Err(format!("{other:?} is no answer")),
                    None => {
                        let mut arrived = process.arrived.iter().map(|(envelope, _)| envelope);
                        let found = arrived.find(|envelope| envelope.tag == tag);
                        match &mut process.journal {
                            Some(journal) => journal.found(&mut process.lines, found),
                            None => process.lines.found(found),
                        }
                        found.map(|envelope| (envelope.source, envelope.tag))
                    }
                };
                process.state.hear(found.is_some());
            }
            Action::Boundary(number) => {
                let is_due = self.wanted.is_some_and(|(line, round)| {
                    process.lines.line() < line && round.is_none_or(|round| round == number)
                });
                let must = self.wanted.is_some_and(|(_, round)| round.is_some());
                if is_due && must && !process.lines.may_draw() {
                    return Err("a line that all draw at once cannot be drawn".into());
                }
                if is_due && (draws || must) && process.lines.may_draw() {
                    let state = State { at: process.state.at + 1, ..process.state.clone() };
                    if planted::has(planted::FREES_EARLY) {
                        process.committed.1 = Log::empty(0);
                    }
                    self.told[me] = Some(match &mut process.journal {
                        Some(journal) => journal.draw(&mut process.lines),
                        None => process.lines.draw(),
                    });
                    process.drawn = Some(state);
                    for (message, bytes) in process.arrived.iter().filter(|(m, _)| m.mark.is_kept()) {
                        process.lines.keep_again(*message, *bytes);
                    }
                    if self.told.iter().all(Option::is_some) {
                        self.unaware = (0..self.told.len()).collect();
                    }
                }
            }
        }
        self.processes[me].state.at += 1;
        Ok(())
    }

    /// A message leaves, and before it what its receiver has to know.
    pub(super) fn send(&mut self, me: Rank, to: Rank, tag: u32, bytes: u64) {
        let process = &mut self.processes[me];
        let luggage = process.journal.as_mut().and_then(|journal| journal.luggage(to)).map(Packet::Luggage);
        let mark = Mark::of(process.lines.stamp());
        let message =
            Packet::Message((Envelope { context: 0, source: me as u32, tag, mark, length: 8 }, bytes));
        let packets = match planted::has(planted::TELLS_LATE) {
            true => [Some(message), luggage],
            false => [luggage, Some(message)],
        };
        self.links[me][to].extend(packets.into_iter().flatten());
    }

    /// A rank hears that all have drawn their line.
    fn tell(&mut self, me: Rank) {
        let due = self.told.iter().flatten().map(|counts| counts[me]).sum();
        self.processes[me].lines.handle_drawn(due);
        self.unaware.retain(|rank| *rank != me);
    }

    fn arrive(&mut self, from: Rank, to: Rank) -> Result<(), String> {
        let Some(packet) = self.links[from][to].pop_front() else { return Ok(()) };
        let process = &mut self.processes[to];
        let (mut message, bytes) = match (packet, &mut process.journal) {
            (Packet::Message(message), _) => message,
            (Packet::Luggage(luggage), Some(journal)) => {
                journal.carries(from, luggage);
                return Ok(());
            }
            (Packet::Luggage(_), None) => return Err("a rank without a journal was told something".into()),
        };
        if let Some(journal) = &mut process.journal {
            journal.comes(&process.lines, &message);
        }
        message.mark = message.mark.numbered(process.came[from]);
        process.came[from] += 1;
        process.lines.comes(&message).map_err(|error| error.to_string())?;
        process.arrived.push((message, bytes));
        Ok(())
    }

    /// The line is committed if it is whole everywhere.
    fn look_at_line(&mut self, seen: &mut Seen) {
        let is_whole = |process: &Process| process.lines.whole().is_some();
        if self.unheard.is_empty() && self.processes.iter().all(is_whole) {
            for (rank, process) in self.processes.iter_mut().enumerate() {
                let (Some(state), Some(log)) = (process.drawn.take(), process.lines.whole()) else {
                    continue;
                };
                seen.late += log.late.len() as u64;
                seen.outcomes += (log.outcomes.len() + log.choices.len()) as u64;
                seen.early += log.early.values().map(|numbers| numbers.len() as u64).sum::<u64>();
                process.committed = (state, log.clone());
                self.unheard.push(rank);
            }
            seen.lines += 1;
            self.wanted = None;
            self.told.fill(None);
        }
    }

    /// What is under way is gone, and so is a line that is not committed.
    pub(super) fn forget(&mut self) {
        self.links = links(self.links.len());
        self.told.fill(None);
        self.unaware.clear();
        self.wanted = None;
    }

    /// All go back to the committed line.
    pub(super) fn go_back(&mut self) -> Result<(), String> {
        let size = self.links.len();
        self.forget();
        self.unheard.clear();
        let logs: Vec<Log<u64>> = self.processes.iter().map(|process| process.committed.1.clone()).collect();
        for (me, process) in self.processes.iter_mut().enumerate() {
            let late = process.restore(me, size, self.tolerance);
            if let Some(journal) = &mut process.journal {
                journal.learn(&mut process.lines).map_err(|error| error.to_string())?;
            }
            let mut swallowed = Swallowed::new();
            for (receiver, log) in logs.iter().enumerate() {
                let mine = log.early.iter().filter(|(signature, _)| signature.peer as Rank == me);
                swallowed.extend(mine.map(|(signature, numbers)| {
                    (crate::lines::Signature { peer: receiver as u32, ..*signature }, numbers.clone())
                }));
            }
            process.lines.swallow(swallowed);
            process.arrived = late;
        }
        Ok(())
    }

    /// Whether all went as it had to.
    fn judge(&mut self) -> Result<(), String> {
        let is_message = |packet: &&Packet| matches!(packet, Packet::Message(_));
        let on_links = self.links.iter().flatten().flatten().filter(is_message).count();
        let left = on_links + self.processes.iter().map(|process| process.arrived.len()).sum::<usize>();
        if left > 0 {
            return Err(format!("{left} messages are left over"));
        }
        std::mem::take(&mut self.unaware).into_iter().for_each(|rank| self.tell(rank));
        let line = self.processes[0].lines.line();
        let is_drawn = self.processes.iter().all(|process| process.lines.line() == line);
        let waits = |process: &Process| !matches!(process.lines.phase(), Phase::Running | Phase::Whole);
        if is_drawn && self.processes.iter().any(waits) {
            return Err(format!("line {line} is not whole, although nothing is under way"));
        }
        judge(&self.processes.iter().map(|process| &process.state).collect::<Vec<_>>())
    }
}

impl Process {
    /// Goes back to the committed line, and gives what is kept with it, as it is put back.
    pub(super) fn restore(&mut self, me: Rank, size: usize, tolerance: Option<usize>) -> Vec<Message> {
        let (state, log) = self.committed.clone();
        let late;
        match tolerance {
            None => (self.lines, late) = Lines::restore(size, log),
            Some(tolerance) => {
                let (journal, lines, messages) = Journal::restore(me, size, tolerance, log);
                (self.journal, self.lines, late) = (Some(journal), lines, messages);
            }
        }
        self.state = state;
        self.came.fill(0);
        (self.awaits, self.drawn) = (None, None);
        late.into_iter()
            .map(|(envelope, bytes)| (Envelope { mark: Mark::PUT_BACK, ..envelope }, bytes))
            .collect()
    }

    /// Hears that the line is committed.
    pub(super) fn hear_commit(&mut self) {
        match &mut self.journal {
            Some(journal) => journal.handle_commit(&mut self.lines),
            None => self.lines.handle_commit(),
        }
    }

    fn receive(&mut self, from: Option<Rank>, tag: u32) -> Result<(), String> {
        let (pattern, number) = *self.awaits.get_or_insert_with(|| {
            let pattern = Pattern { context: 0, source: from.map(|from| from as u32), tag: Some(tag) };
            match from {
                Some(_) => (pattern, None),
                None => {
                    let (number, pattern) = self.lines.choose(pattern);
                    (pattern, Some(number))
                }
            }
        });
        let Some(at) = self.arrived.iter().position(|(message, _)| pattern.accepts(message)) else {
            return Ok(());
        };
        let (message, bytes) = self.arrived.remove(at);
        match (number, &mut self.journal) {
            (None, _) => {}
            (Some(number), Some(journal)) => journal.chose(&mut self.lines, number, &message),
            (Some(number), None) => self.lines.chose(number, &message),
        }
        if self.lines.deliver(&message).map_err(|error| error.to_string())? {
            self.lines.keep(message, bytes);
        }
        self.awaits = None;
        self.state.take(message.source as Rank, message.tag, bytes);
        Ok(())
    }

    /// Keeps late messages that wait for their receives.
    fn collect(&mut self) {
        for (message, bytes) in &mut self.arrived {
            if self.lines.is_late(message) {
                self.lines.keep(*message, *bytes);
                message.mark = message.mark.kept();
            }
        }
    }
}

/// A job from its start to its end, with lines and failures from a seed; only who was lost goes back, if that is said, and mostly.
pub(super) fn run(seed: u64, alone: bool, seen: &mut Seen) -> Result<(), String> {
    let mut choices = Choices(seed);
    let size = 2 + choices.below(4);
    let rounds = 3 + choices.below(10);
    let program = program(&mut choices, size, rounds);
    let tolerance = alone.then(|| 1 + choices.below(2));
    let mut job = Job::new(size, tolerance);
    let (mut failures, often) = (choices.below(5), 50 + choices.below(400));
    // Some ranks draw their line as soon as they can, others much later; or all draw it at the same step, and wait.
    let patience: Vec<usize> = (0..size).map(|_| 1 + choices.below(4)).collect();
    let waits = choices.below(3) == 0 && !alone;
    let mut turns = 0;
    loop {
        let is_over =
            job.processes.iter().zip(&program).all(|(process, actions)| process.state.at == actions.len());
        if is_over {
            return job.judge();
        }
        turns += 1;
        if turns > 200_000 {
            return Err(format!(
                "nothing goes on: {:?}",
                job.processes.iter().map(|p| (p.state.at, p.awaits, p.lines.phase())).collect::<Vec<_>>()
            ));
        }
        if failures > 0 && choices.below(often) == 0 {
            failures -= 1;
            match tolerance.filter(|_| choices.below(8) > 0) {
                Some(tolerance) => {
                    let lost: BTreeSet<Rank> =
                        (0..=choices.below(tolerance)).map(|_| choices.below(size)).collect();
                    job.repair(&lost.into_iter().collect::<Vec<_>>(), seen)?;
                }
                None => {
                    seen.rollbacks += 1;
                    job.go_back()?;
                }
            }
            continue;
        }
        match choices.below(10) {
            0..=4 => {
                let me = choices.below(size);
                let draws = choices.below(patience[me]) == 0;
                job.step(me, &program[me], draws)?;
            }
            5..=7 => job.arrive(choices.below(size), choices.below(size))?,
            8 => {
                if !job.unaware.is_empty() {
                    job.tell(job.unaware[choices.below(job.unaware.len())]);
                }
                job.processes[choices.below(size)].collect();
            }
            _ => {
                if !job.unheard.is_empty() {
                    let at = choices.below(job.unheard.len());
                    let rank = job.unheard.swap_remove(at);
                    job.processes[rank].hear_commit();
                }
                job.look_at_line(seen);
                if job.wanted.is_none() && job.unheard.is_empty() && choices.below(3) == 0 {
                    let line = job.processes.iter().map(|process| process.lines.line()).max().unwrap_or(0);
                    job.wanted = Some((line + 1, None));
                    if waits {
                        // All draw it at the same step, which nobody has come to: who had gone on would wait for those who have not.
                        let next = job.processes.iter().zip(&program).map(|(process, actions)| {
                            let before = actions.iter().take(process.state.at);
                            before.filter(|action| matches!(action, Action::Boundary(_))).count()
                        });
                        let round = next.max().unwrap_or(0) + choices.below(2);
                        job.wanted = (round < rounds).then_some((line + 1, Some(round)));
                    }
                }
            }
        }
    }
}
