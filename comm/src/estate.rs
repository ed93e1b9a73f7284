//! Memory that outlives its process: what a rank keeps there, whoever replaces it on the same host finds again.
//!
//! The launcher, or the agent of a host, makes one file in memory for all ranks of its host ([`Ground`]) and hands it down to each
//! process that it starts ([`ENV_GROUND`]). A rank claims its own part of it, its [`Estate`], and takes memory there ([`Room`]). It
//! notes what lies where, with the number of the generation and a word for the others. When the process dies the file is still
//! there, and its successor finds the newest note. The file has no name anywhere: it is gone with the last process that has it.
//!
//! ```text
//! rank 0                         rank 1
//! | page | rooms            ...  | page | rooms            ...        a part of 16 TiB each, of which only what is used is there
//!   owner: process and its start
//!   two records, used in turn: count, generation, report, where the text is, its checksum, that of the record, count again
//! ```
//!
//! # What a death leaves
//!
//! A process may die between any two instructions. A record counts if both its counts are the same, and the one with the larger
//! count is the newest. Text is written before its record, in other memory than the text before. Memory that is given back is taken
//! away after the next note: until then the note before may speak of it.
//!
//! Only one process may use an estate. [`Ground::claim`] gives it to a successor when the system says that the owner before is gone
//! or ends; a process that was only declared lost (cut off, say) keeps it, and its successor has none.

mod mapping;

use std::collections::BTreeMap;
use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::resource::Resource;
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::FdFlags;

use self::mapping::Mapping;
use crate::inherited;
use crate::limits;
use crate::time::{Clock, Time};
use ft_proto::rank::{Generation, Rank};

/// Environment of a process that the launcher starts: the number of the open file with the estates of the ranks of its host.
pub const ENV_GROUND: &str = "FTRUN_GROUND";

/// Name of the file, for those who look into `/proc`.
const NAME: &str = "ftrun-estates";
const PAGE: u64 = 4096;
/// Bytes of the part of a rank.
const PART: u64 = 1 << 44;
/// Ranks that have a part.
const RANKS_MAX: u64 = 1 << 18;

/// Words of the page of an estate.
const OWNER: usize = 0;
const RECORDS: [usize; 2] = [8, 24];
const RECORD_WORDS: usize = 8;

/// How long a successor waits for the end of an owner that is being killed.
const DYING: Duration = Duration::from_millis(50);
const LOOK: Duration = Duration::from_micros(200);

/// The memory of all ranks of a host.
#[derive(Clone, Debug)]
pub struct Ground {
    file: Arc<OwnedFd>,
    owners: Owners,
}

/// Who may own estates.
#[derive(Clone)]
enum Owners {
    /// Processes of this host.
    Processes,
    /// Those of a simulation: the number of the one that claims, and whether another one still lives.
    Simulated(u32, Arc<dyn Fn(u32) -> bool + Send + Sync>),
}

impl std::fmt::Debug for Owners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Self::Processes) { "Processes" } else { "Simulated" })
    }
}

impl Ground {
    /// A new one.
    ///
    /// # Errors
    /// The operating system has no such memory.
    pub fn new() -> io::Result<Self> {
        // The system kills who makes a file longer than it may be.
        if limits::of(Resource::RLIMIT_FSIZE).is_some() {
            return Err(rustix::io::Errno::FBIG.into());
        }
        let file = rustix::fs::memfd_create(NAME, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&file, PART * RANKS_MAX)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
        Ok(Self { file: Arc::new(file), owners: Owners::Processes })
    }

    /// One that another process has made, from its file.
    pub fn of(file: OwnedFd) -> Self {
        Self { file: Arc::new(file), owners: Owners::Processes }
    }

    /// The same for process `me` of a simulation, in which `lives` says which others are alive; a number is not 0.
    #[doc(hidden)]
    #[must_use]
    pub fn simulated(&self, me: u32, lives: impl Fn(u32) -> bool + Send + Sync + 'static) -> Self {
        Self { file: self.file.clone(), owners: Owners::Simulated(me, Arc::new(lives)) }
    }

