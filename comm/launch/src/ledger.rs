//! The account of a job, for reports: failures and repairs, what the ranks have to say at the end, who was refused.

use std::collections::BTreeMap;
use std::time::Duration;

use ft_comm::time::Time;
use ft_proto::arbiter::Event;
use ft_proto::fault::{CutSpec, KillSpec};
use ft_proto::rank::{Generation, Rank};

/// Ranks that were lost together, and what it took to go on.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The ranks.
    pub ranks: Vec<Rank>,
    /// The point of the injected failure, or how the loss was noticed.
    pub point: String,
    /// From the kill to its notice, for injected failures.
    pub detect: Option<Duration>,
    /// From the notice to the next generation: agreement, and replacements if there are any.
    pub repair: Option<Duration>,
    /// From the notice to the moment when the last survivor had stopped using the old generation; part of `repair`.
    pub agree: Option<Duration>,
    /// From the notice to the moment when the last replacement had joined; part of `repair`. None if nobody was replaced.
    pub respawn: Option<Duration>,
    /// Ranks that somebody holds after the repair, by their numbers at the start of the job; none if it did not end.
    pub held: Option<Vec<Rank>>,
    /// The generation that the repair starts.
    pub generation: Option<Generation>,
    /// From the next generation to the moment when all ranks work again.
    pub restore: Option<Duration>,
    /// Steps that had to be done again.
    pub steps_lost: u64,
    /// Spare hosts on which replacements were started.
    pub spare_hosts: Vec<String>,
}

impl Failure {
    /// Whether the others went on without the lost ranks.
    pub fn is_final(&self) -> bool {
        self.held.as_ref().is_some_and(|held| !self.ranks.iter().any(|rank| held.contains(rank)))
    }
}

/// An injected failure.
#[derive(Debug)]
enum Strike {
    /// By its position on the command line.
    Spec(usize),
    /// A cut, by its position among those.
    Cut(usize),
    /// A random kill of this rank.
    Random(Rank),
}

/// A failure that has struck. It costs a rank once: what happens to the replacement has another cause.
#[derive(Debug)]
struct Struck {
    strike: Strike,
    at: Time,
    /// Ranks that it has cost.
    lost: Vec<Rank>,
}

#[derive(Debug)]
struct Entry {
    ranks: Vec<Rank>,
    point: String,
    struck: Option<Time>,
    lost: Time,
    agreed: Option<Time>,
    respawned: Option<Time>,
    decided: Option<Time>,
    generation: Option<Generation>,
    held: Option<Vec<Rank>>,
    resumed: Option<Time>,
    steps_lost: u64,
    spare_hosts: Vec<String>,
}

impl Entry {
    fn new(rank: Rank, point: String, struck: Option<Time>, lost: Time) -> Self {
        Self {
            ranks: vec![rank],
            point,
            struck,
            lost,
            agreed: None,
            respawned: None,
            decided: None,
            generation: None,
            held: None,
            resumed: None,
            steps_lost: 0,
            spare_hosts: vec![],
        }
    }

    /// One more rank is lost before the repair has ended.
    fn add(&mut self, rank: Rank, point: &str) {
        if !self.ranks.contains(&rank) {
            self.ranks.push(rank);
            self.ranks.sort_unstable();
        }
        // A cause may have commas of its own, as the message of a panic.
        let is_known = self.point.split(", ").any(|known| known == point)
            || point.contains(", ") && self.point.contains(point);
        if !is_known {
            self.point = format!("{}, {point}", self.point);
        }
    }
}

#[derive(Debug)]
pub(super) struct Ledger {
    kills: Vec<KillSpec>,
    cuts: Vec<CutSpec>,
    struck: Vec<Struck>,
    entries: Vec<Entry>,
    outputs: Vec<Vec<u8>>,
    accounts: Accounts,
    refused: u64,
    saved: SavedFiles,
    hosts_back: BTreeMap<String, u32>,
    agents_back: BTreeMap<String, u32>,
    headway: Headway,
}

/// What a process had said of a generation when it was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastAccount {
    /// Its rank.
    pub rank: Rank,
    /// What it gave to [`World::account`](ft_comm::World::account) last in that generation.
    pub account: Vec<u8>,
}

/// What processes have said of each generation, for those that do not come to their end.
#[derive(Debug, Default)]
struct Accounts {
    heard: BTreeMap<(Rank, Generation), Vec<u8>>,
    /// The generation in which a rank was lost last. What is of it, or of earlier ones, was said by processes that are gone, whenever it has come.
    lost: BTreeMap<Rank, Generation>,
}

