//! The one door to the wire. It speaks of peers (incarnations of processes), not of ranks; who holds which
//! rank is known above. Links carry bytes in order; nothing above may assume sockets.

use std::io::{IoSlice, IoSliceMut};
use std::time::Duration;

use crate::rank::{Generation, PeerId};

mod accept;
pub mod null;
pub mod tcp;

pub use accept::{Accepted, Doorman};

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

/// How a blocked caller waits: it looks again so many times, then lets others run between so many looks, then
/// sleeps in [`Transport::wait`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patience {
    /// Looks one after the other.
    pub spins: u32,
    /// Looks with [`Transport::relax`] before each.
    pub yields: u32,
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

    /// Waits until a link has something to receive, one of `writing` can be sent to, a link was accepted, or
    /// news arrived; at most `timeout` (zero: only looks). Appends the links with something to receive.
    fn wait(&mut self, writing: &[LinkId], timeout: Duration, ready: &mut Vec<LinkId>);

    /// Waits for news only, at most `timeout`; what happens on links does not end it.
    fn idle(&mut self, timeout: Duration) {
        self.wait(&[], timeout, &mut Vec::new());
    }

    /// Lets others run: a blocked caller is still polling.
    fn relax(&mut self);

    /// Closes one link.
    fn close(&mut self, link: LinkId);

    /// How a blocked caller of a job of `ranks` ranks waits. With a core for every rank, waiting looks often;
    /// with more ranks than cores it lets others run.
    fn patience(&self, ranks: usize) -> Patience {
        // The standard library's count reads files of control groups, which a replacement is not to open.
        let cores = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count() as usize);
        if ranks <= cores { Patience { spins: 400, yields: 400 } } else { Patience { spins: 0, yields: 60 } }
    }
}
