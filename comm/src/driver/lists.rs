//! Step lists under way: the executor of collectives and of exchanges.
//!
//! A list goes on whenever bytes move, in whatever call the program is, so a non-blocking collective needs no thread
//! of its own. Steps start in order; [`hazard`] says which wait.

use std::rc::Rc;

use ft_proto::cells::Label;
use ft_proto::collective::{Order, Span, Step, hazard};
use ft_proto::endpoint::{LINED_TAG, Mode, OpId, Outcome};
use ft_proto::error::CommError;
use ft_proto::lines::{self, Signature};
use ft_proto::matching::{Envelope, Pattern};
use ft_proto::rank::{Rank, Tag};
use ft_proto::shared::CELL_BYTES;

use super::engine::{Engine, Letter, Sent, Urgency};
use super::memory::{ActivityId, Apply, Buffer, Buffers, Combine, Extent, Memory, Place};
use super::short::Walk;
use super::steps::Steps;
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
    pub(crate) steps: Steps,
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

impl StepList {
    /// Whether it is a collective, which needs all its ranks, and no exchange, whose messages end one by one.
    pub(super) fn is_collective(&self) -> bool {
        self.messages.is_none()
    }

    /// Whether a message of so many bytes may come into a cell, and goes into one if its rank is told nothing else.
    pub(super) fn may_come_beside(&self, bytes: usize) -> bool {
        self.is_collective() && bytes <= CELL_BYTES
    }

    /// Whether it can come to no good end without `rank`.
    pub(super) fn needs(&self, rank: Rank) -> bool {
        self.is_collective() && self.world.contains(&rank)
    }
}

/// What a step list owns; what it does not own every call lends.
#[derive(Default)]
pub(crate) struct Own {
    pub(crate) input: Option<Box<dyn Buffer>>,
    pub(crate) buffer: Option<Box<dyn Buffer>>,
    pub(crate) combine: Option<Box<Combine<'static>>>,
}

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
struct Running {
    list: StepList,
    at: usize,
    pending: Vec<Pending>,
    error: Option<CommError>,
    /// Of an exchange whose messages may cross recovery lines, and that owns its memory.
    lined: Option<Box<LinedExchange>>,
}

/// What a line needs of an exchange that is under way there.
#[derive(Default)]
struct LinedExchange {
    /// The state of this rank has a record of it.
    has_record: bool,
    /// Messages that it has received.
    came: Vec<(Envelope, Place)>,
}

