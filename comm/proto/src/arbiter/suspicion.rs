//! What ranks say of links to others that broke, while all of them live.
//!
//! A broken link starts a repair that renews it and replaces nobody. A network can be cut between two hosts that both reach the
//! launcher: then new links break as well, again and again, and one of the ranks has to go, as its replacement may be elsewhere.
//! Ranks that go on without a repair accuse those that they cannot reach; unless a death explains that, the accused is lost.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::error::list;
use crate::rank::Rank;
use crate::time::Time;

/// Most characters of a reason that are kept.
const CHARS: usize = 200;

/// So often the link between two living ranks may break without progress in between; then one of them is lost.
const BREAKS: u32 = 2;

/// A link between two ranks has broken.
#[derive(Debug, Default)]
struct Breaks {
    /// How often.
    times: u32,
    /// Why it did last.
    why: String,
}

/// The link of a rank to another broke, and both go on.
#[derive(Debug)]
struct Accusation {
    /// Who says so.
    by: Rank,
    /// When the rank is lost for that.
    due: Time,
    why: String,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Suspicion {
    /// Repairs in a row that replaced nobody.
    empty_repairs: u32,
    /// Which pairs of ranks said, since there was progress, that the link between them broke; of those that were not replaced since.
    broken: BTreeMap<(Rank, Rank), Breaks>,
    /// Ranks that could not be reached by those that were lost for it: they are on the side that stays.
    staying: BTreeSet<Rank>,
    /// Ranks whose links to others broke while these go on: to whom first.
    accused: BTreeMap<Rank, Accusation>,
}

impl Suspicion {
    /// The link between two ranks broke.
    pub(super) fn broke(&mut self, rank: Rank, other: Rank, why: &str) {
        let breaks = self.broken.entry((rank.min(other), rank.max(other))).or_default();
        breaks.times += 1;
        if !why.is_empty() {
            breaks.why = plain(why);
        }
    }

    /// The link of `by` to `rank` broke, and `by` goes on. One accusation among the two is enough.
    pub(super) fn accuse(&mut self, by: Rank, rank: Rank, due: Time, why: &str) {
        if ![by, rank].iter().any(|rank| self.accused.contains_key(rank)) {
            self.accused.insert(rank, Accusation { by, due, why: plain(why) });
        }
    }

    /// A rank is lost: that explains why its links broke.
    pub(super) fn explained(&mut self, rank: Rank) {
        self.accused.retain(|accused, accusation| *accused != rank && accusation.by != rank);
    }

    /// When a rank is lost for what others say.
    pub(super) fn due(&self) -> Option<Time> {
        self.accused.values().map(|accusation| accusation.due).min()
    }

    /// A rank that was accused, and nobody else was lost meanwhile that would explain it; with the rank that has accused it, and
    /// the end of a sentence that says why.
    pub(super) fn convict(&mut self, now: Time) -> Option<(Rank, Rank, String)> {
        let due = self.accused.iter().find(|(_, accusation)| accusation.due <= now);
        let rank = due.map(|(rank, _)| *rank)?;
        self.accused.remove(&rank).map(|accusation| (rank, accusation.by, because(&accusation.why)))
    }

    /// A generation starts, with new links.
    pub(super) fn begin(&mut self) {
        self.accused.clear();
    }

    /// A repair replaces nobody. Gives how many in a row did.
    pub(super) fn replaces_nobody(&mut self) -> u32 {
        self.empty_repairs += 1;
        self.empty_repairs
    }

    /// These ranks are replaced, which explains why their links broke. What is known of others stays: a network that is cut takes
    /// several links with it, of which each repair may show another one. Each has to break once more before it counts.
    pub(super) fn replaces(&mut self, ranks: &[Rank]) {
        self.empty_repairs = 0;
        let staying: Vec<Rank> = ranks.iter().flat_map(|rank| self.cut_from(*rank)).collect();
        self.staying.extend(staying);
        self.broken.retain(|(one, other), _| !ranks.contains(one) && !ranks.contains(other));
        self.broken.values_mut().for_each(|breaks| breaks.times = BREAKS - 1);
    }

