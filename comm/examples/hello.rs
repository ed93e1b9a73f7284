//! The smallest program: who am I, and what do all ranks add up to?
//!
//! `ftrun -n 4 target/release/examples/hello`

use ft_comm::{MainError, Op, World};

fn main() -> Result<(), MainError> {
    let mut world = World::init()?;
    let (rank, size) = (world.rank(), world.size());
    println!("hello from rank {rank} of {size}");
    let mut sum = [rank as u64];
    world.comm().allreduce(&mut sum, Op::Sum)?;
    assert_eq!(sum[0], (0..size as u64).sum());
    Ok(world.finalize(Vec::new())?)
}
