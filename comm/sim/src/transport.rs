//! The rank's end of the simulated network.

use std::io::{IoSlice, IoSliceMut};
use std::sync::{Condvar, MutexGuard};
use std::time::Duration;
use std::{panic, sync::Arc};

use rand::RngExt;

use super::baton::Handle;
use super::kernel::{Holder, Kernel};
use super::net::EndId;
use super::process::{Blocked, Opened};
use ft_comm::transport::{LinkError, LinkId, Neighbor, Patience, Transport};
use ft_proto::cells::Label;
use ft_proto::planted;
use ft_proto::rank::{Generation, PeerId};

/// What the thread of a killed process unwinds with.
#[derive(Debug)]
pub(super) struct Killed;

/// A process, as its thread sees the kernel.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) shared: Handle,
    pub(super) peer: PeerId,
    pub(super) turn: Arc<Condvar>,
}

impl Place {
    /// Every call begins here: the process may be killed in it, and others may run first.
    pub(super) fn enter(&self) -> MutexGuard<'_, Kernel> {
        let mut kernel = self.shared.lock();
        if std::thread::panicking() {
            return kernel;
        }
        if kernel.call(self.peer) {
            drop(kernel);
            panic::resume_unwind(Box::new(Killed));
        }
        let preemptions = kernel.agenda.network.preemptions.min(1000);
        if preemptions > 0 && kernel.agenda.random.random_ratio(preemptions, 1000) {
            return self.give_way(kernel);
        }
        kernel
    }

    /// Lets others run.
    pub(super) fn give_way<'a>(&'a self, mut kernel: MutexGuard<'a, Kernel>) -> MutexGuard<'a, Kernel> {
        kernel.wake_now(self.peer);
        self.pass(kernel)
    }

    /// Gives the baton on; returns when it is back, or not at all if the process is killed meanwhile.
    pub(super) fn pass<'a>(&'a self, kernel: MutexGuard<'a, Kernel>) -> MutexGuard<'a, Kernel> {
        let kernel = self.shared.pass(kernel, Holder::Process(self.peer), &self.turn);
        if !kernel.processes.get(self.peer).is_some_and(super::process::Process::alive) {
            drop(kernel);
            panic::resume_unwind(Box::new(Killed));
        }
        kernel
    }
}

/// The address of a process on a host.
pub(super) fn address(host: usize, peer: PeerId) -> String {
    format!("host-{host} simulated:{}", peer.0)
}

fn parse(address: &str) -> Option<PeerId> {
    let (_, number) = address.split_once(" simulated:")?;
    number.parse().ok().map(PeerId)
}

/// See the module.
pub(super) struct SimTransport(pub(super) Place);

impl SimTransport {
    /// Between two instructions of this process others may run, or it may be killed.
    fn pause<'a>(&'a self, mut kernel: MutexGuard<'a, Kernel>) -> MutexGuard<'a, Kernel> {
        let is_long = kernel.agenda.random.random_ratio(1, 8);
        drop(kernel);
        kernel = self.0.enter();
        if is_long { self.0.give_way(kernel) } else { kernel }
    }

    /// Says at the memory of all links that this process is about to sleep.
    fn doze<'a>(&'a self, mut kernel: MutexGuard<'a, Kernel>, writing: &[LinkId]) -> MutexGuard<'a, Kernel> {
        let links = |kernel: &Kernel| {
            let process = kernel.processes.get(self.0.peer);
            process.map(|process| process.wires.links.clone()).unwrap_or_default()
        };
        for (link, end) in links(&kernel) {
            kernel.net.sleeps(end, true, writing.contains(&link));
        }
        kernel = self.pause(kernel);
        links(&kernel).into_values().for_each(|end| kernel.net.fence(end));
        kernel
    }

    /// Whether something can be received from memory, or sent to one of `writing`.
    fn has_something(&self, kernel: &mut Kernel, writing: &[LinkId]) -> bool {
        let wanted: Vec<EndId> =
            writing.iter().filter_map(|link| kernel.processes.end(self.0.peer, *link).ok()).collect();
        let ends = kernel.ends(self.0.peer);
        // All are noticed, not only the first.
        let has_news = ends.iter().filter(|end| kernel.net.notices(**end)).count() > 0;
        has_news
            || ends.into_iter().any(|end| kernel.net.has_come(end))
            || wanted.into_iter().any(|end| kernel.net.has_room(end))
    }
}

