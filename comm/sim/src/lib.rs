//! The simulator: a whole job in one process and in virtual time, as a function of a seed.
//!
//! The real [`World`], collectives, endpoint, member and arbiter run, and whatever is built on them; only the
//! wire, the processes and the clock are simulated. Every incarnation of a rank is a thread, but exactly one of
//! them runs at a time (`kernel.rs`), and it is the kernel that says which. Messages are late, come in pieces
//! and overtake those of other links (`net.rs`); processes are killed, stopped and cut off (`schedule.rs`) at
//! any call that they make. Two runs with one seed are the same, so a failure is found once and replayed as
//! often as it takes. Set `FT_SIM_TRACE` to see all that happens.
//!
//! A job that makes no progress is no test that hangs: [`Ending::Hung`] says who waits for what.
//!
//! What is not simulated: sockets, handshakes and strangers ([`ft_comm::transport::sockets`] and the tests on real
//! processes have those), the time that computing takes, and memory orderings between a caller and its service
//! thread. Memory between two ranks is (`net/beside.rs`).

#![forbid(unsafe_code)]

mod agenda;
mod baton;
mod config;
mod control;
mod core;
mod happening;
mod hosts;
mod kernel;
mod net;
mod outcome;
mod process;
mod processes;
mod schedule;
mod service;
#[cfg(test)]
mod tests;
mod transport;

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;

use self::core::Core;
use baton::Shared;
pub use config::Config;
use kernel::{Holder, Kernel};
pub use net::Network;
pub use outcome::{Ending, Event, Finished, Seen, SimOutcome};
use process::{Life, Process};
pub use schedule::{Blow, Fault, Faults, Trigger};
use service::SimService;
use transport::{Killed, Place, SimTransport, address};

use ft_comm::Communicator;
use ft_comm::World;
use ft_comm::estate::Ground;
use ft_comm::time::Time;
use ft_proto::planted;
use ft_proto::rank::{PeerId, Rank};

/// Simulates a job of which every process runs `program`, and returns when it has ended.
///
/// # Panics
/// If `program` panics; the seed is printed.
pub fn run<R: Send>(config: Config, program: impl Fn(World) -> R + Sync) -> SimOutcome<R> {
    let (seed, bug) = (config.seed, config.bug);
    let grounds =
        (0..config.estates).map(|_| Ground::new().expect("the operating system has such memory")).collect();
    planted::plant(bug);
    let _core = Core::take();
    let shared = Arc::new(Shared { kernel: Mutex::new(Kernel::new(config)), main: Condvar::new() });
    let run = Run { shared, program, grounds, bug, finished: Mutex::new(vec![]), panicked: Mutex::new(None) };
    std::thread::scope(|scope| {
        let mut kernel = run.shared.lock();
        loop {
            kernel = run.shared.pass(kernel, Holder::Main, &run.shared.main);
            if let Some(peer) = kernel.starting.take() {
                run.start(scope, &mut kernel, peer);
            } else if kernel.over {
                break;
            }
        }
        run.unwind(kernel);
    });
    planted::plant("");
    if let Some(panic) = run.panicked.into_inner().unwrap_or_else(PoisonError::into_inner) {
        eprintln!("the simulation of seed {seed} failed");
        panic::resume_unwind(panic);
    }
    let kernel = run.shared.lock();
    SimOutcome {
        ending: kernel.ending.clone().unwrap_or_else(|| Ending::Hung("it stopped".into())),
        finished: run.finished.into_inner().unwrap_or_else(PoisonError::into_inner),
        history: kernel.record.seen.clone(),
        events: kernel.record.events.clone(),
        elapsed: kernel.agenda.now.since(Time(0)),
        happened: kernel.record.happened,
        overslept: kernel.record.overslept,
        trace: kernel.record.trace,
        unfired: kernel.arbiter.unfired(),
    }
}

/// The threads of a simulation.
struct Run<R, P> {
    shared: Arc<Shared>,
    program: P,
    /// Memory of hosts that outlives processes.
    grounds: Vec<Ground>,
    /// The planted defect; every thread is told.
    bug: &'static str,
    finished: Mutex<Vec<Finished<R>>>,
    panicked: Mutex<Option<Box<dyn Any + Send>>>,
}

