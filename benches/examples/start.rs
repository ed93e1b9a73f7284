//! The shortest job: all ranks meet once. Timed from outside, launcher and all; `peers/mpi_hello.c` is the same in MPI.
//!
//! `ftrun -n 4 target/release/examples/start`

use ft_comm::{MainError, World};

fn main() -> Result<(), MainError> {
    let mut world = World::init()?;
    world.comm().barrier()?;
    Ok(world.finalize(Vec::new())?)
}
