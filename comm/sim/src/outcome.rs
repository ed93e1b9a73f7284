//! What comes out of a simulation.

use std::time::Duration;

use ft_comm::time::Time;
use ft_proto::arbiter::Event as ArbiterEvent;
use ft_proto::error::CommError;
use ft_proto::rank::{Membership, PeerId, Rank};

/// How a simulated job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By the word of its launcher.
    Ended {
        /// Exit status.
        code: i32,
        /// Cause, empty if all went well.
        message: String,
    },
    /// It made no progress, or some process did not end; who waits for what.
    Hung(String),
}

/// A process saw a generation start: it has returned from [`World::repair`](ft_comm::World::repair) or from joining.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When.
    pub at: Time,
    /// Which process.
    pub peer: PeerId,
    /// Its rank.
    pub rank: Rank,
    /// How often the rank had been replaced.
    pub incarnation: u32,
    /// What it was given.
    pub membership: Membership,
}

/// Something that happened to the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The launcher recorded it.
    Launcher(ArbiterEvent),
}

/// A process whose program returned.
#[derive(Clone, Debug)]
pub struct Finished<R> {
    /// Which process.
    pub peer: PeerId,
    /// Its rank.
    pub rank: Rank,
    /// How often the rank had been replaced.
    pub incarnation: u32,
    /// What the program returned, or why the process could not join.
    pub result: Result<R, CommError>,
}

/// What came out of a simulation.
#[derive(Clone, Debug)]
pub struct SimOutcome<R> {
    /// How the job ended.
    pub ending: Ending,
    /// The processes whose programs returned, in the order in which they did.
    pub finished: Vec<Finished<R>>,
    /// Every return from a repair or from joining, in order.
    pub history: Vec<Seen>,
    /// What happened, in order.
    pub events: Vec<(Time, Event)>,
    /// Virtual time at the end.
    pub elapsed: Duration,
    /// Number of simulated events.
    pub happened: u64,
    /// How often a process has slept to the end of its time although memory beside a link had bytes for it.
    pub overslept: usize,
    /// A hash of all simulated events; equal for two runs with one seed.
    pub trace: u64,
    /// Positions of the injected failures that did not fire.
    pub unfired: Vec<usize>,
}

impl<R> SimOutcome<R> {
    /// The result of the last incarnation of `rank`, if it returned.
    pub fn result(&self, rank: Rank) -> Option<&R> {
        let of_rank = |finished: &&Finished<R>| finished.rank == rank;
        self.finished.iter().filter(of_rank).max_by_key(|f| f.incarnation)?.result.as_ref().ok()
    }
}
