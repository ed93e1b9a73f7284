//! Messages that may cross recovery lines ([`crate::lines`]): what the endpoint tells the protocol of them, and what it keeps for it. Where only who was lost goes back it has a journal of
//! them, too.
//!
//! A message is received before a line if it is in the place of its receive then, or late. Late ones are kept when they get there, or before, when somebody looks for
//! them ([`Endpoint::keep_late`]). Copying is the driver's ([`Task::Keep`]).

use rustc_hash::FxHashMap;

use super::begun::Begun;
use super::bounced::State;
use super::recorded::Recorded;
use super::tape::Tape;
use super::{BounceId, Endpoint, OpId, Task};
use crate::lines::{self, Astray, Journal, Lines, Outcome, Phase};
use crate::matching::{Envelope, Pattern};
use crate::rank::Rank;
use crate::stamp::{Mark, Stamp};
use crate::wire::header::Header;

/// Collectives that lines matter to have this bit in their tag.
pub const LINED_TAG: u32 = 1 << 31;

/// See the module.
#[derive(Debug)]
pub(super) struct Lined<P> {
    pub(super) lines: Lines<P>,
    pub(super) journal: Option<Journal<P>>,
    /// The program is in what lines are drawn in; what is said outside, by all ranks at one place, has no stamp.
    pub(super) is_on: bool,
    /// It has not begun with that: what is under way is what ranks say to each other where their states are made.
    is_fresh: bool,
    /// Receives that may take several messages.
    pub(super) choosing: Vec<Choosing>,
    /// Receives and sends beside which lines are drawn.
    pub(super) recorded: Vec<Recorded>,
    /// Collectives that do not block.
    pub(super) begun: Vec<Begun<P>>,
    /// By sender, how many messages have come, and the one whose payload came last or comes.
    pub(super) came: Vec<(u32, Option<Envelope>)>,
    /// With a journal: by sender, which one of its kind that is whose payload comes.
    pub(super) coming: Vec<Option<lines::Nth>>,
    /// The same of those that were announced, by sender and number.
    pub(super) announced: FxHashMap<(u32, u32), lines::Nth>,
    /// Messages that were under way when a rank was lost, and come again: where they belong.
    pub(super) due: FxHashMap<lines::Nth, BounceId>,
    /// Receives of such messages, while operations wait for the end of a repair.
    pub(super) claims: Vec<(OpId, BounceId)>,
    pub(super) tape: Tape<P>,
}

/// A receive that may take several messages.
#[derive(Debug)]
pub(super) struct Choosing {
    pub(super) op: OpId,
    pub(super) number: u64,
    /// Source and tag of the one that it has taken.
    pub(super) taken: Option<(u32, u32)>,
}

impl<P> Lined<P> {
    /// A receive with a number has taken this message.
    fn chose(&mut self, number: u64, message: &Envelope) {
        let Self { lines, journal, .. } = self;
        match journal {
            Some(journal) => journal.chose(lines, number, message),
            None => lines.chose(number, message),
        }
    }
}

impl<P> Endpoint<P> {
    /// Messages may cross lines from now on, of which this rank has drawn one that no message has crossed, or goes back to one.
    pub fn begin_lines(&mut self, lines: Lines<P>, journal: Option<Journal<P>>) {
        let ranks = self.peers.len();
        self.lined = Some(Box::new(Lined {
            lines,
            journal,
            is_on: false,
            is_fresh: true,
            choosing: vec![],
            recorded: vec![],
            begun: vec![],
            came: vec![(0, None); ranks],
            coming: vec![None; ranks],
            announced: FxHashMap::default(),
            due: FxHashMap::default(),
            claims: vec![],
            tape: Tape::Rests,
        }));
    }

    /// Messages cross no lines any more. What is here and waits for its receive is of none.
    pub fn end_lines(&mut self) {
        self.lined = None;
        for (bounce, _) in self.matching.arrived() {
            if let Some((envelope, _)) = self.bounced.here(bounce) {
                envelope.mark = envelope.mark.unlined();
            }
        }
    }

    /// The program begins with what lines are drawn in, or ends it.
    pub fn enter_lines(&mut self, is_on: bool) {
        if let Some(lined) = &mut self.lined {
            lined.is_on = is_on;
            lined.is_fresh &= !is_on;
        }
    }

    /// Whether what is under way goes on when ranks were lost.
    pub fn outlasts_repairs(&self) -> bool {
        self.has_journal() && self.lined.as_deref().is_some_and(|lined| !lined.is_fresh)
    }

