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

/// What bounds the ranks of a side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) cores: usize,
    /// Ranks of MPICH give way to each other over TCP.
    pub(super) mpich_yields: bool,
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
    pub(super) fn tests(self, selection: &Selection, room: Room) -> Vec<Test> {
        // More of them spin through whole time slices, and some never come to an end.
        let has_room = match self.side {
            Side::MpichShared => self.task.ranks() <= room.cores,
            Side::Mpich => room.mpich_yields || self.task.ranks() <= room.cores,
            Side::RawTcpOneCore => self.task == Task::Pair,
            _ => true,
        };
        let is_offered = |test: &Test| match (self.task, test.operation) {
            // More of it would be a message layer.
            (Task::Collectives(_), operation) if self.side.is_raw() => {
                operation == Operation::Barrier || (operation, test.bytes) == (Operation::Allreduce, 8)
            }
            (Task::Start(_), _) => !self.side.is_raw(),
            (_, Operation::RateCoalesced) => self.side.is_raw() && self.side != Side::RawMemory,
            _ => true,
        };
        let tests = self.task.tests().iter().copied();
        tests.filter(|test| has_room && is_offered(test) && selection.has(*test)).collect()
    }
}

/// For each task those of the sides that have something to do in it, and that are held against each other: over TCP, and within a
/// host. Starts are, whatever carries messages then.
pub(super) fn cases(ranks: &[usize], sides: &[Side], selection: &Selection, room: Room) -> Vec<Vec<Job>> {
    let collectives = ranks.iter().map(|&ranks| Task::Collectives(ranks));
    let measured = std::iter::once(Task::Pair).chain(collectives);
    let apart = measured.flat_map(|task| [true, false].map(|is_tcp| (task, Some(is_tcp))));
    let case = |(task, is_tcp): (Task, Option<bool>)| {
        let sides = sides.iter().filter(|side| is_tcp.is_none_or(|is_tcp| side.is_tcp() == is_tcp));
        let jobs = sides.map(|&side| Job { task, side });
        jobs.filter(|job| !job.tests(selection, room).is_empty()).collect()
    };
    apart.chain(START_RANKS.map(|ranks| (Task::Start(ranks), None))).map(case).collect()
}

#[cfg(test)]
mod tests {
    use super::super::side::SIDES;
    use super::*;

    const ROOM: Room = Room { cores: 2, mpich_yields: true };

    #[test]
    fn sides_do_what_they_can() {
        let all = Selection::of([""; 0]).unwrap();
        let tests = |side, task| Job { task, side }.tests(&all, ROOM).len();
        assert_eq!(tests(Side::RawTcp, Task::Pair), POINT_TO_POINT.len());
        assert_eq!(tests(Side::RawTcpOneCore, Task::Collectives(2)), 0);
        assert_eq!(tests(Side::RawMemory, Task::Pair), POINT_TO_POINT.len() - 1);
        assert_eq!(tests(Side::Mpich, Task::Pair), POINT_TO_POINT.len() - 1);
        assert_eq!(tests(Side::RawUnix, Task::Collectives(8)), 2);
        assert_eq!(tests(Side::Comm, Task::Collectives(8)), COLLECTIVES.len());
        assert_eq!(tests(Side::MpichShared, Task::Collectives(2)), COLLECTIVES.len());
        assert_eq!(tests(Side::MpichShared, Task::Collectives(4)), 0, "more ranks than cores");
        assert_eq!(tests(Side::Mpich, Task::Collectives(4)), COLLECTIVES.len());
        let spins = Job { task: Task::Collectives(4), side: Side::Mpich };
        assert_eq!(spins.tests(&all, Room { mpich_yields: false, ..ROOM }), []);
        assert_eq!(tests(Side::OpenMpiShared, Task::Start(16)), 1);
        assert_eq!(tests(Side::RawTcp, Task::Start(16)), 0);
    }

    #[test]
    fn every_test_has_one_task_and_every_task_the_sides_that_can() {
        let tests = POINT_TO_POINT.iter().chain(&COLLECTIVES).chain([&START]);
        assert!(tests.clone().all(|test| Task::of(*test, 2).tests().contains(test)));
        let cases = cases(&[2, 8], &SIDES.map(|(side, _)| side), &Selection::of(["barrier"]).unwrap(), ROOM);
        let sizes: Vec<usize> = cases.iter().map(Vec::len).collect();
        assert_eq!(sizes, [0, 0, 5, 5, 5, 4, 0, 0, 0, 0]);
        assert_eq!(cases[2][0], Job { task: Task::Collectives(2), side: Side::RawTcp });
    }
}
