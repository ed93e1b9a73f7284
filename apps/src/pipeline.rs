//! `pipeline`: each rank of a ring sends an item in every step, and takes one that its neighbour has sent some steps before. So messages are under way at every checkpoint.
//!
//! Every item depends on all that its sender has received, so one that is lost, doubled or torn changes all that follow. What each rank should have at the end is computed without
//! a message.

use std::process::ExitCode;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use ft_checkpoint::{Flow, Lines, Program, Protect};
use ft_comm::{CommError, Op, World};
use serde::{Deserialize, Serialize};

use crate::app::{self, App};
use crate::options::Options;
use crate::rank::{self, Reporter, mix};
use crate::words::count;

/// The arguments of `pipeline`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of pipeline")]
pub(crate) struct PipelineArgs {
    /// Items that each rank sends
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    items: u64,
    /// Steps from an item's sending to its receiving
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = RangedU64ValueParser::<u64>::new().range(1..=64))]
    depth: u64,
    /// Words of 8 bytes in an item
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    words: usize,
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
        rank::run(|settings| Pipeline { args, reporter: Reporter::new(settings) })
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
struct Word {
    word: u64,
}

struct Pipeline {
    args: PipelineArgs,
    reporter: Reporter,
}

impl Pipeline {
    fn steps(&self) -> u64 {
        self.args.items + self.args.depth
    }

    /// The words of all ranks at the end, step by step.
    fn expected(&self, ranks: usize) -> Vec<u64> {
        let depth = self.args.depth as usize;
        let mut words: Vec<u64> = (0..ranks as u64).map(mix).collect();
        // What all ranks have sent in each of the last steps, and what comes of that.
        let (mut sent, mut came) = (vec![vec![0; ranks]; depth], vec![0; ranks]);
        for step in 1..=self.steps() {
            let row = &mut sent[(step % self.args.depth) as usize];
            came.copy_from_slice(row);
            came.rotate_right(1);
            row.iter_mut().zip(&words).for_each(|(sent, word)| *sent = item(*word, step));
            if step > self.args.depth {
                words.iter_mut().zip(&came).for_each(|(word, came)| *word = mix(*word ^ came));
            }
        }
        words
    }
}

impl Program for Pipeline {
    type State = Word;
    type Error = CommError;

    fn init(&mut self, world: &World) -> Result<Word, CommError> {
        Ok(Word { word: mix(world.rank() as u64) })
    }

    fn step(&mut self, state: &mut Word, world: &World, number: u64) -> Result<Flow, CommError> {
        let PipelineArgs { items, depth, words } = self.args;
        let (rank, size) = (world.rank(), world.size());
        if number <= items {
            let item: Vec<u64> = text(item(state.word, number), words).collect();
            world.comm().send(&item, (rank + 1) % size, 0)?;
        }
        if number > depth {
            let mut item = vec![0; words];
            world.comm().recv(&mut item, (rank + size - 1) % size, 0)?;
            // One word that is not as it should be changes the answer.
            let is_whole = item.iter().copied().eq(text(item[0], words));
            state.word = mix(state.word ^ if is_whole { item[0] } else { !0 });
        }
        let all = self.steps();
        self.reporter.say(world, || (Some(number as f64 / all as f64), format!("step {number} of {all}")));
        Ok(if number == all { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, state: &mut Word, world: &World) -> Result<Vec<u8>, CommError> {
        let is_wrong = self.expected(world.size())[world.rank()] != state.word;
        let mut sums = [u64::from(is_wrong), mix(state.word ^ world.rank() as u64)];
        world.comm().allreduce(&mut sums, Op::Sum)?;
        let PipelineArgs { items, depth, .. } = self.args;
        let [wrong, digest] = sums;
        Ok(app::write(&PipelineResult { ranks: world.size() as u64, items, depth, wrong, digest }))
    }
}
