//! What is to be measured, and the runs that it takes.

use std::fmt;
use std::path::PathBuf;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use serde::Serialize;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The launcher.
    pub program: PathBuf,
    /// Ranks of each job.
    pub ranks: usize,
    /// Bytes of protected state of each rank, one after the other.
    pub states: Vec<u64>,
    /// Schemes to compare with each other and with no protection; [`FRESH_DISK`] stands for a fresh folder in the
    /// system's temporary folder, which is removed at the end.
    pub schemes: Vec<String>,
    /// How often everything is measured.
    pub repeat: usize,
    /// Where the order of the runs comes from, and the moments of random kills.
    pub seed: u64,
}

/// The scheme that stands for a fresh folder.
pub const FRESH_DISK: &str = "disk";

/// Whether a scheme keeps its checkpoints in files.
pub(crate) fn is_disk(scheme: &str) -> bool {
    scheme == FRESH_DISK || scheme.starts_with("disk:")
}

/// Milliseconds of work in each step, at least.
pub(crate) const STEP_MS: u64 = 10;
/// Steps between two checkpoints.
pub(crate) const EVERY: u64 = 5;
/// Steps of a run without failures.
pub(crate) const STEPS: u64 = 40;
/// Steps of a run with one kill.
pub(crate) const STEPS_WITH_KILL: u64 = 16;
/// The step in which it strikes, the third since a checkpoint.
pub(crate) const KILL_AT: u64 = 13;

/// What a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The time without failures.
    Plain,
    /// A recovery of this rank.
    Kill {
        /// The rank that is killed.
        victim: usize,
    },
    /// The time with random failures.
    Random {
        /// Mean time between failures of the job.
        mtbf_s: f64,
        /// Steps between two checkpoints.
        every: u64,
    },
}

impl fmt::Display for Kind {
    /// What is special about the run; begins with a comma if anything is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain => Ok(()),
            Self::Kill { victim } => write!(f, ", rank {victim} is killed"),
            Self::Random { mtbf_s, .. } => write!(f, ", a random kill every {mtbf_s} s"),
        }
    }
}

/// One job to run. Scheme 0 is no protection, scheme `i` the one at `i - 1` of the order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) state: u64,
    pub(crate) scheme: usize,
    pub(crate) kind: Kind,
    pub(crate) steps: u64,
    pub(crate) repetition: usize,
}

/// The runs without failures or with one, in their order: in each repetition everything once, shuffled, so that what
/// else the machine does meanwhile hits all alike. The victims take turns.
pub(crate) fn runs(experiment: &Experiment) -> Vec<Run> {
    let mut random = Pcg64::seed_from_u64(experiment.seed);
    let mut all = Vec::new();
    for repetition in 0..experiment.repeat {
        let mut round = Vec::new();
        for &state in &experiment.states {
            for scheme in 0..=experiment.schemes.len() {
                round.push(Run { state, scheme, kind: Kind::Plain, steps: STEPS, repetition });
                if scheme > 0 {
                    let kind = Kind::Kill { victim: repetition % experiment.ranks };
                    round.push(Run { state, scheme, kind, steps: STEPS_WITH_KILL, repetition });
                }
            }
        }
        round.shuffle(&mut random);
        all.extend(round);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(seed: u64) -> Experiment {
        Experiment {
            program: "ftrun".into(),
            ranks: 4,
            states: vec![1 << 20, 64 << 20],
            schemes: vec!["neighbor".into(), "xor".into()],
            repeat: 5,
            seed,
        }
    }

    #[test]
    fn every_repetition_has_everything_once_in_another_order() {
        let runs = runs(&experiment(1));
        let rounds: Vec<&[Run]> = runs.chunks(2 * (3 + 2)).collect();
        assert_eq!(rounds.len(), 5);
        let key = |run: &Run| (run.state, run.scheme, run.kind == Kind::Plain);
        let sorted = |round: &[Run]| {
            let mut keys: Vec<_> = round.iter().map(key).collect();
            keys.sort_unstable();
            keys.dedup();
            keys
        };
        for (repetition, round) in rounds.iter().enumerate() {
            assert_eq!(sorted(round).len(), 10);
            assert!(round.iter().all(|run| run.repetition == repetition));
            assert!(round.iter().all(|run| (run.scheme, run.kind) != (0, Kind::Kill { victim: 0 })));
        }
        assert!(rounds.windows(2).any(|pair| !pair[0].iter().map(key).eq(pair[1].iter().map(key))));
    }

    #[test]
    fn every_rank_is_a_victim_and_seeds_differ() {
        let runs = |seed| super::runs(&experiment(seed));
        for rank in 0..4 {
            assert!(runs(1).iter().any(|run| run.kind == Kind::Kill { victim: rank }));
        }
        assert_eq!(runs(1), runs(1));
        assert_ne!(runs(1), runs(2));
    }
}
