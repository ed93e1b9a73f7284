//! What protection has cost one rank so far.

use ft_comm::Generation;
use ft_proto::lines::Crossings;
use serde::{Deserialize, Serialize};

/// Counted by each process; a replacement starts at zero. The launcher has what lost ones had told it ([`World::account`](ft_comm::World::account)).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Newest committed epoch.
    pub committed: u32,
    /// Checkpoints that this process took part in.
    #[serde(default)]
    pub taken: u32,
    /// Checkpoints of which only what had changed was sent.
    #[serde(default)]
    pub increments: u32,
    /// Bytes of state copied and encoded.
    pub bytes_protected: u64,
    /// Bytes of shards and redundant blocks sent for it.
    pub bytes_sent: u64,
    /// Seconds spent in checkpoints.
    pub seconds: f64,
    /// The same without those that had the constant part, too, as the first one of a run has.
    #[serde(default)]
    pub seconds_later: f64,
    /// All of it, by phase.
    pub phases: CheckpointSeconds,
    /// Bytes of the protected state of this rank.
    pub state_bytes: u64,
    /// Bytes kept for it: copies of the own state and redundancy held for others.
    pub kept_bytes: u64,
    /// What each restore took, in the order of their generations.
    pub restores: Vec<RestoreSeconds>,
    /// How often something that this rank held was found damaged in memory, and made again.
    pub damaged: u64,
    /// What has become of the parity groups, as ranks are missing.
    pub degraded: Option<String>,
    /// What has crossed checkpoints, where messages may.
    #[serde(default)]
    pub lines: LineStats,
    /// What the levels of protection above the first have of all this.
    #[serde(default)]
    pub levels: Vec<LevelStats>,
}

/// What has crossed checkpoints, where messages may ([`Lines`](crate::Lines)); of all ranks and checkpoints together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineStats {
    /// Messages that were under way, and were kept with the state of their receiver.
    pub kept: u64,
    /// Their bytes.
    pub kept_bytes: u64,
    /// Messages that had been received too early, and are not sent again when ranks go back.
    pub early: u64,
    /// What the program had not determined, and was kept so that it comes out so again.
    pub outcomes: u64,
}

impl LineStats {
    pub(crate) fn add(&mut self, crossings: &Crossings) {
        let Crossings { kept, kept_bytes, early, outcomes } = *crossings;
        *self = self.and(Self { kept, kept_bytes, early, outcomes });
    }

    fn and(self, other: Self) -> Self {
        Self {
            kept: self.kept + other.kept,
            kept_bytes: self.kept_bytes + other.kept_bytes,
            early: self.early + other.early,
            outcomes: self.outcomes + other.outcomes,
        }
    }
}

/// What one level of protection has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelStats {
    /// Checkpoints that were committed.
    pub checkpoints: u32,
    /// Restores from it.
    pub restores: u32,
    /// Bytes of shards and redundant blocks sent for it.
    pub bytes_sent: u64,
    /// Seconds spent in its checkpoints.
    pub seconds: f64,
    /// Bytes kept for it.
    pub kept_bytes: u64,
}

impl LevelStats {
    /// The account of one process: this part of it, and a `later` one.
    fn then(self, later: Self) -> Self {
        Self {
            checkpoints: self.checkpoints + later.checkpoints,
            restores: self.restores + later.restores,
            bytes_sent: self.bytes_sent + later.bytes_sent,
            seconds: self.seconds + later.seconds,
            kept_bytes: later.kept_bytes.max(self.kept_bytes),
        }
    }

    fn merge(self, other: Self) -> Self {
        Self {
            checkpoints: self.checkpoints.max(other.checkpoints),
            restores: self.restores.max(other.restores),
            bytes_sent: self.bytes_sent + other.bytes_sent,
            seconds: self.seconds.max(other.seconds),
            kept_bytes: self.kept_bytes + other.kept_bytes,
        }
    }
}

/// Where the time of checkpoints goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckpointSeconds {
    /// Copying the state.
    pub copy: f64,
    /// Hashing, and computing redundant blocks.
    pub encode: f64,
    /// Moving blocks, or writing files, and waiting for others to do so.
    pub exchange: f64,
    /// Voting and committing.
    pub commit: f64,
}

