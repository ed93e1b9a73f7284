//! A program that does what a plan says, and keeps a list of all that it sent and received.

use ft_checkpoint::{Flow, Program, Protect};
use ft_comm::{
    CollectiveRecord, CollectiveRequest, CommError, Communicator, CommunicatorRecord, Op, Part, Piece, Plan,
    PlanRecord, PlanRequest, Rank, Request, RequestRecord, Schedule, ScheduleRequest, Source, World,
    test_any, wait_all, wait_any, wait_some,
};
use ft_proto::collective::{Space, Span, Step};
use serde::{Deserialize, Serialize};

use super::plan::{Action, Collective, How, On, Parts, members};
use super::{LONG, mix};

/// What a rank's checkpoint holds. The lists are the test's, not the program's.
#[derive(Debug, Default, Protect)]
pub(super) struct History {
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
    /// The same of collectives.
    #[protect(serde)]
    begun: Vec<Begun>,
    /// And of exchanges, and how many there were.
    #[protect(serde)]
    exchanged: Vec<Exchanged>,
    exchanges: u64,
}

/// An exchange that is under way.
#[derive(Debug, Serialize, Deserialize)]
struct Exchanged {
    /// None: checkpoints wait for it.
    record: Option<PlanRecord>,
    word: u64,
    words: usize,
    /// Where what it receives belongs in the list of messages.
    number: usize,
}

/// A collective that is under way.
#[derive(Debug, Serialize, Deserialize)]
struct Begun {
    /// None: checkpoints wait for it.
    record: Option<CollectiveRecord>,
    on: On,
    collective: Collective,
    /// Where it belongs in the list of collectives.
    number: usize,
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

    pub(super) fn read(bytes: &[u8]) -> [Vec<u64>; 4] {
        let mut words = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        std::array::from_fn(|_| {
            let count = words.next().expect("a list has a length") as usize;
            words.by_ref().take(count).collect()
        })
    }
}

/// All exchanges have it, so that each has messages like those of the next.
const EXCHANGE: u32 = 5000;

fn exchange(world: &World, words: usize) -> Result<Plan<u64>, CommError> {
    let (rank, size) = (world.rank(), world.size());
    let piece = |peer| Piece::from(Part { peer, tag: EXCHANGE, range: 0..words });
    world.comm().plan(&[piece((rank + 1) % size)], &[piece((rank + size - 1) % size)])
}

/// What a message says beyond its first word follows from that.
fn text(word: u64, words: usize) -> Vec<u64> {
    (0..words as u64).map(|at| if at == 0 { word } else { mix(word ^ at) }).collect()
}

/// What each rank says goes two places to the right; what it says has changed on the way.
pub(super) fn shift(comm: &Communicator, words: usize) -> Schedule {
    let (rank, size) = (comm.rank(), comm.size());
    let span = |space| Span { space, range: 0..8 * words };
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
    let changes = Step::Apply { number: 0, reads: vec![], changes: vec![span(Space::Buffer)] };
    let steps = match size {
        1 => vec![Step::Copy { from: span(Space::Input), to: span(Space::Buffer) }, changes],
        _ => vec![
            Step::send(right, span(Space::Input)),
            Step::recv(left, 0..8 * words),
            changes,
            Step::send(right, span(Space::Buffer)),
            Step::recv(left, 0..8 * words),
        ],
    };
    Schedule::new(steps, |_, spaces| {
        for word in spaces.buffer.as_chunks_mut().0 {
            *word = mix(u64::from_le_bytes(*word)).to_le_bytes();
        }
    })
}

fn to_bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A collective that is under way, or a schedule.
enum Running {
    Collective(CollectiveRequest<u64>),
    Schedule(ScheduleRequest<Vec<u8>>),
}

impl Running {
    /// Some are long, so that they take a while. With a record it begins again.
    fn begin(comm: &Communicator, begun: &Begun, gave: &[u64]) -> Result<Self, CommError> {
        let (number, size) = (begun.number, comm.size());
        let words = vec![gave[number]; if number.is_multiple_of(3) { 3000 } else { 1 }];
        if let Collective::Shift = begun.collective {
            let (schedule, input) = (shift(comm, words.len()), to_bytes(&words));
            let buffer = vec![0; input.len()];
            return Ok(Self::Schedule(match &begun.record {
                Some(record) => comm.start_schedule_again(record, &schedule, input, buffer)?,
                None => comm.start_schedule(&schedule, input, buffer)?,
            }));
        }
        let begin = |comm: &Communicator| match begun.collective {
            Collective::Sum => comm.iallreduce(words, Op::Sum),
            Collective::Reduce(root) => comm.ireduce(words, Op::Sum, root % size),
            Collective::Scan => comm.iscan(words, Op::Sum),
            Collective::Broadcast(root) => comm.ibcast(words, root % size),
            Collective::Shift | Collective::Barrier => unreachable!("another one"),
        };
        Ok(Self::Collective(match &begun.record {
            Some(record) => comm.begin_again(record, begin)?,
            None => begin(comm)?,
        }))
    }

