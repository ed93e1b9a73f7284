//! The rank's side of the membership protocol; the launcher's side is [`crate::arbiter`].
//!
//! A member passes on what its rank has to say, sends heartbeats, and hands the launcher's news to the rank, but for what is about
//! another generation than its own. It holds a lease: a rank that has heard nothing from the launcher for
//! [`LEASE_TIMEOUTS`] heartbeat timeouts has been cut off, may have been replaced, and ends itself. The lease runs
//! from the start, before the first word of the launcher.

use std::collections::VecDeque;
use std::time::Duration;

use crate::detector::Detector;
use crate::planted;
use crate::rank::{Generation, PeerId};
use crate::time::Time;
use crate::wire::control::{News, ToArbiter, Welcome};

/// How many heartbeat timeouts a rank goes on without a sign of life from the launcher.
pub const LEASE_TIMEOUTS: u32 = 10;

/// A rank's side of the membership protocol, as a state machine.
#[derive(Debug)]
pub struct Member {
    generation: Option<Generation>,
    interval: Duration,
    timeout: Duration,
    beat_due: Time,
    welcomed: bool,
    /// The step that the rank is in.
    step: u64,
    lease: Detector,
    /// When the launcher was heard last.
    heard: Time,
    out: VecDeque<ToArbiter>,
    news: VecDeque<News>,
}

impl Member {
    /// A member that has not heard from the launcher yet.
    pub fn new(now: Time) -> Self {
        let timeout = Duration::from_secs(1);
        Self {
            generation: None,
            interval: Duration::from_millis(100),
            timeout,
            beat_due: now,
            welcomed: false,
            step: 0,
            lease: lease(timeout, now),
            heard: now,
            out: VecDeque::new(),
            news: VecDeque::new(),
        }
    }

    /// The rank has something to say.
    pub fn submit(&mut self, message: ToArbiter) {
        self.out.push_back(message);
    }

    /// The rank is in this step: the next heartbeat says so.
    pub fn is_in(&mut self, step: u64) {
        self.step = step;
    }

    /// The launcher has said something.
    pub fn handle(&mut self, now: Time, news: News) {
        self.lease.heard(PeerId::LAUNCHER, now);
        self.heard = now;
        if news.generation().is_some_and(|of| self.generation != Some(of)) {
            return; // it is old
        }
        match &news {
            News::Beat => return,
            News::Welcome(welcome) => self.welcomed(now, welcome),
            News::Decided(membership) => self.generation = Some(membership.generation),
            _ => {}
        }
        self.news.push_back(news);
    }

    fn welcomed(&mut self, now: Time, welcome: &Welcome) {
        self.interval = Duration::from_millis(welcome.heartbeat_ms);
        self.timeout = Duration::from_millis(welcome.timeout_ms);
        self.lease = lease(self.timeout, now);
        (self.welcomed, self.beat_due) = (true, now);
    }

    /// The link to the launcher broke.
    pub fn orphaned(&mut self) {
        self.news.push_back(News::Ended { code: 1, message: "the launcher is gone".into() });
    }

    /// Returns `true` if the launcher was not heard for the heartbeat timeout. If its process is
    /// known to be stopped, and not gone, [`Member::excuse_launcher`] keeps the lease.
    pub fn misses_launcher(&self, now: Time) -> bool {
        now.since(self.heard) > self.timeout
    }

    /// The launcher cannot be heard, for a reason that is no sign of a cut: the lease starts again.
    pub fn excuse_launcher(&mut self, now: Time) {
        self.handle(now, News::Beat);
    }

    /// Whether the launcher has given this process a rank.
    pub fn is_welcomed(&self) -> bool {
        self.welcomed
    }

