//! Credit: what one rank may leave unreceived at another, as both sides count it.
//!
//! The sender pays out of its [`Credit`]. The receiver keeps the same account as a [`Grant`], so that a sender which keeps to no limit is
//! found out, and gives back what was received.

use crate::planted;

/// Longest message in bytes that is sent before its receive is posted.
pub const EAGER_BYTES_MAX: usize = 256 << 10;
/// The same where the receiver can read it from the memory of the sender: one copy instead of two, for a message more each way.
pub(super) const EAGER_BYTES_MAX_NEAR: usize = 48 << 10;
/// Bytes of eager messages, [`MESSAGE_COST`] added to each, that one sender may have unreceived at one receiver.
pub const CREDIT_BYTES: u64 = 4 << 20;
/// What an eager message costs beside its length, so that the number of small ones is bounded too.
pub const MESSAGE_COST: u64 = 256;
/// Envelopes that one sender may have unmatched at one receiver; more wait at the sender.
pub const ENVELOPES_MAX: u32 = 1 << 16;

/// What messages cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) bytes: u64,
    pub(super) envelopes: u32,
}

impl Cost {
    /// All that there is.
    #[inline]
    fn whole() -> Self {
        if planted::has(planted::HAS_LITTLE_CREDIT) {
            return Self { bytes: 16 * MESSAGE_COST, envelopes: 64 };
        }
        Self { bytes: CREDIT_BYTES, envelopes: ENVELOPES_MAX }
    }

    /// Of a message that is announced.
    pub(super) const ENVELOPE: Self = Self { bytes: 0, envelopes: 1 };

    /// Of an eager message of so many bytes.
    #[inline]
    pub(super) fn eager(length: u64) -> Self {
        Self { bytes: length.saturating_add(MESSAGE_COST), envelopes: 0 }
    }

    #[inline]
    fn with(self, other: Self) -> Self {
        let Self { bytes, envelopes } = self;
        Self {
            bytes: bytes.saturating_add(other.bytes),
            envelopes: envelopes.saturating_add(other.envelopes),
        }
    }

    #[inline]
    fn without(self, other: Self) -> Option<Self> {
        let Self { bytes, envelopes } = self;
        Some(Self {
            bytes: bytes.checked_sub(other.bytes)?,
            envelopes: envelopes.checked_sub(other.envelopes)?,
        })
    }
}

/// What I may still send to a peer.
#[derive(Debug)]
pub(super) struct Credit(Cost);

impl Default for Credit {
    fn default() -> Self {
        Self(Cost::whole())
    }
}

impl Credit {
    /// Whether there is so much.
    pub(super) fn covers(&self, cost: Cost) -> bool {
        self.0.without(cost).is_some()
    }

    /// Pays, if there is enough; whether there was.
    #[inline]
    pub(super) fn pay(&mut self, cost: Cost) -> bool {
        self.0.without(cost).map(|rest| self.0 = rest).is_some()
    }

    /// The peer gives some back; false if that is more than was paid.
    pub(super) fn refund(&mut self, cost: Cost) -> bool {
        self.0 = self.0.with(cost);
        Cost::whole().without(self.0).is_some()
    }
}

/// What a peer may still send to me. This, what I owe it, and what of it is unreceived here add up to the whole at all times.
#[derive(Debug)]
pub(super) struct Grant {
    left: Cost,
    /// Received, and not given back yet.
    owed: Cost,
}

impl Default for Grant {
    fn default() -> Self {
        Self { left: Cost::whole(), owed: Cost::default() }
    }
}

impl Grant {
    /// The peer has paid for a message; false if it had not the credit for that.
    #[inline]
    pub(super) fn pay(&mut self, cost: Cost) -> bool {
        self.left.without(cost).map(|rest| self.left = rest).is_some()
    }

    /// A message of the peer was received. Gives what is to be given back now: credit goes back in lumps of a quarter, so that most messages
    /// cost no frame of their own.
    #[inline]
    pub(super) fn receive(&mut self, cost: Cost) -> Option<Cost> {
        self.owed = self.owed.with(cost);
        let Cost { bytes, envelopes } = Cost::whole();
        let is_much = self.owed.bytes >= bytes / 4 || self.owed.envelopes >= envelopes / 4;
        is_much.then(|| {
            self.left = self.left.with(self.owed);
            std::mem::take(&mut self.owed)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn credit_ends_and_no_more_comes_back_than_was_paid() {
        let mut credit = Credit::default();
        let most = CREDIT_BYTES / MESSAGE_COST;
        assert!((0..most).all(|_| credit.pay(Cost::eager(0))) && !credit.pay(Cost::eager(0)));
        assert!(credit.pay(Cost::ENVELOPE), "envelopes cost no bytes");
        assert!(credit.refund(Cost::eager(0)) && credit.pay(Cost::eager(0)) && !credit.pay(Cost::eager(0)));
        assert!(!credit.refund(Cost { bytes: u64::MAX, envelopes: 1 }));
        assert!(!Credit::default().refund(Cost::ENVELOPE));
    }

    proptest! {
        /// Both sides count the same, whatever is sent, and in whatever order it is received: who pays is never refused, and all comes back
        /// but for less than a quarter.
        #[test]
        fn both_accounts_agree(deeds in proptest::collection::vec((0..=EAGER_BYTES_MAX as u64, any::<bool>(), any::<bool>()), 0..200)) {
            let (mut credit, mut grant, mut held) = (Credit::default(), Grant::default(), vec![]);
            for (length, is_eager, receives) in deeds {
                let cost = if is_eager { Cost::eager(length) } else { Cost::ENVELOPE };
                if credit.pay(cost) {
                    prop_assert!(grant.pay(cost));
                    held.push(cost);
                }
                if receives && !held.is_empty() {
                    let received = held.swap_remove(length as usize % held.len());
                    prop_assert!(grant.receive(received).is_none_or(|cost| credit.refund(cost)));
                }
                let all = held.iter().fold(grant.left.with(grant.owed), |sum, cost| sum.with(*cost));
                prop_assert_eq!(all, Cost::whole());
                prop_assert_eq!(credit.0, grant.left);
            }
            for cost in held {
                grant.receive(cost);
            }
            prop_assert!(grant.left.bytes > CREDIT_BYTES / 4 * 3 && grant.left.envelopes > ENVELOPES_MAX / 4 * 3);
        }
    }
}
