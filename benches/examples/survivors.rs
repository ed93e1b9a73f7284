//! What agreement and shrinking cost, to set beside ULFM:
//!
//! `ftrun -n 8 target/release/examples/survivors agree` alternates allreduces of 8 bytes and agreements, in batches, and
//! prints the times of both and their ratio.
//!
//! `ftrun -n 8 --json --on-failure shrink --kill 2@step=5 target/release/examples/survivors shrink` repairs after the kill
//! and says that it works again when an allreduce of the survivors is over: in the report, `detect_s`, `repair_s` and
//! `restore_s` together are the time from the kill to that.

use std::process::ExitCode;

use ft_comm::time::Clock;
use ft_comm::{CommError, Op, World};

const PAIRS: usize = 30;
const BATCH: usize = 200;

fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1).as_deref() {
        Some("agree") => World::init().and_then(agree),
        Some("shrink") => World::init().and_then(shrink),
        _ => {
            eprintln!("usage: survivors agree|shrink");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Seconds for each call of a batch.
fn batch(clock: Clock, mut call: impl FnMut() -> Result<(), CommError>) -> Result<f64, CommError> {
    let start = clock.now();
    (0..BATCH).try_for_each(|_| call())?;
    Ok(clock.now().since(start).as_secs_f64() / BATCH as f64)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn agree(mut world: World) -> Result<(), CommError> {
    let (comm, clock) = (world.comm().clone(), Clock::start());
    let (mut reductions, mut agreements, mut ratios) = (vec![], vec![], vec![]);
    for pair in 0..=PAIRS {
        comm.barrier()?;
        let reduction = batch(clock, || comm.allreduce(&mut [1u64], Op::BitAnd))?;
        comm.barrier()?;
        let agreement = batch(clock, || comm.agree(1).map(|_| ()))?;
        if pair > 0 {
            reductions.push(reduction);
            agreements.push(agreement);
            ratios.push(agreement / reduction);
        }
    }
    if comm.rank() == 0 {
        let (reduction, agreement) = (1e6 * median(reductions), 1e6 * median(agreements));
        let ratio = median(ratios);
        println!(
            "{} ranks: allreduce {reduction:.1} us, agree {agreement:.1} us, ratio {ratio:.2}",
            comm.size()
        );
    }
    world.finalize(vec![])
}

fn shrink(mut world: World) -> Result<(), CommError> {
    let (mut state, mut done) = (vec![1u8; 1 << 20], 0);
    loop {
        match attempt(&mut world, &mut state, &mut done) {
            Err(error) if error.is_failure() => drop(world.repair(done)?),
            other => return other,
        }
    }
}

/// From the last repair to the end.
fn attempt(world: &mut World, state: &mut [u8], done: &mut u64) -> Result<(), CommError> {
    let mut farthest = [*done];
    world.comm().allreduce(&mut farthest, Op::Max)?;
    if world.generation() > 0 {
        world.resumed(0);
    }
    *done = farthest[0];
    while *done < 10 {
        world.step(*done + 1)?;
        state.iter_mut().for_each(|byte| *byte = byte.wrapping_mul(3));
        world.comm().barrier()?;
        *done += 1;
    }
    world.finalize(vec![])
}
