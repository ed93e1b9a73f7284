//! A thread that writes checkpoints to files, behind the computation.
//!
//! It writes the shards of checkpoints that are committed, which it shares with the slots of the store; these take other memory
//! if they have to change meanwhile. So it takes no more memory unless the disk is slower than the next but one checkpoint is near.
//!
//! Each rank writes its own. Rank 0 knows from the checkpoint what all ranks have to write; it waits until all files are there and are
//! those, writes the manifest, which makes the set whole, and removes sets that are too old. Nobody sends a message for it.
//!
//! Number `n` of a set is the epoch of the checkpoint, counted on from the set from which the job was resumed. An epoch that was given
//! up is attempted again under its number, and what a rank wrote that had committed it alone may still be there. Rank 0 waits for files
//! with the lengths and checksums of its own attempt, so the two are not mixed; the manifest would tell.

#[cfg(test)]
mod model;
mod order;

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ft_comm::time::{Clock, Time};
use ft_comm::{Saved, Saves};
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};

use self::order::{Step, steps};
use super::sets::{Set, Sets};
use super::{Contents, DiskError};
use crate::buffer::Buffer;
use crate::region::StatePart;
use crate::spill::Spill;
use crate::store::{Legend, ShardMeta};

/// How often rank 0 looks for the files of others, at first and at last.
const LOOK: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(50)];
/// How long it looks, beside ten times as long as it took for its own.
const PATIENCE: Duration = Duration::from_secs(30);

/// A committed checkpoint, as one rank holds it.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// Number of the set.
    pub(crate) number: u32,
    /// Number of the set of the constant part.
    pub(crate) constant_number: u32,
    /// This rank.
    pub(crate) rank: usize,
    /// Constant and variable part of all ranks that compute.
    pub(crate) metas: Arc<Vec<[ShardMeta; 2]>>,
    /// The parts of this rank.
    pub(crate) shards: [Arc<Buffer>; 2],
    /// What is told of them.
    pub(crate) legends: [Arc<Legend>; 2],
}

impl Snapshot {
    /// Whether it is the same checkpoint; one that was given up is not that which was taken in its place.
    fn is(&self, other: &Self) -> bool {
        self.number == other.number && Arc::ptr_eq(&self.metas, &other.metas)
    }

    fn sets(&self) -> [Set; 2] {
        [Set::Constant(self.constant_number), Set::Epoch(self.number)]
    }

    fn set(&self, part: StatePart) -> Set {
        self.sets()[part as usize]
    }

