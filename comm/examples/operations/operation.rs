//! One collective of every kind, on data that follow from the number of the call: every rank knows what is due.

use ft_comm::{CollectiveRequest, CommError, Communicator, Op};

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
pub(crate) struct Call<'a> {
    pub(crate) comm: &'a Communicator,
    pub(crate) kind: Kind,
    /// The data follow from it.
    pub(crate) number: u64,
    /// Elements of a part.
    pub(crate) len: usize,
}

/// Numbers that follow from one: Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
pub(crate) fn mixed(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

impl Call<'_> {
    fn root(&self) -> usize {
        (self.number % self.comm.size() as u64) as usize
    }

    /// What `from` has for `to`.
    fn part(&self, from: usize, to: usize, len: usize) -> impl Iterator<Item = u64> + use<> {
        let first = mixed(self.number) ^ ((from as u64) << 40 | (to as u64) << 20);
        (0..len as u64).map(move |at| first.wrapping_mul(at | 1))
    }

    /// Length of an uneven part; some are empty.
    fn count(&self, from: usize, to: usize) -> usize {
        (from * 5 + to * 3 + self.number as usize) % 4 * (self.len / 3 + 1)
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

    fn concat(&self, pairs: impl Iterator<Item = (usize, usize)>) -> Vec<u64> {
        pairs.flat_map(|(from, to)| self.part(from, to, self.length(from, to))).collect()
    }

    fn sum(&self, ranks: std::ops::Range<usize>, len: usize) -> Vec<u64> {
        let mut sum = vec![0u64; len];
        for from in ranks {
            sum.iter_mut().zip(self.part(from, 0, len)).for_each(|(a, b)| *a = a.wrapping_add(b));
        }
        sum
    }

    /// What this rank calls with.
    fn input(&self) -> Vec<u64> {
        let (rank, size, root) = (self.comm.rank(), self.comm.size(), self.root());
        match self.kind {
            Kind::Bcast if rank != root => vec![0; self.len],
            Kind::ReduceScatter => self.part(rank, 0, self.counts().iter().sum()).collect(),
            Kind::Scatter | Kind::Scatterv if rank != root => vec![],
            Kind::Scatter | Kind::Scatterv | Kind::Alltoall | Kind::Alltoallv => {
                self.concat((0..size).map(|to| (rank, to)))
            }
            Kind::Allgatherv => {
                let mut all = vec![0; self.counts().iter().sum()];
                let start: usize = self.counts()[..rank].iter().sum();
                all.iter_mut()
                    .skip(start)
                    .zip(self.part(rank, 0, self.count(rank, 0)))
                    .for_each(|(a, b)| *a = b);
                all
            }
            _ => self.part(rank, 0, self.length(rank, 0)).collect(),
        }
    }

    /// What it has to get; none if that is unspecified.
    fn due(&self) -> Option<Vec<u64>> {
        let (rank, size, root, len) = (self.comm.rank(), self.comm.size(), self.root(), self.len);
        Some(match self.kind {
            Kind::Bcast => self.part(root, 0, len).collect(),
            Kind::Reduce if rank != root => return None,
            Kind::Reduce | Kind::Allreduce => self.sum(0..size, len),
            Kind::Scan => self.sum(0..rank + 1, len),
            Kind::Exscan => self.sum(if rank == 0 { 0..1 } else { 0..rank }, len),
            Kind::ReduceScatter => self.own(self.sum(0..size, self.counts().iter().sum())),
            Kind::Gather | Kind::Gatherv if rank != root => vec![],
            Kind::Gather | Kind::Gatherv | Kind::Allgather | Kind::Allgatherv => {
                self.concat((0..size).map(|from| (from, 0)))
            }
            Kind::Scatter | Kind::Scatterv => self.concat(std::iter::once((root, rank))),
            Kind::Alltoall | Kind::Alltoallv => self.concat((0..size).map(|from| (from, rank))),
        })
    }

    /// The part of this rank of what is scattered by counts.
    fn own(&self, all: Vec<u64>) -> Vec<u64> {
        let (rank, counts) = (self.comm.rank(), self.counts());
        let start: usize = counts[..rank].iter().sum();
        all[start..start + counts[rank]].to_vec()
    }

    /// Calls and waits; whether the result is right.
    pub(crate) fn run(&self) -> Result<bool, CommError> {
        let (comm, root, counts, mut buf) = (self.comm, self.root(), self.counts(), self.input());
        let size = comm.size();
        match self.kind {
            Kind::Bcast => comm.bcast(&mut buf, root)?,
            Kind::Reduce => comm.reduce(&mut buf, Op::Sum, root)?,
            Kind::Allreduce => comm.allreduce(&mut buf, Op::Sum)?,
            Kind::Scan => comm.scan(&mut buf, Op::Sum)?,
            Kind::Exscan => comm.exscan(&mut buf, Op::Sum)?,
            Kind::ReduceScatter => comm.reduce_scatter(&mut buf, &counts, Op::Sum)?,
            Kind::Gather => buf = comm.gather(&buf, root)?.unwrap_or_default(),
            Kind::Gatherv => buf = comm.gatherv(&buf, &counts, root)?.unwrap_or_default(),
            Kind::Scatter => {
                let all = std::mem::replace(&mut buf, vec![0; self.len]);
                comm.scatter(&all, &mut buf, root)?;
            }
            Kind::Scatterv => {
                let all = std::mem::replace(&mut buf, vec![0; counts[comm.rank()]]);
                comm.scatterv(&all, &counts, &mut buf, root)?;
            }
            Kind::Allgather => {
                let mine = std::mem::replace(&mut buf, vec![0; self.len * size]);
                comm.allgather(&mine, &mut buf)?;
            }
            Kind::Allgatherv => comm.allgatherv(&mut buf, &counts)?,
            Kind::Alltoall => comm.alltoall_in_place(&mut buf)?,
            Kind::Alltoallv => {
                let (sent, received) = self.exchanged();
                let out = std::mem::replace(&mut buf, vec![0; received.iter().sum()]);
                comm.alltoallv(&out, &sent, &mut buf, &received)?;
            }
        }
        Ok(self.is_right(buf))
    }

    /// Starts it.
    pub(crate) fn start(&self) -> Result<CollectiveRequest<u64>, CommError> {
        let (comm, root, counts, buf) = (self.comm, self.root(), self.counts(), self.input());
        match self.kind {
            Kind::Bcast => comm.ibcast(buf, root),
            Kind::Reduce => comm.ireduce(buf, Op::Sum, root),
            Kind::Allreduce => comm.iallreduce(buf, Op::Sum),
            Kind::Scan => comm.iscan(buf, Op::Sum),
            Kind::Exscan => comm.iexscan(buf, Op::Sum),
            Kind::ReduceScatter => comm.ireduce_scatter(buf, &counts, Op::Sum),
            Kind::Gather => comm.igather(buf, root),
            Kind::Gatherv => comm.igatherv(buf, &counts, root),
            Kind::Scatter => comm.iscatter(buf, self.len, root),
            Kind::Scatterv => comm.iscatterv(buf, &counts, counts[comm.rank()], root),
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
    pub(crate) fn is_right(&self, got: Vec<u64>) -> bool {
        let got = if self.kind == Kind::ReduceScatter { self.own(got) } else { got };
        self.due().is_none_or(|due| got == due)
    }
}
