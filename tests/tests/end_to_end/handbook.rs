//! Commands of the front page and of the handbook do what is said there.

use std::fs;
use std::path::Path;

use crate::common::{Outcome, Run, built};

fn text(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    fs::read_to_string(root.join(file)).unwrap()
}

/// Runs what stands behind the word `ftrun` of a command, in a folder of its own.
fn run(arguments: &str) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("cd \"$0\" && exec \"$1\" {arguments}");
    Run::program(Path::new("/bin/sh"), "-c")
        .arg(script)
        .arg(folder.path())
        .arg(built().join("ftrun"))
        .finish()
}

#[test]
fn every_app_of_the_front_page_survives_its_failure() {
    let page = text("README.md");
    let cells =
        page.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split(" | ").nth(2));
    let commands: Vec<&str> =
        cells.filter_map(|cell| cell.strip_prefix("`ftrun ")?.strip_suffix("` |")).collect();
    assert_eq!(commands.len(), 5, "{commands:?}");
    for command in commands {
        let outcome = run(command).expect(0);
        let failed = outcome.stdout.contains(" failed (") || outcome.stdout.contains(": lost with rank");
        assert!(failed || command.contains("--mtbf"), "{command}: {outcome}");
    }
}

#[test]
fn getting_started() {
    let page = text("docs/getting-started.md");
    let commands = page.lines().filter_map(|line| line.strip_prefix("target/release/ftrun "));
    let answers: Vec<String> = commands
        .map(|command| {
            let outcome = run(command).expect(0);
            outcome.stdout.split(", answer ").nth(1).expect("an answer").lines().next().unwrap().to_owned()
        })
        .collect();
    assert_eq!(answers.len(), 3);
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");

    // What the page says of the last one with the scheme that is the default.
    let outcome = run("-n 4 cg --poisson 48 --kill 1,3@step=20").expect(3);
    assert!(outcome.stderr.trim_end().ends_with("rs:2+2 would have survived this"), "{outcome}");
}