    /// This rank's part in lines, if there are any.
    pub fn lines(&self) -> Option<&Lines<P>> {
        self.lined.as_deref().map(|lined| &lined.lines)
    }

    /// The same, to change it.
    pub fn lines_mut(&mut self) -> Option<&mut Lines<P>> {
        self.lined.as_deref_mut().map(|lined| &mut lined.lines)
    }

    /// The same while the program is in what lines are drawn in.
    fn lines_on(&mut self) -> Option<&mut Lined<P>> {
        self.lined.as_deref_mut().filter(|lined| lined.is_on)
    }

    /// Whether the program is in what lines are drawn in.
    #[inline]
    pub fn is_in_lines(&self) -> bool {
        self.lined.as_deref().is_some_and(|lined| lined.is_on)
    }

    /// Whether no operation is under way, but for `others`, so that a line can be drawn.
    pub fn may_draw_line(&mut self, others: usize) -> bool {
        if !self.lines().is_some_and(Lines::may_draw) {
            return false;
        }
        let others = others + self.recorded();
        // Nobody has handles of detached sends, and so there are no records of them.
        self.ops.len() <= others || self.ops.len() <= others + self.detached_sends()
    }

    /// The rank has saved its state: its line is here. `copy` makes copies of so many bytes of messages; what exchanges that begin again have received belongs to the line, too. Gives, by receiver,
    /// how many were sent since the line before.
    pub fn draw_line(&mut self, copy: impl Fn(&P, usize) -> P, came: Vec<(Envelope, P)>) -> Vec<u64> {
        let Some(lined) = self.lined.as_deref_mut() else { return vec![] };
        let counts = match &mut lined.journal {
            Some(journal) => journal.draw(&mut lined.lines),
            None => lined.lines.draw(),
        };
        // What was taken came before what is in the queue, and these may have the same number: of none that was put back it is known.
        self.keep_recorded(&copy);
        let Some(lined) = self.lined.as_deref_mut() else { return counts };
        lined.keep_all_begun(&copy);
        came.into_iter().for_each(|(message, place)| lined.lines.keep_again(message, place));
        for (bounce, _) in self.matching.arrived() {
            if let Some((envelope, place)) = self.bounced.here(bounce)
                && envelope.mark.is_kept()
            {
                lined.lines.keep_again(*envelope, copy(place, envelope.length as usize));
            }
        }
        counts
    }

    /// Keeps late messages that are here and wait for their receives. Those that were only announced are asked for if `fetches`: `make` makes places for them.
    pub fn keep_late(&mut self, copy: impl Fn(&P) -> P, fetches: bool, make: impl Fn(usize) -> P) {
        let Some(lined) = self.lined.as_deref_mut() else { return };
        if !matches!(lined.lines.phase(), Phase::Logging | Phase::Collecting) {
            return;
        }
        let mut wanted = vec![];
        for (bounce, envelope) in self.matching.arrived() {
            if !lined.lines.is_late(&envelope) {
                continue;
            }
            match self.bounced.here(bounce) {
                Some((envelope, place)) if lined.lines.is_late(envelope) => {
                    lined.lines.keep(*envelope, copy(place));
                    envelope.mark = envelope.mark.kept();
                }
                Some(_) => {}
                None if fetches => wanted.push(bounce),
                None => {}
            }
        }
        for bounce in wanted {
            if let Some((envelope, sequence)) = self.bounced.fetch(bounce, &make) {
                self.ask_for(envelope, sequence, super::Landing::Bounce(bounce));
            }
        }
    }

    /// A message that was kept with a line, and is there when the rank goes back to it.
    pub fn put_back(&mut self, envelope: Envelope, place: P) {
        self.bounce(Envelope { mark: Mark::PUT_BACK, ..envelope }, State::Here(place));
    }

    /// The line is committed: nobody goes back behind it.
    pub fn line_is_committed(&mut self) {
        if let Some(Lined { lines, journal, .. }) = self.lined.as_deref_mut() {
            match journal {
                Some(journal) => journal.handle_commit(lines),
                None => lines.handle_commit(),
            }
        }
    }

