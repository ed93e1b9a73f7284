//! The commit ledger: what one rank knows about its checkpoints, as a pure state machine.
//!
//! # Why one committed checkpoint is always whole
//!
//! A checkpoint is a two-phase commit. First every rank *stages* epoch `e`: it copies its state, and sends and
//! receives until it holds the copy and all redundant blocks that are its to hold. Then all ranks vote. A rank *commits*
//! `e` when it learns that all have voted yes.
//!
//! There are two slots, used by the parity of the epoch, so staging `e + 1` overwrites `e - 1`. Three rules, and what
//! keeps them (`Checkpointer` means the code in `checkpointer/staging.rs`):
//!
//! 1. A rank votes yes for `e` only when it holds `e` whole, and commits `e` only when all have voted yes. So once anybody
//!    has committed `e`, *everybody* holds `e` whole, staged or committed. [`Ledger::apply`] takes a commit from a rank
//!    that has staged only; `Checkpointer` starts the vote when its exchange is done. The vote is the smallest of the
//!    words of all, by an allreduce, and that ends on no rank before all ranks have put their words in.
//! 2. A rank begins `e + 1` only after its own commit of `e`: [`Ledger::apply`] refuses any other [`Event::Begin`]. So
//!    whoever holds `e - 1` no longer has committed `e`, and by rule 1 everybody else holds `e`, too.
//! 3. A rank writes into the slot of `e + 1` only between its own [`Event::Begin`] and its vote. The copy is made
//!    straight after `Begin`. Blocks of others come in by the steps of an exchange that this rank itself starts after that
//!    (`GroupComm::start_encoding`, `start_update`). A block that comes earlier is not written: it waits in the link, or in memory of the
//!    driver, until a step asks for it.
//!
//! After a failure the survivors compare reports and [`choose`] the newest epoch `e` that any of them has *committed*.
//! By rule 1 every survivor holds it. If nobody has committed `e`, the newest is `e - 1`; then nobody alive has begun
//! `e + 1`, so by rules 2 and 3 every survivor holds `e - 1` unharmed. Ranks that died took their knowledge with them,
//! not the proof: whatever they had committed was staged by all, and one epoch less was committed by all.
//!
//! The vote need not survive failures. When a rank dies in it, the allreduce ends well on some ranks and is interrupted
//! on the others. A rank that is interrupted cannot know the outcome. It keeps `e` *and* `e - 1`
//! ([`State::Interrupted`]) and does nothing until it is told what was chosen ([`Event::Restored`]). The same holds when
//! a restore is itself interrupted: a replacement reports nothing until all ranks have said that they hold what was
//! chosen, a survivor reports what it had.
//!
//! If nobody alive has committed anything, the program starts again from `init`; whatever a dead rank had committed is
//! given up with it. That is sound only if somebody is left who knows that there is nothing better: a rank that took
//! part from `init` on, or was restored. By rule 1 it would hold what another had committed. If all are replacements
//! that know nothing, those who held a checkpoint may all be gone ([`Report::knows_nothing`]).
//!
//! An epoch that was given up (a failed vote, a failure) is attempted again under the same number, and pieces of the two
//! attempts must not be mixed. After a failure they are not, as no message is delivered in another generation than
//! its own. After a failed vote they are not, as a rank that votes no has run its exchange to the end, too, so nothing of
//! it is left to be received.
//!
//! An epoch may begin anew: with another layout, as ranks have closed up, or with another constant part, as another run of the
//! program has begun or ended. It is staged in slots of its own (`Placement`), so rule 3 holds for it whatever it writes. The slots
//! before are dropped after the rank's own commit of it; by rule 1 everybody holds it then. After a failure a survivor takes the new
//! slots for the current ones if their first epoch is the chosen one, and drops them otherwise. In the first case it keeps the
//! old ones until it is restored (`Placements::choose`), as it does with `e - 1`: should all die that have committed
//! `e`, the next choice is `e - 1`. In the second case nobody alive has committed what it drops, and nobody will.
//!
//! Where memory is to be saved (`checkpointer/live.rs`), a rank has one own copy, and the live state is the other. It stages
//! `e` without a copy: while the program waits for the commit its state is that of `e`, and the redundancy of `e` is made from it.
//! Only when it knows that somebody has committed `e` does it write the state over its copy of `e - 1`. It knows it by its own
//! commit, or after a failure by the choice ([`Event::CommittedElsewhere`]). By rule 1 everybody holds `e` then; and as the
//! rank counts `e` as committed from then on, `e - 1` is not chosen any more while it lives.
//!
//! A job may be protected at several levels, each with a ledger and memory of its own (`resilient/levels.rs`). A level that is passed by
//! in a restore ([`Event::PassedBy`]) has lost what some ranks had of it. These say so from then on, so that it is chosen only if it can
//! be decoded without them, and nobody has it whole again before the next epoch, which begins anew in slots of its own.
//!
//! Beside this, memory of a committed epoch is written only to make right what is damaged (`checkpointer/trying.rs`,
//! `checkpointer/scrubbing.rs`), and what is damaged counts as lost.
//!
//! What this module does not do: messages, the vote, timeouts, memory. `protocol/model.rs` runs several ledgers, with
//! messages, votes, memory and files as the code has them, through all interleavings of a small job with crashes
//! anywhere. It finds the breach when one of these rules is switched off.

