//! A word in memory that a process shares with its launcher and that the kernel changes when the process dies.
//!
//! A dying process gives its memory back before its sockets close and before its exit can be waited for: with hundreds
//! of MiB that takes tens of milliseconds. The futexes on the *robust list* of a thread come before that: the kernel
//! marks each with `FUTEX_OWNER_DIED` and wakes a waiter (Linux, `Documentation/locking/robust-futexes.rst`). So a death
//! is known within a tenth of a millisecond whatever the size of the process.
//!
//! The launcher makes a page for each process that it starts ([`Lifeline::new`]) and hands it down as an open file
//! ([`ENV_LIFELINE`]). A thread of the process that lives as long as its membership takes it ([`hold`]) and gives it
//! back when it leaves in peace. Where the kernel has none of this, deaths are noticed later, by other signs.
//!
//! Signs of life lie in the page too ([`Pulse`], [`Lifeline::pulse`]): a counter of each side, so that within a host none of them is a message.
//!
//! The other way round the launcher can say in the page that a generation has failed ([`Lifeline::raise`], [`Flag`]): a rank
//! that computes sees it, though none of its threads gets a core to hear of it.
//!
//! # Safety
//!
//! What the `unsafe` here rests on:
//! - A `Page` is one mapping of its own, of `PAGE_BYTES`, until it is dropped; nobody else unmaps it. The word in it is
//!   only touched as an atomic, by both processes, and so are the numbers behind it.
//! - The head of the robust list and the page stay where they are while they are registered: [`Held`] keeps both, cannot
//!   leave the thread that made it, and puts the old list of the thread back before it frees them.
//! - The thread of [`hold`] locks no robust mutex of the C library meanwhile: its list is replaced.
#![expect(
    unsafe_code,
    reason = "robust futexes have no safe interface; the measurement is in the documentation above"
)]

use std::io;
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use nix::sys::resource::Resource;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};
use rustix::thread::{ClockId, futex};

use crate::inherited;
use crate::limits;

/// Environment of a process that the launcher starts: the number of the open file to be given to [`hold`].
pub const ENV_LIFELINE: &str = "FTRUN_LIFELINE";

/// Name of the files, for those who look into `/proc`.
const NAME: &str = "ftrun-lifeline";
const PAGE_BYTES: usize = 4096;
/// Somebody waits for the word.
const WAITERS: u32 = 0x8000_0000;
/// The thread whose number is in the word has died with its process.
const DIED: u32 = 0x4000_0000;
/// No thread has this number: the lifeline was given back.
const GIVEN_BACK: u32 = 0x3fff_ffff;
/// Most words that one call waits for (`FUTEX_WAITV_MAX`).
pub const WAIT_MOST: usize = 128;

/// A link of a robust list (`struct robust_list`).
#[repr(C)]
struct ListLink {
    next: *mut ListLink,
}

/// `struct robust_list_head`.
#[repr(C)]
struct Head {
    list: ListLink,
    /// From a link to its futex, in bytes.
    offset: libc::c_long,
    pending: *mut ListLink,
}

/// What is in the shared page.
#[repr(C)]
struct Content {
    /// Means something in the process that holds the lifeline only.
    link: ListLink,
    word: AtomicU32,
    /// One more than the newest generation that has failed, as far as the launcher has said so.
    failed: AtomicU64,
    /// How often the process has given a sign of life.
    beats: AtomicU64,
    /// The step that it was in then.
    step: AtomicU64,
    /// How often its watcher has given one.
    answers: AtomicU64,
}

#[derive(Debug)]
struct Page(ptr::NonNull<Content>);

// SAFETY: the page is memory that all threads may touch, and its word is atomic.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

