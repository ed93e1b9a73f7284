//! Lines by logs.

use std::collections::{BTreeSet, VecDeque};

use super::{Action, Choices, State, judge, program, seeds};
use crate::lines::log::{Lines, Log, Outcome, Phase, Replay, Stamp};
use crate::matching::{Envelope, Pattern};
use crate::planted;
use crate::rank::Rank;

#[derive(Clone, Debug)]
struct Message {
    envelope: Envelope,
    number: u64,
    stamp: Stamp,
    bytes: u64,
}

struct Process {
    lines: Lines<u64>,
    state: State,
    /// Messages that have arrived.
    arrived: Vec<Message>,
    /// The receive that it is in, as the log has changed it.
    awaits: Option<(Pattern, bool)>,
    drawn: Option<State>,
    committed: (State, Log<u64>),
}

struct Job {
    processes: Vec<Process>,
    links: Vec<Vec<VecDeque<Message>>>,
    /// Who has told whom what: receiver, sender, count.
    told: Vec<(Rank, Rank, u64)>,
    /// Who has not heard of the last commit.
    unheard: Vec<Rank>,
    /// A line is to be drawn.
    wanted: Option<u64>,
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

impl Job {
    fn new(size: usize) -> Self {
        let process = |me| {
            let fresh = Log::clone(Lines::new(me, size).log());
            Process {
                lines: Lines::new(me, size),
                state: State::default(),
                arrived: vec![],
                awaits: None,
                drawn: None,
                committed: (State::default(), fresh),
            }
        };
        Self {
            processes: (0..size).map(process).collect(),
            links: vec![vec![VecDeque::new(); size]; size],
            told: vec![],
            unheard: vec![],
            wanted: None,
        }
    }

    /// A rank does what is next, if it can; whether it has.
    fn step(&mut self, me: Rank, program: &[Action], draws: bool) -> Result<bool, String> {
        let process = &mut self.processes[me];
        let Some(action) = program.get(process.state.at) else { return Ok(false) };
        match *action {
            Action::Send(to, tag) => {
                let bytes = process.state.says(to, tag);
                if let Some((number, stamp)) = process.lines.send(to) {
                    let envelope = Envelope { context: 0, source: me as u32, tag, length: 8 };
                    self.links[me][to].push_back(Message { envelope, number, stamp, bytes });
                }
            }
            Action::Receive(from, tag) => {
                if process.awaits.is_none() {
                    let pattern =
                        Pattern { context: 0, source: from.map(|from| from as u32), tag: Some(tag) };
                    match process.lines.replay(pattern) {
                        Replay::Take(envelope, bytes) => {
                            process.state.take(envelope.source as Rank, envelope.tag, bytes);
                            return Ok(true);
                        }
                        Replay::Await(pattern) => process.awaits = Some((pattern, from.is_none())),
                    }
                }
                let Some((pattern, chooses)) = process.awaits else { return Ok(false) };
                let Some(at) = process.arrived.iter().position(|message| pattern.accepts(&message.envelope))
                else {
                    return Ok(false);
                };
                let Message { envelope, number, stamp, bytes } = process.arrived.remove(at);
                process.lines.receive(&envelope, number, stamp, &bytes).map_err(|error| error.to_string())?;
                if chooses {
                    process.lines.note(Outcome::Took(envelope));
                }
                process.awaits = None;
                process.state.take(envelope.source as Rank, envelope.tag, bytes);
                return Ok(true);
            }
            Action::Ask(tag) => {
                let answer = match process.lines.answered() {
                    Some(answer) => answer,
                    None => {
                        let answer = process.arrived.iter().any(|message| message.envelope.tag == tag);
                        process.lines.note(Outcome::Answered(answer));
                        answer
                    }
                };
                process.state.hear(answer);
            }
            Action::Boundary(_) => {
                let is_due = self.wanted.is_some_and(|line| process.lines.line() < line);
                if is_due && draws && process.lines.may_draw() {
                    process.drawn = Some(State { at: process.state.at + 1, ..process.state.clone() });
                    if planted::has(planted::FREES_EARLY) {
                        process.committed.1 = Log::clone(Lines::<u64>::new(me, self.links.len()).log());
                    }
                    let counts = process.lines.draw();
                    let told = counts.into_iter().enumerate().filter(|(to, _)| *to != me);
                    self.told.extend(told.map(|(to, count)| (to, me, count)));
                }
            }
        }
        process.state.at += 1;
        Ok(true)
    }

