//! A token goes round; each rank adds its number + 1. After a failure the round is begun again.
//!
//! `ftrun -n 4 --kill 2@step=500 target/release/examples/ring`

use ft_comm::{CommError, Communicator, World};

const ROUNDS: u64 = 1000;

fn round(comm: &Communicator) -> Result<u64, CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
    let mut token = [0u64];
    if rank > 0 {
        comm.recv(&mut token, left, 1)?;
    }
    token[0] += rank as u64 + 1;
    comm.send(&token, right, 1)?;
    if rank == 0 {
        comm.recv(&mut token, left, 1)?;
    }
    comm.bcast(&mut token, 0)?;
    Ok(token[0])
}

fn main() -> Result<(), CommError> {
    let mut world = World::init()?;
    let mut done = world.membership().reports.into_iter().max().unwrap_or(0);
    loop {
        let result = if done < ROUNDS {
            world.step(done + 1).and_then(|()| round(world.comm()))
        } else {
            world.finalize(Vec::new()).map(|()| 0)
        };
        match result {
            Ok(_) if done == ROUNDS => break,
            Ok(sum) => {
                assert_eq!(sum, (1..=world.size() as u64).sum());
                done += 1;
            }
            // Survivors tell each other how far they came, and the replacement hears it.
            Err(CommError::PeerFailed { .. }) => {
                done = *world.repair(done)?.reports.iter().max().unwrap_or(&done)
            }
            Err(other) => return Err(other),
        }
    }
    if world.rank() == 0 {
        println!("{ROUNDS} rounds of {} ranks, {} repairs", world.size(), world.generation());
    }
    Ok(())
}