    /// A message of `length` bytes begins, which may cross lines; false if its receiver has it already, and it is not to leave. `copy` makes a copy of what it says.
    pub fn leaves(
        &mut self,
        to: Rank,
        (context, tag): (u32, u32),
        length: usize,
        copy: impl FnOnce() -> P,
    ) -> bool {
        let me = self.me;
        match self.lined.as_deref_mut() {
            Some(lined) if lined.is_on && lines::cover(context) => {
                lined.count_begun(to, (context, tag));
                let Lined { lines, journal, .. } = lined;
                match journal {
                    _ if lines.repeats(to, context, tag) => false,
                    Some(journal) if to != me => {
                        journal.sends(lines, to, (context, tag), (copy(), length as u64))
                    }
                    _ => lines.sends(to, context, tag),
                }
            }
            Some(lined) => !lined.plays_for(to, context, me),
            None => true,
        }
    }

    /// The mark of a message of this rank that begins now.
    #[inline]
    pub(super) fn mark(&self, context: u32) -> Mark {
        if self.has_lines() { self.mark_lined(context) } else { Mark::NONE }
    }

    #[inline(never)]
    fn mark_lined(&self, context: u32) -> Mark {
        match self.lined.as_deref() {
            Some(lined) if lined.is_on && lines::cover(context) => Mark::of(lined.lines.stamp()),
            _ => Mark::NONE,
        }
    }

    /// Whether a step of a collective to a rank may go beside the frames, where it has no stamp, and overtakes them: not if one of these has what its receiver must know before.
    #[inline]
    pub fn goes_beside(&self, to: Rank, context: u32) -> bool {
        self.lined.as_deref().is_none_or(|Lined { lines, journal, .. }| {
            let is_clear = || journal.as_ref().is_none_or(|journal| journal.is_clear(to));
            !lines::cover(context) || lines.phase() == Phase::Running && is_clear()
        })
    }

    /// What a message that came beside the frames is known by. It has no stamp; its sender had no line under way ([`Endpoint::goes_beside`]), so it had drawn as many as have been
    /// committed.
    #[inline]
    pub fn beside(&mut self, mut envelope: Envelope) -> Envelope {
        if let Some(lined) = self.lined.as_deref_mut()
            && lines::cover(envelope.context)
            && envelope.tag & LINED_TAG != 0
        {
            let line = lined.lines.line();
            let is_late = matches!(lined.lines.phase(), Phase::Logging | Phase::Collecting);
            // Line 0 has none before it, and there are four colours.
            let line = if is_late { line + 3 } else { line };
            envelope.mark = Mark::of(Stamp::new(line, false));
            if let Some(journal) = &mut lined.journal {
                journal.comes(&lined.lines, &envelope);
            }
        }
        envelope
    }

    /// Whether messages may cross lines at all.
    #[inline]
    pub fn has_lines(&self) -> bool {
        self.lined.is_some()
    }

    /// The message that `header` from `from` begins, with its number; what a rank sends to itself has none.
    #[inline]
    pub(super) fn comes(&mut self, from: Rank, header: &Header) -> Result<Envelope, Astray> {
        let mut envelope = Envelope::from(header);
        if let Some(lined) = self.lined.as_deref_mut() {
            let (count, incoming) = &mut lined.came[from];
            envelope.mark = envelope.mark.numbered(*count);
            *count = count.wrapping_add(1);
            if let Some(journal) = &mut lined.journal {
                let nth = journal.comes(&lined.lines, &envelope);
                // One that was due has the number of its place.
                let place = nth.filter(|_| !lined.due.is_empty()).and_then(|nth| lined.due.get(&nth));
                if let Some(before) = place.and_then(|bounce| self.bounced.envelope(*bounce)) {
                    envelope.mark = envelope.mark.numbered(before.mark.number());
                }
                lined.coming[from] = nth;
            }
            lined.lines.comes(&envelope)?;
            *incoming = Some(envelope);
        }
        Ok(envelope)
    }

    /// The message whose payload has come behind `header`.
    #[inline]
    pub fn came(&self, from: Rank, header: &Header) -> Envelope {
        match self.lined.as_deref() {
            Some(lined) => lined.came[from].1.unwrap_or_else(|| Envelope::from(header)),
            None => Envelope::from(header),
        }
    }

    /// The payload of an announced message comes, to this place.
    pub(super) fn payload_is_of(&mut self, from: Rank, announced: Envelope, landing: super::Landing) {
        if let Some(lined) = &mut self.lined {
            let is_fetched = matches!(landing, super::Landing::Bounce(_));
            let mark = if is_fetched { announced.mark.fetched() } else { announced.mark };
            lined.came[from].1 = Some(Envelope { mark, ..announced });
            lined.coming[from] = lined.announced.remove(&(announced.source, announced.mark.number()));
        }
    }

    /// A message was put where its receive wants it; whether what it says is to be kept ([`Endpoint::keep`]).
    #[inline]
    pub fn has_delivered(&mut self, message: &Envelope) -> bool {
        self.has_lines() && self.has_delivered_lined(message)
    }

