//! Who is compared.

use std::fmt;

/// A way to send messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    /// Sockets alone, TCP under the congestion control of the system.
    RawTcp,
    /// The same under the congestion control that `ft-comm` asks for, where that is another.
    RawTcpLikeComm,
    /// Sockets alone, TCP as `ft-comm` asks for it, two processes on one core: nothing crosses from a cache to another, and a read takes all
    /// that a buffer holds, not a segment.
    RawTcpOneCore,
    /// Sockets alone, Unix stream sockets.
    RawUnix,
    /// Shared memory alone.
    RawMemory,
    /// `ft-comm` over TCP.
    CommTcp,
    /// `ft-comm` over what it chooses by itself.
    Comm,
    /// MPICH over TCP.
    Mpich,
    /// MPICH over what it chooses by itself, shared memory; with no more ranks than cores, because there they spin without ever
    /// giving way.
    MpichShared,
    /// Open MPI over TCP.
    OpenMpi,
    /// Open MPI over shared memory.
    OpenMpiShared,
}

/// All of them, with the names that tables and the CSV have for them.
pub(super) const SIDES: [(Side, &str); 11] = [
    (Side::RawTcp, "raw tcp"),
    (Side::RawTcpLikeComm, "raw tcp like comm"),
    (Side::RawTcpOneCore, "raw tcp, one core"),
    (Side::RawUnix, "raw unix"),
    (Side::RawMemory, "raw memory"),
    (Side::CommTcp, "comm tcp"),
    (Side::Comm, "comm"),
    (Side::Mpich, "mpich tcp"),
    (Side::MpichShared, "mpich shm"),
    (Side::OpenMpi, "openmpi tcp"),
    (Side::OpenMpiShared, "openmpi shm"),
];

impl Side {
    /// Whether it has no message layer.
    pub(super) fn is_raw(self) -> bool {
        matches!(
            self,
            Self::RawTcp | Self::RawTcpLikeComm | Self::RawTcpOneCore | Self::RawUnix | Self::RawMemory
        )
    }

    /// Whether it uses TCP although all ranks are on one host.
    pub(super) fn is_tcp(self) -> bool {
        let is_raw = matches!(self, Self::RawTcp | Self::RawTcpLikeComm | Self::RawTcpOneCore);
        is_raw || matches!(self, Self::CommTcp | Self::Mpich | Self::OpenMpi)
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SIDES[*self as usize].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_order_of_the_sides() {
        assert!(SIDES.iter().enumerate().all(|(at, (side, _))| *side as usize == at));
    }
}
