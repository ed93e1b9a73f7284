//! `pipeline`: each rank of a ring sends an item in every step, and takes one that its neighbour has sent some steps before. So messages are under way at every checkpoint.
//!
//! Every item depends on all that its sender has received, so one that is lost, doubled or torn changes all that follow. What each rank should have at the end is computed without
//! a message, in steps that are protected as the others are.

use std::collections::VecDeque;
use std::process::ExitCode;

use clap::Args;
use ft_checkpoint::{Flow, Lines, Program, Protect};
use ft_comm::{CommError, Op, Rank, Request, RequestRecord, World};
use serde::{Deserialize, Serialize};

use crate::app::{self, App};
use crate::options::Options;
use crate::rank::{self, Reporter, mix};
use crate::value::{COUNT_MAX, from_to};
use crate::words::count;

/// The arguments of `pipeline`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of pipeline")]
pub(crate) struct PipelineArgs {
    /// Items that each rank sends
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = from_to::<u64>(1..=COUNT_MAX))]
    items: u64,
    /// Steps from an item's sending to its receiving
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = from_to::<u64>(1..=64))]
    depth: u64,
    /// Words of 8 bytes in an item
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = from_to::<usize>(1..=1024))]
    words: usize,
    /// Begin each receive in the step in which the item is sent, and wait for it when it is due: so many requests are under way at every checkpoint
    #[arg(long)]
    ahead: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PipelineResult {
    ranks: u64,
    items: u64,
    depth: u64,
    /// Ranks that have not what they should have.
    wrong: u64,
    digest: u64,
}

impl App for PipelineArgs {
    type Outcome = PipelineResult;

    fn crosses(&self) -> Lines {
        Lines::Log
    }

    fn check(&self, options: &Options) -> Result<(), String> {
        match options.lines() {
            Lines::Meet => Err(
                "--lines meet is nothing for pipeline, whose messages cross every step: --lines drain or log"
                    .into(),
            ),
            Lines::Drain | Lines::Log => Ok(()),
        }
    }

    fn rank(&self) -> ExitCode {
        let args = self.clone();
        rank::run(|settings| Pipeline {
            args,
            receives: VecDeque::new(),
            is_back: false,
            reporter: Reporter::new(settings),
        })
    }

    fn complaint(&self, result: &PipelineResult) -> Option<String> {
        (result.wrong > 0).then(|| format!("{} have not what they should have", count(result.wrong, "rank")))
    }

    fn headline(&self, PipelineResult { items, depth, .. }: &PipelineResult) -> String {
        format!("{} a rank, {} under way", count(*items, "item"), count(*depth, "item"))
    }

    fn lines(&self, PipelineResult { digest, .. }: &PipelineResult) -> Vec<String> {
        vec![format!("as computed without messages, digest {digest:016x}")]
    }
}

/// What a rank with this word sends in a step; the words of an item follow from the first.
fn item(word: u64, step: u64) -> u64 {
    mix(word ^ step)
}

fn text(first: u64, words: usize) -> impl Iterator<Item = u64> {
    (0..words as u64).map(move |at| if at == 0 { first } else { mix(first ^ at) })
}

#[derive(Debug, Default, Protect)]
struct State {
    word: u64,
    /// The receives that are under way, in order.
    #[protect(serde)]
    open: VecDeque<RequestRecord>,
    #[protect(nested)]
    check: Check,
}

/// What all ranks should have, step by step, as far as it is computed. Part of the state, as it may take longer than failures are apart.
#[derive(Debug, Default, Protect)]
struct Check {
    steps: u64,
    words: Vec<u64>,
    /// What all ranks have sent in each of the last steps, one after the other.
    sent: Vec<u64>,
}

impl Check {
    fn new(ranks: usize, depth: u64) -> Self {
        let words = (0..ranks as u64).map(mix).collect();
        Self { steps: 0, words, sent: vec![0; ranks * depth as usize] }
    }

