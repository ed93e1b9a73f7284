//! `ep`: the kernel EP of the NAS Parallel Benchmarks, some blocks of random pairs a step.
//!
//! Every rank adds the sums of all blocks in the order of the blocks, so that any number of ranks gives the same bits.

use std::process::ExitCode;

use clap::Args;
use ft_checkpoint::{Flow, Program, Protect, RankState, Redistribute, Redistribution};
use ft_comm::{CommError, World};
use ft_montecarlo::ep::{BLOCK_PAIRS, BlockSum, Class, block};
use serde::{Deserialize, Serialize};

use crate::app::{self, App};
use crate::rank::{self, Rate, Reporter, share_of};
use crate::words::count;

/// Blocks a step, of all ranks together.
const BATCH: u64 = 64;
/// Words of a block's sums in a message.
const WORDS: usize = 12;

/// The arguments of `ep`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of ep")]
pub(crate) struct EpArgs {
    /// Size of the problem: S, W, A or B
    #[arg(long, value_name = "CLASS", default_value = "S", ignore_case = true)]
    class: Class,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EpResult {
    class: String,
    pairs: u64,
    #[serde(with = "crate::number")]
    sx: f64,
    #[serde(with = "crate::number")]
    sy: f64,
    counts: [u64; 10],
    accepted: u64,
    /// Empty: as published.
    wrong: String,
    #[serde(with = "crate::number")]
    mops: f64,
}

impl App for EpArgs {
    type Outcome = EpResult;

    fn rank(&self) -> ExitCode {
        rank::run(|settings| Blocks {
            class: self.class,
            reporter: Reporter::new(settings),
            rate: Rate::new(),
        })
    }

    fn complaint(&self, EpResult { wrong, .. }: &EpResult) -> Option<String> {
        (!wrong.is_empty()).then(|| wrong.clone())
    }

    fn headline(&self, EpResult { class, pairs, .. }: &EpResult) -> String {
        format!("class {class}, {}", count(*pairs, "pair"))
    }

    fn lines(&self, result: &EpResult) -> Vec<String> {
        let EpResult { sx, sy, counts, accepted, wrong, mops, .. } = result;
        let verdict = if wrong.is_empty() { "as published" } else { "not as published" };
        let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
        vec![
            format!("sums {sx:.15e} {sy:.15e}, {verdict}"),
            format!("counts {}, {accepted} in all", counts.join(" ")),
            format!("{mops:.1} million pairs a second"),
        ]
    }
}

/// The same on all ranks.
#[derive(Debug, Default, Protect, Redistribute)]
struct Summed {
    #[protect(replicated)]
    blocks: u64,
    #[protect(replicated)]
    words: Vec<u64>,
}

struct Blocks {
    class: Class,
    reporter: Reporter,
    rate: Rate,
}

impl Blocks {
    /// Million pairs a second.
    fn mops(&self, blocks: u64) -> f64 {
        self.rate.per_second(blocks) * BLOCK_PAIRS as f64 * 1e-6
    }
}

impl Program for Blocks {
    type State = Summed;
    type Error = CommError;
    const ALONE: bool = true;
    const SHRINKS: bool = true;
    const GROWS: bool = true;

    fn init(&mut self, _: &World) -> Result<Summed, CommError> {
        Ok(Summed { blocks: 0, words: to_words(&BlockSum::default()).to_vec() })
    }

    fn redistribute(
        &mut self,
        shares: Vec<RankState<Summed>>,
        before: usize,
        world: &World,
    ) -> Result<Summed, CommError> {
        Redistribution::equal_blocks(world.comm(), &shares, before)?.deal(shares)
    }

    fn rebuild(&mut self, summed: &mut Summed, _: &World) -> Result<(), CommError> {
        self.rate.restart(summed.blocks);
        Ok(())
    }

    fn step(&mut self, summed: &mut Summed, world: &World, _: u64) -> Result<Flow, CommError> {
        let batch = summed.blocks..self.class.blocks().min(summed.blocks + BATCH);
        // Every rank fills in its own blocks.
        let shares: Vec<_> = (0..world.size()).map(|rank| share_of(&batch, rank, world.size())).collect();
        let counts: Vec<usize> =
            shares.iter().map(|share| WORDS * (share.end - share.start) as usize).collect();
        let mut all = vec![0; WORDS * (batch.end - batch.start) as usize];
        let mine = shares[world.rank()].clone();
        let places = all.chunks_exact_mut(WORDS).skip((mine.start - batch.start) as usize);
        places
            .zip(mine)
            .for_each(|(place, index)| place.copy_from_slice(&to_words(&block(self.class, index))));
        world.comm().allgatherv(&mut all, &counts)?;
        let mut sum = from_words(&summed.words);
        all.chunks_exact(WORDS).for_each(|words| sum.add(&from_words(words)));
        (summed.blocks, summed.words) = (batch.end, to_words(&sum).to_vec());

        let (done, all) = (summed.blocks, self.class.blocks());
        let mops = self.mops(done);
        self.reporter.say(world, || {
            (
                Some(done as f64 / all as f64),
                format!("{done} of {all} blocks, {mops:.0} million pairs a second"),
            )
        });
        Ok(if done == all { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, summed: &mut Summed, _: &World) -> Result<Vec<u8>, CommError> {
        let sum = from_words(&summed.words);
        let result = EpResult {
            class: self.class.to_string(),
            pairs: summed.blocks * BLOCK_PAIRS,
            sx: sum.sx,
            sy: sum.sy,
            counts: sum.counts,
            accepted: sum.accepted(),
            wrong: self.class.verify(&sum).err().map_or(String::new(), |error| error.to_string()),
            mops: self.mops(summed.blocks),
        };
        Ok(app::write(&result))
    }
}

fn to_words(sum: &BlockSum) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    (words[0], words[1]) = (sum.sx.to_bits(), sum.sy.to_bits());
    words[2..].copy_from_slice(&sum.counts);
    words
}

fn from_words(words: &[u64]) -> BlockSum {
    let counts = words[2..WORDS].try_into().expect("the words of a block end with ten counts");
    BlockSum { sx: f64::from_bits(words[0]), sy: f64::from_bits(words[1]), counts }
}
