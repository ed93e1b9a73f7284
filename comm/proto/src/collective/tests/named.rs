//! Every algorithm of every operation by its name, and the choice of tables, against a serial reference.

use super::two_level::placements;
use super::*;

/// How long the part is that rank `from` sends to rank `to` where lengths differ; some are empty.
fn crossing(from: Rank, to: Rank) -> usize {
    (5 * from + 3 * to) % 4
}

fn starts_of(lengths: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut starts = vec![0];
    lengths.for_each(|len| starts.push(starts[starts.len() - 1] + len));
    starts
}

fn add(a: &Affine, b: &Affine) -> Affine {
    Affine { factor: a.factor.wrapping_add(b.factor), offset: a.offset.wrapping_add(b.offset) }
}

/// One operation, on all its ranks.
struct Case {
    operation: Operation,
    size: usize,
    root: Rank,
    starts: Vec<usize>,
    len: usize,
    commutative: bool,
    hosts: Vec<usize>,
}

impl Case {
    /// The shape of a rank. Elements have a size that makes bytes differ from elements.
    fn shape<'a>(&'a self, rank: Rank, starts: &'a [usize], recv_starts: &'a [usize]) -> Shape<'a> {
        let &Self { size, root, len, commutative, ref hosts, .. } = self;
        let whole = Shape { root, len, starts, recv_starts, commutative, ..Shape::new(rank, size) };
        Shape { element_bytes: 8, hosts, ..whole }
    }

    /// The shape of a rank in operations whose parts are the same everywhere.
    fn plain(&self, rank: Rank) -> Shape<'_> {
        let len = match self.operation {
            Operation::Gather | Operation::Scatter => self.starts[rank + 1] - self.starts[rank],
            _ => self.len,
        };
        Shape { len, ..self.shape(rank, &self.starts, &self.starts) }
    }

    /// Runs the lists and checks what comes out.
    fn check(&self, list: impl Fn(Shape<'_>) -> Vec<Step>) {
        let all = self.starts[self.size];
        match self.operation {
            Operation::Barrier => self.check_barrier(list),
            Operation::Bcast => {
                let buffers = moved(|rank| list(self.plain(rank)), &[], filled(self.size, self.len));
                assert!(buffers.iter().all(|buffer| *buffer == filled(self.size, self.len)[self.root]));
            }
            Operation::Reduce => self.check_reduced(list, self.len, |rank| {
                if rank == self.root { (0..self.len, 0..self.size) } else { (0..0, 0..0) }
            }),
            Operation::Allreduce => self.check_reduced(list, self.len, |_| (0..self.len, 0..self.size)),
            Operation::Scan => self.check_reduced(list, self.len, |rank| (0..self.len, 0..rank + 1)),
            Operation::Exscan => self.check_reduced(list, self.len, |rank| (0..self.len, 0..rank.max(1))),
            Operation::ReduceScatter => {
                self.check_reduced(list, all, |rank| (self.starts[rank]..self.starts[rank + 1], 0..self.size))
            }
            Operation::Gather => self.check_gather(list),
            Operation::Scatter => self.check_scatter(list),
            Operation::Allgather => self.check_allgather(list),
            Operation::Alltoall => self.check_alltoall(list, |_, _| self.len),
            Operation::Alltoallv => self.check_alltoall(list, crossing),
        }
    }

    fn check_barrier(&self, list: impl Fn(Shape<'_>) -> Vec<Step>) {
        for mode in [Mode::Buffered, Mode::Synchronous] {
            let lists = (0..self.size).map(|rank| list(self.plain(rank))).collect();
            let heard = run(lists, &[], &mut vec![Vec::<u64>::new(); self.size], |a, _| *a, mode);
            assert!(heard.iter().all(|ranks| ranks.count_ones() as usize == self.size), "{mode:?}");
        }
    }

    /// `expected` says which elements of a rank are reduced over which ranks.
    fn check_reduced(
        &self,
        list: impl Fn(Shape<'_>) -> Vec<Step>,
        len: usize,
        expected: impl Fn(Rank) -> (std::ops::Range<usize>, std::ops::Range<Rank>),
    ) {
        let op = if self.commutative { add } else { compose };
        let buffers = after(|rank| list(self.plain(rank)), &[], affine(self.size, len), op);
        for (rank, buffer) in buffers.iter().enumerate() {
            let (elements, ranks) = expected(rank);
            for at in elements {
                let terms = ranks.clone().map(|rank| Affine::of(rank, at));
                assert_eq!(Some(buffer[at]), terms.reduce(|a, b| op(&a, &b)), "rank {rank}");
            }
        }
    }

    /// All elements of gather, scatter and allgather, and the part of a rank.
    fn whole(&self) -> Vec<u64> {
        (0..self.starts[self.size]).map(|at| value(7, at)).collect()
    }

    fn part(&self, rank: Rank) -> Vec<u64> {
        self.whole()[self.starts[rank]..self.starts[rank + 1]].to_vec()
    }

    /// Nothing but the part of a rank in its place.
    fn own(&self, rank: Rank) -> Vec<u64> {
        let mut buffer = vec![u64::MAX; self.starts[self.size]];
        buffer[self.starts[rank]..self.starts[rank + 1]].copy_from_slice(&self.part(rank));
        buffer
    }

    fn check_gather(&self, list: impl Fn(Shape<'_>) -> Vec<Step>) {
        let inputs: Vec<_> = (0..self.size).map(|rank| self.part(rank)).collect();
        let mut buffers = vec![Vec::new(); self.size];
        buffers[self.root] = self.own(self.root);
        let buffers = moved(|rank| list(self.plain(rank)), &inputs, buffers);
        assert_eq!(buffers[self.root], self.whole());
    }

    fn check_scatter(&self, list: impl Fn(Shape<'_>) -> Vec<Step>) {
        let mut inputs = vec![Vec::new(); self.size];
        inputs[self.root] = self.whole();
        let mut buffers: Vec<_> = (0..self.size).map(|rank| vec![u64::MAX; self.part(rank).len()]).collect();
        buffers[self.root] = self.part(self.root);
        let buffers = moved(|rank| list(self.plain(rank)), &inputs, buffers);
        (0..self.size).for_each(|rank| assert_eq!(buffers[rank], self.part(rank), "rank {rank}"));
    }

    fn check_allgather(&self, list: impl Fn(Shape<'_>) -> Vec<Step>) {
        let buffers = (0..self.size).map(|rank| self.own(rank)).collect();
        let buffers = moved(|rank| list(self.plain(rank)), &[], buffers);
        assert!(buffers.iter().all(|buffer| *buffer == self.whole()));
    }

    /// `length` is that of the part from one rank to another.
    fn check_alltoall(&self, list: impl Fn(Shape<'_>) -> Vec<Step>, length: impl Fn(Rank, Rank) -> usize) {
        let size = self.size;
        let part = |from: Rank, to: Rank| -> Vec<u64> {
            (0..length(from, to)).map(|at| value(from * size + to, at)).collect()
        };
        let line = |rank: Rank| {
            let sends = starts_of((0..size).map(|to| length(rank, to)));
            let recvs = starts_of((0..size).map(|from| length(from, rank)));
            list(self.shape(rank, &sends, &recvs))
        };
        let sent = |rank| (0..size).flat_map(|to| part(rank, to)).collect();
        let received = |rank: Rank| -> Vec<u64> { (0..size).flat_map(|from| part(from, rank)).collect() };
        let blank = |rank: Rank| {
            let other = |from| if from == rank { part(rank, rank) } else { vec![0; length(from, rank)] };
            (0..size).flat_map(other).collect()
        };
        let inputs: Vec<Vec<u64>> = (0..size).map(sent).collect();
        let buffers = moved(line, &inputs, (0..size).map(blank).collect());
        (0..size).for_each(|rank| assert_eq!(buffers[rank], received(rank), "rank {rank}"));
    }
}

/// Sizes, roots, lengths and operators: every case of an operation.
fn cases(operation: Operation, sizes: std::ops::RangeInclusive<usize>) -> Vec<Case> {
    let rooted =
        matches!(operation, Operation::Bcast | Operation::Reduce | Operation::Gather | Operation::Scatter);
    let mut cases = Vec::new();
    for size in sizes {
        for root in if rooted { 0..size } else { 0..1 } {
            let parts = lengths(size).into_iter().map(|len| (len, equal_starts(size, len)));
            for (len, starts) in parts.chain([(2, unequal(size))]) {
                for commutative in [true, false].into_iter().filter(|kind| *kind || operation.reduces()) {
                    let placements = placements(size);
                    let hosts = placements[cases.len() % placements.len()].clone();
                    let starts = starts.clone();
                    cases.push(Case { operation, size, root, starts, len, commutative, hosts });
                }
            }
        }
    }
    cases
}

#[test]
fn every_named_algorithm_does_its_operation() {
    let mut done = 0;
    for operation in Operation::ALL {
        for name in operation.algorithms() {
            for case in cases(operation, 1..=9) {
                let probe = steps(operation, name, case.plain(0));
                if probe.is_some() {
                    case.check(|shape| {
                        steps(operation, name, shape).expect("it fits on all ranks or on none")
                    });
                    done += 1;
                }
            }
        }
    }
    assert!(done > 3_000, "{done} cases");
}

#[test]
fn tables_do_every_operation() {
    let empty = Selection::parse("").expect("no line is wrong");
    for table in [Selection::builtin(), empty] {
        for operation in Operation::ALL {
            for case in cases(operation, 1..=17) {
                case.check(|shape| table.steps(operation, &shape));
            }
        }
    }
}

/// A table that changes over at every length: ranks that would choose by different numbers get into a deadlock.
#[test]
fn all_ranks_choose_the_same() {
    for operation in Operation::ALL.into_iter().filter(|operation| operation.has_bytes()) {
        let names: Vec<_> = operation.algorithms().collect();
        let line = |bytes: usize| format!("{operation} * bytes<={bytes} {}\n", names[bytes % names.len()]);
        let table = Selection::parse(&(0..400).map(line).collect::<String>()).expect("every line is right");
        for case in cases(operation, 2..=9) {
            let chosen = |rank| {
                let bytes = case.plain(rank).bytes(operation);
                table.algorithm(operation, case.size, bytes, case.commutative)
            };
            assert!((1..case.size).all(|rank| chosen(rank) == chosen(0)), "{operation}");
            case.check(|shape| table.steps(operation, &shape));
        }
    }
}

#[test]
fn gather_and_scatter_need_the_lengths_at_the_root_only() {
    for case in cases(Operation::Gather, 1..=9) {
        let known = |rank| if rank == case.root { &case.starts[..] } else { &[] };
        case.check_gather(|s| gather_linear(s.rank, s.size, s.root, s.len, known(s.rank)));
    }
    for case in cases(Operation::Scatter, 1..=9) {
        let known = |rank| if rank == case.root { &case.starts[..] } else { &[] };
        case.check_scatter(|s| scatter_linear(s.rank, s.size, s.root, s.len, known(s.rank)));
    }
}