    /// The file, to be inherited by the process that is started next; close it then.
    ///
    /// # Errors
    /// There are too many open files.
    pub fn hand_down(&self) -> io::Result<OwnedFd> {
        let file = self.file.try_clone()?;
        rustix::io::fcntl_setfd(&file, FdFlags::empty())?;
        Ok(file)
    }

    /// The one that the launcher handed down. None if there is none.
    pub fn take(number: &str) -> Option<Self> {
        let file = inherited::take_memory(number, NAME)?;
        Some(Self::of(file))
    }

    /// The estate of `rank`, from now on that of this process. None if its owner may still use it.
    ///
    /// # Errors
    /// The operating system has no memory for it.
    pub fn claim(&self, rank: Rank) -> io::Result<Option<Estate>> {
        let rank = rank as u64;
        if rank >= RANKS_MAX {
            return Ok(None);
        }
        let base = rank * PART;
        let page = Mapping::new(&self.file, base, PAGE as usize)?;
        let owner = || [OWNER, OWNER + 1].map(|word| page.word(word).load(Ordering::Acquire));
        let (me, patience) = match &self.owners {
            Owners::Processes => (std::process::id(), DYING),
            Owners::Simulated(me, _) => (*me, Duration::ZERO),
        };
        let since = match &self.owners {
            Owners::Processes => Life::of(me.into()).map(|life| life.start),
            Owners::Simulated(..) => Some(0),
        };
        let Some(since) = since else { return Ok(None) };
        let is_used = || match (&self.owners, owner()) {
            (_, [0, _]) => false,
            (Owners::Processes, [pid, start]) => {
                Life::of(pid).is_some_and(|life| life.start == start && !life.ends)
            }
            (Owners::Simulated(_, lives), [other, _]) => lives(other as u32),
        };
        let clock = Clock::start();
        while is_used() {
            if clock.now() >= Time(0).after(patience) {
                return Ok(None);
            }
            std::thread::park_timeout(LOOK);
        }
        page.word(OWNER).store(0, Ordering::SeqCst);
        page.word(OWNER + 1).store(since, Ordering::SeqCst);
        page.word(OWNER).store(me.into(), Ordering::SeqCst);
        let shared = Arc::new(Shared { file: self.file.clone(), base, freed: Mutex::default() });
        let mut estate = Estate {
            shared,
            page,
            live: BTreeMap::new(),
            notes: [None, None],
            count: 0,
            found: None,
            is_tidy: false,
        };
        estate.look();
        Ok(Some(estate))
    }
}

/// What the system says of a process.
struct Life {
    /// When it was started, in the units of the system.
    start: u64,
    /// It is dead, or its main thread runs nothing of the program any more.
    ends: bool,
}

impl Life {
    /// None if there is no such process, or the system does not say.
    fn of(pid: u64) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name of the program may have anything in it but comes before the last parenthesis (proc(5)): field 3 is the next.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        const EXITING: u64 = 4;
        let ends = matches!(*fields.first()?, "Z" | "X") || number(9)? & EXITING != 0;
        Some(Self { start: number(22)?, ends })
    }
}

/// What the estate and its rooms share.
#[derive(Debug)]
struct Shared {
    file: Arc<OwnedFd>,
    /// Where the part of the rank begins in the file.
    base: u64,
    /// Rooms that are not used any more.
    freed: Mutex<Vec<u64>>,
}

impl Shared {
    fn map(&self, at: u64, bytes: usize) -> io::Result<Mapping> {
        Mapping::new(&self.file, self.base + at, bytes)
    }

    /// Gives memory back to the system. It reads as zeros then.
    fn punch(&self, range: Range<u64>) {
        if !range.is_empty() {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ =
                rustix::fs::fallocate(&*self.file, flags, self.base + range.start, range.end - range.start);
        }
    }
}

