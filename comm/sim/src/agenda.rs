//! Virtual time: what is due when, and how long things take, which is left to chance.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::RngExt;
use rand_pcg::Pcg64;

use super::happening::Happening;
use super::net::Network;
use ft_comm::time::Time;

/// What is going to happen: the earliest first; at the same moment, what was put there first.
pub(super) struct Agenda {
    pub(super) now: Time,
    due: BTreeMap<(Time, u64), Happening>,
    number: u64,
    /// The only source of chance, so a run follows from its seed.
    pub(super) random: Pcg64,
    /// How the network behaves.
    pub(super) network: Network,
}

impl Agenda {
    pub(super) fn new(random: Pcg64, network: Network) -> Self {
        Self { now: Time(0), due: BTreeMap::new(), number: 0, random, network }
    }

    pub(super) fn at(&mut self, at: Time, what: Happening) {
        self.number += 1;
        self.due.insert((at, self.number), what);
    }

    pub(super) fn after(&mut self, takes: Duration, what: Happening) {
        self.at(self.now.after(takes), what);
    }

    /// What is next, and when.
    pub(super) fn next(&mut self) -> Option<(Time, Happening)> {
        self.due.pop_first().map(|((at, _), what)| (at, what))
    }

    /// Whether this network does now and then what networks do not do often.
    pub(super) fn is_rough(&self) -> bool {
        self.network.hiccups > 0
    }

    pub(super) fn hiccup(&mut self) -> bool {
        self.is_rough() && self.random.random_ratio(self.network.hiccups.min(1000), 1000)
    }

    /// A time that one piece or message takes.
    pub(super) fn travel(&mut self, latency: Duration) -> Duration {
        let nanos = latency.as_nanos() as u64;
        let nanos = self.random.random_range(nanos / 2..=nanos * 3 / 2 + 1);
        Duration::from_nanos(if self.hiccup() { nanos * 10 } else { nanos })
    }

    pub(super) fn latency(&mut self) -> Duration {
        let (least, most) = self.network.latency;
        Duration::from_nanos(self.random.random_range(least.as_nanos() as u64..=most.as_nanos() as u64))
    }

    /// How many bytes one direction of a new link takes at a time. Most take many, or a long message takes for ever.
    pub(super) fn window(&mut self) -> usize {
        let (least, most) = self.network.window;
        if self.random.random_ratio(3, 4) { most } else { self.random.random_range(least..=most) }
    }
}