impl Accounts {
    fn hear(&mut self, rank: Rank, generation: Generation, account: &[u8]) {
        self.heard.insert((rank, generation), account.to_vec());
    }

    fn lose(&mut self, rank: Rank, generation: Generation) {
        self.lost.insert(rank, generation);
    }

    /// Of processes that are gone, or of all.
    fn take(&mut self, of_all: bool) -> Vec<LastAccount> {
        let heard = std::mem::take(&mut self.heard).into_iter();
        let is_due = |rank: &Rank, generation: &Generation| {
            of_all || self.lost.get(rank).is_some_and(|lost| generation <= lost)
        };
        heard
            .filter(|((rank, generation), _)| is_due(rank, generation))
            .map(|((rank, _), account)| LastAccount { rank, account })
            .collect()
    }
}

/// How far the work is.
#[derive(Debug, Default)]
pub(super) struct Headway {
    /// How often each rank has made progress that no failure will undo.
    marks: BTreeMap<Rank, u64>,
    /// The number of the newest such progress.
    pub(super) newest: Option<u64>,
    /// Thousandths of the work that are done, if somebody has said so.
    pub(super) done: Option<u16>,
    /// A line about it.
    pub(super) line: Option<String>,
}

impl Headway {
    fn mark(&mut self, rank: Rank, number: u64) {
        *self.marks.entry(rank).or_default() += 1;
        self.newest = Some(number);
    }

    /// How often all have made progress that no failure will undo: a rank that was lost may have missed some.
    pub(super) fn commits(&self) -> u64 {
        self.marks.values().copied().max().unwrap_or(0)
    }
}

/// What the job has written to files for one that resumes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedFiles {
    /// Checkpoints that all ranks have written.
    pub whole: u64,
    /// The number of the newest one.
    pub newest: Option<u32>,
    /// How often a rank could not write its file.
    pub failed: u64,
}

impl Ledger {
    pub(super) fn new(kills: Vec<KillSpec>, cuts: Vec<CutSpec>) -> Self {
        Self {
            kills,
            cuts,
            struck: vec![],
            entries: vec![],
            outputs: vec![],
            accounts: Accounts::default(),
            refused: 0,
            saved: SavedFiles::default(),
            hosts_back: BTreeMap::new(),
            agents_back: BTreeMap::new(),
            headway: Headway::default(),
        }
    }

    pub(super) fn record(&mut self, now: Time, event: &Event) {
        match event {
            Event::Struck { spec } => self.strike(now, Strike::Spec(*spec)),
            Event::Cut { spec } => self.strike(now, Strike::Cut(*spec)),
            Event::RandomKill { rank } => self.strike(now, Strike::Random(*rank)),
            Event::Lost { rank, cause, generation } => {
                generation.iter().for_each(|generation| self.accounts.lose(*rank, *generation));
                self.lose(now, *rank, cause);
            }
            // The last time counts: another loss makes a repair start again.
            Event::Agreed => self.open().for_each(|entry| entry.agreed = Some(now)),
            Event::Respawned => self.open().for_each(|entry| entry.respawned = Some(now)),
            Event::Decided { generation, held, .. } => self.decide(now, *generation, held),
            Event::Resumed { steps_lost, .. } => {
                for entry in self.entries.iter_mut().filter(|e| e.decided.is_some() && e.resumed.is_none()) {
                    (entry.resumed, entry.steps_lost) = (Some(now), *steps_lost);
                }
            }
            Event::Account { rank, generation, account } => {
                self.accounts.hear(*rank, *generation, account);
            }
            Event::Finished { outputs } => self.outputs.clone_from(outputs),
            Event::Refused { count } => self.refused += count,
            Event::HostBack { name, is_new: false } => *self.hosts_back.entry(name.clone()).or_default() += 1,
            Event::AgentBack { name } => *self.agents_back.entry(name.clone()).or_default() += 1,
            Event::Saved { saved, .. } => match saved.error {
                None => {
                    self.saved.whole += 1;
                    self.saved.newest = Some(saved.number);
                }
                Some(_) => self.saved.failed += 1,
            },
            Event::Marked { rank, number } => self.headway.mark(*rank, *number),
            Event::Progress { done, line, .. } => {
                self.headway.done = done.or(self.headway.done);
                self.headway.line = Some(line.clone());
            }
            Event::Activity { .. }
            | Event::Spares { .. }
            | Event::HostBack { .. }
            | Event::HostLost { .. }
            | Event::Silent { .. }
            | Event::HeardAgain { .. }
            | Event::Stalled { .. } => {}
        }
    }

