//! Collectives, blocking and not, with every type and operation, against a serial reference.

use std::fmt::Debug;
use std::ops::Range;

use ft_comm::{CommError, Communicator, Custom, Graph, LocatedF64, LocatedI32, Op, Reduce, wait_any};

use super::messages::beside;

/// Lengths around the number of ranks.
fn lengths(size: usize) -> Vec<usize> {
    vec![0, 1, size.saturating_sub(1), size, size + 1, 3 * size + 2]
}

/// Small whole numbers, so that sums and products of floats are exact in any order.
fn value(rank: usize, at: usize) -> u8 {
    ((rank * 7 + at * 3) % 4) as u8
}

/// The reduction over `ranks`, one after the other.
fn serial<T: Reduce>(op: Op, ranks: Range<usize>, len: usize, value: impl Fn(usize, usize) -> T) -> Vec<T> {
    let of = |rank: usize| (0..len).map(|at| value(rank, at)).collect::<Vec<T>>();
    let mut all = of(ranks.start);
    for rank in ranks.start + 1..ranks.end {
        T::combine(op, &mut all, &of(rank), ft_comm::collective::Order::MineFirst);
    }
    all
}

/// All collectives; buffers of up to `long` bytes.
pub(crate) fn check(comm: &Communicator, long: usize) -> Result<(), CommError> {
    macro_rules! numbers {
        ($($t:ty)*) => {$( reductions::<$t>(comm, &lengths(comm.size()), |rank, at| value(rank, at) as $t)?; )*};
    }
    numbers!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);
    let index = |rank: usize, at: usize| (rank * 31 + at) as u64;
    reductions(comm, &lengths(comm.size()), |rank, at| LocatedF64 {
        value: f64::from(value(rank, at)),
        index: index(rank, at),
    })?;
    reductions(comm, &lengths(comm.size()), |rank, at| LocatedI32 {
        value: i32::from(value(rank, at)) - 2,
        index: index(rank, at) as u32,
    })?;
    reductions::<u32>(comm, &[long / 4], |rank, at| (rank * 1_000_003 + at) as u32)?;
    ordered(comm)?;
    for len in lengths(comm.size()).into_iter().chain([long / 8 / comm.size()]) {
        movement(comm, len)?;
    }
    uneven(comm)?;
    several_at_once(comm)?;
    neighbors(comm)
}

const OPS: [Op; 12] = [
    Op::Sum,
    Op::Prod,
    Op::Min,
    Op::Max,
    Op::LogicalAnd,
    Op::LogicalOr,
    Op::LogicalXor,
    Op::BitAnd,
    Op::BitOr,
    Op::BitXor,
    Op::MinLoc,
    Op::MaxLoc,
];

fn reductions<T: Reduce + PartialEq + Debug>(
    comm: &Communicator,
    lengths: &[usize],
    value: impl Fn(usize, usize) -> T + Copy,
) -> Result<(), CommError> {
    for (number, op) in OPS.into_iter().filter(|op| T::supports(*op)).enumerate() {
        for &len in lengths {
            let name = format!("{op:?} of {len} x {} on {} ranks", std::any::type_name::<T>(), comm.size());
            let reduction = Reduction { comm, op, len, value, name };
            reduction.totals((number + len) % comm.size())?;
            reduction.prefixes()?;
            reduction.parts()?;
        }
    }
    Ok(())
}

/// An operation on `len` elements of each rank.
struct Reduction<'a, F> {
    comm: &'a Communicator,
    op: Op,
    len: usize,
    /// An element, by its rank and its place.
    value: F,
    name: String,
}