fn part_of(step: &Step) -> &Span {
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

    fn sends_from(&self, part: &Span) -> bool {
        hazard::read(part, self.under_way())
    }

    /// Whether a step has to wait for one that is under way.
    fn blocked(&self, step: &Step) -> bool {
        self.list.messages.is_none() && hazard::must_wait(step, self.under_way())
    }

    /// Goes as far as it can.
    fn advance(&mut self, id: ActivityId, engine: &mut Engine, memory: &mut Memory<'_>) {
        while !self.is_done() {
            match self.list.steps.get(self.at) {
                Some(step) if !self.blocked(step) => {
                    self.start_step(id, engine, memory);
                    self.at += 1;
                }
                _ => {
                    if !self.reap(id, engine, memory) {
                        break;
                    }
                }
            }
        }
        self.give_up(engine, memory);
    }

    /// If it has an error its operations are nobody's.
    fn give_up(&mut self, engine: &mut Engine, memory: &mut Memory<'_>) {
        if self.error.is_some() {
            self.pending.drain(..).for_each(|pending| engine.abandon(pending.op, memory));
        }
    }

    /// Takes what has finished from the pending operations; false if nothing has.
    fn reap(&mut self, id: ActivityId, engine: &mut Engine, memory: &mut Memory<'_>) -> bool {
        let before = self.pending.len();
        let mut at = 0;
        while at < self.pending.len() {
            let Pending { op, step, role, .. } = &self.pending[at];
            let step = &self.list.steps[*step];
            let is_sent = !matches!(role, Role::Aside(_)) || !self.sends_from(part_of(step));
            let ended = if is_sent { engine.endpoint.finish(*op) } else { None };
            let Some((outcome, place)) = ended else {
                at += 1;
                continue;
            };
            let Pending { due, role, .. } = self.pending.remove(at);
            if let (Some(lined), Outcome::Done(message), Role::Receive) = (&mut self.lined, &outcome, &role) {
                lined.came.push((*message, Place::Kept(engine.stock.copy(&place, memory))));
            }
            let error = match engine.well(outcome) {
                Ok(outcome) => wrong(outcome, step, due, self.list.name),
                Err(error) => Some(error),
            };
            if error.is_some() {
                self.error = error;
                engine.moves += 1;
                engine.stock.reclaim(place);
                return true;
            }
            match role {
                Role::Aside(order) => {
                    let (part, element) = (part_of(step), self.list.element);
                    let target = part.range.start * element..part.range.end * element;
                    engine.stock.combine_aside(place, id, part.space, target, order, memory);
                }
                Role::Send | Role::Receive => drop(engine.stock.reclaim(place)),
            }
        }
        let reaped = self.pending.len() < before;
        engine.moves += u64::from(reaped);
        reaped
    }

    /// Starts the next step, which nothing blocks.
    fn start_step(&mut self, id: ActivityId, engine: &mut Engine, memory: &mut Memory<'_>) {
        let (list, step) = (&self.list, self.at);
        let element = list.element;
        let bytes = |part: &Span| part.range.start * element..part.range.end * element;
        let message = list.messages.as_ref().map(|messages| &messages[step]);
        let extent = |part: &Span| match message {
            Some(Message { layout: Some(layout), .. }) => Extent::Layout(layout.clone()),
            _ => Extent::Range(bytes(part)),
        };
        let tag = message.map_or(list.tag, |message| message.tag);
        match &list.steps[step] {
            Step::Send { to, part } => {
                let (to, place) = (*to, Place::Span(id, part.space, extent(part)));
                self.send_step(to, tag, place, engine, memory);
            }
            Step::Recv { from, part } => {
                let (from, place) = (*from, Place::Span(id, part.space, extent(part)));
                self.receive_step(from, tag, place, Role::Receive, engine, memory);
            }
            Step::RecvReduce { from, part, order } => {
                let (from, order) = (*from, *order);
                let (place, role) = if self.sends_from(part) {
                    let length = part.len() * element;
                    (engine.stock.aside(length), Role::Aside(order))
                } else {
                    (engine.stock.fold(id, part.space, bytes(part), element, order), Role::Receive)
                };
                self.receive_step(from, tag, place, role, engine, memory);
            }
            Step::Copy { from, to } => engine.stock.local(id, from, to, element, None, memory),
            Step::Reduce { other, part, order } => {
                engine.stock.local(id, other, part, element, Some(*order), memory);
            }
            Step::Apply { number, .. } => {
                let apply = list.apply.as_deref().expect("a schedule has its computations");
                engine.stock.apply(id, *number, apply, memory);
            }
            Step::Fence => {}
        }
    }

    fn send_step(&mut self, to: Rank, tag: Tag, place: Place, engine: &mut Engine, memory: &mut Memory<'_>) {
        let (peer, context, due) = (self.list.world[to], self.list.context, place.len());
        let letter = Letter { to: peer, context, tag, mode: Mode::Standard, urgency: Urgency::Now };
        // A short one has mostly left already, and nothing has to wait for it.
        match engine.begin_send(letter, place, memory) {
            Sent::Left(..) => engine.moves += 1,
            Sent::Begun(op) if engine.finish_if_done(op) => engine.moves += 1,
            Sent::Begun(op) => self.pending.push(Pending { op, step: self.at, peer, due, role: Role::Send }),
        }
    }

    fn receive_step(
        &mut self,
        from: Rank,
        tag: Tag,
        place: Place,
        role: Role,
        engine: &mut Engine,
        memory: &mut Memory<'_>,
    ) {
        let (peer, due, context) = (self.list.world[from], place.len(), self.list.context);
        let pattern = Pattern { context, source: Some(peer as u32), tag: Some(tag) };
        let op = engine.receive(pattern, place, None, memory);
        if self.list.may_come_beside(due) {
            engine.await_beside(op, peer, Label { context, tag }, memory);
        }
        self.pending.push(Pending { op, step: self.at, peer, due, role });
    }
}

