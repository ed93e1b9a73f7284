//! What all communicators of a rank share: the driver, and the failures to inject.

use std::any::Any;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use crate::driver::{Driver, Place};
use ft_proto::collective::Selection;
use ft_proto::endpoint::{CONTEXT_DYNAMIC, OpId};
use ft_proto::error::CommError;
use ft_proto::fault::Faults;
use ft_proto::lines::{Outcome, Swallowed};
use ft_proto::matching::Envelope;
use ft_proto::planted;
use ft_proto::rank::{Generation, Rank};
use ft_proto::wire::control::{News, ToArbiter};

mod door;
mod waiting;

pub use door::Guard;
pub(crate) use door::{Door, Inside};
pub(crate) use waiting::Repairs;

/// Bytes that the copies of buffered sends of one rank may take ([`crate::Communicator::bsend`]).
pub const BUFFERED_BYTES_MAX: usize = 64 << 20;

/// What lives as long as the world, and sees ranks get other numbers.
pub(crate) trait Lasting {
    /// From now on there are so many ranks that compute, and in all, on these `hosts` (empty: on one), and this is `me` of them. Gives its
    /// context and its members.
    fn renumber(&self, compute: usize, total: usize, me: Rank, hosts: &[usize]) -> (u32, Rc<[Rank]>);
}

/// What the program has made, and goes on in the next generation where ranks stay what they are.
pub(crate) trait Made: Any {
    /// A generation has begun on these `hosts` (empty: on one). Gives its context, its members, and the context that it was made from.
    fn goes_on(&self, hosts: &[usize]) -> (u32, Rc<[Rank]>, Option<u32>);
    /// Ranks are others now: it is of no use any more.
    fn ends(&self);
    /// Its context, and its collectives so far that may cross recovery lines.
    fn lined(&self) -> (u32, u32);
    /// Goes on from so many of these.
    fn set_lined(&self, number: u32);
    /// For who knows what it is.
    fn any(self: Rc<Self>) -> Rc<dyn Any>;
}

/// What a recovery line has of communicators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LineCounts {
    /// The context that the next one may have; 0: the line is the beginning of the job.
    pub(crate) contexts: u32,
    /// By context, how many collectives that may cross lines had begun.
    pub(crate) collectives: BTreeMap<u32, u32>,
}

pub(crate) struct Core {
    pub(crate) driver: Driver,
    pub(crate) faults: Faults,
    /// The step that the program is in, while no communication of it was seen.
    pub(crate) armed_step: Option<u64>,
    /// Collective operations that this process has begun.
    pub(crate) collectives: u64,
    /// Which algorithm a collective uses.
    pub(crate) selection: Selection,
    /// How many tables were chosen before this one: step lists of an older one are of no use.
    pub(crate) tables: u32,
    /// Whether algorithms of collectives may depend on the hosts of the ranks.
    pub(crate) chooses_by_hosts: bool,
    /// Whether collective calls are checked before they run.
    pub(crate) checks_calls: bool,
    /// What the last recovery line has of communicators, and what is left of the one that this rank has gone back to.
    pub(crate) line: LineCounts,
    pub(crate) gone_back: LineCounts,
    /// Parts of the program that were recorded, or done again out of a record.
    pub(crate) tapes: u32,
    /// The context that the next communicator could have when the last record began.
    pub(crate) tape_start: u32,
    /// Of a line that was restored: messages that were received too early, and those that are to be in the queue.
    pub(crate) restored: (Swallowed, Vec<(Envelope, Place)>),
    /// The context that the next one may have had when lines began.
    line_zero: u32,
    /// Buffered sends, with their bytes; those that have left are dropped when they are counted.
    buffered: Vec<(OpId, usize)>,
    buffered_bytes: usize,
    /// They are counted again when there are so many.
    count_buffered_at: usize,
    /// Communicators that live as long as the world.
    pub(crate) lasting: Vec<Weak<dyn Lasting>>,
    /// Those that the program has made.
    pub(crate) made: Vec<Weak<dyn Made>>,
    /// The context that the next communicator may have.
    contexts: u32,
    /// Set while the program repeats a recorded part: its communicators get the contexts of then.
    repeated: Option<Repeated>,
    /// What repairs the world when a call is interrupted that goes on then.
    repairs: Option<(Door, Repairs)>,
    state: State,
}