    /// A rank was given to a process, which is on this spare host if on one.
    pub(super) fn stands_on(&mut self, spare_host: Option<&str>) {
        let Some(host) = spare_host else { return };
        for entry in self.open() {
            if !entry.spare_hosts.iter().any(|known| known == host) {
                entry.spare_hosts.push(host.to_owned());
            }
        }
    }

    fn strike(&mut self, now: Time, strike: Strike) {
        self.struck.push(Struck { strike, at: now, lost: vec![] });
    }

    /// A rank is lost: the repair under way is its repair too, or one starts.
    fn lose(&mut self, now: Time, rank: Rank, cause: &str) {
        let (point, struck) = match self.blame(rank) {
            Some((point, at)) => (point, Some(at)),
            None => (cause.to_owned(), None),
        };
        match self.entries.iter_mut().find(|entry| entry.decided.is_none()) {
            Some(entry) => entry.add(rank, &point),
            None => self.entries.push(Entry::new(rank, point, struck, now)),
        }
    }

    /// The injected failure that has cost this rank, if one has: its point, and when it struck.
    fn blame(&mut self, rank: Rank) -> Option<(String, Time)> {
        let (kills, cuts) = (&self.kills, &self.cuts);
        let struck = self.struck.iter_mut().rev().find(|struck| {
            let names = match struck.strike {
                Strike::Spec(spec) => kills[spec].ranks.contains(&rank),
                Strike::Cut(cut) => cuts[cut].ranks().any(|named| named == rank),
                Strike::Random(victim) => victim == rank,
            };
            names && !struck.lost.contains(&rank)
        })?;
        struck.lost.push(rank);
        let point = match struck.strike {
            Strike::Spec(spec) => kills[spec].point.to_string(),
            Strike::Cut(cut) => cuts[cut].point.to_string(),
            Strike::Random(_) => "random".into(),
        };
        Some((point, struck.at))
    }

    fn decide(&mut self, now: Time, generation: Generation, held: &[Rank]) {
        for entry in self.open() {
            (entry.decided, entry.generation) = (Some(now), Some(generation));
            entry.held = Some(held.to_vec());
            if !entry.ranks.iter().any(|rank| held.contains(rank)) {
                entry.respawned = None;
            }
            // At the start of the job there is nothing to restore.
            if generation == 0 {
                entry.resumed = Some(now);
            }
        }
    }

    /// Entries whose repair is under way.
    fn open(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut().filter(|entry| entry.decided.is_none())
    }

    pub(super) fn saved(&self) -> &SavedFiles {
        &self.saved
    }

    /// Hosts that were lost and have come back, and how often.
    pub(super) fn hosts_back(&self) -> &BTreeMap<String, u32> {
        &self.hosts_back
    }

    /// Hosts that got another agent in the place of a dead one, and how often.
    pub(super) fn agents_back(&self) -> &BTreeMap<String, u32> {
        &self.agents_back
    }