impl<R: Send, P: Fn(World) -> R + Sync> Run<R, P> {
    /// Starts the thread of `peer`, which was ordered.
    fn start<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, kernel: &mut Kernel, peer: PeerId) {
        let process = kernel.processes.get(peer).expect("it was ordered");
        let place = Place { shared: self.shared.clone(), peer, turn: process.turn.clone() };
        let (rank, incarnation) = (process.rank, process.incarnation);
        let address = address(kernel.hosts.of(peer), peer);
        kernel.wake_now(peer);
        std::thread::Builder::new()
            .name(format!("rank {rank}.{incarnation}"))
            .spawn_scoped(scope, move || {
                planted::plant(self.bug);
                self.main_of_rank(place, rank, incarnation, address);
            })
            .expect("the operating system gives a thread");
    }

    fn main_of_rank(&self, place: Place, rank: Rank, incarnation: u32, address: String) {
        let (shared, peer) = (&self.shared, place.peer);
        let kernel = shared.await_turn(shared.lock(), Holder::Process(peer), &place.turn);
        let alive = kernel.processes.get(peer).is_some_and(Process::alive);
        drop(kernel);
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
            if !alive {
                return None;
            }
            let (transport, service) = (SimTransport(place.clone()), SimService(place.clone()));
            let ground = self.ground(peer);
            let world = World::join(Box::new(transport), Box::new(service), address, ground.as_ref());
            Some(world.map(&self.program))
        }));
        let mut kernel = shared.lock();
        match outcome {
            Ok(None) => {}
            Ok(Some(result)) => {
                let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
                finished.push(Finished { peer, rank, incarnation, result });
            }
            Err(payload) if payload.is::<Killed>() => {}
            Err(payload) => {
                self.panicked.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(payload);
                kernel.over = true;
            }
        }
        kernel.thread_ended(peer);
        shared.release(&mut kernel);
    }

    /// The memory of the host of a process.
    fn ground(&self, peer: PeerId) -> Option<Ground> {
        let shared = self.shared.clone();
        let kernel = shared.lock();
        let at = match kernel.config.messages.hosts {
            Some(_) => kernel.hosts.of(peer),
            // Most are on the first one; where a process is does not depend on what happens.
            None => {
                let at = (kernel.config.seed ^ u64::from(peer.0)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61;
                if at == 0 { self.grounds.len().checked_sub(1)? } else { 0 }
            }
        };
        drop(kernel);
        let ground = self.grounds.get(at)?;
        let lives = move |other| shared.lock().processes.get(PeerId(other)).is_some_and(Process::alive);
        Some(ground.simulated(peer.0, lives))
    }

    /// Threads that are left, behind a cut or in a hung job, unwind one by one.
    fn unwind<'a>(&'a self, mut kernel: MutexGuard<'a, Kernel>) {
        for peer in kernel.processes.peers() {
            if let Some(process) = kernel.processes.get_mut(peer).filter(|process| process.thread) {
                process.life = Life::Dead;
                process.blocked = None;
                kernel.holder = Holder::Process(peer);
                self.shared.signal(&kernel);
                kernel = self.shared.await_turn(kernel, Holder::Main, &self.shared.main);
            }
        }
    }
}

/// Runs `rank_main` on `size` ranks of a job without failures; gives what they return, by rank.
///
/// For tests of what is built on communicators: every run is the same.
///
/// # Panics
/// If `rank_main` panics, or waits for a message that nobody sends.
pub fn ranks<R: Send>(size: usize, rank_main: impl Fn(&Communicator) -> R + Sync) -> Vec<R> {
    let outcome = run(Config::calm(size), |mut world| {
        let result = rank_main(world.comm());
        world.finalize(Vec::new()).expect("nobody fails");
        result
    });
    assert_eq!(outcome.ending, Ending::Ended { code: 0, message: String::new() });
    let mut finished = outcome.finished;
    finished.sort_by_key(|finished| finished.rank);
    finished.into_iter().map(|finished| finished.result.expect("nobody fails")).collect()
}