/// The contexts of a recorded part of the program that is done again.
#[derive(Clone, Copy, Debug)]
struct Repeated {
    /// The part has made communicators with contexts below this one.
    end: u32,
    /// Communicators that are made after the part get contexts from here on.
    after: u32,
}

/// What calls have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Whole,
    /// A panic has unwound through one.
    Torn,
    /// The launcher knows.
    GivenUp,
}

/// Adds an element to a list that does not keep its elements alive. Whenever the list would grow it
/// drops those that are gone, and has room for as many as are left, so both memory and the cost of
/// each element stay bounded.
pub(crate) fn push_living<T: ?Sized>(list: &mut Vec<Weak<T>>, element: &Rc<T>) {
    if list.len() == list.capacity() {
        list.retain(|element| element.strong_count() > 0);
        list.reserve(list.len().max(4));
    }
    list.push(Rc::downgrade(element));
}

impl Core {
    pub(crate) fn new(driver: Driver, faults: Faults) -> Self {
        Self {
            driver,
            faults,
            armed_step: None,
            collectives: 0,
            selection: Selection::builtin(),
            tables: 0,
            chooses_by_hosts: true,
            checks_calls: false,
            line: LineCounts::default(),
            gone_back: LineCounts::default(),
            line_zero: CONTEXT_DYNAMIC,
            buffered: vec![],
            buffered_bytes: 0,
            count_buffered_at: 0,
            lasting: vec![],
            made: vec![],
            contexts: CONTEXT_DYNAMIC,
            repeated: None,
            tapes: 0,
            tape_start: CONTEXT_DYNAMIC,
            restored: Default::default(),
            repairs: None,
            state: State::Whole,
        }
    }

    /// A panic unwinds through a call: nothing here is used any more.
    fn tear(&mut self) {
        if self.state == State::Whole {
            self.state = State::Torn;
            self.driver.take_back();
        }
    }

    fn is_torn(&self) -> bool {
        self.state != State::Whole
    }

    /// The panic was caught, as the program goes on: the job cannot.
    fn give_up(&mut self) {
        if self.state == State::Torn {
            self.state = State::GivenUp;
            let message = format!("rank {}: {}", self.driver.count(true).1, CommError::Panicked);
            self.driver.submit(ToArbiter::Goodbye { code: Some(1), message });
        }
    }

    /// The process leaves the job, or has panicked in it.
    pub(crate) fn leave(&mut self, is_done: bool) {
        if std::thread::panicking() {
            self.tear();
        } else if !is_done && self.state != State::GivenUp {
            self.driver.submit(ToArbiter::Goodbye { code: None, message: String::new() });
        }
        // Handles of communicators and requests may outlive the world.
        self.driver.leave();
        self.driver.service.close();
    }

    /// A generation has begun. If ranks have `moved`, what the program has made of them is of no use any more.
    pub(crate) fn renumber(&mut self, moved: bool) {
        self.end_repeat();
        let ((total, me), (compute, _)) = (self.driver.count(true), self.driver.count(false));
        let hosts = self.driver.membership().hosts().unwrap_or_default();
        self.lasting.retain(|shared| shared.strong_count() > 0);
        for shared in self.lasting.iter().filter_map(Weak::upgrade) {
            let (context, world) = shared.renumber(compute, total, me, &hosts);
            self.driver.failures.enrol(context, world);
        }
        self.made.retain(|made| made.strong_count() > 0);
        if moved {
            self.made.drain(..).filter_map(|made| made.upgrade()).for_each(|made| made.ends());
        }
        let made: Vec<_> =
            self.made.iter().filter_map(Weak::upgrade).map(|made| made.goes_on(&hosts)).collect();
        for (context, world, _) in &made {
            self.driver.engine.open_context_again(*context);
            self.driver.failures.enrol(*context, world.clone());
        }
        for (context, _, parent) in made {
            parent.into_iter().for_each(|parent| self.driver.derived(context, parent));
        }
    }

