//! The launcher's side of the watchdog: makes one account of all ranks out of what single ranks say of their waits.
//!
//! A rank says that it waits when it has done so for the time that was set, or for half a second where none was, and that it moves again.
//! Whoever asks is told. The account is for those who have set a time: it is given at once when no rank is left that could move, else one such time after the first of the waits that it has
//! not named yet; so there is at most one in that time, and none without news. Waits for certain ranks make a graph
//! (each of them is needed: the AND model of Chandy, Misra and Haas, "Distributed deadlock detection", 1983), in
//! which a cycle is a deadlock, whatever the others do.

use std::fmt::Write as _;
use std::time::Duration;

use crate::error::list;
use crate::rank::Rank;
use crate::time::Time;
use crate::wire::wait::{Awaited, Wait};

/// How long a call waits before its rank says so, where nobody has set a time: so long that saying it costs nothing.
const NOTABLE: Duration = Duration::from_millis(500);

/// How long a call may wait before its rank says so, with the time that was set for the watchdog if one was.
pub fn patience(watchdog: Option<Duration>) -> Duration {
    watchdog.unwrap_or(NOTABLE)
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Doing {
    /// It computes, or its calls return in time.
    Moves,
    Waits {
        wait: Wait,
        since: Time,
    },
    /// It is lost, and its replacement has said nothing yet.
    Lost,
}

/// The watchdog's account: who waits for whom, out of what single ranks say. Memory: one wait a rank.
#[derive(Debug)]
pub struct Watch {
    /// Of whoever wants accounts; none if nobody does.
    patience: Option<Duration>,
    ranks: Vec<Doing>,
    /// When the account is due that names the waits which none has named yet; none if there are none.
    due: Option<Time>,
}

impl Watch {
    /// Watches this number of ranks, each of which speaks up after [`patience`]. Without a time that was set there are no accounts.
    pub fn new(patience: Option<Duration>, ranks: usize) -> Self {
        Self { patience, ranks: vec![Doing::Moves; ranks], due: None }
    }

    /// A rank has waited for as long as `wait` says, and still does. Awaited ranks that do not exist are ignored.
    pub fn waiting(&mut self, now: Time, rank: Rank, mut wait: Wait) {
        let total = self.ranks.len();
        let Some(doing) = self.ranks.get_mut(rank) else { return };
        if let Awaited::Ranks(ranks) = &mut wait.awaited {
            ranks.retain(|rank| *rank < total);
            ranks.sort_unstable();
            ranks.dedup();
        }
        let since = Time(now.0.saturating_sub(wait.millis.saturating_mul(1_000_000)));
        *doing = Doing::Waits { wait, since };
        self.due = self.due.or(self.patience.map(|patience| now.after(patience)));
    }

    /// A rank moves again.
    pub fn moving(&mut self, rank: Rank) {
        self.becomes(rank, Doing::Moves);
    }

    /// A rank is lost; what its replacement does is still to be heard.
    pub fn lost(&mut self, rank: Rank) {
        self.becomes(rank, Doing::Lost);
    }

    fn becomes(&mut self, rank: Rank, what: Doing) {
        if let Some(doing) = self.ranks.get_mut(rank) {
            *doing = what;
        }
        if self.waits().next().is_none() {
            self.due = None;
        }
    }

    /// A generation begins: all ranks are back, and no call of before waits any more.
    pub fn clear(&mut self) {
        self.ranks.fill(Doing::Moves);
        self.due = None;
    }

    /// When [`Watch::tick`] has something to say, unless something changes before.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.due.map(|due| if self.all_wait() { Time(0) } else { due })
    }

    /// The account of all ranks together, if one is due: several lines, without an end of line behind the last.
    /// O(ranks + awaited ranks), but for the length of a chain of waits.
    pub fn tick(&mut self, now: Time) -> Option<String> {
        if self.poll_timeout().is_none_or(|due| due > now) {
            return None;
        }
        self.due = None;
        Some(self.account(now))
    }

    /// The ranks that have waited long and still do, in which call, and since when.
    pub fn waits(&self) -> impl Iterator<Item = (Rank, &Wait, Time)> {
        self.ranks.iter().enumerate().filter_map(|(rank, doing)| match doing {
            Doing::Waits { wait, since } => Some((rank, wait, *since)),
            Doing::Moves | Doing::Lost => None,
        })
    }

    /// The call in which a rank has waited long and still does, and since when.
    pub fn wait_of(&self, rank: Rank) -> Option<(&Wait, Time)> {
        match self.ranks.get(rank)? {
            Doing::Waits { wait, since } => Some((wait, *since)),
            Doing::Moves | Doing::Lost => None,
        }
    }

    fn all_wait(&self) -> bool {
        self.waits().count() == self.ranks.len()
    }

    fn account(&self, now: Time) -> String {
        let those = |what: &Doing| -> Vec<Rank> {
            (0..self.ranks.len()).filter(|rank| self.ranks[*rank] == *what).collect()
        };
        let (moving, lost) = (those(&Doing::Moves), those(&Doing::Lost));
        let mut text = match self.all_wait() {
            true => "no rank is moving: a deadlock?".to_owned(),
            false => format!("{} of {} ranks wait", self.waits().count(), self.ranks.len()),
        };
        // Writing to a string never fails.
        for (rank, wait, since) in self.waits() {
            let _ = write!(
                text,
                "\n  rank {rank} waits in {wait}, since {:.1} s",
                now.since(since).as_secs_f64()
            );
        }
        let verb = |ranks: &[Rank], one, many| if ranks.len() == 1 { one } else { many };
        if !moving.is_empty() {
            let what = verb(&moving, "computes: it is in no call", "compute: they are in no call");
            let _ = write!(text, "\n  {} {what} that waits long", list("rank", &moving));
        }
        if !lost.is_empty() {
            let what = verb(&lost, "is lost and not back yet", "are lost and not back yet");
            let _ = write!(text, "\n  {} {what}", list("rank", &lost));
        }
        if let Some(cycle) = self.cycle() {
            let _ = write!(text, "\n  {}", in_words(&cycle));
        }
        text
    }

    /// Ranks that wait for each other, each for the next and the last for the first: the cycle that is found first
    /// from the lowest rank, by depth-first search.
    fn cycle(&self) -> Option<Vec<Rank>> {
        let awaited = |rank: Rank| match &self.ranks[rank] {
            Doing::Waits { wait, .. } => wait.certain(),
            Doing::Moves | Doing::Lost => &[],
        };
        let mut seen = vec![false; self.ranks.len()];
        for start in 0..self.ranks.len() {
            // The ranks on the path from `start`, and of each how many of its awaited ranks were looked at.
            let mut path: Vec<(Rank, usize)> = vec![];
            if !std::mem::replace(&mut seen[start], true) {
                path.push((start, 0));
            }
            while let Some((rank, at)) = path.last_mut() {
                let Some(&next) = awaited(*rank).get(*at) else {
                    path.pop();
                    continue;
                };
                *at += 1;
                if let Some(first) = path.iter().position(|(rank, _)| *rank == next) {
                    return Some(path[first..].iter().map(|(rank, _)| *rank).collect());
                }
                if seen.get(next) == Some(&false) {
                    seen[next] = true;
                    path.push((next, 0));
                }
            }
        }
        None
    }
}

/// Who waits for whom in a cycle, which has at least one rank.
fn in_words(cycle: &[Rank]) -> String {
    let links: Vec<String> = match cycle {
        [_] => vec!["itself".into()],
        _ => cycle[1..].iter().chain(&cycle[..1]).map(|rank| format!("rank {rank}")).collect(),
    };
    format!("rank {} waits for {}", cycle[0], links.join(", which waits for "))
}

#[cfg(test)]
mod tests;
