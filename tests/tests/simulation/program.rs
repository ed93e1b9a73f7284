//! Random programs of sends and receives that end whatever the network does, also if every send waits for its
//! receive: blocks of calls that are safe each by its shape.
//!
//! Receives that name their source take what they are meant to take, at any timing: both messages and receives
//! prefer the earliest, so there is one pairing only. A receive from any source takes one message instead of another,
//! so it comes behind all narrower ones of its block, and a barrier behind the block.

use ft_comm::{EAGER_BYTES_MAX, Rank, Tag};

use crate::Choices;

/// Communicators of a program.
pub(super) const COMMS: usize = 3;
const TAGS: u64 = 3;

/// A message by what it is known by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) source: Rank,
    pub(super) dest: Rank,
    pub(super) comm: usize,
    pub(super) tag: Tag,
    pub(super) bytes: usize,
    /// Of all messages of the program.
    pub(super) number: usize,
}

impl Message {
    /// Bytes that no other message has, but for very short ones.
    pub(super) fn contents(&self) -> Vec<u8> {
        let stamp = Choices(self.number as u64).below(u64::MAX).to_le_bytes();
        (0..self.bytes).map(|at| stamp[at % 8].wrapping_add((at / 8) as u8)).collect()
    }
}

/// A receive by what it takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) comm: usize,
    pub(super) source: Option<Rank>,
    pub(super) tag: Option<Tag>,
    /// Room in bytes.
    pub(super) room: usize,
}

impl Wanted {
    /// By the words of the standard: communicator, source and tag are those asked for (MPI 4.1, section 3.2.4).
    pub(super) fn accepts(&self, message: &Message) -> bool {
        self.comm == message.comm
            && self.source.is_none_or(|source| source == message.source)
            && self.tag.is_none_or(|tag| tag == message.tag)
    }
}

/// What a rank does next.
#[derive(Clone, Debug)]
pub(super) enum Action {
    Send(Message),
    Isend(Message),
    Recv(Wanted),
    Irecv(Wanted),
    /// A probe, then a receive of what it found.
    Probe(Wanted),
    Sendrecv(Message, Wanted),
    /// Waits for all requests, in an order that follows from this number.
    Wait(u64),
    Barrier,
}

/// The program of every rank.
pub(super) fn generate(seed: u64) -> Vec<Vec<Action>> {
    let mut choices = Choices(seed);
    let ranks = 2 + choices.below(4) as usize;
    let blocks = 1 + choices.below(4);
    let mut generator = Generator { choices, ranks: vec![vec![]; ranks], messages: 0 };
    for _ in 0..blocks {
        match generator.choices.below(6) {
            0 | 1 => generator.line(),
            2 => generator.gather(),
            3 => generator.round(),
            _ => generator.crossfire(),
        }
    }
    generator.ranks
}

struct Generator {
    choices: Choices,
    ranks: Vec<Vec<Action>>,
    /// Number of messages so far.
    messages: usize,
}

impl Generator {
    fn rank(&mut self) -> Rank {
        self.choices.below(self.ranks.len() as u64) as Rank
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.choices.below(n) == 0
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        shuffle(&mut self.choices, list);
    }

    fn message(&mut self, source: Rank, dest: Rank, comm: usize) -> Message {
        let bytes = match self.choices.below(20) {
            0..4 => 0,
            4 => EAGER_BYTES_MAX - 1,
            5 => EAGER_BYTES_MAX,
            6 => EAGER_BYTES_MAX + 1,
            7 => EAGER_BYTES_MAX + 1 + self.choices.below(9000) as usize,
            _ => 1 + self.choices.below(60) as usize,
        };
        self.messages += 1;
        Message { source, dest, comm, tag: self.choices.below(TAGS) as Tag, bytes, number: self.messages }
    }

    fn comm(&mut self) -> usize {
        self.choices.below(COMMS as u64) as usize
    }

    fn tag_of(&mut self, message: &Message) -> Option<Tag> {
        (!self.one_in(3)).then_some(message.tag)
    }

    /// A receive by any call.
    fn receive(&mut self, wanted: Wanted) -> Action {
        match self.choices.below(3) {
            0 => Action::Recv(wanted),
            1 => Action::Irecv(wanted),
            _ => Action::Probe(wanted),
        }
    }

    fn send(&mut self, message: Message) -> Action {
        if self.one_in(2) { Action::Send(message) } else { Action::Isend(message) }
    }

    /// Messages in one order for all ranks; blocking calls may wait for each other, never in a circle.
    fn line(&mut self) {
        for _ in 0..1 + self.choices.below(10) {
            let source = self.rank();
            let dest =
                (source + 1 + self.choices.below(self.ranks.len() as u64 - 1) as usize) % self.ranks.len();
            let comm = self.comm();
            let message = self.message(source, dest, comm);
            let send = self.send(message);
            self.ranks[source].push(send);
            let receive = self.named(&message);
            self.ranks[dest].push(receive);
        }
        self.wait();
    }

    /// A receive of a message of a line.
    fn named(&mut self, message: &Message) -> Action {
        let tag = self.tag_of(message);
        let room = message.bytes + self.choices.below(3) as usize;
        self.receive(Wanted { comm: message.comm, source: Some(message.source), tag, room })
    }

