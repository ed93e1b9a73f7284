//! Communicators: the calls that a program makes.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::core::{Core, Door, Guard, Inside, Lasting, Made, push_living};
use crate::driver::{Extent, Letter, Memory, Place, Steps, Urgency};
use crate::request::{Aim, Request, State};
use ft_proto::collective::{self, Step};
use ft_proto::endpoint::{Mode, Outcome};
use ft_proto::error::CommError;
use ft_proto::group::Group;
use ft_proto::matching::{Envelope, Pattern};
use ft_proto::plain::Plain;
use ft_proto::rank::{Generation, Rank, Source, Status, Tag, TagSel};
use ft_proto::topology::Grid;

mod attributes;
mod checking;
mod collectives;
mod exchange;
mod making;
mod messages;
mod neighbors;
mod nonblocking;
mod numbered;
mod record;
mod schedule;
mod survivors;
mod values;

pub use exchange::{Part, Piece, Plan, PlanRecord, PlanRequest};
pub use messages::Message;
pub use neighbors::Cartesian;
pub use nonblocking::CollectiveRequest;
pub use numbered::CollectiveRecord;
pub use record::CommunicatorRecord;
pub use schedule::{Schedule, ScheduleRequest};

/// A group of ranks with a context of its own: messages of one communicator never meet those of another.
///
/// After a failure every call returns [`CommError::PeerFailed`] until `World::repair` has returned. Handles then go on in the
/// next generation. A process that replaces a lost one has no handle of a communicator that the program has made
/// ([`Communicator::dup`], [`Communicator::split`], [`Communicator::create`]): it makes one from a [`CommunicatorRecord`] that others have, or all
/// make the communicator again. Where ranks have closed up ([`OnFailure::Shrink`](ft_proto::rank::OnFailure::Shrink)) such a communicator answers [`CommError::Stale`], and is to be made again.
/// Cloning gives another handle of the same communicator.
///
/// # Semantics of sends (MPI 4.1, section 3.4)
/// - *Standard* ([`Communicator::send`], [`Communicator::isend`]): up to [`crate::EAGER_BYTES_MAX`] bytes leave at once, as
///   long as the receiver has not more than its credit of unreceived messages from this rank; a longer one leaves when
///   its receive has matched. A program must not rely on either.
/// - *Synchronous* ([`Communicator::ssend`], [`Communicator::issend`]): ends after its receive has matched. (A
///   message to oneself ends at once.)
/// - *Buffered* ([`Communicator::bsend`]): ends at once; a copy is kept, up to [`crate::BUFFERED_BYTES_MAX`] bytes in all.
/// - *Ready* is the same as standard.
///
/// # Progress
/// Messages move while the program is in a call of this crate, whichever it is. A lone [`Communicator::isend`] leaves
/// at once; further small ones to the same rank are gathered and leave with the next call that waits, tests or
/// receives.
///
/// # Example
/// ```
/// use ft_comm::{Layout, Op, Piece, World};
///
/// let mut world = World::init()?; // without ftrun: a job of one rank
/// let comm = world.comm().clone();
/// let (rank, size) = (comm.rank(), comm.size());
/// let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
///
/// // A sum goes on while the last column of a matrix of 3 rows and 4 columns goes to the right neighbor's first.
/// let sum = comm.iallreduce(vec![rank as u64], Op::Sum)?;
/// let column = |at| Layout::strided(at, 3, 1, 4).expect("it is small");
/// let out = Piece { peer: right, tag: 0, layout: column(3) };
/// let into = Piece { peer: left, tag: 0, layout: column(0) };
/// let halo = comm.plan::<f64>(&[out], &[into])?; // planned once, run as often as wanted
/// let mut matrix = [0.0; 12];
/// halo.run(&[rank as f64; 12], &mut matrix)?;
/// assert_eq!(matrix[4], left as f64);
/// assert_eq!(sum.wait()?, [(0..size as u64).sum()]);
///
/// // The ranks of equal parity have messages of their own.
/// let half = comm.split(Some(rank as u32 % 2), 0)?.expect("it has a color");
/// let mut first = [rank];
/// half.bcast(&mut first, 0)?;
/// assert_eq!(first, [rank % 2]);
/// world.finalize(Vec::new())?;
/// # Ok::<(), ft_comm::CommError>(())
/// ```
#[derive(Clone)]
pub struct Communicator {
    core: Door,
    shared: Rc<Shared>,
}

/// Who is in a communicator.
#[derive(Debug)]
pub(crate) struct Members {
    /// This process among them.
    me: Option<Rank>,
    /// World rank of each rank.
    pub(crate) world: Rc<[Rank]>,
    pub(crate) group: Group,
    /// The host of each rank in this generation, as a number; empty if all are on one.
    hosts: Vec<usize>,
}

fn first_ranks(count: usize) -> Group {
    Group::new((0..count).collect()).expect("counted ranks differ")
}