impl Page {
    fn map(file: &OwnedFd) -> io::Result<Self> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory in use.
        let start = unsafe { rustix::mm::mmap(ptr::null_mut(), PAGE_BYTES, access, flags, file, 0) }?;
        ptr::NonNull::new(start.cast()).map(Self).ok_or_else(|| io::Error::other("mapped at address 0"))
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: the mapping is large enough, aligned to a page, and lives as long as `self`; any bits are a word.
        unsafe { &(*self.0.as_ptr()).word }
    }

    fn failed(&self) -> &AtomicU64 {
        // SAFETY: as above.
        unsafe { &(*self.0.as_ptr()).failed }
    }

    /// Beats, step and answers.
    fn signs(&self) -> [&AtomicU64; 3] {
        let content = self.0.as_ptr();
        // SAFETY: as above.
        unsafe { [&(*content).beats, &(*content).step, &(*content).answers] }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's own, and no reference into it outlives `self`.
        let _ = unsafe { rustix::mm::munmap(self.0.as_ptr().cast(), PAGE_BYTES) };
    }
}

/// The launcher's end.
#[derive(Debug)]
pub struct Lifeline(Page);

impl Lifeline {
    /// A new one, and the file to be inherited by the process that is started next; close it then.
    ///
    /// # Errors
    /// The operating system has no such memory.
    pub fn new() -> io::Result<(Self, OwnedFd)> {
        // The system kills who makes a file longer than it may be.
        if limits::of(Resource::RLIMIT_FSIZE).is_some_and(|most| most < PAGE_BYTES as u64) {
            return Err(rustix::io::Errno::FBIG.into());
        }
        let file = rustix::fs::memfd_create(NAME, MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&file, PAGE_BYTES as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
        Ok((Self(Page::map(&file)?), file))
    }

    /// The one of a process that was started by another launcher, from its file.
    ///
    /// # Errors
    /// The operating system does not give access to that memory.
    pub fn of(file: &OwnedFd) -> io::Result<Self> {
        // Of a shorter file no word could be read.
        if rustix::fs::fstat(file)?.st_size != PAGE_BYTES as i64 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Self(Page::map(file)?))
    }

    /// Whether the process has died while it held the lifeline.
    pub fn is_cut(&self) -> bool {
        self.0.word().load(Ordering::Acquire) & DIED != 0
    }

    /// Does what the kernel does when the process dies.
    #[doc(hidden)]
    pub fn cut(&self) {
        self.0.word().fetch_or(DIED, Ordering::Release);
        let _ = futex::wake(self.0.word(), futex::Flags::empty(), 1);
    }

    /// What the process was told.
    pub fn raised(&self) -> u64 {
        self.0.failed().load(Ordering::Acquire)
    }

    /// Tells the process that generations below `failed` have failed.
    pub fn raise(&self, failed: u64) {
        self.0.failed().fetch_max(failed, Ordering::Release);
    }

    /// How often the process has given a sign of life, and the step that it was in last.
    pub fn pulse(&self) -> (u64, u64) {
        let [beats, step, _] = self.0.signs();
        let beats = beats.load(Ordering::Acquire);
        (beats, step.load(Ordering::Relaxed))
    }

    /// Gives the process a sign of life.
    pub fn answer(&self) {
        let [_, _, answers] = self.0.signs();
        answers.fetch_add(1, Ordering::Release);
    }

    /// What to wait for; none if nothing will happen to it any more. That of a line that was cut has come already.
    fn wait(&self) -> Option<futex::Wait> {
        let word = self.0.word();
        let value = word.load(Ordering::Acquire);
        (value != GIVEN_BACK).then(|| waiter(word, value & !DIED))
    }
}

fn waiter(word: &AtomicU32, value: u32) -> futex::Wait {
    let mut wait = futex::Wait::new();
    wait.val = u64::from(value);
    wait.uaddr = ptr::from_ref(word).cast_mut().cast::<std::ffi::c_void>().into();
    wait.flags = futex::WaitFlags::SIZE_U32;
    wait
}