    /// Sends a heartbeat if one is due, and gives up if the lease has run out.
    pub fn tick(&mut self, now: Time) {
        if now >= self.beat_due {
            self.beat_due = now.after(self.interval);
            self.out.extend(self.welcomed.then_some(ToArbiter::Beat { step: self.step }));
        }
        if !self.lease.suspects(now).is_empty() && !planted::has(planted::IGNORES_LEASE) {
            self.lease.forget(PeerId::LAUNCHER);
            let seconds = (self.timeout * LEASE_TIMEOUTS).as_secs_f64();
            let message = format!("cut off: nothing heard from the launcher for {seconds} s");
            self.news.push_back(News::Ended { code: 1, message });
        }
    }

    /// When [`Member::tick`] is due.
    pub fn poll_timeout(&self) -> Time {
        self.beat_due
    }

    /// The next message to send.
    pub fn poll_transmit(&mut self) -> Option<ToArbiter> {
        self.out.pop_front()
    }

    /// The next news for the rank.
    pub fn poll_news(&mut self) -> Option<News> {
        self.news.pop_front()
    }
}

fn lease(timeout: Duration, now: Time) -> Detector {
    let mut lease = Detector::new(timeout * LEASE_TIMEOUTS, now);
    lease.heard(PeerId::LAUNCHER, now);
    lease
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::rank::{Membership, OnFailure};
    use crate::settings::MessageSettings;

    fn at(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    fn member() -> Member {
        let mut member = Member::new(at(0));
        member.handle(
            at(0),
            News::Welcome(Welcome {
                rank: 0,
                incarnation: 0,
                compute: 2,
                total: 2,
                joining: 0,
                heartbeat_ms: 100,
                timeout_ms: 1000,
                on_failure: OnFailure::Rebuild,
                messages: MessageSettings::default(),
                layers: BTreeMap::new(),
                kills: vec![],
            }),
        );
        assert!(matches!(member.poll_news(), Some(News::Welcome(_))));
        member
    }

    #[test]
    fn beats_at_its_interval() {
        let mut member = member();
        let beats = |member: &mut Member| std::iter::from_fn(|| member.poll_transmit()).count();
        member.tick(at(0));
        member.tick(at(50));
        assert_eq!(beats(&mut member), 1);
        assert_eq!(member.poll_timeout(), at(100));
        member.tick(at(100));
        assert_eq!(beats(&mut member), 1);
        member.is_in(7);
        member.tick(at(200));
        assert_eq!(member.poll_transmit(), Some(ToArbiter::Beat { step: 7 }));
    }

    #[test]
    fn a_rank_that_is_cut_off_ends_itself() {
        let mut member = member();
        for ms in (0..=10_000).step_by(100) {
            member.tick(at(ms));
        }
        assert_eq!(member.poll_news(), None);
        member.tick(at(10_100));
        assert!(matches!(member.poll_news(), Some(News::Ended { code: 1, .. })));
    }

    #[test]
    fn lease_of_an_excused_launcher_starts_again() {
        let mut member = member();
        let mut excuses = 0;
        for ms in (0..=30_000).step_by(100) {
            if member.misses_launcher(at(ms)) {
                member.excuse_launcher(at(ms));
                excuses += 1;
            }
            member.tick(at(ms));
        }
        assert_eq!((member.poll_news(), excuses), (None, 27));
    }

    #[test]
    fn a_rank_that_is_never_welcomed_ends_itself() {
        let mut member = Member::new(at(0));
        for ms in (0..=10_100).step_by(100) {
            member.tick(at(ms));
        }
        assert_eq!(member.poll_transmit(), None);
        assert!(matches!(member.poll_news(), Some(News::Ended { code: 1, .. })));
    }

    #[test]
    fn news_of_another_generation_is_old() {
        let mut member = member();
        let decided = Membership { generation: 1, ..Membership::default() };
        member.handle(at(1), News::Decided(decided.clone()));
        member.handle(at(2), News::Failed { generation: 0, ranks: vec![1] });
        assert_eq!(member.poll_news(), Some(News::Decided(decided)));
        assert_eq!(member.poll_news(), None);
    }
}
