//! Step lists under way: the executor of collectives and of exchanges.
//!
//! A list goes on whenever bytes move, in whatever call the program is, so a non-blocking collective needs no thread
//! of its own. Steps start in order; [`hazard`] says which wait.

use std::rc::Rc;

use ft_proto::collective::{Order, Part, Space, Step, hazard};
use ft_proto::endpoint::{Mode, OpId, Outcome};
use ft_proto::error::CommError;
use ft_proto::matching::Pattern;
use ft_proto::rank::{Rank, Tag};

use super::memory::{ActivityId, Apply, Buffer, Combine, Extent, Memory, Place};
use super::{Driver, Urgency};
use ft_proto::layout::Layout;

/// What an exchange says of each of its steps beyond the step itself.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) tag: Tag,
    /// Elements of the space, in bytes, if they are not one range.
    pub(crate) layout: Option<Rc<Layout>>,
}

/// A step list and how its messages are matched.
pub(crate) struct StepList {
    /// What the program called, for messages.
    pub(crate) name: &'static str,
    pub(crate) steps: Rc<[Step]>,
    /// World ranks of the communicator's ranks.
    pub(crate) world: Rc<[Rank]>,
    pub(crate) context: u32,
    /// The tag of all messages, where `messages` says nothing else.
    pub(crate) tag: Tag,
    /// One for each step of an exchange, whose steps do not depend on each other; none for collectives.
    pub(crate) messages: Option<Rc<[Message]>>,
    pub(crate) element: usize,
    /// What [`Step::Apply`] does.
    pub(crate) apply: Option<Rc<Apply>>,
}

/// Input and buffer that a step list owned.
type Buffers = (Option<Box<dyn Buffer>>, Option<Box<dyn Buffer>>);

enum Role {
    Send,
    Receive,
    /// Received aside, because what it is combined with is still being sent.
    Aside(Order),
}

struct Pending {
    op: OpId,
    step: usize,
    /// World rank.
    peer: Rank,
    /// Length of the message in bytes, as this rank has it.
    due: usize,
    role: Role,
}

/// A step list under way.
pub(super) struct Running {
    list: StepList,
    at: usize,
    pending: Vec<Pending>,
    error: Option<CommError>,
}

fn part_of(step: &Step) -> &Part {
    match step {
        Step::Send { part, .. }
        | Step::Recv { part, .. }
        | Step::RecvReduce { part, .. }
        | Step::Copy { to: part, .. }
        | Step::Reduce { part, .. } => part,
        Step::Apply { .. } | Step::Fence => unreachable!("it has no message"),
    }
}

impl Running {
    fn is_done(&self) -> bool {
        self.error.is_some() || (self.at == self.list.steps.len() && self.pending.is_empty())
    }

    fn under_way(&self) -> impl Iterator<Item = &Step> + Clone {
        self.pending.iter().map(|pending| &self.list.steps[pending.step])
    }

    fn sends_from(&self, part: &Part) -> bool {
        hazard::read(part, self.under_way())
    }

    /// Whether a step has to wait for one that is under way.
    fn blocked(&self, step: &Step) -> bool {
        self.list.messages.is_none() && hazard::must_wait(step, self.under_way())
    }
}

impl Driver {
    /// Starts a step list. Memory that is not given is lent by every call until [`Driver::wait_activity`] returns.
    pub(crate) fn start(
        &mut self,
        list: StepList,
        input: Option<Box<dyn Buffer>>,
        buffer: Option<Box<dyn Buffer>>,
        combine: Option<Box<Combine<'static>>>,
        memory: &mut Memory<'_>,
    ) -> Result<ActivityId, CommError> {
        self.check()?;
        if let Some(error) = self.broken(&list) {
            return Err(error);
        }
        let scratch = |part: &Part| if part.space == Space::Scratch { part.range.end } else { 0 };
        let needed = |step: &Step| {
            let (reads, changes) = hazard::parts(step);
            reads.iter().chain(changes).map(scratch).max().unwrap_or(0)
        };
        let elements = list.steps.iter().map(needed).max().unwrap_or(0);
        let id = self.stock.spaces_with(input, buffer, elements * list.element, combine);
        let pending = Vec::with_capacity(list.steps.len().min(8));
        self.running.push((id, Box::new(Running { list, at: 0, pending, error: None })));
        self.advance(id, memory)?;
        Ok(id)
    }

    fn running(&self, id: ActivityId) -> Option<&Running> {
        self.running.iter().find(|(other, _)| *other == id).map(|(_, running)| &**running)
    }

    /// Whether a step list is done, well or not.
    pub(crate) fn is_done(&self, id: ActivityId) -> bool {
        self.running(id).is_none_or(Running::is_done)
    }

    /// A rank that a step list waits for a message from.
    pub(super) fn awaited(&self, id: ActivityId) -> Option<Rank> {
        let receives = |p: &&Pending| !matches!(p.role, Role::Send);
        self.running(id)?.pending.iter().find(receives).map(|p| p.peer)
    }

