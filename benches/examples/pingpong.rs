//! Half round trip and throughput between ranks 0 and 1.
//!
//! `ftrun -n 2 target/release/examples/pingpong`

use ft_comm::time::Clock;
use ft_comm::{CommError, Communicator, World};

/// Batches per size; the median of their means is printed.
const BATCHES: usize = 15;

fn batch(comm: &Communicator, buf: &mut [u8], rounds: usize, clock: &Clock) -> Result<f64, CommError> {
    comm.barrier()?;
    let start = clock.now();
    for _ in 0..rounds {
        if comm.rank() == 0 {
            comm.send(buf, 1, 0)?;
            comm.recv(buf, 1, 0)?;
        } else if comm.rank() == 1 {
            comm.recv(buf, 0, 0)?;
            comm.send(buf, 0, 0)?;
        }
    }
    Ok(clock.now().since(start).as_secs_f64() / (2 * rounds) as f64)
}

fn main() -> Result<(), CommError> {
    let mut world = World::init()?;
    let comm = world.comm().clone();
    let clock = Clock::start();
    for bytes in [8, 1 << 10, 64 << 10, 1 << 20, 16 << 20] {
        let mut buf: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
        let expected = buf.clone();
        let rounds = (4_000_000 / (bytes + 2_000)).max(3);
        batch(&comm, &mut buf, rounds, &clock)?;
        assert_eq!(buf, expected, "the answer is checked before it is timed");
        let times: Result<Vec<f64>, _> =
            (0..BATCHES).map(|_| batch(&comm, &mut buf, rounds, &clock)).collect();
        let mut times = times?;
        times.sort_by(f64::total_cmp);
        if comm.rank() == 0 {
            let (low, median, high) = (times[0], times[BATCHES / 2], times[BATCHES - 1]);
            println!(
                "{bytes:9} B  half round trip {:9.2} us [{:.2}..{:.2}]  {:7.3} GB/s",
                median * 1e6,
                low * 1e6,
                high * 1e6,
                bytes as f64 / median * 1e-9
            );
        }
    }
    world.finalize(Vec::new())
}
