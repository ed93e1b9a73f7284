//! Seconds of one checkpoint, by bytes of state per rank; the first argument is MiB (default 64).
//!
//! `ftrun -n 4 --scheme xor target/release/examples/checkpoint_cost 64`

use ft_checkpoint::{Checkpointer, Protect, Protection};
use ft_comm::time::Clock;
use ft_comm::{MainError, World};

const REPEATS: usize = 7;

#[derive(Default, Protect)]
struct State {
    data: Vec<u64>,
}

fn main() -> Result<(), MainError> {
    let mib: usize = std::env::args().nth(1).map_or(Ok(64), |text| text.parse())?;
    let mut world = World::init()?;
    let scheme = Protection::from_launcher(&world)?.scheme;
    let mut checkpointer = Checkpointer::new(&world, scheme.clone())?;
    let seed = world.rank() as u64;
    let mut state = State {
        data: (0..mib as u64 * (1 << 17)).map(|i| (i ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect(),
    };
    // The first checkpoints take memory; they are not counted.
    for _ in 0..3 {
        checkpointer.checkpoint(&world, &mut state)?;
    }
    let clock = Clock::start();
    let mut times = Vec::new();
    for _ in 0..REPEATS {
        world.everyone().barrier()?;
        let start = clock.now();
        checkpointer.checkpoint(&world, &mut state)?;
        world.everyone().barrier()?;
        times.push(clock.now().since(start).as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    if world.rank() == 0 {
        println!(
            "{} ranks x {mib} MiB, {scheme}: {:.1} ms [{:.1}..{:.1}] a checkpoint",
            world.size(),
            times[REPEATS / 2] * 1e3,
            times[0] * 1e3,
            times[REPEATS - 1] * 1e3
        );
    }
    world.finalize(Vec::new())?;
    checkpointer.remove_files()?;
    Ok(())
}
