//! A token goes round; each rank adds its number + 1. After a failure the round is begun again.
//! `ftrun -n 4 --kill 2@step=500 target/release/examples/ring`

use ft_comm::{CommError, Communicator, MainError, World};
const ROUNDS: u64 = 1000;

fn round(comm: &Communicator) -> Result<(), CommError> {
    let (rank, size, mut token) = (comm.rank(), comm.size(), [0u64]);
    if rank > 0 {
        comm.recv(&mut token, rank - 1, 1)?;
    }
    token[0] += rank as u64 + 1;
    comm.send(&token, (rank + 1) % size, 1)?;
    if rank == 0 {
        comm.recv(&mut token, size - 1, 1)?;
        assert_eq!(token[0], (1..=size as u64).sum());
    }
    comm.barrier()
}

fn main() -> Result<(), MainError> {
    let mut world = World::init()?;
    // How far the furthest survivor came; 0 at the start of the job.
    let mut done = world.membership().reports.into_iter().max().unwrap_or(0);
    loop {
        let result = match done {
            ROUNDS => world.finalize(Vec::new()),
            _ => world.step(done + 1).and_then(|()| round(world.comm())),
        };
        match result {
            Ok(()) if done == ROUNDS => return Ok(()),
            Ok(()) => done += 1,
            Err(error) if error.is_failure() => {
                done = *world.repair(done)?.reports.iter().max().unwrap_or(&done)
            }
            Err(other) => return Err(other.into()),
        }
    }
}
