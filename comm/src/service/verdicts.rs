//! What this rank knows of agreements, for the others: they may ask for it while its program computes.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use ft_proto::rank::Generation;
use ft_proto::wire::control::{CommunicatorId, ToArbiter, Verdict, Word};

/// The last agreement of each communicator, and for which that were not over here somebody has asked: that may be two, as who has finished one
/// may fail in the next while others have not finished the first. Clones share
/// it: one is the caller's, one the service's. No lock is held for longer than it takes to look something up.
#[derive(Clone, Debug, Default)]
pub struct Verdicts(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    generation: Generation,
    by_communicator: HashMap<CommunicatorId, Last>,
}

#[derive(Debug, Default)]
struct Last {
    over: Option<(u32, Verdict)>,
    asked: BTreeSet<u32>,
}

impl Verdicts {
    /// The program enters this generation: older agreements are of no more use.
    pub(crate) fn entered(&self, generation: Generation) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Known { generation, ..Known::default() };
    }

    /// Agreement `number` is over here, without the launcher; gives what it is to be told if somebody has asked.
    pub(crate) fn over(&self, of: CommunicatorId, number: u32, verdict: Verdict) -> Option<ToArbiter> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = known.generation;
        let last = known.by_communicator.entry(of).or_default();
        let asked = last.asked.remove(&number);
        last.over = Some((number, verdict.clone()));
        asked.then(|| word(generation, of, number, verdict))
    }

    /// Somebody asks for agreement `number`; gives the answer if there is one.
    pub fn asked(&self, of: CommunicatorId, number: u32) -> Option<ToArbiter> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = known.generation;
        let last = known.by_communicator.entry(of).or_default();
        match &last.over {
            Some((over, verdict)) if *over == number => Some(word(generation, of, number, verdict.clone())),
            _ => {
                last.asked.insert(number);
                None
            }
        }
    }
}

fn word(generation: Generation, of: CommunicatorId, number: u32, verdict: Verdict) -> ToArbiter {
    ToArbiter::Agree { generation, of, number, word: Word::Knows(verdict) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_proto::rank::Agreement;

    #[test]
    fn who_is_asked_for_the_next_one_too_answers_both() {
        let verdicts = Verdicts::default();
        assert!(verdicts.asked(of(4), 7).is_none() && verdicts.asked(of(4), 8).is_none());
        assert!(verdicts.over(of(4), 7, verdict(1)).is_some());
        assert!(verdicts.over(of(4), 8, verdict(2)).is_some());
        assert!(verdicts.over(of(4), 9, verdict(3)).is_none(), "nobody has asked");
    }

    fn of(context: u32) -> CommunicatorId {
        CommunicatorId { context, first: 0 }
    }

    fn verdict(flags: u64) -> Verdict {
        Verdict { agreement: Agreement { flags, ..Agreement::default() }, context: 0 }
    }

    #[test]
    fn whoever_asks_hears_of_it_before_or_after() {
        let verdicts = Verdicts::default();
        verdicts.entered(3);
        assert_eq!(verdicts.over(of(8), 1, verdict(5)), None);
        let expected = |number, flags| Some(word(3, of(8), number, verdict(flags)));
        assert_eq!(verdicts.clone().asked(of(8), 1), expected(1, 5));
        // Asked too early, told when it is over, once.
        assert_eq!(verdicts.asked(of(8), 2), None);
        assert_eq!(verdicts.asked(of(9), 2), None);
        assert_eq!(verdicts.over(of(8), 2, verdict(6)), expected(2, 6));
        assert_eq!(verdicts.over(of(8), 3, verdict(7)), None);
        // What was asked in an older generation is not answered.
        assert_eq!(verdicts.asked(of(8), 4), None);
        verdicts.entered(4);
        assert_eq!(verdicts.over(of(8), 4, verdict(8)), None);
        assert_eq!(verdicts.asked(of(8), 3), None);
    }
}