impl Transport for SimTransport {
    fn change(&mut self, generation: Generation, peers: &[(PeerId, String)]) {
        let mut kernel = self.0.enter();
        let me = self.0.peer;
        let Some(process) = kernel.processes.get_mut(me) else { return };
        process.wires.generation = Some(generation);
        process.wires.addresses = peers.iter().filter_map(|(peer, at)| Some((*peer, parse(at)?))).collect();
        if planted::has(planted::TAKES_OLD_FRAMES) {
            process.wires.links.clear(); // and they stay open
        }
        let old: Vec<LinkId> = process.wires.links.keys().copied().collect();
        old.into_iter().for_each(|link| kernel.close_link(me, link));
        kernel.returned(me);
    }

    fn open(&mut self, peer: PeerId) -> Result<LinkId, LinkError> {
        let mut kernel = self.0.enter();
        let me = self.0.peer;
        let Some(process) = kernel.processes.get_mut(me) else { return Err(LinkError::Interrupted) };
        if process.wires.generation.is_none() {
            return Err(LinkError::Down("no generation has started".into()));
        }
        if process.heard.wake {
            return Err(LinkError::Interrupted);
        }
        process.wires.opened = None;
        let Some(target) = process.wires.addresses.get(&peer).copied() else {
            return Err(LinkError::Down("unknown peer".into()));
        };
        kernel.open_begin(me, target);
        let mut kernel = self.0.pass(kernel);
        let process = kernel.processes.get_mut(me).expect("it runs");
        Opened::result(process.wires.opened.take(), process.heard.wake)
    }

    fn accepted(&mut self) -> Option<(PeerId, LinkId)> {
        let kernel = &mut *self.0.enter();
        let me = self.0.peer;
        loop {
            let process = kernel.processes.get_mut(me)?;
            let generation = process.wires.generation?;
            // Links of an older generation are dropped, those of a later one wait.
            let takes_old = planted::has(planted::TAKES_OLD_FRAMES);
            let old =
                process.wires.inbox.iter().position(|knock| knock.generation < generation && !takes_old);
            if let Some(old) = old {
                let knock = process.wires.inbox.remove(old);
                kernel.note(|| format!("process {} drops a link of generation {}", me.0, knock.generation));
                kernel.net.close(&mut kernel.agenda, (knock.conn, 1));
                continue;
            }
            let at = process.wires.inbox.iter().position(|knock| knock.generation <= generation)?;
            let knock = process.wires.inbox.remove(at);
            if process.wires.addresses.contains_key(&knock.from) {
                let wires = &mut kernel.processes.get_mut(me)?.wires;
                return Some((knock.from, wires.adopt((knock.conn, 1))));
            }
            kernel.net.close(&mut kernel.agenda, (knock.conn, 1));
        }
    }

