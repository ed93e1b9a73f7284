//! A small job in one value: ledgers, what their memory really holds, and every step that could come next.
//!
//! Each rank of the model copies its state, sends a block to each other rank, and stages when it has all of theirs.
//! Messages, votes and crashes happen in any order. In *every* state reached the checker asks: if the survivors
//! compared their reports now, would each hold all of what they choose, in one version, and not too old?

use std::collections::HashSet;

use super::{Event, Ledger, State, choose};

/// A rule of the protocol that is switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Bug {
    None,
    /// A staged rank begins the next epoch without waiting for the vote.
    BeginsBeforeCommit,
    /// A rank commits as soon as it has staged.
    CommitsBeforeVote,
    /// A rank writes blocks of an epoch that it has not begun.
    AcceptsBeforeBegin,
    /// A rank takes up work after an interruption though it does not know the outcome of the vote.
    ForgetsStaged,
}

impl Bug {
    /// The wrong transition, where this bug has one.
    pub(super) fn after(self, ledger: &Ledger, event: Event) -> Option<(State, u32)> {
        match (self, ledger.state, event) {
            (Self::BeginsBeforeCommit, State::Staged(now), Event::Begin(epoch)) if epoch == now + 1 => {
                Some((State::Staging(epoch), ledger.committed))
            }
            (Self::CommitsBeforeVote, State::Staging(_), Event::Staged(epoch)) => Some((State::Idle, epoch)),
            (Self::ForgetsStaged, _, Event::Interrupted) => {
                Some((State::Interrupted(None), ledger.committed))
            }
            _ => None,
        }
    }
}

/// What a piece of memory holds: the state at an epoch, in one of the attempts to reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Content {
    epoch: u32,
    attempt: u8,
}

/// `pieces[i]` is the block of rank `i`, and at the rank's own index its shard.
type Slot = Vec<Option<Content>>;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Node {
    /// False from the crash until its replacement is restored.
    whole: bool,
    ledger: Ledger,
    slots: [Slot; 2],
    /// Counts failed votes and repairs: work after one of them is another attempt.
    attempt: u8,
}

/// What the model may do, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Bounds {
    pub(super) ranks: usize,
    pub(super) epochs: u32,
    pub(super) crashes: u8,
    pub(super) failed_votes: u8,
    /// Ranks that may be lost at the same time.
    pub(super) tolerance: usize,
    pub(super) bug: Bug,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Job {
    nodes: Vec<Node>,
    /// The newest content that each rank has sent to the others.
    sent: Vec<Option<Content>>,
    /// The outcome of the newest vote.
    decided: Option<(Content, bool)>,
    /// The chosen epoch while some ranks still have to be restored to it; 0: from `init`.
    restoring: Option<u32>,
    /// The newest epoch that all ranks have committed at one time.
    floor: u32,
    crashes: u8,
    failed_votes: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Begin(usize),
    Copy(usize),
    Receive { at: usize, from: usize },
    Stage(usize),
    CannotStage(usize),
    Decide,
    Learn(usize),
    Crash(usize),
    Interrupt(usize),
    Repair,
    Restore(usize),
}

impl Job {
    fn new(bounds: &Bounds) -> Self {
        let slots = [vec![None; bounds.ranks], vec![None; bounds.ranks]];
        let ledger = Ledger { bug: bounds.bug, ..Ledger::new(1) };
        Self {
            nodes: vec![Node { whole: true, ledger, slots, attempt: 0 }; bounds.ranks],
            sent: vec![None; bounds.ranks],
            decided: None,
            restoring: None,
            floor: 0,
            crashes: bounds.crashes,
            failed_votes: bounds.failed_votes,
        }
    }

    /// Whether a repair is due: some rank is lost and nothing has been chosen for it yet.
    fn broken(&self) -> bool {
        self.restoring.is_none() && self.nodes.iter().any(|node| !node.whole)
    }