    /// Nothing is held against links that broke so far.
    pub(super) fn forgive(&mut self) {
        self.empty_repairs = 0;
        self.broken.clear();
        self.staying.clear();
    }

    /// The pairs whose links broke too often.
    fn pairs(&self) -> impl Iterator<Item = (Rank, Rank)> {
        self.broken.iter().filter(|(_, broken)| broken.times >= BREAKS).map(|(pair, _)| *pair)
    }

    /// The others in pairs with `rank`.
    fn cut_from(&self, rank: Rank) -> impl Iterator<Item = Rank> {
        let others = self.pairs().filter(move |(a, b)| *a == rank || *b == rank);
        others.map(move |(a, b)| if a == rank { b } else { a })
    }

    /// When new links between living ranks broke as well: the rank that most such pairs have in common, and why it is lost. Of
    /// several it is the one whose links broke most often, then one that has not been replaced for that, then the one that is furthest
    /// from ranks on the side that stays (neighbors in number are on one host, mostly), of these the highest; `failures` says
    /// how often a rank was replaced.
    pub(super) fn cut_off(&self, failures: impl Fn(Rank) -> u32) -> Option<(Rank, String)> {
        if self.empty_repairs < BREAKS {
            return None; // it may have been chance
        }
        let all = self.pairs().flat_map(|(a, b)| [a, b]);
        let breaks_of = |rank: Rank| self.broken.iter().filter(move |((a, b), _)| *a == rank || *b == rank);
        let times = |rank: Rank| breaks_of(rank).map(|(_, broken)| broken.times).sum::<u32>();
        let away = |rank: Rank| self.staying.iter().map(|other| rank.abs_diff(*other)).min();
        let worst = all.max_by_key(|rank| {
            (self.cut_from(*rank).count(), times(*rank), Reverse(failures(*rank)), away(*rank), *rank)
        })?;
        let why = breaks_of(worst).map(|(_, broken)| broken.why.as_str()).find(|why| !why.is_empty());
        let (others, why) =
            (list("rank", &self.cut_from(worst).collect::<Vec<_>>()), because(why.unwrap_or_default()));
        Some((worst, format!("its links to {others} broke again and again{why}")))
    }
}

/// The links that broke since there was progress, of ranks that were not replaced since, as the end of a sentence; nothing if none did.
impl std::fmt::Display for Suspicion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let pairs: Vec<String> =
            self.broken.keys().map(|(one, other)| format!("{one} and {other}")).collect();
        if pairs.is_empty() {
            return Ok(());
        }
        let why = self.broken.values().map(|broken| broken.why.as_str()).find(|why| !why.is_empty());
        write!(f, "; links broke between ranks {}{}", pairs.join(", "), because(why.unwrap_or_default()))
    }
}

/// Words of another process, for a line that people read.
fn plain(why: &str) -> String {
    why.chars().filter(|char| !char.is_control()).take(CHARS).collect()
}

