//! Whether this process is the one that has joined the job, or was forked from it.
//!
//! A forked child has copies of the handles of a rank, but not its service thread, and its links
//! are those of the rank: a call would send in the rank's name and take its messages. A page that
//! the kernel clears in a child tells the two apart at the cost of a load, where asking for the
//! process id is a system call.
//!
//! # Safety
//!
//! The `unsafe` here rests on this: the page is one mapping of its own, is never unmapped, and is
//! only used as the `AtomicU32` at its start. That the kernel clears it in a child is a change in
//! another process.
#![expect(unsafe_code, reason = "a page that is cleared in a forked child has no safe interface")]

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

/// Bytes that are asked for; the kernel gives a whole page.
const PAGE_BYTES: usize = 4096;

/// The number of this process and of no process that it was forked from; 0 if it has none yet.
type Word = AtomicU32;

/// Numbers given so far. A child has the value of its parent at the fork, and gives higher ones.
static GIVEN: AtomicU32 = AtomicU32::new(0);

fn page() -> &'static Word {
    static PAGE: OnceLock<&'static Word> = OnceLock::new();
    /// If the kernel has no such pages (before Linux 4.14) forks go unnoticed.
    static ORDINARY: Word = Word::new(0);
    PAGE.get_or_init(|| map().unwrap_or(&ORDINARY))
}

fn map() -> rustix::io::Result<&'static Word> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: it is a new mapping at an address of the kernel's choice.
    let start = unsafe { mmap_anonymous(ptr::null_mut(), PAGE_BYTES, access, MapFlags::PRIVATE) }?;
    // SAFETY: it is the whole of that mapping, whose contents in this process stay as they are.
    unsafe { madvise(start, PAGE_BYTES, Advice::LinuxWipeOnFork) }?;
    // SAFETY: it is aligned to a page, as long as that, zeroed, and never unmapped.
    Ok(unsafe { &*start.cast::<Word>() })
}

/// The process in which it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    page: &'static Word,
    number: u32,
}

impl Origin {
    /// The current process.
    pub(crate) fn here() -> Self {
        let page = page();
        let next = GIVEN.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
        let number = match page.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => next,
            Err(number) => number,
        };
        Self { page, number }
    }

    /// Whether the current process is another one: a child of that in which it was made, or of a
    /// child.
    #[inline(always)]
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.page.load(Ordering::Relaxed) != self.number
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::{ForkResult, fork};

    /// Whether `check` holds in a forked child.
    pub(crate) fn holds_in_child(check: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child takes no lock and no memory, and ends without returning.
        match unsafe { fork() }.unwrap() {
            ForkResult::Child => {
                // A panic would end this thread, and with it the process, with the status of a success.
                let holds = catch_unwind(AssertUnwindSafe(check)).unwrap_or(false);
                let code = if holds { 0 } else { 1 };
                // SAFETY: as above.
                unsafe { libc::_exit(code) }
            }
            ForkResult::Parent { child } => waitpid(child, None).unwrap() == WaitStatus::Exited(child, 0),
        }
    }

    #[test]
    fn a_forked_child_is_elsewhere_and_has_an_origin_of_its_own() {
        let origin = Origin::here();
        assert!(!origin.is_elsewhere());
        assert!(holds_in_child(|| {
            let own = Origin::here();
            origin.is_elsewhere() && !own.is_elsewhere()
        }));
        assert!(!origin.is_elsewhere() && Origin::here().number == origin.number);
    }
}