    fn steps(&self, bounds: &Bounds) -> Vec<Step> {
        let mut steps = Vec::new();
        let ranks = 0..self.nodes.len();
        let lost = self.nodes.iter().filter(|node| !node.whole).count();
        for (r, node) in self.nodes.iter().enumerate() {
            if node.whole && self.crashes > 0 && lost < bounds.tolerance {
                steps.push(Step::Crash(r));
            }
            if self.restoring.is_some()
                && (!node.whole || matches!(node.ledger.state(), State::Interrupted(_)))
            {
                steps.push(Step::Restore(r));
            }
            if !node.whole {
                continue;
            }
            if self.broken() && !matches!(node.ledger.state(), State::Interrupted(_)) {
                steps.push(Step::Interrupt(r));
            }
            for from in ranks.clone().filter(|from| *from != r) {
                if let Some(content) = self.sent[from].filter(|c| c.attempt == node.attempt)
                    && node.ledger.accepts(content.epoch)
                    && node.slots[content.epoch as usize % 2][from] != Some(content)
                {
                    steps.push(Step::Receive { at: r, from });
                }
            }
            match node.ledger.state() {
                State::Staging(epoch) => {
                    let content = Some(Content { epoch, attempt: node.attempt });
                    let slot = &node.slots[epoch as usize % 2];
                    if slot[r] != content {
                        steps.push(Step::Copy(r));
                    } else if slot.iter().all(|piece| *piece == content) {
                        steps.push(Step::Stage(r));
                    }
                    let content = Content { epoch, attempt: node.attempt };
                    if self.failed_votes > 0 && self.decided.is_none_or(|(about, _)| about != content) {
                        steps.push(Step::CannotStage(r));
                    }
                }
                State::Idle if node.ledger.next_epoch() <= bounds.epochs => steps.push(Step::Begin(r)),
                State::Staged(epoch) if bounds.bug == Bug::BeginsBeforeCommit && epoch < bounds.epochs => {
                    steps.push(Step::Begin(r));
                }
                _ => {}
            }
            if self.decided.is_some_and(|(about, passed)| node.waits_for(about, passed)) {
                steps.push(Step::Learn(r));
            }
        }
        let vote = self.vote();
        if vote.is_some_and(|content| self.decided.is_none_or(|(about, _)| about != content)) {
            steps.push(Step::Decide);
        }
        let ready = |node: &Node| !node.whole || matches!(node.ledger.state(), State::Interrupted(_));
        if self.broken() && self.nodes.iter().all(ready) {
            steps.push(Step::Repair);
        }
        steps
    }

    /// The content that all ranks have staged, if they have.
    fn vote(&self) -> Option<Content> {
        let staged = |node: &Node| match node.ledger.state() {
            State::Staged(epoch) if node.whole => Some(Content { epoch, attempt: node.attempt }),
            _ => None,
        };
        let first = staged(&self.nodes[0])?;
        self.nodes.iter().all(|node| staged(node) == Some(first)).then_some(first)
    }

