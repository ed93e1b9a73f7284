//! What is to be simulated: the job, what goes wrong, and how long it may take.

use std::collections::BTreeMap;
use std::time::Duration;

use super::net::Network;
use super::schedule::Faults;
use ft_proto::arbiter::OnFailure;
use ft_proto::fault::KillSpec;
use ft_proto::settings::{MessageSettings, Settings};

/// What is to be simulated.
#[derive(Clone, Debug)]
pub struct Config {
    /// Everything that is left to chance follows from it.
    pub seed: u64,
    /// Ranks that compute.
    pub ranks: usize,
    /// Dedicated parity ranks.
    pub parity: usize,
    /// Failures to inject, as on the command line.
    pub kills: Vec<KillSpec>,
    /// What ranks are told that is about messages; where they are started first counts here too.
    pub messages: MessageSettings,
    /// What they are told for layers above, by the name of the layer.
    pub layers: BTreeMap<String, Settings>,
    /// What goes wrong without being asked for.
    pub faults: Faults,
    /// How the network behaves.
    pub network: Network,
    /// What happens when a rank is lost.
    pub on_failure: OnFailure,
    /// Processes that are started ahead to take the ranks of lost ones.
    pub spares: usize,
    /// Hosts have memory that outlives processes: so many hosts, on which processes are started by chance if none are named; 0: no such
    /// memory.
    pub estates: u32,
    /// How often the same rank may fail in a row without progress in between.
    pub restarts_max: u32,
    /// Heartbeat interval.
    pub interval: Duration,
    /// Silence after which a process counts as lost.
    pub timeout: Duration,
    /// Virtual time after which the job counts as hung.
    pub time_max: Duration,
    /// Number of events after which the job counts as hung.
    pub events_max: u64,
    /// Print all that happens.
    pub trace: bool,
    /// A defect to run with ([`ft_proto::planted`]), if this build has them.
    #[doc(hidden)]
    pub bug: &'static str,
}

impl Config {
    /// A job without failures on a good network.
    pub fn calm(ranks: usize) -> Self {
        Self {
            seed: 0,
            ranks,
            parity: 0,
            kills: vec![],
            messages: MessageSettings::default(),
            layers: BTreeMap::new(),
            faults: Faults::default(),
            network: Network::calm(),
            on_failure: OnFailure::Rebuild,
            spares: 0,
            estates: 0,
            restarts_max: 3,
            interval: Duration::from_millis(100),
            timeout: Duration::from_secs(1),
            time_max: Duration::from_secs(3600),
            events_max: u64::MAX,
            trace: std::env::var_os("FT_SIM_TRACE").is_some(),
            bug: "",
        }
    }

    /// A job on a bad network, without failures yet; they are noticed soon.
    pub fn rough(seed: u64, ranks: usize) -> Self {
        Self {
            seed,
            network: Network {
                near: seed.is_multiple_of(2),
                rings: seed.is_multiple_of(3),
                ..Network::rough()
            },
            restarts_max: 12,
            interval: Duration::from_millis(20),
            timeout: Duration::from_millis(200),
            time_max: Duration::from_secs(60),
            events_max: 2_000_000,
            ..Self::calm(ranks)
        }
    }
}