    /// The line is committed if it is whole everywhere.
    fn look_at_line(&mut self, seen: &mut Seen) {
        let is_whole = |process: &Process| process.lines.whole().is_some();
        if self.unheard.is_empty() && self.processes.iter().all(is_whole) {
            for (rank, process) in self.processes.iter_mut().enumerate() {
                let (Some(state), Some(log)) = (process.drawn.take(), process.lines.whole()) else {
                    continue;
                };
                seen.late += log.len().0 as u64;
                seen.outcomes += log.len().1 as u64;
                seen.early +=
                    (0..self.links.len()).map(|sender| log.early_of(sender).len() as u64).sum::<u64>();
                process.committed = (state, log.clone());
                self.unheard.push(rank);
            }
            seen.lines += 1;
            self.wanted = None;
        }
    }

    /// All go back to the committed line; what is under way is gone.
    fn go_back(&mut self) {
        let size = self.links.len();
        self.links = vec![vec![VecDeque::new(); size]; size];
        self.told.clear();
        self.unheard.clear();
        self.wanted = None;
        let logs: Vec<Log<u64>> = self.processes.iter().map(|process| process.committed.1.clone()).collect();
        for (me, process) in self.processes.iter_mut().enumerate() {
            let swallowed: Vec<BTreeSet<u64>> = logs.iter().map(|log| log.early_of(me).clone()).collect();
            process.lines = Lines::restore(me, logs[me].clone(), swallowed);
            process.state = process.committed.0.clone();
            process.arrived.clear();
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
        for (to, by, count) in std::mem::take(&mut self.told) {
            self.processes[to].lines.handle_drawn(by, count);
        }
        let line = self.processes[0].lines.line();
        let is_drawn = self.processes.iter().all(|process| process.lines.line() == line);
        let waits = |process: &Process| !matches!(process.lines.phase(), Phase::Running | Phase::Whole);
        if is_drawn && self.processes.iter().any(waits) {
            return Err(format!("line {line} is not whole, although nothing is under way"));
        }
        judge(&self.processes.iter().map(|process| &process.state).collect::<Vec<_>>())
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
    // Some ranks draw their line as soon as they can, others much later.
    let patience: Vec<usize> = (0..size).map(|_| 1 + choices.below(4)).collect();
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
            5..=7 => {
                let (from, to) = (choices.below(size), choices.below(size));
                if let Some(message) = job.links[from][to].pop_front() {
                    job.processes[to].arrived.push(message);
                }
            }
            8 if !job.told.is_empty() => {
                let at = choices.below(job.told.len());
                let (to, by, count) = job.told.swap_remove(at);
                job.processes[to].lines.handle_drawn(by, count);
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
                    job.wanted = Some(line + 1);
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
    let mut lines: Vec<Lines<u64>> = (0..3).map(|me| Lines::new(me, 3)).collect();
    let counts = lines[0].draw();
    assert_eq!((counts, lines[0].phase()), (vec![0; 3], Phase::Logging));
    for by in [1, 2] {
        lines[by].draw();
        lines[0].handle_drawn(by, 0);
    }
    assert_eq!(lines[0].phase(), Phase::Whole);
    assert!(lines[0].whole().is_some_and(Log::is_empty) && !lines[0].may_draw());
    lines[0].handle_commit();
    assert!(lines[0].may_draw() && lines[0].line() == 1);
}