/// What the owner before has noted last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The generation that it was in.
    pub generation: Generation,
    /// Its word for the others.
    pub report: u64,
    /// What lies where, in the words of whoever took the memory.
    pub text: Vec<u8>,
}

/// The memory of one rank that outlives its process. See the module.
#[derive(Debug)]
pub struct Estate {
    shared: Arc<Shared>,
    page: Mapping,
    /// Rooms: where they begin, with their bytes.
    live: BTreeMap<u64, u64>,
    /// For texts, in turn.
    notes: [Option<Room>; 2],
    count: u64,
    found: Option<Found>,
    /// What the owner before had and this one has not opened is gone.
    is_tidy: bool,
}

/// Memory in an estate, whole pages. Dropped, it is given back after the next note.
#[derive(Debug)]
pub struct Room {
    shared: Arc<Shared>,
    at: u64,
    memory: Mapping,
}

impl Room {
    /// Where it is in the estate, for [`Estate::open`].
    pub fn at(&self) -> u64 {
        self.at
    }
}

impl Deref for Room {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.memory.bytes()
    }
}

impl DerefMut for Room {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.memory.bytes_mut()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.shared.freed.lock().unwrap_or_else(PoisonError::into_inner).push(self.at);
    }
}

impl Estate {
    /// What the owner before has left.
    pub fn found(&self) -> Option<&Found> {
        self.found.as_ref()
    }

    /// The word for the others, if what was found is of the generation before `joining`: otherwise another process may have had the
    /// rank meanwhile, and nothing was found.
    pub(crate) fn report(&mut self, joining: Generation) -> u64 {
        let is_newest = |found: &Found| found.generation.checked_add(1) == Some(joining);
        self.found = self.found.take().filter(is_newest);
        self.found.as_ref().map_or(0, |found| found.report)
    }

    /// Takes new memory, of zeros, at least so many bytes.
    ///
    /// # Errors
    /// There is none.
    pub fn room(&mut self, bytes: usize) -> io::Result<Room> {
        self.tidy();
        let size = (bytes as u64).max(1).checked_next_multiple_of(PAGE).ok_or(rustix::io::Errno::NOMEM)?;
        let mut at = PAGE;
        for (start, bytes) in &self.live {
            if start - at >= size {
                break;
            }
            at = start + bytes;
        }
        if size > PART || at > PART - size {
            return Err(rustix::io::Errno::NOMEM.into());
        }
        let memory = self.shared.map(at, size as usize)?;
        memory.populate();
        self.live.insert(at, size);
        Ok(Room { shared: self.shared.clone(), at, memory })
    }

    /// Takes memory of the owner before: `bytes` of it are used. To be called before any other is taken; none if there is
    /// no such memory, or if it was opened before.
    ///
    /// # Errors
    /// It cannot be mapped.
    pub fn open(&mut self, at: u64, bytes: usize) -> io::Result<Option<Room>> {
        let size = (bytes as u64).max(1).next_multiple_of(PAGE);
        let end = at.checked_add(size).filter(|end| *end <= PART);
        let (Some(end), false) = (end, self.is_tidy || at < PAGE || !at.is_multiple_of(PAGE)) else {
            return Ok(None);
        };
        let before = self.live.range(..end).next_back();
        if before.is_some_and(|(start, bytes)| start + bytes > at) {
            return Ok(None);
        }
        let memory = self.shared.map(at, size as usize)?;
        self.live.insert(at, size);
        Ok(Some(Room { shared: self.shared.clone(), at, memory }))
    }

