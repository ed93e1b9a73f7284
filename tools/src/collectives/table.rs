//! From times to a table of algorithms.

use ft_comm::collective::{Operation, Selection};

use super::experiment::fits;
use super::measured::Case;
use super::ranges::{best, is_good, ranges};

/// Up to these bytes, this algorithm, and another for ranks or operators that it does not fit.
#[derive(Clone, Debug, PartialEq)]
struct Range {
    bytes: Option<usize>,
    algorithm: String,
    otherwise: Option<String>,
}

/// A table of the fastest algorithms. A limit of bytes lies in the middle of two sizes on a scale of ratios; what is good
/// with one number of ranks is kept with the next one if it is good there too. For more ranks than were measured the builtin
/// lines follow.
pub(crate) fn table(name: &str, cases: &[Case]) -> Selection {
    let mut text = format!("name: {name}\n");
    let builtin = Selection::builtin().to_string();
    for operation in Operation::ALL {
        let of = |case: &&Case| case.operation == operation;
        let mut ranks: Vec<usize> = cases.iter().filter(of).map(|case| case.ranks).collect();
        ranks.dedup();
        let mut lines: Vec<(usize, Vec<Range>)> = Vec::new();
        for ranks in ranks {
            let sizes = sizes(cases, operation, ranks);
            match lines.last_mut() {
                Some((limit, before)) if still_good(before, &sizes) => *limit = ranks,
                _ => {
                    let chosen = choose(operation, &sizes);
                    match lines.last_mut().filter(|(_, before)| *before == chosen) {
                        Some((limit, _)) => *limit = ranks,
                        None => lines.push((ranks, chosen)),
                    }
                }
            }
        }
        for (limit, ranges) in lines {
            text.extend(ranges.iter().map(|range| range.lines(operation, limit)));
        }
        let most = cases.iter().filter(of).map(|case| case.ranks).max().unwrap_or(0);
        let more = builtin.lines().filter(|line| is_for_more(line, operation, most));
        text.extend(more.map(|line| format!("{line}\n")));
    }
    Selection::parse(&text).expect("a table of known algorithms")
}

/// Whether a line of a table is about an operation on more than `most` ranks.
fn is_for_more(line: &str, operation: Operation, most: usize) -> bool {
    let mut columns = line.split_whitespace();
    let is_of = columns.next() == Some(operation.name());
    let limit = columns.next().and_then(|ranks| ranks.strip_prefix("ranks<=")?.parse::<usize>().ok());
    is_of && limit.is_none_or(|limit| limit > most)
}

impl Range {
    fn lines(&self, operation: Operation, ranks: usize) -> String {
        let bytes = self.bytes.map_or("*".to_owned(), |limit| format!("bytes<={limit}"));
        let algorithms = std::iter::once(&self.algorithm).chain(&self.otherwise);
        algorithms.map(|name| format!("{operation} ranks<={ranks} {bytes} {name}\n")).collect()
    }
}

/// The algorithms of one operation and number of ranks, by rising bytes.
fn sizes(cases: &[Case], operation: Operation, ranks: usize) -> Vec<Vec<&Case>> {
    let of: Vec<&Case> =
        cases.iter().filter(|case| (case.operation, case.ranks) == (operation, ranks)).collect();
    of.chunk_by(|a, b| a.bytes == b.bytes).map(<[&Case]>::to_vec).collect()
}

fn is_general(operation: Operation, name: &str) -> bool {
    fits(operation, name, 3, false, &[])
}

fn choose(operation: Operation, sizes: &[Vec<&Case>]) -> Vec<Range> {
    let range = |from: usize, end: usize, name: &str| {
        let middle = |next: &Vec<&Case>| (sizes[end - 1][0].bytes * next[0].bytes).isqrt();
        let otherwise = || best(&sizes[from..end], |name| is_general(operation, name)).map(str::to_owned);
        Range {
            bytes: sizes.get(end).map(middle),
            algorithm: name.to_owned(),
            otherwise: if is_general(operation, name) { None } else { otherwise() },
        }
    };
    if !operation.has_bytes() {
        // One choice for all sizes.
        let name = best(sizes, |_| true);
        return name.map(|name| range(0, sizes.len(), name)).into_iter().collect();
    }
    let mut from = 0;
    let cut = |(end, name)| range(std::mem::replace(&mut from, end), end, name);
    ranges(sizes).into_iter().map(cut).collect()
}

