//! The driver of the data links: hears the news, waits, and turns failures into errors of calls.
//!
//! Each thing has one owner: the [`Engine`] moves messages, [`Lists`] are the collectives under way, [`Failures`] says who is
//! lost, and [`Told`] what the launcher has said; [`Waiting`] knows how a call waits. None of them knows the others but where a
//! list is given the engine to go on. What they find out the driver settles (`Driver::settle`), in one place.
//!
//! Memory of blocking calls is borrowed for the call only: operations hold ranges of the call's [`Memory`],
//! never references. Before a call returns, its operations are finished, or the driver is interrupted and
//! touches no memory until the next generation, which begins with a new endpoint.

use std::time::Duration;

use crate::service::{Calls, Service};
use crate::transport::Transport;
use ft_proto::endpoint::CONTEXT_DYNAMIC;
use ft_proto::error::CommError;
use ft_proto::lines::Again;
use ft_proto::rank::{Generation, Membership, MessageMode, PeerId, Rank, Seat};
use ft_proto::wire::control::{News, ToArbiter};

mod calls;
mod company;
mod doubt;
mod engine;
mod failures;
mod links;
mod lists;
mod looks;
mod losses;
mod memory;
mod outlasting;
mod seal;
mod short;
mod steps;
mod told;
mod waiting;
mod watchdog;
#[cfg(test)]
mod wires;

use engine::Engine;
pub(crate) use engine::{Letter, Sent, Urgency, is_short};
use failures::Failures;
use lists::Lists;
pub(crate) use lists::{Message, Own, StepList};
pub use memory::Spaces;
pub(crate) use memory::{ActivityId, Apply, Buffer, Buffers, Combine, Extent, Memory, Place, SCRATCH_ALIGN};
pub(crate) use steps::Steps;
use told::Told;
use waiting::Waiting;

/// Longest sleep between looks at the news.
const NAP: Duration = Duration::from_millis(100);

#[derive(Debug)]
enum State {
    Running,
    Interrupted,
    /// All ranks are done and this one has left the job, or it has left without the others.
    Left,
    Ended {
        code: i32,
        message: String,
    },
}

/// See the module.
pub(crate) struct Driver {
    /// Closed before the links are.
    pub(crate) service: Box<dyn Service>,
    /// Counts calls, and looks within them that wait.
    pub(crate) calls: Calls,
    pub(crate) engine: Engine,
    pub(crate) lists: Lists,
    pub(crate) failures: Failures,
    pub(crate) told: Told,
    pub(crate) waiting: Waiting,
    state: State,
    membership: Membership,
    mode: MessageMode,
    /// The rank is done and waits for the others.
    leaving: bool,
    /// Nobody looks for news; see [`Driver::rest`].
    rests: bool,
    /// A failure ends no call: whoever waits calls for a repair, and waits on.
    patient: bool,
    /// The generation since which operations of the program may be under way.
    since: Generation,
    /// Messages that are to be sent again when the repair is over.
    again: Vec<(Rank, Vec<Again<Place>>)>,
}

impl Driver {
    pub(crate) fn new(transport: Box<dyn Transport>, service: Box<dyn Service>, me: Rank) -> Self {
        Self {
            calls: service.calls(),
            service,
            engine: Engine::new(transport, me),
            lists: Lists::default(),
            failures: Failures::default(),
            told: Told::default(),
            waiting: Waiting::default(),
            state: State::Running,
            membership: Membership::default(),
            mode: MessageMode::Nop,
            leaving: false,
            rests: false,
            patient: false,
            since: 0,
            again: vec![],
        }
    }

    pub(crate) fn generation(&self) -> Generation {
        self.membership.generation
    }

    /// How many ranks there are, in all or of those that compute, and which one this is.
    pub(crate) fn count(&self, all: bool) -> (usize, Rank) {
        (if all { self.membership.seats.len() } else { self.membership.compute }, self.engine.me)
    }

    pub(crate) fn membership(&self) -> &Membership {
        &self.membership
    }

    pub(crate) fn submit(&self, message: ToArbiter) {
        self.service.submit(message);
    }

    /// Leaves out what is done for the case of a failure, or does it again: to measure what that costs.
    pub(crate) fn rest(&mut self, rests: bool) {
        self.rests = rests;
        self.service.rest(rests);
    }

