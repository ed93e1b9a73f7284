//! Operations that nobody waits for any more: they go on behind the program's back, and are freed when they are over. That costs the same however many are under way.

use super::{Endpoint, Op, OpId, State};

impl<P> Op<P> {
    #[inline]
    pub(super) fn new(state: State, place: P) -> Self {
        Self { state, place, is_detached: false }
    }
}

impl<P> Endpoint<P> {
    /// Nobody waits for an operation any more. Gives its place back if it is over, or is a receive that nothing has matched. The place of any other comes from [`Endpoint::reap`] when it is over.
    pub fn detach(&mut self, id: OpId) -> Option<P> {
        let at_once = self.cancel(id).or_else(|| Some(self.finish(id)?.1));
        if at_once.is_none()
            && let Some(op) = self.ops.get_mut(id)
        {
            op.is_detached = true;
        }
        at_once
    }

    /// The place of one more operation that nobody waited for, and that is over.
    #[inline]
    pub fn reap(&mut self) -> Option<P> {
        while let Some(op) = self.over.pop() {
            if let Some((_, place)) = self.finish(op) {
                return Some(place);
            }
        }
        None
    }

    /// Sends that nobody waits for. O(operations under way).
    pub(super) fn detached_sends(&self) -> usize {
        self.ops.values().filter(|op| op.is_detached && matches!(op.state, State::Send(..))).count()
    }
}