    /// A communicator with this context, of another generation, is used here: later ones have others.
    pub(crate) fn knows_context(&mut self, context: u32) {
        let next = match &mut self.repeated {
            // The part that is repeated made its communicators without this one.
            Some(repeated) => &mut repeated.after,
            None => &mut self.contexts,
        };
        *next = (*next).max(context + 2);
    }

    /// The program repeats a part that has made communicators with the contexts from `start` to
    /// `end`.
    pub(crate) fn repeat_contexts(&mut self, start: u32, end: u32) {
        if planted::has(planted::MAKES_NEW_COMMUNICATORS) {
            return;
        }
        self.repeated = Some(Repeated { end, after: self.contexts.max(end) });
        self.contexts = start;
    }

    /// The repeated part has ended.
    pub(crate) fn end_repeat(&mut self) {
        if let Some(Repeated { after, .. }) = self.repeated.take() {
            self.contexts = self.contexts.max(after);
        }
    }

    /// Whether the program repeats a recorded part.
    pub(crate) fn repeats(&self) -> bool {
        self.repeated.is_some()
    }

    /// A context at which messages of the restored line are under way, though no communicator of
    /// this rank has it any more: one had it when the line was drawn.
    pub(crate) fn missing_context(&self) -> Option<u32> {
        let made: Vec<u32> = self.made.iter().filter_map(Weak::upgrade).map(|made| made.lined().0).collect();
        let (early, late) = &self.restored;
        let early = early.keys().map(|signature| signature.context);
        let mut under_way =
            late.iter().map(|(message, _)| message.context).chain(early).map(|context| context & !1);
        under_way.find(|context| {
            let was_there = *context >= CONTEXT_DYNAMIC && self.gone_back.collectives.contains_key(context);
            was_there && !made.contains(context)
        })
    }

    /// An interruption is no reason not to look; the end of the job is told by the next call.
    pub(crate) fn look_at_news(&mut self) {
        let _ = self.driver.check();
    }

    pub(crate) fn choose(&mut self, selection: Selection) {
        self.selection = selection;
        self.tables += 1;
    }

    /// Messages may cross recovery lines from now on.
    pub(crate) fn begin_lines_of_communicators(&mut self) {
        self.end_repeat();
        self.line_zero = self.contexts;
        self.gone_back = LineCounts::default();
        self.made.iter().filter_map(Weak::upgrade).for_each(|made| made.set_lined(0));
    }

    /// A recovery line is here.
    pub(crate) fn draw_line_of_communicators(&mut self) {
        let collectives = self.made.iter().filter_map(Weak::upgrade).map(|made| made.lined()).collect();
        self.line = LineCounts { contexts: self.contexts, collectives };
    }

    /// The rank goes back to a line with these counts: communicators that were made behind it are of no use any more, others go on from there, and so do those that are to be made
    /// of their records.
    pub(crate) fn go_back_to_line_of_communicators(&mut self, counts: LineCounts) {
        self.repeated = None;
        let behind = self.contexts;
        self.contexts = if counts.contexts == 0 { self.line_zero } else { counts.contexts };
        for made in self.made.iter().filter_map(Weak::upgrade) {
            let (context, _) = made.lined();
            match context < self.contexts {
                true => made.set_lined(counts.collectives.get(&context).copied().unwrap_or(0)),
                false => made.ends(),
            }
        }
        let contexts = self.contexts;
        self.made.retain(|made| made.upgrade().is_some_and(|made| made.lined().0 < contexts));
        self.gone_back = counts;
        if planted::has(planted::COUNTS_COLLECTIVES_ANEW) {
            self.gone_back = LineCounts::default();
        }
        if planted::has(planted::GOES_ON_WITH_CONTEXTS) {
            self.contexts = behind;
        }
    }

    /// The messages of a line that was restored are there. Gives those that were received too early.
    pub(crate) fn put_back(&mut self) -> Swallowed {
        let (early, late) = std::mem::take(&mut self.restored);
        self.driver.engine.put_back(late);
        early
    }

    /// A context above all that this rank knows of.
    pub(crate) fn next_context(&self) -> u32 {
        self.contexts
    }

