//! What goes wrong, and when: failures as values, given one by one or drawn from the seed.

use std::collections::HashMap;
use std::time::Duration;

use rand::{Rng, RngExt};

use ft_proto::rank::Rank;

/// When a failure strikes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// At this time since the start of the job.
    At(Duration),
    /// This long after the launcher has noted the `losses`-th loss, counted from 1: so repairs are hit.
    AfterLoss {
        /// Which loss.
        losses: u32,
        /// How long after it.
        delay: Duration,
    },
    /// In the `call`-th call, counted from 1, that this incarnation makes to its transport or service.
    Call {
        /// The rank.
        rank: Rank,
        /// The incarnation.
        incarnation: u32,
        /// The number of the call.
        call: u64,
    },
}

/// What an injected fault does to its target. Ranks mean the processes that hold them at that time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blow {
    /// They are killed together.
    Kill(Vec<Rank>),
    /// All processes of this host are killed, and none is started there any more; the last host is never lost.
    LoseHost(usize),
    /// The process is stopped, for this long or until somebody kills it.
    Pause(Rank, Option<Duration>),
    /// Links are cut: nothing passes between `ranks` and the others. What was sent is held back until the cut
    /// heals, if it ever does.
    Cut {
        /// The ranks on one side.
        ranks: Vec<Rank>,
        /// The other ranks are on the other side.
        from_ranks: bool,
        /// The launcher is on the other side.
        from_launcher: bool,
        /// How long.
        lasts: Option<Duration>,
    },
    /// The process writes nonsense into all memory that it shares with others.
    Overwrite(Rank),
    /// The links between two sides are cut, and no others: both sides reach the launcher and all other ranks.
    CutBetween {
        /// The ranks on one side.
        near: Vec<Rank>,
        /// The ranks on the other side.
        far: Vec<Rank>,
        /// How long.
        lasts: Option<Duration>,
    },
}

/// One failure of the schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When.
    pub trigger: Trigger,
    /// What.
    pub blow: Blow,
}

impl Fault {
    /// Kills `ranks` together at `at`.
    pub fn kill(at: Duration, ranks: impl Into<Vec<Rank>>) -> Self {
        Self { trigger: Trigger::At(at), blow: Blow::Kill(ranks.into()) }
    }

    /// Kills an incarnation of a rank in its `call`-th call.
    pub fn kill_in_call(rank: Rank, incarnation: u32, call: u64) -> Self {
        Self { trigger: Trigger::Call { rank, incarnation, call }, blow: Blow::Kill(vec![rank]) }
    }
}

/// What goes wrong in a run: a list, and as many failures as the seed draws.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Failures given one by one.
    pub explicit: Vec<Fault>,
    /// Most failures to draw.
    pub drawn_max: u32,
    /// Drawn failures strike within this time, or within the calls that a job of it makes.
    pub horizon: Duration,
    /// Most ranks that a drawn failure strikes together.
    pub together_max: usize,
    /// Cuts and pauses are drawn as well as kills.
    pub cuts: bool,
    /// Cuts may last for ever.
    pub cuts_forever: bool,
}

impl Faults {
    /// Up to `drawn_max` kills within `horizon`.
    pub fn kills(drawn_max: u32, horizon: Duration) -> Self {
        Self { drawn_max, horizon, together_max: 2, ..Self::default() }
    }

    /// All failures of a run of `ranks` ranks.
    pub(super) fn draw(&self, ranks: usize, random: &mut impl Rng) -> Vec<Fault> {
        let mut faults = self.explicit.clone();
        // A run without any failure is of interest, but not as often.
        let none = self.drawn_max == 0 || random.random_ratio(1, 16);
        let count = if none { 0 } else { random.random_range(1..=self.drawn_max) };
        for _ in 0..count {
            let trigger = self.trigger(ranks, random);
            let blow = self.blow(ranks, random);
            faults.push(Fault { trigger, blow });
        }
        faults
    }