impl Lasting for Shared {
    fn renumber(&self, compute: usize, total: usize, me: Rank, hosts: &[usize]) -> (u32, Rc<[Rank]>) {
        let ranks = if self.scope == Scope::All { total } else { compute };
        let members = Rc::new(Members::new(first_ranks(ranks), me, hosts));
        let world = members.world.clone();
        *self.members.borrow_mut() = members;
        self.lists.borrow_mut().clear();
        (self.context, world)
    }
}

impl Made for Shared {
    fn goes_on(&self, hosts: &[usize]) -> (u32, Rc<[Rank]>, Option<u32>) {
        let before = self.members.borrow().clone();
        let members = Rc::new(Members { hosts: Members::hosts(&before.group, hosts), ..before.of_group() });
        let world = members.world.clone();
        *self.members.borrow_mut() = members;
        self.lists.borrow_mut().clear();
        (self.context, world, self.parent.get())
    }

    fn ends(&self) {
        self.has_ended.set(true);
    }

    fn lined(&self) -> (u32, u32) {
        (self.context, self.lined.get())
    }

    fn set_lined(&self, number: u32) {
        self.lined.set(number);
    }

    fn any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}

impl Members {
    /// `hosts` are those of the ranks of the world.
    fn new(group: Group, world_rank: Rank, hosts: &[usize]) -> Self {
        let hosts = Self::hosts(&group, hosts);
        Self { me: group.rank_of(world_rank), world: group.ranks().into(), group, hosts }
    }

    /// The hosts of the ranks of a group, of those of the world.
    fn hosts(group: &Group, hosts: &[usize]) -> Vec<usize> {
        let mut hosts: Vec<usize> =
            group.ranks().iter().filter_map(|rank| hosts.get(*rank).copied()).collect();
        if hosts.iter().all(|host| *host == hosts[0]) {
            hosts.clear();
        }
        hosts
    }

    /// The same, of which nothing is said of hosts.
    fn of_group(&self) -> Self {
        Self { me: self.me, world: self.world.clone(), group: self.group.clone(), hosts: vec![] }
    }

    /// Rank in the communicator of a rank of the world.
    pub(crate) fn local(&self, world: Rank) -> Rank {
        if self.world.get(world) == Some(&world) {
            return world; // the ranks of most communicators begin like the world's
        }
        self.group.rank_of(world).expect("messages of a communicator come from its members")
    }

    /// The status of a finished operation, with ranks of the communicator.
    pub(crate) fn status(&self, outcome: Outcome) -> Result<Status, CommError> {
        match outcome {
            Outcome::Done(envelope) => Ok(self.found(envelope)),
            Outcome::Truncated { message, room } => Err(CommError::Truncated {
                from: self.local(message.source as Rank),
                message_bytes: message.length as usize,
                buffer_bytes: room,
            }),
            Outcome::Failed(_) | Outcome::Revoked => unreachable!("the driver makes errors of these"),
        }
    }

    #[inline]
    pub(crate) fn found(&self, envelope: Envelope) -> Status {
        let source = self.local(envelope.source as Rank);
        Status { source, tag: envelope.tag, bytes: envelope.length as usize }
    }
}

/// What all handles of a communicator share.
struct Shared {
    core: Door,
    members: RefCell<Rc<Members>>,
    context: u32,
    /// Collectives begun in a generation; their number is their tag.
    sequence: Cell<(Generation, u32)>,
    /// The same of those that may cross recovery lines, since the beginning of the job.
    lined: Cell<u32>,
    /// The same of those of a part of the program that can be done again alone, since it began.
    taped: Cell<(u32, u32)>,
    /// Step lists of calls that were made before, as programs repeat themselves.
    lists: RefCell<Vec<(ListKey, Steps)>>,
    /// Agreements begun in a generation.
    agreements: Cell<(Generation, u32)>,
    scope: Scope,
    /// The context that it was made from, if that is revoked with it.
    parent: Cell<Option<u32>>,
    /// Ranks are others now.
    has_ended: Cell<bool>,
    name: RefCell<String>,
    /// The grid that its ranks form.
    grid: RefCell<Option<Rc<Grid>>>,
    attributes: RefCell<attributes::Attributes>,
}

/// How long a communicator lives, and whom it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// As long as the world, all ranks that compute.
    Compute,
    /// As long as the world, all ranks.
    All,
    /// As long as ranks are what they were in this generation: some that the program has chosen.
    Chosen(Generation),
}

/// What a step list depends on beside the communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ListKey {
    operation: collective::Operation,
    len: usize,
    root: Rank,
    element: usize,
    commutative: bool,
    /// Which table of algorithms it is from.
    table: u32,
}

/// Step lists that a communicator keeps.
const LISTS_MAX: usize = 8;

impl Drop for Shared {
    fn drop(&mut self) {
        if let (Scope::Chosen(_), Some(mut core)) = (self.scope, self.core.tidy())
            && !self.has_ended.get()
        {
            core.driver.close_context(self.context);
        }
    }
}

