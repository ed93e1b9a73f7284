//! Collectives under way at a line that do not block who calls them: the state of the rank has a record of each, and when it goes back it begins them again.
//!
//! What such a collective has received when the line is drawn is kept with the line, as what is late; what it has sent does not leave again ([`crate::lines::Log::repeated`]). A collective follows from
//! what it receives, so behind the line it comes to where it was in one go, and no other rank has to know of it. Its messages come in order, as none of them lies in a cell.

use std::collections::BTreeMap;

use super::lined::Lined;
use super::{Endpoint, LINED_TAG};
use crate::lines::{self, Signature};
use crate::matching::Envelope;
use crate::rank::Rank;

/// See the module.
#[derive(Debug)]
pub(super) struct Begun<P> {
    context: u32,
    tag: u32,
    has_record: bool,
    /// How many messages were sent to each rank, also if that had them already.
    sent: BTreeMap<u32, u32>,
    came: Vec<(Envelope, P)>,
}

impl<P> Lined<P> {
    fn begun(&mut self, context: u32, tag: u32) -> Option<&mut Begun<P>> {
        self.begun.iter_mut().find(|begun| (begun.context, begun.tag) == (context, tag))
    }

    /// Whether it is a message to a collective that is under way.
    #[inline]
    pub(super) fn has_begun(&self, message: &Envelope) -> bool {
        self.begun.iter().any(|begun| (begun.context, begun.tag) == (message.context, message.tag))
    }

    /// A message begins to leave.
    #[inline]
    pub(super) fn count_begun(&mut self, to: Rank, (context, tag): (u32, u32)) {
        if !self.begun.is_empty()
            && let Some(begun) = self.begun(context, tag)
        {
            *begun.sent.entry(to as u32).or_default() += 1;
        }
    }

    /// What a message says, if it is to a collective under way.
    pub(super) fn keep_begun(&mut self, message: Envelope, copy: impl FnOnce() -> P) {
        if let Some(begun) = self.begun(message.context, message.tag) {
            begun.came.push((message, copy()));
        }
    }

    /// The line was drawn. `copy` copies so many bytes of messages.
    pub(super) fn keep_all_begun(&mut self, copy: impl Fn(&P, usize) -> P) {
        for Begun { context, tag, sent, came, .. } in &self.begun {
            for (message, place) in came {
                self.lines.keep_again(*message, copy(place, message.length as usize));
            }
            for (peer, count) in sent {
                self.lines.keep_repeated(Signature { peer: *peer, context: *context, tag: *tag }, *count);
            }
        }
    }
}

impl<P> Endpoint<P> {
    /// A collective begins that does not block its caller.
    pub fn begin_collective(&mut self, context: u32, tag: u32) {
        if let Some(lined) = self.lined.as_deref_mut().filter(|lined| lined.is_on)
            && lines::cover(context)
            && tag & LINED_TAG != 0
        {
            let (sent, came) = (BTreeMap::new(), vec![]);
            lined.begun.push(Begun { context, tag, has_record: false, sent, came });
        }
    }

    /// The state of this rank has a record of it.
    pub fn record_collective(&mut self, context: u32, tag: u32) {
        if let Some(begun) = self.lined.as_deref_mut().and_then(|lined| lined.begun(context, tag)) {
            begun.has_record = true;
        }
    }

    /// Whether the state has a record of it, so that lines are drawn beside it.
    pub fn has_record_of(&self, context: u32, tag: u32) -> bool {
        let is_it = |begun: &Begun<P>| (begun.context, begun.tag) == (context, tag) && begun.has_record;
        self.lined.as_deref().is_some_and(|lined| lined.begun.iter().any(is_it))
    }

