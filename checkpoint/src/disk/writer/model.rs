//! The files of a job that is written beside its work, while ranks die at any moment, and all of them too.
//!
//! The order of what ranks do is that of the writer ([`steps`]), and which sets go is decided by what decides it there. All else is a
//! model: ranks commit one after the other, the checkpoint that a dead rank alone had committed is taken anew, a file appears or goes
//! at once, a folder goes file by file. After every step the checker reads the folder as a job would that is resumed now: there is
//! a whole set as soon as there was one, never an older one than before, and what it holds is of one attempt. At the end all ranks are
//! asked for what they have, each at a moment of its own: if nobody dies, the newest checkpoint of then is whole at last, or a newer one.

use std::collections::{BTreeMap, VecDeque};

use super::order::{Step, steps};
use crate::disk::sets::{Set, constant_of, given_up, newer_than, too_old};
use crate::region::StatePart;

/// A rule that is switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    /// Rank 0 writes the manifest before all files are there.
    CompletesEarly,
    /// Rank 0 waits for files, whatever is in them.
    TakesAnyFile,
    /// Sets that have no manifest count among those that are kept.
    CountsUnfinished,
    /// What a dead rank has left of a constant part stays.
    LeavesConstants,
    /// Each rank that is asked for a checkpoint writes its own next one, whatever the others do.
    AsksAlone,
    /// What was ordered before is given up for what is ordered now.
    WritesTheNewestAlone,
}

impl Bug {
    const ALL: [Self; 6] = [
        Self::CompletesEarly,
        Self::TakesAnyFile,
        Self::CountsUnfinished,
        Self::LeavesConstants,
        Self::AsksAlone,
        Self::WritesTheNewestAlone,
    ];
}

/// Of which attempt some bytes are: those of two attempts differ.
type Attempt = u32;

/// A committed checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Checkpoint {
    number: u32,
    attempt: Attempt,
    /// Of which its constant part is.
    constant: (u32, Attempt),
}

