//! A small job in one value: ledgers, what their memory really holds, what is under way between them, and every step that
//! could come next.
//!
//! Its ranks do what those of `checkpointer/staging.rs` and `checkpointer/restoring.rs` do. A rank begins an epoch, copies
//! its state and tells the others. When all have told, it runs its exchange: it sends each other rank a block, and writes
//! theirs. Then it votes, and knows the outcome when all votes are in. If a rank dies meanwhile, some know it, and
//! others are interrupted. After a repair the lost are rebuilt, and then each rank goes on. On disk a rank writes a file
//! instead of blocks, and rank 0 completes the set between vote and commit ([`files`]). Where memory is to be saved its state is its
//! copy until then, as in `checkpointer/live.rs`.
//!
//! Messages and crashes come in any order. In *every* state reached the checker asks: if the survivors compared their
//! reports now, would each hold all of what they choose, in one version, and not too old?

mod files;
mod search;

use self::files::Files;
use super::{Event, Ledger, Report, State, choose};

/// A rule of the protocol that is switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Bug {
    None,
    /// A staged rank begins the next epoch without waiting for the vote.
    BeginsBeforeCommit,
    /// A rank commits as soon as it has staged.
    CommitsBeforeVote,
    /// Blocks are written where they belong as soon as their owner has made its copy, whatever is done there.
    WritesUnasked,
    /// Blocks that were sent before a repair are read after it.
    ReadsOldGeneration,
    /// A rank that votes no has not read the blocks that were sent to it.
    LeavesBlocks,
    /// A rank takes up work after an interruption though it does not know the outcome of the vote.
    ForgetsStaged,
    /// On disk, ranks commit before there is a manifest.
    CommitsBeforeManifest,
    /// On disk, a rank writes its file before it has heard from all the others.
    OverwritesUnheard,
    /// A rank with one own copy writes its state over it when it votes.
    CopiesBeforeCommit,
    /// A rank with one own copy has written its state over it after a failure, and does not count that as committed.
    CopiesWithoutCommit,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Life {
    Whole,
    /// It has died; what takes its place has nothing yet.
    Lost,
    /// It has got everything again, and waits until all have.
    Rebuilt,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Node {
    life: Life,
    ledger: Ledger,
    slots: [Slot; 2],
    /// What its state is, which is its only copy of what it stages.
    live: Option<Content>,
    /// It has begun the exchange of the epoch that it stages; on disk, it has written its file.
    exchanges: bool,
    /// Counts failed votes and repairs: work after one of them is another attempt.
    attempt: u8,
}

/// What ranks have sent in this generation; that of the dead arrives, too.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Wires {
    /// By rank the newest content that it has told the others of.
    told: Vec<Option<Content>>,
    /// `blocks[to][from]` is on its way.
    blocks: Vec<Slot>,
    /// By rank its newest vote.
    votes: Vec<Option<(Content, bool)>>,
    /// The newest set that rank 0 has said to be complete.
    complete: Option<Content>,
}

/// What the model may do, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Bounds {
    ranks: usize,
    epochs: u32,
    crashes: u8,
    failed_votes: u8,
    /// Ranks that may be lost at the same time.
    tolerance: usize,
    on_disk: bool,
    /// Ranks have one own copy.
    saves_memory: bool,
    bug: Bug,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Job {
    nodes: Vec<Node>,
    wires: Wires,
    /// In place of blocks.
    files: Option<Files>,
    saves_memory: bool,
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
    Exchange(usize),
    Receive {
        at: usize,
        from: usize,
    },
    Vote(usize, bool),
    /// Rank 0 writes the manifest.
    Complete(Content),
    /// Rank 0 says so.
    Tell(Content),
    Learn(usize, bool),
    Crash(usize),
    Interrupt(usize),
    Repair,
    /// Rank 0 removes the sets that were given up.
    GiveUp,
    /// A rank writes its state, which is that of the chosen epoch, over its own copy.
    Copy(usize),
    Rebuild(usize),
    Restore(usize),
}

impl Wires {
    fn new(ranks: usize) -> Self {
        let nothing = vec![None; ranks];
        let (told, votes) = (nothing.clone(), vec![None; ranks]);
        Self { told, blocks: vec![nothing; ranks], votes, complete: None }
    }

