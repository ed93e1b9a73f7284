//! Communicators made from others: messages of equal tags never meet, ranks are translated, contexts are given back.

use ft_comm::{CommError, Communicator, Graph, Grid, Group, Layout, Op, Source, TagSel};

use super::messages::beside;

pub(crate) fn check(comm: &Communicator) -> Result<(), CommError> {
    libraries(comm)?;
    freed(comm)?;
    halves(comm)?;
    of_a_group(comm)?;
    grid(comm)?;
    periodic_grids(comm)
}

/// Two libraries and the program use the same tags between the same ranks; each receives in another order.
fn libraries(comm: &Communicator) -> Result<(), CommError> {
    let (size, (_, right)) = (comm.size(), beside(comm));
    let (one, two) = (comm.dup()?, comm.dup()?);
    for (number, library) in [(2u8, &two), (0, comm), (1, &one)] {
        drop(library.isend(vec![number; 3], right, 0)?);
        drop(library.iallreduce(vec![u64::from(number)], Op::Sum)?);
    }
    for (number, library) in [(0u8, comm), (1, &one), (2, &two)] {
        let mut buf = [9u8; 3];
        library.recv(&mut buf, Source::Any, TagSel::Any)?;
        assert_eq!(buf, [number; 3], "a message of another communicator");
        let mut sum = [u64::from(number)];
        library.allreduce(&mut sum, Op::Sum)?;
        assert_eq!(sum, [u64::from(number) * size as u64]);
        assert_eq!(library.iprobe(Source::Any, TagSel::Any)?, None);
    }
    Ok(())
}

/// What is left in a communicator that is freed meets nobody, and its credit comes back; but a collective goes on.
fn freed(comm: &Communicator) -> Result<(), CommError> {
    let (rank, size, (left, right)) = (comm.rank(), comm.size(), beside(comm));
    for _ in 0..40 {
        let short_lived = comm.dup()?;
        drop(short_lived.isend(vec![1u8; 200_000], right, 0)?);
        comm.barrier()?;
        drop(short_lived);
    }
    assert_eq!(comm.iprobe(left, TagSel::Any)?, None);
    // Its request and its communicator are gone: one rank still waits for it.
    let short_lived = comm.dup()?;
    let sum = short_lived.iallreduce(vec![rank as u64; 5000], Op::Sum)?;
    drop(short_lived);
    if rank == size / 2 {
        assert_eq!(sum.wait()?, vec![(size * (size - 1) / 2) as u64; 5000]);
    } else {
        drop(sum);
    }
    comm.barrier()
}

/// Halves in reversed order, and all but one.
fn halves(comm: &Communicator) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let color = (rank % 2) as u32;
    let half = comm.split(Some(color), -(rank as i64))?.expect("it has a color");
    let members: Vec<usize> = (0..size).rev().filter(|other| other % 2 == rank % 2).collect();
    assert_eq!((half.size(), half.group().ranks()), (members.len(), &members[..]));
    let mut first = [rank as u64];
    half.bcast(&mut first, 0)?;
    assert_eq!(first[0], members[0] as u64);
    let mut all = vec![0u64; half.size()];
    half.allgather(&[rank as u64], &mut all)?;
    assert_eq!(all, members.iter().map(|rank| *rank as u64).collect::<Vec<_>>());
    let outside = comm.split((rank > 0).then_some(0), 0)?;
    assert_eq!(outside.map(|comm| comm.size()), (rank > 0).then_some(size - 1));
    Ok(())
}

/// A part of the ranks, made by a group.
fn of_a_group(comm: &Communicator) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let group = comm.group().include(&(0..size.div_ceil(2)).collect::<Vec<_>>());
    let group = group.map_err(|error| CommError::Count(error.to_string()))?;
    let part = comm.create(&group)?;
    assert_eq!(part.is_some(), rank < size.div_ceil(2));
    if let Some(part) = part {
        let mut sum = [1u32];
        part.allreduce(&mut sum, Op::Sum)?;
        assert_eq!(sum[0] as usize, size.div_ceil(2));
        assert_eq!(part.group().translate(&[0], &comm.group()), [Some(0)]);
    }
    let stranger = Group::new(vec![size + 40]).map_err(|error| CommError::Count(error.to_string()))?;
    assert!(matches!(comm.create(&stranger), Err(CommError::RankOutOfRange { .. })));
    Ok(())
}

