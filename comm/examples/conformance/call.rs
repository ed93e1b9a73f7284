//! One collective of every kind, on data that follow from the number of the call: every rank knows what is due, by the serial
//! reference that stands here.

use std::ops::Range;

use ft_comm::collective::Order;
use ft_comm::{CollectiveRequest, CommError, Communicator, Op, Operation, Plain};

/// Which collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bcast,
    Reduce,
    Allreduce,
    Scan,
    Exscan,
    ReduceScatter,
    Gather,
    Gatherv,
    Scatter,
    Scatterv,
    Allgather,
    Allgatherv,
    Alltoall,
    Alltoallv,
}

/// All of them.
pub(crate) const KINDS: [Kind; 14] = [
    Kind::Bcast,
    Kind::Reduce,
    Kind::Allreduce,
    Kind::Scan,
    Kind::Exscan,
    Kind::ReduceScatter,
    Kind::Gather,
    Kind::Gatherv,
    Kind::Scatter,
    Kind::Scatterv,
    Kind::Allgather,
    Kind::Allgatherv,
    Kind::Alltoall,
    Kind::Alltoallv,
];

/// A collective call of all ranks of a communicator.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a, T = u64, O = Op> {
    pub(crate) comm: &'a Communicator,
    pub(crate) kind: Kind,
    /// The root, the lengths of uneven parts, and the data follow from it.
    pub(crate) number: u64,
    /// Elements of a part; of uneven ones about the mean.
    pub(crate) len: usize,
    pub(crate) op: O,
    /// By the number: what one rank has for another at a place.
    pub(crate) element: fn(u64, usize, usize, usize) -> T,
}

