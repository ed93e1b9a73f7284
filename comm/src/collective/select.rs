//! The choice of algorithm, as one table.

use super::*;
use crate::rank::Rank;

/// Identity of this table, for reports: the order of a reduction, and so its bits, depend on it.
pub const SELECTION: &str = "builtin-1";
const ALLREDUCE_RING_BYTES: usize = 64 << 10;

/// temporary
#[derive(Clone, Debug)]
pub struct Selection;
#[allow(missing_docs, clippy::too_many_arguments)]
impl Selection {
    pub fn builtin() -> Self {
        Self
    }
    pub fn parse(_: &str) -> Result<Self, String> {
        Ok(Self)
    }
    pub fn barrier(&self, rank: Rank, size: usize) -> Vec<Step> {
        barrier_dissemination(rank, size)
    }
    pub fn bcast(&self, rank: Rank, size: usize, root: Rank, len: usize, _: usize) -> Vec<Step> {
        bcast_binomial(rank, size, root, len)
    }
    pub fn reduce(&self, rank: Rank, size: usize, root: Rank, len: usize, _: usize, _: bool) -> Vec<Step> {
        reduce_binomial(rank, size, root, len)
    }
    pub fn allreduce(&self, rank: Rank, size: usize, len: usize, element_bytes: usize, _: bool) -> Vec<Step> {
        if len * element_bytes < ALLREDUCE_RING_BYTES || len < size {
            allreduce_recursive_doubling(rank, size, len)
        } else {
            allreduce_ring(rank, size, len)
        }
    }
    pub fn scan(&self, rank: Rank, size: usize, len: usize, _: usize) -> Vec<Step> {
        let mut s = vec![];
        if rank > 0 {
            s.push(Step::recv_reduce(rank - 1, 0..len, Order::OtherFirst));
        }
        if rank + 1 < size {
            s.push(Step::send(rank + 1, 0..len));
        }
        s
    }
    pub fn exscan(&self, rank: Rank, size: usize, len: usize, _: usize) -> Vec<Step> {
        let mut s = vec![Step::copy(0..len, Part::scratch(0..len))];
        if rank > 0 {
            s.push(Step::recv(rank - 1, 0..len));
            s.push(Step::reduce(0..len, Part::scratch(0..len), Order::OtherFirst));
        }
        if rank + 1 < size {
            s.push(Step::send(rank + 1, Part::scratch(0..len)));
        }
        s
    }
    pub fn reduce_scatter(&self, rank: Rank, size: usize, starts: &[usize], e: usize, c: bool) -> Vec<Step> {
        self.allreduce(rank, size, *starts.last().unwrap(), e, c)
    }
    pub fn gather(&self, rank: Rank, size: usize, root: Rank, starts: &[usize], _: usize) -> Vec<Step> {
        self.gatherv(rank, size, root, (rank == root).then_some(starts), starts[1])
    }
    pub fn gatherv(
        &self,
        rank: Rank,
        size: usize,
        root: Rank,
        starts: Option<&[usize]>,
        len: usize,
    ) -> Vec<Step> {
        match starts {
            None => vec![Step::send(root, Part::input(0..len))],
            Some(s) => (0..size).filter(|r| *r != rank).map(|r| Step::recv(r, s[r]..s[r + 1])).collect(),
        }
    }
    pub fn scatter(&self, rank: Rank, size: usize, root: Rank, starts: &[usize], _: usize) -> Vec<Step> {
        self.scatterv(rank, size, root, (rank == root).then_some(starts), starts[1])
    }
    pub fn scatterv(
        &self,
        rank: Rank,
        size: usize,
        root: Rank,
        starts: Option<&[usize]>,
        len: usize,
    ) -> Vec<Step> {
        match starts {
            None => vec![Step::recv(root, 0..len)],
            Some(s) => {
                (0..size).filter(|r| *r != rank).map(|r| Step::send(r, Part::input(s[r]..s[r + 1]))).collect()
            }
        }
    }
    pub fn allgather(&self, rank: Rank, size: usize, starts: &[usize], _: usize) -> Vec<Step> {
        allgather_dissemination(rank, size, starts)
    }
    pub fn alltoall(&self, rank: Rank, size: usize, len: usize, _: usize) -> Vec<Step> {
        let s: Vec<usize> = (0..=size).map(|r| r * len).collect();
        self.alltoallv(rank, size, &s, &s)
    }
    pub fn alltoallv(&self, rank: Rank, size: usize, sends: &[usize], recvs: &[usize]) -> Vec<Step> {
        let mut s = vec![];
        for k in 1..size {
            let (to, from) = ((rank + k) % size, (rank + size - k) % size);
            s.push(Step::recv(from, recvs[from]..recvs[from + 1]));
            s.push(Step::send(to, Part::input(sends[to]..sends[to + 1])));
        }
        s
    }
}
