//! Which processes this one is cut off from, by injected failures: written by the service thread, read by everything
//! that passes bytes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::time::Time;
use ft_proto::rank::PeerId;

/// The processes that this one is cut off from, by injected failures. Clones see the same cuts.
#[derive(Clone, Debug, Default)]
pub struct Cuts(Arc<Mutex<BTreeMap<PeerId, Time>>>);

impl Cuts {
    /// Lets nothing pass from and to `peers` any more; for `lasts`, or for ever. Of two cuts the longer counts.
    pub fn cut(&self, now: Time, peers: &[PeerId], lasts: Option<Duration>) {
        let until = lasts.map_or(Time(u64::MAX), |lasts| now.after(lasts));
        let mut cuts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for peer in peers {
            let known = cuts.entry(*peer).or_insert(until);
            *known = until.max(*known);
        }
    }

    /// How long nothing will pass from and to `peer`; none if it does.
    pub fn left(&self, now: Time, peer: PeerId) -> Option<Duration> {
        let cuts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cuts.get(&peer).filter(|until| now < **until).map(|until| until.since(now))
    }

    /// Whether something passes from and to `peer`.
    pub fn is_open(&self, now: Time, peer: PeerId) -> bool {
        self.left(now, peer).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_of_two_cuts_counts() {
        let (cuts, at) = (Cuts::default(), |ms: u64| Time(ms * 1_000_000));
        let span = |ms| Some(Duration::from_millis(ms));
        cuts.cut(at(10), &[PeerId(1), PeerId(2)], span(100));
        cuts.clone().cut(at(20), &[PeerId(2)], span(50));
        assert_eq!((cuts.left(at(20), PeerId(1)), cuts.left(at(20), PeerId(3))), (span(90), None));
        assert_eq!((cuts.left(at(75), PeerId(2)), cuts.left(at(110), PeerId(2))), (span(35), None));
        cuts.cut(at(200), &[PeerId(1)], None);
        assert!(!cuts.is_open(Time(u64::MAX - 1), PeerId(1)) && cuts.is_open(at(200), PeerId(2)));
    }
}