/// A ring of two rows as far as it goes: shifts, faces, rows of the grid.
fn grid(comm: &Communicator) -> Result<(), CommError> {
    let columns = comm.size() / 2;
    if columns == 0 {
        return Ok(());
    }
    let grid =
        Grid::new(&[2, columns], &[true, false]).map_err(|error| CommError::Count(error.to_string()))?;
    let Some(cartesian) = comm.cartesian(grid)? else { return Ok(()) };
    let (rank, coords) = (cartesian.comm().rank(), cartesian.coords());
    assert_eq!(coords, [rank / columns, rank % columns]);
    let other = (rank + columns) % (2 * columns);
    assert_eq!(cartesian.shift(0, 1), (Some(other), Some(other)));
    let (west, east) = cartesian.shift(1, 1);
    assert_eq!((west.is_none(), east.is_none()), (coords[1] == 0, coords[1] == columns - 1));
    // Both neighbors in the ring of two are one rank: what goes up comes from below.
    let at = |k: usize| Layout::contiguous(k..k + 1);
    let plan = cartesian.plan_faces::<u32>(&[at(0), at(1), at(2), at(3)], &[at(0), at(1), at(2), at(3)])?;
    let face = |of: usize, k: usize| (of * 10 + k) as u32;
    let out: Vec<u32> = (0..4).map(|k| face(rank, k)).collect();
    let mut buf = [u32::MAX; 4];
    plan.run(&out, &mut buf)?;
    let from = |peer: Option<usize>, k: usize| peer.map_or(u32::MAX, |peer| face(peer, k));
    assert_eq!(buf, [face(other, 1), face(other, 0), from(west, 3), from(east, 2)]);
    let row = cartesian.sub(&[false, true])?;
    assert_eq!((row.comm().size(), row.comm().rank()), (columns, coords[1]));
    let mut sum = [rank as u64];
    row.comm().allreduce(&mut sum, Op::Sum)?;
    assert_eq!(sum[0], (0..columns).map(|column| (coords[0] * columns + column) as u64).sum::<u64>());
    Ok(())
}

/// Neighborhood collectives on grids of one to three ranks in each dimension: the part from below
/// is the part that the rank below has sent up, although both neighbors may be one rank, or this
/// one.
fn periodic_grids(comm: &Communicator) -> Result<(), CommError> {
    let wrong = |error: ft_comm::TopologyError| CommError::Count(error.to_string());
    for lengths in shapes(comm.size()) {
        for periodic in [[true; 3], [true, false, true]] {
            let grid = Grid::new(&lengths, &periodic[..lengths.len()]).map_err(wrong)?;
            let Some(cartesian) = comm.cartesian(grid.clone())? else { continue };
            let (comm, rank) = (cartesian.comm(), cartesian.comm().rank());
            let neighbors = grid.neighbors(rank);
            let slots: Vec<usize> = (0..neighbors.len()).filter(|slot| neighbors[*slot].is_some()).collect();
            let ranks: Vec<usize> = neighbors.iter().flatten().copied().collect();
            let graph = Graph::new(comm.size(), ranks.clone(), ranks).map_err(wrong)?;
            let sent = |of: usize, slot: usize| (10 * of + slot) as u32;
            let came = |slot: usize| sent(neighbors[slot].expect("it is a neighbor"), slot ^ 1);
            let copy = comm.dup()?;
            for comm in [comm, &copy] {
                let out: Vec<u32> = slots.iter().map(|slot| sent(rank, *slot)).collect();
                let mut buf = vec![0; out.len()];
                comm.neighbor_alltoall(&graph, &out, &mut buf)?;
                assert_eq!(buf, slots.iter().map(|slot| came(*slot)).collect::<Vec<_>>(), "{grid:?}");
                let times = |word: u32, slot: usize| std::iter::repeat_n(word, 1 + slot);
                let out: Vec<u32> = slots.iter().flat_map(|slot| times(sent(rank, *slot), *slot)).collect();
                let due: Vec<u32> = slots.iter().flat_map(|slot| times(came(*slot), *slot ^ 1)).collect();
                let counts = |other: usize| slots.iter().map(|slot| 1 + (slot ^ other)).collect::<Vec<_>>();
                let mut buf = vec![0; due.len()];
                comm.neighbor_alltoallv(&graph, &out, &counts(0), &mut buf, &counts(1))?;
                assert_eq!(buf, due, "{grid:?}");
                let mut buf = vec![0; slots.len()];
                comm.neighbor_allgather(&graph, &[rank], &mut buf)?;
                assert_eq!(buf, graph.sources(), "{grid:?}");
            }
        }
    }
    Ok(())
}

/// Grids of up to three dimensions, of one to three ranks each, that have room among so many ranks.
fn shapes(size: usize) -> Vec<Vec<usize>> {
    let mut shapes = vec![vec![]];
    for from in [0, 1, 4] {
        let longer: Vec<Vec<usize>> = shapes[from..]
            .iter()
            .flat_map(|shape| (1..4).map(|length| [&shape[..], &[length]].concat()))
            .collect();
        shapes.extend(longer);
    }
    shapes.retain(|shape| !shape.is_empty() && shape.iter().product::<usize>() <= size);
    shapes
}