    /// The ranks of a communicator have agreed on the context of a new one.
    pub(crate) fn use_context(&mut self, context: u32) -> Result<u32, CommError> {
        // One for its point-to-point messages, one for its collectives.
        let next = context.checked_add(2).ok_or_else(|| CommError::Count("no contexts are left".into()))?;
        if self.repeated.is_some_and(|repeated| next > repeated.end) {
            return Err(CommError::Diverged);
        }
        self.contexts = next;
        Ok(context)
    }

    /// What came out when the program did for the first time what it does again now, on a communicator with this context, of several things
    /// that might have; after a look at the links.
    pub(crate) fn replays(&mut self, context: u32) -> Result<Option<u32>, CommError> {
        match self.driver.engine.replay(context) {
            None => Ok(None),
            Some(Outcome::Chose(which)) => {
                self.look()?;
                Ok(Some(which))
            }
            Some(Outcome::Found(_)) => Err(CommError::Diverged),
        }
    }

    fn count_buffered(&mut self) {
        let driver = &self.driver;
        self.buffered.retain(|(op, _)| driver.engine.holds(*op));
        self.buffered_bytes = self.buffered.iter().map(|(_, bytes)| bytes).sum();
        self.count_buffered_at = 2 * self.buffered.len().max(32);
    }

    /// A buffered send is under way, for which there was room.
    pub(crate) fn has_buffered(&mut self, op: OpId, bytes: usize) {
        self.buffered.push((op, bytes));
        self.buffered_bytes += bytes;
    }

    /// Room for a buffered send of so many bytes.
    pub(crate) fn reserve_buffer(&mut self, wanted: usize) -> Result<(), CommError> {
        let limit = BUFFERED_BYTES_MAX;
        for look in [false, true] {
            if look {
                self.look()?;
            }
            // Not for each: that would take time in proportion to those under way.
            if look || self.buffered.len() >= self.count_buffered_at || wanted > limit - self.buffered_bytes {
                self.count_buffered();
            }
            let free = limit - self.buffered_bytes;
            if wanted <= free {
                return Ok(());
            }
            if look {
                return Err(CommError::Buffer { wanted, free, limit });
            }
        }
        unreachable!("the second look decides")
    }

    /// Every communication begins here: an injected failure of the current step strikes.
    #[inline]
    pub(crate) fn enter(&mut self) -> Result<(), CommError> {
        match self.armed_step.take() {
            Some(step) => self.fault_point("step", step, None),
            None => Ok(()),
        }
    }

    /// Every collective begins here.
    pub(crate) fn enter_collective(&mut self) -> Result<(), CommError> {
        self.enter()?;
        self.collectives += 1;
        self.fault_point("collective", self.collectives, None)
    }

    /// If a failure is to be injected here, tells the launcher and waits for it.
    pub(crate) fn fault_point(
        &mut self,
        name: &str,
        number: u64,
        phase: Option<&str>,
    ) -> Result<(), CommError> {
        match self.faults.reached(name, number, phase) {
            Some(spec) if self.driver.told.has_cut(spec) => Ok(()),
            Some(spec) => {
                self.driver.submit(ToArbiter::Reached { spec });
                // A rank that is not to die goes on when the cut has struck.
                self.driver.await_news(|news| {
                    matches!(news, News::Cut { spec: struck, .. } if *struck == spec).then_some(())
                })
            }
            None => Ok(()),
        }
    }

    pub(crate) fn generation(&self) -> Generation {
        self.driver.generation()
    }

    /// Finishes the step: an injected failure of a step without communication strikes at its end.
    pub(crate) fn step(&mut self, next: u64) -> Result<(), CommError> {
        self.enter()?;
        self.driver.service.is_in(next);
        self.armed_step = Some(next);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_elements_of_which_few_live_stays_short() {
        let (mut list, kept) = (vec![], Rc::new(0));
        push_living(&mut list, &kept);
        for number in 1..10_000 {
            push_living(&mut list, &Rc::new(number));
            assert!(list.capacity() <= 16, "{} after {number}", list.capacity());
        }
        assert_eq!(list.iter().filter_map(Weak::upgrade).collect::<Vec<_>>(), std::slice::from_ref(&kept));
        let living: Vec<Rc<i32>> = (0..1000).map(Rc::new).collect();
        living.iter().for_each(|element| push_living(&mut list, element));
        assert_eq!(list.iter().filter(|element| element.strong_count() > 0).count(), 1001);
    }
}