    fn trigger(&self, ranks: usize, random: &mut impl Rng) -> Trigger {
        let micros = self.horizon.as_micros().max(2) as u64;
        match random.random_range(0..5) {
            0..2 => Trigger::At(Duration::from_micros(random.random_range(0..micros))),
            2 => Trigger::AfterLoss {
                losses: random.random_range(1..4),
                // A repair takes some time from the loss to the return of all ranks; all orders of magnitude
                // of it are of interest.
                delay: Duration::from_micros(1 << random.random_range(0..16)),
            },
            _ => {
                let calls = 1 << random.random_range(3..10);
                Trigger::Call {
                    rank: random.random_range(0..ranks),
                    incarnation: u32::from(random.random_ratio(1, 6)),
                    call: random.random_range(1..=calls),
                }
            }
        }
    }

    fn blow(&self, ranks: usize, random: &mut impl Rng) -> Blow {
        let mut below = |end: usize| random.random_range(0..end);
        let kind = if self.cuts { below(8) } else { 0 };
        let most = if kind < 5 { self.together_max } else { ranks };
        let mut others: Vec<Rank> = (0..ranks).collect();
        let count = 1 + below(most.clamp(1, ranks));
        let mut ranks_hit = Vec::with_capacity(count);
        for left in (ranks - count + 1..=ranks).rev() {
            ranks_hit.push(others.swap_remove(below(left)));
        }
        ranks_hit.sort_unstable();
        let lasts = Duration::from_millis(1 << below(11));
        match kind {
            0..5 => Blow::Kill(ranks_hit),
            5 => Blow::Pause(ranks_hit[0], Some(lasts)),
            _ => {
                let sides = below(3);
                let lasts = if self.cuts_forever && below(4) == 0 { None } else { Some(lasts) };
                Blow::Cut { ranks: ranks_hit, from_ranks: sides != 1, from_launcher: sides != 0, lasts }
            }
        }
    }
}

/// The failures of a run, by number, and what they wait for.
#[derive(Debug)]
pub(super) struct Plan {
    faults: Vec<Fault>,
    /// Those that strike in a call, by rank, incarnation and number of the call.
    in_calls: HashMap<(Rank, u32, u64), Vec<usize>>,
    /// Those that follow a loss, by its number, and how long after it.
    behind_losses: HashMap<u32, Vec<(usize, Duration)>>,
    /// Losses that the launcher has noted.
    losses: u32,
}

impl Plan {
    pub(super) fn new(faults: Vec<Fault>) -> Self {
        let (mut in_calls, mut behind_losses) = (HashMap::<_, Vec<_>>::new(), HashMap::<_, Vec<_>>::new());
        for (number, fault) in faults.iter().enumerate() {
            match fault.trigger {
                Trigger::At(_) => {}
                Trigger::AfterLoss { losses, delay } => {
                    behind_losses.entry(losses).or_default().push((number, delay));
                }
                Trigger::Call { rank, incarnation, call } => {
                    in_calls.entry((rank, incarnation, call)).or_default().push(number);
                }
            }
        }
        Self { faults, in_calls, behind_losses, losses: 0 }
    }

    pub(super) fn blow(&self, number: usize) -> Blow {
        self.faults[number].blow.clone()
    }

    /// Those that strike at a time since the start of the job, and when.
    pub(super) fn timed(&self) -> Vec<(usize, Duration)> {
        let at = |fault: &Fault| if let Trigger::At(at) = fault.trigger { Some(at) } else { None };
        self.faults.iter().enumerate().filter_map(|(number, fault)| Some((number, at(fault)?))).collect()
    }

    /// Those that strike in this call.
    pub(super) fn in_call(&self, of: Rank, its: u32, number: u64) -> Vec<usize> {
        self.in_calls.get(&(of, its, number)).cloned().unwrap_or_default()
    }

    /// The launcher has noted one more loss; gives those that follow it, and how long after it.
    pub(super) fn lost(&mut self) -> Vec<(usize, Duration)> {
        self.losses += 1;
        self.behind_losses.remove(&self.losses).unwrap_or_default()
    }
}
