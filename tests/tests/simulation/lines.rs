//! Programs whose messages cross checkpoints: random ones, with ranks that are killed at any moment and go back to states of different moments. At the end each message must have been
//! received once, in order, with what its sender's last history says, and each collective must have given what it had to: nobody can tell that anything was lost.

use std::cell::Cell;
use std::time::Duration;

use ft_checkpoint::resilient::RankReport;
use ft_checkpoint::stats::Stats;
use ft_checkpoint::{
    CheckpointError, Flow, Interval, Job, Lines, Program, Protect, Protection, Recovery, RunError,
};
use ft_comm::{
    CommError, Communicator, CommunicatorRecord, Op, Rank, Request, RequestRecord, Source, World, test_any,
    wait_all, wait_any, wait_some,
};
use ft_proto::planted;
use ft_sim::{self as sim, Blow, Config, Fault, Faults, SimOutcome, Trigger};
use serde::{Deserialize, Serialize};

use super::{Choices, Course, checker, commit, finds, for_seeds};

/// Words of a message that does not leave before its receive has matched.
const LONG: usize = 40_000;

fn mix(value: u64) -> u64 {
    Choices(value).below(u64::MAX)
}

/// How long messages are, and how many of a kind follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Short,
    Long,
    /// So many that some are always in the queue of their receiver.
    Many,
}

impl Kind {
    fn count(self, below: &mut impl FnMut(usize) -> usize) -> usize {
        match self {
            Self::Short | Self::Long => 1,
            Self::Many => 10 + below(60),
        }
    }

