//! `load`: a protected state of a given size and steps of a given length, to measure what protection costs.
//!
//! Each step changes every word of the state (or with `--slice` a part of it), so that nothing about a checkpoint is easier
//! than in a real program, and ends with a barrier. The state after any step has a closed form, which the end is checked against.

use std::ops::Range;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use ft_checkpoint::{Flow, Program, Protect, Tracked};
use ft_comm::time::{Clock, Time};
use ft_comm::{CommError, Op, World};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use crate::app::{self, App};
use crate::rank::{self, Reporter};
use crate::size;
use crate::value::{MS_MAX, at_least_one, from_to};
use crate::words::count;

/// The arguments of `load`.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(next_help_heading = "Options of load")]
pub(crate) struct LoadArgs {
    /// Protected state of each rank: bytes, or a number of KiB, MiB or GiB
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = size::of_words)]
    state: u64,
    /// Bytes of it that each step changes, one slice after the other; all by default
    #[arg(long, value_name = "SIZE", value_parser = size::of_words)]
    slice: Option<u64>,
    /// Take a slice from pages of 4 KiB all over the state, on each rank from others
    #[arg(long, requires = "slice")]
    scattered: bool,
    /// The state takes down what is written of it, so that a rank that was not lost goes back by that alone
    #[arg(long)]
    tracked: bool,
    /// Steps to do
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = at_least_one)]
    steps: usize,
    /// Milliseconds of work in each step, at least; changing the state is part of it
    #[arg(long, value_name = "MS", default_value_t = 10, value_parser = from_to::<u64>(0..=MS_MAX))]
    step_ms: u64,
}

/// What `load` reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LoadResult {
    /// Protected state of each rank.
    state_bytes: u64,
    steps: u64,
    /// From the first step to the last, on the rank where it took longest.
    #[serde(with = "crate::number")]
    seconds: f64,
    /// Mean of the steps of all ranks that live at the end, those that were done again included; without checkpoints.
    #[serde(with = "crate::number")]
    step_seconds: f64,
    /// Most memory that a rank has used (`VmHWM`).
    vm_hwm_bytes: u64,
    /// Words that are not what they have to be, in all ranks.
    wrong_words: u64,
    answer_hash: String,
}

impl App for LoadArgs {
    type Outcome = LoadResult;

    fn rank(&self) -> ExitCode {
        rank::run(|settings| Load {
            args: self.clone(),
            clock: Clock::start(),
            began: None,
            order: None,
            stepping: (0, Duration::ZERO),
            reporter: Reporter::new(settings),
        })
    }

    fn complaint(&self, LoadResult { wrong_words, .. }: &LoadResult) -> Option<String> {
        (*wrong_words > 0)
            .then(|| format!("not what they have to be in the state: {}", count(*wrong_words, "word")))
    }

    fn headline(&self, result: &LoadResult) -> String {
        format!("{:.1} MiB a rank, {}", mib(result.state_bytes), count(result.steps, "step"))
    }

