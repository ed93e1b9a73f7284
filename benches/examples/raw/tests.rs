//! What the ranks do in each test.

use std::io;

use ft_benches::messages::batches::{Ranks, measure};
use ft_benches::messages::test::{COLLECTIVES, Operation, POINT_TO_POINT, SUMS, Selection, Test};
use ft_benches::sockets::Mesh;

use super::Options;

/// A rank with its buffers.
struct Rank {
    mesh: Mesh,
    out: Vec<u8>,
    buf: Vec<u8>,
}

/// Makes all tests that are chosen; rank 0 prints them.
pub(super) fn run(options: &Options, rank: usize) -> io::Result<()> {
    let selection = Selection::of(&options.tests).map_err(io::Error::other)?;
    let mesh = Mesh::new(&options.wires(), rank)?;
    let pairs = POINT_TO_POINT.iter().filter(|_| options.ranks == 2);
    let collectives = COLLECTIVES.iter().filter(|test| is_offered(test));
    let chosen: Vec<Test> = pairs.chain(collectives).copied().filter(|&test| selection.has(test)).collect();
    let room = chosen.iter().map(room).max().unwrap_or(0);
    let mut ranks = Rank { mesh, out: vec![1; room], buf: vec![2; room] };
    for test in chosen {
        check(&mut ranks, test)?;
        let measured =
            measure(&mut ranks, test, options.time, |ranks, iterations| iterate(ranks, test, iterations))?;
        if rank == 0 {
            println!("{measured}");
        }
    }
    Ok(())
}

fn is_offered(test: &Test) -> bool {
    matches!((test.operation, test.bytes), (Operation::Barrier, _) | (Operation::Allreduce, 8))
}

/// Bytes of each buffer: every message of a window has its own.
fn room(test: &Test) -> usize {
    (test.window().max(1) * test.bytes).max(8)
}

impl Ranks for Rank {
    type Error = io::Error;

    fn size(&self) -> usize {
        self.mesh.size
    }

    fn meet(&mut self) -> io::Result<()> {
        self.mesh.meet()
    }

    fn largest(&mut self, mine: f64) -> io::Result<f64> {
        self.double(mine, f64::max)
    }
}

impl Rank {
    /// Recursive doubling of one number.
    fn double(&mut self, mine: f64, combine: impl Fn(f64, f64) -> f64) -> io::Result<f64> {
        let (mut mine, mut distance) = (mine, 1);
        while distance < self.mesh.size {
            let (peer, mut other) = (self.mesh.rank ^ distance, [0; 8]);
            self.mesh.exchange(peer, &mine.to_ne_bytes(), peer, &mut other)?;
            mine = combine(mine, f64::from_ne_bytes(other));
            distance *= 2;
        }
        Ok(mine)
    }

    /// `writes` of so many bytes from rank 0 to rank 1, then 8 bytes back.
    fn one_way(&mut self, writes: usize, bytes: usize) -> io::Result<()> {
        let Self { mesh, out, buf } = self;
        if mesh.rank == 0 {
            out[..writes * bytes].chunks_exact(bytes).try_for_each(|part| mesh.put(1, part))?;
            mesh.get(1, &mut [0; 8])
        } else {
            buf[..writes * bytes].chunks_exact_mut(bytes).try_for_each(|part| mesh.get(0, part))?;
            mesh.put(0, &[0; 8])
        }
    }
}

fn iterate(ranks: &mut Rank, test: Test, iterations: usize) -> io::Result<()> {
    let Test { operation, bytes } = test;
    for _ in 0..iterations {
        let Rank { mesh, out, buf } = &mut *ranks;
        match operation {
            Operation::Latency | Operation::PingPong if mesh.rank == 0 => {
                mesh.put(1, &out[..bytes])?;
                mesh.get(1, &mut buf[..bytes])?;
            }
            Operation::Latency | Operation::PingPong => {
                mesh.get(0, &mut buf[..bytes])?;
                mesh.put(0, &buf[..bytes])?;
            }
            Operation::Exchange => {
                let peer = 1 - mesh.rank;
                mesh.exchange(peer, &out[..bytes], peer, &mut buf[..bytes])?;
            }
            Operation::OneWay | Operation::Rate => ranks.one_way(test.window(), bytes)?,
            Operation::RateCoalesced => ranks.one_way(1, test.window() * bytes)?,
            Operation::Iteration => {
                let peer = 1 - mesh.rank;
                mesh.exchange(peer, &out[..bytes], peer, &mut buf[..bytes])?;
                for _ in 0..SUMS {
                    ranks.double(1.0, |a, b| a + b)?;
                }
            }
            Operation::Barrier => ranks.meet()?,
            Operation::Allreduce => {
                ranks.double(1.0, |a, b| a + b)?;
            }
            _ => return Err(io::Error::other(format!("{operation} is not offered"))),
        }
    }
    Ok(())
}

/// One iteration with known bytes.
fn check(ranks: &mut Rank, test: Test) -> io::Result<()> {
    let size = ranks.mesh.size;
    let sum = ranks.double(ranks.mesh.rank as f64, |a, b| a + b)?;
    assert_eq!(sum, (size * (size - 1) / 2) as f64, "recursive doubling");
    let Rank { mesh: Mesh { rank, .. }, out, buf } = ranks;
    let (rank, room) = (*rank, room(&test));
    let byte = |from: usize, at: usize| (at * 7 + from * 3 + 1) as u8;
    out.iter_mut().enumerate().for_each(|(at, out)| *out = byte(rank, at));
    buf.fill(0);
    iterate(ranks, test, 1)?;
    let is_from = |from: usize| (0..room).all(|at| ranks.buf[at] == byte(from, at));
    let as_expected = match test.operation {
        Operation::Latency | Operation::PingPong => is_from(0),
        Operation::OneWay | Operation::Rate | Operation::RateCoalesced => rank == 0 || is_from(0),
        Operation::Exchange | Operation::Iteration => is_from(1 - rank),
        _ => true,
    };
    assert!(as_expected, "{test}: other bytes arrived at rank {rank} than were sent");
    Ok(())
}