    /// The outcome of the vote on `content`, when all votes are in.
    fn outcome(&self, content: Content) -> Option<bool> {
        let vote = |vote: &Option<(Content, bool)>| vote.filter(|(about, _)| *about == content);
        self.votes.iter().map(vote).try_fold(true, |all, vote| Some(all & vote?.1))
    }
}

impl Node {
    /// The epoch that is being staged or voted on, in this attempt.
    fn content(&self) -> Option<Content> {
        match self.ledger.state() {
            State::Staging(epoch) | State::Staged(epoch) => Some(Content { epoch, attempt: self.attempt }),
            State::Idle | State::Interrupted(_) => None,
        }
    }

    fn is_interrupted(&self) -> bool {
        matches!(self.ledger.state(), State::Interrupted(_))
    }

    /// Whether it has nothing under way: it waits for a repair, or for a restore.
    fn is_ready(&self) -> bool {
        self.life != Life::Whole || self.is_interrupted()
    }

    fn slot(&self, epoch: u32) -> &Slot {
        &self.slots[epoch as usize % 2]
    }

    /// What rank `r`, which this is, has of the state at `epoch`, and of what the others gave it then.
    fn held(&self, r: usize, epoch: u32) -> Slot {
        let mut held = self.slot(epoch).clone();
        held[r] = held[r].or(self.live.filter(|live| live.epoch == epoch));
        held
    }

    /// As rank `r`: the state is written over the only copy.
    fn copy(&mut self, r: usize) {
        if let Some(live) = self.live.take() {
            self.slots.iter_mut().for_each(|slot| slot[r] = None);
            self.slots[live.epoch as usize % 2][r] = Some(live);
        }
    }

    fn apply(&mut self, event: Event) {
        self.ledger.apply(event).expect("the model offers legal events only");
    }
}

impl Job {
    fn new(bounds: &Bounds) -> Self {
        let slots = [vec![None; bounds.ranks], vec![None; bounds.ranks]];
        let ledger = Ledger { bug: bounds.bug, ..Ledger::new(1) };
        let node = Node { life: Life::Whole, ledger, slots, live: None, exchanges: false, attempt: 0 };
        Self {
            nodes: vec![node; bounds.ranks],
            wires: Wires::new(bounds.ranks),
            files: bounds.on_disk.then(|| Files::new(bounds.ranks)),
            saves_memory: bounds.saves_memory,
            restoring: None,
            floor: 0,
            crashes: bounds.crashes,
            failed_votes: bounds.failed_votes,
        }
    }

    /// Whether a repair is due: some rank is lost and nothing has been chosen for it yet.
    fn broken(&self) -> bool {
        self.restoring.is_none() && self.nodes.iter().any(|node| node.life != Life::Whole)
    }

    fn steps(&self, bounds: &Bounds) -> Vec<Step> {
        let mut steps = Vec::new();
        for (r, node) in self.nodes.iter().enumerate() {
            if node.life == Life::Whole {
                self.steps_of_a_checkpoint(r, bounds, &mut steps);
            }
            self.steps_of_a_failure(r, bounds, &mut steps);
        }
        if self.broken() && self.nodes.iter().all(Node::is_ready) {
            steps.push(Step::Repair);
        }
        if self.has_to_give_up() {
            steps.push(Step::GiveUp);
        }
        steps
    }

    /// What rank `r` can do next of `checkpointer/staging.rs`.
    fn steps_of_a_checkpoint(&self, r: usize, bounds: &Bounds, steps: &mut Vec<Step>) {
        let (node, told) = (&self.nodes[r], &self.wires.told);
        match node.ledger.state() {
            State::Idle if node.ledger.next_epoch() <= bounds.epochs => steps.push(Step::Begin(r)),
            State::Staged(epoch) if bounds.bug == Bug::BeginsBeforeCommit && epoch < bounds.epochs => {
                steps.push(Step::Begin(r));
            }
            _ => {}
        }
        if bounds.bug == Bug::WritesUnasked {
            let comes = |from: &usize| {
                let content = told[*from].filter(|_| *from != r);
                content.is_some_and(|content| node.slot(content.epoch)[*from] != Some(content))
            };
            steps.extend((0..told.len()).filter(comes).map(|from| Step::Receive { at: r, from }));
        }
        if let Some(content) = node.content() {
            if matches!(node.ledger.state(), State::Staging(_)) {
                self.steps_of_an_exchange(r, content, bounds, steps);
            }
            self.steps_of_an_outcome(r, content, bounds, steps);
        }
    }

