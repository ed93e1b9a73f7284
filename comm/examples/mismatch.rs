//! What not to do: rank 1 makes another collective call than the other ranks. Unchecked that is a hang, wrong numbers or
//! an error about something else; with `--check` it is an error that names both calls:
//!
//! `ftrun -n 4 --check target/release/examples/mismatch root`
//!
//! The argument says what is different: `call` (the default), `count` or `root`.

use ft_comm::{MainError, Op, World};

fn main() -> Result<(), MainError> {
    let mut world = World::init()?;
    let (differs, comm) = (world.rank() == 1, world.comm());
    let mut numbers = [1u64; 8];
    match std::env::args().nth(1).as_deref() {
        Some("count") => comm.allreduce(&mut numbers[..if differs { 4 } else { 8 }], Op::Sum)?,
        Some("root") => comm.bcast(&mut numbers, usize::from(differs))?,
        _ if differs => comm.barrier()?,
        _ => comm.allreduce(&mut numbers, Op::Sum)?,
    }
    Ok(world.finalize(Vec::new())?)
}
