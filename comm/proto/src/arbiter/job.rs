//! What the arbiter is told and what it wants done: the order of a job, effects and events.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::fault::{CutSpec, KillSpec};
use crate::rank::{Generation, OnFailure, PeerId, Rank};
use crate::settings::{MessageSettings, Settings};
use crate::wire::control::{News, Saved};

use super::Mtbf;

/// The job as it was ordered.
#[derive(Clone, Debug)]
pub struct Config {
    /// Ranks that compute.
    pub compute: usize,
    /// All ranks, dedicated parity ranks included.
    pub total: usize,
    /// What happens when a rank is lost.
    pub on_failure: OnFailure,
    /// Processes that are started ahead to take the ranks of lost ones.
    pub spares: usize,
    /// How often the same rank may fail in a row without progress in between.
    pub max_restarts: u32,
    /// Heartbeat interval.
    pub interval: Duration,
    /// Silence after which a process counts as lost, if the job survives its loss.
    pub timeout: Duration,
    /// Ranks that protect each other, and how many of them may be lost at once. A rank in no group
    /// may always be.
    pub groups: Vec<(Vec<Rank>, usize)>,
    /// The program is known to join the job: it is waited for from its start. Any other may have nothing to do with the library.
    pub joins: bool,
    /// What ranks are told that is about messages.
    pub messages: MessageSettings,
    /// What they are told for layers above, by the name of the layer.
    pub layers: BTreeMap<String, Settings>,
    /// Failures to inject.
    pub kills: Vec<KillSpec>,
    /// Links to cut.
    pub cuts: Vec<CutSpec>,
    /// Random kills to inject.
    pub mtbf: Option<Mtbf>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// With this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
}

/// What the launcher is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send a message.
    Send {
        /// To this process, if it is connected.
        to: PeerId,
        /// The message.
        message: News,
    },
    /// Start a process.
    Start {
        /// For this rank.
        rank: Rank,
        /// Under this number.
        peer: PeerId,
        /// How often the rank has been replaced.
        incarnation: u32,
    },
    /// Start a process that waits for a rank.
    Spare(PeerId),
    /// A spare takes a rank.
    Seat {
        /// The spare.
        peer: PeerId,
        /// Its rank.
        rank: Rank,
        /// How often the rank has been replaced.
        incarnation: u32,
    },
    /// Put a process to death.
    Kill(PeerId),
    /// Stop a process (an injected hang).
    Stop(PeerId),
    /// Something that people want to know.
    Record(Event),
    /// The job is over with this status; nothing follows.
    End {
        /// Exit status.
        code: i32,
        /// Cause, empty if all went well.
        message: String,
    },
}

/// Something that people want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An injected failure strikes.
    Struck {
        /// Its position on the command line.
        spec: usize,
    },
    /// Links are cut.
    Cut {
        /// The position of the cut among those of the command line.
        spec: usize,
    },
    /// A random kill strikes.
    RandomKill {
        /// This rank.
        rank: Rank,
    },
    /// A rank is lost.
    Lost {
        /// The rank.
        rank: Rank,
        /// How it was noticed.
        cause: String,
        /// The generation that it was a member of; none if it had not joined one.
        generation: Option<Generation>,
    },
    /// A rank is silent for the heartbeat timeout. The job would not survive its loss, so it is
    /// waited for.
    Silent {
        /// The rank.
        rank: Rank,
        /// The heartbeat timeout.
        timeout: Duration,
        /// How long it may be silent.
        limit: Duration,
    },
    /// A rank of which [`Event::Silent`] was recorded has given a sign of life.
    HeardAgain {
        /// The rank.
        rank: Rank,
        /// How long it was silent.
        silent: Duration,
    },
    /// The number of spares that can take a rank at once has changed.
    Spares {
        /// Those that can.
        ready: usize,
        /// Those that are wanted.
        wanted: usize,
        /// Why there is one fewer; none if there is one more.
        lost: Option<String>,
    },
    /// A host is lost that had no process of the job any more.
    HostLost {
        /// Which, and how it was noticed.
        cause: String,
    },
    /// A host that was lost takes processes again, or one that is new does.
    HostBack {
        /// Its name.
        name: String,
        /// The job did not have it before.
        is_new: bool,
    },
    /// The agent of a host has died and another one has come, so that its ranks are there still.
    AgentBack {
        /// The name of the host.
        name: String,
    },
    /// All survivors of a loss have stopped using the old generation.
    Agreed,
    /// All replacements have joined.
    Respawned,
    /// A generation starts.
    Decided {
        /// Which.
        generation: Generation,
        /// Ranks that were lost since the one before.
        failed: Vec<Rank>,
        /// Ranks that somebody holds: those of `failed` too if they were replaced.
        held: Vec<Rank>,
    },
    /// All ranks have resumed work after a repair.
    Resumed {
        /// In this generation.
        generation: Generation,
        /// Most steps that a rank has to do again.
        steps_lost: u64,
    },
    /// A line for the terminal.
    Progress {
        /// From this rank.
        rank: Rank,
        /// Thousandths of the work that are done, if that can be said.
        done: Option<u16>,
        /// The line.
        line: String,
    },
    /// A rank does something else from now on.
    Activity {
        /// This rank.
        rank: Rank,
        /// What, in the words of the layers above.
        name: String,
    },
    /// What a rank has to say of a generation so far, in case that it does not come to its end.
    Account {
        /// This rank.
        rank: Rank,
        /// This generation.
        generation: Generation,
        /// Opaque.
        account: Vec<u8>,
    },
    /// Ranks wait for longer than the watchdog allows.
    Stalled {
        /// What is known of all ranks, in several lines.
        account: String,
    },
    /// A rank has refused connections of strangers.
    Refused {
        /// How many.
        count: u64,
    },
    /// A checkpoint was written to files, or could not be.
    Saved {
        /// Who says so.
        rank: Rank,
        /// What has become of it.
        saved: Saved,
    },
    /// A rank has made progress that no failure will undo.
    Marked {
        /// Which.
        rank: Rank,
        /// The number of this progress, as the layers above count it.
        number: u64,
    },
    /// All ranks are done; per rank what it has to report.
    Finished {
        /// By rank.
        outputs: Vec<Vec<u8>>,
    },
}