    fn words(self, below: &mut impl FnMut(usize) -> usize) -> usize {
        match self {
            Self::Short => 1 + below(40),
            Self::Long => LONG,
            Self::Many => 1 + below(3),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum How {
    Blocking,
    Posted,
    Probed,
    Claimed,
}

#[derive(Clone, Copy, Debug)]
enum Collective {
    Sum,
    Reduce(Rank),
    Scan,
    Broadcast(Rank),
    Barrier,
}

/// What a rank does next, whatever its state is.
#[derive(Clone, Copy, Debug)]
enum Action {
    Send {
        on: On,
        to: Rank,
        tag: u32,
        words: usize,
        waits: bool,
    },
    /// From this rank, or from any.
    Receive {
        on: On,
        from: Option<Rank>,
        tag: u32,
        how: How,
    },
    /// Asks whether a message with this tag has come.
    Ask(On, u32),
    /// Waits for all requests, in one of several ways.
    Wait(u64),
    Together(On, Collective),
    /// All make the communicators of this one.
    Make(Parts),
    /// And free them.
    Free(Parts),
    /// A step ends.
    Boundary,
}

/// Communicators of ranks that are equal modulo a number, in a place of the program's list.
#[derive(Clone, Copy, Debug)]
struct Parts {
    place: usize,
    colors: usize,
}

/// A communicator: the world's, or that of the own part.
type On = Option<Parts>;

impl Parts {
    fn has_both(self, one: Rank, other: Rank) -> bool {
        one % self.colors == other % self.colors
    }

    /// The rank in the world of one of the part that `me` is in.
    fn world(self, me: Rank, local: Rank) -> Rank {
        local * self.colors + me % self.colors
    }

    fn local(self, rank: Rank) -> Rank {
        rank / self.colors
    }
}

/// The ranks that a communicator has which `me` is in.
fn members(on: On, me: Rank, size: usize) -> Vec<Rank> {
    (0..size).filter(|rank| on.is_none_or(|parts| parts.has_both(me, *rank))).collect()
}

/// When communicators are there: from the end of one round to that of another.
fn lives(below: &mut impl FnMut(usize) -> usize, rounds: usize) -> Vec<(Parts, usize, usize)> {
    let count = 1 + below(3);
    (0..count)
        .map(|place| {
            let from = below(rounds / 2 + 1);
            (Parts { place, colors: 1 + below(3) }, from, (from + 3 + below(8)).min(rounds + 1))
        })
        .collect()
}

/// For each rank what it does. Messages of a round are received in that or one of the next two, long ones in that.
fn plan(seed: u64, size: usize, mode: Mode) -> Vec<Vec<Action>> {
    let in_lockstep = mode == DRAIN;
    let mut choices = Choices(seed);
    let mut below = move |end: usize| choices.below(end as u64) as usize;
    // Where only the lost go back there are to be several losses in a run.
    let rounds = if mode == LOCAL { 3 + below(40) } else { 3 + below(8) };
    let lives = lives(&mut below, rounds);
    let mut actions = vec![vec![vec![]; rounds + 2]; size];
    for round in 0..rounds {
        for _ in 0..below(3 * size) {
            let (from, to) = (below(size), below(size));
            // What is sent in a round is received before the communicator is freed.
            let there = lives.iter().filter(|(parts, made, freed)| {
                *made < round && round + 2 <= *freed && parts.has_both(from, to)
            });
            let there: Vec<Parts> = there.map(|(parts, ..)| *parts).collect();
            let on = if below(2) == 0 { there.get(below(4)).copied() } else { None };
            let tag = (2 * round + below(2) + 1000 * on.map_or(0, |parts| parts.place + 1)) as u32;
            // All receives of a tag are from any rank, or all name theirs.
            let key = mix(u64::from(tag) << 8 | to as u64);
            let kind = match key % 11 {
                0 => Kind::Long,
                1 => Kind::Many,
                _ => Kind::Short,
            };
            let later = if kind == Kind::Long { round } else { round + (key / 16) as usize % 3 };
            for _ in 0..kind.count(&mut below) {
                let words = kind.words(&mut below);
                let waits = kind != Kind::Long && below(2) == 0;
                actions[from][round].insert(0, Action::Send { on, to, tag, words, waits });
                let how = [How::Blocking, How::Posted, How::Probed, How::Claimed][below(4)];
                actions[to][later].push(Action::Receive {
                    on,
                    from: key.is_multiple_of(2).then_some(from),
                    tag,
                    how,
                });
            }
            if below(2) == 0 {
                actions[to][later].push(Action::Ask(on, tag));
            }
        }
    }
    let collectives: Vec<Vec<Action>> = (0..rounds + 2)
        .map(|round| {
            let there = lives.iter().filter(|(_, made, freed)| *made < round && round <= *freed);
            let on = there.map(|(parts, ..)| *parts).nth(below(3));
            let collective = match below(8) {
                0 => Some(Collective::Sum),
                1 => Some(Collective::Reduce(below(size))),
                2 => Some(Collective::Scan),
                3 => Some(Collective::Broadcast(below(size))),
                4 => Some(Collective::Barrier),
                _ => None,
            };
            let together = collective.map(|collective| Action::Together(on, collective));
            let made = lives.iter().filter(|(_, made, _)| *made == round);
            let freed = lives.iter().filter(|(.., freed)| *freed == round);
            let made = made.map(|(parts, ..)| Action::Make(*parts));
            together.into_iter().chain(made).chain(freed.map(|(parts, ..)| Action::Free(*parts))).collect()
        })
        .collect();
    let mut all = vec![];
    for rank in actions {
        let mut own = vec![];
        for (mut round, collective) in rank.into_iter().zip(&collectives) {
            // Sends stay first, so nobody waits for ever.
            let sends = round.iter().filter(|action| matches!(action, Action::Send { .. })).count();
            for at in (sends + 1..round.len()).rev() {
                round.swap(at, sends + below(at - sends + 1));
            }
            round.push(Action::Wait(below(4) as u64));
            round.extend(collective);
            for action in round {
                own.push(action);
                if !in_lockstep && below(3) == 0 {
                    own.push(Action::Boundary);
                }
            }
            if in_lockstep {
                own.push(Action::Boundary);
            }
        }
        own.push(Action::Boundary);
        all.push(own);
    }
    all
}

/// What a rank's checkpoint holds. The lists are the test's, not the program's.
#[derive(Debug, Default, Protect)]
struct History {
    at: u64,
    digest: u64,
    /// To whom, with which tag, and what.
    sent: Vec<u64>,
    /// From whom, with which tag, and what.
    received: Vec<u64>,
    /// To collectives, and what came of them.
    gave: Vec<u64>,
    got: Vec<u64>,
    /// The communicators that are there, by their place.
    #[protect(serde)]
    made: Vec<Option<CommunicatorRecord>>,
    /// The receives that are under way.
    #[protect(serde)]
    open: Vec<Open>,
}

/// A receive that is under way.
#[derive(Debug, Serialize, Deserialize)]
struct Open {
    /// None: checkpoints wait for it.
    record: Option<RequestRecord>,
    /// Place of its communicator; none: the world's.
    on: Option<usize>,
    /// Where it belongs in the list of messages.
    number: usize,
}

impl History {
    /// What a rank says now.
    fn says(&self, to: usize, tag: u32) -> u64 {
        mix(self.digest ^ (to as u64) << 40 ^ u64::from(tag) << 20 ^ self.at)
    }

    fn hear(&mut self, word: u64) {
        self.digest = mix(self.digest ^ word);
    }

    fn to_bytes(&self) -> Vec<u8> {
        let lists = [&self.sent, &self.received, &self.gave, &self.got];
        let words =
            lists.into_iter().flat_map(|list| std::iter::once(list.len() as u64).chain(list.iter().copied()));
        words.flat_map(u64::to_le_bytes).collect()
    }

    fn read(bytes: &[u8]) -> [Vec<u64>; 4] {
        let mut words = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        std::array::from_fn(|_| {
            let count = words.next().expect("a list has a length") as usize;
            words.by_ref().take(count).collect()
        })
    }
}

/// What a message says beyond its first word follows from that.
fn text(word: u64, words: usize) -> Vec<u64> {
    (0..words as u64).map(|at| if at == 0 { word } else { mix(word ^ at) }).collect()
}

struct Random {
    actions: Vec<Action>,
    sends: Vec<Request<u64>>,
    /// Those that are open, in order.
    receives: Vec<Request<u64>>,
    made: Vec<Option<Communicator>>,
    /// Checkpoints are taken beside requests.
    records: bool,
    /// Receives that are open are to be made again.
    is_back: bool,
}

impl Random {
    fn new(actions: Vec<Action>, records: bool) -> Self {
        Self { actions, sends: vec![], receives: vec![], made: vec![], records, is_back: false }
    }

    /// Makes the receives again that were under way.
    fn receive_again(&mut self, state: &History, world: &World) -> Result<(), CommError> {
        for Open { record, on, .. } in &state.open {
            let made = on.and_then(|place| self.made[place].clone());
            let comm = made.as_ref().unwrap_or(world.comm());
            let record = record.as_ref().expect("no checkpoint was taken beside others");
            self.receives.push(comm.request(record, vec![0; LONG])?);
        }
        Ok(())
    }

    /// A message was received.
    fn take(state: &mut History, buf: &[u64], source: Rank, tag: u32) -> [u64; 3] {
        let whole = text(buf[0], buf.len());
        state.hear(if whole == buf { buf[0] ^ (source as u64) << 13 } else { 0 });
        [source as u64, u64::from(tag), if whole == buf { buf[0] } else { 0 }]
    }

    fn wait(&mut self, state: &mut History, how: u64) -> Result<(), CommError> {
        let mut got: Vec<(usize, [u64; 3])> = vec![];
        let requests = &mut self.receives;
        let mut note = |state: &mut History, at: usize, (buf, status): (Vec<u64>, ft_comm::Status)| {
            let number = state.open.remove(at).number;
            let words = status.bytes / 8;
            // Its place has the number of its colors, and the own rank.
            let [colors, me, _] = state.received[number..number + 3] else { unreachable!("three numbers") };
            let source = Parts { place: 0, colors: colors as usize }.world(me as usize, status.source);
            got.push((number, Self::take(state, &buf[..words], source, status.tag)));
        };
        match how {
            0 => {
                for done in wait_all(requests.drain(..))? {
                    note(state, 0, done);
                }
            }
            1 => {
                while let Some((at, done)) = wait_any(requests)? {
                    note(state, at, done);
                }
            }
            2 => {
                while !requests.is_empty() {
                    for (taken, (at, done)) in wait_some(requests)?.into_iter().enumerate() {
                        note(state, at - taken, done);
                    }
                }
            }
            _ => {
                while !requests.is_empty() {
                    let any = test_any(requests)?;
                    state.hear(u64::from(any.is_some()));
                    if let Some((at, done)) = any {
                        note(state, at, done);
                    }
                    if !requests.is_empty() {
                        match requests.remove(0).test()? {
                            Ok(done) => note(state, 0, done),
                            Err(request) => requests.insert(0, request),
                        }
                    }
                }
            }
        }
        got.into_iter().for_each(|(at, message)| state.received[at..at + 3].copy_from_slice(&message));
        wait_all(self.sends.drain(..)).map(|_| ())
    }

    fn act(&mut self, state: &mut History, world: &World, action: Action) -> Result<(), CommError> {
        let on = match action {
            Action::Send { on, .. }
            | Action::Receive { on, .. }
            | Action::Ask(on, _)
            | Action::Together(on, _) => on,
            _ => None,
        };
        let made = on.and_then(|parts| self.made.get(parts.place)?.clone());
        assert_eq!(made.is_some(), on.is_some(), "it was made, and is not freed");
        let comm = made.as_ref().unwrap_or(world.comm());
        let parts = on.unwrap_or(Parts { place: 0, colors: 1 });
        let me = world.rank();
        match action {
            Action::Send { to, tag, words, waits, .. } => {
                let word = state.says(to, tag);
                state.sent.extend([to as u64, u64::from(tag), word]);
                let text = text(word, words);
                let to = parts.local(to);
                if waits {
                    comm.send(&text, to, tag)?;
                } else {
                    let send = comm.isend(text, to, tag)?;
                    if self.records {
                        send.record()?;
                    }
                    self.sends.push(send);
                }
            }
            Action::Receive { from, tag, how, .. } => {
                let source = from.map_or(Source::Any, |from| Source::Rank(parts.local(from)));
                let mut buf = vec![0; LONG];
                let status = match how {
                    How::Blocking => comm.recv(&mut buf, source, tag)?,
                    How::Posted => {
                        // Its place in the list is that of its receive.
                        let (number, on) = (state.received.len(), on.map(|parts| parts.place));
                        state.received.extend([parts.colors as u64, me as u64, 0]);
                        let receive = comm.irecv(buf, source, tag)?;
                        let record = self.records.then(|| receive.record()).transpose()?;
                        state.open.push(Open { record, on, number });
                        self.receives.push(receive);
                        return Ok(());
                    }
                    How::Probed => {
                        let found = comm.probe(source, tag)?;
                        comm.recv(&mut buf, found.source, found.tag)?
                    }
                    How::Claimed => comm.mprobe(source, tag)?.recv(&mut buf)?,
                };
                let source = parts.world(me, status.source);
                let message = Self::take(state, &buf[..status.bytes / 8], source, status.tag);
                state.received.extend(message);
            }
            Action::Ask(_, tag) => {
                let found = comm.iprobe(Source::Any, tag)?;
                state.hear(found.map_or(1, |found| found.source as u64 + 2));
            }
            Action::Wait(how) => self.wait(state, how)?,
            Action::Together(_, collective) => {
                let mine = state.says(1000, 0);
                let mut word = [mine];
                match collective {
                    Collective::Sum => comm.allreduce(&mut word, Op::Sum)?,
                    Collective::Reduce(root) => comm.reduce(&mut word, Op::Sum, root % comm.size())?,
                    Collective::Scan => comm.scan(&mut word, Op::Sum)?,
                    Collective::Broadcast(root) => comm.bcast(&mut word, root % comm.size())?,
                    Collective::Barrier => comm.barrier()?,
                }
                if matches!(collective, Collective::Reduce(root) if root % comm.size() != comm.rank()) {
                    word = [0];
                }
                state.gave.push(mine);
                state.got.push(word[0]);
                state.hear(word[0]);
            }
            Action::Make(Parts { place, colors }) => {
                let part = comm.split(Some((me % colors) as u32), 0)?.expect("it has a color");
                part.set_name(format!("part {place}"));
                state.made.resize(state.made.len().max(place + 1), None);
                self.made.resize(state.made.len(), None);
                state.made[place] = Some(part.record());
                self.made[place] = Some(part);
            }
            Action::Free(Parts { place, .. }) => (state.made[place], self.made[place]) = (None, None),
            Action::Boundary => {}
        }
        Ok(())
    }
}

impl Random {
    /// What ranks tell each other where their states are made whole: the same each time, with tags that steps have too, and some of it long.
    fn meet(world: &World) -> Result<(), CommError> {
        let (comm, me, size) = (world.comm(), world.rank(), world.size());
        let (left, right) = ((me + size - 1) % size, (me + 1) % size);
        for (tag, count) in [(0, 3), (1, 9000), (0, 0)] {
            let (room, text) = (comm.irecv(vec![0; count], left, tag)?, vec![me as u64; count]);
            let send = comm.isend(text, right, tag)?;
            let (came, _) = room.wait()?;
            send.wait()?;
            if came.iter().any(|word| *word != left as u64) {
                return Err(CommError::Diverged);
            }
        }
        let mut sum = [me as u64];
        comm.allreduce(&mut sum, Op::Sum)?;
        let mut all = vec![0; size];
        comm.allgather(&[me as u64], &mut all)?;
        let is_right = sum == [(size * (size - 1) / 2) as u64] && all.into_iter().eq(0..size as u64);
        if is_right { comm.barrier() } else { Err(CommError::Diverged) }
    }
}

impl Program for Random {
    type State = History;
    type Error = CommError;
    const ALONE: bool = true;

    fn init(&mut self, world: &World) -> Result<History, CommError> {
        world.comm().barrier()?;
        Ok(History::default())
    }

    fn rebuild(&mut self, state: &mut History, world: &World) -> Result<(), CommError> {
        // What was under way with requests is not of this history. Some let go of their handles first, and others have them still.
        let fresh = Self { is_back: true, ..Self::new(std::mem::take(&mut self.actions), self.records) };
        let before = std::mem::replace(self, fresh);
        let kept = if state.digest.is_multiple_of(2) { Some(before) } else { None };
        for record in &state.made {
            let made = record.as_ref().map(|record| world.communicator(record)).transpose()?.flatten();
            self.made.push(made);
        }
        drop(kept);
        Self::meet(world)
    }

    fn step(&mut self, state: &mut History, world: &World, _: u64) -> Result<Flow, CommError> {
        if std::mem::take(&mut self.is_back) {
            self.receive_again(state, world)?;
        }
        loop {
            let Some(action) = self.actions.get(state.at as usize).copied() else { return Ok(Flow::Done) };
            self.act(state, world, action)?;
            state.at += 1;
            if let Action::Boundary = action {
                let is_over = state.at as usize == self.actions.len();
                return Ok(if is_over { Flow::Done } else { Flow::Continue });
            }
        }
    }

    fn output(&mut self, state: &mut History, _: &World) -> Result<Vec<u8>, CommError> {
        Ok(state.to_bytes())
    }
}

/// Whether the histories of all ranks fit each other.
fn judge(histories: &[[Vec<u64>; 4]], plan: &[Vec<Action>]) -> Result<(), String> {
    let of = |list: &[u64], other: usize, tag: u64| -> Vec<u64> {
        let messages = list.as_chunks::<3>().0.iter();
        messages.filter(|m| m[0] == other as u64 && m[1] == tag).map(|m| m[2]).collect()
    };
    for (from, [sent, ..]) in histories.iter().enumerate() {
        for (to, [_, received, ..]) in histories.iter().enumerate() {
            let tags = sent.as_chunks::<3>().0.iter().chain(received.as_chunks::<3>().0).map(|m| m[1]);
            let mut tags: Vec<u64> = tags.collect();
            tags.sort_unstable();
            tags.dedup();
            for tag in tags {
                let (sent, received) = (of(sent, to, tag), of(received, from, tag));
                if sent != received {
                    return Err(format!("{from} to {to}, tag {tag}: sent {sent:x?}, received {received:x?}"));
                }
            }
        }
    }
    let together = |action: &Action| match action {
        Action::Together(on, collective) => Some((*on, *collective)),
        _ => None,
    };
    for (number, (on, collective)) in plan[0].iter().filter_map(together).enumerate() {
        for (world_rank, [.., got]) in histories.iter().enumerate() {
            let members = members(on, world_rank, histories.len());
            let rank = members.iter().take_while(|member| **member != world_rank).count();
            let gave: Vec<u64> = members.iter().map(|member| histories[*member][2][number]).collect();
            let sum = |count: usize| gave[..count].iter().fold(0, |sum: u64, word| sum.wrapping_add(*word));
            let due = match collective {
                Collective::Sum => sum(gave.len()),
                Collective::Reduce(root) => {
                    if root % gave.len() == rank {
                        sum(gave.len())
                    } else {
                        0
                    }
                }
                Collective::Scan => sum(rank + 1),
                Collective::Broadcast(root) => gave[root % gave.len()],
                Collective::Barrier => gave[rank],
            };
            if got[number] != due {
                return Err(format!(
                    "collective {number}, {collective:?}, rank {world_rank}: {:x}, not {due:x}",
                    got[number]
                ));
            }
        }
    }
    Ok(())
}

type Outcome = SimOutcome<Result<(), String>>;

/// How messages cross lines, and who goes back.
type Mode = (Lines, Recovery);

const LOG: Mode = (Lines::Log, Recovery::Global);
const DRAIN: Mode = (Lines::Drain, Recovery::Global);
const LOCAL: Mode = (Lines::Log, Recovery::Local);

fn simulate(seed: u64, (lines, recovery): Mode, bug: &'static str) -> Outcome {
    let (scheme, ranks, parity) = commit::job(seed);
    let mut choices = Choices(seed ^ 0x11ae5);
    let interval = Interval::Steps(1 + choices.below(5));
    let checkpoints = commit::of_either_kind(seed / 2);
    let protection = Protection { lines, recovery, checkpoints, ..Protection::new(scheme, interval) };
    let mut config = Config { parity, bug, ..Config::rough(seed, ranks) };
    config.faults = Faults {
        cuts: commit::cuts(seed),
        cuts_forever: commit::cuts_forever(seed),
        together_max: 1 + choices.below(2) as usize,
        ..match recovery {
            Recovery::Global => Faults::kills(1 + choices.below(4) as u32, Duration::from_millis(60)),
            Recovery::Local => Faults::kills(1 + choices.below(6) as u32, Duration::from_millis(120)),
        }
    };
    // Another one while the first is made good; where only the lost go back, a row of them.
    let is_local = recovery == Recovery::Local;
    let row = if is_local { choices.below(6) as u32 } else { u32::from(choices.below(3) == 0) };
    // In most rows the ranks that are left are back at work when the next one is lost.
    let shortest = if is_local && choices.below(3) > 0 { 14 } else { 0 };
    for losses in 1..=row {
        let delay = Duration::from_micros(1 << (shortest + choices.below(17 - shortest)));
        let again = Trigger::AfterLoss { losses, delay };
        config
            .faults
            .explicit
            .push(Fault { trigger: again, blow: Blow::Kill(vec![choices.below(ranks as u64) as Rank]) });
    }
    let plan = plan(seed, ranks, (lines, recovery));
    sim::run(config, |world| {
        let actions = plan.get(world.rank()).cloned().unwrap_or_default();
        ft_checkpoint::run(world, protection.clone(), &mut Random::new(actions, (seed / 2).is_multiple_of(2)))
            .map(|_| ())
            .map_err(|error| error.to_string())
    })
}

fn check(seed: u64, mode: Mode, bug: &'static str) -> Result<Course, String> {
    check_and(seed, mode, bug, |_| {})
}

/// The same, and looks at the reports of all ranks.
fn check_and(
    seed: u64,
    mode: Mode,
    bug: &'static str,
    look: impl Fn(&[RankReport]),
) -> Result<Course, String> {
    let outcome = simulate(seed, mode, bug);
    let course = commit::check_end(seed, &outcome)?;
    if let Course::Undisturbed | Course::Repaired = course {
        let ranks = commit::job(seed).1;
        let outputs = checker::outputs(&outcome).ok_or("no outputs")?;
        let reports = outputs[..ranks].iter().map(|bytes| RankReport::read(bytes));
        let reports = reports.collect::<Option<Vec<_>>>().ok_or("no reports")?;
        look(&reports);
        let histories: Vec<_> = reports.iter().map(|report| History::read(&report.output)).collect();
        judge(&histories, &plan(seed, ranks, mode))?;
    }
    Ok(course)
}

const COURSES: [Course; 3] = [Course::Undisturbed, Course::Repaired, Course::BeyondTolerance];

#[test]
fn messages_cross_lines_of_logs_and_nobody_can_tell() {
    for_seeds("messages_cross_lines_of_logs", &COURSES, |seed| check(seed, LOG, ""));
}

#[test]
fn messages_that_cross_a_step_are_drained_and_come_back() {
    for_seeds("messages_that_cross_a_step", &COURSES, |seed| check(seed, DRAIN, ""));
}

#[test]
fn only_the_lost_go_back_and_nobody_can_tell() {
    let (stayed, gone) = (Cell::new(0), Cell::new(0));
    for_seeds("only_the_lost_go_back", &COURSES, |seed| {
        check_and(seed, LOCAL, "", |reports| {
            let stats = reports.iter().map(|report| report.stats.clone()).reduce(Stats::merge);
            for restore in stats.into_iter().flat_map(|stats| stats.restores) {
                let count = if restore.stayed > 0 { &stayed } else { &gone };
                count.set(count.get() + 1);
            }
        })
    });
    println!("in {} repairs only the lost went back, in {} all did", stayed.get(), gone.get());
    assert!(stayed.get() > 0, "always all went back");
}

#[test]
fn planted_a_late_message_that_is_forgotten_is_caught() {
    finds(planted::FORGETS_LATE, |seed| check(seed, LOG, planted::FORGETS_LATE));
    finds(planted::FORGETS_LATE, |seed| check(seed, DRAIN, planted::FORGETS_LATE));
}

#[test]
fn planted_an_early_message_that_is_sent_again_is_caught() {
    finds(planted::SENDS_EARLY_AGAIN, |seed| check(seed, LOG, planted::SENDS_EARLY_AGAIN));
}

#[test]
fn planted_a_wildcard_that_is_replayed_in_another_order_is_caught() {
    finds(planted::REPLAYS_IN_ANOTHER_ORDER, |seed| check(seed, LOG, planted::REPLAYS_IN_ANOTHER_ORDER));
}

#[test]
fn planted_a_colour_that_wraps_wrongly_is_caught() {
    finds(planted::COUNTS_LINES_BY_TWO, |seed| check(seed, LOG, planted::COUNTS_LINES_BY_TWO));
}

#[test]
fn planted_open_receives_that_are_forgotten_are_caught() {
    finds(planted::FORGETS_OPEN, |seed| check(seed, LOG, planted::FORGETS_OPEN));
}

#[test]
fn planted_collectives_that_are_counted_anew_are_caught() {
    finds(planted::COUNTS_COLLECTIVES_ANEW, |seed| check(seed, LOG, planted::COUNTS_COLLECTIVES_ANEW));
}

#[test]
fn planted_contexts_behind_the_line_are_caught() {
    finds(planted::GOES_ON_WITH_CONTEXTS, |seed| check(seed, LOG, planted::GOES_ON_WITH_CONTEXTS));
}

#[test]
fn planted_determinants_that_come_too_late_are_caught() {
    finds(planted::TELLS_LATE, |seed| check(seed, LOCAL, planted::TELLS_LATE));
}

#[test]
fn planted_journals_that_are_freed_early_are_caught() {
    finds(planted::FREES_JOURNAL_EARLY, |seed| check(seed, LOCAL, planted::FREES_JOURNAL_EARLY));
}

#[test]
fn planted_messages_that_survivors_have_and_get_again_are_caught() {
    finds(planted::REPEATS_ITSELF, |seed| check(seed, LOCAL, planted::REPEATS_ITSELF));
}

/// What cannot be had together is said at the start.
#[test]
fn lines_are_refused_with_what_does_not_go_with_them() {
    let of = Protection { lines: Lines::Log, ..Protection::new("xor".parse().unwrap(), Interval::Steps(1)) };
    for (protection, with) in [
        (Protection { incremental: true, ..of.clone() }, "`--incremental`"),
        (Protection { scrub: true, ..of.clone() }, "`--scrub`"),
        (Protection { levels: vec!["rs:2+1@3".parse().unwrap()], ..of }, "`--levels`"),
    ] {
        let outcome = sim::run(Config::calm(3), |world| {
            let ran = ft_checkpoint::run(world, protection.clone(), &mut Random::new(vec![], false));
            match ran.expect_err(with) {
                RunError::Checkpoint(CheckpointError::Unfit(why)) => why,
                other => other.to_string(),
            }
        });
        let whys = outcome.finished.into_iter().filter_map(|finished| finished.result.ok());
        let whys: Vec<String> = whys.collect();
        assert!(!whys.is_empty() && whys.iter().any(|why| why.contains(with)), "{whys:?}");
    }
}

/// Sends more than it receives, drops what it has found now and then, and frees a communicator that has messages under way.
struct Spendthrift {
    tag: u32,
}

const STEPS: u64 = 12;

impl Spendthrift {
    /// What it has received at the end: the numbers of some steps of the rank on its left.
    fn sum() -> u64 {
        let (mut next, mut sum) = (0, 0);
        for number in 1..=STEPS {
            next += u64::from(number % 5 == 0);
            if number % 2 == 0 {
                next += 1;
                sum += next;
            }
        }
        sum
    }
}

#[derive(Debug, Default, Protect)]
struct Sum {
    sum: u64,
}

impl Program for Spendthrift {
    type State = Sum;
    type Error = CommError;
    const ALONE: bool = true;

    fn init(&mut self, _: &World) -> Result<Sum, CommError> {
        Ok(Sum::default())
    }

    fn step(&mut self, state: &mut Sum, world: &World, number: u64) -> Result<Flow, CommError> {
        let (comm, size) = (world.comm(), world.size());
        let (left, right) = ((world.rank() + size - 1) % size, (world.rank() + 1) % size);
        comm.send(&[number], right, self.tag)?;
        if number.is_multiple_of(5) {
            drop(comm.mprobe(left, self.tag)?);
        }
        if number.is_multiple_of(4) {
            comm.dup()?.send(&[number], right, self.tag)?;
        }
        if number.is_multiple_of(2) {
            let mut word = [0];
            comm.recv(&mut word, left, self.tag)?;
            state.sum += word[0];
        }
        Ok(if number == STEPS { Flow::Done } else { Flow::Continue })
    }
}

/// What one run has left over is nothing to the lines of the next, and what was dropped is not waited for.
#[test]
fn runs_that_leave_messages_over_follow_each_other() {
    let run = |seed: u64, (lines, recovery): Mode| {
        let (scheme, ranks, parity) = commit::job(seed);
        let interval = Interval::Steps(1 + seed % 3);
        let protection = Protection { lines, recovery, ..Protection::new(scheme, interval) };
        let mut config = Config { parity, ..Config::rough(seed, ranks) };
        config.faults = Faults::kills(1 + (seed % 3) as u32, Duration::from_millis(60));
        sim::run(config, |world| {
            let told = |error: &dyn std::fmt::Display| error.to_string();
            let Some(mut job) = Job::start(world, protection.clone()).map_err(|error| told(&error))? else {
                return Ok(());
            };
            for tag in 1..=4 {
                let sum =
                    job.run(&mut Spendthrift { tag }, |state| state.sum).map_err(|error| told(&error))?;
                if sum != Spendthrift::sum() {
                    return Err(format!("run {tag}: {sum}, not {}", Spendthrift::sum()));
                }
            }
            job.finish().map_err(|error| told(&error))
        })
    };
    for_seeds("runs_that_leave_messages_over", &[Course::Undisturbed, Course::Repaired], |seed| {
        let outcome: Outcome = run(seed, [DRAIN, LOG, LOCAL, LOCAL][seed as usize % 4]);
        let wrong = outcome.finished.iter().find_map(|finished| match &finished.result {
            Ok(Err(why)) if why.starts_with("run ") => Some(why.clone()),
            _ => None,
        });
        match wrong {
            Some(why) => Err(why),
            None => commit::check_end(seed, &outcome),
        }
    });
}