/// The step lists under way. What they hold of the engine they give back before they are gone.
#[derive(Default)]
pub(crate) struct Lists {
    running: Vec<(ActivityId, Running)>,
    /// Of lists that are gone, for those to come: without memory from the system a short collective is faster by a tenth.
    spare: Vec<Vec<Pending>>,
    /// Those that nobody waits for any more.
    detached: Vec<ActivityId>,
    /// Contexts of communicators that are gone, but for step lists under way.
    closing: Vec<u32>,
    /// Some have been broken off, and their operations still hold memory.
    broken_off: bool,
    /// Those that wait for the end of a repair.
    waiting: Vec<(ActivityId, Running)>,
}

/// Whether messages of a step list may cross recovery lines.
fn is_lined(list: &StepList) -> bool {
    lines::cover(list.context) && (!list.is_collective() || list.tag & LINED_TAG != 0)
}

impl Lists {
    /// A generation begins, with nothing under way.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Starts a step list, from where it has come on a `walk`. Memory that is not given is lent by every call until it is done.
    pub(super) fn start(
        &mut self,
        engine: &mut Engine,
        list: StepList,
        own: Own,
        walk: Walk,
        memory: &mut Memory<'_>,
    ) -> ActivityId {
        let Own { input, buffer, combine } = own;
        let is_lined = !list.is_collective() && buffer.is_some() && engine.is_lined(list.context);
        let bytes = list.steps.scratch() * list.element;
        let id = walk.space.unwrap_or_else(|| engine.stock.spaces_with(input, buffer, bytes, combine));
        let mut pending = self.spare.pop().unwrap_or_default();
        if let Some((op, step)) = walk.under_way.zip(walk.steps.checked_sub(1))
            && let Step::Send { to, part } = &list.steps[step]
        {
            pending.push(Pending {
                op,
                step,
                peer: list.world[*to],
                due: part.len() * list.element,
                role: Role::Send,
            });
        }
        let lined = is_lined.then(Box::default);
        let mut running = Running { list, at: walk.steps, pending, error: None, lined };
        running.advance(id, engine, memory);
        self.running.push((id, running));
        id
    }

    /// A generation begins that those of the program outlast; others are gone.
    pub(super) fn wait_for_repair(&mut self, engine: &mut Engine) {
        for (id, running) in std::mem::take(&mut self.running) {
            if is_lined(&running.list) {
                self.waiting.push((id, running));
                continue;
            }
            running.pending.iter().for_each(|pending| engine.endpoint.drop_operation(pending.op));
            engine.stock.take_spaces(id);
        }
        let waits = |id: &ActivityId| self.waiting.iter().any(|(other, _)| other == id);
        self.detached.retain(waits);
        self.broken_off = false;
    }

    /// The repair is over.
    pub(super) fn resume(&mut self) {
        self.running.append(&mut self.waiting);
    }

    /// All ranks go back: none outlasts the repair.
    pub(super) fn forget(&mut self, engine: &mut Engine) {
        for (id, _) in self.waiting.drain(..) {
            engine.stock.take_spaces(id);
            self.detached.retain(|other| *other != id);
        }
    }

    fn running(&self, id: ActivityId) -> Option<&Running> {
        self.running.iter().find(|(other, _)| *other == id).map(|(_, running)| running)
    }

    /// The operations of all lists, if recovery lines may be drawn beside all of these.
    pub(crate) fn operations_beside_lines(&self, engine: &Engine) -> Option<usize> {
        let has_record = |Running { list, lined, .. }: &Running| match list.is_collective() {
            true => engine.endpoint.has_record_of(list.context, list.tag),
            false => lined.as_ref().is_some_and(|lined| lined.has_record),
        };
        let count = |(_, running): &(ActivityId, Running)| {
            (!is_lined(&running.list) || has_record(running)).then_some(running.pending.len())
        };
        self.running.iter().map(count).sum()
    }

    /// The state of this rank has a record of an exchange that is under way.
    pub(crate) fn record(&mut self, id: ActivityId) {
        if let Some(lined) = self.running_mut(id).and_then(|running| running.lined.as_mut()) {
            lined.has_record = true;
        }
    }

