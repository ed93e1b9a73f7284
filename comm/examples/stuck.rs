//! What not to do: ranks 0 and 1 each receive before they send, and wait for each other for ever; the others wait for
//! them in a barrier. The watchdog says so:
//!
//! `ftrun -n 4 --watchdog 1 target/release/examples/stuck`
//!
//! With the argument `computing` only rank 0 keeps the others waiting: it computes, and makes no call. With `missing` rank 1
//! does, and the others wait for it in an allreduce.

use ft_comm::{MainError, Op, World};

fn main() -> Result<(), MainError> {
    let mut world = World::init()?;
    let (rank, comm) = (world.rank(), world.comm());
    let argument = std::env::args().nth(1).unwrap_or_default();
    let mut other = [0u64];
    match (rank, argument.as_str()) {
        (0, "computing") | (1, "missing") => loop {
            // Stands for a computation that does not end.
            std::thread::park();
        },
        (_, "missing") => comm.allreduce(&mut other, Op::Sum)?,
        (0 | 1, "") if comm.size() > 1 => {
            comm.recv(&mut other, 1 - rank, 10 + rank as u32)?;
            comm.send(&[rank as u64], 1 - rank, 11 - rank as u32)?;
        }
        _ => {}
    }
    comm.barrier()?;
    Ok(world.finalize(Vec::new())?)
}