impl CheckpointSeconds {
    fn and(self, other: Self) -> Self {
        Self {
            copy: self.copy + other.copy,
            encode: self.encode + other.encode,
            exchange: self.exchange + other.exchange,
            commit: self.commit + other.commit,
        }
    }
}

/// Doubles that a restore has rebuilt from checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RebuiltDoubles {
    /// Whose they are.
    pub rank: usize,
    /// How far any of them can be from what it was.
    pub within: f64,
    /// The same over the largest magnitude among them.
    pub relative: f64,
}

/// Where the time of one restore goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RestoreSeconds {
    /// The generation that the restore starts.
    pub generation: Generation,
    /// Opening links, checking what is in memory, and agreeing on what is lost.
    pub plan: f64,
    /// Rebuilding lost shards.
    pub rebuild: f64,
    /// Rebuilding lost redundant blocks: re-protection.
    pub reprotect: f64,
    /// Checking what was rebuilt, waiting for all, and loading the state.
    pub load: f64,
    /// Ranks whose checkpoint was in memory that has outlived their process: nothing was rebuilt for them.
    #[serde(default)]
    pub kept: u32,
    /// Ranks that went on where they were, as only the lost went back ([`Recovery::Local`](crate::Recovery::Local)).
    #[serde(default)]
    pub stayed: u32,
    /// Under a checksum scheme: what was rebuilt with rounding, in the order of ranks.
    #[serde(default)]
    pub doubles: Vec<RebuiltDoubles>,
}

impl Stats {
    /// The account of a job from those of its ranks: sums, but for the epoch and the times, of which the longest
    /// counts.
    pub fn merge(self, other: Self) -> Self {
        let (mine, others) = (self.phases, other.phases);
        let mut restores = self.restores;
        restores.extend(other.restores);
        restores.sort_by_key(|restore| restore.generation);
        restores.dedup_by(|restore, known| {
            let is_same = restore.generation == known.generation;
            if is_same {
                *known = known.longest(restore);
            }
            is_same
        });
        let levels = level_by_level(self.levels, other.levels, LevelStats::merge);
        Self {
            committed: self.committed.max(other.committed),
            taken: self.taken.max(other.taken),
            bytes_protected: self.bytes_protected + other.bytes_protected,
            increments: self.increments.max(other.increments),
            bytes_sent: self.bytes_sent + other.bytes_sent,
            seconds: self.seconds.max(other.seconds),
            seconds_later: self.seconds_later.max(other.seconds_later),
            phases: CheckpointSeconds {
                copy: mine.copy.max(others.copy),
                encode: mine.encode.max(others.encode),
                exchange: mine.exchange.max(others.exchange),
                commit: mine.commit.max(others.commit),
            },
            lines: self.lines.and(other.lines),
            state_bytes: self.state_bytes + other.state_bytes,
            kept_bytes: self.kept_bytes + other.kept_bytes,
            damaged: self.damaged + other.damaged,
            degraded: self.degraded.or(other.degraded),
            restores,
            levels,
        }
    }

    /// The account of one rank: this part of it, and a `later` one. Sums, but for the epoch and for what is kept.
    pub fn then(self, later: Self) -> Self {
        let mut restores = self.restores;
        restores.extend(later.restores);
        Self {
            committed: self.committed.max(later.committed),
            taken: self.taken + later.taken,
            increments: self.increments + later.increments,
            bytes_protected: self.bytes_protected + later.bytes_protected,
            bytes_sent: self.bytes_sent + later.bytes_sent,
            seconds: self.seconds + later.seconds,
            seconds_later: self.seconds_later + later.seconds_later,
            phases: self.phases.and(later.phases),
            state_bytes: later.state_bytes.max(self.state_bytes),
            kept_bytes: later.kept_bytes.max(self.kept_bytes),
            restores,
            damaged: self.damaged + later.damaged,
            degraded: later.degraded.or(self.degraded),
            lines: self.lines.and(later.lines),
            levels: level_by_level(self.levels, later.levels, LevelStats::then),
        }
    }

    /// What goes on counting behind a repair: how much there is, and what has become of the groups.
    pub(crate) fn and_on(&self) -> Self {
        let Self { committed, state_bytes, degraded, .. } = self;
        Self {
            committed: *committed,
            state_bytes: *state_bytes,
            degraded: degraded.clone(),
            ..Self::default()
        }
    }

    /// Reads the bytes of an account; `None` if they are none.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }

