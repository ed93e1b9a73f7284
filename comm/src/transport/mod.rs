//! The one door to the wire. It speaks of peers (incarnations of processes), not of ranks; who holds which
//! rank is known above. Links carry bytes in order; nothing above may assume sockets.

use std::io::{IoSlice, IoSliceMut};
use std::time::Duration;

use rustix::event::Timespec;

use ft_proto::cells::Label;
use ft_proto::rank::{Generation, PeerId};

mod accept;
mod accounts;
mod address;
mod by_link;
mod channel;
mod congestion;
mod connect;
mod cross_memory;
mod cuts;
mod faulty;
#[cfg(feature = "mpi")]
pub(crate) mod mpi;
mod noise;
pub mod null;
mod opening;
mod options;
mod packets;
mod patience;
mod probe;
mod ring;
mod seal;
mod shortcomings;
pub mod sockets;

pub use accept::is_shortage;
pub use accept::{Accepted, Doorman};
pub use accounts::Accounts;
pub use address::{Address, AddressError, Target};
pub use by_link::ByLink;
pub use channel::Channel;
pub use congestion::{Congestion, ENV_CONGESTION};
pub use connect::connect;
pub use cross_memory::Neighbor;
pub use cuts::Cuts;
pub use faulty::{ENV_LINK_FAULTS, FaultyTransport, PIECE_BYTES};
pub use opening::Credentials;
pub use options::is_label;
pub use options::{
    Carrier, ENV_HOST, ENV_LISTEN, ENV_PLAIN, ENV_TRANSPORT, ENV_WAIT, HOST_OF_LAUNCHER, LinkOptions,
};
pub use packets::{PacketTransport, Packets};
pub use patience::{Patience, Waiting};
pub use probe::Probe;
pub use ring::Room;
pub use shortcomings::shortcomings;

/// Pieces of memory that one call may send from or receive into (`IOV_MAX` of Linux).
pub const PIECES_MAX: usize = 1024;

/// One open link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(pub u64);

/// A link is of no use any more, or cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The other side is gone or cannot be reached.
    #[error("link is down: {0}")]
    Down(String),
    /// News for the caller arrived before the link was open; look at it first.
    #[error("interrupted by news")]
    Interrupted,
}

impl LinkError {
    /// The cause alone.
    pub fn why(&self) -> &str {
        match self {
            Self::Down(why) => why,
            Self::Interrupted => "interrupted by news",
        }
    }
}

/// Links to peers. Used by one thread, the caller's; accepted links come from the service thread.
pub trait Transport {
    /// Starts `generation`: every link of an older one is closed, and `peers` can be reached at their
    /// addresses.
    fn change(&mut self, generation: Generation, peers: &[(PeerId, String)]);

    /// Opens a link to `peer`. Returns within a bounded time.
    ///
    /// # Errors
    /// The peer cannot be reached, or news arrived.
    fn open(&mut self, peer: PeerId) -> Result<LinkId, LinkError>;

    /// The next link of this generation that another peer has opened.
    fn accepted(&mut self) -> Option<(PeerId, LinkId)>;

    /// Sends a prefix of `pieces`, one after the other; returns how many bytes went, 0 if none can now. There are at
    /// most [`PIECES_MAX`] of them.
    ///
    /// # Errors
    /// The link is down.
    fn send(&mut self, link: LinkId, pieces: &[IoSlice<'_>]) -> Result<usize, LinkError>;

    /// Receives into the front of `pieces`, one after the other, which are not all empty and at most [`PIECES_MAX`];
    /// returns how many bytes came, 0 if none are here now.
    ///
    /// # Errors
    /// The link is down.
    fn receive(&mut self, link: LinkId, pieces: &mut [IoSliceMut<'_>]) -> Result<usize, LinkError>;

    /// Whether much should be received from `link` at a time, as every call of [`Transport::receive`] costs one of the system.
    fn reads_ahead(&self, _link: LinkId) -> bool {
        true
    }

    /// Looks so many times whether something has come on `link`, if a look costs next to nothing; whether it has.
    fn glance(&mut self, _link: LinkId, _times: u32) -> bool {
        false
    }

    /// Whether links may have cells (`ft_proto::cells`).
    fn has_cells(&self) -> bool {
        false
    }

    /// Puts a message of few bytes into a cell of `link`; whether it is there, else it is to be sent. Its receiver may sleep until [`Transport::rouse`].
    fn put(&mut self, _link: LinkId, _label: Label, _bytes: &[u8]) -> bool {
        false
    }

    /// Wakes the receivers of what was put into cells of these links.
    fn rouse(&mut self, _links: &[LinkId]) {}

    /// Looks so many times for the message with this label in a cell of `link`: gives its length, and copies as much of it as there is room for.
    ///
    /// # Errors
    /// The link is of no use.
    fn take(
        &mut self,
        _link: LinkId,
        _label: Label,
        _times: u32,
        _into: &mut [u8],
    ) -> Result<Option<usize>, LinkError> {
        Ok(None)
    }

    /// Whether the process at the other end of `link` shares this host, so that its memory may be in reach.
    fn is_near(&self, _link: LinkId) -> bool {
        false
    }

    /// Fills `into` with the memory of the process at the other end of `link` from the address `from` on; false if that
    /// cannot be done, and then `into` has anything.
    fn read(&mut self, _link: LinkId, _from: u64, _into: &mut [u8]) -> bool {
        false
    }

    /// Waits until a link has something to receive, one of `writing` can be sent to, a link was accepted, or
    /// news arrived; at most `timeout` (zero: only looks). Appends the links with something to receive. A message in a cell is told of once:
    /// who waits for one looks for it before each call, and behind it.
    fn wait(&mut self, writing: &[LinkId], timeout: Duration, ready: &mut Vec<LinkId>);

    /// Waits for news only, at most `timeout`; what happens on links does not end it.
    fn idle(&mut self, timeout: Duration) {
        self.wait(&[], timeout, &mut Vec::new());
    }

    /// Lets others run: a blocked caller is still polling.
    fn relax(&mut self);

    /// Closes one link.
    fn close(&mut self, link: LinkId);

    /// Whether something that `peer` sent was lost on the way: by its own word it had sent more before the last call than has come,
    /// and nothing has come since. Asked once in a heartbeat timeout, of peers that are awaited.
    fn misses(&mut self, _peer: PeerId) -> bool {
        false
    }

    /// Processes of the job are lost: whatever waits for all at the end is to be left out.
    fn has_losses(&mut self) {}

    /// How a blocked caller of a job of `ranks` ranks waits.
    fn patience(&self, ranks: usize) -> Patience {
        Waiting::Auto.patience(ranks, crate::binding::cores().len())
    }
}

/// A span as system calls take it; one that is too long for them is cut.
pub fn timespec(span: Duration) -> Timespec {
    Timespec { tv_sec: span.as_secs().min(1 << 30) as i64, tv_nsec: i64::from(span.subsec_nanos()) }
}
