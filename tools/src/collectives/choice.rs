//! What a table chooses, beside what the builtin one does.

use ft_comm::collective::{Operation, Selection};
use serde::Serialize;

use super::measured::{Case, name};

/// What a table chooses in one measured case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// The operation.
    #[serde(serialize_with = "name")]
    pub operation: Operation,
    /// Number of ranks.
    pub ranks: usize,
    /// Bytes, as tables choose by.
    pub bytes: usize,
    /// The algorithm.
    pub algorithm: String,
    /// Median seconds of one call.
    pub seconds: f64,
    /// The builtin choice.
    pub builtin: String,
    /// Its time over that of the chosen one: above 1 the table is faster.
    pub gain: f64,
}

/// All choices of a table, in the order of the cases.
pub(crate) fn choices(table: &Selection, cases: &[Case]) -> Vec<Choice> {
    let builtin = Selection::builtin();
    let sizes = cases.chunk_by(|a, b| (a.operation, a.ranks, a.bytes) == (b.operation, b.ranks, b.bytes));
    let choice = |at: &[Case]| {
        let Case { operation, ranks, bytes, .. } = at[0];
        // Two levels were measured where there are some: which ranks are on which host does not matter to tables.
        let has_levels = at.iter().any(|case| case.algorithm == "two-level");
        let hosts: Vec<usize> = (0..ranks).map(|rank| if has_levels { rank / 2 } else { 0 }).collect();
        let of = |table: &Selection| {
            let name = table.algorithm_on(&hosts, operation, ranks, bytes);
            at.iter().find(|case| case.algorithm == name)
        };
        let (chosen, usual) = (of(table)?, of(&builtin)?);
        Some(Choice {
            operation,
            ranks,
            bytes,
            algorithm: chosen.algorithm.clone(),
            seconds: chosen.time.median,
            builtin: usual.algorithm.clone(),
            gain: usual.time.median / chosen.time.median,
        })
    };
    sizes.filter_map(choice).collect()
}

#[cfg(test)]
mod tests {
    use super::super::ranges::tests::case;
    use super::super::table::table;
    use super::*;

    #[test]
    fn the_gain_is_over_the_builtin_choice() {
        // The builtin table takes the binomial tree for two ranks.
        let cases = [
            case(Operation::Reduce, 2, 8, "binomial", 3.0),
            case(Operation::Reduce, 2, 8, "scatter-gather", 2.0),
        ];
        let [choice] = &choices(&table("a", &cases), &cases)[..] else { panic!("one choice") };
        assert_eq!((choice.algorithm.as_str(), choice.builtin.as_str()), ("scatter-gather", "binomial"));
        assert_eq!((choice.seconds, choice.gain), (2.0, 1.5));

        // It takes two levels where there are some.
        let cases =
            [case(Operation::Reduce, 4, 8, "binomial", 2.0), case(Operation::Reduce, 4, 8, "two-level", 3.0)];
        let [choice] = &choices(&table("a", &cases), &cases)[..] else { panic!("one choice") };
        assert_eq!((choice.algorithm.as_str(), choice.builtin.as_str()), ("binomial", "two-level"));
    }
}
