//! Many ranks that do little: a barrier and a sum. With an argument they wait in between until their standard input ends.
//!
//! `ftrun -n 100 target/release/examples/many`

use std::io::Read;

use ft_comm::{MainError, Op, World};

fn main() -> Result<(), MainError> {
    let mut world = World::init()?;
    let comm = world.comm().clone();
    comm.barrier()?;
    let mut sum = [comm.rank() as u64];
    comm.allreduce(&mut sum, Op::Sum)?;
    let size = comm.size() as u64;
    assert_eq!(sum[0], size * (size - 1) / 2);
    if comm.rank() == 0 {
        println!("{size} ranks have met");
        if std::env::args().nth(1).is_some() {
            let mut input = String::new();
            std::io::stdin().read_to_string(&mut input).expect("it can be read");
        }
    }
    comm.barrier()?;
    Ok(world.finalize(Vec::new())?)
}
