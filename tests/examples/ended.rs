//! The thread of rank 1 that makes its calls ends, while its process goes on, heartbeats and all.

use std::thread;

use ft_comm::{CommError, World};

/// Whether this process is to go on without doing anything.
fn work() -> Result<bool, CommError> {
    let mut world = World::init()?;
    if world.rank() == 1 && !world.is_replacement() {
        Box::leak(Box::new(world));
        return Ok(true);
    }
    while let Err(error) = world.comm().barrier() {
        if !error.is_failure() {
            return Err(error);
        }
        world.repair(0)?;
    }
    world.finalize(Vec::new())?;
    Ok(false)
}

fn main() -> Result<(), ft_comm::MainError> {
    let stays = thread::spawn(work).join().expect("it does not panic")?;
    if stays {
        loop {
            thread::park();
        }
    }
    Ok(())
}
