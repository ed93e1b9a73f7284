//! The rank's side of the watchdog: notices that a call waits long, and says so once. What the launcher makes of it
//! is [`ft_proto::watch`].

use std::time::Duration;

use crate::time::Time;
use ft_proto::rank::Tag;
use ft_proto::wire::control::ToArbiter;
use ft_proto::wire::wait::{Awaited, Place, Wait};

/// What a call waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// Its name, as the program knows it.
    pub(crate) name: &'static str,
    /// Context of its messages; 0 if it has none.
    pub(crate) context: u32,
    /// Tag of the awaited message, if there is one tag.
    pub(crate) tag: Option<Tag>,
    /// For whom.
    pub(crate) awaited: Awaited,
    /// How far the program is, if all ranks take the same steps.
    pub(crate) place: Option<Place>,
}

impl Call {
    /// What the launcher is told of it after so long.
    pub(crate) fn waits(self, waited: Duration) -> ToArbiter {
        let Self { name, context, tag, awaited, place } = self;
        let millis = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        ToArbiter::Waiting(Wait { call: name.into(), context, tag, awaited, millis, place })
    }
}

/// See the module. A wait lasts from the first look to the next movement.
#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    /// How long a wait may last; without it, before the launcher has said so, there is nothing to watch.
    patience: Option<Duration>,
    since: Option<Time>,
    reported: bool,
}

impl Watchdog {
    /// A watchdog with this patience. The default has none, and never says anything.
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience: Some(patience), since: None, reported: false }
    }

    /// Whether [`Watchdog::look`] is of any use.
    pub(crate) fn is_on(&self) -> bool {
        self.patience.is_some()
    }

    /// The rank is about to sleep. Says how long it has waited if that is too long, and was not said yet: it is to be reported now.
    pub(crate) fn look(&mut self, now: Time) -> Option<Duration> {
        let patience = self.patience?;
        let waited = now.since(*self.since.get_or_insert(now));
        let is_news = !self.reported && waited >= patience;
        self.reported |= is_news;
        is_news.then_some(waited)
    }

    /// Something came or left, or the call returns: a wait that was reported is to be taken back.
    #[inline]
    pub(crate) fn moved(&mut self) -> Option<ToArbiter> {
        self.since = None;
        std::mem::take(&mut self.reported).then_some(ToArbiter::Moving)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    fn recv() -> Call {
        Call { name: "recv", context: 2, tag: Some(7), awaited: Awaited::Ranks(vec![5]), place: None }
    }

    #[test]
    fn a_long_wait_is_reported_once_and_taken_back_once() {
        let mut watchdog = Watchdog::new(Duration::from_millis(300));
        assert_eq!(watchdog.look(at(1000)), None);
        assert_eq!(watchdog.look(at(1299)), None);
        let waited = watchdog.look(at(1310));
        assert_eq!(waited, Some(Duration::from_millis(310)));
        assert_eq!(watchdog.look(at(9000)), None);
        assert_eq!(watchdog.moved(), Some(ToArbiter::Moving));
        assert_eq!(watchdog.moved(), None);
        // The next wait starts at its own first look.
        assert_eq!(watchdog.look(at(9100)), None);
        assert!(watchdog.look(at(9400)).is_some());
        let wait = Wait {
            call: "recv".into(),
            context: 2,
            tag: Some(7),
            awaited: Awaited::Ranks(vec![5]),
            millis: 310,
            place: None,
        };
        assert_eq!(recv().waits(waited.unwrap()), ToArbiter::Waiting(wait));
    }

    #[test]
    fn a_wait_in_which_something_moves_is_a_new_one() {
        let mut watchdog = Watchdog::new(Duration::from_millis(300));
        for ms in (0..3000).step_by(200) {
            assert_eq!(watchdog.look(at(ms)), None);
            assert_eq!(watchdog.look(at(ms + 199)), None);
            assert_eq!(watchdog.moved(), None);
        }
    }

    #[test]
    fn without_patience_nothing_is_said() {
        let mut watchdog = Watchdog::default();
        assert!(!watchdog.is_on());
        assert_eq!(watchdog.look(at(0)), None);
        assert_eq!(watchdog.look(Time(u64::MAX)), None);
        assert_eq!(watchdog.moved(), None);
    }
}
