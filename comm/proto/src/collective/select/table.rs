//! A table of algorithms, and the question which one is meant.

use std::fmt;

use super::algorithm::Algorithm;
use super::builtin::{self, SELECTION};
use super::line::{Line, quoted};
use super::{Operation, Shape};
use crate::collective::Step;

/// Name of a table whose text gives none.
const NAMELESS: &str = "custom";

/// Longest name of a table.
const NAME_CHARS_MAX: usize = 40;

/// Which algorithm an operation uses, by number of ranks and bytes.
///
/// As a text, it has one line for each choice: the operation, the highest number of ranks, the highest number of bytes
/// (`*`: any), and the algorithm. The first line that matches wins; one whose algorithm does not fit the number of
/// ranks, the operator or the hosts (`two-level` wants several, of which some have several ranks) does not match. Where
/// none does, the first algorithm of [`Operation::algorithms`] is used. A reduction by `two-level` is done where it does not
/// fit by the algorithm whose bits it has (`recursive-doubling` or `binomial`), as a failure may move ranks to other hosts.
/// `#` begins a comment, and a line `name: TEXT` names the table.
///
/// ```
/// # use ft_proto::collective::Selection;
/// let table = Selection::parse(
///     "name: mine
///      allreduce   ranks<=4   bytes<=8192   recursive-doubling
///      allreduce   *          *             ring   # long ones",
/// )?;
/// assert!(table.identity().starts_with("mine-"));
/// # Ok::<(), ft_proto::collective::SelectionError>(())
/// ```
///
/// All ranks of a job must have the same table: its methods choose from what all of them know, so that all choose
/// the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    name: String,
    identity: String,
    /// In order of operations, and as written for each of them.
    lines: Vec<Line>,
}

/// A text that is no table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text}")]
pub struct SelectionError {
    /// Number of the line, from 1.
    pub line: usize,
    /// What is wrong, and what is allowed.
    pub text: String,
}

impl Selection {
    /// The table in use when none is given.
    pub fn builtin() -> Self {
        let (name, lines) = parse(builtin::TEXT).expect("the builtin table is right");
        Self { name, identity: SELECTION.into(), lines }
    }

    /// The same for more ranks than cores on one host. Reductions give the same bits, so it is called the same.
    pub fn crowded() -> Self {
        let text = format!("{}{}", builtin::CROWDED, builtin::TEXT);
        let (name, lines) = parse(&text).expect("the builtin table is right");
        Self { name, identity: SELECTION.into(), lines }
    }

    /// Reads a table; [`fmt::Display`] writes one.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn parse(text: &str) -> Result<Self, SelectionError> {
        let (name, lines) = parse(text)?;
        let builtin = Self::builtin();
        if (&name, &lines) == (&builtin.name, &builtin.lines) {
            return Ok(builtin);
        }
        let mut table = Self { name, identity: String::new(), lines };
        table.identity = format!("{}-{:08x}", table.name, crc32fast::hash(table.to_string().as_bytes()));
        Ok(table)
    }

    /// What it is called in reports: [`SELECTION`] for the builtin table, else its name and a hash of its text as
    /// [`fmt::Display`] writes it.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Name of the algorithm for this many ranks of one host and bytes ([`Shape::bytes`]).
    pub fn algorithm(
        &self,
        operation: Operation,
        size: usize,
        bytes: usize,
        commutative: bool,
    ) -> &'static str {
        self.choose(operation, bytes, &Shape { commutative, ..Shape::new(0, size) }).name
    }

    /// The same for ranks on these hosts ([`Shape::hosts`]), for operands that may change places.
    pub fn algorithm_on(
        &self,
        hosts: &[usize],
        operation: Operation,
        size: usize,
        bytes: usize,
    ) -> &'static str {
        self.choose(operation, bytes, &Shape { hosts, ..Shape::new(0, size) }).name
    }

    /// The steps of one rank.
    pub fn steps(&self, operation: Operation, shape: &Shape<'_>) -> Vec<Step> {
        (self.choose(operation, shape.bytes(operation), shape).steps)(shape)
    }

    #[cfg(test)]
    pub(super) fn lines(&self) -> &[Line] {
        &self.lines
    }

    pub(super) fn choose(&self, operation: Operation, bytes: usize, shape: &Shape<'_>) -> &'static Algorithm {
        let general = || Algorithm::of(operation).next().expect("every operation has an algorithm");
        self.lines.iter().find_map(|line| line.serves(operation, bytes, shape)).unwrap_or_else(general)
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "name: {}", self.name)?;
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Name and lines of a table.
fn parse(text: &str) -> Result<(String, Vec<Line>), SelectionError> {
    let mut name: Option<(usize, &str)> = None;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(given) = line.strip_prefix("name:") {
            if let Some((first, _)) = name {
                let text = format!("a second name; the first is on line {first}, and one is allowed");
                return Err(SelectionError { line: number, text });
            }
            name = Some((number, parse_name(number, given.trim())?));
        } else if !line.is_empty() {
            let columns: Vec<&str> = line.split_whitespace().collect();
            lines.push(Line::parse(number, &columns)?);
        }
    }
    lines.sort_by_key(|line| line.algorithm.operation);
    Ok((name.map_or(NAMELESS, |(_, name)| name).into(), lines))
}

fn parse_name(number: usize, name: &str) -> Result<&str, SelectionError> {
    let allowed = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(allowed) {
        let text = format!(
            "{} is no name of a table; 1 to {NAME_CHARS_MAX} letters, digits, '-', '_' and '.' are",
            quoted(name)
        );
        return Err(SelectionError { line: number, text });
    }
    Ok(name)
}
