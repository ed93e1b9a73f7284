//! What whoever starts a job is told while it runs.

use ft_comm::time::Time;
use ft_proto::arbiter::Event;
use ft_proto::rank::Rank;

/// Something has happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Seen<'a> {
    /// What the arbiter has on record.
    Event(&'a Event),
    /// From now on a process on a host has this rank.
    Stands {
        /// The rank.
        rank: Rank,
        /// The host by its name.
        host: &'a str,
    },
    /// A host is lost, or takes processes again.
    Host {
        /// Its name.
        name: &'a str,
        /// It takes processes again.
        is_back: bool,
    },
    /// A signal ends the job as soon as its newest checkpoint is in files.
    Saving {
        /// The signal, in words.
        cause: &'a str,
    },
}

/// Who is told, and when it was.
pub(super) type Observer<'a> = dyn FnMut(Seen<'_>, Time) + 'a;