    #[inline(never)]
    fn has_delivered_lined(&mut self, message: &Envelope) -> bool {
        let me = self.me;
        self.lined.as_deref_mut().is_some_and(|lined| {
            // Nothing is astray that was not when it came.
            let is_late = lined.lines.deliver(message).unwrap_or(false);
            is_late || lined.records(message, me) || lined.has_begun(message)
        })
    }

    /// The same of the receive of a posted operation.
    #[inline]
    pub(super) fn delivered(&mut self, op: OpId, message: &Envelope) {
        if self.has_delivered(message) {
            self.tasks.push_back(Task::Keep { op, message: *message });
        }
    }

    /// What a late message says, or one to a collective under way, or one that the tape is to have.
    pub fn keep(&mut self, message: Envelope, place: P, copy: impl FnOnce(&P) -> P) {
        match self.lined.as_deref_mut() {
            Some(Lined { tape: Tape::Records(messages), .. }) => messages.push((message, place)),
            Some(lined) if lined.lines.is_late(&message) => {
                lined.keep_begun(message, || copy(&place));
                lined.lines.keep(message, place);
            }
            Some(lined) => lined.keep_begun(message, || place),
            None => {}
        }
    }

    /// Whether what a message says is to be kept when it is where its receive wants it: it must not be used up before.
    #[inline]
    pub fn is_kept(&self, message: &Envelope) -> bool {
        let Some(lined) = self.lined.as_deref() else { return false };
        lined.lines.is_late(message) || lined.records(message, self.me) || lined.has_begun(message)
    }

    /// The same of the one whose payload comes from a rank now.
    #[inline]
    pub fn is_incoming_kept(&self, from: Rank) -> bool {
        let message = self.lined.as_deref().and_then(|lined| lined.came[from].1);
        message.is_some_and(|message| self.is_kept(&message))
    }

    /// A receive begins; if it may take several messages it gets a number, and takes what it took before if it is done again.
    #[inline(never)]
    pub(super) fn choose(&mut self, pattern: Pattern) -> (Pattern, Option<u64>) {
        match self.lined.as_deref_mut() {
            Some(lined) if lined.is_on && lines::cover(pattern.context) && pattern.is_open() => {
                let (number, pattern) = lined.lines.choose(pattern);
                (pattern, Some(number))
            }
            _ => (pattern, None),
        }
    }

    /// A receive with a number waits for its message, or has taken it.
    pub(super) fn chooses(&mut self, op: OpId, number: u64, taken: Option<&Envelope>) {
        let Self { lined: Some(lined), ops, .. } = self else { return };
        if let Some(message) = taken {
            lined.chose(number, message);
        }
        // Those that are over are taken away when there is no room for one more.
        if lined.choosing.len() == lined.choosing.capacity() {
            lined.choosing.retain(|choosing| ops.contains_key(choosing.op));
        }
        let taken = taken.map(|message| (message.source, message.tag));
        lined.choosing.push(Choosing { op, number, taken });
    }

    /// A receive takes a message.
    #[inline]
    pub(super) fn takes(&mut self, op: OpId, message: &Envelope) {
        if let Some(lined) = &mut self.lined
            && let Some(choosing) = lined.choosing.iter_mut().rev().find(|choosing| choosing.op == op)
        {
            choosing.taken = Some((message.source, message.tag));
            let number = choosing.number;
            lined.chose(number, message);
        }
    }

    /// A receive is withdrawn.
    pub(super) fn chooses_no_more(&mut self, op: OpId) {
        if let Some(lined) = &mut self.lined {
            lined.choosing.retain(|choosing| choosing.op != op);
        }
    }

    /// Of several things that might have happened this one did.
    pub fn note(&mut self, chose: u32) {
        if let Some(Lined { lines, journal, .. }) = self.lines_on() {
            match journal {
                Some(journal) => journal.chooses(lines, chose),
                None => lines.note(chose),
            }
        }
    }

    /// A question for a message has found this one, or none.
    pub fn found(&mut self, message: Option<&Envelope>) {
        if let Some(Lined { lines, journal, .. }) = self.lines_on() {
            match journal {
                Some(journal) => journal.found(lines, message),
                None => lines.found(message),
            }
        }
    }

    /// How it came out when it was done for the first time, if that is to be done again.
    pub fn replay_outcome(&mut self) -> Option<Outcome> {
        self.lines_on()?.lines.replay()
    }
}
