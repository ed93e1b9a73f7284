//! Receives and sends that are under way at a line: the state of the rank has a record of each, and when it goes back it makes them again.
//!
//! What such a receive has in its place when the line is drawn was received as far as its sender is concerned, and not as far as the state is. So it is kept with the line, and is in the queue when
//! the receive is made again. One that may take several messages keeps its number, and takes what it had taken. A send is before the line, however much of it has left: its receiver has it, or keeps
//! it with the line, before that is committed.

use super::{Endpoint, Op, OpId, Outcome, State, lined::Lined};
use crate::lines;
use crate::matching::Pattern;
use crate::planted;
use crate::rank::Rank;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recorded {
    op: OpId,
    is_receive: bool,
}

impl<P> Endpoint<P> {
    /// The state of this rank has a record of an operation with this context. Gives the number of a receive that may take several messages.
    pub fn record(&mut self, op: OpId, context: u32, is_receive: bool) -> Option<u64> {
        let lined = self.lined.as_deref_mut().filter(|_| lines::cover(context))?;
        let recorded = Recorded { op, is_receive };
        // Those that are over are taken away when there is no room for one more.
        if lined.recorded.len() == lined.recorded.capacity() {
            lined.recorded.retain(|recorded| self.ops.contains_key(recorded.op));
        }
        if self.ops.contains_key(op) && !lined.recorded.contains(&recorded) {
            lined.recorded.push(recorded);
        }
        lined.choosing.iter().rev().find(|choosing| choosing.op == op).map(|choosing| choosing.number)
    }

    /// Nobody has a handle of an operation any more.
    pub fn record_no_more(&mut self, op: OpId) {
        if let Some(lined) = &mut self.lined {
            lined.recorded.retain(|recorded| recorded.op != op);
        }
    }

    /// How many operations of which there are records are there.
    pub(super) fn recorded(&mut self) -> usize {
        let Self { lined: Some(lined), ops, .. } = self else { return 0 };
        lined.recorded.retain(|recorded| ops.contains_key(recorded.op));
        lined.recorded.len()
    }

    /// The line was drawn: what receives have in their places, and what they have taken, is kept with it. `copy` copies so many bytes of messages.
    pub(super) fn keep_recorded(&mut self, copy: &impl Fn(&P, usize) -> P) {
        let Self { lined: Some(lined), ops, .. } = self else { return };
        let Lined { lines, recorded, choosing, .. } = &mut **lined;
        for Recorded { op, .. } in recorded.iter().filter(|recorded| recorded.is_receive) {
            let Some(Op { state, place, .. }) = ops.get(*op) else { continue };
            if let State::Finished(Outcome::Done(message)) = state
                && !planted::has(planted::FORGETS_OPEN)
            {
                lines.keep_again(*message, copy(place, message.length as usize));
            }
            let choice = choosing.iter().find(|choosing| choosing.op == *op);
            if let Some((number, taken)) = choice.and_then(|choice| Some((choice.number, choice.taken?))) {
                lines.keep_choice(number, taken);
            }
        }
    }