    /// So many ranks share the host of this one, itself included.
    pub(crate) fn beside(&mut self, ranks: usize) {
        self.waiting.patience = self.engine.links.transport.patience(ranks);
    }

    /// Takes the seat of rank `me` of a world of so many ranks, which is about to be joined.
    pub(crate) fn seat(&mut self, me: Rank, compute: usize, total: usize) {
        self.engine.me = me;
        self.beside(total);
        let nobody = Seat { peer: PeerId::LAUNCHER, incarnation: 0, address: String::new() };
        (self.membership.seats, self.membership.compute) = (vec![nobody; total], compute);
    }

    fn note(&mut self, news: News) {
        if matches!(news, News::Failed { .. }) || matches!(news, News::Ended { code, .. } if code != 0) {
            self.engine.links.transport.has_losses();
        }
        match news {
            News::Failed { generation, ranks } if generation == self.generation() => {
                if self.mode == MessageMode::Continue {
                    return self.bury(&ranks);
                }
                self.failures.add(&ranks);
                if let State::Running = self.state {
                    self.interrupt();
                }
            }
            News::Agreed { context, number, verdict, .. } => {
                drop(self.told.agreed.insert(context, (number, verdict)));
            }
            News::Revoked { context, .. } => self.revoked(context),
            News::Ended { .. } if matches!(self.state, State::Left) => {}
            News::Ended { code, message } => {
                self.take_back();
                self.state = State::Ended { code, message };
            }
            News::Finalized => self.told.finalized = true,
            News::Cut { spec, .. } => self.told.cuts.push(spec),
            News::Failed { .. }
            | News::Welcome(_)
            | News::Beat
            | News::Decided(_)
            | News::Asked { .. }
            | News::Die
            | News::Save
            | News::Prepare { .. } => {}
        }
    }

    /// What was offered of memory that was lent is not to be read any more: calls end in the middle.
    pub(crate) fn take_back(&mut self) {
        self.engine.seal.change();
    }

    /// Calls end from now on, and with them what they have lent.
    fn interrupt(&mut self) {
        self.take_back();
        self.state = State::Interrupted;
    }

    fn failure(&self) -> CommError {
        let generation = self.generation();
        match &self.state {
            State::Ended { code, message } => CommError::Ended { code: *code, message: message.clone() },
            State::Interrupted => match self.failures.news() {
                ranks if ranks.is_empty() => CommError::LinkBroke { generation },
                ranks => CommError::PeerFailed { ranks, generation },
            },
            State::Left => CommError::Left,
            State::Running => unreachable!("only asked after a failure"),
        }
    }

    fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended { .. } | State::Left)
    }

    /// This rank leaves the job: every later call returns [`CommError::Left`].
    pub(crate) fn leave(&mut self) {
        self.take_back();
        self.state = State::Left;
    }

    /// An error if this rank has left the job, or the job has ended: nobody would answer.
    pub(crate) fn check_end(&self) -> Result<(), CommError> {
        if self.has_ended() { Err(self.failure()) } else { Ok(()) }
    }

    /// Looks at the news; an error if calls are interrupted.
    pub(crate) fn check(&mut self) -> Result<(), CommError> {
        if !self.rests && self.service.has_news() {
            while let Some(news) = self.service.take_news() {
                self.note(news);
            }
        }
        match self.state {
            State::Running => Ok(()),
            State::Interrupted | State::Left | State::Ended { .. } => Err(self.failure()),
        }
    }

    /// Starts the generation of `membership` with new links and nothing under way, but for what [goes on](outlasting) in it.
    pub(crate) fn change(&mut self, membership: Membership) {
        let before = membership.before.iter().position(|before| *before == Some(self.engine.me));
        let me = before.unwrap_or(self.engine.me);
        if self.engine.endpoint.outlasts_repairs() && me == self.engine.me {
            self.again.clear();
            self.lists.wait_for_repair(&mut self.engine);
            self.engine.go_on(&membership);
        } else {
            self.engine.begin(me, &membership);
            self.lists.clear();
            self.since = membership.generation;
        }
        self.service.alarm().entered(membership.generation);
        self.service.verdicts().entered(membership.generation);
        self.failures.begin(&membership, CONTEXT_DYNAMIC);
        self.told.agreed.clear();
        self.membership = membership;
        if !self.has_ended() {
            self.state = State::Running;
        }
    }
}