    /// Notes what there is now: a successor finds this. Without a text the one before stays.
    ///
    /// # Errors
    /// There is no memory for the text; then nothing is noted.
    pub fn note(&mut self, generation: Generation, report: u64, text: Option<&[u8]>) -> io::Result<()> {
        let newest = RECORDS[self.count as usize % 2];
        let words = |record: usize| self.page.words(record..record + RECORD_WORDS);
        let mut record = [0; RECORD_WORDS];
        for (word, old) in record.iter_mut().zip(words(newest)) {
            *word = old.load(Ordering::Relaxed);
        }
        (record[1], record[2]) = (generation.into(), report);
        if let Some(text) = text {
            let spare = (self.count as usize + 1) % 2;
            if self.notes[spare].as_ref().is_none_or(|room| room.len() < text.len()) {
                let room = self.room(text.len().next_power_of_two())?;
                self.notes[spare] = Some(room);
            }
            let room = self.notes[spare].as_mut().expect("it was just made");
            room[..text.len()].copy_from_slice(text);
            (record[3], record[4], record[5]) = (room.at, text.len() as u64, checksum(text));
        } else {
            // The room of the text that stays is not to be written by the next note.
            self.notes.swap(0, 1);
        }
        self.write(record);
        Ok(())
    }

    /// A successor finds nothing.
    pub fn forget(&mut self) {
        self.write([0; RECORD_WORDS]);
    }

    fn write(&mut self, mut record: [u64; RECORD_WORDS]) {
        self.count += 1;
        record[0] = self.count;
        record[6] = checksum_of_words(&record[..6]);
        record[7] = self.count;
        let to = RECORDS[self.count as usize % 2];
        // The text is there before the record, each word of that before the next, and all of it before what the caller does then.
        fence(Ordering::SeqCst);
        for (word, value) in self.page.words(to..to + RECORD_WORDS).iter().zip(record) {
            word.store(value, Ordering::SeqCst);
        }
        fence(Ordering::SeqCst);
        let freed = std::mem::take(&mut *self.shared.freed.lock().unwrap_or_else(PoisonError::into_inner));
        for at in freed {
            if let Some(bytes) = self.live.remove(&at) {
                self.shared.punch(at..at + bytes);
            }
        }
    }

    /// Reads the newest record that is whole.
    fn look(&mut self) {
        let read = |at: usize| {
            let mut record = [0; RECORD_WORDS];
            let words: &[AtomicU64] = self.page.words(at..at + RECORD_WORDS);
            record.iter_mut().zip(words).for_each(|(word, at)| *word = at.load(Ordering::SeqCst));
            record
        };
        let records = RECORDS.map(read).into_iter().enumerate();
        let whole = |(at, record): &(usize, [u64; RECORD_WORDS])| {
            let is_sound = record[6] == checksum_of_words(&record[..6]);
            is_sound && record[0] == record[7] && record[0] as usize % 2 == *at
        };
        let Some((_, record)) = records.filter(whole).max_by_key(|(_, record)| record[0]) else { return };
        self.count = record[0];
        let [_, generation, report, at, bytes, sum, ..] = record;
        let Ok(generation) = Generation::try_from(generation) else { return };
        let Ok(Some(room)) = self.open(at, usize::try_from(bytes).unwrap_or(usize::MAX)) else { return };
        let text = room.get(..bytes as usize).filter(|text| checksum(text) == sum);
        self.found = text.map(|text| Found { generation, report, text: text.to_vec() });
        self.notes[self.count as usize % 2] = Some(room);
    }

    /// Gives back all that the owner before has left and that was not opened.
    fn tidy(&mut self) {
        if std::mem::replace(&mut self.is_tidy, true) {
            return;
        }
        let mut end = PAGE;
        for (start, bytes) in &self.live {
            self.shared.punch(end..*start);
            end = start + bytes;
        }
        self.shared.punch(end..PART);
    }
}

fn checksum(bytes: &[u8]) -> u64 {
    let hash = blake3::hash(bytes);
    u64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("it is longer"))
}

fn checksum_of_words(words: &[u64]) -> u64 {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    checksum(&bytes)
}

#[cfg(test)]
mod tests;
