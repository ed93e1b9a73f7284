//! What a campaign has seen, as a table.

use std::collections::BTreeMap;
use std::fmt;

/// Findings of one kind that are told in full.
const TOLD: usize = 5;

/// How runs of one kind ended.
#[derive(Clone, Debug, Default)]
struct Row {
    runs: usize,
    statuses: BTreeMap<i32, usize>,
    findings: usize,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// By what they have in common: a heading, and one of its values.
    rows: BTreeMap<(&'static str, String), Row>,
    kinds: BTreeMap<&'static str, Vec<u64>>,
    pub(crate) runs: usize,
    pub(crate) findings: usize,
}

impl Summary {
    /// A run has ended; gives whether its findings, of these kinds, are to be told in full.
    pub(crate) fn add(
        &mut self,
        number: u64,
        labels: Vec<(&'static str, String)>,
        status: i32,
        findings: &[&'static str],
    ) -> bool {
        self.runs += 1;
        self.findings += usize::from(!findings.is_empty());
        for label in labels {
            let row = self.rows.entry(label).or_default();
            row.runs += 1;
            *row.statuses.entry(status).or_default() += 1;
            row.findings += usize::from(!findings.is_empty());
        }
        let mut is_new = false;
        for kind in findings {
            let known = self.kinds.entry(kind).or_default();
            known.push(number);
            is_new |= known.len() <= TOLD;
        }
        is_new
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut statuses: Vec<i32> =
            self.rows.values().flat_map(|row| row.statuses.keys().copied()).collect();
        statuses.sort_unstable();
        statuses.dedup();
        let width = self.rows.keys().map(|(_, value)| value.len()).max().unwrap_or(0) + 2;
        write!(f, "{:width$}  {:>6}", "", "runs")?;
        statuses.iter().try_for_each(|status| write!(f, "  {:>6}", format!("={status}")))?;
        write!(f, "  {:>8}", "findings")?;
        let mut heading = "";
        for ((under, value), row) in &self.rows {
            if *under != heading {
                write!(f, "\n{under}")?;
                heading = under;
            }
            write!(f, "\n  {value:w$}  {:>6}", row.runs, w = width - 2)?;
            for status in &statuses {
                write!(f, "  {:>6}", row.statuses.get(status).copied().unwrap_or(0))?;
            }
            write!(f, "  {:>8}", row.findings)?;
        }
        for (kind, numbers) in &self.kinds {
            let some: Vec<String> = numbers.iter().take(12).map(u64::to_string).collect();
            let more = if numbers.len() > some.len() { " ..." } else { "" };
            write!(f, "\n{}: {} runs, numbers {}{more}", kind, numbers.len(), some.join(" "))?;
        }
        write!(f, "\n{} runs, {} with findings", self.runs, self.findings)
    }
}