    /// It is over, or nobody waits for it any more.
    pub fn end_collective(&mut self, context: u32, tag: u32) {
        if let Some(lined) = self.lined.as_deref_mut() {
            lined.begun.retain(|begun| (begun.context, begun.tag) != (context, tag));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Mode, Outgoing, Task};
    use super::*;
    use crate::lines::Lines;
    use crate::matching::Pattern;
    use crate::wire::header::Header;
    use crate::wire::wait::CONTEXT_COMPUTE;

    const CONTEXT: u32 = CONTEXT_COMPUTE + 1;
    const TAG: u32 = LINED_TAG | 3;
    const MESSAGE: Outgoing =
        Outgoing { context: CONTEXT, tag: TAG, length: 8, mode: Mode::Standard, offer: None };
    const FROM_ONE: Pattern = Pattern { context: CONTEXT, source: Some(1), tag: Some(TAG) };

    fn with_lines(me: Rank, lines: Lines<u32>) -> Endpoint<u32> {
        let mut end = Endpoint::new(me, 2, 0);
        end.begin_lines(lines, None);
        end.enter_lines(true);
        end
    }

    /// Sends from `there` to `here`, with this number as what it says.
    fn comes(there: &mut Endpoint<u32>, here: &mut Endpoint<u32>, place: u32) {
        assert!(there.leaves(0, (CONTEXT, TAG), 8, || 0));
        let header = Header::decode(&there.express(0, &MESSAGE).unwrap()).unwrap();
        let landing = here.handle_header(1, &header, |_| place).unwrap();
        if let Some(landing) = here.landing_mut(landing) {
            *landing = place;
        }
        here.handle_payload(1, &header, landing);
        while let Some(Task::Keep { message, .. }) = here.poll_task() {
            here.keep(message, place, |place| *place);
        }
    }

    /// It has received one message of two and sent two of three when the line is drawn.
    #[test]
    fn what_a_collective_has_received_comes_again_and_what_it_has_sent_does_not_leave_again() {
        let [mut here, mut there] = [0, 1].map(|rank| with_lines(rank, Lines::new(2, 0)));
        here.begin_collective(CONTEXT, TAG);
        let first = here.receive(FROM_ONE, 8, None, 0);
        comes(&mut there, &mut here, 10);
        assert!(here.finish(first).is_some(), "and with its operation the message is gone");
        for _ in 0..2 {
            assert!(here.leaves(1, (CONTEXT, TAG), 8, || 0));
        }
        let second = here.receive(FROM_ONE, 8, None, 0);
        assert!(!here.has_record_of(CONTEXT, TAG));
        here.record_collective(CONTEXT, TAG);
        assert!(here.has_record_of(CONTEXT, TAG) && here.may_draw_line(1));
        assert_eq!(here.draw_line(|place, _| *place, vec![]), [0, 2]);
        // It is late, and belongs to the collective, too.
        comes(&mut there, &mut here, 20);
        assert!(here.finish(second).is_some());
        here.lines_mut().unwrap().handle_drawn(2);
        let log = here.lines().unwrap().whole().expect("both have come").clone();
        assert_eq!(log.late.iter().map(|(_, place)| *place).collect::<Vec<_>>(), [10, 20]);

        let (lines, late) = Lines::restore(2, log);
        let mut again = with_lines(0, lines);
        late.into_iter().for_each(|(message, place)| again.put_back(message, place));
        assert!(!again.may_draw_line(0), "what was sent before has not been said again");
        again.begin_collective(CONTEXT, TAG);
        let ops = [(); 2].map(|()| again.receive(FROM_ONE, 8, None, 0));
        assert!(ops.iter().all(|op| again.is_finished(*op)));
        let leave = [(); 3].map(|()| again.leaves(1, (CONTEXT, TAG), 8, || 0));
        assert_eq!(leave, [false, false, true]);
        assert!(ops.into_iter().all(|op| again.finish(op).is_some()));
        assert!(again.may_draw_line(0));
        assert_eq!(
            again.draw_line(|place, _| *place, vec![]),
            [0, 1],
            "of before the line nothing counts twice"
        );
        again.end_collective(CONTEXT, TAG);
        assert!(!again.has_record_of(CONTEXT, TAG));
    }
}