impl<T: Reduce + PartialEq + Debug, F: Fn(usize, usize) -> T + Copy> Reduction<'_, F> {
    fn mine(&self, len: usize) -> Vec<T> {
        (0..len).map(|at| (self.value)(self.comm.rank(), at)).collect()
    }

    fn serial(&self, ranks: Range<usize>) -> Vec<T> {
        serial(self.op, ranks, self.len, self.value)
    }

    fn totals(&self, root: usize) -> Result<(), CommError> {
        let Self { comm, op, name, .. } = self;
        let (mine, total) = (self.mine(self.len), self.serial(0..comm.size()));
        let mut buf = mine.clone();
        comm.allreduce(&mut buf, *op)?;
        assert_eq!(buf, total, "allreduce {name}");
        assert_eq!(comm.iallreduce(mine.clone(), *op)?.wait()?, total, "iallreduce {name}");

        let mut buf = mine.clone();
        comm.reduce(&mut buf, *op, root)?;
        let again = comm.ireduce(mine, *op, root)?.wait()?;
        if comm.rank() == root {
            assert_eq!((&buf, &again), (&total, &total), "reduce {name}");
        }
        Ok(())
    }

    fn prefixes(&self) -> Result<(), CommError> {
        let Self { comm, op, name, .. } = self;
        let (rank, mine) = (comm.rank(), self.mine(self.len));
        let mut buf = mine.clone();
        comm.scan(&mut buf, *op)?;
        let prefix = self.serial(0..rank + 1);
        assert_eq!(buf, prefix, "scan {name}");
        assert_eq!(comm.iscan(mine.clone(), *op)?.wait()?, prefix, "iscan {name}");

        let mut buf = mine.clone();
        comm.exscan(&mut buf, *op)?;
        let below = if rank == 0 { mine.clone() } else { self.serial(0..rank) };
        assert_eq!(buf, below, "exscan {name}");
        assert_eq!(comm.iexscan(mine, *op)?.wait()?, below, "iexscan {name}");
        Ok(())
    }

    /// Every part of another length, some empty.
    fn parts(&self) -> Result<(), CommError> {
        let Self { comm, op, len, value, name } = self;
        let (rank, size) = (comm.rank(), comm.size());
        let mut counts: Vec<usize> = (0..size).map(|rank| (len / size) * (rank % 2 * 2)).collect();
        counts[size - 1] = len - counts[..size - 1].iter().sum::<usize>().min(*len);
        let len = counts.iter().sum::<usize>();
        let (mine, whole) = (self.mine(len), serial(*op, 0..size, len, value));
        let own = counts[..rank].iter().sum::<usize>()..counts[..=rank].iter().sum::<usize>();
        let mut buf = mine.clone();
        comm.reduce_scatter(&mut buf, &counts, *op)?;
        assert_eq!(buf[own.clone()], whole[own.clone()], "reduce_scatter {name}");
        let buf = comm.ireduce_scatter(mine, &counts, *op)?.wait()?;
        assert_eq!(buf[own.clone()], whole[own], "ireduce_scatter {name}");
        Ok(())
    }
}

type Matrix = [u64; 4];

fn times(a: Matrix, b: Matrix) -> Matrix {
    let cell =
        |i: usize, j: usize| a[2 * i].wrapping_mul(b[j]).wrapping_add(a[2 * i + 1].wrapping_mul(b[2 + j]));
    [cell(0, 0), cell(0, 1), cell(1, 0), cell(1, 1)]
}

/// Operations that do not commute are evaluated in the order of ranks.
fn ordered(comm: &Communicator) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let of = |rank: usize, at: usize| [1 + rank as u64, at as u64, 2 * rank as u64 + 1, 3];
    let product =
        |ranks: Range<usize>, at: usize| ranks.map(|rank| of(rank, at)).reduce(times).expect("not empty");
    for len in [1, size, 700] {
        let mine: Vec<Matrix> = (0..len).map(|at| of(rank, at)).collect();
        let total: Vec<Matrix> = (0..len).map(|at| product(0..size, at)).collect();
        let op = Custom::ordered(times);
        let mut buf = mine.clone();
        comm.allreduce(&mut buf, op)?;
        assert_eq!(buf, total, "ordered allreduce of {len}");
        for root in [0, size / 2, size - 1] {
            let mut buf = mine.clone();
            comm.reduce(&mut buf, op, root)?;
            assert!(rank != root || buf == total, "ordered reduce of {len} to {root}");
        }
        let mut buf = mine.clone();
        comm.scan(&mut buf, op)?;
        assert_eq!(buf, (0..len).map(|at| product(0..rank + 1, at)).collect::<Vec<_>>());
        let mut buf = mine.clone();
        comm.exscan(&mut buf, op)?;
        assert!(rank == 0 || buf == (0..len).map(|at| product(0..rank, at)).collect::<Vec<_>>());
        let counts: Vec<usize> = (0..size).map(|rank| (rank + 1) * len / size - rank * len / size).collect();
        let own = rank * len / size..(rank + 1) * len / size;
        let mut buf = mine;
        comm.reduce_scatter(&mut buf, &counts, op)?;
        assert_eq!(buf[own.clone()], total[own], "ordered reduce_scatter of {len}");
    }
    Ok(())
}

