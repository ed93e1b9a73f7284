//! One simulated process: an incarnation of a rank, with its thread, its side of the control plane, and its
//! links.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar};

use ft_comm::ReadyMemory;
use ft_comm::service::alarm::Alarm;
use ft_comm::service::verdicts::Verdicts;
use ft_comm::time::Time;
use ft_comm::transport::{LinkError, LinkId};
use ft_proto::arbiter::Exit;
use ft_proto::member::Member;
use ft_proto::rank::{Generation, Membership, PeerId, Rank};
use ft_proto::wire::control::{News, ToArbiter};

use super::happening::{ConnId, Happening};
use super::net::EndId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// Ordered, but not there yet.
    Ordered,
    Running,
    Dead,
}

/// What a thread without the baton waits for.
#[derive(Clone, Debug)]
pub(super) enum Blocked {
    /// For its links, the news, or a timeout.
    Wait { writing: Vec<LinkId> },
    /// For the news, or a timeout.
    Idle,
    /// For a link to open.
    Open,
    /// For nothing but its turn.
    Turn,
}

/// How an attempt to open a link ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Opened {
    Link(LinkId),
    Refused,
}

impl Opened {
    pub(super) fn result(opened: Option<Self>, interrupted: bool) -> Result<LinkId, LinkError> {
        match opened {
            Some(Self::Link(link)) => Ok(link),
            Some(Self::Refused) => Err(LinkError::Down("refused".into())),
            None if interrupted => Err(LinkError::Interrupted),
            None => Err(LinkError::Down("no answer".into())),
        }
    }
}

/// A link that another process has opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Knock {
    pub(super) from: PeerId,
    pub(super) generation: Generation,
    pub(super) conn: ConnId,
}

/// What a process says to the launcher, its end included.
#[derive(Debug)]
pub(super) enum Up {
    Message(ToArbiter),
    /// The launcher finds the control link broken.
    Broken,
    /// The operating system's word.
    Exit(Exit),
}

#[derive(Debug)]
pub(super) struct Process {
    pub(super) rank: Rank,
    pub(super) incarnation: u32,
    pub(super) life: Life,
    /// Its thread has been started and has not ended.
    pub(super) thread: bool,
    /// Wakes its thread.
    pub(super) turn: Arc<Condvar>,
    /// Stopped as by SIGSTOP.
    pub(super) stopped: bool,
    /// What happened while it was stopped.
    pub(super) deferred: Vec<Happening>,
    pub(super) calls: u64,
    pub(super) blocked: Option<Blocked>,
    /// Number of the current wait; older ones are over.
    pub(super) token: u64,

    pub(super) control: ControlLine,
    pub(super) heard: Heard,
    pub(super) wires: Wires,
}

/// A process's line to the launcher, with what is under way on it.
#[derive(Debug)]
pub(super) struct ControlLine {
    pub(super) member: Member,
    pub(super) connected: bool,
    pub(super) up: VecDeque<Up>,
    pub(super) up_due: Time,
    pub(super) down: VecDeque<News>,
    pub(super) down_due: Time,
    /// The membership that was taken last from the news.
    pub(super) decided: Option<Membership>,
}

/// What the service of a process has for its caller.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) news: VecDeque<News>,
    pub(super) alarm: Alarm,
    pub(super) verdicts: Verdicts,
    /// Memory that was used for other things before: nobody is to take it for zeros.
    pub(super) ready: ReadyMemory,
    /// News or an accepted link came since the last look, as an eventfd counts.
    pub(super) wake: bool,
    /// The caller listens no more.
    pub(super) closed: bool,
}

impl Default for Heard {
    fn default() -> Self {
        let ready = ReadyMemory::default();
        ready.prepare_here((4..13).flat_map(|bits| [1 << bits; 2]).collect());
        Self {
            news: VecDeque::new(),
            alarm: Alarm::default(),
            verdicts: Verdicts::default(),
            ready,
            wake: false,
            closed: false,
        }
    }
}

/// The links of a process, and those that others have opened to it.
#[derive(Debug, Default)]
pub(super) struct Wires {
    pub(super) generation: Option<Generation>,
    pub(super) addresses: BTreeMap<PeerId, PeerId>,
    pub(super) links: BTreeMap<LinkId, EndId>,
    next_link: u64,
    pub(super) inbox: Vec<Knock>,
    pub(super) opened: Option<Opened>,
}

impl Wires {
    /// Gives an end the name of a link.
    pub(super) fn adopt(&mut self, end: EndId) -> LinkId {
        let link = LinkId(self.next_link);
        self.next_link += 1;
        self.links.insert(link, end);
        link
    }
}

impl Process {
    /// The rank of a spare.
    pub(super) const NO_RANK: Rank = Rank::MAX;

    pub(super) fn new(rank: Rank, incarnation: u32) -> Self {
        Self {
            rank,
            incarnation,
            life: Life::Ordered,
            thread: false,
            turn: Arc::default(),
            stopped: false,
            deferred: vec![],
            calls: 0,
            blocked: None,
            token: 0,
            control: ControlLine {
                member: Member::new(Time(0)),
                connected: false,
                up: VecDeque::new(),
                up_due: Time(0),
                down: VecDeque::new(),
                down_due: Time(0),
                decided: None,
            },
            heard: Heard::default(),
            wires: Wires::default(),
        }
    }

    pub(super) fn alive(&self) -> bool {
        self.life == Life::Running
    }

    /// One line on what it does, for people.
    pub(super) fn status(&self) -> String {
        let Self { rank, incarnation, calls, wires, .. } = self;
        let doing = match &self.blocked {
            _ if self.stopped => "is stopped".to_owned(),
            Some(Blocked::Wait { writing }) if writing.is_empty() => "waits for links or news".to_owned(),
            Some(Blocked::Wait { writing }) => format!("waits to write to {} links", writing.len()),
            Some(Blocked::Idle) => "waits for news".to_owned(),
            Some(Blocked::Open) => "opens a link".to_owned(),
            Some(Blocked::Turn) | None => "runs".to_owned(),
        };
        let generation =
            wires.generation.map_or("no generation".to_owned(), |number| format!("generation {number}"));
        let (links, news) = (wires.links.len(), self.heard.news.len());
        format!(
            "rank {rank}.{incarnation} {doing} in {generation}, {links} links, {news} news, {calls} calls"
        )
    }
}
