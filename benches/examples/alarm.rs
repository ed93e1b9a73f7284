//! How soon ranks that compute, and make no call, hear of a death.
//!
//! `ftrun -n 4 --max-restarts 1000 target/release/examples/alarm` (`--deaths N`, 40)
//!
//! In each round all ranks compute, and one of them writes down the time and kills itself (SIGKILL). Printed is the time from then until
//! the first survivor has seen the alarm (it is raised for all at once, so it was up for all by then), until each has seen it, which with
//! more ranks than cores waits for its turn first, and until its service thread has called the hook of [`World::on_failure`].

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use ft_comm::{Alarm, CommError, World};
use rustix::process::{Signal, getpid, kill_process};

fn main() -> ExitCode {
    match World::init().and_then(measure) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn deaths() -> u32 {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--deaths");
    arguments.nth(1).map_or(40, |value| value.parse().expect("a number"))
}

/// Nanoseconds by a clock that all processes of the host share.
#[expect(clippy::disallowed_methods, reason = "the clocks of the library are those of a process each")]
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}

fn measure(mut world: World) -> Result<(), CommError> {
    let told = Arc::new(AtomicU64::new(0));
    let copy = told.clone();
    world.on_failure(move |_| {
        let _ = copy.compare_exchange(0, now(), Ordering::AcqRel, Ordering::Acquire);
    });
    let (rank, size, alarm) = (world.rank(), world.size(), world.alarm());
    let died = std::env::temp_dir().join(format!("alarm-{}", world.job()));
    let (mut hooks, mut seen, mut first) = (vec![], vec![], vec![]);
    // What this rank has found out in the round that is just over; a replacement has found out nothing.
    let mut times = [0; 2];
    loop {
        let round = world.generation();
        let mut all = vec![0; 2 * size];
        world.comm().allgather(&times, &mut all)?;
        let found = || all.chunks(2).filter(|times| times[0] > 0);
        found().for_each(|times| _ = (hooks.push(times[0]), seen.push(times[1])));
        first.extend(found().map(|times| times[1]).min());
        if round == deaths() {
            break;
        }
        world.resumed(0);
        world.mark();
        told.store(0, Ordering::Release);
        let computes = match world.comm().barrier() {
            // On a busy machine the kill may come before this rank has left the barrier.
            Err(error) if error.is_failure() => false,
            other => other.map(|()| true)?,
        };
        // Rank 0 has the account and is spared.
        let victim = 1 + round as usize % (size - 1);
        let noticed = compute(&alarm, (rank == victim).then_some(&died));
        let killed =
            std::fs::read_to_string(&died).ok().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX);
        world.repair(0)?;
        let since = |time: u64| if computes { time.saturating_sub(killed).max(1) } else { 0 };
        times = [since(told.load(Ordering::Acquire)), since(noticed)];
    }
    if rank == 0 {
        let _ = std::fs::remove_file(&died);
        let (deaths, survivors) = (deaths(), seen.len());
        println!("{size} ranks, {deaths} deaths, {survivors} survivors; ms: least, median, 95 of 100, most");
        for (what, times) in [("first seen", first), ("seen", seen), ("hook called", hooks)] {
            say(what, times);
        }
    }
    world.finalize(vec![])
}

/// Computes until the alarm; a rank that is to die writes down when it does. Returns when the alarm was seen.
fn compute(alarm: &Alarm, dies: Option<&PathBuf>) -> u64 {
    let begun = now();
    while !alarm.is_raised() {
        if let Some(died) = dies.filter(|_| now() > begun + 50_000_000) {
            std::fs::write(died, now().to_string()).expect("the folder for temporary files is writable");
            kill_process(getpid(), Signal::KILL).expect("one may kill oneself");
        }
        std::hint::black_box(begun);
    }
    now()
}

fn say(what: &str, mut times: Vec<u64>) {
    times.sort_unstable();
    let last = times.len() - 1;
    let [least, median, many, most] = [0, last / 2, last * 95 / 100, last].map(|at| times[at] as f64 * 1e-6);
    let late = times.iter().filter(|time| **time > 10_000_000).count();
    println!("{what}: {least:.3} {median:.3} {many:.3} {most:.3}, {late} above 10 ms");
}
