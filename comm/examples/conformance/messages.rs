//! Point-to-point messages of all kinds, in a ring.

use ft_comm::{
    CommError, Communicator, Layout, Op, Part, Piece, Source, TagSel, test_any, wait_all, wait_any, wait_some,
};

/// The ranks on the left and on the right in a ring.
pub(crate) fn beside(comm: &Communicator) -> (usize, usize) {
    let (rank, size) = (comm.rank(), comm.size());
    ((rank + size - 1) % size, (rank + 1) % size)
}

pub(crate) fn check(comm: &Communicator) -> Result<(), CommError> {
    let (left, right) = beside(comm);
    // Lengths on both sides of the longest message that is sent before it is received; to oneself with one rank.
    for len in [0, 1, 1000, 200_000] {
        round(comm, len, left, right)?;
        matched(comm, len, left, right)?;
    }
    comm.barrier()?;
    many_requests(comm, left, right)?;
    columns(comm, left, right)?;
    faces(comm, left, right)?;
    scattered(comm, left, right)?;
    values(comm, left, right)?;
    misuse(comm)
}

/// What the rank `of` sends.
fn row(of: usize, len: usize) -> Vec<u32> {
    (0..len).map(|at| (of * 1_000_003 + at) as u32).collect()
}

/// All send to the right at once.
fn round(comm: &Communicator, len: usize, left: usize, right: usize) -> Result<(), CommError> {
    let rank = comm.rank();
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
    Ok(())
}

/// A message that is taken out of the queue before it is received, once.
fn matched(comm: &Communicator, len: usize, left: usize, right: usize) -> Result<(), CommError> {
    comm.bsend(&row(comm.rank(), len), right, 9)?;
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
    Ok(())
}

/// Values of any shape.
fn values(comm: &Communicator, left: usize, right: usize) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let value = (rank, format!("rank {rank}"), vec![Some(1.5f32); rank]);
    comm.send_value(&value, right, 4)?;
    let (got, status) = comm.recv_value::<(usize, String, Vec<Option<f32>>)>(left, 4)?;
    assert_eq!((got, status.source), ((left, format!("rank {left}"), vec![Some(1.5f32); left]), left));
    comm.send_value(&"no number", right, 4)?;
    assert!(matches!(comm.recv_value::<[u64; 3]>(left, 4), Err(CommError::Value { .. })));
    let told = comm.bcast_value((rank == size - 1).then(|| vec!["a".to_owned(); 3]).as_ref(), size - 1)?;
    assert_eq!(told, ["a", "a", "a"]);
    Ok(())
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

fn wrong(error: ft_comm::LayoutError) -> CommError {
    CommError::Layout(error.to_string())
}

/// A column of a matrix, sent and received.
fn columns(comm: &Communicator, left: usize, right: usize) -> Result<(), CommError> {
    let (rows, columns) = (37, 11);
    let matrix = |of: usize| -> Vec<f64> { (0..rows * columns).map(|at| (of * 1000 + at) as f64).collect() };
    let column = Layout::strided(3, rows, 1, columns).map_err(wrong)?;
    let mut got = vec![-1.0; rows * columns];
    let receive = comm.irecv(vec![0.0f64; rows], left, 5)?;
    comm.send_layout(&matrix(comm.rank()), &column, right, 5)?;
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
    Ok(())
}

/// A block with a halo: faces of a 3-D array, long and short pieces, exchanged by a plan that is run several times.
fn faces(comm: &Communicator, left: usize, right: usize) -> Result<(), CommError> {
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
            plan.run(&block(comm.rank()), &mut buf)?;
            assert!(buf == expected, "a face of dimension {dimension}");
        }
        let (_, buf) = plan.start(block(comm.rank()), vec![9u16; total])?.wait()?;
        assert!(buf == expected, "a face of dimension {dimension}, not waited for at once");
    }
    Ok(())
}

/// Elements here and there, sent and received.
fn scattered(comm: &Communicator, left: usize, right: usize) -> Result<(), CommError> {
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
    let twice = Layout::indexed(vec![0..2, 1..3]).map_err(wrong)?;
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
