//! What the numbers say, as tables for a terminal and for a page.

use ft_figures::Table;

use super::choice::Choice;
use super::prediction::{Checked, Predicted, Prediction};
use super::results::Parameters;
use crate::recovery::{bytes, short};

/// A time with its unit.
pub(crate) fn time(seconds: f64) -> String {
    let (factor, unit) = match seconds {
        _ if seconds < 1e-3 => (1e6, "us"),
        _ if seconds < 1.0 => (1e3, "ms"),
        _ => (1.0, "s"),
    };
    format!("{}\u{a0}{unit}", short(seconds * factor))
}

/// What a table chooses.
pub(crate) fn choices(choices: &[Choice]) -> Table {
    let row = |choice: &Choice| {
        vec![
            choice.operation.to_string(),
            choice.algorithm.clone(),
            choice.ranks.to_string(),
            bytes(choice.bytes as u64),
            time(choice.seconds),
            format!("{:.2}", choice.gain),
            if choice.builtin == choice.algorithm { String::new() } else { choice.builtin.clone() },
        ]
    };
    table(
        &["operation", "algorithm", "ranks", "bytes", "time", "gain", "instead of"],
        choices.iter().map(row),
    )
}

/// The numbers of the model.
pub(crate) fn machine(machine: &Parameters) -> Table {
    let Parameters { latency_s, overhead_s, byte_s, reduce_byte_s, cores } = *machine;
    let speed = |byte_s: f64| format!("{}\u{a0}GB/s", short(1e-9 / byte_s));
    let rows = [
        ("latency", "L", time(latency_s)),
        ("overhead a side", "o", time(overhead_s)),
        ("bandwidth", "1/G", speed(byte_s)),
        ("reduction", "1/R", speed(reduce_byte_s)),
        ("cores", "", cores.to_string()),
    ];
    table(
        &["", "", ""],
        rows.map(|(name, letter, value)| vec![name.into(), letter.into(), value]).into_iter(),
    )
}

/// Measured beside predicted.
pub(crate) fn checks(checks: &[Checked]) -> Table {
    let row = |check: &Checked| {
        vec![
            check.operation.to_string(),
            check.algorithm.clone(),
            bytes(check.bytes as u64),
            check.ranks.to_string(),
            time(check.measured_s),
            time(check.predicted_s),
            format!("{:.2}", check.ratio),
        ]
    };
    table(
        &["operation", "algorithm", "bytes", "ranks", "measured", "predicted", "measured /\u{a0}predicted"],
        checks.iter().map(row),
    )
}

/// Predicted times, one column for each number of ranks.
pub(crate) fn predictions(all: &[Prediction], seconds: fn(&Predicted) -> f64) -> Table {
    let ranks: Vec<usize> =
        all.first().map_or(vec![], |first| first.points.iter().map(|point| point.ranks).collect());
    let names: Vec<String> = ranks.iter().map(usize::to_string).collect();
    let header: Vec<&str> =
        ["operation", "algorithm", "bytes"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let row = |of: &Prediction| {
        let start = [of.operation.to_string(), of.algorithm.clone(), bytes(of.bytes as u64)];
        let cell = |ranks: &usize| {
            let point = of.points.iter().find(|point| point.ranks == *ranks);
            point.map_or(String::new(), |point| time(seconds(point)))
        };
        start.into_iter().chain(ranks.iter().map(cell)).collect()
    };
    table(&header, all.iter().map(row))
}

fn table(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Table {
    Table { header: header.iter().map(|&name| name.to_owned()).collect(), rows: rows.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let times = [0.0, 12.34e-6, 999e-6, 0.0123, 45.6].map(|seconds| time(seconds).replace('\u{a0}', " "));
        assert_eq!(times, ["0 us", "12.3 us", "999 us", "12.3 ms", "45.6 s"]);
    }
}
