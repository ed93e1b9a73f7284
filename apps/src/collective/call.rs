//! One call of any collective operation, on numbers whose results are known.

use ft_comm::collective::Operation;
use ft_comm::{CommError, Communicator, Op};

/// An operation and the memory that it works on.
pub(super) struct Call {
    operation: Operation,
    rank: usize,
    size: usize,
    /// The root of operations that have one.
    root: usize,
    /// Makes the numbers those of this call.
    round: u64,
    /// 64-bit numbers of the whole buffer, or of one rank's part.
    words: usize,
    counts: Vec<usize>,
    out: Vec<u64>,
    buf: Vec<u64>,
}

impl Call {
    /// With `bytes` bytes in the whole buffer, or in one rank's part. Ranks take turns at being the root, round by round.
    pub(super) fn new(operation: Operation, bytes: usize, comm: &Communicator, round: u64) -> Self {
        let (rank, size, words) = (comm.rank(), comm.size(), bytes / 8);
        let root = (round % size as u64) as usize;
        let is_root = rank == root;
        let (out, buf) = match operation {
            Operation::Barrier => (0, 0),
            Operation::Gather => (words, 0),
            Operation::Scatter => (if is_root { size * words } else { 0 }, words),
            Operation::Allgather => (words, size * words),
            Operation::Alltoall | Operation::Alltoallv => (size * words, size * words),
            _ => (0, words),
        };
        let counts = match operation {
            Operation::ReduceScatter => {
                (0..size).map(|rank| (rank + 1) * words / size - rank * words / size).collect()
            }
            _ => vec![words; size],
        };
        Self { operation, rank, size, root, round, words, counts, out: vec![0; out], buf: vec![0; buf] }
    }

    /// What rank `from` brings at place `at`.
    fn word(&self, from: usize, at: usize) -> u64 {
        (from as u64 + 1) * (at as u64 + 1 + self.round)
    }

    /// The sum of that over the first `ranks` ranks.
    fn sum(&self, ranks: usize, at: usize) -> u64 {
        (ranks * (ranks + 1) / 2) as u64 * (at as u64 + 1 + self.round)
    }

    /// Fresh numbers to bring.
    pub(super) fn fill(&mut self) {
        let (out, buf) = (self.out.len(), self.buf.len());
        let brought = |len: usize| (0..len).map(|at| self.word(self.rank, at)).collect::<Vec<u64>>();
        let is_filled = match self.operation {
            Operation::Bcast => self.rank == self.root,
            Operation::Scatter | Operation::Allgather | Operation::Alltoall | Operation::Alltoallv => false,
            _ => true,
        };
        (self.out, self.buf) = (brought(out), if is_filled { brought(buf) } else { vec![0; buf] });
        debug_assert!(self.words > 0 || self.operation == Operation::Barrier);
    }

    pub(super) fn call(&mut self, comm: &Communicator) -> Result<(), CommError> {
        let Self { operation, root, counts, out, buf, .. } = self;
        match operation {
            Operation::Barrier => comm.barrier(),
            Operation::Bcast => comm.bcast(buf, *root),
            Operation::Reduce => comm.reduce(buf, Op::Sum, *root),
            Operation::Allreduce => comm.allreduce(buf, Op::Sum),
            Operation::Scan => comm.scan(buf, Op::Sum),
            Operation::Exscan => comm.exscan(buf, Op::Sum),
            Operation::ReduceScatter => comm.reduce_scatter(buf, counts, Op::Sum),
            Operation::Gather => {
                *buf = comm.gather(out, *root)?.unwrap_or_default();
                Ok(())
            }
            Operation::Scatter => comm.scatter(out, buf, *root),
            Operation::Allgather => comm.allgather(out, buf),
            Operation::Alltoall => comm.alltoall(out, buf),
            Operation::Alltoallv => comm.alltoallv(out, counts, buf, counts),
        }
    }

    /// Numbers of this rank that are not what they have to be, after one call on fresh ones.
    pub(super) fn wrong(&self) -> u64 {
        let Self { operation, rank, size, root, words, ref counts, ref buf, .. } = *self;
        let count = |range: std::ops::Range<usize>, right: &dyn Fn(usize) -> u64| {
            // A number that is not there is wrong too.
            range.filter(|&at| buf.get(at) != Some(&right(at))).count() as u64
        };
        match operation {
            Operation::Barrier => 0,
            Operation::Bcast => count(0..words, &|at| self.word(root, at)),
            Operation::Reduce if rank != root => 0,
            Operation::Reduce | Operation::Allreduce => count(0..words, &|at| self.sum(size, at)),
            Operation::Scan => count(0..words, &|at| self.sum(rank + 1, at)),
            Operation::Exscan if rank == 0 => 0,
            Operation::Exscan => count(0..words, &|at| self.sum(rank, at)),
            Operation::ReduceScatter => {
                let start = counts[..rank].iter().sum();
                count(start..start + counts[rank], &|at| self.sum(size, at))
            }
            Operation::Gather if rank != root => 0,
            Operation::Gather | Operation::Allgather => {
                count(0..size * words, &|at| self.word(at / words, at % words))
            }
            Operation::Scatter => count(0..words, &|at| self.word(root, rank * words + at)),
            Operation::Alltoall | Operation::Alltoallv => {
                count(0..size * words, &|at| self.word(at / words, rank * words + at % words))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_number_and_a_missing_one_are_counted() {
        let world = ft_comm::World::init().unwrap();
        for (operation, round) in Operation::ALL.into_iter().zip(0..) {
            let bytes = if operation == Operation::Barrier { 0 } else { 40 };
            let mut call = Call::new(operation, bytes, world.comm(), round);
            call.fill();
            call.call(world.comm()).unwrap();
            assert_eq!(call.wrong(), 0, "{operation}");
            if matches!(operation, Operation::Barrier | Operation::Exscan) {
                continue;
            }
            call.buf[3] += 1;
            call.buf.truncate(4);
            assert_eq!(call.wrong(), 2, "{operation}");
        }
    }
}