impl Checkpoint {
    fn part(&self, part: StatePart) -> (Set, Attempt) {
        match part {
            StatePart::Constant => (Set::Constant(self.constant.0), self.constant.1),
            StatePart::Variable => (Set::Epoch(self.number), self.attempt),
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Folder {
    shards: BTreeMap<usize, Attempt>,
    manifest: Option<Attempt>,
}

impl Folder {
    /// What all files hold, if they are what the manifest says.
    fn whole(&self, ranks: usize) -> Option<Attempt> {
        self.manifest.filter(|attempt| (0..ranks).all(|rank| self.shards.get(&rank) == Some(attempt)))
    }
}

type Files = BTreeMap<Set, Folder>;

fn all(files: &Files) -> Vec<Set> {
    files.keys().copied().collect()
}

/// One thing that happens to files at once.
#[derive(Clone, Copy, Debug)]
enum Act {
    Take(Step),
    RemoveManifest(Set),
    RemoveShard(Set, usize),
    RemoveFolder(Set),
}

/// As `Sets::remove`.
fn removal(sets: Vec<Set>, ranks: usize) -> impl DoubleEndedIterator<Item = Act> {
    sets.into_iter().flat_map(move |set| {
        let shards = (0..ranks).map(move |rank| Act::RemoveShard(set, rank));
        std::iter::once(Act::RemoveManifest(set)).chain(shards).chain([Act::RemoveFolder(set)])
    })
}

fn remove(files: &mut Files, act: Act) {
    match act {
        Act::RemoveManifest(set) => drop(files.get_mut(&set).and_then(|folder| folder.manifest.take())),
        Act::RemoveShard(set, rank) => {
            files.get_mut(&set).and_then(|folder| folder.shards.remove(&rank));
        }
        Act::RemoveFolder(set) => drop(files.remove(&set)),
        Act::Take(_) => {}
    }
}

/// As `Order` of the writer.
#[derive(Clone, Debug)]
struct Order {
    checkpoint: Checkpoint,
    is_agreed: bool,
    returns: u32,
    /// What is left to do.
    acts: VecDeque<Act>,
}

/// The writer of one rank.
#[derive(Clone, Debug, Default)]
struct Writer {
    orders: VecDeque<Order>,
    newest: Option<Checkpoint>,
    again: bool,
    asked: bool,
    returns: u32,
    under_way: Option<Order>,
}

impl Writer {
    fn is_idle(&self) -> bool {
        self.orders.is_empty() && self.under_way.is_none()
    }

    /// As `Desk::order`.
    fn order(&mut self, rank: usize, checkpoint: Checkpoint, is_agreed: bool, bug: Bug) {
        if is_agreed || bug == Bug::WritesTheNewestAlone {
            self.orders.clear();
        }
        if self.orders.iter().all(|order| order.checkpoint != checkpoint) {
            let mut acts: VecDeque<Act> = steps(rank).map(Act::Take).collect();
            if bug == Bug::CompletesEarly && rank == 0 {
                acts.make_contiguous()[2..].sort_by_key(|act| matches!(act, Act::Take(Step::Await)));
            }
            self.orders.push_back(Order { checkpoint, is_agreed, returns: self.returns, acts });
        }
    }

    fn is_in_vain(&self, order: &Order) -> bool {
        let is_newer = |other: &Order| other.is_agreed && other.checkpoint.number >= order.checkpoint.number;
        let mut of_now = self.orders.iter().filter(|other| other.returns == self.returns);
        order.returns != self.returns || of_now.any(is_newer)
    }

    /// As `Writer::committed`.
    fn committed(&mut self, rank: usize, checkpoint: Checkpoint, is_agreed: bool, bug: Bug) {
        if std::mem::take(&mut self.again) || is_agreed {
            self.order(rank, checkpoint, is_agreed, bug);
        }
        self.asked &= !is_agreed;
        self.newest = Some(checkpoint);
    }

    /// As `Shared::save`.
    fn request(&mut self, rank: usize, bug: Bug) {
        (self.again, self.asked) = (true, true);
        if let Some(newest) = self.newest {
            self.order(rank, newest, false, bug);
        }
    }

    /// As `Writer::restored`.
    fn restored(&mut self, number: u32) {
        self.returns += 1;
        self.newest = self.newest.filter(|newest| newest.number == number);
    }
}

#[derive(Clone, Debug)]
struct Job {
    bug: Bug,
    keep: usize,
    files: Files,
    writers: Vec<Writer>,
    /// Committed by all.
    last: Option<Checkpoint>,
    /// Committed by some, and whether it is to be written.
    next: Option<(Checkpoint, bool)>,
    has_next: Vec<bool>,
    /// The set from which the job was resumed.
    base: u32,
    attempts: Attempt,
    /// All that were committed by anybody, by number and attempt.
    known: BTreeMap<(u32, Attempt), Checkpoint>,
    /// The newest set that was ever whole.
    floor: u32,
}

impl Job {
    fn new(ranks: usize, keep: usize, bug: Bug) -> Self {
        Self {
            bug,
            keep,
            files: Files::new(),
            writers: vec![Writer::default(); ranks],
            last: None,
            next: None,
            has_next: vec![false; ranks],
            base: 0,
            attempts: 1,
            known: BTreeMap::new(),
            floor: 0,
        }
    }

    fn ranks(&self) -> usize {
        self.writers.len()
    }

    /// Something happens; `random` gives a number below another one.
    fn step(&mut self, random: &mut impl FnMut(u32) -> u32) {
        let rank = random(self.ranks() as u32) as usize;
        match random(64) {
            0 => self.die(1 << rank),
            1 => self.die(random(1 << self.ranks())),
            2 => self.all_die(random),
            3 => self.writers[rank].request(rank, self.bug),
            4..20 => self.commit(rank, random),
            _ => self.write(rank, random(32) == 0),
        }
    }

    /// A rank commits the checkpoint under way, or one is begun, as all have heard that all have committed the last.
    fn commit(&mut self, rank: usize, random: &mut impl FnMut(u32) -> u32) {
        if let Some((next, due)) = self.next {
            if !std::mem::replace(&mut self.has_next[rank], true) {
                self.writers[rank].committed(rank, next, due, self.bug);
            }
            if self.has_next.iter().all(|has| *has) {
                (self.last, self.next) = (Some(next), None);
            }
            return;
        }
        let (number, attempt) = (self.last.map_or(self.base, |last| last.number) + 1, self.attempts);
        let constant = self.last.filter(|_| random(4) > 0).map_or((number, attempt), |last| last.constant);
        let checkpoint = Checkpoint { number, attempt, constant };
        self.known.insert((number, attempt), checkpoint);
        let is_asked = self.bug != Bug::AsksAlone && self.writers.iter().any(|writer| writer.asked);
        self.next = Some((checkpoint, is_asked || random(2) == 0 && self.writers[0].is_idle()));
        self.has_next.fill(false);
    }

    /// All ranks are asked for what they have while the work goes on for a while, and nobody dies. Then the work stands, and what is
    /// ordered is written. What a replacement was restored with it does not write.
    fn save(&mut self, random: &mut impl FnMut(u32) -> u32) -> Result<(), String> {
        let is_held =
            |checkpoint: &Checkpoint| self.writers.iter().all(|writer| writer.newest == Some(*checkpoint));
        let newest = self.next.map(|(next, _)| next).or(self.last.filter(is_held));
        let due = newest.map_or(0, |newest| newest.number);
        let mut to_ask: Vec<usize> = (0..self.ranks()).collect();
        let mut left = random(60);
        while left > 0 || !to_ask.is_empty() || self.next.is_some() {
            left = left.saturating_sub(1);
            match random(4) {
                0 if !to_ask.is_empty() => {
                    let rank = to_ask.swap_remove(random(to_ask.len() as u32) as usize);
                    self.writers[rank].request(rank, self.bug);
                }
                1 | 2 if left > 0 || self.next.is_some() => {
                    self.commit(random(self.ranks() as u32) as usize, random);
                }
                _ => self.write(random(self.ranks() as u32) as usize, false),
            }
        }
        for _ in 0..100 {
            (0..self.ranks()).for_each(|rank| self.write(rank, false));
        }
        self.check()?;
        let is_there = self.floor >= due;
        if is_there {
            Ok(())
        } else {
            Err(format!("{due} was there to be written, the newest set is {}", self.floor))
        }
    }

    /// Those in `dead` die, and are replaced; if all are, nobody is left, and this does nothing.
    fn die(&mut self, dead: u32) {
        let is_dead = |rank: usize| dead & 1 << rank != 0;
        if (0..self.ranks()).all(is_dead) {
            return;
        }
        if let Some((next, _)) = self.next.take() {
            let is_known = (0..self.ranks()).any(|rank| self.has_next[rank] && !is_dead(rank));
            self.last = if is_known { Some(next) } else { self.last };
        }
        self.attempts += 1;
        let number = self.last.map_or(self.base, |last| last.number);
        for (rank, writer) in self.writers.iter_mut().enumerate() {
            if is_dead(rank) {
                *writer = Writer::default();
            } else {
                writer.restored(number);
            }
        }
    }

    /// The job is resumed from the newest whole set; that may be cut short, too. One that has left none begins anew.
    fn all_die(&mut self, random: &mut impl FnMut(u32) -> u32) {
        let (base, attempts) = (self.newest().map_or(0, |newest| newest.number), self.attempts + 1);
        let mut files = std::mem::take(&mut self.files);
        if base == 0 {
            files.clear();
        }
        let acts: Vec<Act> = removal(newer_than(&all(&files), base), self.ranks()).collect();
        let is_cut_short = random(2) == 0;
        let until = if is_cut_short { random(acts.len() as u32 + 1) as usize } else { acts.len() };
        acts[..until].iter().for_each(|act| remove(&mut files, *act));
        let new = Self::new(self.ranks(), self.keep, self.bug);
        let (known, floor) = (std::mem::take(&mut self.known), self.floor);
        *self = Self { files, base, attempts, known, floor, ..new };
        if is_cut_short {
            self.all_die(random);
        }
    }

    /// The writer of a rank does the next thing, or loses its patience if there is nothing to do but wait.
    fn write(&mut self, rank: usize, is_late: bool) {
        let ranks = self.ranks();
        let writer = &mut self.writers[rank];
        let Some(Order { checkpoint, acts, .. }) = &mut writer.under_way else {
            writer.under_way = writer.orders.pop_front();
            return;
        };
        let (checkpoint, files, bug) = (*checkpoint, &mut self.files, self.bug);
        let mut next = vec![];
        match acts.pop_front() {
            None => {
                writer.under_way = None;
                if rank == 0 {
                    writer.orders.retain(|other| other.checkpoint.number > checkpoint.number);
                }
            }
            Some(Act::Take(Step::Shard(part))) => {
                let (set, attempt) = checkpoint.part(part);
                files.entry(set).or_default().shards.insert(rank, attempt);
            }
            Some(Act::Take(Step::Await)) => {
                let is_there = |rank: usize, part: StatePart| {
                    let (set, attempt) = checkpoint.part(part);
                    let found = files.get(&set).and_then(|folder| folder.shards.get(&rank));
                    found.is_some_and(|found| *found == attempt || bug == Bug::TakesAnyFile)
                };
                if !(0..ranks).all(|rank| StatePart::BOTH.into_iter().all(|part| is_there(rank, part))) {
                    acts.push_front(Act::Take(Step::Await));
                    let order = writer.under_way.take().filter(|order| !is_late && !writer.is_in_vain(order));
                    writer.orders.extend(order);
                }
            }
            Some(Act::Take(Step::Forget)) if bug == Bug::LeavesConstants => {}
            Some(Act::Take(Step::Forget)) => {
                next = given_up(&all(files), checkpoint.constant.0, checkpoint.number);
            }
            Some(Act::Take(Step::Manifest(part))) => {
                let (set, attempt) = checkpoint.part(part);
                let manifest = &mut files.entry(set).or_default().manifest;
                if part == StatePart::Variable || manifest.is_none() {
                    *manifest = Some(attempt);
                }
            }
            Some(Act::Take(Step::Keep)) => {
                let counts = |folder: &Folder| folder.manifest.is_some() || bug == Bug::CountsUnfinished;
                let epoch = |(set, folder): (&Set, &Folder)| match *set {
                    Set::Epoch(number) => counts(folder).then_some(number),
                    Set::Constant(_) => None,
                };
                let newest_first: Vec<u32> = files.iter().rev().filter_map(epoch).collect();
                next = too_old(&all(files), &newest_first, self.keep);
            }
            Some(act) => remove(files, act),
        }
        if let Some(order) = &mut writer.under_way {
            removal(next, ranks).rev().for_each(|act| order.acts.push_front(act));
        }
    }

    /// The newest set that a job would be resumed from now, as it was taken.
    fn newest(&self) -> Option<Checkpoint> {
        self.files.keys().rev().find_map(|set| self.read(*set).map(|(checkpoint, _)| checkpoint))
    }

    /// A set, if it is whole, and the constant part that is taken for its own.
    fn read(&self, set: Set) -> Option<(Checkpoint, (u32, Attempt))> {
        let Set::Epoch(number) = set else { return None };
        let attempt = self.files[&set].whole(self.ranks())?;
        let first = constant_of(&all(&self.files), number)?;
        let constant = self.files[&Set::Constant(first)].whole(self.ranks())?;
        Some((self.known[&(number, attempt)], (first, constant)))
    }

    fn check(&mut self) -> Result<(), String> {
        for (checkpoint, constant) in self.files.keys().filter_map(|set| self.read(*set)) {
            if checkpoint.constant != constant {
                return Err(format!("{checkpoint:?} is read with the constant part {constant:?}"));
            }
        }
        let newest = self.newest().map_or(0, |newest| newest.number);
        if newest < self.floor {
            return Err(format!("set {} was whole, the newest is {newest} now", self.floor));
        }
        self.floor = newest;
        Ok(())
    }
}

/// Takes random steps; the same seed takes the same ones. Gives the number of the newest set that became whole.
fn wander(seed: u64, bug: Bug) -> Result<u32, String> {
    let mut word = seed;
    let mut random = move |below: u32| {
        // splitmix64: Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014
        word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % u64::from(below)) as u32
    };
    let mut job = Job::new(1 + seed as usize % 4, 1 + seed as usize / 4 % 3, bug);
    for step in 0..600 {
        job.step(&mut random);
        job.check().map_err(|text| format!("seed {seed}, step {step}: {text}\n{:#?}", job.files))?;
    }
    job.save(&mut random).map_err(|text| format!("seed {seed}, saved at the end: {text}\n{job:#?}"))?;
    Ok(job.floor)
}

#[test]
fn at_every_moment_after_the_first_whole_set_there_is_one() {
    let mut sets = 0;
    for seed in 0..5000 {
        sets += u64::from(wander(seed, Bug::None).unwrap_or_else(|text| panic!("{text}")) > 2);
    }
    assert!(sets > 3000, "only {sets} of 5000 jobs came to a third set");
}

#[test]
fn each_rule_that_is_switched_off_is_missed() {
    for bug in Bug::ALL {
        let found = (0..5000).find_map(|seed| wander(seed, bug).err());
        let found = found.unwrap_or_else(|| panic!("{bug:?} is not found"));
        println!("{bug:?}: {}", found.lines().next().unwrap_or_default());
    }
}