    /// The ranks that a step list waits for: those whose messages are to come, else those that are to take its own.
    pub(super) fn awaited_all(&self, id: ActivityId) -> Vec<Rank> {
        let Some(running) = self.running(id) else { return vec![] };
        let receives: Vec<&Pending> =
            running.pending.iter().filter(|p| !matches!(p.role, Role::Send)).collect();
        let chosen = if receives.is_empty() { running.pending.iter().collect() } else { receives };
        let mut ranks: Vec<Rank> = chosen.into_iter().map(|p| p.peer).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    /// Takes a step list that is done; gives its own input and buffer back.
    pub(crate) fn finish_activity(&mut self, id: ActivityId) -> Result<Buffers, CommError> {
        let at = self.running.iter().position(|(other, _)| *other == id);
        let error = at.and_then(|at| self.running.swap_remove(at).1.error);
        let spaces = self.stock.spaces.remove(id);
        let (input, buffer) = match spaces {
            Some(spaces) => {
                self.stock.put_back(spaces.scratch);
                (spaces.input, spaces.buffer)
            }
            None => (None, None),
        };
        error.map_or(Ok((input, buffer)), Err)
    }

    /// Nobody waits for a step list any more; it goes on behind the program's back.
    pub(crate) fn detach_activity(&mut self, id: ActivityId) {
        if self.is_done(id) {
            drop(self.finish_activity(id));
        } else {
            self.detached_activities.push(id);
        }
    }

    /// Whether a step list of the communicator with this context is under way.
    pub(super) fn uses_context(&self, context: u32) -> bool {
        self.running.iter().any(|(_, running)| running.list.context & !1 == context)
    }

    /// Moves every step list as far as it goes.
    pub(super) fn advance_all(&mut self, memory: &mut Memory<'_>) -> Result<(), CommError> {
        // A list may be waited for by nobody, and end here.
        for at in (0..self.running.len()).rev() {
            if let Some((id, _)) = self.running.get(at) {
                self.advance(*id, memory)?;
            }
        }
        let detached = std::mem::take(&mut self.detached_activities);
        detached.into_iter().for_each(|id| self.detach_activity(id));
        let closing = std::mem::take(&mut self.closing);
        closing.into_iter().for_each(|context| self.close_context(context));
        Ok(())
    }

    /// Step lists that `which` chooses end with an error.
    pub(super) fn break_off_lists(
        &mut self,
        which: impl Fn(&StepList) -> bool,
        error: impl Fn() -> CommError,
    ) {
        for (_, running) in self.running.iter_mut().filter(|(_, running)| which(&running.list)) {
            if !running.is_done() {
                running.error = Some(error());
                self.broken_off = true;
            }
        }
    }

    /// Why a step list can come to no good end.
    fn broken(&self, list: &StepList) -> Option<CommError> {
        let generation = self.generation();
        if self.is_revoked(list.context & !1) {
            return Some(CommError::Revoked { generation });
        }
        let needs_all = list.messages.is_none();
        let ranks = if needs_all { self.failed_of(&list.world) } else { vec![] };
        (!ranks.is_empty()).then_some(CommError::PeerFailed { ranks, generation })
    }

    /// Gives up the operations of step lists that have been broken off.
    pub(super) fn advance_broken_off(&mut self, memory: &mut Memory<'_>) {
        let broken = |running: &Running| running.error.is_some();
        let ops: Vec<OpId> = self
            .running
            .iter_mut()
            .filter(|(_, running)| broken(running))
            .flat_map(|(_, running)| running.pending.drain(..).map(|pending| pending.op))
            .collect();
        ops.into_iter().for_each(|op| self.abandon(op, memory));
    }

    /// Moves a step list as far as it goes.
    fn advance(&mut self, id: ActivityId, memory: &mut Memory<'_>) -> Result<(), CommError> {
        let Some(at) = self.running.iter().position(|(other, _)| *other == id) else { return Ok(()) };
        let mut running = self.running.swap_remove(at).1;
        let result = self.advance_running(id, &mut running, memory);
        if !running.is_done() {
            // News of a failure may have come just now, when this list was not among the others.
            running.error = self.broken(&running.list);
        }
        if running.error.is_some() {
            for pending in std::mem::take(&mut running.pending) {
                self.abandon(pending.op, memory);
            }
        }
        self.running.push((id, running));
        result
    }

    fn advance_running(
        &mut self,
        id: ActivityId,
        running: &mut Running,
        memory: &mut Memory<'_>,
    ) -> Result<(), CommError> {
        while !running.is_done() {
            match running.list.steps.get(running.at) {
                Some(step) if !running.blocked(step) => {
                    self.start_step(id, running, memory)?;
                    running.at += 1;
                }
                _ => {
                    if !self.reap(id, running, memory) {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes what has finished from the pending operations; false if nothing has.
    fn reap(&mut self, id: ActivityId, running: &mut Running, memory: &mut Memory<'_>) -> bool {
        let before = running.pending.len();
        let mut at = 0;
        while at < running.pending.len() {
            let op = running.pending[at].op;
            let step = &running.list.steps[running.pending[at].step];
            if !self.endpoint.is_finished(op) {
                at += 1;
                continue;
            }
            if let Role::Aside(_) = running.pending[at].role
                && running.sends_from(part_of(step))
            {
                at += 1;
                continue;
            }
            let Pending { due, role, .. } = running.pending.remove(at);
            let part = part_of(step);
            let outcome = self.endpoint.finish(op).map_or(Ok(None), |outcome| self.well(outcome).map(Some));
            let error = match outcome {
                Ok(outcome) => outcome.and_then(|outcome| wrong(outcome, step, due, running.list.name)),
                Err(error) => Some(error),
            };
            if error.is_some() {
                running.error = error;
                self.moves += 1;
                self.stock.forget(op);
                return true;
            }
            match role {
                Role::Aside(order) => {
                    let element = running.list.element;
                    let target = part.range.start * element..part.range.end * element;
                    self.stock.combine_aside(op, id, part.space, target, order, memory);
                }
                Role::Send | Role::Receive => drop(self.stock.forget(op)),
            }
        }
        let reaped = running.pending.len() < before;
        self.moves += u64::from(reaped);
        reaped
    }

    /// Starts the next step, which nothing blocks.
    fn start_step(
        &mut self,
        id: ActivityId,
        running: &mut Running,
        memory: &mut Memory<'_>,
    ) -> Result<(), CommError> {
        let (list, step) = (&running.list, running.at);
        let element = list.element;
        let bytes = |part: &Part| part.range.start * element..part.range.end * element;
        let message = list.messages.as_ref().map(|messages| &messages[step]);
        let extent = |part: &Part| match message {
            Some(Message { layout: Some(layout), .. }) => Extent::Layout(layout.clone()),
            _ => Extent::Range(bytes(part)),
        };
        let tag = message.map_or(list.tag, |message| message.tag);
        match &list.steps[step] {
            Step::Send { to, part } => {
                let (peer, place) = (list.world[*to], Place::Part(id, part.space, extent(part)));
                let due = self.stock.len(&place);
                let op = self.send(peer, list.context, tag, place, Mode::Standard, Urgency::Now, memory)?;
                running.pending.push(Pending { op, step, peer, due, role: Role::Send });
            }
            Step::Recv { from, part } => {
                let place = Place::Part(id, part.space, extent(part));
                self.receive_step(running, *from, tag, place, Role::Receive, memory)?;
            }
            Step::RecvReduce { from, part, order } => {
                let (from, order) = (*from, *order);
                let (place, role) = if running.sends_from(part) {
                    let length = part.len() * element;
                    (Place::Aside(self.stock.scratch(length), length), Role::Aside(order))
                } else {
                    (self.stock.fold(id, part.space, bytes(part), element, order), Role::Receive)
                };
                self.receive_step(running, from, tag, place, role, memory)?;
            }
            Step::Copy { from, to } => self.local(id, from, to, element, None, memory),
            Step::Reduce { other, part, order } => self.local(id, other, part, element, Some(*order), memory),
            Step::Apply { number, .. } => {
                let apply = list.apply.as_deref().expect("a schedule has its computations");
                self.stock.apply(id, *number, apply, memory);
            }
            Step::Fence => {}
        }
        Ok(())
    }

    fn receive_step(
        &mut self,
        running: &mut Running,
        from: Rank,
        tag: Tag,
        place: Place,
        role: Role,
        memory: &mut Memory<'_>,
    ) -> Result<(), CommError> {
        let peer = running.list.world[from];
        let due = self.stock.len(&place);
        let pattern = Pattern { context: running.list.context, source: Some(peer as u32), tag: Some(tag) };
        let op = self.receive(pattern, place, memory)?;
        running.pending.push(Pending { op, step: running.at, peer, due, role });
        Ok(())
    }

    fn local(
        &mut self,
        id: ActivityId,
        from: &Part,
        to: &Part,
        element: usize,
        order: Option<Order>,
        memory: &mut Memory<'_>,
    ) {
        let mut aside = self.stock.scratch(0);
        if let Some(spaces) = self.stock.spaces.get_mut(id) {
            spaces.local(from, to, element, order, memory, &mut aside);
        }
        self.stock.put_back(aside);
    }
}

/// The error of a step of the call `name` whose message has not the length that is due.
fn wrong(outcome: Outcome, step: &Step, due: usize, name: &str) -> Option<CommError> {
    let (Step::Recv { from, .. } | Step::RecvReduce { from, .. }) = step else { return None };
    match outcome {
        Outcome::Done(envelope) if envelope.length as usize != due => {
            let bytes = envelope.length;
            Some(CommError::Count(format!("{name} got {bytes} bytes from rank {from}, {due} were due")))
        }
        Outcome::Truncated { message, .. } => {
            let message_bytes = message.length as usize;
            Some(CommError::Truncated { from: *from, message_bytes, buffer_bytes: due })
        }
        _ => None,
    }
}
