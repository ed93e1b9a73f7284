//! What has gone over the links between hosts, to tell whether something of it was lost on the way.
//!
//! Whoever passes bytes on between hosts may acknowledge them and lose them. If they were the last for a while, nothing that
//! follows shows it: the sender waits for an answer, the receiver for the rest of a record. So a process counts what it sends to
//! each peer and what it receives, and whoever has waited for a peer for long asks for its count ([`super::Probe`]). A link is of
//! no use any more when its peer has sent more than came, and for a heartbeat timeout nothing more did.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ft_proto::rank::{Generation, PeerId};

/// Bytes between this process and a peer on another host, over all links of a generation.
#[derive(Debug, Default)]
pub(super) struct Account {
    sent: AtomicU64,
    received: AtomicU64,
    /// What the peer has sent, by its own word, at the latest question.
    claimed: AtomicU64,
    /// What was claimed, and what had come, at the last [`Account::is_short`].
    last: Mutex<(u64, u64)>,
}

impl Account {
    pub(super) fn sends(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn receives(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Whether something is missing that the peer had sent before the last call, and nothing has come since.
    pub(super) fn is_short(&self) -> bool {
        let (claimed, received) =
            (self.claimed.load(Ordering::Relaxed), self.received.load(Ordering::Relaxed));
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (claimed_before, received_before) = std::mem::replace(&mut *last, (claimed, received));
        received == received_before && received < claimed_before
    }
}

#[derive(Debug, Default)]
struct Book {
    generation: Option<Generation>,
    accounts: HashMap<PeerId, Arc<Account>>,
}

/// The accounts of a process with all its peers; shared by the caller, who sends and receives, and the service thread, which asks
/// and answers. See the module.
#[derive(Clone, Debug, Default)]
pub struct Accounts(Arc<Mutex<Book>>);

impl Accounts {
    fn with<T>(&self, action: impl FnOnce(&mut Book) -> T) -> T {
        action(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The links of this generation begin, and all accounts with them.
    pub(super) fn begin(&self, generation: Generation) {
        self.with(|book| *book = Book { generation: Some(generation), accounts: HashMap::new() });
    }

    /// The account with `peer`.
    pub(super) fn of(&self, peer: PeerId) -> Arc<Account> {
        self.with(|book| book.accounts.entry(peer).or_default().clone())
    }

    /// Bytes that were sent to `peer` over links of this generation.
    pub(super) fn sent(&self, generation: Generation, peer: PeerId) -> u64 {
        self.with(|book| {
            let account = book.accounts.get(&peer).filter(|_| book.generation == Some(generation));
            account.map_or(0, |account| account.sent.load(Ordering::Relaxed))
        })
    }

    /// So many bytes `peer` says to have sent over links of this generation.
    pub(crate) fn claims(&self, generation: Generation, peer: PeerId, bytes: u64) {
        self.with(|book| {
            if book.generation == Some(generation) {
                let account = book.accounts.entry(peer).or_default();
                account.claimed.fetch_max(bytes, Ordering::Relaxed);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: PeerId = PeerId(2);

    #[test]
    fn what_was_sent_and_does_not_come_is_missed_at_the_second_look() {
        let accounts = Accounts::default();
        accounts.begin(1);
        let account = accounts.of(PEER);
        account.receives(10);
        assert!(!account.is_short(), "nothing is claimed");
        accounts.claims(1, PEER, 30);
        assert!(!account.is_short(), "the rest may be on its way");
        account.receives(10);
        assert!(!account.is_short(), "some of it has come since");
        assert!(account.is_short());
        account.receives(10);
        assert!(!account.is_short());
        accounts.claims(1, PEER, 25);
        assert!(!account.is_short() && !account.is_short(), "an older answer");
    }

    #[test]
    fn accounts_end_with_their_generation() {
        let accounts = Accounts::default();
        accounts.claims(1, PEER, 30);
        accounts.begin(1);
        accounts.of(PEER).sends(5);
        assert_eq!((accounts.sent(1, PEER), accounts.sent(1, PeerId(3)), accounts.sent(2, PEER)), (5, 0, 0));
        accounts.begin(2);
        accounts.claims(1, PEER, 30);
        assert_eq!(accounts.sent(2, PEER), 0);
        assert!((0..3).all(|_| !accounts.of(PEER).is_short()));
    }
}
