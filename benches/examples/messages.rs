//! The tests of `ft_benches::messages` with `ft-comm`.
//!
//! `ftrun -n 2 target/release/examples/messages latency pingpong` or `ftrun -n 4 target/release/examples/messages -t 0.5 barrier`

use clap::Parser;
use ft_benches::messages::batches::{Ranks, measure};
use ft_benches::messages::test::{COLLECTIVES, Operation, POINT_TO_POINT, SUMS, Selection, Test};
use ft_comm::{CommError, Communicator, MainError, Op, Part, Piece, Plan, World};

/// The command line.
#[derive(Debug, Parser)]
struct Options {
    /// Seconds a test
    #[arg(short = 't', long, default_value_t = 0.1)]
    time: f64,
    /// Messages may cross recovery lines, as those of a program under `ftrun --lines log`
    #[arg(long)]
    lines: bool,
    /// They are kept for ranks that may be lost, too, as under `ftrun --recovery local`; until the next batch of them
    #[arg(long)]
    journal: bool,
    /// Tests: NAME or NAME:BYTES; all by default
    tests: Vec<String>,
}

fn main() -> Result<(), MainError> {
    let options = Options::parse();
    let selection = Selection::of(&options.tests)?;
    let mut world = World::init()?;
    let mut ranks = Job { comm: world.comm().clone(), world: &world, journal: options.journal };
    if options.lines || options.journal {
        ranks.begin_lines()?;
    }
    let pairs = POINT_TO_POINT.iter().filter(|test| world.size() == 2 && is_offered(test));
    let chosen = pairs.chain(&COLLECTIVES).copied().filter(|&test| selection.has(test));
    for test in chosen {
        let mut buffers = Buffers::new(&ranks.comm, test)?;
        check(&ranks.comm, test, &mut buffers)?;
        let measured = measure(&mut ranks, test, options.time, |ranks, iterations| {
            iterate(&ranks.comm, test, &mut buffers, iterations)
        })?;
        if world.rank() == 0 {
            println!("{measured}");
        }
    }
    Ok(world.finalize(Vec::new())?)
}

/// Several messages in one write are what `rate` may do by itself.
fn is_offered(test: &Test) -> bool {
    test.operation != Operation::RateCoalesced
}

struct Job<'a> {
    comm: Communicator,
    world: &'a World,
    /// A rank may be lost, and goes back alone then.
    journal: bool,
}

impl Job<'_> {
    fn begin_lines(&self) -> Result<(), CommError> {
        self.world.begin_lines(self.journal.then_some(1))?;
        self.comm.barrier()?;
        self.world.enter_lines(true)
    }
}

impl Ranks for Job<'_> {
    type Error = CommError;

    fn size(&self) -> usize {
        self.comm.size()
    }

    fn meet(&mut self) -> Result<(), CommError> {
        if self.journal {
            self.world.enter_lines(false)?;
            self.world.end_lines()?;
            self.begin_lines()?;
        }
        self.comm.barrier()
    }

    fn largest(&mut self, mine: f64) -> Result<f64, CommError> {
        let mut largest = [mine];
        self.comm.allreduce(&mut largest, Op::Max)?;
        Ok(largest[0])
    }
}

/// What the operations work on; made before the time starts.
struct Buffers {
    out: Vec<u8>,
    buf: Vec<u8>,
    numbers: Vec<f64>,
    /// Of messages under way: a request owns its buffer and gives it back.
    window: Vec<Vec<u8>>,
    /// The halo of an iteration.
    halo: Option<Plan<u8>>,
}

impl Buffers {
    fn new(comm: &Communicator, test: Test) -> Result<Self, CommError> {
        let (size, bytes) = (comm.size(), test.bytes);
        let (out, buf) = match test.operation {
            Operation::Alltoall => (size * bytes, size * bytes),
            Operation::Allgather => (bytes, size * bytes),
            _ => (bytes, bytes),
        };
        let halo = || {
            let piece = Piece::from(Part { peer: 1 - comm.rank(), tag: 0, range: 0..bytes });
            comm.plan(std::slice::from_ref(&piece), std::slice::from_ref(&piece))
        };
        Ok(Self {
            out: vec![1; out],
            buf: vec![2; buf],
            numbers: vec![0.0; bytes / 8],
            window: vec![vec![0; bytes]; test.window()],
            halo: (test.operation == Operation::Iteration).then(halo).transpose()?,
        })
    }
}

