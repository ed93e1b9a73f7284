//! The operations that a table chooses for.

use std::fmt;

/// A collective operation with a choice of algorithms. Gather and scatter of parts whose lengths only the root knows,
/// and the exchange with neighbors, have none: they are always linear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// `MPI_Barrier`: no memory.
    Barrier,
    /// `MPI_Bcast` of the root's buffer.
    Bcast,
    /// `MPI_Reduce` of buffers, in place; those of ranks other than the root are unspecified afterwards.
    Reduce,
    /// `MPI_Allreduce` of buffers, in place.
    Allreduce,
    /// `MPI_Scan` of buffers, in place.
    Scan,
    /// `MPI_Exscan` of buffers, in place; that of rank 0 is left as it is.
    Exscan,
    /// `MPI_Reduce_scatter` of buffers, in place: afterwards a rank's own part is reduced, and the others are unspecified.
    ReduceScatter,
    /// `MPI_Gather`, or `MPI_Gatherv` where all ranks know all lengths: from inputs into the root's buffer, where the root's own part is
    /// there already.
    Gather,
    /// `MPI_Scatter`, or `MPI_Scatterv` where all ranks know all lengths: from the root's input into the front of the buffers of the
    /// others; the root's own part is not moved.
    Scatter,
    /// `MPI_Allgather`, `MPI_Allgatherv`: each rank's part of all buffers, in place.
    Allgather,
    /// `MPI_Alltoall` from inputs into buffers; the part of a rank for itself is not moved.
    Alltoall,
    /// `MPI_Alltoallv` from inputs into buffers; the part of a rank for itself is not moved.
    Alltoallv,
}

impl Operation {
    /// Every operation, in the order of tables.
    pub const ALL: [Self; 12] = [
        Self::Barrier,
        Self::Bcast,
        Self::Reduce,
        Self::Allreduce,
        Self::Scan,
        Self::Exscan,
        Self::ReduceScatter,
        Self::Gather,
        Self::Scatter,
        Self::Allgather,
        Self::Alltoall,
        Self::Alltoallv,
    ];

    /// The name of this operation in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Bcast => "bcast",
            Self::Reduce => "reduce",
            Self::Allreduce => "allreduce",
            Self::Scan => "scan",
            Self::Exscan => "exscan",
            Self::ReduceScatter => "reduce-scatter",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::Allgather => "allgather",
            Self::Alltoall => "alltoall",
            Self::Alltoallv => "alltoallv",
        }
    }

    /// The operation of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.name() == name)
    }

    /// Whether all ranks know one number of bytes to choose by. A barrier has none, and of an exchange of unequal
    /// parts each rank knows but its own.
    pub fn has_bytes(self) -> bool {
        !matches!(self, Self::Barrier | Self::Alltoallv)
    }

    /// Whether it reduces, so that its algorithm must fit the operator.
    pub fn reduces(self) -> bool {
        matches!(self, Self::Reduce | Self::Allreduce | Self::Scan | Self::Exscan | Self::ReduceScatter)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
