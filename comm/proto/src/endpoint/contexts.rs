//! Which communicators' messages can be received here: those of communicators that come and go only while they are there.

use std::collections::HashSet;

use crate::wire::wait::CONTEXT_DYNAMIC;

/// See the module.
#[derive(Debug)]
pub(super) struct Contexts {
    /// Those of communicators that come and go, as far as they are open here.
    open: HashSet<u32>,
    /// The highest that was ever opened here; a higher one belongs to a communicator that others have made already and this rank
    /// is about to.
    newest: u32,
}

impl Default for Contexts {
    fn default() -> Self {
        Self { open: HashSet::new(), newest: CONTEXT_DYNAMIC - 1 }
    }
}

impl Contexts {
    pub(super) fn open(&mut self, context: u32) {
        self.open.insert(context);
        self.newest = self.newest.max(context);
    }

    /// As [`Contexts::open`] of one that others may have made before and after: nothing is said of those.
    pub(super) fn open_again(&mut self, context: u32) {
        self.open.insert(context);
    }

    pub(super) fn close(&mut self, context: u32) {
        self.open.remove(&context);
    }

    /// Whether a message of `context` can never be received here.
    #[inline]
    pub(super) fn is_closed(&self, context: u32) -> bool {
        (CONTEXT_DYNAMIC..=self.newest).contains(&context) && !self.open.contains(&context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_is_closed_and_what_is_to_come_is_not() {
        let mut contexts = Contexts::default();
        assert!(!contexts.is_closed(0) && !contexts.is_closed(CONTEXT_DYNAMIC));
        contexts.open(CONTEXT_DYNAMIC + 2);
        assert!(contexts.is_closed(CONTEXT_DYNAMIC), "it was passed over, so others had it before");
        assert!(!contexts.is_closed(CONTEXT_DYNAMIC + 2) && !contexts.is_closed(CONTEXT_DYNAMIC + 3));
        contexts.close(CONTEXT_DYNAMIC + 2);
        assert!(contexts.is_closed(CONTEXT_DYNAMIC + 2) && !contexts.is_closed(CONTEXT_DYNAMIC + 3));
        assert!(!contexts.is_closed(1), "it lives as long as the job");
        let mut again = Contexts::default();
        again.open_again(CONTEXT_DYNAMIC + 4);
        assert!(!again.is_closed(CONTEXT_DYNAMIC), "it may be opened again, too");
        again.open(CONTEXT_DYNAMIC + 6);
        assert!(again.is_closed(CONTEXT_DYNAMIC) && !again.is_closed(CONTEXT_DYNAMIC + 4));
    }
}