    fn record(&self) -> Result<CollectiveRecord, CommError> {
        match self {
            Self::Collective(request) => request.record(),
            Self::Schedule(request) => request.record(),
        }
    }

    fn wait(self) -> Result<Vec<u64>, CommError> {
        match self {
            Self::Collective(request) => request.wait(),
            Self::Schedule(request) => {
                let (_, bytes) = request.wait()?;
                Ok(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
            }
        }
    }
}

pub(super) struct Random {
    actions: Vec<Action>,
    sends: Vec<Request<u64>>,
    /// Those that are open, in order.
    receives: Vec<Request<u64>>,
    collectives: Vec<Running>,
    exchanges: Vec<PlanRequest<u64>>,
    made: Vec<Option<Communicator>>,
    /// Checkpoints are taken beside requests.
    records: bool,
    /// Receives that are open are to be made again.
    is_back: bool,
}

impl Random {
    pub(super) fn new(actions: Vec<Action>, records: bool) -> Self {
        Self {
            actions,
            sends: vec![],
            receives: vec![],
            collectives: vec![],
            exchanges: vec![],
            made: vec![],
            records,
            is_back: false,
        }
    }

    /// Makes the receives again that were under way.
    fn receive_again(&mut self, state: &History, world: &World) -> Result<(), CommError> {
        for Open { record, on, .. } in &state.open {
            let made = on.and_then(|place| self.made[place].clone());
            let comm = made.as_ref().unwrap_or(world.comm());
            let record = record.as_ref().expect("no checkpoint was taken beside others");
            self.receives.push(comm.request(record, vec![0; LONG])?);
        }
        for begun in &state.begun {
            let comm = self.comm(begun.on, world);
            assert!(begun.record.is_some(), "no checkpoint was taken beside others");
            self.collectives.push(Running::begin(&comm, begun, &state.gave)?);
        }
        for Exchanged { record, word, words, .. } in &state.exchanged {
            let record = record.as_ref().expect("no checkpoint was taken beside others");
            let again = exchange(world, *words)?.start_again(record, text(*word, *words), vec![0; *words])?;
            self.exchanges.push(again);
        }
        Ok(())
    }

    fn comm(&self, on: On, world: &World) -> Communicator {
        let made = on.map(|parts| self.made.get(parts.place).cloned().flatten());
        made.map_or_else(|| world.comm().clone(), |made| made.expect("it was made, and is not freed"))
    }

    fn finish(&mut self, state: &mut History, world: &World) -> Result<(), CommError> {
        for request in self.collectives.drain(..) {
            let words = request.wait()?;
            let Begun { on, collective, number, .. } = state.begun.remove(0);
            let parts = on.unwrap_or(Parts { place: 0, colors: 1 });
            let (me, size) = (parts.local(world.rank()), members(on, world.rank(), world.size()).len());
            let is_even = words.iter().all(|word| *word == words[0]);
            state.got[number] = match collective {
                Collective::Reduce(root) if root % size != me => 0,
                _ if is_even => words[0],
                _ => !0,
            };
            state.hear(state.got[number]);
        }
        let left = (world.rank() + world.size() - 1) % world.size();
        for request in self.exchanges.drain(..) {
            let (_, words) = request.wait()?;
            let number = state.exchanged.remove(0).number;
            let message = Self::take(state, &words, left, EXCHANGE);
            state.received[number..number + 3].copy_from_slice(&message);
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
            | Action::Together(on, _)
            | Action::Begin(on, _) => on,
            _ => None,
        };
        let comm = &self.comm(on, world);
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
                    Collective::Shift => {
                        let mut bytes = [0; 8];
                        comm.run_schedule(&shift(comm, 1), &mine.to_le_bytes(), &mut bytes)?;
                        word = [u64::from_le_bytes(bytes)];
                    }
                    Collective::Barrier => comm.barrier()?,
                }
                if matches!(collective, Collective::Reduce(root) if root % comm.size() != comm.rank()) {
                    word = [0];
                }
                state.gave.push(mine);
                state.got.push(word[0]);
                state.hear(word[0]);
            }
            Action::Begin(on, collective) => {
                let mut begun = Begun { record: None, on, collective, number: state.gave.len() };
                state.gave.push(state.says(1000, 0));
                state.got.push(0);
                let request = Running::begin(comm, &begun, &state.gave)?;
                begun.record = self.records.then(|| request.record()).transpose()?;
                state.begun.push(begun);
                self.collectives.push(request);
            }
            Action::Exchange => {
                state.exchanges += 1;
                let words = [1, 40, 3000][state.exchanges as usize % 3];
                let (word, number) = (state.says(2000, EXCHANGE), state.received.len());
                state.sent.extend([((me + 1) % world.size()) as u64, u64::from(EXCHANGE), word]);
                state.received.extend([0; 3]);
                let request = exchange(world, words)?.start(text(word, words), vec![0; words])?;
                let record = self.records.then(|| request.record()).transpose()?;
                state.exchanged.push(Exchanged { record, word, words, number });
                self.exchanges.push(request);
            }
            Action::Finish => self.finish(state, world)?,
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