fn iterate(
    comm: &Communicator,
    test: Test,
    buffers: &mut Buffers,
    iterations: usize,
) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let Buffers { out, buf, numbers, window, halo } = buffers;
    for iteration in 0..iterations {
        match test.operation {
            Operation::Latency | Operation::PingPong if rank == 0 => {
                comm.send(out, 1, 0)?;
                comm.recv(buf, 1, 0)?;
            }
            Operation::Latency | Operation::PingPong => {
                comm.recv(buf, 0, 0)?;
                comm.send(buf, 0, 0)?;
            }
            Operation::OneWay | Operation::Rate => one_way(comm, window)?,
            Operation::Exchange => {
                comm.sendrecv(out, 1 - rank, buf, 1 - rank, 0)?;
            }
            Operation::Iteration => {
                halo.iter().try_for_each(|halo| halo.run(out, buf))?;
                numbers[..SUMS].chunks_exact_mut(1).try_for_each(|number| comm.allreduce(number, Op::Sum))?;
            }
            Operation::Barrier => comm.barrier()?,
            Operation::Bcast => comm.bcast(buf, iteration % size)?,
            Operation::Allreduce => comm.allreduce(numbers, Op::Sum)?,
            Operation::Alltoall => comm.alltoall(out, buf)?,
            Operation::Allgather => comm.allgather(out, buf)?,
            Operation::RateCoalesced | Operation::Start => unreachable!("not among the tests"),
        }
    }
    Ok(())
}

/// All messages of the window from rank 0 to rank 1, under way at once; then an answer of 8 bytes.
fn one_way(comm: &Communicator, window: &mut Vec<Vec<u8>>) -> Result<(), CommError> {
    let requests: Result<Vec<_>, CommError> = match comm.rank() {
        0 => window.drain(..).map(|message| comm.isend(message, 1, 0)).collect(),
        _ => window.drain(..).map(|room| comm.irecv(room, 0, 0)).collect(),
    };
    for request in requests? {
        window.push(request.wait()?.0);
    }
    match comm.rank() {
        0 => comm.recv(&mut [0_u8; 8], 1, 1).map(|_| ()),
        _ => comm.send(&[0_u8; 8], 0, 1),
    }
}

/// The known contents of bytes that come from a rank, and of numbers.
fn byte(from: usize, at: usize) -> u8 {
    (at * 7 + from * 3 + 1) as u8
}

fn filled(from: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| byte(from, at)).collect()
}

fn number(from: usize, at: usize) -> f64 {
    (from + 1 + at % 5) as f64
}

/// One iteration with known contents.
fn check(comm: &Communicator, test: Test, buffers: &mut Buffers) -> Result<(), CommError> {
    let (rank, size, bytes) = (comm.rank(), comm.size(), test.bytes);
    buffers.out = filled(rank, buffers.out.len());
    buffers.window.iter_mut().enumerate().for_each(|(at, message)| *message = filled(rank + at, bytes));
    // A broadcast begins at rank 0.
    buffers.buf.fill(0);
    if (test.operation, rank) == (Operation::Bcast, 0) {
        buffers.buf = filled(0, bytes);
    }
    buffers.numbers = (0..bytes / 8).map(|at| number(rank, at)).collect();
    iterate(comm, test, buffers, 1)?;

    assert!(is_right(test, rank, size, buffers), "{test}: rank {rank} has another answer");
    // Sums of sums would not stay finite.
    buffers.numbers.fill(0.0);
    Ok(())
}

/// Whether the buffers hold what an iteration with known contents leaves there.
fn is_right(test: Test, rank: usize, size: usize, buffers: &Buffers) -> bool {
    let (Buffers { buf, numbers, window, .. }, bytes) = (buffers, test.bytes);
    let sum = |at| (0..size).map(|from| number(from, at)).sum::<f64>();
    let are_sums = |numbers: &[f64]| numbers.iter().enumerate().all(|(at, &number)| number == sum(at));
    match test.operation {
        Operation::Latency | Operation::PingPong | Operation::Bcast => *buf == filled(0, bytes),
        Operation::Exchange => *buf == filled(1 - rank, bytes),
        Operation::OneWay | Operation::Rate => {
            window.iter().enumerate().all(|(at, message)| *message == filled(at, bytes))
        }
        Operation::Iteration => *buf == filled(1 - rank, bytes) && are_sums(&numbers[..SUMS]),
        Operation::Allreduce => are_sums(numbers),
        Operation::Alltoall => {
            let part = |(from, part): (usize, &[u8])| {
                part.iter().enumerate().all(|(at, &found)| found == byte(from, rank * bytes + at))
            };
            buf.chunks_exact(bytes).enumerate().all(part)
        }
        Operation::Allgather => {
            buf.chunks_exact(bytes).enumerate().all(|(from, part)| *part == filled(from, bytes))
        }
        _ => true,
    }
}