    /// Starts a receive again that had begun before the line, with the number of then if it may take several messages. As [`Endpoint::receive`].
    pub fn receive_again(
        &mut self,
        pattern: Pattern,
        number: Option<u64>,
        room: usize,
        missing: Option<Rank>,
        place: P,
    ) -> OpId {
        match (self.lined.as_deref_mut(), number) {
            (Some(lined), Some(number)) => {
                let pattern = lined.lines.choose_again(number, pattern);
                let (op, taken) = self.start_receive(pattern, room, missing, place);
                self.chooses(op, number, taken.as_ref());
                op
            }
            _ => self.receive(pattern, room, missing, place),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Mode, Outgoing, Task};
    use super::*;
    use crate::lines::Lines;
    use crate::matching::Envelope;
    use crate::stamp::Mark;
    use crate::wire::header::Header;
    use crate::wire::wait::CONTEXT_COMPUTE;

    const ANY: Pattern = Pattern { context: CONTEXT_COMPUTE, source: None, tag: Some(7) };

    fn with_lines(me: Rank) -> Endpoint<u32> {
        let mut end = Endpoint::new(me, 3, 0);
        end.begin_lines(Lines::new(3, 0), None);
        end.enter_lines(true);
        end
    }

    fn comes(there: &mut Endpoint<u32>, from: Rank, here: &mut Endpoint<u32>, place: u32) {
        let message =
            Outgoing { context: CONTEXT_COMPUTE, tag: 7, length: 8, mode: Mode::Standard, offer: None };
        assert!(there.leaves(0, (CONTEXT_COMPUTE, 7), 8, || 0));
        let header = Header::decode(&there.express(0, &message).unwrap()).unwrap();
        let landing = here.handle_header(from, &header, |_| place).unwrap();
        here.handle_payload(from, &header, landing);
    }

    /// Two receives from anybody are under way at a line, and the second has its message. Behind it they are made again, and each takes what it took.
    #[test]
    fn what_receives_have_in_their_places_is_kept_with_the_line() {
        let mut ends = [with_lines(0), with_lines(1), with_lines(2)];
        let [here, one, two] = &mut ends;
        let first = here.receive(ANY, 8, None, 10);
        let second = here.receive(ANY, 8, None, 20);
        assert!(!here.may_draw_line(0), "a line would cut them");
        let numbers = [first, second].map(|op| here.record(op, CONTEXT_COMPUTE, true));
        assert_eq!(numbers, [Some(0), Some(1)]);
        comes(two, 2, here, 30);
        assert!(here.is_finished(first) && !here.is_finished(second));
        assert!(here.may_draw_line(0));
        here.draw_line(|place, length| place + length as u32, vec![]);
        // What comes behind the line is for the second.
        comes(one, 1, here, 40);
        assert!(here.is_finished(second));
        let Some(Task::Keep { message, .. }) = here.poll_task() else { panic!("it is late") };
        here.keep(message, 40, |place| *place);
        here.lines_mut().unwrap().handle_drawn(2);
        let log = here.lines().unwrap().whole().expect("both have come").clone();
        assert_eq!(
            log.late.iter().map(|(message, place)| (message.source, *place)).collect::<Vec<_>>(),
            [(2, 18), (1, 40)]
        );
        assert_eq!(log.choices.get(&0), Some(&(2, 7)));

        let mut again: Endpoint<u32> = Endpoint::new(0, 3, 1);
        let (lines, late) = Lines::restore(3, log);
        again.begin_lines(lines, None);
        // In another order than they had come.
        late.into_iter().rev().for_each(|(message, place)| again.put_back(message, place));
        again.enter_lines(true);
        let made = numbers.map(|number| again.receive_again(ANY, number, 8, None, 0));
        let sources = made.map(|op| {
            again.finish(op).map(|(outcome, _)| match outcome {
                Outcome::Done(message) => message.source,
                other => panic!("{other:?}"),
            })
        });
        assert_eq!(sources, [Some(2), Some(1)]);
    }

    /// Of messages that were put back none has a number: the one that a receive has taken stays before the one that is in the queue still.
    #[test]
    fn what_was_taken_stays_before_what_waits() {
        let mut end = with_lines(1);
        let message =
            |length| Envelope { context: CONTEXT_COMPUTE, source: 0, tag: 7, mark: Mark::PUT_BACK, length };
        [1, 2, 3].into_iter().for_each(|length| end.put_back(message(length), 0));
        let op = end.receive(ANY, 8, None, 0);
        end.record(op, CONTEXT_COMPUTE, true);
        end.draw_line(|_, length| length as u32, vec![]);
        end.lines_mut().unwrap().handle_drawn(0);
        let log = end.lines().unwrap().whole().expect("nothing is under way");
        assert_eq!(log.late.iter().map(|(message, _)| message.length).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn who_lets_go_of_a_request_puts_the_line_off_again() {
        let mut end = with_lines(0);
        let op = end.receive(ANY, 8, None, 0);
        end.record(op, CONTEXT_COMPUTE, true);
        assert!(end.may_draw_line(0));
        end.record_no_more(op);
        assert!(!end.may_draw_line(0));
    }
}
