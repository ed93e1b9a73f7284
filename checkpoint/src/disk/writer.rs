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

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use ft_comm::time::Clock;
use ft_comm::{Saved, Saves};

use super::DiskError;
use super::sets::{Set, Sets};
use crate::spill::Spill;
use crate::store::ShardMeta;

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
    pub(crate) shards: [Arc<Vec<u8>>; 2],
}

impl Snapshot {
    fn sets(&self) -> [Set; 2] {
        [Set::Constant(self.constant_number), Set::Epoch(self.number)]
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Writer {
    sets: Sets,
    shared: Arc<Shared>,
    saves: Saves,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    newest: Mutex<Newest>,
    /// Snapshots that are not dealt with.
    pending: AtomicUsize,
    stops: AtomicBool,
}

#[derive(Debug, Default)]
struct Newest {
    snapshot: Option<Snapshot>,
    /// The next one is to be written too: others may have committed it already when this one was asked for.
    again: bool,
    orders: Option<Sender<Snapshot>>,
}

impl Shared {
    fn newest(&self) -> MutexGuard<'_, Newest> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn order(&self, newest: &Newest, snapshot: Snapshot) {
        if let Some(orders) = &newest.orders {
            self.pending.fetch_add(1, Ordering::AcqRel);
            let _ = orders.send(snapshot);
        }
    }

    /// What there is, at once.
    fn save(&self) {
        let mut newest = self.newest();
        newest.again = true;
        if let Some(snapshot) = newest.snapshot.clone() {
            self.order(&newest, snapshot);
        }
    }
}

impl Writer {
    /// Starts the thread. Of the job that is `named` so, unless it goes on in the folder of another one.
    pub(crate) fn start(spill: &Spill, named: &str, saves: Saves) -> Result<Self, DiskError> {
        let sets = Sets::open(&spill.dir, spill.folder.as_deref().unwrap_or(named))?;
        let (orders, ordered) = channel();
        let newest = Newest { orders: Some(orders), ..Newest::default() };
        let (pending, stops) = (AtomicUsize::new(0), AtomicBool::new(false));
        let shared = Arc::new(Shared { newest: Mutex::new(newest), pending, stops });
        let thread = Thread {
            sets: sets.clone(),
            keep: spill.keep.get() as usize,
            shared: Arc::clone(&shared),
            saves: saves.clone(),
            clock: Clock::start(),
        };
        let started = std::thread::Builder::new().name("spill".into()).spawn(move || thread.run(&ordered));
        let thread = started.map_err(DiskError::folder(sets.root()))?;
        let asked = Arc::clone(&shared);
        saves.on_request(move || asked.save());
        Ok(Self { sets, shared, saves, thread: Some(thread) })
    }

    /// Says in the folder which job this is; to be called on rank 0.
    pub(crate) fn write_command(&self, command: &str) -> Result<(), DiskError> {
        self.sets.write_command(command)
    }

    /// Whether nothing is being written; on rank 0, whether all have written what they were to.
    pub(crate) fn is_idle(&self) -> bool {
        self.shared.pending.load(Ordering::Acquire) == 0
    }

    /// A checkpoint was committed, and is to be written if `due`.
    pub(crate) fn committed(&self, snapshot: Snapshot, due: bool) {
        let mut newest = self.shared.newest();
        if std::mem::take(&mut newest.again) || due {
            self.shared.order(&newest, snapshot.clone());
        }
        newest.snapshot = Some(snapshot);
    }

    /// All go back to set `number`: another one is not what ranks have.
    pub(crate) fn restored(&self, number: u32) {
        let mut newest = self.shared.newest();
        newest.snapshot = newest.snapshot.take().filter(|snapshot| snapshot.number == number);
    }

    /// Ends the thread, when it has written the file that it is at.
    pub(crate) fn stop(&mut self) {
        self.saves.forget();
        self.shared.stops.store(true, Ordering::Release);
        self.shared.newest().orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    /// Removes everything of this job.
    pub(crate) fn remove(&self) -> Result<(), DiskError> {
        self.sets.remove_all()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Thread {
    sets: Sets,
    keep: usize,
    shared: Arc<Shared>,
    saves: Saves,
    clock: Clock,
}

impl Thread {
    fn run(&self, ordered: &Receiver<Snapshot>) {
        let mut next = None;
        while let Some(snapshot) = next.take().or_else(|| ordered.recv().ok()) {
            // Only the newest is of any use.
            let (mut done, mut snapshot) = (1, snapshot);
            ordered.try_iter().for_each(|newer| (done, snapshot) = (done + 1, newer));
            if self.stops() {
                return;
            }
            let number = snapshot.number;
            match self.write(&snapshot) {
                Ok((bytes, is_whole)) => {
                    if is_whole {
                        self.saves.say(Saved { number, bytes, error: None });
                    }
                }
                Err(error) => self.saves.say(Saved { number, bytes: 0, error: Some(error.to_string()) }),
            }
            next = ordered.try_recv().ok();
            self.shared.pending.fetch_sub(done, Ordering::AcqRel);
        }
    }

    fn stops(&self) -> bool {
        self.shared.stops.load(Ordering::Acquire)
    }

    /// Writes the files of this rank, and what makes the set whole. Gives the bytes of this rank, and whether the set is whole now.
    fn write(&self, snapshot: &Snapshot) -> Result<(u64, bool), DiskError> {
        let started = self.clock.now();
        let (metas, rank) = (&snapshot.metas, snapshot.rank);
        let mut bytes = 0;
        for (part, set) in snapshot.sets().into_iter().enumerate() {
            let meta = metas[rank][part];
            if self.sets.is_there(set, rank, meta) {
                continue;
            }
            if !meta.fits(&snapshot.shards[part]) {
                let path = self.sets.shard_path(set, rank);
                return Err(DiskError::damaged(
                    &path,
                    "the memory that it was to be written from has changed",
                ));
            }
            self.sets.write_shard(set, None, rank, meta, &snapshot.shards[part])?;
            bytes += meta.len;
        }
        if rank > 0 {
            return Ok((bytes, false));
        }
        let patience = 10 * self.clock.now().since(started) + PATIENCE;
        if !self.wait(snapshot, patience) {
            return Ok((bytes, false));
        }
        for (part, set) in snapshot.sets().into_iter().enumerate() {
            if !self.sets.manifest_path(set).exists() || part == 1 {
                self.sets.write_manifest(set, &metas.iter().map(|pair| pair[part]).collect::<Vec<_>>())?;
            }
        }
        self.sets.keep(self.keep)?;
        Ok((bytes, true))
    }

    /// Waits until all ranks have written what they are to; false if that is of no use any more.
    fn wait(&self, snapshot: &Snapshot, patience: Duration) -> bool {
        let (started, mut pause) = (self.clock.now(), LOOK[0]);
        let all = (0..snapshot.metas.len()).flat_map(|rank| [(rank, 0), (rank, 1)]);
        let sets = snapshot.sets();
        for (rank, part) in all {
            while !self.sets.is_there(sets[part], rank, snapshot.metas[rank][part]) {
                let is_late = self.clock.now().since(started) > patience;
                if is_late || self.stops() || self.shared.pending.load(Ordering::Acquire) > 1 {
                    return false;
                }
                std::thread::sleep(pause);
                pause = (2 * pause).min(LOOK[1]);
            }
        }
        true
    }
}
