//! The formulas against the clock.

use super::clock::{Machine, critical_s};
use super::*;

type List = fn(Rank, usize, usize) -> Vec<Step>;
type Formula = fn(usize, f64) -> Cost;

/// Rounds are never exact.
const NEVER: usize = usize::MAX;

/// Elements of a segment of the pipeline.
const SEGMENT: usize = 8;

/// Hosts of the lower and the upper ranks.
fn halves(size: usize) -> Vec<usize> {
    (0..size).map(|rank| 2 * rank / size.max(2)).collect()
}

fn parts(size: usize, len: usize) -> Vec<usize> {
    (0..=size).map(|rank| rank * len / size).collect()
}

/// Name, list with rank 0 as root, formula; from which size on its rounds are exact: where the root sends without waiting,
/// the clock overlaps what the formula takes for one after another.
const ALL: [(&str, List, Formula, usize); 24] = [
    ("allreduce_halving_doubling", allreduce_halving_doubling, allreduce_halving_doubling::cost, 1),
    ("allreduce_linear", allreduce_linear, allreduce_linear::cost, NEVER),
    ("allreduce_recursive_doubling", allreduce_recursive_doubling, allreduce_recursive_doubling::cost, 1),
    ("allreduce_ring", allreduce_ring, allreduce_ring::cost, 1),
    ("allreduce_tree", allreduce_tree, allreduce_tree::cost, 1),
    (
        "allreduce_two_level",
        |rank, size, len| allreduce_two_level(rank, size, len, &halves(size)),
        allreduce_two_level::cost,
        NEVER,
    ),
    (
        "barrier_dissemination",
        |rank, size, _| barrier_dissemination(rank, size),
        barrier_dissemination::cost,
        1,
    ),
    ("barrier_linear", |rank, size, _| barrier_linear(rank, size), barrier_linear::cost, NEVER),
    ("barrier_tree", |rank, size, _| barrier_tree(rank, size), barrier_tree::cost, 1),
    (
        "barrier_two_level",
        |rank, size, _| barrier_two_level(rank, size, &halves(size)),
        barrier_two_level::cost,
        NEVER,
    ),
    ("bcast_binomial", |rank, size, len| bcast_binomial(rank, size, 0, len), bcast_binomial::cost, 1),
    ("bcast_linear", |rank, size, len| bcast_linear(rank, size, 0, len), bcast_linear::cost, NEVER),
    (
        "bcast_pipeline",
        |rank, size, len| bcast_pipeline(rank, size, 0, len, SEGMENT),
        |size, bytes| bcast_pipeline::cost(size, bytes, SEGMENT as f64),
        3,
    ),
    (
        "bcast_scatter_allgather",
        |rank, size, len| bcast_scatter_allgather(rank, size, 0, len),
        bcast_scatter_allgather::cost,
        NEVER,
    ),
    (
        "bcast_two_level",
        |rank, size, len| bcast_two_level(rank, size, 0, len, &halves(size)),
        bcast_two_level::cost,
        NEVER,
    ),
    ("exscan_linear", exscan_linear, exscan_linear::cost, 1),
    ("exscan_recursive_doubling", exscan_recursive_doubling, exscan_recursive_doubling::cost, 1),
    ("reduce_binomial", |rank, size, len| reduce_binomial(rank, size, 0, len), reduce_binomial::cost, 1),
    (
        "reduce_scatter_gather",
        |rank, size, len| reduce_scatter_gather(rank, size, 0, len),
        reduce_scatter_gather::cost,
        1,
    ),
    (
        "reduce_scatter_halving",
        |rank, size, len| reduce_scatter_halving(rank, size, &parts(size, len)),
        reduce_scatter_halving::cost,
        1,
    ),
    (
        "reduce_scatter_pairwise",
        |rank, size, len| reduce_scatter_pairwise(rank, size, &parts(size, len)),
        reduce_scatter_pairwise::cost,
        1,
    ),
    (
        "reduce_two_level",
        |rank, size, len| reduce_two_level(rank, size, 0, len, &halves(size)),
        reduce_two_level::cost,
        NEVER,
    ),
    ("scan_linear", scan_linear, scan_linear::cost, 1),
    ("scan_recursive_doubling", scan_recursive_doubling, scan_recursive_doubling::cost, 1),
];

