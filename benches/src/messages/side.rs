//! Who is compared.

use std::fmt;

/// A way to send messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Sockets alone, TCP under the congestion control of the system.
    RawTcp,
    /// The same under the congestion control that `ft-comm` asks for, where that is another.
    RawTcpLikeComm,
    /// Sockets alone, Unix stream sockets.
    RawUnix,
    /// `ft-comm` over TCP.
    CommTcp,
    /// `ft-comm` over what it chooses by itself.
    Comm,
    /// MPICH over TCP.
    Mpich,
    /// MPICH over what it chooses by itself, shared memory; for start-up only, because ranks that share cores spin
    /// there without ever giving way.
    MpichShared,
    /// Open MPI over TCP.
    OpenMpi,
    /// Open MPI over shared memory.
    OpenMpiShared,
}

/// All of them.
pub(crate) const SIDES: [Side; 9] = [
    Side::RawTcp,
    Side::RawTcpLikeComm,
    Side::RawUnix,
    Side::CommTcp,
    Side::Comm,
    Side::Mpich,
    Side::MpichShared,
    Side::OpenMpi,
    Side::OpenMpiShared,
];

impl Side {
    /// Whether it is sockets alone.
    pub fn is_raw(self) -> bool {
        matches!(self, Self::RawTcp | Self::RawTcpLikeComm | Self::RawUnix)
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RawTcp => "raw tcp",
            Self::RawTcpLikeComm => "raw tcp like comm",
            Self::RawUnix => "raw unix",
            Self::CommTcp => "comm tcp",
            Self::Comm => "comm",
            Self::Mpich => "mpich tcp",
            Self::MpichShared => "mpich shm",
            Self::OpenMpi => "openmpi tcp",
            Self::OpenMpiShared => "openmpi shm",
        })
    }
}
