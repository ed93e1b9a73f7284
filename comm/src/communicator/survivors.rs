//! What the survivors of a failure can do without a repair of the world, with the meaning of ULFM ("Post-failure recovery
//! of MPI communication capability", Bland et al. 2013): `MPIX_Comm_revoke`, `_get_failed`, `_ack_failed`, `_agree`,
//! `_shrink`. They belong to message mode [`crate::MessageMode::Continue`].

use super::*;
use ft_proto::rank::Agreement;
use ft_proto::reduction::Op;
use ft_proto::wire::control::{CommunicatorId, ToArbiter, Verdict, Word};

impl Communicator {
    /// Ends all calls on this communicator at all ranks with [`CommError::Revoked`], those under way and those to come, so
    /// that ranks that hear of no failure leave their calls, too; with it go all communicators that were made from it (but
    /// for those of [`Communicator::shrink`]). Not collective; returns at once. The launcher tells
    /// all ranks, so all hear of it or none. The world's own communicators are whole again after the next repair.
    ///
    /// # Errors
    /// The communicator is of an older generation, or the job has ended.
    pub fn revoke(&self) -> Result<(), CommError> {
        let core = &mut *self.core.enter()?;
        if let Err(error @ (CommError::Stale { .. } | CommError::Ended { .. })) = self.current(core) {
            return Err(error);
        }
        let (generation, context) = (core.generation(), self.shared.context);
        let members = self.members().world.to_vec();
        core.driver.submit(ToArbiter::Revoke { generation, context, members });
        core.driver.revoked(context);
        Ok(())
    }

    /// Whether the communicator has been revoked, as far as this rank knows.
    pub fn is_revoked(&self) -> bool {
        self.core.set(Core::look_at_news);
        self.core.peek().driver.failures.is_revoked(self.shared.context)
    }

    /// Ranks of this communicator that are known to have failed in this generation, ascending; not collective, and
    /// others may know more or less (`MPIX_Comm_get_failed`).
    pub fn failed_ranks(&self) -> Vec<Rank> {
        self.core.set(Core::look_at_news);
        let members = self.members();
        let failed = self.core.peek().driver.failures.of(&members.world);
        failed.into_iter().map(|rank| members.local(rank)).collect()
    }

    /// Acknowledges all failures that [`Communicator::failed_ranks`] would give, and gives them: receives from anybody no
    /// longer end because of them, and agreements no longer report them as unacknowledged (`MPIX_Comm_ack_failed`).
    pub fn ack_failed(&self) -> Vec<Rank> {
        let failed = self.failed_ranks();
        let members = self.members();
        let world: Vec<Rank> = failed.iter().map(|rank| members.world[*rank]).collect();
        self.core.set(|core| core.driver.failures.acknowledge(&world));
        failed
    }

    /// All living ranks of the communicator agree on the bitwise AND of their `flags`, and on who has failed; collective
    /// over those that live. Whatever fails meanwhile, all that return get the same. Works on a revoked communicator, and
    /// while calls are interrupted (`MPIX_Comm_agree`).
    ///
    /// Costs an allreduce as long as nobody has failed, else a message to the launcher and back. (The launcher decides,
    /// where ULFM has the consensus among the ranks of Herault et al., "Practical scalable consensus for
    /// pseudo-synchronous distributed systems", 2015: the arbiter of a job is there anyhow.)
    ///
    /// # Errors
    /// The communicator is of an older generation, or the job has ended; never a failure.
    pub fn agree(&self, flags: u64) -> Result<Agreement, CommError> {
        let number = self.next_agreement()?;
        let mut all = [flags];
        let alone = self.size() == 1;
        match if alone { Ok(()) } else { self.allreduce(&mut all, Op::BitAnd) } {
            Ok(()) => {
                let agreement = Agreement { flags: all[0], ..Agreement::default() };
                let verdict = Verdict { agreement: agreement.clone(), context: 0 };
                self.core.enter()?.driver.agreed_here(self.id(), number, verdict);
                Ok(agreement)
            }
            Err(error) if error.is_failure() || matches!(error, CommError::Revoked { .. }) => {
                self.decide(number, flags, 0).map(|verdict| verdict.agreement)
            }
            Err(error) => Err(error),
        }
    }

    /// A communicator of the ranks that have not failed, in their order; collective over those that live, and the same
    /// for all of them. Works on a revoked communicator (`MPIX_Comm_shrink`). Costs a message to the launcher and back.
    ///
    /// # Errors
    /// As [`Communicator::agree`].
    pub fn shrink(&self) -> Result<Self, CommError> {
        let context = self.core.enter()?.next_context();
        let verdict = self.decide(self.next_agreement()?, u64::MAX, context)?;
        let context = self.core.enter()?.use_context(verdict.context)?;
        let failed = verdict.agreement.failed;
        let left = self.members().world.iter().copied().filter(|rank| !failed.contains(rank)).collect();
        Ok(self.made(Group::new(left).expect("every rank of a communicator is there once"), context))
    }

    fn next_agreement(&self) -> Result<u32, CommError> {
        let now = self.core.read()?.generation();
        let (generation, last) = self.shared.agreements.get();
        let number = if generation == now { last + 1 } else { 1 };
        self.shared.agreements.set((now, number));
        Ok(number)
    }

    /// The launcher decides.
    fn decide(&self, number: u32, flags: u64, context: u32) -> Result<Verdict, CommError> {
        let core = &mut *self.core.enter()?;
        core.enter()?;
        if let Err(error @ CommError::Stale { .. }) = self.current(core) {
            return Err(error);
        }
        core.driver.waiting.enter("agree", self.shared.context, None);
        let members = self.members().world.to_vec();
        let word = Word::Gives { members, flags, context, acknowledged: core.driver.failures.acknowledged() };
        core.driver.agree(self.id(), number, word)
    }

    fn id(&self) -> CommunicatorId {
        CommunicatorId { context: self.shared.context, first: self.members().world[0] }
    }
}
