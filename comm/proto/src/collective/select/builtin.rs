//! The table in use when none is given.

/// Identity of this table, for reports: the order of a reduction, and so its bits, depend on it. A table that changes
/// these gets a new one.
pub const SELECTION: &str = "builtin-2";

/// Up to 8 ranks the limits are those at which Open MPI and MPICH change over, as far as the algorithms are the same;
/// for more ranks those of Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005. Operands that may not change places, and
/// numbers of ranks that are no power of two, fall through to the next line that fits.
///
/// Two levels are for ranks on several hosts, and fall through elsewhere. The bits are those of the line that they stand before, so they do
/// not depend on where ranks are. Measured with 8 and 16 ranks on 2 to 4 hosts of one machine with 2 cores: a barrier takes 0.36 to 0.63 of the
/// time, a reduction of up to 2 KiB 0.46 to 0.87, a broadcast 0.56 to 1.07, and more bytes or three ranks win nothing. An allgather takes
/// 0.58 to 0.85, but whole jobs were 20 to 40 ms longer with it, so it is left to be chosen. The limits keep what a leader may get from
/// others, up to a value from each rank, below some 64 KiB, and what it has to do for its host below that of the messages saved.
pub(super) const TEXT: &str = "\
name: builtin

# operation     ranks       bytes            algorithm
barrier         *           *                two-level
barrier         *           *                dissemination

bcast           ranks<=3    *                binomial
bcast           ranks<=128  bytes<=12288     two-level
bcast           ranks<=8    *                binomial
bcast           *           bytes<=12288     binomial
bcast           *           bytes<=4194304   scatter-allgather
bcast           *           *                pipeline

reduce          ranks<=2    *                binomial
reduce          ranks<=3    bytes<=2048      binomial
reduce          ranks<=32   bytes<=2048      two-level
reduce          ranks<=128  bytes<=256       two-level
reduce          ranks<=8    bytes<=65536     binomial
reduce          *           bytes<=2048      binomial
reduce          *           *                scatter-gather

allreduce       ranks<=3    bytes<=16384     recursive-doubling
allreduce       ranks<=32   bytes<=2048      two-level
allreduce       ranks<=128  bytes<=256       two-level
allreduce       *           bytes<=8192      recursive-doubling
allreduce       ranks<=8    *                halving-doubling
allreduce       *           bytes<=1048576   halving-doubling
allreduce       *           *                ring
allreduce       *           *                halving-doubling

scan            *           *                recursive-doubling
exscan          *           *                recursive-doubling

reduce-scatter  ranks<=8    *                halving
reduce-scatter  *           bytes<=524288    halving
reduce-scatter  *           *                pairwise

gather          ranks<=8    *                linear
gather          *           bytes<=4096      binomial
gather          *           *                linear

scatter         ranks<=8    *                linear
scatter         *           bytes<=4096      binomial
scatter         *           *                linear

allgather       ranks<=8    *                recursive-doubling
allgather       *           bytes<=32768     recursive-doubling
allgather       *           bytes<=8192      dissemination
allgather       *           *                ring

alltoall        ranks<=7    bytes<=32768     linear
alltoall        *           bytes<=256       bruck
alltoall        *           bytes<=32768     linear
alltoall        *           *                pairwise

alltoallv       ranks<=32   *                linear
alltoallv       *           *                pairwise
";

/// What comes first where a host has more ranks than cores. There a rank that waits has to be given a core again, which takes longer than
/// all messages of few bytes together; so each waits once, for one rank that hears from all. Measured on 2 cores with 8 and 16 ranks: a barrier takes
/// 0.55 and 0.5 of the time. The bits of an allreduce are those of the algorithm that it replaces.
pub(super) const CROWDED: &str = "\
barrier         ranks<=3    *                dissemination
barrier         *           *                linear
bcast           *           bytes<=2048      linear
allreduce       ranks<=3    bytes<=2048      recursive-doubling
allreduce       *           bytes<=2048      linear
";
