//! What can happen in a simulated job.

use ft_proto::rank::PeerId;
use ft_proto::wire::control::ToArbiter;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConnId(pub(super) u64);

/// Something that happens at a moment.
#[derive(Clone, Debug)]
pub(super) enum Happening {
    /// A process starts.
    Start(PeerId),
    /// The wait of a process is over, or times out.
    Turn {
        peer: PeerId,
        token: u64,
    },
    OpenArrives {
        from: PeerId,
        token: u64,
        to: PeerId,
    },
    Arrive {
        conn: ConnId,
        side: usize,
    },
    Down {
        conn: ConnId,
        side: usize,
    },
    /// The next message of a process reaches the launcher.
    Up(PeerId),
    /// The next message of the launcher reaches a process.
    ToRank(PeerId),
    MemberTick(PeerId),
    ArbiterTick,
    Kill(PeerId),
    Stop(PeerId),
    Continue(PeerId),
    /// A process that did not heed the end of the job is ended.
    Grace(PeerId, i32),
    /// The launcher ends what is left after the end of the job.
    JobGrace,
    Fault(usize),
    Heal(usize),
    NoticeCuts,
    /// A process that was asked for a sign of life has given one by now, or none.
    Answer {
        from: PeerId,
        to: PeerId,
        /// What it says then.
        suspect: ToArbiter,
    },
}

impl Happening {
    /// What the trace has of it: its kind, and whom or what it is about.
    pub(super) fn trace(&self) -> (u64, u32) {
        match self {
            Self::Start(peer) => (1, peer.0),
            Self::Turn { peer, .. } => (2, peer.0),
            Self::OpenArrives { from, .. } => (3, from.0),
            Self::Arrive { conn, .. } => (4, conn.0 as u32),
            Self::Down { conn, .. } => (5, conn.0 as u32),
            Self::Up(peer) => (6, peer.0),
            Self::ToRank(peer) => (7, peer.0),
            Self::MemberTick(peer) => (8, peer.0),
            Self::Kill(peer) => (9, peer.0),
            _ => (10, 0),
        }
    }
}
