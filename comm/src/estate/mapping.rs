//! Pages of a file in memory, as bytes.
//!
//! # Safety
//!
//! What the `unsafe` here rests on:
//! - A `Mapping` is a mapping of its own until it is dropped; nobody else unmaps it.
//! - The file cannot become shorter (it is sealed), so all of it can be touched.
//! - No two mappings of a process overlap while one of them is used as bytes: [`super::Estate`] gives a room to one at a time.
//!   (In a simulation a rank that has died does not touch its own any more.)
//! - No two processes use the same part of the file as bytes: [`super::Ground::claim`] waits for the end of the owner before.
//!   Words are atomic, whoever touches them.
#![expect(
    unsafe_code,
    reason = "memory that outlives a process is a mapping of a file, which has no safe interface; what it saves is in ARCHITECTURE, decision 47"
)]

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use rustix::mm::{Advice, MapFlags, ProtFlags};

/// See the module.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it is memory, which any thread may touch; `&mut` is needed to write bytes.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps whole pages.
    pub(super) fn new(file: &OwnedFd, at: u64, bytes: usize) -> io::Result<Self> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory in use.
        let start = unsafe { rustix::mm::mmap(ptr::null_mut(), bytes, access, flags, file, at) }?;
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        let mapping = Self { start, bytes };
        mapping.advise(Advice::LinuxHugepage);
        Ok(mapping)
    }

    /// Has the system provide all of its memory at once, which costs less than page by page.
    pub(super) fn populate(&self) {
        self.advise(Advice::LinuxPopulateWrite);
    }

    /// Where the system does not know it, nothing changes.
    fn advise(&self, advice: Advice) {
        // SAFETY: the mapping is this one's own, and neither advice changes what is in it.
        let _ = unsafe { rustix::mm::madvise(self.start.as_ptr().cast(), self.bytes, advice) };
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: see the module; any bits are bytes.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: see the module; any bits are bytes.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// Words from its start, for a mapping that is never used as bytes.
    pub(super) fn words(&self, range: Range<usize>) -> &[AtomicU64] {
        assert!(range.end <= self.bytes / size_of::<AtomicU64>(), "it has so many words");
        // SAFETY: it is long enough and aligned to a page; any bits are a word, and all access is atomic.
        unsafe {
            std::slice::from_raw_parts(self.start.as_ptr().cast::<AtomicU64>().add(range.start), range.len())
        }
    }

    pub(super) fn word(&self, at: usize) -> &AtomicU64 {
        &self.words(at..at + 1)[0]
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's own, and no reference into it outlives `self`.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