/// Whether what was chosen for fewer ranks is good for these, too.
fn still_good(before: &[Range], sizes: &[Vec<&Case>]) -> bool {
    sizes.iter().all(|at| {
        let range = before.iter().find(|range| range.bytes.is_none_or(|limit| at[0].bytes <= limit));
        range.is_some_and(|range| is_good(at, &range.algorithm))
    })
}

#[cfg(test)]
mod tests {
    use super::super::ranges::tests::case;
    use super::*;

    /// Lines of an operation up to some ranks.
    fn lines(table: &Selection, operation: &str, most: usize) -> Vec<String> {
        let text = table.to_string();
        let own = text.lines().filter(|line| {
            line.split_whitespace().next() == Some(operation)
                && (1..=most).any(|ranks| line.contains(&format!(" ranks<={ranks} ")))
        });
        own.map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")).collect()
    }

    /// Cases of `operation` with times of its first two algorithms.
    fn cases(operation: Operation, times: &[(usize, usize, [f64; 2])]) -> Vec<Case> {
        let of = |&(ranks, bytes, times): &(usize, usize, [f64; 2])| {
            let named = operation.algorithms().zip(times);
            named.map(move |(name, seconds)| case(operation, ranks, bytes, name, seconds)).collect::<Vec<_>>()
        };
        times.iter().flat_map(of).collect()
    }

    #[test]
    fn neighbors_are_merged() {
        let all = cases(
            Operation::Reduce,
            &[
                (2, 8, [1.0, 2.0]),
                (2, 64, [1.0, 2.0]),
                (2, 1024, [3.0, 2.0]),
                // The same order with 4 ranks, and within the spread at 64 bytes.
                (4, 8, [2.0, 4.0]),
                (4, 64, [4.1, 4.0]),
                (4, 1024, [9.0, 6.0]),
                (8, 8, [9.0, 6.0]),
                (8, 64, [9.0, 6.0]),
                (8, 1024, [9.0, 6.0]),
            ],
        );
        let table = table("here", &all);
        let expected =
            ["ranks<=4 bytes<=256 binomial", "ranks<=4 * scatter-gather", "ranks<=8 * scatter-gather"];
        assert_eq!(lines(&table, "reduce", 8), expected);
        assert_eq!(table.algorithm(Operation::Reduce, 3, 8, true), "binomial");
        let builtin = Selection::builtin();
        for bytes in [8, 1 << 12, 1 << 22] {
            let of = |table: &Selection| table.algorithm(Operation::Reduce, 64, bytes, true);
            assert_eq!(of(&table), of(&builtin), "more ranks than measured");
        }
        assert!(table.identity().starts_with("here-"));
        assert_eq!(Selection::parse(&table.to_string()).unwrap(), table);
    }

    #[test]
    fn what_does_not_fit_all_has_a_line_for_the_rest() {
        let all = [
            case(Operation::Allgather, 4, 8, "dissemination", 3.0),
            case(Operation::Allgather, 4, 8, "ring", 2.0),
            case(Operation::Allgather, 4, 8, "recursive-doubling", 1.0),
            case(Operation::Allgather, 4, 64, "dissemination", 1.0),
            case(Operation::Allgather, 4, 64, "ring", 9.0),
            case(Operation::Allgather, 4, 64, "recursive-doubling", 9.0),
        ];
        let table = table("here", &all);
        let expected =
            ["ranks<=4 bytes<=22 recursive-doubling", "ranks<=4 bytes<=22 ring", "ranks<=4 * dissemination"];
        assert_eq!(lines(&table, "allgather", 4), expected);
        assert_eq!(table.algorithm(Operation::Allgather, 3, 8, true), "ring");
    }

    #[test]
    fn without_bytes_there_is_one_choice() {
        let of = |ranks| [(ranks, 8, [1.0, 2.0]), (ranks, 64, [1.5, 1.0]), (ranks, 512, [1.0, 1.0])];
        let all = cases(Operation::Alltoallv, &[of(4), of(8)].concat());
        assert_eq!(lines(&table("here", &all), "alltoallv", 8), ["ranks<=8 * pairwise"]);
    }
}
