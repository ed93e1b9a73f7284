//! What each rank of a random program does: nobody waits for ever, and what is sent is received.

use ft_comm::Rank;
use serde::{Deserialize, Serialize};

use super::{DRAIN, LOCAL, LONG, Mode, mix};
use crate::Choices;

/// How long messages are, and how many of a kind follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Short,
    Long,
    /// So many that some are always in the queue of their receiver.
    Many,
}

impl Kind {
    fn count(self, below: &mut impl FnMut(usize) -> usize) -> usize {
        match self {
            Self::Short | Self::Long => 1,
            Self::Many => 10 + below(60),
        }
    }

    fn words(self, below: &mut impl FnMut(usize) -> usize) -> usize {
        match self {
            Self::Short => 1 + below(40),
            Self::Long => LONG,
            Self::Many => 1 + below(3),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum How {
    Blocking,
    Posted,
    Probed,
    Claimed,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Collective {
    Sum,
    Reduce(Rank),
    Scan,
    Broadcast(Rank),
    /// By a schedule, two places to the right, with a computation between the two.
    Shift,
    Barrier,
}

/// What a rank does next, whatever its state is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Send {
        on: On,
        to: Rank,
        tag: u32,
        words: usize,
        waits: bool,
    },
    /// From this rank, or from any.
    Receive {
        on: On,
        from: Option<Rank>,
        tag: u32,
        how: How,
    },
    /// Asks whether a message with this tag has come.
    Ask(On, u32),
    /// Waits for all requests, in one of several ways.
    Wait(u64),
    Together(On, Collective),
    /// The same, and does not wait for it.
    Begin(On, Collective),
    /// Sends to the right and receives from the left by a plan, and does not wait for it.
    Exchange,
    /// Waits for all of these that are under way.
    Finish,
    /// All make the communicators of this one.
    Make(Parts),
    /// And free them.
    Free(Parts),
    /// A step ends.
    Boundary,
}

/// Communicators of ranks that are equal modulo a number, in a place of the program's list.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Parts {
    pub(super) place: usize,
    pub(super) colors: usize,
}

/// A communicator: the world's, or that of the own part.
pub(super) type On = Option<Parts>;

impl Parts {
    fn has_both(self, one: Rank, other: Rank) -> bool {
        one % self.colors == other % self.colors
    }

    /// The rank in the world of one of the part that `me` is in.
    pub(super) fn world(self, me: Rank, local: Rank) -> Rank {
        local * self.colors + me % self.colors
    }

