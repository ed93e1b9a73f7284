//! `checkpoint_floor` with small states: each rank holds what it keeps against blocks that it computes anew, and fails if
//! they differ.

use std::process::{Command, Output};

use serde_json::{Value, json};

fn floor(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_checkpoint_floor"));
    command.args(arguments.split(' '));
    command.output().expect("it can be started")
}

fn measured(arguments: &str) -> Value {
    let Output { status, stdout, stderr } = floor(arguments);
    assert!(status.success(), "{arguments}: {}", String::from_utf8_lossy(&stderr));
    serde_json::from_slice(&stdout).expect("a line of JSON")
}

#[test]
fn every_scheme_ends_with_the_right_blocks() {
    // Chunks of 1 MiB / 3 and segments of 96 KiB leave rests everywhere.
    for scheme in ["copy", "neighbor", "xor", "rs", "xor-dedicated", "rs-dedicated"] {
        for sockets in ["unix", "tcp"] {
            let size = "--ranks 4 --mib 1 --segment-kib 96 --repeats 2 --congestion default --json";
            let line = measured(&format!("--scheme {scheme} --sockets {sockets} {size}"));
            let about = [&line["scheme"], &line["ranks"], &line["mib"], &line["sockets"]];
            assert_eq!(about, [&json!(scheme), &json!(4), &json!(1), &json!(sockets)]);
            let seconds = line["seconds"].as_array().expect("times");
            let all_took = seconds.iter().all(|took| took.as_f64().is_some_and(|took| took > 0.0));
            assert!(seconds.len() == 2 && all_took, "{line}");
        }
    }
}

#[test]
fn files_are_removed_in_the_end() {
    let folder = std::env::temp_dir().join(format!("checkpoint-floor-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a fresh folder");
    let words = format!("--scheme file --ranks 3 --mib 1 --repeats 1 --json --folder {}", folder.display());
    assert_eq!(measured(&words)["seconds"].as_array().map(Vec::len), Some(1));
    // It can be removed only if it is empty.
    std::fs::remove_dir(&folder).expect("nothing is left in it");
}

#[test]
fn what_cannot_be_measured_is_refused() {
    for (words, why) in [
        ("--scheme xor --ranks 1", "--ranks 1 are too few or too many for xor"),
        ("--scheme rs --ranks 2", "--ranks 2 are too few or too many for rs"),
        ("--scheme file", "the scheme 'file' takes --folder DIR"),
        ("--scheme xor --mib 0", "--mib, --repeats and --segment-kib are at least 1"),
    ] {
        let Output { status, stderr, .. } = floor(words);
        let said = String::from_utf8_lossy(&stderr);
        assert!(!status.success() && said.contains(why), "{words}: {said}");
    }
}
