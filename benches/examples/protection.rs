//! What the machinery that waits for failures costs while there are none: messages with it and without, in turns, in one job.
//!
//! `ftrun -n 2 target/release/examples/protection` and `-n 8`
//!
//! Without it the launcher is stopped, so that it neither beats nor watches, and ranks send no heartbeats, do not look for
//! news and ask nobody for a sign of life. What is in the frames (generation, lengths) stays. A pair is the median of five batches
//! with it over that of five without it, in turns; a batch takes `--batch-ms` (50), and a heartbeat falls into each. There are
//! `--pairs` (30) of each test.

use std::process::ExitCode;

use ft_comm::time::Clock;
use ft_comm::{CommError, Communicator, Op, World};
use rustix::process::{Signal, getppid, kill_process};

/// Name, bytes, and whether all ranks take part or two of them.
const TESTS: [(&str, usize, bool); 4] = [
    ("ping-pong 8 B", 8, false),
    ("ping-pong 1 MiB", 1 << 20, false),
    ("allreduce 8 B", 8, true),
    ("allreduce 1 MiB", 1 << 20, true),
];

/// Batches of each kind in a pair.
const BATCHES: usize = 5;

fn main() -> ExitCode {
    match World::init().and_then(measure) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn option(name: &str) -> Option<usize> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1).map(|value| value.parse().expect("a number"))
}

/// `count` calls of a test; gives the seconds of each.
fn batch(comm: &Communicator, buf: &mut [f64], all: bool, count: u64) -> Result<f64, CommError> {
    comm.barrier()?;
    let (clock, rank) = (Clock::start(), comm.rank());
    for _ in 0..count {
        match rank {
            _ if all => comm.allreduce(buf, Op::Max)?,
            0 => {
                comm.send(buf, 1, 1)?;
                comm.recv(buf, 1, 1)?;
            }
            1 => {
                comm.recv(buf, 0, 1)?;
                comm.send(buf, 0, 1)?;
            }
            _ => {}
        }
    }
    Ok(clock.now().0 as f64 * 1e-9 / count as f64)
}

/// How often the service thread of this rank has gone to sleep so far.
fn service_sleeps() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let of_service = |text: &String| text.starts_with("Name:\tservice\n");
    let status =
        tasks.filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok()).find(of_service);
    let line = status
        .as_deref()
        .and_then(|text| text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// With protection or without it from now on, all ranks together.
fn protect(world: &World, protected: bool) -> Result<(), CommError> {
    world.comm().barrier()?;
    world.set_protected(protected);
    if let (0, Some(launcher)) = (world.rank(), getppid()) {
        let _ = kill_process(launcher, if protected { Signal::CONT } else { Signal::STOP });
    }
    world.comm().barrier()
}

/// The median, and the smallest value of the sample that is no less than the median of all there could be in 95 of 100
/// cases (order statistics: a value is below the median as often as a coin shows heads).
fn median_and_bound(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let count = values.len();
    let (mut term, mut below, mut at) = (0.5f64.powi(count as i32), 0.0, 0);
    while at + 1 < count {
        below += term;
        if below >= 0.95 {
            break;
        }
        term *= (count - at) as f64 / (at + 1) as f64;
        at += 1;
    }
    ((values[(count - 1) / 2] + values[count / 2]) / 2.0, values[at])
}

/// Batches with protection and batches without, in turns: their times, and how often the service slept without and with.
fn pair(
    world: &World,
    number: usize,
    sleeps: &mut [u64; 2],
    mut batch: impl FnMut() -> Result<f64, CommError>,
) -> Result<[Vec<f64>; 2], CommError> {
    let (mut these, mut those) = (vec![], vec![]);
    for turn in 0..2 * BATCHES {
        // The one that comes first takes turns as well.
        let protected = (turn + number).is_multiple_of(2);
        protect(world, protected)?;
        let before = service_sleeps();
        let seconds = batch()?;
        sleeps[usize::from(protected)] += service_sleeps() - before;
        if protected { &mut these } else { &mut those }.push(seconds);
    }
    Ok([these, those])
}

fn measure(mut world: World) -> Result<(), CommError> {
    let (pairs, batch_ms) = (option("--pairs").unwrap_or(30), option("--batch-ms").unwrap_or(50));
    let comm = world.comm().clone();
    if comm.size() < 2 {
        return Err(world.abort(2, "two ranks or more are needed"));
    }
    for (name, bytes, all) in TESTS {
        let mut buf = vec![1.0; bytes / 8];
        let once = batch(&comm, &mut buf, all, 20)?;
        let mut count = [(batch_ms as f64 * 1e-3 / once) as u64 + 1];
        comm.bcast(&mut count, 0)?;
        batch(&comm, &mut buf, all, count[0])?;
        let (mut with, mut without, mut sleeps) = (vec![], vec![], [0; 2]);
        for number in 0..pairs {
            let times = pair(&world, number, &mut sleeps, || batch(&comm, &mut buf, all, count[0]))?;
            let [these, those] = times.map(|times| median_and_bound(times).0);
            with.push(these);
            without.push(those);
        }
        protect(&world, true)?;
        if comm.rank() == 0 {
            let ratios = with.iter().zip(&without).map(|(with, without)| with / without).collect();
            let (ratio, bound) = median_and_bound(ratios);
            let [with, without] = [with, without].map(|times| 1e6 * median_and_bound(times).0);
            let ranks = comm.size();
            println!(
                "{ranks} ranks, {name}: {with:.2} us with, {without:.2} us without, ratio {ratio:.3}, 95 % below {bound:.3}"
            );
            println!("  its service thread slept {} times with, {} without", sleeps[1], sleeps[0]);
        }
    }
    world.finalize(vec![])
}

#[cfg(test)]
mod tests {
    use super::median_and_bound;

    #[test]
    fn the_bound_is_that_of_the_binomial_distribution() {
        // Of 30 the twentieth, of 7 the last but one (the table of the sign test).
        let values = |count: u32| (1..=count).rev().map(f64::from).collect();
        assert_eq!(median_and_bound(values(30)), (15.5, 20.0));
        assert_eq!(median_and_bound(values(7)), (4.0, 6.0));
        assert_eq!(median_and_bound(values(1)), (1.0, 1.0));
    }
}
