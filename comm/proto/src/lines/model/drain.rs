//! Lines by empty channels.

use std::collections::VecDeque;

use super::{Action, Choices, State, judge, program, seeds};
use crate::lines::drain::{Drain, Phase};
use crate::planted;
use crate::rank::Rank;

/// What is on a link.
#[derive(Clone, Debug)]
enum Word {
    /// A message: its tag and its bytes.
    Message(u32, u64),
    Ready,
}

/// A message that has arrived: its sender, its tag and its bytes.
type Arrived = (Rank, u32, u64);

struct Process {
    drain: Drain,
    state: State,
    /// Messages that have arrived, in order.
    arrived: Vec<Arrived>,
    /// While it waits at its line: those that were sent behind their senders'.
    behind: Vec<Arrived>,
    /// Its state at its line, and what belongs to it when its channels are empty.
    drawn: Option<(State, Option<Vec<Arrived>>)>,
    committed: (State, Vec<Arrived>),
}

struct Job {
    processes: Vec<Process>,
    links: Vec<Vec<VecDeque<Word>>>,
    unheard: Vec<Rank>,
    /// The line is to be drawn at the end of this round.
    wanted: Option<usize>,
    lines: u64,
}

impl Job {
    fn new(size: usize) -> Self {
        let process = |me| Process {
            drain: Drain::new(me, size, 0),
            state: State::default(),
            arrived: vec![],
            behind: vec![],
            drawn: None,
            committed: Default::default(),
        };
        Self {
            processes: (0..size).map(process).collect(),
            links: vec![vec![VecDeque::new(); size]; size],
            unheard: vec![],
            wanted: None,
            lines: 0,
        }
    }

    fn step(&mut self, me: Rank, program: &[Action]) {
        let process = &mut self.processes[me];
        if process.drain.phase() == Phase::Draining {
            return;
        }
        match program.get(process.state.at) {
            None => return,
            Some(Action::Send(to, tag)) => {
                let bytes = process.state.says(*to, *tag);
                self.links[me][*to].push_back(Word::Message(*tag, bytes));
            }
            Some(Action::Receive(from, tag)) => {
                let fits = |(by, its, _): &Arrived| its == tag && from.is_none_or(|from| from == *by);
                if let Some(at) = process.arrived.iter().position(fits) {
                    let (by, tag, bytes) = process.arrived.remove(at);
                    process.state.take(by, tag, bytes);
                }
                return;
            }
            Some(Action::Ask(tag)) => {
                let answer = process.arrived.iter().any(|(_, its, _)| its == tag);
                process.state.hear(answer);
            }
            Some(Action::Boundary(round)) => {
                if self.wanted == Some(*round) {
                    process.drawn = Some((State { at: process.state.at + 1, ..process.state.clone() }, None));
                    process.drain.draw();
                    for to in (0..self.links.len()).filter(|to| *to != me) {
                        self.links[me][to].push_back(Word::Ready);
                    }
                }
            }
        }
        process.state.at += 1;
    }

    fn arrive(&mut self, from: Rank, to: Rank) {
        let Some(word) = self.links[from][to].pop_front() else { return };
        let process = &mut self.processes[to];
        match word {
            Word::Message(tag, bytes) => {
                let is_behind = process.drain.phase() == Phase::Draining && !process.drain.is_before(from);
                let all = if is_behind { &mut process.behind } else { &mut process.arrived };
                all.push((from, tag, bytes));
            }
            Word::Ready => {
                process.drain.handle_ready(from);
                self.go_on(to);
            }
        }
    }

    /// If the channels of a rank are empty it goes on.
    fn go_on(&mut self, me: Rank) {
        let process = &mut self.processes[me];
        if process.drain.phase() == Phase::Whole
            && let Some((_, kept @ None)) = &mut process.drawn
        {
            let forgets = planted::has(planted::FORGETS_LATE);
            *kept = Some(if forgets { vec![] } else { process.arrived.clone() });
            process.arrived.append(&mut process.behind);
        }
    }

    fn look_at_line(&mut self) {
        let is_whole = |process: &Process| process.drain.phase() == Phase::Whole;
        if self.unheard.is_empty() && self.processes.iter().all(is_whole) {
            for (rank, process) in self.processes.iter_mut().enumerate() {
                if let Some((state, Some(kept))) = process.drawn.take() {
                    process.committed = (state, kept);
                }
                self.unheard.push(rank);
            }
            self.lines += 1;
            self.wanted = None;
        }
    }

    fn go_back(&mut self, line: u64) {
        let size = self.links.len();
        self.links = vec![vec![VecDeque::new(); size]; size];
        self.unheard.clear();
        self.wanted = None;
        for (me, process) in self.processes.iter_mut().enumerate() {
            let (state, arrived) = process.committed.clone();
            process.drain = Drain::new(me, size, line);
            (process.state, process.arrived) = (state, arrived);
            process.behind.clear();
            process.drawn = None;
        }
    }
}

/// A job from its start to its end; gives the lines that were committed.
fn run(seed: u64) -> Result<u64, String> {
    let mut choices = Choices(seed);
    let (size, rounds) = (2 + choices.below(4), 3 + choices.below(10));
    let program = program(&mut choices, size, rounds);
    let mut job = Job::new(size);
    let (mut failures, often) = (choices.below(5), 50 + choices.below(400));
    for _ in 0..200_000 {
        let is_over = |(process, actions): (&Process, &Vec<Action>)| process.state.at == actions.len();
        if job.processes.iter().zip(&program).all(is_over) {
            judge(&job.processes.iter().map(|process| &process.state).collect::<Vec<_>>())?;
            return Ok(job.lines);
        }
        if failures > 0 && choices.below(often) == 0 {
            failures -= 1;
            job.go_back(job.lines);
            continue;
        }
        match choices.below(10) {
            0..=4 => {
                let me = choices.below(size);
                job.step(me, &program[me]);
                job.go_on(me);
            }
            5..=8 => job.arrive(choices.below(size), choices.below(size)),
            _ => {
                if !job.unheard.is_empty() {
                    let rank = job.unheard.swap_remove(choices.below(job.unheard.len()));
                    job.processes[rank].drain.handle_commit();
                }
                job.look_at_line();
                if job.wanted.is_none() && job.unheard.is_empty() && choices.below(3) == 0 {
                    // All draw it at the same step, which nobody has come to: who had gone on would wait for those who have not.
                    let next = job.processes.iter().zip(&program).map(|(process, actions)| {
                        let before = actions.iter().take(process.state.at);
                        before.filter(|action| matches!(action, Action::Boundary(_))).count()
                    });
                    let round = next.max().unwrap_or(0) + choices.below(2);
                    job.wanted = (round < rounds).then_some(round);
                }
            }
        }
    }
    let at = job.processes.iter().map(|process| (process.state.at, process.drain.phase()));
    Err(format!("nothing goes on: {:?}", at.collect::<Vec<_>>()))
}

#[test]
fn ranks_go_back_to_lines_with_empty_channels() {
    let lines: u64 =
        (0..seeds()).map(|seed| run(seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"))).sum();
    assert!(lines > 1000, "{lines} lines");
}

#[cfg(feature = "planted-bugs")]
#[test]
fn planted_a_message_that_is_not_kept_is_found() {
    planted::plant(planted::FORGETS_LATE);
    let found = (0..2000).find_map(|seed| run(seed).err());
    planted::plant("");
    assert!(found.is_some());
}
