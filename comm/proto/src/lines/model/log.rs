//! Ranks with lines, on links that deliver when they like.

use std::collections::VecDeque;

use super::{Action, Choices, State, judge, program, seeds};
use crate::lines::{Lines, Log, Outcome, Phase, Swallowed};
use crate::matching::{Envelope, Pattern};
use crate::planted;
use crate::rank::Rank;
use crate::stamp::Mark;

/// A message and what it says.
type Message = (Envelope, u64);

struct Process {
    lines: Lines<u64>,
    state: State,
    /// Messages that have arrived.
    arrived: Vec<Message>,
    /// By sender, how many have.
    came: Vec<u32>,
    /// The receive that it is in, as the log has changed it, and its number if it chooses.
    awaits: Option<(Pattern, Option<u32>)>,
    drawn: Option<State>,
    committed: (State, Log<u64>),
}

struct Job {
    processes: Vec<Process>,
    links: Vec<Vec<VecDeque<Message>>>,
    /// By rank, how many messages it had sent to each other one before its line, if it has drawn the one that is under way.
    told: Vec<Option<Vec<u64>>>,
    /// Who has not heard yet that all have drawn it.
    unaware: Vec<Rank>,
    /// Who has not heard of the last commit.
    unheard: Vec<Rank>,
    /// A line is to be drawn; if all wait at their line, at the end of this round.
    wanted: Option<(u64, Option<usize>)>,
}

/// How often something was seen, so that a test knows that it has tested it.
#[derive(Debug, Default)]
struct Seen {
    lines: u64,
    rollbacks: u64,
    late: u64,
    outcomes: u64,
    early: u64,
}

fn fresh() -> Log<u64> {
    Lines::new(0, 0).log().clone()
}

impl Lines<u64> {
    /// Of the line that is under way, as far as it is; of none if there is none.
    fn log(&self) -> Log<u64> {
        self.whole().cloned().unwrap_or_else(|| crate::lines::Log {
            line: self.line(),
            late: vec![],
            outcomes: VecDeque::new(),
            choices: Default::default(),
            early: Swallowed::new(),
        })
    }
}

