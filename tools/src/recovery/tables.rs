//! What the numbers say, as tables for a terminal and for a page.

use std::fmt::Write as _;

use ft_figures::Table;

use super::measurement::{CHECKPOINT_PHASES, RECOVERY_PHASES};
use super::summary::{Protected, Summary};
use super::trial::Trial;
use super::units::{bytes, mib, ms, percent, quartiles, short, span};

/// Mean times between failures in the table of intervals.
const MTBFS_S: [f64; 4] = [60.0, 600.0, 3600.0, 86_400.0];

/// Times without failures, and what a checkpoint moves and keeps.
pub(super) fn costs(summaries: &[Summary]) -> Table {
    let header = [
        "state",
        "scheme",
        "run\u{a0}[s]",
        "quartiles",
        "x\u{a0}none",
        "moved a\u{a0}rank [MiB]",
        "memory /\u{a0}state",
        "peak a\u{a0}rank [MiB]",
    ];
    let row = |summary: &Summary| {
        let Summary { loop_s, protected, .. } = summary;
        let [moved, memory] = match protected {
            None => [String::new(), String::new()],
            Some(protected) => [mib(protected.moved_bytes), format!("{:.2}", protected.memory_overhead)],
        };
        vec![
            bytes(summary.state_bytes),
            summary.scheme.clone(),
            short(loop_s.median),
            quartiles(loop_s, short),
            format!("{:.2}", summary.times),
            moved,
            memory,
            mib(summary.vm_hwm_bytes),
        ]
    };
    table(&header, summaries.iter().map(row))
}

/// One checkpoint by phase.
pub(super) fn checkpoints(summaries: &[Summary]) -> Table {
    let header: Vec<&str> =
        ["state", "scheme", "checkpoint [ms]", "quartiles"].into_iter().chain(CHECKPOINT_PHASES).collect();
    table(
        &header,
        protected(summaries).map(|(summary, protected)| {
            let total = protected.checkpoint_s;
            let start =
                [bytes(summary.state_bytes), summary.scheme.clone(), ms(total.median), quartiles(&total, ms)];
            start.into_iter().chain(protected.checkpoint_phases_s.map(ms)).collect()
        }),
    )
}

/// One recovery by phase.
pub(super) fn recoveries(summaries: &[Summary]) -> Table {
    let header: Vec<&str> = ["state", "scheme", "kill\u{a0}to resumed [ms]", "quartiles"]
        .into_iter()
        .chain(RECOVERY_PHASES)
        .chain(["steps again"])
        .collect();
    table(
        &header,
        protected(summaries).map(|(summary, protected)| {
            let total = protected.recovery_s;
            let start =
                [bytes(summary.state_bytes), summary.scheme.clone(), ms(total.median), quartiles(&total, ms)];
            let phases = protected.recovery_phases_s.map(ms);
            start.into_iter().chain(phases).chain([format!("{:.0}", protected.steps_lost)]).collect()
        }),
    )
}

/// The best interval and the efficiency, for some mean times between failures.
pub(super) fn intervals(summaries: &[Summary]) -> Table {
    let header: Vec<String> = ["state".to_owned(), "scheme".to_owned()]
        .into_iter()
        .chain(
            MTBFS_S
                .map(|mtbf_s| format!("MTBF {}: every", span(mtbf_s)))
                .into_iter()
                .flat_map(|name| [name, "efficiency".to_owned()]),
        )
        .collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    table(
        &header,
        protected(summaries).map(|(summary, protected)| {
            let costs = protected.costs();
            let cells = MTBFS_S.into_iter().flat_map(|mtbf_s| {
                let interval_s = costs.daly_s(mtbf_s);
                [span(interval_s), percent(costs.efficiency(mtbf_s, interval_s))]
            });
            [bytes(summary.state_bytes), summary.scheme.clone()].into_iter().chain(cells).collect()
        }),
    )
}

/// The model against runs with random failures.
pub(super) fn trials(trials: &[Trial]) -> Table {
    let header = [
        "state",
        "scheme",
        "MTBF",
        "checkpoint every",
        "work [s]",
        "time [s]",
        "failures",
        "efficiency measured",
        "by\u{a0}the model",
        "for\u{a0}these failures",
    ];
    let row = |trial: &Trial| {
        vec![
            bytes(trial.state_bytes),
            trial.scheme.clone(),
            span(trial.mtbf_s),
            span(trial.interval_s),
            short(trial.work_s),
            short(trial.time_s),
            trial.failures.to_string(),
            percent(trial.measured),
            percent(trial.predicted),
            percent(trial.predicted_for_failures),
        ]
    };
    table(&header, trials.iter().map(row))
}

fn protected(summaries: &[Summary]) -> impl Iterator<Item = (&Summary, &Protected)> {
    summaries.iter().filter_map(|summary| Some((summary, summary.protected.as_ref()?)))
}

pub(super) fn table(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Table {
    Table { header: header.iter().map(|&name| name.to_owned()).collect(), rows: rows.collect() }
}

/// A table for a terminal: words of headers stand one below the other, numbers at the right.
pub fn text(table: &Table) -> String {
    let heads: Vec<Vec<&str>> = table.header.iter().map(|name| name.split(' ').collect()).collect();
    let height = heads.iter().map(Vec::len).max().unwrap_or(0);
    // Padded above, so that the last words stand over the numbers.
    let head_row = |line: usize| -> Vec<&str> {
        heads
            .iter()
            .map(|words| (line + words.len()).checked_sub(height).map_or("", |at| words[at]))
            .collect()
    };
    let mut lines: Vec<Vec<&str>> = (0..height).map(head_row).collect();
    lines.extend(table.rows.iter().map(|row| row.iter().map(String::as_str).collect()));
    let columns = table.header.len();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in lines {
        let mut shown = String::new();
        for (column, (cell, width)) in line.into_iter().zip(&widths).enumerate() {
            // The name of the scheme reads from the left. Writing to a string cannot fail.
            let _ = match column {
                1 => write!(shown, "  {cell:<width$}"),
                _ => write!(shown, "  {cell:>width$}"),
            };
        }
        text += shown.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_a_terminal_line_up() {
        let table = table(
            &["state", "scheme", "run\u{a0}[s] now"],
            [vec!["1 MiB", "xor", "2.5"], vec!["64 MiB", "neighbor", "10.25"]]
                .map(|row| row.into_iter().map(str::to_owned).collect())
                .into_iter(),
        );
        let expected = "                    run\u{a0}[s]\n   state  scheme        now\n   1 MiB  xor           2.5\n  64 MiB  neighbor    10.25\n";
        assert_eq!(text(&table), expected);
    }
}