    /// All send to one rank, which takes the first ones by name and then whatever comes.
    fn gather(&mut self) {
        let (root, comm) = (self.rank(), self.comm());
        let mut messages = Vec::new();
        for _ in 0..1 + self.choices.below(12) {
            let source =
                (root + 1 + self.choices.below(self.ranks.len() as u64 - 1) as usize) % self.ranks.len();
            let message = self.message(source, root, comm);
            let send = self.send(message);
            self.ranks[source].push(send);
            messages.push(message);
        }
        let named = self.choices.below(messages.len() as u64 + 1) as usize;
        let (first, rest) = messages.split_at(named);
        for message in first {
            let receive = self.named(message);
            self.ranks[root].push(receive);
        }
        let one_tag = rest.windows(2).all(|pair| pair[0].tag == pair[1].tag);
        for message in rest {
            let tag = if one_tag { self.tag_of(message) } else { None };
            let receive = self.receive(Wanted { comm, source: None, tag, room: room(&messages) });
            self.ranks[root].push(receive);
        }
        self.wait();
        self.barrier();
    }

    /// Every rank sends to one and receives from one at once, perhaps from itself.
    fn round(&mut self) {
        let comm = self.comm();
        let mut dests: Vec<Rank> = (0..self.ranks.len()).collect();
        self.shuffle(&mut dests);
        let tag = self.choices.below(TAGS) as Tag;
        let messages: Vec<Message> = (0..dests.len())
            .map(|source| Message { tag, ..self.message(source, dests[source], comm) })
            .collect();
        for message in &messages {
            let incoming =
                messages[dests.iter().position(|dest| *dest == message.source).expect("it is one of all")];
            let source = (!self.one_in(3)).then_some(incoming.source);
            let wanted = Wanted { comm, source, tag: Some(tag), room: incoming.bytes };
            self.ranks[message.source].push(Action::Sendrecv(*message, wanted));
        }
        self.barrier();
    }

    /// All requests are started before any rank waits.
    fn crossfire(&mut self) {
        let mut messages = Vec::new();
        for _ in 0..1 + self.choices.below(16) {
            let (source, dest, comm) = (self.rank(), self.rank(), self.comm());
            messages.push(self.message(source, dest, comm));
        }
        if self.one_in(16) {
            // More than there is credit for: some are sent at once, some are announced.
            let (source, dest, comm) = (self.rank(), self.rank(), self.comm());
            for _ in 0..20 {
                let bytes = EAGER_BYTES_MAX - self.choices.below(2) as usize;
                messages.push(Message { bytes, ..self.message(source, dest, comm) });
            }
        }
        for rank in 0..self.ranks.len() {
            let sent = messages.iter().filter(|message| message.source == rank);
            let mut lists = vec![sent.copied().map(Action::Isend).collect::<Vec<_>>()];
            let mut late = Vec::new();
            for comm in 0..COMMS {
                let due = messages.iter().filter(|message| message.dest == rank && message.comm == comm);
                let mut wanted = self.wanted(due.copied().collect());
                let early = self.choices.below(wanted.len() as u64 + 1) as usize;
                late.push(wanted.split_off(early));
                lists.push(wanted.into_iter().map(Action::Irecv).collect());
            }
            // Now all has left or will by itself, so that any call may wait.
            let late = late
                .into_iter()
                .map(|wanted| wanted.into_iter().map(|w| self.receive(w)).collect())
                .collect();
            let (early, late) = (self.merge(lists), self.merge(late));
            self.ranks[rank].extend(early.into_iter().chain(late));
        }
        self.wait();
        self.barrier();
    }

    /// Receives of these messages, which have one destination and communicator, in an order in which all of them
    /// end whatever arrives when.
    fn wanted(&mut self, mut left: Vec<Message>) -> Vec<Wanted> {
        let Some(&Message { comm, source: first, .. }) = left.first() else { return vec![] };
        let one_source = left.iter().all(|message| message.source == first);
        let (room, some) = (room(&left), 1 + self.choices.below(3));
        let mut named: Vec<Message> = left.iter().copied().filter(|_| self.one_in(some)).collect();
        self.shuffle(&mut named);
        let mut wanted = Vec::new();
        for message in named {
            let mut narrow = Wanted { comm, source: Some(message.source), tag: self.tag_of(&message), room };
            // One with a wildcard for the tag may have taken the last of this tag; it takes another in return.
            if !left.iter().any(|message| narrow.accepts(message)) {
                narrow.tag = None;
            }
            left.remove(
                left.iter().position(|message| narrow.accepts(message)).expect("as many as were named"),
            );
            if one_source && self.one_in(3) {
                narrow.source = None;
            }
            wanted.push(narrow);
        }
        self.shuffle(&mut left);
        let of_tag = self.choices.below(left.len() as u64 + 1) as usize;
        let any = |tag| Wanted { comm, source: None, tag, room };
        wanted.extend(left.iter().enumerate().map(|(at, message)| any((at < of_tag).then_some(message.tag))));
        wanted
    }

    /// One list of all, each in its order.
    fn merge(&mut self, lists: Vec<Vec<Action>>) -> Vec<Action> {
        let mut order: Vec<usize> =
            lists.iter().enumerate().flat_map(|(at, list)| std::iter::repeat_n(at, list.len())).collect();
        self.shuffle(&mut order);
        let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
        order.into_iter().map(|at| lists[at].next().expect("as many as there are")).collect()
    }

    fn wait(&mut self) {
        for actions in &mut self.ranks {
            actions.push(Action::Wait(self.choices.below(u64::MAX)));
        }
    }

    fn barrier(&mut self) {
        self.ranks.iter_mut().for_each(|actions| actions.push(Action::Barrier));
    }
}

fn room(messages: &[Message]) -> usize {
    messages.iter().map(|message| message.bytes).max().unwrap_or(0)
}

/// Puts a list into any order.
pub(super) fn shuffle<T>(choices: &mut Choices, list: &mut [T]) {
    for at in (1..list.len()).rev() {
        list.swap(at, choices.below(at as u64 + 1) as usize);
    }
}