    /// Connections that ranks have refused.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    /// What the ranks had to say when all were done; nothing if they were not.
    pub(super) fn take_outputs(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.outputs)
    }

    /// What processes had said that could not report at their end: those that were lost, and all where the job was not done.
    pub(super) fn take_accounts(&mut self) -> Vec<LastAccount> {
        self.accounts.take(self.outputs.is_empty())
    }

    /// How far the work is.
    pub(super) fn headway(&self) -> &Headway {
        &self.headway
    }

    pub(super) fn failures(&self) -> Vec<Failure> {
        let failure = |entry: &Entry| Failure {
            ranks: entry.ranks.clone(),
            point: entry.point.clone(),
            detect: entry.struck.map(|struck| entry.lost.since(struck)),
            repair: entry.decided.map(|decided| decided.since(entry.lost)),
            agree: entry.agreed.map(|agreed| agreed.since(entry.lost)),
            respawn: entry.respawned.map(|respawned| respawned.since(entry.lost)),
            generation: entry.generation,
            held: entry.held.clone(),
            restore: entry.resumed.zip(entry.decided).map(|(resumed, decided)| resumed.since(decided)),
            steps_lost: entry.steps_lost,
            spare_hosts: entry.spare_hosts.clone(),
        };
        self.entries.iter().map(failure).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_a_failure_into_its_phases() {
        let mut ledger = Ledger::new(vec!["2@step=4".parse().unwrap()], vec![]);
        let lost = |rank| Event::Lost { rank, cause: "killed by signal 9".into(), generation: Some(0) };
        ledger.record(Time(10), &Event::Struck { spec: 0 });
        ledger.record(Time(15), &lost(2));
        ledger.stands_on(Some("n9"));
        ledger.record(Time(17), &lost(1));
        [Some("n9"), None].into_iter().for_each(|host| ledger.stands_on(host));
        ledger.record(Time(21), &Event::Agreed);
        ledger.record(Time(29), &Event::Respawned);
        ledger.record(Time(30), &Event::Decided { generation: 1, failed: vec![1, 2], held: vec![0, 1, 2] });
        ledger.record(Time(50), &Event::Resumed { generation: 1, steps_lost: 3 });
        let [failure] = &ledger.failures()[..] else { panic!() };
        assert_eq!(failure.ranks, [1, 2]);
        assert_eq!(failure.point, "step=4, killed by signal 9");
        let nanos = |span: Option<Duration>| span.unwrap().as_nanos();
        assert_eq!((nanos(failure.detect), nanos(failure.repair), nanos(failure.restore)), (5, 15, 20));
        assert_eq!((nanos(failure.agree), nanos(failure.respawn)), (6, 14));
        assert_eq!((failure.generation, failure.steps_lost), (Some(1), 3));
        assert_eq!(failure.spare_hosts, ["n9"]);
        assert!(!failure.is_final());
    }

    #[test]
    fn whom_nobody_replaces_is_lost_for_good() {
        let mut ledger = Ledger::new(vec![], vec![]);
        let lost = Event::Lost { rank: 2, cause: "killed by signal 9".into(), generation: Some(0) };
        ledger.record(Time(10), &lost);
        let [failure] = &ledger.failures()[..] else { panic!() };
        assert!(!failure.is_final() && failure.repair.is_none());
        ledger.record(Time(12), &Event::Agreed);
        ledger.record(Time(12), &Event::Respawned);
        ledger.record(Time(13), &Event::Decided { generation: 1, failed: vec![2], held: vec![0, 1, 3] });
        let [failure] = &ledger.failures()[..] else { panic!() };
        assert!(failure.is_final() && failure.respawn.is_none());
        assert_eq!(failure.repair, Some(Duration::from_nanos(3)));
    }

    #[test]
    fn what_the_lost_had_said_is_kept() {
        let said =
            |rank, generation, account: u8| Event::Account { rank, generation, account: vec![account] };
        let lost = |rank| Event::Lost { rank, cause: "killed by signal 9".into(), generation: Some(1) };
        // The last word of the lost one comes late.
        let course = [said(1, 0, 1), said(1, 0, 2), said(2, 0, 3), lost(1), said(1, 1, 4), said(1, 2, 5)];
        let of = |is_done: bool| {
            let mut ledger = Ledger::new(vec![], vec![]);
            course.iter().for_each(|event| ledger.record(Time(1), event));
            if is_done {
                ledger.record(Time(2), &Event::Finished { outputs: vec![vec![6], vec![7], vec![8]] });
            }
            let kept = ledger.take_accounts().into_iter();
            kept.map(|LastAccount { rank, account }| (rank, account[0])).collect::<Vec<_>>()
        };
        assert_eq!(of(true), [(1, 2), (1, 4)], "the others report at their end");
        assert_eq!(of(false), [(1, 2), (1, 4), (1, 5), (2, 3)]);
    }

    #[test]
    fn a_failure_costs_a_rank_once() {
        let mut ledger = Ledger::new(vec!["1,2@step=4".parse().unwrap()], vec![]);
        let mut now = 0;
        let mut lose = |event: Event, ranks: &[Rank], cause: &str| {
            now += 10;
            ledger.record(Time(now), &event);
            for rank in ranks {
                let lost = Event::Lost { rank: *rank, cause: cause.into(), generation: Some(0) };
                ledger.record(Time(now + 5), &lost);
            }
            let failed = ranks.to_vec();
            let held = vec![0, 1, 2];
            ledger.record(Time(now + 7), &Event::Decided { generation: 1, failed, held });
        };
        lose(Event::Struck { spec: 0 }, &[1, 2], "killed by signal 9");
        lose(Event::RandomKill { rank: 2 }, &[2], "killed by signal 9");
        lose(Event::Agreed, &[2], "silent for 1 s");
        lose(Event::Agreed, &[1], "silent for 1 s");
        let told: Vec<_> = ledger.failures().into_iter().map(|f| (f.point, f.detect.is_some())).collect();
        let silent = || ("silent for 1 s".to_owned(), false);
        assert_eq!(told, [("step=4".into(), true), ("random".into(), true), silent(), silent()]);
    }
}