    /// What it can do while it stages `content`: up to its vote.
    fn steps_of_an_exchange(&self, r: usize, content: Content, bounds: &Bounds, steps: &mut Vec<Step>) {
        let (node, Wires { told, blocks, votes, .. }) = (&self.nodes[r], &self.wires);
        let all_told = told.iter().all(|told| *told == Some(content));
        if !node.exchanges && (all_told || bounds.bug == Bug::OverwritesUnheard) {
            steps.push(Step::Exchange(r));
        }
        let slot = node.slot(content.epoch);
        let comes = |from: &usize| {
            node.exchanges && *from != r && slot[*from].is_none() && blocks[r][*from].is_some()
        };
        steps.extend((0..slot.len()).filter(comes).map(|from| Step::Receive { at: r, from }));
        if votes[r].is_some_and(|(about, _)| about == content) {
            return;
        }
        let held = node.held(r, content.epoch);
        let is_done = node.exchanges && (self.files.is_some() || held.iter().all(Option::is_some));
        if is_done {
            steps.push(Step::Vote(r, true));
        }
        if self.failed_votes > 0 && (is_done || node.exchanges && bounds.bug == Bug::LeavesBlocks) {
            steps.push(Step::Vote(r, false));
        }
    }

    /// What it can do when all votes on `content` are in.
    fn steps_of_an_outcome(&self, r: usize, content: Content, bounds: &Bounds, steps: &mut Vec<Step>) {
        let Some(passed) = self.wires.outcome(content) else { return };
        match &self.files {
            Some(files) if passed && self.wires.complete != Some(content) => {
                let is_complete = files.is_complete(content);
                if r == 0 && !is_complete {
                    steps.push(Step::Complete(content));
                }
                if r == 0 && (is_complete || bounds.bug == Bug::CommitsBeforeManifest) {
                    steps.push(Step::Tell(content));
                }
            }
            _ => steps.push(Step::Learn(r, passed)),
        }
    }

    /// What can happen to rank `r` when ranks die, and what it can do next of `checkpointer/restoring.rs`.
    fn steps_of_a_failure(&self, r: usize, bounds: &Bounds, steps: &mut Vec<Step>) {
        let node = &self.nodes[r];
        let lost = self.nodes.iter().filter(|node| node.life != Life::Whole).count();
        let may_die = match node.life {
            Life::Whole => lost < bounds.tolerance,
            Life::Rebuilt => true,
            Life::Lost => false,
        };
        if may_die && self.crashes > 0 {
            steps.push(Step::Crash(r));
        }
        if self.broken() && node.life == Life::Whole && !node.is_interrupted() {
            steps.push(Step::Interrupt(r));
        }
        let all_rebuilt = self.nodes.iter().all(|node| node.life != Life::Lost);
        let all_copied = self.nodes.iter().all(|node| !self.has_to_copy(node));
        if self.has_to_copy(node) {
            steps.push(Step::Copy(r));
        }
        if self.restoring.is_some() && node.life == Life::Lost && all_copied {
            steps.push(Step::Rebuild(r));
        }
        if self.restoring.is_some() && node.is_interrupted() && all_rebuilt && !self.has_to_give_up() {
            steps.push(Step::Restore(r));
        }
    }

    /// Whether the state of a survivor is what was chosen, and not in its copy yet.
    fn has_to_copy(&self, node: &Node) -> bool {
        let is_chosen = node.live.is_some_and(|live| Some(live.epoch) == self.restoring);
        node.life == Life::Whole && node.is_interrupted() && is_chosen
    }

    /// Rank 0 has something to remove before anybody is restored.
    fn has_to_give_up(&self) -> bool {
        let has_newer = |epoch| self.files.as_ref().is_some_and(|files| files.has_newer_than(epoch));
        self.nodes.iter().all(Node::is_ready) && self.restoring.is_some_and(has_newer)
    }

