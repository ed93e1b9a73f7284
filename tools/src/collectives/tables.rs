//! What the numbers say, as tables for a terminal and for a page.

use ft_figures::Table;

use super::choice::Choice;
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