    fn take(&mut self, step: Step) {
        let apply =
            |node: &mut Node, event| node.ledger.apply(event).expect("the model offers legal events only");
        match step {
            Step::Begin(r) => {
                let node = &mut self.nodes[r];
                let epoch = match node.ledger.state() {
                    State::Staged(epoch) => epoch + 1,
                    _ => node.ledger.next_epoch(),
                };
                apply(node, Event::Begin(epoch));
                // Torn from here on; but what was written early (a bug) is there.
                let kept = Content { epoch, attempt: node.attempt };
                for piece in &mut node.slots[epoch as usize % 2] {
                    *piece = piece.filter(|content| *content == kept);
                }
            }
            Step::Copy(r) => {
                let State::Staging(epoch) = self.nodes[r].ledger.state() else {
                    unreachable!("only while staging")
                };
                let content = Some(Content { epoch, attempt: self.nodes[r].attempt });
                self.nodes[r].slots[epoch as usize % 2][r] = content;
                self.sent[r] = content;
            }
            Step::Receive { at, from } => {
                let content = self.sent[from].expect("sent");
                self.nodes[at].slots[content.epoch as usize % 2][from] = Some(content);
            }
            Step::Stage(r) => {
                let State::Staging(epoch) = self.nodes[r].ledger.state() else {
                    unreachable!("only while staging")
                };
                apply(&mut self.nodes[r], Event::Staged(epoch));
            }
            Step::CannotStage(r) => {
                let State::Staging(epoch) = self.nodes[r].ledger.state() else {
                    unreachable!("only while staging")
                };
                self.decided = Some((Content { epoch, attempt: self.nodes[r].attempt }, false));
                self.failed_votes -= 1;
            }
            Step::Decide => self.decided = self.vote().map(|content| (content, true)),
            Step::Learn(r) => {
                let (content, passed) = self.decided.expect("decided");
                let node = &mut self.nodes[r];
                match passed {
                    true => apply(node, Event::VotePassed(content.epoch)),
                    false => apply(node, Event::VoteFailed(content.epoch)),
                };
                node.attempt += u8::from(!passed);
            }
            Step::Crash(r) => {
                let ranks = self.nodes.len();
                let node = &mut self.nodes[r];
                node.whole = false;
                node.ledger = Ledger { bug: node.ledger.bug, ..Ledger::new(1) };
                node.slots = [vec![None; ranks], vec![None; ranks]];
                node.attempt = 0;
                self.sent[r] = None;
                self.crashes -= 1;
                self.restoring = None;
            }
            Step::Interrupt(r) => {
                apply(&mut self.nodes[r], Event::Interrupted);
            }
            Step::Repair => {
                self.restoring = Some(self.choice().unwrap_or(0));
                let attempt = self.nodes.iter().map(|node| node.attempt).max().unwrap_or(0) + 1;
                for node in &mut self.nodes {
                    node.attempt = attempt;
                }
                self.sent.fill(None);
                self.decided = None;
            }
            Step::Restore(r) => {
                let epoch = self.restoring.expect("a repair has chosen");
                if !self.nodes[r].whole && epoch > 0 {
                    let holder = self.nodes.iter().position(|node| node.whole).expect("a survivor");
                    self.nodes[r].slots[epoch as usize % 2] =
                        self.nodes[holder].slots[epoch as usize % 2].clone();
                }
                self.nodes[r].whole = true;
                apply(&mut self.nodes[r], Event::Restored(epoch));
                let restored =
                    |node: &Node| node.whole && !matches!(node.ledger.state(), State::Interrupted(_));
                if self.nodes.iter().all(restored) {
                    self.restoring = None;
                }
            }
        }
        let all = self.nodes.iter().map(|node| node.ledger.committed).min().unwrap_or(0);
        self.floor = self.floor.max(all);
    }

    fn reports(&self) -> Vec<u64> {
        let report = |node: &Node| if node.whole { u64::from(node.ledger.report()) } else { 0 };
        self.nodes.iter().map(report).collect()
    }

    fn choice(&self) -> Option<u32> {
        choose(&self.reports()).epoch
    }

    /// Invariant 4, in this very state.
    fn check(&self) -> Result<(), String> {
        let choice = choose(&self.reports());
        let survivors = || self.nodes.iter().enumerate().filter(|(_, node)| node.whole);
        let epoch = choice.epoch.unwrap_or(0);
        if epoch < self.floor {
            return Err(format!("all have committed {}, {epoch} is chosen", self.floor));
        }
        if let Some((r, node)) = survivors().find(|(_, node)| node.ledger.committed > epoch) {
            return Err(format!("rank {r} has committed {}, {epoch} is chosen", node.ledger.committed));
        }
        if epoch == 0 {
            return Ok(());
        }
        let (first, node) = survivors().next().expect("somebody has committed");
        let version = node.slots[epoch as usize % 2][first];
        for (r, node) in survivors() {
            if !choice.holders[r] {
                return Err(format!("epoch {epoch} is chosen, rank {r} says it does not hold it"));
            }
            let slot = &node.slots[epoch as usize % 2];
            if slot
                .iter()
                .any(|piece| *piece != version || piece.is_none_or(|content| content.epoch != epoch))
            {
                return Err(format!("epoch {epoch} is chosen, rank {r} holds {slot:?}"));
            }
        }
        Ok(())
    }
}

impl Node {
    fn waits_for(&self, about: Content, passed: bool) -> bool {
        match self.ledger.state() {
            State::Staged(epoch) => about == Content { epoch, attempt: self.attempt },
            State::Staging(epoch) => !passed && about == Content { epoch, attempt: self.attempt },
            State::Idle | State::Interrupted(_) => false,
        }
    }
}

