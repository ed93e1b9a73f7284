//! One line of a table.

use std::fmt;

use super::algorithm::Algorithm;
use super::{Operation, SelectionError, Shape};

/// Up to these limits, this algorithm.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) algorithm: &'static Algorithm,
    /// Highest number of ranks.
    pub(super) ranks: Option<usize>,
    /// Highest number of bytes.
    pub(super) bytes: Option<usize>,
}

impl Line {
    /// Its algorithm, if it speaks of this case and the algorithm can do it, or the one that stands in for it.
    pub(super) fn serves(
        &self,
        operation: Operation,
        bytes: usize,
        shape: &Shape<'_>,
    ) -> Option<&'static Algorithm> {
        let speaks = self.algorithm.operation == operation
            && self.ranks.is_none_or(|limit| shape.size <= limit)
            && self.bytes.is_none_or(|limit| bytes <= limit);
        match speaks && self.algorithm.fits(shape) {
            true => Some(self.algorithm),
            false => self.algorithm.of_one_level().filter(|_| speaks),
        }
    }

    /// Reads the columns of line `number`.
    pub(super) fn parse(number: usize, columns: &[&str]) -> Result<Self, SelectionError> {
        let wrong = |text: String| SelectionError { line: number, text };
        let &[operation, ranks, bytes, name] = columns else {
            let count = columns.len();
            return Err(wrong(format!(
                "{count} columns, 4 are due: OPERATION, ranks<=N or *, bytes<=N or *, ALGORITHM"
            )));
        };
        let operation = Operation::named(operation).ok_or_else(|| {
            let names = Operation::ALL.map(Operation::name).join(", ");
            wrong(format!("no operation {}; there are {names}", quoted(operation)))
        })?;
        let limit = |text: &str, noun: &str| {
            parse_limit(text, noun)
                .ok_or_else(|| wrong(format!("{} is no limit of {noun}; write {noun}<=N or *", quoted(text))))
        };
        let (ranks, bytes) = (limit(ranks, "ranks")?, limit(bytes, "bytes")?);
        if ranks == Some(0) {
            return Err(wrong("no communicator has 0 ranks; write ranks<=N from 1 up, or *".into()));
        }
        if bytes.is_some() && !operation.has_bytes() {
            let why = "no number of bytes is known to all its ranks";
            return Err(wrong(format!("{operation} is not chosen by bytes ({why}); write *")));
        }
        let algorithm = Algorithm::named(operation, name).ok_or_else(|| {
            let names: Vec<_> = operation.algorithms().collect();
            wrong(format!("no algorithm {} for {operation}; there are {}", quoted(name), names.join(", ")))
        })?;
        Ok(Self { algorithm, ranks, bytes })
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = |noun: &str, limit: Option<usize>| match limit {
            Some(limit) => format!("{noun}<={limit}"),
            None => "*".into(),
        };
        let (ranks, bytes) = (limit("ranks", self.ranks), limit("bytes", self.bytes));
        let Algorithm { operation, name, .. } = self.algorithm;
        write!(f, "{operation:<15} {ranks:<11} {bytes:<16} {name}")
    }
}

/// `*` is no limit; nothing means that the text is neither.
fn parse_limit(text: &str, noun: &str) -> Option<Option<usize>> {
    if text == "*" {
        return Some(None);
    }
    let digits = text.strip_prefix(noun)?.strip_prefix("<=")?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { digits.parse().ok().map(Some) } else { None }
}

/// The front of a text that may be anything, for a message.
pub(super) fn quoted(text: &str) -> String {
    let front: String = text.chars().take(40).collect();
    format!("{front:?}")
}