/// Operations that only move data, with parts of `len` elements.
fn movement(comm: &Communicator, len: usize) -> Result<(), CommError> {
    comm.barrier()?;
    comm.ibarrier()?.wait()?;
    for root in [0, comm.size() / 2, comm.size() - 1] {
        from_and_to_one(comm, len, root)?;
    }
    among_all(comm, len)
}

/// A part of `len` elements that is on its way from one rank to another.
fn part(len: usize, from: usize, to: usize) -> Vec<u64> {
    (0..len).map(|at| ((from * 64 + to) * 1_000_000 + at) as u64).collect()
}

fn from_and_to_one(comm: &Communicator, len: usize, root: usize) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let mut buf = if rank == root { part(len, root, 1) } else { vec![0; len] };
    comm.bcast(&mut buf, root)?;
    assert_eq!(buf, part(len, root, 1), "bcast of {len} from {root}");
    let buf = if rank == root { part(len, root, 2) } else { vec![0; len] };
    assert_eq!(comm.ibcast(buf, root)?.wait()?, part(len, root, 2), "ibcast of {len} from {root}");

    let mine = part(len, rank, 0);
    let expected = (rank == root).then(|| (0..size).flat_map(|from| part(len, from, 0)).collect());
    assert_eq!(comm.gather(&mine, root)?, expected, "gather of {len} to {root}");
    let gathered = comm.igather(mine, root)?.wait()?;
    assert_eq!(gathered, expected.unwrap_or_default(), "igather of {len} to {root}");

    let source: Vec<u64> =
        if rank == root { (0..size).flat_map(|to| part(len, root, to)).collect() } else { vec![] };
    let mut buf = vec![0; len];
    comm.scatter(&source, &mut buf, root)?;
    assert_eq!(buf, part(len, root, rank), "scatter of {len} from {root}");
    assert_eq!(comm.iscatter(source, len, root)?.wait()?, part(len, root, rank), "iscatter of {len}");
    Ok(())
}

fn among_all(comm: &Communicator, len: usize) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let mine = part(len, rank, 0);
    let all: Vec<u64> = (0..size).flat_map(|from| part(len, from, 0)).collect();
    let mut buf = vec![0; len * size];
    comm.allgather(&mine, &mut buf)?;
    assert_eq!(buf, all, "allgather of {len}");
    assert_eq!(comm.iallgather(&mine)?.wait()?, all, "iallgather of {len}");

    let out: Vec<u64> = (0..size).flat_map(|to| part(len, rank, to)).collect();
    let expected: Vec<u64> = (0..size).flat_map(|from| part(len, from, rank)).collect();
    let mut buf = vec![0; len * size];
    comm.alltoall(&out, &mut buf)?;
    assert_eq!(buf, expected, "alltoall of {len}");
    let mut buf = out.clone();
    comm.alltoall_in_place(&mut buf)?;
    assert_eq!(buf, expected, "alltoall in place of {len}");
    assert_eq!(comm.ialltoall(out)?.wait()?, expected, "ialltoall of {len}");
    Ok(())
}

/// The length of the part from one rank to another where lengths are unequal, some of them 0.
fn uneven_length(from: usize, to: usize) -> usize {
    (from * 5 + to * 3) % 7
}

fn uneven_part(from: usize, to: usize) -> Vec<u16> {
    vec![(from * 100 + to) as u16; uneven_length(from, to)]
}