    fn take(&mut self, step: Step, bug: Bug) {
        match step {
            Step::Begin(r) => self.begin(r),
            Step::Exchange(r) => self.exchange(r),
            Step::Receive { at, from } if bug == Bug::WritesUnasked => {
                let content = self.wires.told[from].expect("told");
                self.nodes[at].slots[content.epoch as usize % 2][from] = Some(content);
            }
            Step::Receive { at, from } => {
                let content = self.nodes[at].content().expect("only while staging");
                let block = self.wires.blocks[at][from].take();
                self.nodes[at].slots[content.epoch as usize % 2][from] = block;
            }
            Step::Vote(r, yes) => {
                self.vote(r, yes);
                if bug == Bug::CopiesBeforeCommit {
                    self.nodes[r].copy(r);
                }
            }
            Step::Copy(r) => {
                self.nodes[r].copy(r);
                if bug != Bug::CopiesWithoutCommit {
                    let chosen = self.restoring.expect("a repair has chosen");
                    self.nodes[r].apply(Event::CommittedElsewhere(chosen));
                }
            }
            Step::Complete(content) => self.files.as_mut().expect("on disk").complete(content),
            Step::Tell(content) => self.wires.complete = Some(content),
            Step::Learn(r, passed) => self.learn(r, passed),
            Step::Crash(r) => self.crash(r),
            Step::Interrupt(r) => self.nodes[r].apply(Event::Interrupted),
            Step::Repair => self.repair(bug),
            Step::GiveUp => {
                let chosen = self.restoring.expect("a repair has chosen");
                self.files.as_mut().expect("on disk").give_up_after(chosen);
            }
            Step::Rebuild(r) => self.rebuild(r),
            Step::Restore(r) => self.restore(r),
        }
        let all = self.nodes.iter().map(|node| node.ledger.committed).min().unwrap_or(0);
        self.floor = self.floor.max(all);
    }

    /// The slot is torn from here on; the own copy is made at once, where there is another one. There is none before the first commit.
    fn begin(&mut self, r: usize) {
        let saves_memory = self.saves_memory;
        let node = &mut self.nodes[r];
        let epoch = match node.ledger.state() {
            State::Staged(epoch) => epoch + 1,
            _ => node.ledger.next_epoch(),
        };
        node.apply(Event::Begin(epoch));
        node.exchanges = false;
        let content = node.content();
        let slot = &mut node.slots[epoch as usize % 2];
        slot.fill(None);
        if saves_memory && epoch > 1 {
            node.live = content;
        } else {
            slot[r] = content;
        }
        self.wires.told[r] = content;
    }

    fn exchange(&mut self, r: usize) {
        self.nodes[r].exchanges = true;
        let content = self.nodes[r].content().expect("only while staging");
        match &mut self.files {
            Some(files) => files.stage(r, content),
            None => {
                let others = self.wires.blocks.iter_mut().enumerate().filter(|(to, _)| *to != r);
                others.for_each(|(_, blocks)| blocks[r] = Some(content));
            }
        }
    }

    fn vote(&mut self, r: usize, yes: bool) {
        let content = self.nodes[r].content().expect("only while staging");
        self.wires.votes[r] = Some((content, yes));
        self.failed_votes -= u8::from(!yes);
        if yes {
            self.nodes[r].apply(Event::Staged(content.epoch));
        }
    }

    fn learn(&mut self, r: usize, passed: bool) {
        let node = &mut self.nodes[r];
        let Content { epoch, .. } = node.content().expect("voted on");
        node.apply(if passed { Event::VotePassed(epoch) } else { Event::VoteFailed(epoch) });
        if passed {
            node.copy(r);
        }
        node.live = None;
        node.attempt += u8::from(!passed);
        node.exchanges = false;
    }

    fn crash(&mut self, r: usize) {
        let (ranks, node) = (self.nodes.len(), &mut self.nodes[r]);
        *node = Node {
            life: Life::Lost,
            ledger: Ledger { bug: node.ledger.bug, ..Ledger::replacement(1) },
            slots: [vec![None; ranks], vec![None; ranks]],
            live: None,
            exchanges: false,
            attempt: 0,
        };
        self.crashes -= 1;
        self.restoring = None;
    }

