//! Sums of doubles whose last bits depend on the order in which the terms of the ranks are added: they are the same wherever ranks are,
//! and whatever fails. Prints them all as one number.
//!
//! `ftrun -n 6 --scheme rs:4+2 --hosts node1:2,node2:2,node3:2 target/release/examples/order`

use ft_checkpoint::{Flow, MainError, Program, Protect, Protection};
use ft_comm::{CommError, Op, World};

const STEPS: u64 = 60;

#[derive(Default, Protect)]
struct Sums {
    bits: u64,
}

struct Order;

impl Program for Order {
    type State = Sums;
    type Error = CommError;

    fn init(&mut self, _: &World) -> Result<Sums, CommError> {
        Ok(Sums::default())
    }

    fn step(&mut self, sums: &mut Sums, world: &World, number: u64) -> Result<Flow, CommError> {
        let (rank, comm) = (world.rank() as u64, world.comm());
        let term = 1.0 / ((rank + 2) * (number + 1)) as f64;
        let mut all = [term, 1e6 * term, term / (rank + 1) as f64];
        comm.allreduce(&mut all, Op::Sum)?;
        let mut one = [term];
        let root = number as usize % comm.size();
        comm.reduce(&mut one, Op::Sum, root)?;
        comm.bcast(&mut one, root)?;
        for sum in all.iter().chain(&one) {
            sums.bits = sums.bits.rotate_left(5) ^ sum.to_bits();
        }
        Ok(if number == STEPS { Flow::Done } else { Flow::Continue })
    }
}

fn main() -> Result<(), MainError> {
    let world = World::init()?;
    let protection = Protection::from_launcher(&world)?;
    let sums = ft_checkpoint::run(world, protection, &mut Order)?;
    if let Some(sums) = sums.filter(|sums| sums.rank == 0) {
        println!("{:016x}", sums.bits);
    }
    Ok(())
}
