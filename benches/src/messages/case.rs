//! What each side is started for.

use std::fmt;

use super::side::Side;
use super::test::{COLLECTIVES, Operation, POINT_TO_POINT, Selection, Test};

/// Ranks of the jobs whose start is timed.
pub(super) const START_RANKS: [usize; 4] = [2, 4, 8, 16];
/// What a start is called among the tests.
pub(super) const START: Test = Test { operation: Operation::Start, bytes: 0 };

/// What a process start is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Task {
    /// Tests of two ranks, which have a core each.
    Pair,
    /// Tests of so many ranks.
    Collectives(usize),
    /// The start itself.
    Start(usize),
}

impl Task {
    /// The one that a test with so many ranks belongs to.
    pub(super) fn of(test: Test, ranks: usize) -> Self {
        match test {
            START => Self::Start(ranks),
            test if POINT_TO_POINT.contains(&test) => Self::Pair,
            _ => Self::Collectives(ranks),
        }
    }

    pub(super) fn ranks(self) -> usize {
        match self {
            Self::Pair => 2,
            Self::Collectives(ranks) | Self::Start(ranks) => ranks,
        }
    }

    fn tests(self) -> &'static [Test] {
        match self {
            Self::Pair => &POINT_TO_POINT,
            Self::Collectives(_) => &COLLECTIVES,
            Self::Start(_) => &[START],
        }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Job {
    pub(super) task: Task,
    pub(super) side: Side,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.side, self.task)
    }
}

impl Job {
    /// The selected tests that the side can do.
    pub(super) fn tests(self, selection: &Selection) -> Vec<Test> {
        let is_offered = |test: &Test| match (self.task, test.operation) {
            // More of it would be a message layer.
            (Task::Collectives(_), operation) if self.side.is_raw() => {
                operation == Operation::Barrier || (operation, test.bytes) == (Operation::Allreduce, 8)
            }
            (Task::Start(_), _) => !self.side.is_raw(),
            (_, Operation::RateCoalesced) => self.side.is_raw(),
            _ => self.side != Side::MpichShared,
        };
        let tests = self.task.tests().iter().copied();
        tests.filter(|test| is_offered(test) && selection.has(*test)).collect()
    }
}

/// For each task those of the sides that have something to do in it.
pub(super) fn cases(ranks: &[usize], sides: &[Side], selection: &Selection) -> Vec<Vec<Job>> {
    let collectives = ranks.iter().map(|&ranks| Task::Collectives(ranks));
    let tasks = std::iter::once(Task::Pair).chain(collectives).chain(START_RANKS.map(Task::Start));
    let case = |task| {
        let jobs = sides.iter().map(move |&side| Job { task, side });
        jobs.filter(|job| !job.tests(selection).is_empty()).collect()
    };
    tasks.map(case).collect()
}

#[cfg(test)]
mod tests {
    use super::super::side::SIDES;
    use super::*;

    #[test]
    fn sides_do_what_they_can() {
        let all = Selection::of([""; 0]).unwrap();
        let tests = |side, task| Job { task, side }.tests(&all).len();
        assert_eq!(tests(Side::RawTcp, Task::Pair), POINT_TO_POINT.len());
        assert_eq!(tests(Side::Mpich, Task::Pair), POINT_TO_POINT.len() - 1);
        assert_eq!(tests(Side::RawUnix, Task::Collectives(8)), 2);
        assert_eq!(tests(Side::Comm, Task::Collectives(8)), COLLECTIVES.len());
        assert_eq!(tests(Side::MpichShared, Task::Collectives(8)), 0);
        assert_eq!(tests(Side::MpichShared, Task::Start(16)), 1);
        assert_eq!(tests(Side::RawTcp, Task::Start(16)), 0);
    }

    #[test]
    fn every_test_has_one_task_and_every_task_the_sides_that_can() {
        let tests = POINT_TO_POINT.iter().chain(&COLLECTIVES).chain([&START]);
        assert!(tests.clone().all(|test| Task::of(*test, 2).tests().contains(test)));
        let cases = cases(&[2, 8], &SIDES.map(|(side, _)| side), &Selection::of(["barrier"]).unwrap());
        let sizes: Vec<usize> = cases.iter().map(Vec::len).collect();
        assert_eq!(sizes, [0, SIDES.len() - 1, SIDES.len() - 1, 0, 0, 0, 0]);
        assert_eq!(cases[2][0], Job { task: Task::Collectives(8), side: Side::RawTcp });
    }
}