/// Visits every reachable state; returns their number and the newest epoch that all ranks have committed.
pub(super) fn exhaust(bounds: &Bounds) -> Result<(usize, u32), String> {
    let start = Job::new(bounds);
    let mut seen = HashSet::from([fingerprint(&start)]);
    let mut open = vec![start];
    let mut newest = 0;
    while let Some(job) = open.pop() {
        newest = newest.max(job.floor);
        for step in job.steps(bounds) {
            let mut next = job.clone();
            next.take(step);
            next.check().map_err(|text| format!("{step:?}: {text}\n{job:#?}"))?;
            if seen.insert(fingerprint(&next)) {
                open.push(next);
            }
        }
    }
    Ok((seen.len(), newest))
}

/// 64 bits in place of the state: among 10^6 states a collision, which would hide one of them, has odds of 1 to 10^7.
fn fingerprint(job: &Job) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    job.hash(&mut hasher);
    hasher.finish()
}

/// Takes random steps until none is left; the same seed takes the same ones.
pub(super) fn wander(bounds: &Bounds, seed: u64) -> Result<u32, String> {
    let mut random = seed;
    let mut next = move || {
        // splitmix64: Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014
        random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (random ^ random >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    let mut job = Job::new(bounds);
    loop {
        let mut steps = job.steps(bounds);
        if steps.len() > 1 && !next().is_multiple_of(8) {
            // Crashes are always possible and would use up their number at once.
            let calm: Vec<Step> = steps.iter().copied().filter(|s| !matches!(s, Step::Crash(_))).collect();
            steps = if calm.is_empty() { steps } else { calm };
        }
        let Some(&step) = steps.get(next() as usize % steps.len().max(1)) else { return Ok(job.floor) };
        job.take(step);
        job.check().map_err(|text| format!("seed {seed}, {step:?}: {text}\n{job:#?}"))?;
    }
}

const SMALL: Bounds =
    Bounds { ranks: 3, epochs: 2, crashes: 1, failed_votes: 0, tolerance: 1, bug: Bug::None };

#[test]
fn every_interleaving_keeps_a_whole_checkpoint() {
    let cases = [
        Bounds { ranks: 2, epochs: 4, crashes: 3, failed_votes: 2, ..SMALL },
        Bounds { ranks: 3, epochs: 3, crashes: 1, ..SMALL },
        Bounds { ranks: 3, epochs: 3, crashes: 2, tolerance: 2, ..SMALL },
        Bounds { ranks: 3, epochs: 3, crashes: 1, failed_votes: 1, ..SMALL },
        Bounds { ranks: 4, epochs: 2, crashes: 1, ..SMALL },
    ];
    for bounds in cases {
        let (states, newest) = exhaust(&bounds).expect("whole");
        println!("{bounds:?}: {states} states");
        assert_eq!(newest, bounds.epochs, "the job can always go on to its end");
        assert!(states > 1000, "{states}");
    }
}

#[test]
fn random_walks_keep_a_whole_checkpoint() {
    for seed in 0..3000 {
        let ranks = 3 + seed as usize % 3;
        let bounds = Bounds {
            ranks,
            epochs: 6,
            crashes: 5,
            failed_votes: 2,
            tolerance: 1 + seed as usize % (ranks - 1),
            ..SMALL
        };
        assert_eq!(wander(&bounds, seed).expect("whole"), bounds.epochs, "seed {seed} got stuck");
    }
}

#[test]
fn the_checks_catch_each_broken_rule() {
    let bugs = [Bug::BeginsBeforeCommit, Bug::CommitsBeforeVote, Bug::AcceptsBeforeBegin, Bug::ForgetsStaged];
    for bug in bugs {
        let found = exhaust(&Bounds { bug, epochs: 3, ..SMALL }).expect_err("all interleavings find it");
        println!("{bug:?}: {}", found.lines().next().unwrap_or_default());
        let bounds = Bounds { bug, epochs: 6, crashes: 4, tolerance: 2, ..SMALL };
        let found = (0..20_000).find(|seed| wander(&bounds, *seed).is_err());
        println!("{bug:?}: found by the walk of seed {:?}", found.expect("random walks find it, too"));
    }
}