mod error;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub use error::LedgerError;

/// The largest epoch: a report has 24 bits for it.
pub const EPOCH_MAX: u32 = (1 << 24) - 1;

/// Where a rank is between two commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// No checkpoint is under way.
    Idle,
    /// The copy is being made and blocks are being exchanged; the slot of this epoch is torn.
    Staging(u32),
    /// All of this epoch is here, and the vote is under way.
    Staged(u32),
    /// A failure was noticed; only [`Event::Restored`] leads out. Holds the epoch that was staged whole and is not known to be committed,
    /// if any.
    Interrupted(Option<u32>),
}

/// What happens to a rank; each event names the epoch it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// The program takes a checkpoint: the slot of this epoch may be overwritten from now on.
    Begin(u32),
    /// The copy and all redundant blocks that this rank holds are complete.
    Staged(u32),
    /// All ranks have voted yes: they have staged this epoch.
    VotePassed(u32),
    /// Some rank has voted no, as it could not stage this epoch. Nobody commits it, and its number is used again.
    VoteFailed(u32),
    /// A call of the checkpoint failed because a rank did.
    Interrupted,
    /// A failure came before the outcome of the vote was known here; the choice after it says that some rank has committed this epoch,
    /// so all have voted yes.
    CommittedElsewhere(u32),
    /// This rank holds all of this epoch, chosen by all; 0: the program starts again from `init`.
    Restored(u32),
    /// All go on from another level of protection. This rank has nothing of this epoch, the newest that anybody has committed here; it
    /// counts it all the same, as others may have it, and the next one begins anew. 0: all have given up what they had.
    PassedBy(u32),
}

/// What one rank knows about the checkpoints of one session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ledger {
    session: u16,
    committed: u32,
    state: State,
    /// It took part in all that was staged since `init` or the last restore.
    knows: bool,
    /// It counts the committed epoch, and has nothing of it.
    empty: bool,
    #[cfg(test)]
    bug: model::Bug,
}

impl Ledger {
    /// Returns the ledger of a rank without any checkpoint; every rank of the job gives the same `session`, not 0.
    ///
    /// A session is one series of epochs. Ranks that have opened a later one have given up the earlier.
    pub fn new(session: u16) -> Self {
        Self {
            session,
            committed: 0,
            state: State::Idle,
            knows: true,
            empty: false,
            #[cfg(test)]
            bug: model::Bug::None,
        }
    }

    /// As [`Ledger::new`], for a replacement: it knows nothing until it is restored.
    pub fn replacement(session: u16) -> Self {
        Self { knows: false, ..Self::new(session) }
    }

    /// The ledger of a rank whose predecessor has left it memory that holds what `report` says: it is in the place of a survivor that
    /// was interrupted.
    pub fn heir(report: Report) -> Self {
        let state = State::Interrupted((report.staged > 0).then_some(report.staged));
        Self { committed: report.committed, state, ..Self::new(report.session) }
    }

    /// Returns where this rank is.
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns the session given at the start.
    pub fn session(&self) -> u16 {
        self.session
    }

    /// Returns the newest epoch that this rank has committed.
    pub fn committed(&self) -> Option<u32> {
        (self.committed > 0).then_some(self.committed)
    }

    /// Returns the epoch that [`Event::Begin`] must name; its slot is `epoch % 2`.
    pub fn next_epoch(&self) -> u32 {
        self.committed + 1
    }

    /// Returns this rank's word for the membership agreement.
    pub fn report(&self) -> Report {
        let staged = match self.state {
            State::Staged(epoch) | State::Interrupted(Some(epoch)) => epoch,
            State::Idle | State::Staging(_) | State::Interrupted(None) => 0,
        };
        let committed = if self.empty { 0 } else { self.committed };
        Report { session: if self.knows { self.session } else { 0 }, committed, staged }
    }

    /// Takes one event and returns the new state.
    ///
    /// # Errors
    ///
    /// Any [`LedgerError`]; nothing has changed then.
    pub fn apply(&mut self, event: Event) -> Result<State, LedgerError> {
        let (state, committed) = self.after(event)?;
        self.state = state;
        self.committed = committed;
        self.knows |= matches!(event, Event::Restored(_) | Event::PassedBy(_));
        match event {
            Event::PassedBy(_) => self.empty = true,
            Event::VotePassed(_) | Event::CommittedElsewhere(_) | Event::Restored(_) => self.empty = false,
            Event::Begin(_) | Event::Staged(_) | Event::VoteFailed(_) | Event::Interrupted => {}
        }
        Ok(state)
    }