    /// The bytes to give to [`World::account`](ft_comm::World::account).
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("an account can be written")
    }

    /// The account of a rank whose first level has this one, with that of the next level above.
    pub(crate) fn with_level(mut self, level: Self) -> Self {
        self.levels.push(LevelStats {
            checkpoints: level.taken,
            restores: level.restores.len() as u32,
            bytes_sent: level.bytes_sent,
            seconds: level.seconds,
            kept_bytes: level.kept_bytes,
        });
        self.phases = self.phases.and(level.phases);
        self.bytes_protected += level.bytes_protected;
        self.bytes_sent += level.bytes_sent;
        self.seconds += level.seconds;
        self.seconds_later += level.seconds_later;
        self.kept_bytes += level.kept_bytes;
        self.damaged += level.damaged;
        self.restores.extend(level.restores);
        self.restores.sort_by_key(|restore| restore.generation);
        self
    }

    /// Bytes in memory for each byte of state, the live state included.
    pub fn memory_overhead(&self) -> f64 {
        if self.state_bytes == 0 { 1.0 } else { 1.0 + self.kept_bytes as f64 / self.state_bytes as f64 }
    }
}

/// Both accounts of each level, made one.
fn level_by_level(
    mine: Vec<LevelStats>,
    mut others: Vec<LevelStats>,
    one: impl Fn(LevelStats, LevelStats) -> LevelStats,
) -> Vec<LevelStats> {
    others.resize(others.len().max(mine.len()), LevelStats::default());
    others.iter_mut().zip(mine).for_each(|(other, mine)| *other = one(mine, *other));
    others
}

impl RestoreSeconds {
    fn longest(&self, other: &Self) -> Self {
        Self {
            generation: self.generation,
            plan: self.plan.max(other.plan),
            rebuild: self.rebuild.max(other.rebuild),
            reprotect: self.reprotect.max(other.reprotect),
            load: self.load.max(other.load),
            kept: self.kept + other.kept,
            stayed: self.stayed + other.stayed,
            // All ranks know all of them.
            doubles: if self.doubles.is_empty() { other.doubles.clone() } else { self.doubles.clone() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_the_sum_of_bytes_and_the_longest_times() {
        let restore = |generation, rebuild| RestoreSeconds { generation, rebuild, ..Default::default() };
        let phases = |copy, commit| CheckpointSeconds { copy, commit, ..Default::default() };
        let one = Stats {
            committed: 3,
            bytes_protected: 10,
            seconds: 1.0,
            seconds_later: 0.75,
            phases: phases(1.0, 2.0),
            restores: vec![restore(2, 0.5)],
            ..Stats::default()
        };
        let other = Stats {
            committed: 2,
            bytes_protected: 5,
            seconds: 4.0,
            seconds_later: 0.5,
            phases: phases(3.0, 1.0),
            restores: vec![restore(1, 0.1), restore(2, 0.7)],
            ..Stats::default()
        };
        let all = one.merge(other);
        assert_eq!((all.committed, all.bytes_protected, all.seconds), (3, 15, 4.0));
        assert_eq!(all.seconds_later, 0.75);
        assert_eq!(all.phases, phases(3.0, 2.0));
        assert_eq!(all.restores, [restore(1, 0.1), restore(2, 0.7)]);
    }
    #[test]
    fn a_process_goes_on_counting_behind_a_repair() {
        let restore = |generation| RestoreSeconds { generation, ..Default::default() };
        let level = |checkpoints, kept_bytes| LevelStats { checkpoints, kept_bytes, ..Default::default() };
        let part = |taken, committed, state_bytes, generation| Stats {
            taken,
            committed,
            seconds: f64::from(taken),
            state_bytes,
            restores: vec![restore(generation)],
            levels: vec![level(taken, state_bytes)],
            ..Stats::default()
        };
        let all = part(3, 3, 8, 1).then(part(2, 5, 4, 2));
        assert_eq!((all.taken, all.committed, all.seconds, all.state_bytes), (5, 5, 5.0, 8));
        assert_eq!((all.restores, all.levels), (vec![restore(1), restore(2)], vec![level(5, 8)]));
        let next = part(3, 3, 8, 1).and_on();
        assert_eq!(next, Stats { committed: 3, state_bytes: 8, ..Stats::default() });
        assert_eq!(Stats::read(&next.to_bytes()), Some(next));
    }
}
