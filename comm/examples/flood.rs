//! All ranks send to rank 0, which receives late: what it holds meanwhile is bounded by the credit that it has given.
//!
//! `ftrun -n 8 target/release/examples/flood`

use ft_comm::{MainError, Source, World};
use ft_proto::endpoint::CREDIT_BYTES;

/// Bytes of each message: below those that are announced before they are sent.
const LENGTH: usize = 200_000;
/// Messages of each sender: far more than fit into its credit.
const MESSAGES: usize = 100;

/// The most memory that this process has had, in bytes.
fn memory_peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process knows of itself");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux counts it");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib << 10
}

fn main() -> Result<(), MainError> {
    let mut world = World::init()?;
    let (rank, comm) = (world.rank(), world.comm().clone());
    let senders = comm.size() - 1;
    comm.barrier()?;
    let before = memory_peak();
    let byte = |of: usize, number: usize| (of * 31 + number) as u8;
    if rank > 0 {
        let sends: Vec<_> = (0..MESSAGES)
            .map(|number| comm.isend(vec![byte(rank, number); LENGTH], 0, 1))
            .collect::<Result<_, _>>()?;
        // Told by another tag, all that may come before it is received has come.
        comm.send(&[rank], 0, 2)?;
        for send in sends {
            send.wait()?;
        }
    } else {
        for sender in 1..=senders {
            comm.recv(&mut [0usize], sender, 2)?;
        }
        let (mut buf, mut next) = (vec![0; LENGTH], vec![0; senders + 1]);
        for _ in 0..senders * MESSAGES {
            let from = comm.recv(&mut buf, Source::Any, 1)?.source;
            assert!(
                buf.iter().all(|got| *got == byte(from, next[from])),
                "message {} of rank {from}",
                next[from]
            );
            next[from] += 1;
        }
        let held = memory_peak() - before;
        let bound = senders as u64 * CREDIT_BYTES;
        println!("{senders} senders, {held} bytes held, {bound} by credit");
    }
    Ok(world.finalize(Vec::new())?)
}