    /// A line is drawn: what exchanges that begin again behind it have received, and what they have sent. All of their sends have begun.
    pub(crate) fn recorded(&self, engine: &Engine) -> (Vec<(Envelope, Place)>, Vec<Signature>) {
        let (mut came, mut sent) = (vec![], vec![]);
        for Running { list, lined, .. } in self.running.iter().map(|(_, running)| running) {
            let Some(lined) = lined.as_ref().filter(|lined| lined.has_record) else { continue };
            let copy = |place| Place::Kept(engine.stock.copy(place, &Memory::none()));
            came.extend(lined.came.iter().map(|(message, place)| (*message, copy(place))));
            for (at, message) in list.messages.iter().flat_map(|messages| messages.iter()).enumerate() {
                if let Step::Send { to, .. } = &list.steps[at] {
                    let peer = list.world[*to] as u32;
                    sent.push(Signature { peer, context: list.context, tag: message.tag });
                }
            }
        }
        (came, sent)
    }

    /// Whether a step list is under way, or waits to be finished.
    pub(crate) fn holds(&self, id: ActivityId) -> bool {
        self.running(id).is_some()
    }

    /// Whether a step list is done, well or not.
    pub(crate) fn is_done(&self, id: ActivityId) -> bool {
        self.running(id).is_none_or(Running::is_done)
    }

    fn running_mut(&mut self, id: ActivityId) -> Option<&mut Running> {
        self.running.iter_mut().find(|(other, _)| *other == id).map(|(_, running)| running)
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
    pub(super) fn finish(&mut self, engine: &mut Engine, id: ActivityId) -> Result<Buffers, CommError> {
        let at = self.running.iter().position(|(other, _)| *other == id);
        let error = at.and_then(|at| {
            let (_, Running { mut pending, error, .. }) = self.running.swap_remove(at);
            pending.clear();
            self.spare.push(pending);
            error
        });
        let buffers = engine.stock.take_spaces(id);
        error.map_or(Ok(buffers), Err)
    }

    /// Nobody waits for a step list any more; it goes on behind the program's back.
    pub(super) fn detach(&mut self, engine: &mut Engine, id: ActivityId) {
        if self.is_done(id) {
            drop(self.finish(engine, id));
        } else {
            // It cannot begin again.
            self.running_mut(id).into_iter().for_each(|running| running.lined = None);
            self.detached.push(id);
        }
    }

    /// A communicator is gone: what it held is given back, as soon as no step list of it is under way (`MPI_Comm_free`).
    pub(super) fn close_context(&mut self, engine: &mut Engine, context: u32) {
        if self.running.iter().any(|(_, running)| running.list.context & !1 == context) {
            self.closing.push(context);
        } else {
            engine.close_context(context);
        }
    }

    /// Moves every step list as far as it goes.
    #[inline]
    pub(crate) fn advance(&mut self, engine: &mut Engine, memory: &mut Memory<'_>) {
        if !(self.running.is_empty() && self.detached.is_empty() && self.closing.is_empty()) {
            self.advance_all(engine, memory);
        }
    }

    fn advance_all(&mut self, engine: &mut Engine, memory: &mut Memory<'_>) {
        // Behind a repair receives may have ended whose messages are still to be copied.
        engine.act_on_rest(memory);
        for (id, running) in self.running.iter_mut().rev() {
            running.advance(*id, engine, memory);
        }
        let detached = std::mem::take(&mut self.detached);
        detached.into_iter().for_each(|id| self.detach(engine, id));
        let closing = std::mem::take(&mut self.closing);
        closing.into_iter().for_each(|context| self.close_context(engine, context));
    }

    /// Step lists that `which` chooses end with an error.
    pub(super) fn break_off(&mut self, which: impl Fn(&StepList) -> bool, error: impl Fn() -> CommError) {
        for (_, running) in self.running.iter_mut().filter(|(_, running)| which(&running.list)) {
            if !running.is_done() {
                running.error = Some(error());
                self.broken_off = true;
            }
        }
    }

    /// Frees what operations of step lists that were broken off hold of `memory`.
    pub(super) fn release(&mut self, engine: &mut Engine, memory: &mut Memory<'_>) {
        if std::mem::take(&mut self.broken_off) {
            self.running.iter_mut().for_each(|(_, running)| running.give_up(engine, memory));
        }
    }
}

/// The error of a step of the call `name` whose message has not the length that is due.
pub(super) fn wrong(outcome: Outcome, step: &Step, due: usize, name: &str) -> Option<CommError> {
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

#[cfg(test)]
mod tests;