/// The end of a sentence that says why, if that is known.
fn because(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!(": {why}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Links of these pairs broke, and so many repairs have replaced nobody.
    fn suspicion(pairs: &[(Rank, Rank)], repairs: u32) -> Suspicion {
        let mut suspicion = Suspicion::default();
        pairs.iter().for_each(|(a, b)| suspicion.broke(*a, *b, ""));
        (0..repairs).for_each(|_| {
            suspicion.replaces_nobody();
        });
        suspicion
    }

    fn cut_off(suspicion: &Suspicion, failures: [u32; 4]) -> Option<Rank> {
        suspicion.cut_off(|rank| failures[rank]).map(|(rank, _)| rank)
    }

    #[test]
    fn a_link_that_breaks_once_or_before_a_repair_may_be_chance() {
        assert_eq!(cut_off(&suspicion(&[(0, 1), (1, 0)], 1), [0; 4]), None);
        assert_eq!(cut_off(&suspicion(&[(0, 1), (1, 2)], 2), [0; 4]), None);
        assert_eq!(cut_off(&suspicion(&[(0, 1), (1, 0)], 2), [0; 4]), Some(1));
    }

    #[test]
    fn the_rank_that_most_pairs_share_is_lost_or_the_one_that_was_not_replaced_yet() {
        let star = suspicion(&[(0, 1), (0, 2), (0, 3), (0, 1), (2, 0), (3, 0)], 2);
        assert_eq!(cut_off(&star, [5, 0, 0, 0]), Some(0));
        let pair = [(2, 3), (2, 3)];
        assert_eq!(cut_off(&suspicion(&pair, 2), [0; 4]), Some(3));
        assert_eq!(cut_off(&suspicion(&pair, 2), [0, 0, 0, 1]), Some(2));
        let mut forgiven = suspicion(&pair, 2);
        forgiven.forgive();
        assert_eq!((cut_off(&forgiven, [0; 4]), forgiven.replaces_nobody()), (None, 1));
    }

    /// Ranks 0 and 1 reach 2 and 3 no more, and not every broken link is known at once: those of one side have to go.
    #[test]
    fn of_two_sides_one_is_lost() {
        let mut cut = suspicion(&[(1, 3), (0, 2), (1, 3), (1, 2), (0, 3)], 2);
        assert_eq!(cut_off(&cut, [0; 4]), Some(3));
        cut.replaces(&[3]);
        assert_eq!((cut.replaces_nobody(), cut.replaces_nobody()), (1, 2));
        assert_eq!(cut_off(&cut, [0, 0, 0, 1]), None, "what broke before has to break once more");
        cut.broke(0, 2, "");
        assert_eq!(cut_off(&cut, [0, 0, 0, 1]), Some(2), "its link to 1 broke as well");
        let mut known_late = suspicion(&[(1, 2), (0, 2), (1, 2)], 2);
        assert_eq!(cut_off(&known_late, [0, 1, 1, 0]), Some(2), "its link to 0 broke once");
        known_late.replaces(&[2]);
        assert_eq!(known_late.to_string(), "");
        let mut far = suspicion(&[(1, 3), (1, 3)], 2);
        assert_eq!(cut_off(&far, [0, 0, 0, 1]), Some(1));
        far.replaces(&[1]);
        for due in [1, 2] {
            far.broke(0, 2, "");
            assert_eq!(far.replaces_nobody(), due);
        }
        assert_eq!(cut_off(&far, [0, 1, 0, 1]), Some(0), "rank 2 is next to 3, which rank 1 could not reach");
    }

    #[test]
    fn reasons_are_lines_for_people() {
        let mut suspicion = suspicion(&[(0, 1)], 2);
        suspicion.broke(1, 0, &format!("no\u{7} route{}", "!".repeat(CHARS)));
        suspicion.broke(1, 0, "");
        let (_, cause) = suspicion.cut_off(|_| 0).expect("a rank");
        assert!(cause.starts_with("its links to rank 0 broke again and again: no route!"), "{cause}");
        assert_eq!(cause.chars().filter(|char| *char == '!').count(), CHARS - "no route".len());
    }

    #[test]
    fn links_that_broke_are_named() {
        let mut suspicion = suspicion(&[(4, 1), (0, 5), (1, 4)], 3);
        assert_eq!(suspicion.to_string(), "; links broke between ranks 0 and 5, 1 and 4");
        suspicion.broke(5, 0, "a damaged byte");
        assert_eq!(suspicion.to_string(), "; links broke between ranks 0 and 5, 1 and 4: a damaged byte");
        suspicion.forgive();
        assert_eq!(suspicion.to_string(), "");
    }

    #[test]
    fn who_is_accused_is_lost_unless_a_death_explains_it() {
        let at = |seconds: u64| Time(seconds * 1_000_000_000);
        let mut suspicion = Suspicion::default();
        suspicion.accuse(0, 1, at(5), "reset");
        suspicion.accuse(1, 0, at(5), "it began");
        suspicion.accuse(2, 3, at(4), "");
        assert_eq!((suspicion.due(), suspicion.convict(at(3))), (Some(at(4)), None));
        assert_eq!(suspicion.convict(at(6)), Some((1, 0, ": reset".into())));
        suspicion.explained(2);
        assert_eq!((suspicion.due(), suspicion.convict(at(6))), (None, None));
        suspicion.accuse(0, 1, at(5), "");
        suspicion.begin();
        assert_eq!(suspicion.due(), None);
    }
}
