//! What every rank of a communicator checks, together with all others.

use ft_comm::{
    CommError, Communicator, Custom, Graph, Grid, Group, Layout, LocatedF64, LocatedI32, Op, Part, Piece,
    Reduce, Source, TagSel, test_any, wait_all, wait_any, wait_some,
};

/// Lengths around the number of ranks.
fn lengths(size: usize) -> Vec<usize> {
    vec![0, 1, size.saturating_sub(1), size, size + 1, 3 * size + 2]
}

/// Small whole numbers, so that sums and products of floats are exact in any order.
fn value(rank: usize, at: usize) -> u8 {
    ((rank * 7 + at * 3) % 4) as u8
}

/// The reduction over `ranks`, one after the other.
fn serial<T: Reduce>(
    op: Op,
    ranks: std::ops::Range<usize>,
    len: usize,
    value: impl Fn(usize, usize) -> T,
) -> Vec<T> {
    let of = |rank: usize| (0..len).map(|at| value(rank, at)).collect::<Vec<T>>();
    let mut all = of(ranks.start);
    for rank in ranks.start + 1..ranks.end {
        T::combine(op, &mut all, &of(rank), ft_comm::collective::Order::MineFirst);
    }
    all
}

/// All collectives; buffers of up to `long` bytes.
pub(crate) fn collectives(comm: &Communicator, long: usize) -> Result<(), CommError> {
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

fn reductions<T: Reduce + PartialEq + std::fmt::Debug>(
    comm: &Communicator,
    lengths: &[usize],
    value: impl Fn(usize, usize) -> T + Copy,
) -> Result<(), CommError> {
    let ops = [
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
    let (rank, size) = (comm.rank(), comm.size());
    for (number, op) in ops.into_iter().filter(|op| T::supports(*op)).enumerate() {
        for &len in lengths {
            let mine: Vec<T> = (0..len).map(|at| value(rank, at)).collect();
            let root = (number + len) % size;
            let total = serial(op, 0..size, len, value);
            let name = format!("{op:?} of {len} x {} on {size} ranks", std::any::type_name::<T>());

            let mut buf = mine.clone();
            comm.allreduce(&mut buf, op)?;
            assert_eq!(buf, total, "allreduce {name}");
            assert_eq!(comm.iallreduce(mine.clone(), op)?.wait()?, total, "iallreduce {name}");

            let mut buf = mine.clone();
            comm.reduce(&mut buf, op, root)?;
            let again = comm.ireduce(mine.clone(), op, root)?.wait()?;
            if rank == root {
                assert_eq!((&buf, &again), (&total, &total), "reduce {name}");
            }

            let mut buf = mine.clone();
            comm.scan(&mut buf, op)?;
            let prefix = serial(op, 0..rank + 1, len, value);
            assert_eq!(buf, prefix, "scan {name}");
            assert_eq!(comm.iscan(mine.clone(), op)?.wait()?, prefix, "iscan {name}");

            let mut buf = mine.clone();
            comm.exscan(&mut buf, op)?;
            let below = if rank == 0 { mine.clone() } else { serial(op, 0..rank, len, value) };
            assert_eq!(buf, below, "exscan {name}");
            assert_eq!(comm.iexscan(mine.clone(), op)?.wait()?, below, "iexscan {name}");

            // Every part of another length, some empty.
            let mut counts: Vec<usize> = (0..size).map(|rank| (len / size) * (rank % 2 * 2)).collect();
            counts[size - 1] = len - counts[..size - 1].iter().sum::<usize>().min(len);
            let len_of = counts.iter().sum::<usize>();
            let whole = serial(op, 0..size, len_of, value);
            let mine: Vec<T> = (0..len_of).map(|at| value(rank, at)).collect();
            let own = counts[..rank].iter().sum::<usize>()..counts[..=rank].iter().sum::<usize>();
            let mut buf = mine.clone();
            comm.reduce_scatter(&mut buf, &counts, op)?;
            assert_eq!(buf[own.clone()], whole[own.clone()], "reduce_scatter {name}");
            let buf = comm.ireduce_scatter(mine, &counts, op)?.wait()?;
            assert_eq!(buf[own.clone()], whole[own], "ireduce_scatter {name}");
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
    let (rank, size) = (comm.rank(), comm.size());
    let of = |rank: usize, at: usize| [1 + rank as u64, at as u64, 2 * rank as u64 + 1, 3];
    let product = |ranks: std::ops::Range<usize>, at: usize| {
        ranks.map(|rank| of(rank, at)).reduce(times).expect("not empty")
    };
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
    let (rank, size) = (comm.rank(), comm.size());
    let part = |from: usize, to: usize| -> Vec<u64> {
        (0..len).map(|at| ((from * 64 + to) * 1_000_000 + at) as u64).collect()
    };
    comm.barrier()?;
    comm.ibarrier()?.wait()?;
    let mine = part(rank, 0);
    let all: Vec<u64> = (0..size).flat_map(|from| part(from, 0)).collect();
    for root in [0, size / 2, size - 1] {
        let mut buf = if rank == root { part(root, 1) } else { vec![0; len] };
        comm.bcast(&mut buf, root)?;
        assert_eq!(buf, part(root, 1), "bcast of {len} from {root}");
        let buf = if rank == root { part(root, 2) } else { vec![0; len] };
        assert_eq!(comm.ibcast(buf, root)?.wait()?, part(root, 2), "ibcast of {len} from {root}");

        let expected = (rank == root).then(|| all.clone());
        assert_eq!(comm.gather(&mine, root)?, expected, "gather of {len} to {root}");
        let gathered = comm.igather(mine.clone(), root)?.wait()?;
        assert_eq!(gathered, expected.unwrap_or_default(), "igather of {len} to {root}");

        let source: Vec<u64> =
            if rank == root { (0..size).flat_map(|to| part(root, to)).collect() } else { vec![] };
        let mut buf = vec![0; len];
        comm.scatter(&source, &mut buf, root)?;
        assert_eq!(buf, part(root, rank), "scatter of {len} from {root}");
        assert_eq!(comm.iscatter(source, len, root)?.wait()?, part(root, rank), "iscatter of {len}");
    }
    let mut buf = vec![0; len * size];
    comm.allgather(&mine, &mut buf)?;
    assert_eq!(buf, all, "allgather of {len}");
    assert_eq!(comm.iallgather(&mine)?.wait()?, all, "iallgather of {len}");

    let out: Vec<u64> = (0..size).flat_map(|to| part(rank, to)).collect();
    let expected: Vec<u64> = (0..size).flat_map(|from| part(from, rank)).collect();
    let mut buf = vec![0; len * size];
    comm.alltoall(&out, &mut buf)?;
    assert_eq!(buf, expected, "alltoall of {len}");
    let mut buf = out.clone();
    comm.alltoall_in_place(&mut buf)?;
    assert_eq!(buf, expected, "alltoall in place of {len}");
    assert_eq!(comm.ialltoall(out)?.wait()?, expected, "ialltoall of {len}");
    Ok(())
}

/// Parts of unequal lengths, some of them empty.
fn uneven(comm: &Communicator) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let length = |from: usize, to: usize| (from * 5 + to * 3) % 7;
    let part = |from: usize, to: usize| vec![(from * 100 + to) as u16; length(from, to)];
    let counts: Vec<usize> = (0..size).map(|from| length(from, 0)).collect();
    let all: Vec<u16> = (0..size).flat_map(|from| part(from, 0)).collect();
    let mine = part(rank, 0);
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

    let out: Vec<u16> = (0..size).flat_map(|to| part(rank, to)).collect();
    let out_counts: Vec<usize> = (0..size).map(|to| length(rank, to)).collect();
    let counts: Vec<usize> = (0..size).map(|from| length(from, rank)).collect();
    let expected: Vec<u16> = (0..size).flat_map(|from| part(from, rank)).collect();
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
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
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

/// Point-to-point messages of all kinds.
pub(crate) fn messages(comm: &Communicator) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
    let row =
        |of: usize, len: usize| -> Vec<u32> { (0..len).map(|at| (of * 1_000_003 + at) as u32).collect() };
    // Lengths on both sides of the longest message that is sent before it is received; to oneself with one rank.
    for len in [0, 1, 1000, 200_000] {
        let mut buf = vec![0u32; len];
        let status = comm.sendrecv(&row(rank, len), right, &mut buf, left, 7)?;
        assert_eq!((status.source, status.tag, status.bytes), (left, 7, 4 * len));
        assert_eq!(buf, row(left, len));
        let mut buf = row(rank, len);
        comm.sendrecv_replace(&mut buf, right, left, 7)?;
        assert_eq!(buf, row(left, len));

        let receive = comm.irecv(vec![0u32; len + 5], left, TagSel::Any)?;
        let send = comm.issend(row(rank, len), right, 8)?;
        let (got, status) = receive.wait()?;
        assert_eq!((got[..len].to_vec(), status.tag, status.bytes), (row(left, len), 8, 4 * len));
        assert_eq!(send.wait()?.0, row(rank, len));

        comm.bsend(&row(rank, len), right, 9)?;
        let mut message = comm.mprobe(Source::Any, 9)?;
        assert_eq!((message.status().source, message.status().bytes), (left, 4 * len));
        if len > 0 {
            let short = message.recv(&mut vec![0u32; len - 1]);
            assert!(matches!(short, Err(CommError::Truncated { .. })), "{short:?}");
        }
        let mut buf = vec![0u32; len];
        message.recv(&mut buf)?;
        assert_eq!(buf, row(left, len));
        assert!(matches!(
            message.recv(&mut buf),
            Err(CommError::Expired { .. }) | Err(CommError::Truncated { .. })
        ));
    }
    comm.barrier()?;
    many_requests(comm, left, right)?;
    derived(comm, left, right)?;
    // Values of any shape.
    let value = (rank, format!("rank {rank}"), vec![Some(1.5f32); rank]);
    comm.send_value(&value, right, 4)?;
    let (got, status) = comm.recv_value::<(usize, String, Vec<Option<f32>>)>(left, 4)?;
    assert_eq!((got, status.source), ((left, format!("rank {left}"), vec![Some(1.5f32); left]), left));
    comm.send_value(&"no number", right, 4)?;
    assert!(matches!(comm.recv_value::<[u64; 3]>(left, 4), Err(CommError::Value { .. })));
    let told = comm.bcast_value((rank == size - 1).then(|| vec!["a".to_owned(); 3]).as_ref(), size - 1)?;
    assert_eq!(told, ["a", "a", "a"]);
    misuse(comm)
}

fn many_requests(comm: &Communicator, left: usize, right: usize) -> Result<(), CommError> {
    const MANY: u32 = 200;
    let mut receives: Vec<_> =
        (0..MANY).rev().map(|tag| comm.irecv(vec![0u32], left, tag)).collect::<Result<_, _>>()?;
    let sends: Vec<_> =
        (0..MANY).map(|tag| comm.isend(vec![tag * 3], right, tag)).collect::<Result<_, _>>()?;
    let mut seen = 0;
    while seen < MANY {
        let done = if seen % 3 == 0 {
            wait_some(&mut receives)?
        } else if seen % 3 == 1 {
            test_any(&mut receives)?.into_iter().collect()
        } else {
            wait_any(&mut receives)?.into_iter().collect()
        };
        for (_, (got, status)) in done {
            assert_eq!(got[0], status.tag * 3);
            seen += 1;
        }
    }
    assert_eq!(wait_all(sends)?.len(), MANY as usize);
    // A receive that nothing matches can be withdrawn; one that was matched cannot.
    let lonely = comm.irecv(vec![7u8; 9], left, 999)?;
    assert_eq!(lonely.cancel()?.expect("nothing was sent"), vec![7u8; 9]);
    let wanted = comm.irecv(vec![0u8; 1], left, 998)?;
    comm.send(&[5u8], right, 998)?;
    let (got, _) = wanted.wait()?;
    assert_eq!(got, [5]);
    comm.barrier()
}

/// Matrix columns, faces of a block, scattered elements.
fn derived(comm: &Communicator, left: usize, right: usize) -> Result<(), CommError> {
    let rank = comm.rank();
    let wrong = |error: ft_comm::LayoutError| CommError::Layout(error.to_string());
    let (rows, columns) = (37, 11);
    let matrix = |of: usize| -> Vec<f64> { (0..rows * columns).map(|at| (of * 1000 + at) as f64).collect() };
    let column = Layout::strided(3, rows, 1, columns).map_err(wrong)?;
    let mut got = vec![-1.0; rows * columns];
    let receive = comm.irecv(vec![0.0f64; rows], left, 5)?;
    comm.send_layout(&matrix(rank), &column, right, 5)?;
    let (packed, _) = receive.wait()?;
    assert_eq!(packed, (0..rows).map(|row| matrix(left)[row * columns + 3]).collect::<Vec<_>>());
    let send = comm.isend(packed, right, 6)?;
    comm.recv_layout(&mut got, &column, left, 6)?;
    send.wait()?;
    let before = (left + comm.size() - 1) % comm.size();
    for (at, value) in got.iter().enumerate() {
        let expected = if at % columns == 3 { matrix(before)[at] } else { -1.0 };
        assert_eq!(*value, expected, "element {at}");
    }
    // A block with a halo: faces of a 3-D array, long and short pieces, exchanged by a plan that is run several times.
    let shape = [6, 70, 1300];
    let face = |dimension: usize, at: usize| {
        let (mut start, mut extent) = ([1, 1, 1], [4, 68, 1298]);
        (start[dimension], extent[dimension]) = (at, 1);
        Layout::subarray(&shape, &start, &extent)
    };
    let total: usize = shape.iter().product();
    let block = |of: usize| -> Vec<u16> { (0..total).map(|at| (at * 7 + of * 13) as u16).collect() };
    for dimension in 0..3 {
        let (inner, outer) = (face(dimension, 1).map_err(wrong)?, face(dimension, 0).map_err(wrong)?);
        let out = [Piece { peer: right, tag: 1, layout: inner.clone() }];
        let into = [Piece { peer: left, tag: 1, layout: outer.clone() }];
        let plan = comm.plan::<u16>(&out, &into)?;
        let mut sent = vec![];
        inner.gather(&block(left), &mut sent);
        let mut expected = vec![9u16; total];
        outer.scatter(&sent, &mut expected);
        for _ in 0..2 {
            let mut buf = vec![9u16; total];
            plan.run(&block(rank), &mut buf)?;
            assert!(buf == expected, "a face of dimension {dimension}");
        }
        let (_, buf) = plan.start(block(rank), vec![9u16; total])?.wait()?;
        assert!(buf == expected, "a face of dimension {dimension}, not waited for at once");
    }
    let blocks = Layout::indexed(vec![8..9, 2..5, 0..1]).map_err(wrong)?;
    let mut buf = [0u8; 10];
    let receive = comm.irecv(vec![0u8; 5], left, 2)?;
    comm.send_layout(&[0u8, 1, 2, 3, 4, 5, 6, 7, 8, 9], &blocks, right, 2)?;
    assert_eq!(receive.wait()?.0, [8, 2, 3, 4, 0]);
    let send = comm.isend(vec![1u8, 2, 3, 4, 5], right, 2)?;
    comm.recv_layout(&mut buf, &blocks, left, 2)?;
    send.wait()?;
    assert_eq!(buf, [5, 0, 2, 3, 4, 0, 0, 0, 1, 0]);
    Ok(())
}

/// Errors instead of hangs and panics.
fn misuse(comm: &Communicator) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let nobody = Err(CommError::RankOutOfRange { rank: size, size });
    assert_eq!(comm.send(&[1u8], size, 0), nobody);
    assert_eq!(comm.bcast(&mut [1u8], size), nobody);
    assert_eq!(comm.reduce(&mut [1u8], Op::Sum, size), nobody);
    assert_eq!(comm.recv(&mut [1u8], size, 0).map(|_| ()), nobody);
    assert!(matches!(comm.allreduce(&mut [1.0f64], Op::BitXor), Err(CommError::Operation(_))));
    assert!(matches!(comm.allgather(&[1u8], &mut vec![0u8; size + 1]), Err(CommError::Count(_))));
    assert!(matches!(comm.allgatherv(&mut [0u8], &vec![7; size]), Err(CommError::Count(_))));
    assert!(matches!(comm.alltoallv(&[0u8], &[], &mut [0u8], &[]), Err(CommError::Count(_))));
    assert!(matches!(comm.reduce_scatter(&mut [0u8], &vec![7; size], Op::Sum), Err(CommError::Count(_))));
    let outside = Layout::contiguous(3..9);
    assert!(matches!(comm.send_layout(&[0u8; 4], &outside, rank, 0), Err(CommError::Layout(_))));
    let twice = Layout::indexed(vec![0..2, 1..3]).map_err(|error| CommError::Layout(error.to_string()))?;
    assert!(matches!(comm.recv_layout(&mut [0u8; 4], &twice, rank, 0), Err(CommError::Layout(_))));
    let part = Part { peer: rank, tag: 0, range: 0..5 };
    let short =
        comm.exchange(&[0u8; 4], std::slice::from_ref(&part), &mut [0u8; 5], std::slice::from_ref(&part));
    assert!(matches!(short, Err(CommError::Count(_))), "{short:?}");
    // A message that is too long is still to be received.
    comm.bsend(&[1u8, 2, 3], rank, 1)?;
    let short = comm.recv(&mut [0u8; 2], rank, 1);
    assert!(matches!(short, Err(CommError::Truncated { message_bytes: 3, buffer_bytes: 2, .. })));
    let mut buf = [0u8; 3];
    comm.recv(&mut buf, rank, 1)?;
    assert_eq!(buf, [1, 2, 3]);
    comm.barrier()
}

/// Communicators made from others: messages of equal tags never meet, ranks are translated, contexts are given back.
pub(crate) fn communicators(comm: &Communicator) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
    // Two libraries and the program use the same tags between the same ranks; each receives in another order.
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
    // What is left in a communicator that is freed meets nobody, and its credit comes back.
    for _ in 0..40 {
        let short_lived = comm.dup()?;
        drop(short_lived.isend(vec![1u8; 200_000], right, 0)?);
        comm.barrier()?;
        drop(short_lived);
    }
    assert_eq!(comm.iprobe(left, TagSel::Any)?, None);
    // A collective goes on although its request and its communicator are gone: one rank still waits for it.
    let short_lived = comm.dup()?;
    let sum = short_lived.iallreduce(vec![rank as u64; 5000], Op::Sum)?;
    drop(short_lived);
    if rank == size / 2 {
        assert_eq!(sum.wait()?, vec![(size * (size - 1) / 2) as u64; 5000]);
    } else {
        drop(sum);
    }
    comm.barrier()?;
    // Halves in reversed order.
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
    // A part of the ranks, made by a group.
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
    grid(comm)
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
