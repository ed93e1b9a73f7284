//! All ranks send to rank 0, which receives late: what it holds meanwhile is bounded by the credit that it has given.
//!
//! `ftrun -n 8 target/release/examples/flood`

use ft_comm::{CommError, Communicator, MainError, Source, World, wait_all};
use ft_proto::endpoint::{AHEAD_BYTES, CREDIT_BYTES};

/// Bytes of each message: below those that are announced before they are sent, also within a host.
const LENGTH: usize = 40_000;
/// Messages of each sender: far more than fit into its credit.
const MESSAGES: usize = 500;

/// The most memory that this process has had, in bytes.
fn memory_peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process knows of itself");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux counts it");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib << 10
}

/// All bytes of a message.
fn byte(of: usize, number: usize) -> u8 {
    (of * 31 + number) as u8
}

fn send(comm: &Communicator) -> Result<(), CommError> {
    let sends: Vec<_> = (0..MESSAGES)
        .map(|number| comm.isend(vec![byte(comm.rank(), number); LENGTH], 0, 1))
        .collect::<Result<_, _>>()?;
    // Told by another tag, all that may come before it is received has come.
    comm.send(&[comm.rank()], 0, 2)?;
    wait_all(sends).map(drop)
}

fn receive(comm: &Communicator) -> Result<(), CommError> {
    let before = memory_peak();
    for sender in 1..comm.size() {
        comm.recv(&mut [0usize], sender, 2)?;
    }
    let (mut buf, mut next) = (vec![0; LENGTH], vec![0; comm.size()]);
    let senders = comm.size() - 1;
    for _ in 0..senders * MESSAGES {
        let from = comm.recv(&mut buf, Source::Any, 1)?.source;
        let is_right = buf.iter().all(|got| *got == byte(from, next[from]));
        assert!(is_right, "message {} of rank {from}", next[from]);
        next[from] += 1;
    }
    let held = memory_peak() - before;
    let bound = senders as u64 * (CREDIT_BYTES + AHEAD_BYTES);
    println!("{senders} senders, {held} bytes held, {bound} by credit");
    Ok(())
}

fn main() -> Result<(), MainError> {
    let mut world = World::init()?;
    let comm = world.comm().clone();
    comm.barrier()?;
    if comm.rank() > 0 {
        send(&comm)?;
    } else {
        receive(&comm)?;
    }
    Ok(world.finalize(Vec::new())?)
}