    /// All are ready: the next generation begins, with new links.
    fn repair(&mut self, bug: Bug) {
        let chosen = self.choice();
        self.restoring = Some(chosen);
        let attempt = self.nodes.iter().map(|node| node.attempt).max().unwrap_or(0) + 1;
        for node in &mut self.nodes {
            node.attempt = attempt;
            node.exchanges = false;
            // A state of another epoch is written over by that of the chosen one.
            node.live = node.live.filter(|live| live.epoch == chosen);
            if node.life == Life::Rebuilt {
                node.life = Life::Lost;
            }
        }
        let before = std::mem::replace(&mut self.wires, Wires::new(self.nodes.len()));
        if bug == Bug::ReadsOldGeneration {
            self.wires.blocks = before.blocks;
        }
    }

    fn rebuild(&mut self, r: usize) {
        let epoch = self.restoring.expect("a repair has chosen");
        let held = match &self.files {
            _ if epoch == 0 => vec![None; self.nodes.len()],
            Some(files) => {
                let mut slot = vec![None; self.nodes.len()];
                slot[r] = files.whole(epoch);
                slot
            }
            None => {
                let holder = self.nodes.iter().find(|node| node.life == Life::Whole).expect("a survivor");
                holder.slot(epoch).clone()
            }
        };
        let node = &mut self.nodes[r];
        node.slots[epoch as usize % 2] = held;
        node.life = Life::Rebuilt;
        node.apply(Event::Interrupted);
    }

    fn restore(&mut self, r: usize) {
        let epoch = self.restoring.expect("a repair has chosen");
        self.nodes[r].life = Life::Whole;
        self.nodes[r].apply(Event::Restored(epoch));
        if !self.nodes.iter().any(Node::is_interrupted) {
            self.restoring = None;
        }
    }

    fn reports(&self) -> Vec<u64> {
        let report = |node: &Node| if node.life == Life::Whole { u64::from(node.ledger.report()) } else { 0 };
        self.nodes.iter().map(report).collect()
    }

    /// The epoch to restore; 0: from `init`.
    fn choice(&self) -> u32 {
        let reports = self.reports();
        let nobody_knows = reports.iter().all(|report| Report::from(*report).knows_nothing());
        match &self.files {
            Some(files) if nobody_knows => files.newest(),
            _ => choose(&reports).epoch.unwrap_or(0),
        }
    }

    /// Invariant 4, in this very state.
    fn check(&self) -> Result<(), String> {
        let survivors = || self.nodes.iter().enumerate().filter(|(_, node)| node.life == Life::Whole);
        let epoch = self.choice();
        if epoch < self.floor {
            return Err(format!("all have committed {}, {epoch} is chosen", self.floor));
        }
        if let Some((r, node)) = survivors().find(|(_, node)| node.ledger.committed > epoch) {
            return Err(format!("rank {r} has committed {}, {epoch} is chosen", node.ledger.committed));
        }
        if let Some(files) = &self.files {
            return self.check_files(files, epoch);
        }
        if epoch == 0 {
            return Ok(());
        }
        let holders = choose(&self.reports()).holders;
        let (first, node) = survivors().next().expect("somebody has committed");
        let version = node.held(first, epoch)[first];
        for (r, node) in survivors() {
            if !holders[r] {
                return Err(format!("epoch {epoch} is chosen, rank {r} says it does not hold it"));
            }
            let slot = node.held(r, epoch);
            if slot
                .iter()
                .any(|piece| *piece != version || piece.is_none_or(|content| content.epoch != epoch))
            {
                return Err(format!("epoch {epoch} is chosen, rank {r} holds {slot:?}"));
            }
        }
        Ok(())
    }

    /// The set of `epoch`, which is chosen now, is whole, and what survivors have in memory is the same; and should all die
    /// now, nothing is lost that somebody has committed.
    fn check_files(&self, files: &Files, epoch: u32) -> Result<(), String> {
        let committed = self.nodes.iter().map(|node| node.ledger.committed).max().unwrap_or(0);
        if files.newest() < committed {
            return Err(format!("epoch {committed} is committed, the disk has {}", files.newest()));
        }
        if epoch == 0 {
            return Ok(());
        }
        let Some(content) = files.whole(epoch) else {
            return Err(format!("epoch {epoch} is chosen, the disk does not have it"));
        };
        for (r, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.life == Life::Whole) {
            if node.slot(epoch)[r] != Some(content) {
                return Err(format!("epoch {epoch} is chosen, rank {r} holds {:?}", node.slot(epoch)[r]));
            }
        }
        Ok(())
    }
}
