//! All measurements as comma-separated values (RFC 4180), one row each; an empty cell is what does not apply.

use super::experiment::{EVERY, Kind};
use super::measurement::Measurement;

/// Name of a column, and what stands in it.
type Column = (&'static str, fn(&Measurement) -> String);

const COLUMNS: &[Column] = &[
    ("kind", |m| kind(m.kind).to_owned()),
    ("state_bytes", |m| m.state_bytes.to_string()),
    ("scheme", |m| quoted(&m.scheme)),
    ("repetition", |m| m.repetition.to_string()),
    ("victim", |m| match m.kind {
        Kind::Kill { victim } => victim.to_string(),
        _ => String::new(),
    }),
    ("mtbf_s", |m| match m.kind {
        Kind::Random { mtbf_s, .. } => mtbf_s.to_string(),
        _ => String::new(),
    }),
    ("every", |m| match m.kind {
        Kind::Random { every, .. } => every.to_string(),
        _ => EVERY.to_string(),
    }),
    ("steps", |m| m.steps.to_string()),
    ("load_average", |m| m.load_average.to_string()),
    ("wall_s", |m| m.wall_s.to_string()),
    ("elapsed_s", |m| m.elapsed_s.to_string()),
    ("loop_s", |m| m.loop_s.to_string()),
    ("step_s", |m| m.step_s.to_string()),
    ("checkpoints", |m| m.checkpoints.to_string()),
    ("bytes_protected", |m| m.bytes_protected.to_string()),
    ("bytes_sent", |m| m.bytes_sent.to_string()),
    ("checkpoint_s", |m| m.checkpoint_s.to_string()),
    ("copy_s", |m| m.copy_s.to_string()),
    ("encode_s", |m| m.encode_s.to_string()),
    ("exchange_s", |m| m.exchange_s.to_string()),
    ("commit_s", |m| m.commit_s.to_string()),
    ("memory_overhead", |m| m.memory_overhead.to_string()),
    ("vm_hwm_bytes", |m| m.vm_hwm_bytes.to_string()),
    ("failures", |m| m.failures.to_string()),
    ("detect_s", |m| m.detect_s.to_string()),
    ("repair_s", |m| m.repair_s.to_string()),
    ("agree_s", |m| m.agree_s.to_string()),
    ("respawn_s", |m| m.respawn_s.to_string()),
    ("restore_s", |m| m.restore_s.to_string()),
    ("plan_s", |m| m.plan_s.to_string()),
    ("rebuild_s", |m| m.rebuild_s.to_string()),
    ("reprotect_s", |m| m.reprotect_s.to_string()),
    ("load_s", |m| m.load_s.to_string()),
    ("steps_lost", |m| m.steps_lost.to_string()),
    ("kills_postponed", |m| m.kills_postponed.to_string()),
    ("answer_hash", |m| m.answer_hash.clone()),
];

/// A table with a header, in the order in which the runs were made.
pub(crate) fn csv(measurements: &[Measurement]) -> String {
    let header: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    let row = |m: &Measurement| COLUMNS.iter().map(|(_, cell)| cell(m)).collect::<Vec<_>>().join(",");
    std::iter::once(header.join(",")).chain(measurements.iter().map(row)).map(|line| line + "\n").collect()
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Plain => "plain",
        Kind::Kill { .. } => "kill",
        Kind::Random { .. } => "random",
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::measurement::tests::measurement;

    #[test]
    fn one_row_a_measurement() {
        let runs = [
            measurement("none", Kind::Plain),
            measurement("disk:/a, \"b\"", Kind::Kill { victim: 3 }),
            measurement("xor", Kind::Random { mtbf_s: 2.5, every: 7 }),
        ];
        let text = csv(&runs);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[0].starts_with("kind,state_bytes,scheme,repetition,victim,mtbf_s,every,steps,"));
        assert!(lines[1].starts_with("plain,1048576,none,0,,,5,40,0.5,4.25,4,3,0.0625,8,"));
        assert!(lines[2].starts_with("kill,1048576,\"disk:/a, \"\"b\"\"\",0,3,,5,40,"));
        assert!(lines[3].starts_with("random,1048576,xor,0,,2.5,7,40,"));
        for line in [lines[0], lines[1], lines[3]] {
            assert_eq!(line.split(',').count(), COLUMNS.len());
        }
        assert!(text.ends_with(",ab\n") && !text.contains("NaN"));
    }
}
