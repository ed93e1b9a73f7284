//! What the arbiter shows of the ranks to who asks how the job is.

use super::Arbiter;
use super::chairs::Phase;
use crate::rank::{Generation, PeerId, Rank};
use crate::time::Time;
use crate::wire::wait::Wait;

/// How far the process of a rank is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It was started and has not joined the job yet.
    Starting,
    /// It has joined, and waits for the next generation.
    Joined,
    /// It belongs to the current generation.
    Working,
    /// It has stopped using the current generation, and waits for the repair.
    Ready,
    /// It has exited in peace.
    Gone,
    /// It is lost, and nobody replaces it.
    Lost,
}

/// A rank, and who holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankView {
    /// Its number at the start of the job, by which people know it.
    pub rank: Rank,
    /// The process.
    pub peer: PeerId,
    /// How often the rank was replaced.
    pub incarnation: u32,
    /// How far the process is.
    pub stage: Stage,
    /// The step that it is in, if it counts them.
    pub step: Option<u64>,
    /// The call in which it has waited long ([`crate::watch::patience`]), and since when.
    pub waits: Option<(Wait, Time)>,
}

impl Arbiter {
    /// The ranks as they are now.
    pub fn view(&self) -> Vec<RankView> {
        let chairs = self.roster.chairs.iter().enumerate();
        chairs
            .map(|(rank, chair)| RankView {
                rank: chair.origin,
                peer: chair.peer,
                incarnation: chair.incarnation,
                stage: stage(chair.phase),
                step: (chair.step > 0).then_some(chair.step),
                waits: self.watch.wait_of(rank).map(|(wait, since)| (wait.clone(), since)),
            })
            .collect()
    }

    /// The current generation; none before all ranks have joined.
    pub fn generation(&self) -> Option<Generation> {
        self.roster.generation
    }

    /// The process that holds the rank which people know by this number, if one does.
    pub fn holder(&self, rank: Rank) -> Option<PeerId> {
        self.roster.chairs.holder(rank)
    }
}

fn stage(phase: Phase) -> Stage {
    match phase {
        Phase::Starting => Stage::Starting,
        Phase::Joined(_) => Stage::Joined,
        Phase::Member => Stage::Working,
        Phase::Ready(_) => Stage::Ready,
        Phase::Gone => Stage::Gone,
        Phase::Vacant => Stage::Lost,
    }
}
