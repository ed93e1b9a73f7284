//! Agreements that the survivors of a communicator cannot come to among themselves: the arbiter makes them.
//!
//! As long as nobody fails the members of a communicator agree by an allreduce, and the arbiter hears nothing of it.
//! When a member has failed, some of the others may have the outcome already and the rest never will; so whoever has
//! none turns to the arbiter, which asks all members that live. One that has finished says what came out, and that is
//! it: an allreduce that ended somewhere had the word of everybody. If none has, the words of the living decide. Every
//! survivor is told the same, in either way.

use std::collections::BTreeMap;

use crate::rank::{Agreement, Generation, Rank};
use crate::wire::control::{CommunicatorId, News, Verdict, Word};

#[derive(Debug, Default)]
struct Round {
    members: Vec<Rank>,
    words: BTreeMap<Rank, Word>,
    /// All members were asked.
    asked: bool,
}

/// Rounds under way, by their communicator and their number. A rank that has finished one may be in the
/// next already, but no further.
#[derive(Debug, Default)]
pub(super) struct Agreements {
    rounds: BTreeMap<(CommunicatorId, u32), Round>,
    /// The last round of each communicator that is over.
    over: BTreeMap<CommunicatorId, u32>,
}

impl Agreements {
    /// A generation has started: nobody is waiting any more.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The word of `rank` in round `number` of a communicator.
    pub(super) fn heard(&mut self, rank: Rank, of: CommunicatorId, number: u32, word: Word) {
        if self.over.get(&of).is_some_and(|over| number <= *over) {
            return; // somebody else has known it
        }
        let round = self.rounds.entry((of, number)).or_default();
        if let Word::Gives { members, .. } = &word {
            round.members.clone_from(members);
        }
        round.words.insert(rank, word);
    }

    /// What is to be said to whom: `takes_part` by rank, `gone` are those that have failed.
    pub(super) fn settle(
        &mut self,
        generation: Generation,
        takes_part: &[bool],
        gone: &[Rank],
    ) -> Vec<(Rank, News)> {
        let mut messages = vec![];
        let over = &mut self.over;
        self.rounds.retain(|&(of, number), round| {
            let context = of.context;
            let voters = round.members.iter().copied().filter(|rank| takes_part.get(*rank) == Some(&true));
            let voters: Vec<Rank> = voters.collect();
            if !std::mem::replace(&mut round.asked, true) {
                let silent = voters.iter().filter(|rank| !round.words.contains_key(rank));
                messages.extend(silent.map(|rank| (*rank, News::Asked { generation, of, number })));
            }
            let is_over = voters.iter().all(|rank| round.words.contains_key(rank));
            if is_over {
                over.insert(of, number);
                let verdict = round.verdict(gone);
                let waiting =
                    voters.into_iter().filter(|rank| matches!(round.words[rank], Word::Gives { .. }));
                messages.extend(waiting.map(|rank| {
                    (rank, News::Agreed { generation, context, number, verdict: verdict.clone() })
                }));
            }
            !is_over
        });
        messages
    }
}

impl Round {
    fn verdict(&self, gone: &[Rank]) -> Verdict {
        let known = self.words.values().find_map(|word| match word {
            Word::Knows(verdict) => Some(verdict.clone()),
            Word::Gives { .. } => None,
        });
        known.unwrap_or_else(|| {
            let failed: Vec<Rank> = gone.iter().copied().filter(|rank| self.members.contains(rank)).collect();
            let mut verdict =
                Verdict { agreement: Agreement { flags: u64::MAX, ..Agreement::default() }, context: 0 };
            let mut unacknowledged = vec![];
            for word in self.words.values() {
                let Word::Gives { flags, context, acknowledged, .. } = word else { continue };
                verdict.agreement.flags &= flags;
                verdict.context = verdict.context.max(*context);
                unacknowledged.extend(failed.iter().filter(|rank| !acknowledged.contains(rank)));
            }
            unacknowledged.sort_unstable();
            unacknowledged.dedup();
            (verdict.agreement.failed, verdict.agreement.unacknowledged) = (failed, unacknowledged);
            verdict
        })
    }
}