/// Numbers that follow from one: Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
pub(crate) fn mixed(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

impl<'a> Call<'a> {
    /// Sums of numbers of all sizes.
    pub(crate) fn of_numbers(comm: &'a Communicator, kind: Kind, number: u64, len: usize) -> Self {
        let element = |number, from: usize, to: usize, at: usize| {
            let first = mixed(number) ^ ((from as u64) << 40 | (to as u64) << 20);
            first.wrapping_mul(at as u64 | 1)
        };
        Self { comm, kind, number, len, op: Op::Sum, element }
    }
}

impl<T: Plain + PartialEq, O: Operation<T> + Copy + 'static> Call<'_, T, O> {
    fn root(&self) -> usize {
        (self.number % self.comm.size() as u64) as usize
    }

    /// What `from` has for `to`.
    fn part(&self, from: usize, to: usize, len: usize) -> Vec<T> {
        (0..len).map(|at| (self.element)(self.number, from, to, at)).collect()
    }

    /// Length of an uneven part; some are empty.
    fn count(&self, from: usize, to: usize) -> usize {
        (from * 5 + to * 3 + self.number as usize) % 4 * self.len.div_ceil(3)
    }

    fn counts(&self) -> Vec<usize> {
        (0..self.comm.size()).map(|from| self.count(from, 0)).collect()
    }

    /// How much rank `from` has for rank `to` in this kind of call.
    fn length(&self, from: usize, to: usize) -> usize {
        match self.kind {
            Kind::Gatherv | Kind::Allgatherv | Kind::ReduceScatter => self.count(from, 0),
            Kind::Scatterv => self.count(to, 0),
            Kind::Alltoallv => self.count(from, to),
            _ => self.len,
        }
    }

    fn concat(&self, pairs: impl Iterator<Item = (usize, usize)>) -> Vec<T> {
        pairs.flat_map(|(from, to)| self.part(from, to, self.length(from, to))).collect()
    }

    /// The reduction over `ranks`, one after the other.
    fn serial(&self, ranks: Range<usize>, len: usize) -> Vec<T> {
        let mut all = self.part(ranks.start, 0, len);
        for from in ranks.start + 1..ranks.end {
            self.op.combine(&mut all, &self.part(from, 0, len), Order::MineFirst);
        }
        all
    }

    /// What this rank calls with.
    fn input(&self) -> Vec<T> {
        let (rank, size, root) = (self.comm.rank(), self.comm.size(), self.root());
        match self.kind {
            Kind::Bcast if rank != root => vec![T::zeroed(); self.len],
            Kind::ReduceScatter => self.part(rank, 0, self.counts().iter().sum()),
            Kind::Scatter | Kind::Scatterv if rank != root => vec![],
            Kind::Scatter | Kind::Scatterv | Kind::Alltoall | Kind::Alltoallv => {
                self.concat((0..size).map(|to| (rank, to)))
            }
            Kind::Allgatherv => {
                let mut all = vec![T::zeroed(); self.counts().iter().sum()];
                all[self.own()].copy_from_slice(&self.part(rank, 0, self.count(rank, 0)));
                all
            }
            _ => self.part(rank, 0, self.length(rank, 0)),
        }
    }

    /// What it has to get; none if that is unspecified.
    fn due(&self) -> Option<Vec<T>> {
        let (rank, size, root, len) = (self.comm.rank(), self.comm.size(), self.root(), self.len);
        Some(match self.kind {
            Kind::Bcast => self.part(root, 0, len),
            Kind::Reduce if rank != root => return None,
            Kind::Reduce | Kind::Allreduce => self.serial(0..size, len),
            Kind::Scan => self.serial(0..rank + 1, len),
            Kind::Exscan => self.serial(if rank == 0 { 0..1 } else { 0..rank }, len),
            Kind::ReduceScatter => self.serial(0..size, self.counts().iter().sum())[self.own()].to_vec(),
            Kind::Gather | Kind::Gatherv if rank != root => vec![],
            Kind::Gather | Kind::Gatherv | Kind::Allgather | Kind::Allgatherv => {
                self.concat((0..size).map(|from| (from, 0)))
            }
            Kind::Scatter | Kind::Scatterv => self.concat(std::iter::once((root, rank))),
            Kind::Alltoall | Kind::Alltoallv => self.concat((0..size).map(|from| (from, rank))),
        })
    }

    /// Where the part of this rank is among all parts.
    fn own(&self) -> Range<usize> {
        let (rank, counts) = (self.comm.rank(), self.counts());
        let start: usize = counts[..rank].iter().sum();
        start..start + counts[rank]
    }

    /// What is to be said of the lengths of all parts: the root alone has to know them.
    fn known(&self) -> Vec<usize> {
        if self.comm.rank() == self.root() { self.counts() } else { vec![] }
    }

    /// Calls and waits; whether the result is right.
    pub(crate) fn run(&self) -> Result<bool, CommError> {
        let (comm, op, root, size) = (self.comm, self.op, self.root(), self.comm.size());
        let (counts, mut buf) = (self.counts(), self.input());
        let zeros = |len| vec![T::zeroed(); len];
        match self.kind {
            Kind::Bcast => comm.bcast(&mut buf, root)?,
            Kind::Reduce => comm.reduce(&mut buf, op, root)?,
            Kind::Allreduce => comm.allreduce(&mut buf, op)?,
            Kind::Scan => comm.scan(&mut buf, op)?,
            Kind::Exscan => comm.exscan(&mut buf, op)?,
            Kind::ReduceScatter => comm.reduce_scatter(&mut buf, &counts, op)?,
            Kind::Gather => buf = comm.gather(&buf, root)?.unwrap_or_default(),
            Kind::Gatherv => buf = comm.gatherv(&buf, &self.known(), root)?.unwrap_or_default(),
            Kind::Scatter => {
                let all = std::mem::replace(&mut buf, zeros(self.len));
                comm.scatter(&all, &mut buf, root)?;
            }
            Kind::Scatterv => {
                let all = std::mem::replace(&mut buf, zeros(counts[comm.rank()]));
                comm.scatterv(&all, &self.known(), &mut buf, root)?;
            }
            Kind::Allgather => {
                let mine = std::mem::replace(&mut buf, zeros(self.len * size));
                comm.allgather(&mine, &mut buf)?;
            }
            Kind::Allgatherv => comm.allgatherv(&mut buf, &counts)?,
            Kind::Alltoall if self.number.is_multiple_of(2) => comm.alltoall_in_place(&mut buf)?,
            Kind::Alltoall => {
                let out = std::mem::replace(&mut buf, zeros(self.len * size));
                comm.alltoall(&out, &mut buf)?;
            }
            Kind::Alltoallv => {
                let (sent, received) = self.exchanged();
                let out = std::mem::replace(&mut buf, zeros(received.iter().sum()));
                comm.alltoallv(&out, &sent, &mut buf, &received)?;
            }
        }
        Ok(self.is_right(buf))
    }

    /// Starts it.
    pub(crate) fn start(&self) -> Result<CollectiveRequest<T>, CommError> {
        let (comm, op, root, counts, buf) = (self.comm, self.op, self.root(), self.counts(), self.input());
        match self.kind {
            Kind::Bcast => comm.ibcast(buf, root),
            Kind::Reduce => comm.ireduce(buf, op, root),
            Kind::Allreduce => comm.iallreduce(buf, op),
            Kind::Scan => comm.iscan(buf, op),
            Kind::Exscan => comm.iexscan(buf, op),
            Kind::ReduceScatter => comm.ireduce_scatter(buf, &counts, op),
            Kind::Gather => comm.igather(buf, root),
            Kind::Gatherv => comm.igatherv(buf, &self.known(), root),
            Kind::Scatter => comm.iscatter(buf, self.len, root),
            Kind::Scatterv => comm.iscatterv(buf, &self.known(), counts[comm.rank()], root),
            Kind::Allgather => comm.iallgather(&buf),
            Kind::Allgatherv => comm.iallgatherv(buf, &counts),
            Kind::Alltoall => comm.ialltoall(buf),
            Kind::Alltoallv => {
                let (sent, received) = self.exchanged();
                comm.ialltoallv(buf, &sent, &received)
            }
        }
    }

    /// Elements that this rank sends to each and gets from each.
    fn exchanged(&self) -> (Vec<usize>, Vec<usize>) {
        let (rank, size) = (self.comm.rank(), self.comm.size());
        let sent = (0..size).map(|to| self.count(rank, to)).collect();
        (sent, (0..size).map(|from| self.count(from, rank)).collect())
    }

    /// Whether `got` is what was due.
    pub(crate) fn is_right(&self, got: Vec<T>) -> bool {
        let got = if self.kind == Kind::ReduceScatter { &got[self.own()] } else { &got };
        self.due().is_none_or(|due| got == due)
    }
}
