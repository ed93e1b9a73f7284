//! Whether checkpoints of what has changed alone are worth it.

use ft_proto::planted;

use super::defects::TRUSTS_OLD_COPY;
use crate::changes::{Changes, Delta, Use};

/// What has changed is sent alone if it is no more than one part of so many: with more of it the difference takes memory, and is sent
/// to each holder of redundancy.
const WORTH_IT: usize = 4;
/// So many bytes are not much, however small the state is.
const ALWAYS_WORTH_IT: usize = 32 << 10;
/// Where too much has changed again and again, this is the logarithm of how many checkpoints in a row do not look for it.
const PAUSE_MAX: u32 = 4;

/// What one rank has learned of it. Each decides for itself: a group needs what has changed of all its members.
#[derive(Debug, Default)]
pub(super) struct Increments {
    is_wanted: bool,
    /// How often in a row too much had changed.
    in_vain: u32,
    /// Checkpoints that do not look for it.
    pause: u32,
    /// Memory that is used again.
    packed: Vec<u8>,
}

impl Increments {
    pub(super) fn new(is_wanted: bool) -> Self {
        Self { is_wanted, ..Self::default() }
    }

    /// Whether the next checkpoint looks for what has changed.
    pub(super) fn are_worth_it(&mut self) -> bool {
        let is_paused = self.pause > 0;
        self.pause = self.pause.saturating_sub(1);
        self.is_wanted && !is_paused
    }

    /// The most memory that what has changed of a shard of `len` bytes takes.
    pub(super) fn most(&self, len: usize) -> usize {
        if self.is_wanted { limit(len).min(len) } else { 0 }
    }

    /// The changes of a shard of `len` bytes.
    pub(super) fn start(&mut self, len: usize) -> Changes {
        Changes::new(len, limit(len), std::mem::take(&mut self.packed))
    }

    /// Learns from what was found; gives whether it can be sent.
    pub(super) fn are_of_use(&mut self, of_use: Use) -> bool {
        if of_use == Use::TooMuch {
            self.in_vain = (self.in_vain + 1).min(PAUSE_MAX);
            self.pause = (1 << self.in_vain) - 1;
            return false;
        }
        self.in_vain = 0;
        of_use == Use::Whole || planted::has(TRUSTS_OLD_COPY)
    }

    /// What has changed is not needed any more; its memory is.
    pub(super) fn take_back(&mut self, delta: Option<Delta>) {
        if let Some(Delta { packed, .. }) = delta {
            self.packed = packed;
        }
    }
}

/// Bytes that may have changed of `len`.
fn limit(len: usize) -> usize {
    (len / WORTH_IT).max(ALWAYS_WORTH_IT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_changes_wholly_is_looked_at_ever_less_often() {
        let mut increments = Increments::new(true);
        let mut looked = vec![];
        for number in 0..60 {
            if increments.are_worth_it() {
                looked.push(number);
                assert!(!increments.are_of_use(Use::TooMuch));
            }
        }
        assert_eq!(looked, [0, 2, 6, 14, 30, 46]);
        while !increments.are_worth_it() {}
        assert!(increments.are_of_use(Use::Whole));
        assert!(increments.are_worth_it() && increments.are_worth_it());
        assert!(!increments.are_of_use(Use::Unsound) && increments.are_worth_it());
        // It begins from the start when it was of use in between.
        assert!(
            !increments.are_of_use(Use::TooMuch) && !increments.are_worth_it() && increments.are_worth_it()
        );
        assert!(!Increments::new(false).are_worth_it());
        let most = [0, 1000, 64 << 10, 1 << 20].map(|len| increments.most(len));
        assert_eq!((most, Increments::new(false).most(1 << 20)), ([0, 1000, 32 << 10, 256 << 10], 0));
    }
}