    fn send(&mut self, link: LinkId, pieces: &[IoSlice<'_>]) -> Result<usize, LinkError> {
        let mut guard = self.0.enter();
        let kernel = &mut *guard;
        let end = kernel.processes.end(self.0.peer, link)?;
        let count = kernel.net.send(&mut kernel.agenda, end, pieces)?;
        if kernel.net.has_ring(end) {
            let kernel = &mut *self.pause(guard);
            kernel.net.wake(&mut kernel.agenda, end);
        }
        Ok(count)
    }

    fn receive(&mut self, link: LinkId, pieces: &mut [IoSliceMut<'_>]) -> Result<usize, LinkError> {
        let kernel = &mut *self.0.enter();
        let end = kernel.processes.end(self.0.peer, link)?;
        let (count, other) = kernel.net.receive(&mut kernel.agenda, end, pieces)?;
        kernel.stir_all(other);
        Ok(count)
    }

    fn reads_ahead(&self, _link: LinkId) -> bool {
        !self.0.shared.lock().config.network.rings
    }

    fn glance(&mut self, link: LinkId, times: u32) -> bool {
        if !self.0.shared.lock().config.network.rings {
            return false;
        }
        let kernel = &mut *self.0.enter();
        let Ok(end) = kernel.processes.end(self.0.peer, link) else { return false };
        (0..times.min(3)).any(|_| kernel.net.has_come(end))
    }

    fn has_cells(&self) -> bool {
        self.0.shared.lock().config.network.rings
    }

    fn put(&mut self, link: LinkId, label: Label, bytes: &[u8]) -> bool {
        let kernel = &mut *self.0.enter();
        kernel.processes.end(self.0.peer, link).is_ok_and(|end| kernel.net.put(end, label, bytes))
    }

    fn rouse(&mut self, links: &[LinkId]) {
        for link in links {
            let guard = self.0.enter();
            let kernel = &mut *self.pause(guard);
            if let Ok(end) = kernel.processes.end(self.0.peer, *link) {
                kernel.net.rouse(&mut kernel.agenda, end);
            }
        }
    }

    fn take(
        &mut self,
        link: LinkId,
        label: Label,
        times: u32,
        into: &mut [u8],
    ) -> Result<Option<usize>, LinkError> {
        let kernel = &mut *self.0.enter();
        let Ok(end) = kernel.processes.end(self.0.peer, link) else { return Ok(None) };
        for _ in 0..times.min(3) {
            if let Some(length) = kernel.net.take(end, label, into)? {
                return Ok(Some(length));
            }
        }
        Ok(None)
    }

    fn is_near(&self, _link: LinkId) -> bool {
        self.0.shared.lock().config.network.near
    }

    fn read(&mut self, link: LinkId, from: u64, into: &mut [u8]) -> bool {
        // All processes are threads of this one. What is freed when one dies is out of reach from then on.
        let kernel = self.0.enter();
        kernel.processes.end(self.0.peer, link).is_ok_and(|end| kernel.net.is_open(end))
            && Neighbor::myself().read(from, into)
    }

    fn wait(&mut self, writing: &[LinkId], timeout: Duration, ready: &mut Vec<LinkId>) {
        let mut kernel = self.0.enter();
        let me = self.0.peer;
        let is_rash = kernel.ends(me).into_iter().any(|end| kernel.net.is_sending(end));
        assert!(!is_rash, "it waits, and has not looked yet who sleeps beside what it has sent");
        let mut is_there = timeout.is_zero();
        if !is_there && kernel.config.network.rings {
            kernel = self.doze(kernel, writing);
            is_there = self.has_something(&mut kernel, writing);
        }
        if is_there {
            kernel.wake_now(me);
        } else {
            kernel.block(me, Blocked::Wait { writing: writing.to_vec() }, Some(timeout));
            kernel.stir(me);
        }
        let mut kernel = self.0.pass(kernel);
        let kernel = &mut *kernel;
        let process = kernel.processes.get_mut(me).expect("it runs");
        process.heard.wake = false;
        let links: Vec<(LinkId, EndId)> =
            process.wires.links.iter().map(|(link, end)| (*link, *end)).collect();
        for (link, end) in links {
            kernel.net.sleeps(end, false, false);
            kernel.net.fence(end);
            let has_news = kernel.net.notices(end);
            if kernel.net.has_come(end) || has_news {
                ready.push(link);
            }
        }
    }

    fn idle(&mut self, timeout: Duration) {
        let mut kernel = self.0.enter();
        let me = self.0.peer;
        kernel.block(me, Blocked::Idle, Some(timeout));
        kernel.stir(me);
        let mut kernel = self.0.pass(kernel);
        kernel.processes.get_mut(me).expect("it runs").heard.wake = false;
    }

    fn relax(&mut self) {
        let kernel = self.0.enter();
        drop(self.0.give_way(kernel));
    }

    fn close(&mut self, link: LinkId) {
        self.0.enter().close_link(self.0.peer, link);
    }

    fn patience(&self, _ranks: usize) -> Patience {
        // All ways to wait, however many cores this machine has.
        let seed = self.0.shared.lock().config.seed;
        match seed % 3 {
            0 => Patience::default(),
            1 => Patience { spins: 0, yields: 3, gives_way: Some(Duration::from_millis(1)) },
            _ => Patience { spins: 20, yields: 9, gives_way: Some(Duration::from_millis(1)) },
        }
    }
}