    /// The transition table: the state and the committed epoch after `event`.
    fn after(&self, event: Event) -> Result<(State, u32), LedgerError> {
        #[cfg(test)]
        if let Some(wrong) = self.bug.after(self, event) {
            return Ok(wrong);
        }
        let committed = self.committed;
        let is = |epoch: u32, expected: u32| match epoch == expected {
            true => Ok(()),
            false => Err(LedgerError::WrongEpoch { event, expected }),
        };
        match (self.state, event) {
            (State::Idle, Event::Begin(epoch)) => {
                is(epoch, self.next_epoch())?;
                if epoch > EPOCH_MAX {
                    return Err(LedgerError::TooLarge { epoch });
                }
                Ok((State::Staging(epoch), committed))
            }
            (State::Staging(now), Event::Staged(epoch)) => {
                is(epoch, now)?;
                Ok((State::Staged(epoch), committed))
            }
            (State::Staged(now), Event::VotePassed(epoch)) => {
                is(epoch, now)?;
                Ok((State::Idle, epoch))
            }
            (State::Staging(now) | State::Staged(now), Event::VoteFailed(epoch)) => {
                is(epoch, now)?;
                Ok((State::Idle, committed))
            }
            (State::Staged(epoch), Event::Interrupted) => Ok((State::Interrupted(Some(epoch)), committed)),
            (State::Idle | State::Staging(_), Event::Interrupted) => {
                Ok((State::Interrupted(None), committed))
            }
            (State::Interrupted(staged), Event::Interrupted) => Ok((State::Interrupted(staged), committed)),
            (State::Interrupted(Some(now)), Event::CommittedElsewhere(epoch)) => {
                is(epoch, now)?;
                Ok((State::Interrupted(None), epoch))
            }
            (State::Idle | State::Interrupted(_), Event::PassedBy(0)) => Ok((State::Idle, 0)),
            (State::Idle | State::Interrupted(_), Event::Restored(epoch) | Event::PassedBy(epoch)) => {
                // Of what an empty rank counts it holds nothing, and those who did may be gone.
                if epoch < committed && !self.empty {
                    return Err(LedgerError::Older { epoch, committed });
                }
                if epoch > EPOCH_MAX {
                    return Err(LedgerError::TooLarge { epoch });
                }
                // A replacement has committed nothing and may be given any epoch; others are one behind at most.
                if committed > 0 && epoch > committed && !self.empty {
                    is(epoch, self.next_epoch())?;
                }
                Ok((State::Idle, epoch))
            }
            _ => Err(LedgerError::OutOfOrder { state: self.state, event }),
        }
    }
}

/// What a rank tells the others when they agree on the membership, in 64 bits.
///
/// ```text
/// 63      48 47              24 23               0
/// | session |  staged epoch   |  committed epoch  |      0: nothing, as replacements report
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// The session of the epochs; 0 of a replacement that was not restored.
    pub session: u16,
    /// The newest committed epoch, at most [`EPOCH_MAX`]; 0: none.
    pub committed: u32,
    /// The epoch that is staged whole and not known to be committed, at most [`EPOCH_MAX`]; 0: none.
    pub staged: u32,
}

impl Report {
    /// Whether the rank cannot say what there is: a replacement that was not restored.
    pub fn knows_nothing(&self) -> bool {
        self.session == 0
    }
}

impl From<Report> for u64 {
    fn from(report: Report) -> Self {
        debug_assert!(report.committed <= EPOCH_MAX && report.staged <= EPOCH_MAX);
        Self::from(report.session) << 48 | Self::from(report.staged) << 24 | Self::from(report.committed)
    }
}

impl From<u64> for Report {
    fn from(bits: u64) -> Self {
        let epoch = |shift: u32| (bits >> shift) as u32 & EPOCH_MAX;
        Self { session: (bits >> 48) as u16, committed: epoch(0), staged: epoch(24) }
    }
}

/// What is restored after a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The session of `epoch`; 0 if there is none.
    pub session: u16,
    /// The epoch to restore; `None`: nobody has committed anything, so the program starts again from `init`.
    pub epoch: Option<u32>,
    /// For each rank whether it holds its shard and blocks of `epoch`; the others must be rebuilt.
    pub holders: Vec<bool>,
}

/// Chooses the newest epoch that anybody has committed, from the [`Report`]s of all ranks in the order of ranks.
///
/// The reports of replacements, and of ranks that are lost, are 0. All ranks that give the same reports get the same
/// choice. A later session wins as soon as one of its epochs is committed.
pub fn choose(reports: &[u64]) -> Choice {
    let reports: Vec<Report> = reports.iter().copied().map(Report::from).collect();
    let newest = reports.iter().filter(|r| r.committed > 0).map(|r| (r.session, r.committed)).max();
    let Some((session, epoch)) = newest else {
        return Choice { session: 0, epoch: None, holders: vec![false; reports.len()] };
    };
    let holds = |r: &Report| r.session == session && (r.committed == epoch || r.staged == epoch);
    Choice { session, epoch: Some(epoch), holders: reports.iter().map(holds).collect() }
}
