//! A word of this process that says whether what was offered of its memory still counts; see [`ft_proto::endpoint`].

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// A word that others read before they trust what they have read of this process's memory.
pub(super) struct Seal {
    word: Box<AtomicU64>,
    /// Something was offered under it.
    is_used: bool,
}

impl Seal {
    pub(super) fn new() -> Self {
        let mut bytes = [0; 8];
        // Without chance it is a counter from 0, which only makes it easier to guess.
        let _ = getrandom::fill(&mut bytes);
        Self { word: Box::new(AtomicU64::new(u64::from_le_bytes(bytes))), is_used: false }
    }

    /// Its address.
    pub(super) fn at(&self) -> u64 {
        self.word.as_ptr() as u64
    }

    /// Something is offered under it; gives what it is now.
    pub(super) fn offer(&mut self) -> u64 {
        self.is_used = true;
        self.word.load(Ordering::Relaxed)
    }

    /// What was offered is to be trusted no more; before its memory changes.
    pub(super) fn change(&mut self) {
        if std::mem::take(&mut self.is_used) {
            self.word.fetch_add(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
        }
    }
}

impl Drop for Seal {
    fn drop(&mut self) {
        self.change();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_changes_if_something_was_offered_under_it() {
        let mut seal = Seal::new();
        let first = seal.offer();
        assert_eq!(seal.offer(), first);
        seal.change();
        let second = seal.offer();
        assert_ne!(second, first);
        seal.change();
        let third = seal.word.load(Ordering::Relaxed);
        seal.change();
        assert_eq!(seal.word.load(Ordering::Relaxed), third, "nothing was offered since");
    }

    #[test]
    fn it_is_where_it_says() {
        let mut seal = Seal::new();
        let moved = (seal.at(), seal.offer());
        let boxed = Box::new(seal);
        assert_eq!((boxed.at(), boxed.word.load(Ordering::Relaxed)), moved);
    }
}
