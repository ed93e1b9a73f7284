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

/// What survivors have found out, in nanoseconds.
#[derive(Default)]
struct Account {
    /// Until the first of them has seen the alarm.
    first: Vec<u64>,
    /// Until each has.
    seen: Vec<u64>,
    /// Until the hook of each was called.
    hooks: Vec<u64>,
}

impl Account {
    /// Enters a round: of each rank, when its hook was called, and when it saw the alarm; a replacement has found out nothing.
    fn enter(&mut self, all: &[u64]) {
        let found = || all.chunks(2).filter(|times| times[0] > 0);
        found().for_each(|times| _ = (self.hooks.push(times[0]), self.seen.push(times[1])));
        self.first.extend(found().map(|times| times[1]).min());
    }

    fn say(self, ranks: usize) {
        let (deaths, survivors) = (deaths(), self.seen.len());
        println!("{ranks} ranks, {deaths} deaths, {survivors} survivors; ms: least, median, 95 of 100, most");
        say("first seen", self.first);
        say("seen", self.seen);
        say("hook called", self.hooks);
    }
}

fn measure(mut world: World) -> Result<(), CommError> {
    let told = Arc::new(AtomicU64::new(0));
    let copy = told.clone();
    world.on_failure(move |_| {
        let _ = copy.compare_exchange(0, now(), Ordering::AcqRel, Ordering::Acquire);
    });
    let died = std::env::temp_dir().join(format!("alarm-{}", world.job()));
    let mut account = Account::default();
    // What this rank has found out in the round that is just over.
    let mut times = [0; 2];
    loop {
        let mut all = vec![0; 2 * world.size()];
        world.comm().allgather(&times, &mut all)?;
        account.enter(&all);
        if world.generation() == deaths() {
            break;
        }
        times = round(&world, &told, &died)?;
    }
    if world.rank() == 0 {
        let _ = std::fs::remove_file(&died);
        account.say(world.size());
    }
    world.finalize(vec![])
}

/// One rank dies, and writes into the file `died` when. Gives the times from then until the hook was called, which writes
/// down when in `told`, and until this rank has seen the alarm.
fn round(world: &World, told: &AtomicU64, died: &PathBuf) -> Result<[u64; 2], CommError> {
    world.resumed(0);
    world.mark(u64::from(world.generation()));
    told.store(0, Ordering::Release);
    let computes = match world.comm().barrier() {
        // On a busy machine the kill may come before this rank has left the barrier.
        Err(error) if error.is_failure() => false,
        other => other.map(|()| true)?,
    };
    // Rank 0 has the account and is spared.
    let victim = 1 + world.generation() as usize % (world.size() - 1);
    let noticed = compute(&world.alarm(), (world.rank() == victim).then_some(died));
    let killed = std::fs::read_to_string(died).ok().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX);
    world.repair(0)?;
    let since = |time: u64| if computes { time.saturating_sub(killed).max(1) } else { 0 };
    Ok([since(told.load(Ordering::Acquire)), since(noticed)])
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