/// Waits until something happens to one of `lines`, fewer than [`WAIT_MOST`], or `bell` has another value than `heard`;
/// not at all if one was cut before. May return without a reason.
///
/// # Errors
/// The kernel cannot do this.
pub fn wait<'a>(bell: &AtomicU32, heard: u32, lines: impl Iterator<Item = &'a Lifeline>) -> io::Result<()> {
    let waits: Vec<futex::Wait> =
        std::iter::once(waiter(bell, heard)).chain(lines.filter_map(Lifeline::wait)).collect();
    match futex::waitv(&waits, futex::WaitvFlags::empty(), None, ClockId::Monotonic) {
        Ok(_) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Wakes whoever waits for `bell` ([`wait`]).
pub fn ring(bell: &AtomicU32) {
    bell.fetch_add(1, Ordering::Release);
    let _ = futex::wake(bell, futex::Flags::empty(), 1);
}

/// The process's end. The kernel cuts the line when the process dies; dropped, the line is given back.
pub struct Held {
    page: Arc<Page>,
    head: *mut Head,
    /// What the C library had registered for this thread.
    before: *mut Head,
    /// The list is that of one thread.
    _stays: PhantomData<*mut ()>,
}

impl Held {
    /// What the launcher says in the page; on any thread, and for as long as it is wanted.
    pub fn flag(&self) -> Flag {
        Flag(self.page.clone())
    }

    /// Signs of life; on any thread, and for as long as they are wanted.
    pub fn pulse(&self) -> Pulse {
        Pulse(self.page.clone())
    }
}

/// Signs of life of a process and its watcher.
#[derive(Debug)]
pub struct Pulse(Arc<Page>);

impl Pulse {
    /// The process lives, and is in `step`.
    pub fn beat(&self, step: u64) {
        let [beats, at, _] = self.0.signs();
        at.store(step, Ordering::Relaxed);
        beats.fetch_add(1, Ordering::Release);
    }

    /// How often its watcher has given a sign of life.
    pub fn answers(&self) -> u64 {
        let [_, _, answers] = self.0.signs();
        answers.load(Ordering::Acquire)
    }

    /// That of the process that has `line`.
    #[doc(hidden)]
    pub fn of(line: &OwnedFd) -> io::Result<Self> {
        Ok(Self(Arc::new(Page::map(line)?)))
    }
}

/// The launcher's word on failures, to be read by who computes.
#[derive(Debug)]
pub struct Flag(Arc<Page>);

impl Flag {
    /// One more than the newest generation that has failed; 0 if none has.
    pub fn failed(&self) -> u64 {
        self.0.failed().load(Ordering::Acquire)
    }
}

/// Takes the lifeline that the launcher handed down, for the calling thread. None if there is none.
pub fn hold(number: &str) -> Option<Held> {
    let file = inherited::take_memory(number, NAME)?;
    let page = Arc::new(Page::map(&file).ok()?);
    let (mut before, mut bytes) = (ptr::null_mut::<Head>(), 0_usize);
    // SAFETY: both places may be written.
    let got = unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &raw mut before, &raw mut bytes) };
    if got != 0 {
        return None;
    }
    let content = page.0.as_ptr();
    let offset = std::mem::offset_of!(Content, word) as libc::c_long;
    let head = Box::new(Head { list: ListLink { next: ptr::null_mut() }, offset, pending: ptr::null_mut() });
    let head = Box::into_raw(head);
    // SAFETY: only this process writes links, and the kernel reads them only when this thread ends.
    unsafe {
        (*head).list.next = &raw mut (*content).link;
        (*content).link.next = &raw mut (*head).list;
    }
    let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    page.word().store(thread | WAITERS, Ordering::Release);
    let held = Held { page, head, before, _stays: PhantomData };
    // SAFETY: what is registered stays until it is dropped, which this thread does, or until the process has died.
    let set = unsafe { libc::syscall(libc::SYS_set_robust_list, head, size_of::<Head>()) };
    let _ = futex::wake(held.page.word(), futex::Flags::empty(), 1);
    (set == 0).then_some(held)
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: `before` is what this thread had; nothing refers to `head` any more, which came from a box.
        unsafe {
            libc::syscall(libc::SYS_set_robust_list, self.before, size_of::<Head>());
            drop(Box::from_raw(self.head));
        }
        self.page.word().store(GIVEN_BACK, Ordering::Release);
        let _ = futex::wake(self.page.word(), futex::Flags::empty(), 1);
    }
}
