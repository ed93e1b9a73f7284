//! The steps of a list, and what is known of them where they are kept for several calls.

use std::ops::Deref;
use std::rc::Rc;

use ft_proto::collective::{Space, Span, Step, hazard};

/// What of steps does not change from one call to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Elements of scratch that they need.
    pub(super) scratch: usize,
    /// Some are of this rank alone, and combine or copy.
    pub(super) has_local: bool,
    /// No rank is sent to twice.
    pub(super) tells_once: bool,
    /// Behind a receive is a send that may leave before it has come.
    pub(super) sends_behind: bool,
}

/// Steps of a collective or an exchange.
#[derive(Clone, Debug)]
pub(crate) struct Steps {
    steps: Rc<[Step]>,
    /// Found out once for many calls; for one it would take longer than it saves.
    pub(super) known: Option<Known>,
}

impl Steps {
    /// Steps of a collective, for many calls.
    pub(crate) fn kept(steps: Vec<Step>) -> Self {
        let known = Known {
            scratch: scratch(&steps),
            has_local: steps.iter().any(|step| matches!(step, Step::Copy { .. } | Step::Reduce { .. })),
            tells_once: tells_once(&steps),
            sends_behind: (0..steps.len()).any(|at| receives(&steps[at]) && sends_behind(&steps, at, true)),
        };
        Self { steps: steps.into(), known: Some(known) }
    }

    /// Elements of scratch that they need.
    pub(super) fn scratch(&self) -> usize {
        self.known.map_or_else(|| scratch(&self.steps), |known| known.scratch)
    }

    /// Whether behind a receive is a send that may leave before that has come; those of a collective may depend on it.
    pub(super) fn sends_behind(&self, at: usize, is_collective: bool) -> bool {
        self.known.is_none_or(|known| known.sends_behind) && sends_behind(&self.steps, at, is_collective)
    }
}

impl From<Rc<[Step]>> for Steps {
    fn from(steps: Rc<[Step]>) -> Self {
        Self { steps, known: None }
    }
}

impl From<Vec<Step>> for Steps {
    fn from(steps: Vec<Step>) -> Self {
        Self { steps: steps.into(), known: None }
    }
}

impl Deref for Steps {
    type Target = [Step];

    fn deref(&self) -> &[Step] {
        &self.steps
    }
}

fn receives(step: &Step) -> bool {
    matches!(step, Step::Recv { .. } | Step::RecvReduce { .. })
}

fn scratch(steps: &[Step]) -> usize {
    let scratch = |part: &Span| if part.space == Space::Scratch { part.range.end } else { 0 };
    let needed = |step: &Step| {
        let (reads, changes) = hazard::parts(step);
        reads.iter().chain(changes).map(scratch).max().unwrap_or(0)
    };
    steps.iter().map(needed).max().unwrap_or(0)
}

fn tells_once(steps: &[Step]) -> bool {
    let mut told: Vec<_> = steps
        .iter()
        .filter_map(|step| if let Step::Send { to, .. } = step { Some(*to) } else { None })
        .collect();
    told.sort_unstable();
    told.windows(2).all(|pair| pair[0] != pair[1])
}

fn sends_behind(steps: &[Step], at: usize, is_collective: bool) -> bool {
    let (receive, behind) = (&steps[at], &steps[at + 1..]);
    let next = behind.iter().find(|step| !receives(step));
    let waits = |send| is_collective && hazard::must_wait(send, std::iter::once(receive));
    next.is_some_and(|step| matches!(step, Step::Send { .. }) && !waits(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both sides would wait for each other, if each waited before it sent.
    #[test]
    fn a_receive_is_not_waited_for_before_a_send_that_does_not_need_it() {
        let receive = |from: usize, at: usize| Step::recv(from, at..at + 4);
        let send = |to: usize, part: Span| Step::Send { to, part };
        let (there, input) = (Span::from(0..4), Span::input(0..4));
        let finds = |steps: &[Step], is_exchange: bool| {
            if !is_exchange {
                let kept = Steps::kept(steps.to_vec());
                assert_eq!(kept.sends_behind(0, true), sends_behind(steps, 0, true));
            }
            Steps::from(steps.to_vec()).sends_behind(0, !is_exchange)
        };
        assert!(finds(&[receive(1, 0), send(1, input.clone())], false));
        assert!(!finds(&[receive(1, 0), send(2, there.clone())], false), "it passes on what comes");
        assert!(finds(&[receive(1, 0), receive(2, 4), send(1, input.clone())], false));
        assert!(finds(&[receive(1, 0), send(2, there)], true), "steps of an exchange need nothing");
        assert!(!finds(&[receive(1, 0), receive(2, 4)], true));
        assert!(!finds(&[receive(1, 0), Step::Fence, send(1, input)], false));
    }

    #[test]
    fn what_is_known_of_steps_is_so() {
        let known = |steps: Vec<Step>| Steps::kept(steps).known.unwrap();
        let plain = known(vec![Step::send(1, 0..4), Step::send(2, 0..4), Step::recv(1, 0..4)]);
        assert!(plain.tells_once && !plain.has_local && !plain.sends_behind && plain.scratch == 0);
        assert!(!known(vec![Step::send(1, 0..2), Step::recv(1, 0..2), Step::send(1, 2..4)]).tells_once);
        let local = known(vec![Step::Copy { from: Span::scratch(3..7), to: Span::from(0..4) }]);
        assert!(local.has_local && local.scratch == 7);
    }
}