    /// Computes the steps up to this one.
    fn go_on(&mut self, to: u64, depth: u64) {
        let ranks = self.words.len();
        let mut came = vec![0; ranks];
        while self.steps < to {
            self.steps += 1;
            let at = (self.steps % depth) as usize * ranks;
            let row = &mut self.sent[at..at + ranks];
            came.copy_from_slice(row);
            came.rotate_right(1);
            row.iter_mut().zip(&self.words).for_each(|(sent, word)| *sent = item(*word, self.steps));
            if self.steps > depth {
                self.words.iter_mut().zip(&came).for_each(|(word, came)| *word = mix(*word ^ came));
            }
        }
    }
}

/// Steps that are computed without a message in one step of the check.
const CHECKED_AT_ONCE: u64 = 50_000;

struct Pipeline {
    args: PipelineArgs,
    /// Those of the state.
    receives: VecDeque<Request<u64>>,
    /// They are to be made again.
    is_back: bool,
    reporter: Reporter,
}

impl Pipeline {
    /// Steps with messages.
    fn steps(&self) -> u64 {
        self.args.items + self.args.depth
    }

    /// All steps.
    fn all_steps(&self) -> u64 {
        self.steps() + self.steps().div_ceil(CHECKED_AT_ONCE)
    }

    /// Makes the receives of the state again.
    fn receive_again(&mut self, state: &State, world: &World) -> Result<(), CommError> {
        for record in &state.open {
            self.receives.push_back(world.comm().request(record, vec![0; self.args.words])?);
        }
        Ok(())
    }

    fn begin_receive(&mut self, state: &mut State, world: &World, left: Rank) -> Result<(), CommError> {
        let receive = world.comm().irecv(vec![0; self.args.words], left, 0)?;
        state.open.push_back(receive.record()?);
        self.receives.push_back(receive);
        Ok(())
    }

    /// The item that is due.
    fn receive(&mut self, state: &mut State, world: &World, left: Rank) -> Result<Vec<u64>, CommError> {
        let Some(receive) = self.receives.pop_front() else {
            let mut item = vec![0; self.args.words];
            world.comm().recv(&mut item, left, 0)?;
            return Ok(item);
        };
        state.open.pop_front();
        Ok(receive.wait()?.0)
    }
}

impl Program for Pipeline {
    type State = State;
    type Error = CommError;
    const ALONE: bool = true;

    fn init(&mut self, world: &World) -> Result<State, CommError> {
        Ok(State { word: mix(world.rank() as u64), ..State::default() })
    }

    fn rebuild(&mut self, _: &mut State, _: &World) -> Result<(), CommError> {
        self.receives.clear();
        self.is_back = true;
        Ok(())
    }

    fn step(&mut self, state: &mut State, world: &World, number: u64) -> Result<Flow, CommError> {
        let PipelineArgs { items, depth, words, ahead } = self.args;
        let (rank, size) = (world.rank(), world.size());
        let left = (rank + size - 1) % size;
        if std::mem::take(&mut self.is_back) {
            self.receive_again(state, world)?;
        }
        if number <= items {
            if ahead {
                self.begin_receive(state, world, left)?;
            }
            let item: Vec<u64> = text(item(state.word, number), words).collect();
            world.comm().send(&item, (rank + 1) % size, 0)?;
        }
        if number > depth && number <= self.steps() {
            let item = self.receive(state, world, left)?;
            // One word that is not as it should be changes the answer.
            let is_whole = item.iter().copied().eq(text(item[0], words));
            state.word = mix(state.word ^ if is_whole { item[0] } else { !0 });
        }
        if number == self.steps() {
            state.check = Check::new(size, depth);
        }
        if number > self.steps() {
            state.check.go_on((state.check.steps + CHECKED_AT_ONCE).min(self.steps()), depth);
        }
        let all = self.all_steps();
        self.reporter.say(world, || (Some(number as f64 / all as f64), format!("step {number} of {all}")));
        Ok(if number == all { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, state: &mut State, world: &World) -> Result<Vec<u8>, CommError> {
        let is_wrong = state.check.words[world.rank()] != state.word;
        let mut sums = [u64::from(is_wrong), mix(state.word ^ world.rank() as u64)];
        world.comm().allreduce(&mut sums, Op::Sum)?;
        let PipelineArgs { items, depth, .. } = self.args;
        let [wrong, digest] = sums;
        Ok(app::write(&PipelineResult { ranks: world.size() as u64, items, depth, wrong, digest }))
    }
}
