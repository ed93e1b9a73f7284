//! Watches over the processes of this host: a death is known before the dying one has given its memory back.
//!
//! A thread waits for the lifelines ([`ft_comm::lifeline`]) of up to 127 processes at a time and rings a bell in the
//! launcher's `poll`; more processes get more threads. Before that it raises the alarm of the other members itself: they hear of
//! it while the launcher still waits for a core.

use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::EventfdFlags;

use ft_comm::lifeline::{self, Lifeline, WAIT_MOST};
use ft_proto::rank::{Generation, PeerId};

/// Processes that one thread watches.
const SHARE: usize = WAIT_MOST - 1;

/// Who is a member of which generation, of the processes of this host.
#[derive(Debug, Default)]
struct Members {
    /// One more than the generation.
    failed: u64,
    lines: Vec<(PeerId, Arc<Lifeline>)>,
}

impl Members {
    /// If a member has died, the generation has failed.
    fn mourn(&self) {
        if self.lines.iter().any(|(_, line)| line.is_cut()) {
            self.lines.iter().for_each(|(_, line)| line.raise(self.failed));
        }
    }
}

/// What a thread of the watch shares with the launcher. Neither holds two of the locks at once.
#[derive(Debug, Default)]
struct Shift {
    /// Of all that have not been forgotten, the dead too: a generation that begins with one of them has failed.
    lines: Mutex<Vec<(PeerId, Arc<Lifeline>)>>,
    members: Arc<Mutex<Members>>,
    /// Rung when `lines` has changed.
    changed: AtomicU32,
    /// Whose lines were cut.
    dead: Mutex<Vec<PeerId>>,
    over: std::sync::atomic::AtomicBool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Vigil {
    shifts: Vec<Arc<Shift>>,
    members: Arc<Mutex<Members>>,
    bell: Arc<OwnedFd>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Vigil {
    /// Nobody is watched yet.
    pub(super) fn new() -> std::io::Result<Self> {
        let bell = rustix::event::eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { shifts: vec![], members: Arc::default(), bell: Arc::new(bell) })
    }

    /// Readable when somebody has died.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Watches `peer` by its lifeline. Without a thread for it the death is noticed later, by other signs.
    pub(super) fn watch(&mut self, peer: PeerId, line: impl Into<Arc<Lifeline>>) {
        let free = self.shifts.iter().find(|shift| lock(&shift.lines).len() < SHARE).cloned();
        let shift = free.or_else(|| self.begin_shift().ok());
        if let Some(shift) = shift {
            lock(&shift.lines).push((peer, line.into()));
            lifeline::ring(&shift.changed);
        }
    }

    /// From now on the death of one of `peers` is the failure of `generation`.
    pub(super) fn begin(&self, generation: Generation, peers: impl Fn(PeerId) -> bool) {
        let failed = u64::from(generation) + 1;
        if lock(&self.members).failed == failed {
            return;
        }
        let watched = self.shifts.iter().flat_map(|shift| lock(&shift.lines).clone());
        let lines = watched.filter(|(peer, _)| peers(*peer)).collect();
        let mut members = lock(&self.members);
        *members = Members { failed, lines };
        members.mourn();
    }

    fn begin_shift(&mut self) -> std::io::Result<Arc<Shift>> {
        let shift = Arc::new(Shift { members: self.members.clone(), ..Shift::default() });
        let (mine, bell) = (shift.clone(), self.bell.clone());
        std::thread::Builder::new().name("vigil".into()).spawn(move || mine.keep(&bell))?;
        self.shifts.push(shift.clone());
        Ok(shift)
    }

    /// `peer` has gone, in whatever way.
    pub(super) fn forget(&mut self, peer: PeerId) {
        for shift in &self.shifts {
            let mut lines = lock(&shift.lines);
            let before = lines.len();
            lines.retain(|(other, _)| *other != peer);
            if lines.len() < before {
                drop(lines);
                lifeline::ring(&shift.changed);
                return;
            }
        }
    }

    /// Who has died since the last call.
    pub(super) fn dead(&mut self) -> Vec<PeerId> {
        let mut rang = [0; 8];
        if rustix::io::read(&*self.bell, &mut rang).is_err() {
            return vec![];
        }
        self.shifts.iter().flat_map(|shift| std::mem::take(&mut *lock(&shift.dead))).collect()
    }
}

impl Drop for Vigil {
    fn drop(&mut self) {
        for shift in &self.shifts {
            shift.over.store(true, Ordering::Release);
            lifeline::ring(&shift.changed);
        }
    }
}

impl Shift {
    fn keep(&self, bell: &OwnedFd) {
        let mut told = HashSet::new();
        while !self.over.load(Ordering::Acquire) {
            let heard = self.changed.load(Ordering::Acquire);
            let lines = lock(&self.lines).clone();
            let (cut, whole): (Vec<_>, Vec<_>) = lines.into_iter().partition(|(_, line)| line.is_cut());
            let news: Vec<PeerId> =
                cut.into_iter().map(|(peer, _)| peer).filter(|peer| told.insert(*peer)).collect();
            if !news.is_empty() {
                lock(&self.members).mourn();
                lock(&self.dead).extend(news);
                let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
            }
            if lifeline::wait(&self.changed, heard, whole.iter().map(|(_, line)| &**line)).is_err() {
                return; // this kernel cannot; other signs remain
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;
    use ft_comm::lifeline::ENV_LIFELINE;

    /// The program of the next test: a process that holds its lifeline and dies of SIGKILL.
    #[test]
    fn holds_and_dies_if_it_is_told_to() {
        let Ok(number) = std::env::var(ENV_LIFELINE) else { return };
        let _held = lifeline::hold(&number).expect("this kernel has robust futexes");
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }

    #[test]
    fn a_death_is_seen_before_anybody_waits_for_the_process() {
        let mut vigil = Vigil::new().unwrap();
        // More than one thread watches.
        for peer in 1..=200 {
            vigil.watch(PeerId(peer), Lifeline::new().unwrap().0);
        }
        let (line, file) = Lifeline::new().unwrap();
        let (_, module) = module_path!().split_once("::").unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("{module}::holds_and_dies_if_it_is_told_to")])
            .env(ENV_LIFELINE, file.as_raw_fd().to_string())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        drop(file);
        let (other, other_file) = Lifeline::new().unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let survivor = std::thread::spawn(move || {
            let number = std::os::fd::IntoRawFd::into_raw_fd(other_file).to_string();
            let held = lifeline::hold(&number).expect("this kernel has robust futexes");
            tell.send(held.flag()).unwrap();
            ended.recv().unwrap_err();
        });
        let flag = told.recv().unwrap();
        vigil.watch(PeerId(778), other);
        vigil.watch(PeerId(777), line);
        vigil.begin(4, |peer| peer.0 > 700);
        let mut dead = vec![];
        while dead.is_empty() {
            assert!(poll(&mut [PollFd::new(&vigil.bell, PollFlags::IN)], None).is_ok());
            dead = vigil.dead();
        }
        assert_eq!(dead, [PeerId(777)]);
        assert_eq!(flag.failed(), 5, "generation 4 has failed, and a member has been told");
        drop(end);
        survivor.join().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn a_generation_that_begins_with_a_dead_member_has_failed() {
        let mut vigil = Vigil::new().unwrap();
        let [dead, alive, other] = std::array::from_fn(|_| Arc::new(Lifeline::new().unwrap().0));
        for (peer, line) in (1..).zip([&dead, &alive, &other]) {
            vigil.watch(PeerId(peer), line.clone());
        }
        dead.cut();
        while vigil.dead().is_empty() {
            assert!(poll(&mut [PollFd::new(&vigil.bell, PollFlags::IN)], None).is_ok());
        }
        vigil.begin(4, |peer| peer.0 == 3);
        assert_eq!(other.raised(), 0, "the dead one is no member");
        vigil.begin(5, |peer| peer.0 < 3);
        assert_eq!((alive.raised(), other.raised()), (6, 0));
        vigil.forget(PeerId(1));
        vigil.begin(6, |peer| peer.0 < 3);
        assert_eq!(alive.raised(), 6, "the dead one is forgotten");
    }

    #[test]
    fn deaths_while_a_generation_begins_stop_nobody() {
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for round in 0..50 {
                let mut vigil = Vigil::new().unwrap();
                let lines: Vec<Arc<Lifeline>> =
                    (0..100).map(|_| Arc::new(Lifeline::new().unwrap().0)).collect();
                for (peer, line) in (1..).zip(&lines) {
                    vigil.watch(PeerId(peer), line.clone());
                }
                let mut generation = 100 * round;
                for line in &lines {
                    line.cut();
                    generation += 1;
                    vigil.begin(generation, |_| true);
                }
                let mut dead = 0;
                while dead < lines.len() {
                    assert!(poll(&mut [PollFd::new(&vigil.bell, PollFlags::IN)], None).is_ok());
                    dead += vigil.dead().len();
                }
            }
            done.send(()).unwrap();
        });
        is_done.recv_timeout(std::time::Duration::from_secs(120)).expect("nobody waits for a lock for ever");
    }

    #[test]
    fn a_line_that_is_given_back_is_no_death() {
        let (line, file) = Lifeline::new().unwrap();
        let mut vigil = Vigil::new().unwrap();
        vigil.watch(PeerId(7), line);
        let number = std::os::fd::IntoRawFd::into_raw_fd(file).to_string();
        let thread = std::thread::spawn(move || {
            drop(lifeline::hold(&number).expect("this kernel has robust futexes"))
        });
        thread.join().unwrap();
        assert_eq!(vigil.dead(), []);
        vigil.forget(PeerId(7));
    }
}