impl Job {
    fn new(size: usize) -> Self {
        let process = || Process {
            lines: Lines::new(size, 0),
            state: State::default(),
            arrived: vec![],
            came: vec![0; size],
            awaits: None,
            drawn: None,
            committed: (State::default(), fresh()),
        };
        Self {
            processes: (0..size).map(|_| process()).collect(),
            links: vec![vec![VecDeque::new(); size]; size],
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
                if process.lines.sends(to, 0, tag) {
                    let mark = Mark::of(process.lines.stamp());
                    let envelope = Envelope { context: 0, source: me as u32, tag, mark, length: 8 };
                    self.links[me][to].push_back((envelope, bytes));
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
                        process.lines.found(found);
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
                    process.drawn = Some(State { at: process.state.at + 1, ..process.state.clone() });
                    if planted::has(planted::FREES_EARLY) {
                        process.committed.1 = fresh();
                    }
                    self.told[me] = Some(process.lines.draw());
                    for (message, bytes) in process.arrived.iter().filter(|(m, _)| m.mark.is_kept()) {
                        process.lines.keep_again(*message, *bytes);
                    }
                    if self.told.iter().all(Option::is_some) {
                        self.unaware = (0..self.told.len()).collect();
                    }
                }
            }
        }
        process.state.at += 1;
        Ok(())
    }

    /// A rank hears that all have drawn their line.
    fn tell(&mut self, me: Rank) {
        let due = self.told.iter().flatten().map(|counts| counts[me]).sum();
        self.processes[me].lines.handle_drawn(due);
        self.unaware.retain(|rank| *rank != me);
    }

    fn arrive(&mut self, from: Rank, to: Rank) -> Result<(), String> {
        let Some((mut message, bytes)) = self.links[from][to].pop_front() else { return Ok(()) };
        let process = &mut self.processes[to];
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

    /// All go back to the committed line; what is under way is gone.
    fn go_back(&mut self) {
        let size = self.links.len();
        self.links = vec![vec![VecDeque::new(); size]; size];
        self.told.fill(None);
        self.unaware.clear();
        self.unheard.clear();
        self.wanted = None;
        let logs: Vec<Log<u64>> = self.processes.iter().map(|process| process.committed.1.clone()).collect();
        for (me, process) in self.processes.iter_mut().enumerate() {
            let (lines, late) = Lines::restore(size, logs[me].clone());
            process.lines = lines;
            let mut swallowed = Swallowed::new();
            for (receiver, log) in logs.iter().enumerate() {
                let mine = log.early.iter().filter(|(signature, _)| signature.peer as Rank == me);
                swallowed.extend(mine.map(|(signature, numbers)| {
                    (crate::lines::Signature { peer: receiver as u32, ..*signature }, numbers.clone())
                }));
            }
            process.lines.swallow(swallowed);
            process.state = process.committed.0.clone();
            let put_back = |(envelope, bytes)| (Envelope { mark: Mark::PUT_BACK, ..envelope }, bytes);
            process.arrived = late.into_iter().map(put_back).collect();
            process.came.fill(0);
            (process.awaits, process.drawn) = (None, None);
        }
    }

    /// Whether all went as it had to.
    fn judge(&mut self) -> Result<(), String> {
        let on_links: usize = self.links.iter().flatten().map(VecDeque::len).sum();
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
        if let Some(number) = number {
            self.lines.chose(number, &message);
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

/// A job from its start to its end, with lines and failures from a seed.
fn run(seed: u64, seen: &mut Seen) -> Result<(), String> {
    let mut choices = Choices(seed);
    let size = 2 + choices.below(4);
    let rounds = 3 + choices.below(10);
    let program = program(&mut choices, size, rounds);
    let mut job = Job::new(size);
    let (mut failures, often) = (choices.below(5), 50 + choices.below(400));
    // Some ranks draw their line as soon as they can, others much later; or all draw it at the same step, and wait.
    let patience: Vec<usize> = (0..size).map(|_| 1 + choices.below(4)).collect();
    let waits = choices.below(3) == 0;
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
            seen.rollbacks += 1;
            job.go_back();
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
                    job.processes[rank].lines.handle_commit();
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

#[test]
fn ranks_go_back_to_states_of_different_moments_and_nobody_could_tell() {
    let mut seen = Seen::default();
    for seed in 0..seeds() {
        run(seed, &mut seen).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    println!("{seen:?}");
    let Seen { lines, rollbacks, late, outcomes, early } = seen;
    assert!(
        [lines, rollbacks, late, outcomes, early].iter().all(|count| *count > 1000),
        "too little was seen"
    );
}

#[cfg(feature = "planted-bugs")]
#[test]
fn planted_defects_are_found() {
    for bug in [
        planted::FORGETS_LATE,
        planted::SENDS_EARLY_AGAIN,
        planted::REPLAYS_IN_ANOTHER_ORDER,
        planted::COUNTS_LINES_BY_TWO,
        planted::FREES_EARLY,
    ] {
        planted::plant(bug);
        let found = (0..2000).find_map(|seed| Some((seed, run(seed, &mut Seen::default()).err()?)));
        planted::plant("");
        let (seed, error) = found.unwrap_or_else(|| panic!("no seed finds '{bug}'"));
        println!("'{bug}' is found by seed {seed}: {}", error.chars().take(200).collect::<String>());
    }
}

#[test]
fn a_line_without_messages_is_whole_when_all_have_drawn_it() {
    let mut lines: Lines<u64> = Lines::new(3, 0);
    assert_eq!((lines.draw(), lines.phase()), (vec![0; 3], Phase::Logging));
    lines.handle_drawn(0);
    assert_eq!(lines.phase(), Phase::Whole);
    assert!(lines.whole().is_some_and(Log::is_empty) && !lines.may_draw());
    lines.handle_commit();
    assert!(lines.may_draw() && lines.line() == 1);
}
