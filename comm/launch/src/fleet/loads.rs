//! How busy hosts are, as they have said, and which of them is to have one process more.

use std::collections::BTreeMap;
use std::time::Duration;

use ft_comm::time::Time;
use ft_proto::wire::agent::Busy;

/// What a host says is an average over so long, so a process that is new is not in it yet.
const AVERAGED_OVER: Duration = Duration::from_secs(60);
/// Loads of a core that differ by less are the same.
const STEP: f64 = 0.05;

/// See the module. Hosts have numbers.
#[derive(Debug, Default)]
pub(super) struct Loads(BTreeMap<usize, Load>);

/// What is known of one host.
#[derive(Debug)]
struct Load {
    busy: Busy,
    at: Time,
    /// Processes that were started there, as far as they are not in the average yet.
    added: f64,
}

impl Loads {
    /// A host has said how busy it is.
    pub(super) fn heard(&mut self, at: usize, now: Time, busy: Busy) {
        let load = self.0.entry(at).or_insert(Load { busy, at: now, added: 0.0 });
        load.added *= (-now.since(load.at).as_secs_f64() / AVERAGED_OVER.as_secs_f64()).exp();
        (load.busy, load.at) = (busy, now);
    }

    /// What a host has said does not count any more.
    pub(super) fn forget(&mut self, at: usize) {
        self.0.remove(&at);
    }

    /// A process more runs on a host.
    pub(super) fn placed(&mut self, at: usize) {
        self.0.entry(at).and_modify(|load| load.added += 1.0);
    }

    /// Processes that want to run, for each core of a host; none if it has not said so.
    pub(super) fn of(&self, at: usize) -> Option<f64> {
        let Load { busy, added, .. } = self.0.get(&at)?;
        Some((f64::from(busy.running) / 1000.0 + added) / f64::from(busy.cores.max(1)))
    }

    /// Which of these hosts, each with its number of processes, is the least busy. Of those that are as busy it is the one with the fewest
    /// processes; those that have not said how busy they are come last.
    pub(super) fn least(&self, hosts: impl Iterator<Item = (usize, usize)>) -> Option<usize> {
        let steps = |at: usize| self.of(at).map_or(u64::MAX, |load| (load / STEP).round() as u64);
        hosts.min_by_key(|(at, processes)| (steps(*at), *processes)).map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time(seconds * 1_000_000_000)
    }

    fn loads(of: &[(u32, u32)]) -> Loads {
        let mut loads = Loads::default();
        for (host, (running, cores)) in of.iter().enumerate() {
            loads.heard(host, at(100), Busy { running: *running, cores: *cores });
        }
        loads
    }

    #[test]
    fn the_least_busy_host_is_chosen() {
        let loads = loads(&[(4000, 4), (6000, 8), (1900, 2), (6100, 8)]);
        assert_eq!(
            loads.least([(0, 1), (1, 9), (2, 0)].into_iter()),
            Some(1),
            "three quarters of its cores are busy"
        );
        assert_eq!(loads.least([(0, 1), (2, 0)].into_iter()), Some(2));
        assert_eq!(loads.least([(1, 9), (3, 2)].into_iter()), Some(3), "about as busy: the fewest processes");
        assert_eq!(loads.least([(7, 0), (0, 5)].into_iter()), Some(0), "nothing is known of the other");
        assert_eq!(loads.least([(7, 3), (8, 2)].into_iter()), Some(8));
        assert_eq!(loads.least(std::iter::empty()), None);
    }

    #[test]
    fn several_at_once_are_spread() {
        let mut loads = loads(&[(200, 4), (800, 4), (1000, 4)]);
        let hosts = || (0..3).map(|host| (host, 2));
        let chosen: Vec<usize> = (0..6)
            .map(|_| {
                let host = loads.least(hosts()).unwrap();
                loads.placed(host);
                host
            })
            .collect();
        assert_eq!(chosen, [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn a_new_process_gets_into_the_average() {
        let mut loads = loads(&[(0, 2)]);
        loads.placed(0);
        loads.placed(5);
        assert_eq!((loads.of(0), loads.of(5)), (Some(0.5), None));
        loads.heard(0, at(160), Busy { running: 632, cores: 2 });
        let load = loads.of(0).unwrap();
        assert!((0.49..0.51).contains(&load), "{load}");
        loads.heard(0, at(1000), Busy { running: 1000, cores: 2 });
        assert!(loads.of(0).is_some_and(|load| (0.5..0.501).contains(&load)));
        loads.forget(0);
        assert_eq!(loads.of(0), None);
    }
}