/// Rounds, bytes and bytes reduced as the clock has them, each on a machine where nothing else takes time.
fn measured(list: impl Fn(Rank, usize, usize) -> Vec<Step>, size: usize, len: usize) -> Cost {
    let lists: Vec<Vec<Step>> = (0..size).map(|rank| list(rank, size, len)).collect();
    let free = Machine { latency_s: 0.0, overhead_s: 0.0, byte_s: 0.0, reduce_byte_s: 0.0 };
    let time = |machine| critical_s(&lists, 1, &machine);
    Cost {
        rounds: time(Machine { overhead_s: 0.5, ..free }),
        bytes: time(Machine { byte_s: 1.0, ..free }),
        reduced: time(Machine { reduce_byte_s: 1.0, ..free }),
    }
}

#[test]
fn formulas_are_exact_for_powers_of_two() {
    for (name, list, formula, exact_from) in ALL {
        for size in [1, 2, 4, 8, 16, 32, 64] {
            let len = SEGMENT * size;
            let (clock, formula) = (measured(list, size, len), formula(size, len as f64));
            let rounds = if size >= exact_from { clock.rounds } else { formula.rounds };
            assert_eq!(Cost { rounds, ..clock }, formula, "{name} of {size}");
        }
    }
}

#[test]
fn formulas_are_bounds_for_all_sizes() {
    for (name, list, formula, _) in ALL {
        for size in 1..=33 {
            // All parts are equal, those of ranks and those of the largest power of two.
            let len = SEGMENT * size * (1 << size.ilog2());
            let (clock, formula) = (measured(list, size, len), formula(size, len as f64));
            let near = |clock: f64, formula: f64| 0.5 * formula <= clock && clock <= formula + 1e-9;
            let all = near(clock.rounds, formula.rounds)
                && near(clock.bytes, formula.bytes)
                && near(clock.reduced, formula.reduced);
            assert!(all, "{name} of {size}: {clock:?} by the clock, {formula:?} by formula");

            // On the way of most rounds there need not be most bytes, and latencies may overlap.
            let all = Machine { latency_s: 20.0, overhead_s: 3.0, byte_s: 1.0, reduce_byte_s: 0.25 };
            let lists: Vec<Vec<Step>> = (0..size).map(|rank| list(rank, size, len)).collect();
            let (clock, formula) = (critical_s(&lists, 1, &all), all.seconds(&formula));
            assert!(
                clock <= formula * (1.0 + 1e-12),
                "{name} of {size}: {clock} s by the clock, {formula} s by formula"
            );
        }
    }
}

/// Those that move parts, by name: what one rank sends or receives is no less than what the clock has.
#[test]
fn formulas_of_parts_are_bounds_for_all_sizes() {
    for operation in [Operation::Gather, Operation::Scatter, Operation::Allgather, Operation::Alltoall] {
        for name in operation.algorithms() {
            for size in 1..=33 {
                let hosts = &halves(size)[..];
                let of = |rank: Rank, size: usize, len: usize| {
                    let starts = equal_starts(size, len);
                    let (starts, recv_starts) = (&starts[..], &starts[..]);
                    steps(
                        operation,
                        name,
                        Shape { len, starts, recv_starts, hosts, ..Shape::new(rank, size) },
                    )
                };
                if of(0, size, 0).is_none() {
                    continue;
                }
                let list =
                    |rank: Rank, size: usize, len: usize| of(rank, size, len).expect("it fits this size");
                let formula = cost(operation, name).expect("it has this name")(size, 8.0);
                let clock = measured(list, size, 8);
                // A root that sends or receives without waiting overlaps rounds.
                let rounds = clock.rounds <= formula.rounds.max(1.0) + 1e-9;
                let bytes = 0.5 * formula.bytes <= clock.bytes && clock.bytes <= formula.bytes + 1e-9;
                let copied = clock.reduced <= formula.reduced + 1e-9;
                assert!(rounds && bytes && copied, "{operation} {name} of {size}: {clock:?}, {formula:?}");
            }
        }
    }
}
