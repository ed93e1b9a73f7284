//! Signs of life of the processes of this host: words in memory, which are looked at now and then.

use std::collections::HashMap;
use std::sync::Arc;

use ft_comm::lifeline::Lifeline;
use ft_proto::rank::PeerId;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Pulses(HashMap<PeerId, Pulse>);

#[derive(Debug)]
struct Pulse {
    line: Arc<Lifeline>,
    /// Signs of life that were seen.
    beats: u64,
}

impl Pulses {
    pub(super) fn watch(&mut self, peer: PeerId, line: Arc<Lifeline>) {
        self.0.insert(peer, Pulse { line, beats: 0 });
    }

    pub(super) fn forget(&mut self, peer: PeerId) {
        self.0.remove(&peer);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Who has given a sign of life since the last look, and in which step; each of them gets one, if that `answers`.
    pub(super) fn look(&mut self, answers: bool) -> Vec<(PeerId, u64)> {
        let mut alive = vec![];
        for (peer, pulse) in &mut self.0 {
            let (beats, step) = pulse.line.pulse();
            if std::mem::replace(&mut pulse.beats, beats) != beats {
                alive.push((*peer, step));
            }
            if answers {
                pulse.line.answer();
            }
        }
        alive
    }
}

#[cfg(test)]
mod tests {
    use ft_comm::lifeline::Pulse as Own;

    use super::*;

    #[test]
    fn a_sign_of_life_is_seen_once_and_answered_if_that_is_wanted() {
        let (line, file) = Lifeline::new().unwrap();
        let own = Own::of(&file).unwrap();
        let mut pulses = Pulses::default();
        pulses.watch(PeerId(3), line.into());
        pulses.watch(PeerId(4), Lifeline::new().unwrap().0.into());
        assert_eq!(
            (pulses.look(true), own.answers()),
            (vec![], 1),
            "who is silent may wait for a sign of life"
        );
        own.beat(7);
        own.beat(8);
        assert_eq!((pulses.look(false), own.answers()), (vec![(PeerId(3), 8)], 1));
        assert_eq!((pulses.look(true), own.answers()), (vec![], 2));
        pulses.forget(PeerId(3));
        own.beat(9);
        assert_eq!(pulses.look(true), []);
    }
}
