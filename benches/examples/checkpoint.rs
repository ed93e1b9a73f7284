//! Checkpoints of a state of so many MiB a rank, each timed from the first rank's start to the last rank's end; started by
//! `checkpoint_peers`, beside `checkpoint_floor`.
//!
//! `ftrun -n 8 --scheme xor:8 target/release/examples/checkpoint --mib 64`
//!
//! Rank 0 prints a line of JSON: the seconds of each checkpoint, and those of each phase at the rank where it took longest. Every
//! word of the state changes before each checkpoint. The first ones take memory, and are not in it.

use clap::Parser;
use ft_benches::checkpoints::{now_ns, spans};
use ft_checkpoint::{CheckpointSeconds, Checkpointer, Protect, Protection};
use ft_comm::{MainError, Rank, World};
use serde_json::json;

/// Numbers that a rank tells of each checkpoint: start, end, and the phases.
const NUMBERS: usize = 6;
type Numbers = [u64; NUMBERS];

/// The command line.
#[derive(Debug, Parser)]
struct Options {
    /// State of each rank
    #[arg(long, default_value_t = 64)]
    mib: u64,
    /// Checkpoints that are timed
    #[arg(long, default_value_t = 5)]
    repeats: usize,
    /// Those that go before
    #[arg(long, default_value_t = 2)]
    warm: usize,
    /// Time how long the program is held by an asynchronous checkpoint
    #[arg(long)]
    asynchronous: bool,
}

#[derive(Default, Protect)]
struct State {
    words: Vec<u64>,
}

impl State {
    /// Of a rank that has `mib` of it.
    fn new(mib: u64, rank: Rank) -> Self {
        let seed = rank as u64 + 1;
        Self { words: (0..mib << 17).map(|index| (index + (seed << 40)).wrapping_mul(STRIDE)).collect() }
    }

    fn change(&mut self) {
        self.words.iter_mut().for_each(|word| *word = word.wrapping_add(STRIDE));
    }
}

fn main() -> Result<(), MainError> {
    let options = Options::parse();
    let mut world = World::init()?;
    let scheme = Protection::from_launcher(&world)?.scheme;
    let mut checkpointer = Checkpointer::new(&world, scheme.clone())?;
    let mut state = State::new(if world.is_parity() { 0 } else { options.mib }, world.rank());
    let mut mine = Vec::new();
    for number in 0..options.warm + options.repeats {
        state.change();
        let numbers = checkpoint(&world, &mut checkpointer, &mut state, options.asynchronous)?;
        if number >= options.warm {
            mine.extend(numbers);
        }
    }
    if let Some(all) = world.everyone().gather(&mine, 0)? {
        let ranks: Vec<&[Numbers]> = all.chunks(mine.len()).map(|rank| rank.as_chunks().0).collect();
        println!(
            "{}",
            json!({
                "scheme": scheme.to_string(), "ranks": world.size(), "mib": options.mib, "seconds": seconds(&ranks),
                "copy": longest(&ranks, 2), "encode": longest(&ranks, 3), "exchange": longest(&ranks, 4),
                "commit": longest(&ranks, 5),
            })
        );
    }
    world.finalize(Vec::new())?;
    checkpointer.remove_files()?;
    Ok(())
}

/// Takes a checkpoint; its end is that of the call if it is `asynchronous`.
fn checkpoint(
    world: &World,
    checkpointer: &mut Checkpointer,
    state: &mut State,
    asynchronous: bool,
) -> Result<Numbers, MainError> {
    let before = checkpointer.stats().phases;
    world.everyone().barrier()?;
    let began = now_ns();
    // Parity ranks have no state.
    match world.is_parity() {
        false => checkpointer.begin(world, state)?,
        true => checkpointer.begin(world, &mut ())?,
    }
    if !asynchronous {
        checkpointer.wait(world)?;
    }
    let ended = now_ns();
    checkpointer.wait(world)?;
    let [copy, encode, exchange, commit] = phases_ns(before, checkpointer.stats().phases);
    Ok([began, ended, copy, encode, exchange, commit])
}

/// Of each checkpoint, from the first start to the last end.
fn seconds(ranks: &[&[Numbers]]) -> Vec<f64> {
    let times = ranks.iter().map(|rank| rank.iter().map(|numbers| [numbers[0], numbers[1]]).collect());
    spans(&times.collect::<Vec<_>>())
}

/// The seconds of a phase, at the rank where it took longest.
fn longest(ranks: &[&[Numbers]], phase: usize) -> Vec<f64> {
    let checkpoints = ranks.iter().map(|rank| rank.len()).min().unwrap_or(0);
    let most = |number: usize| ranks.iter().map(|rank| rank[number][phase]).max();
    (0..checkpoints).map(|number| most(number).unwrap_or(0) as f64 * 1e-9).collect()
}

/// What each word grows by: 2^64 divided by the golden ratio, which leaves no byte as it was for long.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// What a checkpoint has added to each phase.
fn phases_ns(before: CheckpointSeconds, after: CheckpointSeconds) -> [u64; NUMBERS - 2] {
    [
        after.copy - before.copy,
        after.encode - before.encode,
        after.exchange - before.exchange,
        after.commit - before.commit,
    ]
    .map(|seconds| (seconds * 1e9) as u64)
}
