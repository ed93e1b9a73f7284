//! Who is who: ranks, tags, generations and peers, and what a receive may match.

use serde::{Deserialize, Serialize};

/// Position of a process in a communicator, `0..size`.
pub type Rank = usize;

/// Label of a message, chosen by the program.
pub type Tag = u32;

/// Number of repairs so far; the first membership is generation 0.
pub type Generation = u32;

/// One incarnation of one process of the job; never used again after its death. Number 0 is the launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PeerId(pub u32);

impl PeerId {
    /// The launcher, which arbitrates the membership.
    pub const LAUNCHER: Self = Self(0);
}

/// Which rank a receive takes a message from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// `MPI_ANY_SOURCE`: whichever message arrived first.
    Any,
    /// This rank only.
    Rank(Rank),
}

impl From<Rank> for Source {
    fn from(rank: Rank) -> Self {
        Self::Rank(rank)
    }
}

/// Which tag a receive takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagSel {
    /// `MPI_ANY_TAG`.
    Any,
    /// This tag only.
    Tag(Tag),
}

impl From<Tag> for TagSel {
    fn from(tag: Tag) -> Self {
        Self::Tag(tag)
    }
}

/// What was received: `MPI_Status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Rank of the sender in the communicator of the receive.
    pub source: Rank,
    /// Tag of the message.
    pub tag: Tag,
    /// Length of the message in bytes.
    pub bytes: usize,
}

/// The seat of one rank in a membership.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seat {
    /// The process that holds the rank.
    pub peer: PeerId,
    /// How often the rank has been replaced.
    pub incarnation: u32,
    /// Where its service thread accepts links, as the transport writes it: a label of its host, a blank, and the rest.
    pub address: String,
}

impl Seat {
    /// A label of the host where the process runs.
    fn host(&self) -> &str {
        self.address.split(' ').next().unwrap_or_default()
    }
}

/// Who holds which rank in one generation. Every member of the generation has the same one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// The generation that starts with this membership.
    pub generation: Generation,
    /// One seat per rank: the ranks that compute first, then the dedicated parity ranks.
    pub seats: Vec<Seat>,
    /// How many of them compute.
    pub compute: usize,
    /// Ranks that were lost in the generation before, by the numbers that they had in it, ascending.
    pub failed: Vec<Rank>,
    /// Per rank the number that its process had in the generation before; none of a replacement and of a hole. It is
    /// another one if ranks were lost and the others closed up.
    pub before: Vec<Option<Rank>>,
    /// Ranks that nobody holds any more, ascending: calls to them are errors.
    pub holes: Vec<Rank>,
    /// Per rank the value that it gave to the repair (`World::repair`); 0 for replacements and holes.
    pub reports: Vec<u64>,
    /// Some rank has marked progress (`World::mark`) before this generation.
    pub marked: bool,
}

impl Membership {
    /// By rank the host where its process runs, as numbers that tell hosts apart, in the order of the first ranks on them; none if all
    /// are on one.
    pub fn hosts(&self) -> Option<Vec<usize>> {
        let mut labels = vec![];
        let mut number = |seat: &Seat| {
            let found = labels.iter().position(|label| *label == seat.host());
            found.unwrap_or_else(|| {
                labels.push(seat.host().to_owned());
                labels.len() - 1
            })
        };
        let hosts: Vec<usize> = self.seats.iter().map(&mut number).collect();
        (labels.len() > 1).then_some(hosts)
    }
}

/// What calls among survivors do after a failure (MPI fault tolerance calls it the message mode, as FT-MPI did).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MessageMode {
    /// Every call on every communicator is interrupted until the world is repaired.
    #[default]
    Nop,
    /// Calls that need none of the failed ranks go on.
    Continue,
}

/// What the living members of a communicator have agreed on (`Communicator::agree`); the same for all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement {
    /// Bitwise AND of what they gave.
    pub flags: u64,
    /// Members that are known to have failed, by their ranks in the world, ascending.
    pub failed: Vec<Rank>,
    /// Those of them that some member has not acknowledged (`Communicator::ack_failed`).
    pub unacknowledged: Vec<Rank>,
}

/// What happens when a rank is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnFailure {
    /// A replacement takes the rank; size and ranks stay.
    Rebuild,
    /// The others close up: there is one rank less from the next repair on.
    Shrink,
    /// Size and ranks stay, and nobody holds the rank any more.
    Blank,
    /// The job ends everywhere, with one cause.
    Abort,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_told_apart_by_the_labels_of_addresses() {
        let hosts = |addresses: &[&str]| {
            let seat = |address: &&str| Seat { peer: PeerId(1), incarnation: 0, address: (*address).into() };
            Membership { seats: addresses.iter().map(seat).collect(), ..Membership::default() }.hosts()
        };
        assert_eq!(hosts(&["b 1 x", "a 2 -", "b 3 y", "c 1 x"]), Some(vec![0, 1, 0, 2]));
        assert_eq!((hosts(&["b 1 x", "b 2 x"]), hosts(&[])), (None, None));
    }
}
