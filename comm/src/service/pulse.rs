//! Signs of life within a host are words in memory: a rank counts its own up, and so does its watcher, the launcher or the agent of
//! its host. The link to the launcher carries them only while the watcher is silent, so that neither its pause nor its end is one of the rank.

use std::time::Duration;

use crate::lifeline::Pulse;

/// Of so many signs of life in a row none was answered: the link has to carry them.
const UNANSWERED: u32 = 2;
/// With a timeout of fewer intervals there is no time to find that out.
const INTERVALS: u32 = 6;

/// A rank's end of its lifeline, as far as signs of life go.
#[derive(Debug, Default)]
pub(super) struct Heart {
    pulse: Option<Pulse>,
    /// Answers that it knows of.
    answers: u64,
    unanswered: u32,
    /// The timeout leaves time to fall back upon the link.
    has_time: bool,
}

/// What has become of a sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beat {
    /// The watcher has given one since the last.
    pub(super) is_answered: bool,
    /// The link need not carry it.
    pub(super) is_seen: bool,
}

impl Heart {
    /// By this memory, if there is any.
    pub(super) fn new(pulse: Option<Pulse>) -> Self {
        Self { pulse, unanswered: UNANSWERED, ..Self::default() }
    }

    /// The launcher has said how often it wants signs of life, and how long it waits for one.
    pub(super) fn allow(&mut self, interval: Duration, timeout: Duration) {
        self.has_time = timeout >= interval * INTERVALS;
    }

    /// The rank lives, and is in `step`.
    pub(super) fn beat(&mut self, step: u64) -> Beat {
        let Some(pulse) = &self.pulse else { return Beat { is_answered: false, is_seen: false } };
        pulse.beat(step);
        let answers = pulse.answers();
        let is_answered = std::mem::replace(&mut self.answers, answers) != answers;
        self.unanswered = if is_answered { 0 } else { self.unanswered.saturating_add(1) };
        Beat { is_answered, is_seen: self.has_time && self.unanswered < UNANSWERED }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifeline::Lifeline;

    const INTERVAL: Duration = Duration::from_millis(100);

    fn heart(timeout: Duration) -> (Heart, Lifeline) {
        let (line, file) = Lifeline::new().unwrap();
        let mut heart = Heart::new(Some(Pulse::of(&file).unwrap()));
        heart.allow(INTERVAL, timeout);
        (heart, line)
    }

    #[test]
    fn the_link_carries_signs_of_life_while_nobody_looks() {
        let (mut heart, line) = heart(10 * INTERVAL);
        let (seen, alone) = ((true, true), (false, false));
        let mut beat = |step| {
            let Beat { is_answered, is_seen } = heart.beat(step);
            (is_answered, is_seen)
        };
        assert_eq!(beat(3), alone, "nobody was there so far");
        assert_eq!(line.pulse(), (1, 3));
        line.answer();
        assert_eq!(beat(4), seen);
        assert_eq!(beat(4), (false, true), "it may be late once");
        line.answer();
        line.answer();
        assert_eq!(beat(5), seen);
        assert_eq!([beat(5), beat(5), beat(6)], [(false, true), alone, alone]);
        assert_eq!(line.pulse(), (7, 6), "what nobody answers is there all the same");
        line.answer();
        assert_eq!(beat(7), seen);
    }

    #[test]
    fn the_link_carries_them_too_where_there_is_no_time_for_doubt() {
        let (mut heart, line) = heart(3 * INTERVAL);
        line.answer();
        assert_eq!(heart.beat(1), Beat { is_answered: true, is_seen: false });
        assert_eq!(Heart::new(None).beat(1), Beat { is_answered: false, is_seen: false });
    }
}
