//! How long it takes until all that was under way at a recovery line is there, to set beside a barrier (`CoCheck`'s ready messages take as many steps as ranks there are).
//!
//! `ftrun -n 8 target/release/examples/drain`: each rank sends `--messages` of `--bytes` bytes to its right neighbour, which has no receive for them yet, draws a line, and waits until all ranks
//! have drawn theirs and what was under way to it is there. In between as many barriers. It prints the medians of the slowest rank, and their ratio.

use clap::Parser;
use ft_comm::time::Clock;
use ft_comm::{CommError, MainError, Op, World};

/// The command line.
#[derive(Debug, Parser)]
struct Options {
    /// Lines that are drawn
    #[arg(long, default_value_t = 2000)]
    lines: usize,
    /// Messages under way to each rank
    #[arg(long, default_value_t = 1)]
    messages: usize,
    /// Bytes of each
    #[arg(long, default_value_t = 8)]
    bytes: usize,
}

/// Whose messages are apart from the program's, as a layer that keeps states has them.
const LAYER: u32 = 60;

fn main() -> Result<(), MainError> {
    let options = Options::parse();
    let mut world = World::init()?;
    world.begin_lines(None)?;
    world.comm().barrier()?;
    world.enter_lines(true)?;
    let clock = Clock::start();
    let (mut drained, mut met) = (vec![], vec![]);
    for _ in 0..options.lines {
        drained.push(drain(&world, &options, &clock)?);
        let start = clock.now();
        world.comm().barrier()?;
        met.push(clock.now().since(start).as_secs_f64());
    }
    world.comm().allreduce(&mut drained, Op::Max)?;
    world.comm().allreduce(&mut met, Op::Max)?;
    if world.rank() == 0 {
        let [drained, met] = [drained, met].map(median);
        println!(
            "{} ranks, {} messages of {} bytes under way to each: drained in {:.1} us, a barrier {:.1} us, ratio {:.2}",
            world.size(),
            options.messages,
            options.bytes,
            drained * 1e6,
            met * 1e6,
            drained / met
        );
    }
    world.enter_lines(false)?;
    world.end_lines()?;
    Ok(world.finalize(vec![])?)
}

/// Seconds until the line is drawn and all that was under way to this rank is there.
fn drain(world: &World, options: &Options, clock: &Clock) -> Result<f64, CommError> {
    let (comm, layer) = (world.comm(), world.library(LAYER));
    let (rank, size) = (world.rank(), world.size());
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
    let sends: Result<Vec<_>, _> =
        (0..options.messages).map(|_| comm.isend(vec![1_u8; options.bytes], right, 0)).collect();
    for send in sends? {
        send.wait()?;
    }
    layer.barrier()?;
    let start = clock.now();
    let sent = world.draw_line()?;
    let due = layer.ireduce_scatter(sent, &vec![1; size], Op::Sum)?.wait()?;
    world.line_is_drawn(due[rank])?;
    loop {
        let moves = world.moves()?;
        if world.line_record(true)?.is_some() {
            break;
        }
        world.await_move(moves)?;
    }
    let seconds = clock.now().since(start).as_secs_f64();
    for _ in 0..options.messages {
        comm.recv(&mut vec![0_u8; options.bytes], left, 0)?;
    }
    layer.barrier()?;
    world.line_is_committed()?;
    Ok(seconds)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
