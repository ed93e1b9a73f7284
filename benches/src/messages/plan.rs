//! What is to be compared, and in which order.

use std::fmt;
use std::path::PathBuf;

use super::side::Side;
use super::test::{COLLECTIVES, Operation, POINT_TO_POINT, Selection, Test};

/// Ranks of the jobs whose start is timed.
pub(crate) const START_RANKS: [usize; 4] = [2, 4, 8, 16];
/// What a start is called among the tests.
pub(crate) const START: Test = Test { operation: Operation::Start, bytes: 0 };

/// What is to be compared.
#[derive(Clone, Debug)]
pub struct Order {
    /// Where `ftrun` and the folder `examples` lie.
    pub programs: PathBuf,
    /// Installation of MPICH, the folder with `bin`.
    pub mpich: Option<PathBuf>,
    /// Installation of Open MPI.
    pub openmpi: Option<PathBuf>,
    /// Process starts of every side.
    pub rounds: usize,
    /// Seconds a test.
    pub time_s: f64,
    /// Which tests.
    pub selection: Selection,
    /// Ranks of the collectives.
    pub ranks: Vec<usize>,
    /// Congestion control of the machine while it is measured; none leaves it.
    pub congestion: Option<String>,
    /// The one that `ft-comm` asks for.
    pub comm_congestion: String,
}

/// What a process start is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Tests of two ranks, which have a core each.
    Pair,
    /// Tests of so many ranks.
    Collectives(usize),
    /// The start itself.
    Start(usize),
}

impl Task {
    pub(crate) fn ranks(self) -> usize {
        match self {
            Self::Pair => 2,
            Self::Collectives(ranks) | Self::Start(ranks) => ranks,
        }
    }

    /// What a side measures of it.
    fn tests(self, side: Side, selection: &Selection) -> Vec<Test> {
        let is_offered = |test: &Test| match (self, test.operation) {
            // More of it would be a message layer.
            (Self::Collectives(_), operation) if side.is_raw() => {
                operation == Operation::Barrier || (operation, test.bytes) == (Operation::Allreduce, 8)
            }
            (Self::Start(_), _) => !side.is_raw(),
            (_, Operation::RateCoalesced) => side.is_raw(),
            _ => side != Side::MpichShared,
        };
        let all: &[Test] = match self {
            Self::Pair => &POINT_TO_POINT,
            Self::Collectives(_) => &COLLECTIVES,
            Self::Start(_) => &[START],
        };
        all.iter().filter(|test| is_offered(test)).copied().filter(|&test| selection.has(test)).collect()
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pair => write!(f, "messages"),
            Self::Collectives(ranks) => write!(f, "collectives of {ranks} ranks"),
            Self::Start(ranks) => write!(f, "start of {ranks} ranks"),
        }
    }
}

/// One process start, or a few for the start itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) round: usize,
    pub(crate) side: Side,
    pub(crate) task: Task,
    pub(crate) tests: Vec<Test>,
}

/// Everything once in each round, the sides of a task one after the other. Each round begins with another side, and
/// every second one goes on backwards, so that none always follows the same.
pub(crate) fn runs(order: &Order, sides: &[Side]) -> Vec<Run> {
    let collectives = order.ranks.iter().map(|&ranks| Task::Collectives(ranks));
    let tasks = std::iter::once(Task::Pair).chain(collectives).chain(START_RANKS.map(Task::Start));
    let tasks: Vec<Task> = tasks.collect();
    let mut all = Vec::new();
    for round in 0..order.rounds {
        for &task in &tasks {
            let takes_part = |&side: &Side| {
                let tests = task.tests(side, &order.selection);
                (!tests.is_empty()).then_some(Run { round, side, task, tests })
            };
            let mut turns: Vec<Run> = sides.iter().filter_map(takes_part).collect();
            let first = round % turns.len().max(1);
            turns.rotate_left(first);
            if round % 2 == 1 && !turns.is_empty() {
                turns[1..].reverse();
            }
            all.extend(turns);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::side::SIDES;
    use super::*;

    fn order(words: &[&str]) -> Order {
        Order {
            programs: "release".into(),
            mpich: None,
            openmpi: None,
            rounds: 5,
            time_s: 0.1,
            selection: Selection::of(words).unwrap(),
            ranks: vec![2, 8],
            congestion: None,
            comm_congestion: "cubic".into(),
        }
    }

    #[test]
    fn every_round_has_every_side_once_and_another_order() {
        let runs = runs(&order(&["barrier"]), &SIDES);
        let turns = |round, ranks| -> Vec<Side> {
            let task = Task::Collectives(ranks);
            runs.iter().filter(|run| (run.round, run.task) == (round, task)).map(|run| run.side).collect()
        };
        let takes_part: Vec<Side> = SIDES.into_iter().filter(|&side| side != Side::MpichShared).collect();
        assert_eq!(runs.len(), 5 * 2 * takes_part.len());
        assert_eq!(turns(0, 8), takes_part);
        assert_eq!(turns(0, 8), turns(0, 2));
        for round in 0..5 {
            assert_eq!(turns(round, 8)[0], takes_part[round]);
            let mut sorted = turns(round, 8);
            sorted.sort_unstable();
            assert_eq!(sorted, takes_part, "round {round}");
        }
        assert_eq!(turns(1, 8)[1], Side::RawTcp, "backwards");
        assert_eq!(turns(2, 8)[1], Side::CommTcp, "forwards");
        // Rounds are one after the other.
        assert!(runs.is_sorted_by_key(|run| run.round));
    }

    #[test]
    fn sides_do_what_they_can() {
        let runs = runs(&Order { rounds: 1, ..order(&[]) }, &SIDES);
        let tests = |side, task| {
            runs.iter().find(|run| (run.side, run.task) == (side, task)).map_or(0, |run| run.tests.len())
        };
        assert_eq!(tests(Side::RawTcp, Task::Pair), POINT_TO_POINT.len());
        assert_eq!(tests(Side::Mpich, Task::Pair), POINT_TO_POINT.len() - 1);
        assert_eq!(tests(Side::RawUnix, Task::Collectives(8)), 2);
        assert_eq!(tests(Side::Comm, Task::Collectives(8)), COLLECTIVES.len());
        assert_eq!(tests(Side::MpichShared, Task::Collectives(8)), 0);
        for ranks in START_RANKS {
            assert_eq!(tests(Side::MpichShared, Task::Start(ranks)), 1);
            assert_eq!(tests(Side::RawTcp, Task::Start(ranks)), 0);
        }
    }
}