    fn lines(&self, result: &LoadResult) -> Vec<String> {
        let LoadResult { seconds, step_seconds, vm_hwm_bytes, answer_hash, .. } = result;
        vec![format!(
            "{seconds:.3} s, {:.2} ms a step, {:.1} MiB of memory a rank, answer {answer_hash}",
            step_seconds * 1e3,
            mib(*vm_hwm_bytes)
        )]
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The words of one rank.
#[derive(Debug, Default, Protect)]
struct LoadState {
    words: Tracked<u64>,
}

struct Load {
    args: LoadArgs,
    clock: Clock,
    /// The first step of this process.
    began: Option<Time>,
    /// Of the pages, as soon as it is known.
    order: Option<Order>,
    /// Steps of this process, and the time they took.
    stepping: (u32, Duration),
    reporter: Reporter,
}

/// What each word grows by in each step: 2^64 divided by the golden ratio, which leaves no byte as it was for long.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Which words a step changes: the first slice, then the next, and so on round.
#[derive(Clone, Copy, Debug)]
struct Slices {
    /// Words of a slice; the last one may be shorter.
    words: usize,
    count: u64,
}

impl Slices {
    /// The words that step `number`, from 1, changes, of `words` in all.
    fn range(self, number: u64, words: usize) -> Range<usize> {
        let start = ((number - 1) % self.count) as usize * self.words;
        start..(start + self.words).min(words)
    }

    /// How often word `index` has changed after `steps` steps.
    fn changes(self, index: usize, steps: u64) -> u64 {
        steps.saturating_sub((index / self.words) as u64).div_ceil(self.count)
    }
}

/// Words of a page.
const PAGE: usize = 512;

/// In which order the pages of a state come in its slices. A piece at the end that is no whole page comes last.
#[derive(Clone, Debug)]
struct Order {
    /// The page at each place.
    pages: Vec<usize>,
    /// The place of each page.
    places: Vec<usize>,
}

impl Order {
    /// One after the other, or in an order that `seed` gives.
    fn new(words: usize, seed: Option<u64>) -> Self {
        let mut pages: Vec<usize> = (0..words / PAGE).collect();
        if let Some(seed) = seed {
            pages.shuffle(&mut Pcg64::seed_from_u64(seed));
        }
        let mut places = vec![0; pages.len()];
        pages.iter().enumerate().for_each(|(place, page)| places[*page] = place);
        Self { pages, places }
    }

    /// The words that come at `places`, in pieces.
    fn pieces(&self, places: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let pages = places.start / PAGE..places.end.div_ceil(PAGE);
        pages.map(move |place| {
            let page = self.pages.get(place).copied().unwrap_or(place);
            let start = places.start.max(place * PAGE) - place * PAGE;
            let end = places.end.min((place + 1) * PAGE) - place * PAGE;
            page * PAGE + start..page * PAGE + end
        })
    }

    /// Where word `index` comes.
    fn place(&self, index: usize) -> usize {
        self.places.get(index / PAGE).map_or(index, |place| place * PAGE + index % PAGE)
    }
}

impl Load {
    /// The order of the pages of this rank's state.
    fn order(&mut self, world: &World, words: usize) -> &Order {
        let seed = self.args.scattered.then_some(world.rank() as u64);
        self.order.get_or_insert_with(|| Order::new(words, seed))
    }

    fn slices(&self) -> Slices {
        let all = self.args.state / size_of::<u64>() as u64;
        let words = self.args.slice.map_or(all, |bytes| bytes / size_of::<u64>() as u64).min(all);
        Slices { words: words as usize, count: all.div_ceil(words) }
    }
}

/// Word `index` of `rank` after it has changed `step` times.
fn word(rank: usize, index: usize, step: u64) -> u64 {
    let start = ((rank as u64) << 40 ^ index as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (start ^ start >> 32).wrapping_add(step.wrapping_mul(STRIDE))
}

/// FNV-1a with words instead of bytes.
fn hash(words: &[u64]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325;
    words.iter().fold(start, |hash: u64, word| (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29))
}

impl Program for Load {
    type State = LoadState;
    type Error = CommError;

    fn init(&mut self, world: &World) -> Result<LoadState, CommError> {
        let words = (0..self.args.state as usize / size_of::<u64>()).map(|at| word(world.rank(), at, 0));
        Ok(LoadState { words: Tracked::from(words.collect::<Vec<_>>()) })
    }

    fn step(&mut self, state: &mut LoadState, world: &World, number: u64) -> Result<Flow, CommError> {
        let started = self.clock.now();
        self.began.get_or_insert(started);
        let changed = self.slices().range(number, state.words.len());
        if !self.args.tracked {
            state.words.write_all();
        }
        for piece in self.order(world, state.words.len()).pieces(changed) {
            state.words.write(piece).iter_mut().for_each(|word| *word = word.wrapping_add(STRIDE));
        }
        let least = Duration::from_millis(self.args.step_ms);
        while self.clock.now().since(started) < least {
            // Ranks that share a core would otherwise keep each other from their messages.
            std::thread::yield_now();
        }
        world.comm().barrier()?;
        let (steps, spent) = self.stepping;
        self.stepping = (steps + 1, spent + self.clock.now().since(started));
        let steps = self.args.steps as u64;
        self.reporter
            .say(world, || (Some(number as f64 / steps as f64), format!("step {number} of {steps}")));
        Ok(if number == steps { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, state: &mut LoadState, world: &World) -> Result<Vec<u8>, CommError> {
        let now = self.clock.now();
        let (steps, spent) = self.stepping;
        let last = self.args.steps as u64;
        let (words, slices) = (state.words.iter().enumerate(), self.slices());
        let order = self.order(world, state.words.len());
        let due = |at: usize| word(world.rank(), at, slices.changes(order.place(at), last));
        let mut wrong = [words.filter(|(at, is)| **is != due(*at)).count() as u64];
        world.comm().allreduce(&mut wrong, Op::Sum)?;
        let mut hashes = vec![0; world.size()];
        world.comm().allgather(&[hash(&state.words)], &mut hashes)?;
        let seconds = now.since(self.began.unwrap_or(now)).as_secs_f64();
        let mut longest = [seconds];
        world.comm().allreduce(&mut longest, Op::Max)?;
        let mut all_steps = [spent.as_secs_f64(), f64::from(steps)];
        world.comm().allreduce(&mut all_steps, Op::Sum)?;
        let mut memory = [vm_hwm_bytes()];
        world.comm().allreduce(&mut memory, Op::Max)?;
        let result = LoadResult {
            state_bytes: self.args.state,
            steps: last,
            seconds: longest[0],
            step_seconds: all_steps[0] / all_steps[1].max(1.0),
            vm_hwm_bytes: memory[0],
            wrong_words: wrong[0],
            answer_hash: format!("{:016x}", hash(&hashes)),
        };
        Ok(app::write(&result))
    }
}

/// The most memory that this process has used; 0 where the system does not say.
fn vm_hwm_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.parse::<u64>().ok()).map_or(0, |kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_grow_as_their_closed_form_says() {
        let mut words: Vec<u64> = (0..100).map(|at| word(3, at, 0)).collect();
        for _ in 0..7 {
            words.iter_mut().for_each(|word| *word = word.wrapping_add(STRIDE));
        }
        assert!(words.iter().enumerate().all(|(at, is)| *is == word(3, at, 7)));
        assert_ne!(word(0, 1, 5), word(1, 0, 5), "ranks differ");
    }

    #[test]
    fn slices_go_round() {
        let (all, slices) = (10, Slices { words: 4, count: 3 });
        let mut changes = [0; 10];
        for number in 1..=11 {
            changes[slices.range(number, all)].iter_mut().for_each(|count| *count += 1);
            assert!((0..all).all(|at| changes[at] == slices.changes(at, number)), "{number}: {changes:?}");
        }
        assert_eq!(changes, [4, 4, 4, 4, 4, 4, 4, 4, 3, 3]);
        assert_eq!(Slices { words: 10, count: 1 }.changes(9, 7), 7);
    }

    #[test]
    fn the_pieces_of_all_slices_are_the_state() {
        let words = 9 * PAGE + 77;
        for seed in [None, Some(3)] {
            let order = Order::new(words, seed);
            let mut seen = vec![0; words];
            for start in (0..words).step_by(700) {
                let places = start..(start + 700).min(words);
                for index in order.pieces(places.clone()).flatten() {
                    assert!(places.contains(&order.place(index)));
                    seen[index] += 1;
                }
            }
            assert!(seen.iter().all(|times| *times == 1), "{seed:?}");
        }
    }

    #[test]
    fn the_hash_tells_order_and_single_bits() {
        let words: Vec<u64> = (0..64).map(|at| word(0, at, 1)).collect();
        let mut swapped = words.clone();
        swapped.swap(3, 4);
        assert_ne!(hash(&swapped), hash(&words));
        for bit in 0..64 {
            let mut flipped = words.clone();
            flipped[63] ^= 1 << bit;
            assert_ne!(hash(&flipped), hash(&words), "bit {bit}");
        }
    }

    #[test]
    fn memory_is_that_of_this_process() {
        assert!((1 << 18..1 << 36).contains(&vm_hwm_bytes()), "{}", vm_hwm_bytes());
    }
}