    /// What all ranks are to have written of a part.
    fn metas_of(&self, part: StatePart) -> Vec<ShardMeta> {
        self.metas.iter().map(|pair| pair[part as usize]).collect()
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Writer {
    sets: Sets,
    shared: Arc<Shared>,
    saves: Saves,
}

#[derive(Debug, Default)]
struct Shared {
    desk: Mutex<Desk>,
    news: Condvar,
}

/// What the computation and the thread tell each other.
#[derive(Debug, Default)]
struct Desk {
    newest: Option<Snapshot>,
    /// The next one is to be written too: others may have committed it already when this one was asked for.
    again: bool,
    /// Something was asked for since the last one that all write. Ranks are asked at different moments, so what each writes by itself
    /// may be of different checkpoints: one that all agree on is to follow.
    asked: bool,
    /// Something was asked for, and nothing that was ordered since is whole.
    is_awaited: bool,
    /// Sets that were ordered before it was asked for, and are whole: who has asked is not to take one of them for the answer.
    held_back: Vec<Saved>,
    /// At most one that all have agreed on, in front, and two that only this rank may have been asked for.
    orders: VecDeque<Order>,
    is_at_work: bool,
    /// How many times ranks went back: what a lost one was writing of an order from before may never come.
    returns: u32,
    stops: bool,
}

impl Desk {
    fn is_idle(&self) -> bool {
        !self.is_at_work && self.orders.is_empty()
    }

    /// What all ranks have agreed on is the newest that they have in common, so those before it are of no use any more. All others
    /// may be the only one that they have in common.
    fn order(&mut self, snapshot: Snapshot, is_agreed: bool) {
        let is_answer = self.is_awaited;
        if is_agreed {
            self.orders.clear();
        }
        if let Some(known) = self.orders.iter_mut().find(|order| order.snapshot.is(&snapshot)) {
            known.is_answer |= is_answer;
        } else {
            let returns = self.returns;
            let order = Order {
                snapshot,
                is_agreed,
                is_answer,
                returns,
                done: 0,
                bytes: 0,
                seen: 0,
                started: None,
                looks: None,
            };
            self.orders.push_back(order);
        }
    }

    /// A set is whole, so older ones are of no use any more; gives what is to be told now.
    fn is_whole(&mut self, saved: Saved, is_answer: bool) -> Vec<Saved> {
        self.orders.retain(|other| other.snapshot.number > saved.number);
        self.held_back.push(saved);
        self.is_awaited &= !is_answer;
        if self.is_awaited { vec![] } else { std::mem::take(&mut self.held_back) }
    }

    /// Whether it is of no use to wait for the files of others.
    fn is_in_vain(&self, order: &Order) -> bool {
        let is_newer = |other: &Order| other.is_agreed && other.snapshot.number >= order.snapshot.number;
        let mut of_now = self.orders.iter().filter(|other| other.returns == self.returns);
        order.returns != self.returns || of_now.any(is_newer)
    }
}

impl Shared {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something, and tells the thread.
    fn change<T>(&self, change: impl FnOnce(&mut Desk) -> T) -> T {
        let result = change(&mut self.desk());
        self.news.notify_all();
        result
    }

    /// What there is, at once.
    fn save(&self) {
        self.change(|desk| {
            (desk.again, desk.asked, desk.is_awaited) = (true, true, true);
            if let Some(snapshot) = desk.newest.clone() {
                desk.order(snapshot, false);
            }
        });
    }
}

impl Writer {
    /// Starts the thread. The files are those of the job that is `named` so, and in a folder of
    /// that name unless the job goes on in the folder of another one.
    pub(crate) fn start(spill: &Spill, named: &str, saves: Saves) -> Result<Self, DiskError> {
        let sets = Sets::open(&spill.dir, spill.folder.as_deref().unwrap_or(named), named)?;
        let shared = Arc::new(Shared::default());
        let thread = Thread {
            sets: sets.clone(),
            keep: spill.keep.get() as usize,
            shared: Arc::clone(&shared),
            saves: saves.clone(),
            clock: Clock::start(),
        };
        let started = std::thread::Builder::new().name("spill".into()).spawn(move || thread.run());
        started.map_err(DiskError::folder(sets.root()))?;
        // Terminals and batch systems send these to all processes of a job. What comes of them is
        // for the launcher to say.
        for signal in [SIGINT, SIGTERM, SIGUSR1] {
            let _ = signal_hook::flag::register(signal, Arc::default());
        }
        let asked = Arc::clone(&shared);
        saves.on_request(move || asked.save());
        Ok(Self { sets, shared, saves })
    }

    /// Says in the folder which job this is; to be called on rank 0.
    pub(crate) fn write_command(&self, command: &str) -> Result<(), DiskError> {
        self.sets.write_command(command)
    }

    /// Whether nothing is being written; on rank 0, whether all have written what they were to.
    pub(crate) fn is_idle(&self) -> bool {
        self.shared.desk().is_idle()
    }

    /// Whether a checkpoint is asked for that all ranks write: the next one that begins is to be it.
    pub(crate) fn is_asked(&self) -> bool {
        self.shared.desk().asked
    }

    /// A checkpoint was committed, and all ranks have agreed on whether it is to be written.
    pub(crate) fn committed(&self, snapshot: Snapshot, is_agreed: bool) {
        self.shared.change(|desk| {
            if std::mem::take(&mut desk.again) || is_agreed {
                desk.order(snapshot.clone(), is_agreed);
            }
            desk.asked &= !is_agreed;
            desk.newest = Some(snapshot);
        });
    }

    /// All go back to set `number`: another one is not what ranks have, and what a lost rank was writing need not be awaited. Gives
    /// whether something was being written that may not become whole now.
    pub(crate) fn restored(&self, number: u32) -> bool {
        self.shared.change(|desk| {
            desk.returns += 1;
            desk.newest = desk.newest.take().filter(|snapshot| snapshot.number == number);
            !desk.is_idle()
        })
    }

    /// Nothing more is written or told. Nobody waits for the file that is being written, as a disk may take long.
    pub(crate) fn stop(&self) {
        self.saves.forget();
        self.shared.change(|desk| desk.stops = true);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A snapshot that is to be written, and how far that is.
#[derive(Debug)]
struct Order {
    snapshot: Snapshot,
    /// All ranks write it.
    is_agreed: bool,
    /// It was ordered since something was asked for.
    is_answer: bool,
    /// [`Desk::returns`] of then.
    returns: u32,
    /// Of its steps.
    done: usize,
    /// Bytes of this rank.
    bytes: u64,
    /// Ranks and parts whose files were seen to be there.
    seen: usize,
    started: Option<Time>,
    /// Until when rank 0 looks for files of others, and the pause before it looks again.
    looks: Option<(Time, Duration)>,
}

/// How far it has come with an order.
enum Came {
    /// All of its steps are done.
    ToTheEnd,
    /// Files of others are not there yet.
    ToWait { pause: Duration },
    /// They have not come for too long.
    TooLate,
}

struct Thread {
    sets: Sets,
    keep: usize,
    shared: Arc<Shared>,
    saves: Saves,
    clock: Clock,
}

impl Thread {
    fn run(&self) {
        while let Some(mut order) = self.next() {
            let came = self.write(&mut order);
            if self.shared.desk().stops {
                return; // The job is done, and may have removed the folder.
            }
            let (number, bytes) = (order.snapshot.number, order.bytes);
            match came {
                Ok(Came::ToWait { pause }) => self.put_back(order, pause),
                Ok(Came::ToTheEnd) if order.snapshot.rank == 0 => {
                    let saved = Saved { number, bytes, error: None };
                    let told = self.shared.change(|desk| desk.is_whole(saved, order.is_answer));
                    told.into_iter().for_each(|saved| self.saves.say(saved));
                }
                Ok(Came::ToTheEnd | Came::TooLate) => {}
                Err(error) => self.saves.say(Saved { number, bytes: 0, error: Some(error.to_string()) }),
            }
            self.shared.change(|desk| desk.is_at_work = false);
        }
    }

    /// Waits for something to write; nothing more is to be written if there is none.
    fn next(&self) -> Option<Order> {
        let nothing = |desk: &mut Desk| desk.orders.is_empty() && !desk.stops;
        let desk = self.shared.desk();
        let mut desk = self.shared.news.wait_while(desk, nothing).unwrap_or_else(PoisonError::into_inner);
        if desk.stops {
            return None;
        }
        desk.is_at_work = true;
        desk.orders.pop_front()
    }

    /// Goes on with another order if there is one to be begun, or waits: the files of this one may come yet.
    fn put_back(&self, order: Order, pause: Duration) {
        // Where all that is ordered waits for files, there is nothing to do but to look again.
        let waits = |desk: &mut Desk| {
            let is_waiting = desk.orders.iter().all(|other| other.looks.is_some());
            is_waiting && !desk.is_in_vain(&order) && !desk.stops
        };
        let waited = self.shared.news.wait_timeout_while(self.shared.desk(), pause, waits);
        let mut desk = waited.unwrap_or_else(PoisonError::into_inner).0;
        if !desk.is_in_vain(&order) {
            desk.orders.push_back(order);
        }
    }

    /// Writes the files of this rank, and what makes the set whole, as far as it comes without the files of others.
    fn write(&self, order: &mut Order) -> Result<Came, DiskError> {
        let started = *order.started.get_or_insert_with(|| self.clock.now());
        let rank = order.snapshot.rank;
        for step in steps(rank).skip(order.done) {
            match step {
                Step::Shard(part) => order.bytes += self.write_shard(&order.snapshot, part)?,
                Step::Await => {
                    let now = self.clock.now();
                    let first = || (now.after(10 * now.since(started) + PATIENCE), LOOK[0]);
                    let (until, pause) = *order.looks.get_or_insert_with(first);
                    if !self.are_all_there(order) {
                        order.looks = Some((until, (2 * pause).min(LOOK[1])));
                        return Ok(if now < until { Came::ToWait { pause } } else { Came::TooLate });
                    }
                }
                Step::Forget => {
                    self.sets.remove_constants(order.snapshot.constant_number, order.snapshot.number)?;
                }
                Step::Manifest(part) => {
                    let set = order.snapshot.set(part);
                    if part == StatePart::Variable || !self.sets.manifest_path(set).exists() {
                        self.sets.write_manifest(set, &order.snapshot.metas_of(part))?;
                    }
                }
                Step::Keep => self.sets.keep(self.keep)?,
            }
            order.done += 1;
        }
        Ok(Came::ToTheEnd)
    }

    /// Writes one part of this rank, unless it is there; gives its bytes.
    fn write_shard(&self, snapshot: &Snapshot, part: StatePart) -> Result<u64, DiskError> {
        let (set, rank) = (snapshot.set(part), snapshot.rank);
        let meta = snapshot.metas[rank][part as usize];
        if self.sets.is_there(set, rank, meta) {
            return Ok(0);
        }
        let (bytes, legend) = (&snapshot.shards[part as usize][..], &*snapshot.legends[part as usize]);
        if !meta.fits(bytes) {
            let path = self.sets.shard_path(set, rank);
            return Err(DiskError::damaged(&path, "the memory that it was to be written from has changed"));
        }
        self.sets.write_shard(set, None, rank, Contents { meta, bytes, legend })?;
        Ok(meta.len)
    }

    /// Whether all ranks have written what they are to.
    fn are_all_there(&self, order: &mut Order) -> bool {
        let (snapshot, sets) = (&order.snapshot, order.snapshot.sets());
        let is_there = |index: usize| {
            let (rank, part) = (index / 2, index % 2);
            self.sets.is_there(sets[part], rank, snapshot.metas[rank][part])
        };
        while order.seen < 2 * snapshot.metas.len() {
            if !is_there(order.seen) {
                return false;
            }
            order.seen += 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use tempfile::tempdir;

    use super::*;
    use crate::spill::SpillEvery;

    type Told = Arc<Mutex<Vec<Saved>>>;

    fn writer(dir: &Path) -> (Writer, Saves, Told) {
        let told = Told::default();
        let tell = Arc::clone(&told);
        let saves = Saves::new(move |message| {
            if let ft_proto::wire::control::ToArbiter::Saved(saved) = message {
                tell.lock().unwrap().push(saved);
            }
        });
        let keep = Spill::KEEP;
        let spill = Spill { dir: dir.to_owned(), folder: None, every: SpillEvery::default(), keep };
        (Writer::start(&spill, "job", saves.clone()).unwrap(), saves, told)
    }

    /// The states of two ranks, as one of them holds its own.
    fn snapshot(rank: usize, number: u32, states: [&[u8]; 2]) -> Snapshot {
        let metas = states.map(|state| [ShardMeta::of(b"constant"), ShardMeta::of(state)]);
        let shards = [b"constant", states[rank]].map(|bytes| Arc::new(bytes.to_vec().into()));
        let legends = Default::default();
        Snapshot { number, constant_number: 1, rank, metas: Arc::new(metas.to_vec()), shards, legends }
    }

    fn until(is_so: impl Fn() -> bool) {
        let clock = Clock::start();
        while !is_so() {
            assert!(clock.now().seconds() < 30.0, "it does not come to that");
            std::thread::yield_now();
        }
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir.join("job")).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_set_is_whole_when_all_files_of_one_attempt_are_there() {
        let dir = tempdir().unwrap();
        let ((zero, _, told), (one, _, _)) = (writer(dir.path()), writer(dir.path()));
        let manifest = dir.path().join("job/epoch-3/manifest");
        // An attempt that was given up, which one rank alone had committed.
        one.committed(snapshot(1, 3, [b"before", b"given up"]), true);
        until(|| one.is_idle());
        zero.committed(snapshot(0, 3, [b"a", b"b"]), true);
        until(|| dir.path().join("job/epoch-3/rank-0").exists());
        assert!(!manifest.exists() && !zero.is_idle());
        one.committed(snapshot(1, 3, [b"a", b"b"]), true);
        until(|| zero.is_idle());
        assert!(manifest.exists());
        assert_eq!(*told.lock().unwrap(), [Saved { number: 3, bytes: 9, error: None }]);
        let sets = Sets::of(&dir.path().join("job")).unwrap();
        let [_, of_one] = sets.manifest(Set::Epoch(3)).unwrap()[..] else { panic!() };
        let mut bytes = Vec::new();
        sets.read_shard(Set::Epoch(3), 1, of_one, &mut bytes).unwrap();
        assert_eq!(bytes, b"b");
    }

    #[test]
    fn a_file_that_a_failure_has_cut_short_is_not_awaited() {
        let dir = tempdir().unwrap();
        let (zero, _, told) = writer(dir.path());
        zero.committed(snapshot(0, 3, [b"a", b"b"]), true);
        until(|| dir.path().join("job/epoch-3/rank-0").exists());
        assert!(zero.restored(3), "rank 1 is lost");
        until(|| zero.is_idle());
        assert_eq!(*told.lock().unwrap(), []);
        assert!(!dir.path().join("job/epoch-3/manifest").exists());
    }

    #[test]
    fn old_sets_go_when_newer_ones_are_whole_and_a_job_that_is_done_leaves_nothing() {
        let dir = tempdir().unwrap();
        let ((zero, _, _), (one, _, _)) = (writer(dir.path()), writer(dir.path()));
        for number in 2..6 {
            for (rank, writer) in [&zero, &one].into_iter().enumerate() {
                writer.committed(snapshot(rank, number, [b"a", b"b"]), true);
            }
            until(|| zero.is_idle() && one.is_idle());
        }
        assert_eq!(names(dir.path()), ["constant-1", "epoch-4", "epoch-5"]);
        // One that only rank 0 has is not whole, and takes none away.
        zero.committed(snapshot(0, 6, [b"a", b"b"]), true);
        until(|| dir.path().join("job/epoch-6/rank-0").exists());
        zero.stop();
        until(|| Arc::strong_count(&zero.shared) == 1);
        assert_eq!(names(dir.path()), ["constant-1", "epoch-4", "epoch-5", "epoch-6"]);
        Sets::remove_folder(&dir.path().join("job")).unwrap();
        Sets::remove_folder(&dir.path().join("job")).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_request_has_the_newest_and_the_next_written() {
        let dir = tempdir().unwrap();
        let (one, saves, _) = writer(dir.path());
        one.committed(snapshot(1, 7, [b"a", b"b"]), false);
        assert!(one.is_idle());
        Saves::clone(&saves).request();
        until(|| one.is_idle());
        one.committed(snapshot(1, 8, [b"a", b"b"]), false);
        one.committed(snapshot(1, 9, [b"a", b"b"]), false);
        until(|| one.is_idle());
        assert_eq!(names(dir.path()), ["constant-1", "epoch-7", "epoch-8"]);
        // What ranks have gone back behind is not written.
        assert!(!one.restored(8), "nothing was under way");
        saves.request();
        until(|| one.is_idle());
        assert_eq!(names(dir.path()), ["constant-1", "epoch-7", "epoch-8"]);
    }

    /// Who has asked and ends the job with the next word takes no set that was ordered before for the answer.
    #[test]
    fn a_set_from_before_a_request_is_told_with_the_answer() {
        let dir = tempdir().unwrap();
        let (zero, saves, told) = writer(dir.path());
        let (one, of_one, _) = writer(dir.path());
        for writer in [(&zero, 0), (&one, 1)] {
            writer.0.committed(snapshot(writer.1, 3, [b"a", b"b"]), writer.1 == 0);
        }
        let four = [0, 1].map(|rank| snapshot(rank, 4, [b"c", b"d"]));
        zero.committed(four[0].clone(), false);
        saves.request();
        // Set 3 is whole now, as rank 1 is asked for it too.
        of_one.request();
        until(|| zero.shared.desk().held_back.len() == 1);
        assert!(told.lock().unwrap().is_empty());
        one.committed(four[1].clone(), false);
        until(|| zero.is_idle());
        let numbers: Vec<u32> = told.lock().unwrap().iter().map(|saved| saved.number).collect();
        assert_eq!(numbers, [3, 4]);
    }

    #[test]
    fn memory_that_has_changed_is_no_checkpoint() {
        let dir = tempdir().unwrap();
        let (one, _, told) = writer(dir.path());
        let mut spoiled = snapshot(1, 2, [b"a", b"b"]);
        spoiled.shards[1] = Arc::new(b"c".to_vec().into());
        one.committed(spoiled, true);
        until(|| one.is_idle());
        assert!(told.lock().unwrap()[0].error.as_ref().unwrap().contains("has changed"));
        assert!(!dir.path().join("job/epoch-2/rank-1").exists());
    }
}
