//! Collectives, blocking and not, with every type and operation, against a serial reference.

use ft_comm::{
    CommError, Communicator, Custom, Graph, LocatedF64, LocatedI32, Op, Operation, Plain, Reduce, wait_any,
};

use super::call::{Call, KINDS, Kind};
use super::messages::beside;

/// Lengths around the number of ranks.
fn lengths(size: usize) -> Vec<usize> {
    vec![0, 1, size.saturating_sub(1), size, size + 1, 3 * size + 2]
}

/// Small whole numbers, so that sums and products of floats are exact in any order.
fn value(rank: usize, at: usize) -> u8 {
    ((rank * 7 + at * 3) % 4) as u8
}

/// All collectives; buffers of up to `long` bytes.
pub(crate) fn check(comm: &Communicator, long: usize) -> Result<(), CommError> {
    let lengths = lengths(comm.size());
    macro_rules! numbers {
        ($($t:ty)*) => {$( reductions(comm, &lengths, |_, from, _, at| value(from, at) as $t)?; )*};
    }
    numbers!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);
    reductions(comm, &lengths, |_, from, _, at| LocatedF64 {
        value: f64::from(value(from, at)),
        index: (from * 31 + at) as u64,
    })?;
    reductions(comm, &lengths, |_, from, _, at| LocatedI32 {
        value: i32::from(value(from, at)) - 2,
        index: (from * 31 + at) as u32,
    })?;
    reductions(comm, &[long / 4], |_, from, _, at| (from * 1_000_003 + at) as u32)?;
    ordered(comm)?;
    movement(comm, &lengths)?;
    for (kind, number) in KINDS.into_iter().flat_map(|kind| roots(comm).map(|root| (kind, root))) {
        both(Call::of_numbers(comm, kind, number, long / 8 / comm.size()))?;
    }
    comm.barrier()?;
    comm.ibarrier()?.wait()?;
    several_at_once(comm)?;
    neighbors(comm)
}

/// The collective that is called, waited for at once and not.
fn both<T: Plain + PartialEq, O: Operation<T> + Copy + 'static>(
    call: Call<'_, T, O>,
) -> Result<(), CommError> {
    let name = || {
        let Call { kind, number, len, comm, .. } = call;
        format!("{kind:?} {number} of {len} x {} on {} ranks", std::any::type_name::<T>(), comm.size())
    };
    assert!(call.run()?, "{}", name());
    assert!(call.is_right(call.start()?.wait()?), "{}, started", name());
    Ok(())
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

/// Whether it combines elements; the others only move them.
fn reduces(kind: Kind) -> bool {
    use Kind::{Allreduce, Exscan, Reduce, ReduceScatter, Scan};
    matches!(kind, Reduce | Allreduce | Scan | Exscan | ReduceScatter)
}

/// Numbers of calls, even and odd, that have the first, a middle and the last rank as their root.
fn roots(comm: &Communicator) -> [u64; 4] {
    [0, 1, comm.size() / 2, comm.size() - 1].map(|number| number as u64)
}

/// By the number of a call: what one rank has for another at a place.
type Element<T> = fn(u64, usize, usize, usize) -> T;

/// What combines elements, with every operation that these have.
fn reductions<T: Reduce + PartialEq>(
    comm: &Communicator,
    lengths: &[usize],
    element: Element<T>,
) -> Result<(), CommError> {
    for (number, op) in (0u64..).zip(OPS.into_iter().filter(|op| T::supports(*op))) {
        for &len in lengths {
            for kind in KINDS.into_iter().filter(|kind| reduces(*kind)) {
                both(Call { comm, kind, number: number + len as u64, len, op, element })?;
            }
        }
    }
    Ok(())
}

type Matrix = [u64; 4];

fn times(a: Matrix, b: Matrix) -> Matrix {
    let cell =
        |i: usize, j: usize| a[2 * i].wrapping_mul(b[j]).wrapping_add(a[2 * i + 1].wrapping_mul(b[2 + j]));
    [cell(0, 0), cell(0, 1), cell(1, 0), cell(1, 1)]
}

/// Operations that do not commute are evaluated in the order of ranks.
fn ordered(comm: &Communicator) -> Result<(), CommError> {
    let element = |_, from: usize, _, at: usize| [1 + from as u64, at as u64, 2 * from as u64 + 1, 3];
    let op = Custom::ordered(times as fn(Matrix, Matrix) -> Matrix);
    for len in [1, comm.size(), 700] {
        for kind in KINDS.into_iter().filter(|kind| reduces(*kind)) {
            for number in roots(comm) {
                both(Call { comm, kind, number, len, op, element })?;
            }
        }
    }
    Ok(())
}

/// What only moves elements, whose lengths and values follow from where they come from and go to.
fn movement(comm: &Communicator, lengths: &[usize]) -> Result<(), CommError> {
    let element =
        |number, from: usize, to: usize, at: usize| number as u16 ^ (from * 2000 + to * 100 + at) as u16;
    for &len in lengths {
        for kind in KINDS.into_iter().filter(|kind| !reduces(*kind)) {
            for number in roots(comm) {
                both(Call { comm, kind, number, len, op: Op::Sum, element })?;
            }
        }
    }
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
    repeated_edges(comm)
}

/// Three edges to the next rank, two to the rank itself, in turn: they match in order, whatever
/// their lengths.
fn repeated_edges(comm: &Communicator) -> Result<(), CommError> {
    let (rank, (left, right)) = (comm.rank(), beside(comm));
    let graph =
        Graph::new(comm.size(), vec![left, rank, left, rank, left], vec![right, right, rank, right, rank]);
    let graph = graph.map_err(|error| CommError::Count(error.to_string()))?;
    let edge = |from: usize, number: u64| vec![10 * from as u64 + number; number as usize];
    // With one rank all five edges are of one kind.
    let (sent, received) = match comm.size() {
        1 => ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]),
        _ => ([1, 2, 4, 3, 5], [1, 4, 2, 5, 3]),
    };
    let out: Vec<u64> = sent.into_iter().flat_map(|number| edge(rank, number)).collect();
    let due: Vec<u64> =
        graph.sources().iter().zip(received).flat_map(|(from, number)| edge(*from, number)).collect();
    let counts = |numbers: [u64; 5]| numbers.map(|number| number as usize);
    let mut buf = vec![0; due.len()];
    comm.neighbor_alltoallv(&graph, &out, &counts(sent), &mut buf, &counts(received))?;
    assert_eq!(buf, due);
    Ok(())
}
