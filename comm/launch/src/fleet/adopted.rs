//! Processes that `mpirun` has started, not the launcher: they come by themselves, and when one is gone nobody takes its place but another of them.
//!
//! The launcher is the parent of the first alone. Of the others it knows what their links tell: a process whose link has ended is gone. Those on this host it can
//! send signals to.

use std::collections::HashMap;

use ft_proto::rank::PeerId;
use rustix::process::{Pid, Signal};

/// The process that the launcher starts itself.
const OWN: PeerId = PeerId(1);

/// See the module.
#[derive(Debug)]
pub(super) struct Adopted {
    /// How many processes there are, the launcher's own included: they are numbered from 1.
    count: u32,
    /// Those that have come, by the number that the system has given them, if they are on this host.
    processes: HashMap<PeerId, Option<Pid>>,
}

impl Adopted {
    pub(super) fn new(count: u32) -> Self {
        Self { count, processes: HashMap::new() }
    }

    /// Whether a process comes by itself.
    pub(super) fn is_one(&self, peer: PeerId) -> bool {
        peer != OWN && peer.0 <= self.count
    }

    /// Why no process of this number can be had, if so.
    pub(super) fn refuses(&self, peer: PeerId) -> Option<String> {
        let is_beyond = peer.0 > self.count;
        is_beyond.then(|| {
            format!("mpirun has started {} processes, and all of them have had their turn", self.count)
        })
    }

    /// A process has come.
    pub(super) fn connected(&mut self, peer: PeerId, pid: Option<Pid>) {
        if self.is_one(peer) {
            self.processes.insert(peer, pid);
        }
    }

    /// The number that the system has given to a process of this host.
    pub(super) fn pid(&self, peer: PeerId) -> Option<Pid> {
        self.processes.get(&peer).copied().flatten()
    }

    /// Sends a signal to a process; false if it is out of reach.
    pub(super) fn signal(&self, peer: PeerId, signal: Signal) -> bool {
        self.pid(peer).is_some_and(|pid| rustix::process::kill_process(pid, signal).is_ok())
    }

    /// The link of a process has ended. From now on its number may be another's.
    pub(super) fn gone(&mut self, peer: PeerId) {
        self.processes.remove(&peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_behind_the_first_come_by_themselves_until_there_are_none() {
        let mut adopted = Adopted::new(3);
        assert_eq!([1, 2, 3, 4].map(|peer| adopted.is_one(PeerId(peer))), [false, true, true, false]);
        assert_eq!(adopted.refuses(PeerId(3)), None);
        assert!(adopted.refuses(PeerId(4)).unwrap().contains("3 processes"));
        let pid = rustix::process::getpid();
        adopted.connected(PeerId(1), Some(pid));
        adopted.connected(PeerId(2), Some(pid));
        assert_eq!([1, 2, 3].map(|peer| adopted.pid(PeerId(peer))), [None, Some(pid), None]);
        adopted.gone(PeerId(2));
        assert!(!adopted.signal(PeerId(2), Signal::KILL), "it may be another process");
    }
}
