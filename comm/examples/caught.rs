//! A panic in an operation of a program's own, which the program catches around its call: the call is left in the middle, no other can be
//! made, and the job ends before anybody has a wrong sum.
//!
//! `ftrun -n 3 target/release/examples/caught 2000`

use std::panic::{AssertUnwindSafe, catch_unwind};

use ft_comm::{Custom, MainError, Op, World};

fn main() -> Result<(), MainError> {
    let elements: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2000);
    let mut world = World::init()?;
    let (comm, rank) = (world.comm(), world.rank());
    let careless = Custom::commutative(move |a: u64, b: u64| {
        assert!(rank != 1, "an operation that fails");
        a + b
    });
    let caught =
        catch_unwind(AssertUnwindSafe(|| comm.allreduce(&mut vec![rank as u64; elements], careless)));
    println!("rank {rank} {}", if caught.is_err() { "has caught a panic" } else { "goes on" });

    // Without protection this one would add up into the memory of the first.
    let mut ones = vec![1u64; elements];
    comm.allreduce(&mut ones, Op::Sum)?;
    println!("rank {rank} has {} wrong sums", ones.iter().filter(|one| **one != world.size() as u64).count());
    Ok(world.finalize(vec![])?)
}
