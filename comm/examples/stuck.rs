//! What not to do: ranks 0 and 1 each receive before they send, and wait for each other for ever; the others wait for
//! them in a barrier. The watchdog says so:
//!
//! `ftrun -n 4 --watchdog 1 target/release/examples/stuck`
//!
//! With the argument `computing` only rank 0 keeps the others waiting: it computes, and makes no call.

use ft_comm::{CommError, World};

fn main() -> Result<(), CommError> {
    let mut world = World::init()?;
    let (rank, comm) = (world.rank(), world.comm());
    let computing = std::env::args().nth(1).is_some_and(|argument| argument == "computing");
    let mut other = [0u64];
    match (rank, computing) {
        (0, true) => loop {
            // Stands for a computation that does not end.
            std::thread::park();
        },
        (0 | 1, false) if comm.size() > 1 => {
            comm.recv(&mut other, 1 - rank, 10 + rank as u32)?;
            comm.send(&[rank as u64], 1 - rank, 11 - rank as u32)?;
        }
        _ => {}
    }
    comm.barrier()?;
    world.finalize(Vec::new())
}