    pub(super) fn local(self, rank: Rank) -> Rank {
        rank / self.colors
    }
}

/// The ranks that a communicator has which `me` is in.
pub(super) fn members(on: On, me: Rank, size: usize) -> Vec<Rank> {
    (0..size).filter(|rank| on.is_none_or(|parts| parts.has_both(me, *rank))).collect()
}

/// When communicators are there: from the end of one round to that of another.
fn lives(below: &mut impl FnMut(usize) -> usize, rounds: usize) -> Vec<(Parts, usize, usize)> {
    let count = 1 + below(3);
    (0..count)
        .map(|place| {
            let from = below(rounds / 2 + 1);
            (Parts { place, colors: 1 + below(3) }, from, (from + 3 + below(8)).min(rounds + 1))
        })
        .collect()
}

/// For each rank what it does. Messages of a round are received in that or one of the next two, long ones in that.
pub(super) fn plan(seed: u64, size: usize, mode: Mode, has_records: bool) -> Vec<Vec<Action>> {
    let in_lockstep = mode == DRAIN;
    // All take their checkpoints at one place, and without records nothing may be under way there.
    let begins = has_records || !in_lockstep;
    let mut choices = Choices(seed);
    let mut below = move |end: usize| choices.below(end as u64) as usize;
    // Where only the lost go back there are to be several losses in a run.
    let rounds = if mode == LOCAL { 3 + below(40) } else { 3 + below(8) };
    let lives = lives(&mut below, rounds);
    let mut actions = vec![vec![vec![]; rounds + 2]; size];
    for round in 0..rounds {
        for _ in 0..below(3 * size) {
            let (from, to) = (below(size), below(size));
            // What is sent in a round is received before the communicator is freed.
            let there = lives.iter().filter(|(parts, made, freed)| {
                *made < round && round + 2 <= *freed && parts.has_both(from, to)
            });
            let there: Vec<Parts> = there.map(|(parts, ..)| *parts).collect();
            let on = if below(2) == 0 { there.get(below(4)).copied() } else { None };
            let tag = (2 * round + below(2) + 1000 * on.map_or(0, |parts| parts.place + 1)) as u32;
            // All receives of a tag are from any rank, or all name theirs.
            let key = mix(u64::from(tag) << 8 | to as u64);
            let kind = match key % 11 {
                0 => Kind::Long,
                1 => Kind::Many,
                _ => Kind::Short,
            };
            let later = if kind == Kind::Long { round } else { round + (key / 16) as usize % 3 };
            for _ in 0..kind.count(&mut below) {
                let words = kind.words(&mut below);
                let waits = kind != Kind::Long && below(2) == 0;
                actions[from][round].insert(0, Action::Send { on, to, tag, words, waits });
                let how = [How::Blocking, How::Posted, How::Probed, How::Claimed][below(4)];
                actions[to][later].push(Action::Receive {
                    on,
                    from: key.is_multiple_of(2).then_some(from),
                    tag,
                    how,
                });
            }
            if below(2) == 0 {
                actions[to][later].push(Action::Ask(on, tag));
            }
        }
    }
    let collectives: Vec<Vec<Action>> = (0..rounds + 2)
        .map(|round| {
            let mut there = lives.iter().filter(|(_, made, freed)| *made < round && round <= *freed);
            let chosen = there.nth(below(3));
            let on = chosen.map(|(parts, ..)| *parts);
            // Nothing is under way on a communicator that is freed: it could not begin again.
            let may_begin = begins && chosen.is_none_or(|(.., freed)| round < *freed);
            let collective = match below(8) {
                0 => Some(Collective::Sum),
                // In some programs most are schedules, so that they are under way at lines.
                1..=3 if seed % 3 == 1 => Some(Collective::Shift),
                1 => Some(Collective::Reduce(below(size))),
                2 => Some(Collective::Scan),
                3 => Some(Collective::Broadcast(below(size))),
                4 => Some(Collective::Barrier),
                _ => None,
            };
            let together = collective.map(|collective| match collective {
                // What waits for nothing has no value that could be wrong.
                Collective::Barrier => Action::Together(on, collective),
                _ if below(2) == 0 && may_begin => Action::Begin(on, collective),
                _ => Action::Together(on, collective),
            });
            let made = lives.iter().filter(|(_, made, _)| *made == round);
            let freed = lives.iter().filter(|(.., freed)| *freed == round);
            let made = made.map(|(parts, ..)| Action::Make(*parts));
            let exchange = (begins && below(4) == 0).then_some(Action::Exchange);
            exchange
                .into_iter()
                .chain(together)
                .chain(made)
                .chain(freed.map(|(parts, ..)| Action::Free(*parts)))
                .collect()
        })
        .collect();
    let mut all = vec![];
    for rank in actions {
        let mut own = vec![];
        for (mut round, collective) in rank.into_iter().zip(&collectives) {
            // Sends stay first, so nobody waits for ever.
            let sends = round.iter().filter(|action| matches!(action, Action::Send { .. })).count();
            for at in (sends + 1..round.len()).rev() {
                round.swap(at, sends + below(at - sends + 1));
            }
            round.push(Action::Wait(below(4) as u64));
            let frees = collective.iter().any(|action| matches!(action, Action::Free(_)));
            if frees || below(2) == 0 {
                let at = if frees { round.len() } else { sends + below(round.len() + 1 - sends) };
                round.insert(at, Action::Finish);
            }
            round.extend(collective);
            for action in round {
                own.push(action);
                if !in_lockstep && below(3) == 0 {
                    own.push(Action::Boundary);
                }
            }
            if in_lockstep {
                own.push(Action::Boundary);
            }
        }
        own.extend([Action::Finish, Action::Boundary]);
        all.push(own);
    }
    all
}
