//! A soak: a ring of ranks that exchanges elements in random layouts, of random lengths, for a time. Every byte is checked
//! against what the neighbor's numbers say.
//!
//! `ftrun -n 8 target/release/examples/derived --seconds 600 --seed 1`

use ft_comm::time::Clock;
use ft_comm::{CommError, Communicator, Layout, MainError, Op, Piece, Plain, World};

/// Splitmix64: Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// All orders of magnitude up to `2^bits` are as likely.
    fn size(&mut self, bits: usize) -> usize {
        let bits = self.below(bits + 1);
        self.below(1 << bits) + 1
    }
}

/// Any layout that names no element twice.
fn layout(numbers: &mut Numbers) -> Layout {
    let made = match numbers.below(4) {
        0 => {
            let (start, block) = (numbers.below(50), numbers.size(13));
            Layout::strided(start, numbers.size(8), block, block + numbers.below(70))
        }
        1 => {
            let dimensions = 1 + numbers.below(4);
            let extent: Vec<usize> = (0..dimensions).map(|_| numbers.size(5)).collect();
            let start: Vec<usize> = (0..dimensions).map(|_| numbers.below(4)).collect();
            let shape: Vec<usize> =
                extent.iter().zip(&start).map(|(extent, start)| extent + start + numbers.below(4)).collect();
            Layout::subarray(&shape, &start, &extent)
        }
        2 => {
            let mut end = 0;
            let mut blocks: Vec<_> = (0..numbers.size(7))
                .map(|_| {
                    let start = end + numbers.below(30);
                    end = start + numbers.size(12) - 1;
                    start..end
                })
                .collect();
            for at in (1..blocks.len()).rev() {
                blocks.swap(at, numbers.below(at + 1));
            }
            Layout::indexed(blocks)
        }
        _ => {
            let start = numbers.below(100);
            Ok(Layout::contiguous(start..start + numbers.size(19) - 1))
        }
    };
    made.expect("it is small")
}

/// As many elements as `of` has, one piece or cut at random, each behind a gap.
fn as_long(of: &Layout, numbers: &mut Numbers) -> Layout {
    let (mut left, mut end, mut blocks) = (of.len(), numbers.below(9), vec![]);
    while left > 0 {
        let count = numbers.size(18).min(left);
        blocks.push(end..end + count);
        (left, end) = (left - count, end + count + numbers.below(20));
    }
    if numbers.below(2) == 0 {
        blocks.reverse();
    }
    Layout::indexed(blocks).expect("it is small")
}

/// What a rank does in a round, as it and its neighbors know it.
struct Deal<T> {
    out: Vec<T>,
    sent: Layout,
    /// Where its right neighbor wants it.
    received: Layout,
}

impl<T: Plain> Deal<T> {
    /// What the right neighbor has in `len` elements afterwards, which were all `blank`.
    fn due(&self, blank: T, len: usize) -> Vec<T> {
        let (mut packed, mut due) = (vec![], vec![blank; len]);
        self.sent.gather(&self.out, &mut packed);
        self.received.scatter(&packed, &mut due);
        due
    }
}

fn deal<T: From<u8>>(seed: u64, rank: usize, round: u64) -> Deal<T> {
    let numbers = &mut Numbers(seed ^ (rank as u64) << 48 ^ round << 8);
    let sent = layout(numbers);
    let received = as_long(&sent, numbers);
    let out = (0..sent.end() + numbers.below(3)).map(|_| T::from(numbers.next() as u8)).collect();
    Deal { out, sent, received }
}

/// One message to the right, one from the left.
fn round<T: Plain + From<u8> + PartialEq>(
    comm: &Communicator,
    seed: u64,
    round: u64,
) -> Result<usize, CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
    let (mine, theirs) = (deal::<T>(seed, rank, round), deal::<T>(seed, left, round));
    let tag = round as u32;
    let blank = T::from(0xa5);
    let mut buf = vec![blank; theirs.received.end() + 2];
    let send = Piece { peer: right, tag, layout: mine.sent.clone() };
    let receive = Piece { peer: left, tag, layout: theirs.received.clone() };
    match seed.wrapping_add(round) % 3 {
        1 => buf = comm.plan(&[send], &[receive])?.start(mine.out, buf)?.wait()?.1,
        // The lowest rank sends first, so that it goes round.
        2 if size > 1 && rank == 0 => {
            comm.send_layout(&mine.out, &mine.sent, right, tag)?;
            comm.recv_layout(&mut buf, &theirs.received, left, tag)?;
        }
        2 if size > 1 => {
            comm.recv_layout(&mut buf, &theirs.received, left, tag)?;
            comm.send_layout(&mine.out, &mine.sent, right, tag)?;
        }
        // All at once.
        _ => comm.plan(&[send], &[receive])?.run(&mine.out, &mut buf)?,
    }
    assert!(
        buf == theirs.due(blank, buf.len()),
        "seed {seed}, round {round}, rank {rank}: {:?} to {:?}",
        theirs.sent,
        theirs.received
    );
    Ok(theirs.sent.len() * size_of::<T>())
}

fn option(name: &str) -> Option<f64> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1).map(|value| value.parse().expect("a number"))
}

fn main() -> Result<(), MainError> {
    let (seconds, seed) = (option("--seconds").unwrap_or(10.0), option("--seed").unwrap_or(1.0) as u64);
    let mut world = World::init()?;
    let comm = world.comm().clone();
    let (clock, mut rounds, mut bytes) = (Clock::start(), 0, 0u64);
    let mut go_on = [1u8];
    while go_on[0] > 0 {
        for _ in 0..20 {
            bytes += match rounds % 3 {
                0 => round::<u8>(&comm, seed, rounds)?,
                1 => round::<f64>(&comm, seed, rounds)?,
                _ => round::<u16>(&comm, seed, rounds)?,
            } as u64;
            rounds += 1;
        }
        go_on = [u8::from((clock.now().0 as f64) < seconds * 1e9)];
        comm.bcast(&mut go_on, 0)?;
    }
    let mut all = [bytes];
    comm.reduce(&mut all, Op::Sum, 0)?;
    if comm.rank() == 0 {
        println!("{rounds} rounds of {} ranks, {} bytes, all right", comm.size(), all[0]);
    }
    Ok(world.finalize(Vec::new())?)
}