impl std::fmt::Debug for Communicator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let members = self.members();
        f.debug_struct("Communicator")
            .field("context", &self.shared.context)
            .field("rank", &members.me)
            .field("world", &members.world)
            .finish()
    }
}

impl Communicator {
    /// A communicator that lives as long as the world: of all ranks, or of those that compute.
    pub(crate) fn of_world(core: Door, scope: Scope, context: u32) -> Self {
        let (ranks, me) = core.peek().driver.count(scope == Scope::All);
        let comm = Self::over(core, first_ranks(ranks), me, context, scope);
        let shared: Rc<dyn Lasting> = comm.shared.clone();
        comm.core.set(|core| push_living(&mut core.lasting, &shared));
        comm
    }

    fn over(core: Door, group: Group, world_rank: Rank, context: u32, scope: Scope) -> Self {
        let hosts = core.peek().driver.membership().hosts().unwrap_or_default();
        let members = Rc::new(Members::new(group, world_rank, &hosts));
        core.set(|core| core.driver.failures.enrol(context, members.world.clone()));
        let shared = Rc::new(Shared {
            core: core.clone(),
            members: RefCell::new(members),
            context,
            sequence: Cell::new((0, 0)),
            lined: Cell::new(0),
            taped: Cell::new((0, 0)),
            lists: RefCell::default(),
            agreements: Cell::new((0, 0)),
            scope,
            parent: Cell::new(None),
            has_ended: Cell::new(false),
            name: RefCell::default(),
            grid: RefCell::default(),
            attributes: RefCell::default(),
        });
        Self { core, shared }
    }

    #[inline]
    pub(crate) fn members(&self) -> Rc<Members> {
        self.shared.members.borrow().clone()
    }

    /// Rank of this process in the communicator.
    ///
    /// # Panics
    /// This process is no member (a parity rank asks for its rank among those that compute).
    pub fn rank(&self) -> Rank {
        self.shared.members.borrow().me.expect("this process is a member of the communicator")
    }

    /// For a layer above whose calls consist of several of this crate and run code of the program between them, as
    /// serializers: a panic that unwinds while the guard lives, and is caught, leaves this rank as one within a call does
    /// ([`CommError::Panicked`]), so that the other ranks do not wait for the rest for ever.
    ///
    /// # Errors
    /// [`CommError::Panicked`], [`CommError::Nested`].
    pub fn guard(&self) -> Result<Guard, CommError> {
        self.core.guard()
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.shared.members.borrow().world.len()
    }

    /// The ranks as a group, by their ranks in the world (`MPI_Comm_group`).
    pub fn group(&self) -> Group {
        self.shared.members.borrow().group.clone()
    }

    /// Collectives so far that may cross recovery lines.
    pub(crate) fn lined(&self) -> u32 {
        self.shared.lined.get()
    }

    pub(crate) fn set_lined(&self, number: u32) {
        self.shared.lined.set(number);
    }

    fn world(&self, rank: Rank) -> Result<Rank, CommError> {
        let members = self.shared.members.borrow();
        let size = members.world.len();
        members.world.get(rank).copied().ok_or(CommError::RankOutOfRange { rank, size })
    }

    #[inline]
    fn pattern(&self, source: Source, tag: TagSel) -> Result<Pattern, CommError> {
        let source = match source {
            Source::Any => None,
            Source::Rank(rank) => Some(self.world(rank)? as u32),
        };
        let tag = match tag {
            TagSel::Any => None,
            TagSel::Tag(tag) => Some(tag),
        };
        Ok(Pattern { context: self.shared.context, source, tag })
    }

    /// Every call begins here: an injected failure strikes, and a communicator of an older generation is refused.
    #[inline]
    fn enter(&self, core: &mut Core) -> Result<(), CommError> {
        core.enter()?;
        self.current(core)
    }

    fn current(&self, core: &mut Core) -> Result<(), CommError> {
        match self.shared.scope {
            Scope::Chosen(made) if self.shared.has_ended.get() => {
                core.driver.check()?;
                Err(CommError::Stale { made, now: core.generation() })
            }
            _ if core.driver.failures.is_revoked(self.shared.context) => {
                core.driver.check()?;
                Err(CommError::Revoked { generation: core.generation() })
            }
            _ => Ok(()),
        }
    }

    #[inline]
    fn handle<T: Plain>(&self, core: &Core, aim: Aim, state: State<T>) -> Request<T> {
        Request::new(self.clone(), core.driver.age(self.shared.context), aim, state)
    }

    pub(crate) fn door(&self) -> &Door {
        &self.core
    }

    pub(crate) fn context(&self) -> u32 {
        self.shared.context
    }

    /// The status of a message of it, with ranks of the communicator.
    #[inline]
    pub(crate) fn found(&self, envelope: Envelope) -> Status {
        self.shared.members.borrow().found(envelope)
    }
}

/// All of a memory.
fn all(bytes: &[u8]) -> Extent {
    Extent::Range(0..bytes.len())
}