fn uneven(comm: &Communicator) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let counts: Vec<usize> = (0..size).map(|from| uneven_length(from, 0)).collect();
    let all: Vec<u16> = (0..size).flat_map(|from| uneven_part(from, 0)).collect();
    let mine = uneven_part(rank, 0);
    let root = size - 1;
    let expected = (rank == root).then(|| all.clone());
    let known: &[usize] = if rank == root { &counts } else { &[] };
    assert_eq!(comm.gatherv(&mine, known, root)?, expected);
    assert_eq!(comm.igatherv(mine.clone(), known, root)?.wait()?, expected.unwrap_or_default());

    let source = if rank == root { all.clone() } else { vec![] };
    let mut buf = vec![0; counts[rank]];
    comm.scatterv(&source, known, &mut buf, root)?;
    assert_eq!(buf, mine);
    assert_eq!(comm.iscatterv(source, known, counts[rank], root)?.wait()?, mine);

    let mut buf = vec![0; all.len()];
    let own = counts[..rank].iter().sum::<usize>();
    buf[own..own + counts[rank]].copy_from_slice(&mine);
    let start = buf.clone();
    comm.allgatherv(&mut buf, &counts)?;
    assert_eq!(buf, all);
    assert_eq!(comm.iallgatherv(start, &counts)?.wait()?, all);
    uneven_alltoall(comm)
}

fn uneven_alltoall(comm: &Communicator) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let out: Vec<u16> = (0..size).flat_map(|to| uneven_part(rank, to)).collect();
    let out_counts: Vec<usize> = (0..size).map(|to| uneven_length(rank, to)).collect();
    let counts: Vec<usize> = (0..size).map(|from| uneven_length(from, rank)).collect();
    let expected: Vec<u16> = (0..size).flat_map(|from| uneven_part(from, rank)).collect();
    let mut buf = vec![0; expected.len()];
    comm.alltoallv(&out, &out_counts, &mut buf, &counts)?;
    assert_eq!(buf, expected);
    assert_eq!(comm.ialltoallv(out, &out_counts, &counts)?.wait()?, expected);
    Ok(())
}

/// Several collectives under way at once, waited for in another order than they were started in, with messages in
/// between.
fn several_at_once(comm: &Communicator) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let sums: Vec<_> = (0..8u64)
        .map(|number| comm.iallreduce(vec![number * rank as u64; 1000], Op::Sum))
        .collect::<Result<_, _>>()?;
    let barrier = comm.ibarrier()?;
    let (left, right) = beside(comm);
    let mut got = [0u32];
    comm.sendrecv(&[rank as u32], right, &mut got, left, 3)?;
    assert_eq!(got, [left as u32]);
    let mut pending: Vec<_> = sums.into_iter().rev().collect();
    let ranks = (size * (size - 1) / 2) as u64;
    let mut numbers = vec![];
    while let Some((_, sum)) = wait_any(&mut pending)? {
        assert!(sum.iter().all(|value| *value == sum[0]));
        numbers.push(sum[0]);
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (0..8).map(|number| number * ranks).collect::<Vec<_>>());
    barrier.wait()?;
    // One that nobody waits for ends by itself.
    drop(comm.iallreduce(vec![1.5f64; 10_000], Op::Max)?);
    comm.barrier()
}

fn neighbors(comm: &Communicator) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    // Everybody sends to the next two ranks, which may be the same one or the rank itself.
    let ahead = |by: usize| (rank + by) % size;
    let behind = |by: usize| (rank + 2 * size - by) % size;
    let graph = Graph::new(size, vec![behind(1), behind(2)], vec![ahead(1), ahead(2)]);
    let graph = graph.map_err(|error| CommError::Count(error.to_string()))?;
    let mut buf = [0u64; 2];
    comm.neighbor_allgather(&graph, &[rank as u64 + 1], &mut buf)?;
    assert_eq!(buf, [behind(1) as u64 + 1, behind(2) as u64 + 1]);
    if size > 2 {
        let mut buf = [0u64; 2];
        comm.neighbor_alltoall(&graph, &[10 + rank as u64, 20 + rank as u64], &mut buf)?;
        assert_eq!(buf, [10 + behind(1) as u64, 20 + behind(2) as u64]);
        let mut buf = [0u64; 3];
        comm.neighbor_alltoallv(&graph, &[1, 2, 2], &[1, 2], &mut buf, &[1, 2])?;
        assert_eq!(buf, [1, 2, 2]);
    }
    Ok(())
}
