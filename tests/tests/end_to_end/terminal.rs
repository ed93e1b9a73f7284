//! Terminals that cannot be drawn on, or not now.

use std::path::Path;

use crate::common::{Outcome, Run, built};

/// Runs a line of a shell on a new terminal, whose size nobody has set; None where no program for
/// that is installed. In the line `$F` is `ftrun`.
fn on_a_terminal(line: &str) -> Option<Outcome> {
    let script = Path::new("/usr/bin/script");
    if !script.is_file() {
        eprintln!("skipped: no {}", script.display());
        return None;
    }
    let run = Run::program(script, "-qec").arg(line).arg("/dev/null").variable("F", built().join("ftrun"));
    Some(run.variable("TERM", "xterm").limit(60).finish())
}

const JOB: &str = "$F -n 3 --kill 1@step=20 cg --poisson 16";

/// The job ends well, and no line of the terminal is drawn over.
fn is_not_drawn(outcome: Outcome) {
    let outcome = outcome.expect(0);
    assert!(outcome.stdout.contains("converged"), "{outcome}");
    assert!(!outcome.stdout.contains("\u{1b}[2K"), "{outcome}");
    assert!(!outcome.stdout.contains("panicked"), "{outcome}");
}

#[test]
fn terminal_of_any_width_bears_a_failure() {
    // A new one has no columns.
    if let Some(outcome) = on_a_terminal(JOB) {
        is_not_drawn(outcome);
        is_not_drawn(on_a_terminal(&format!("stty cols 1 </dev/tty; {JOB}")).unwrap());
        let wide = on_a_terminal(&format!("stty cols 80 </dev/tty; {JOB}")).unwrap().expect(0);
        assert!(wide.stdout.contains("converged") && wide.stdout.contains("\u{1b}[2K"), "{wide}");
    }
}

#[test]
fn dumb_terminal_is_not_drawn_on() {
    let line = format!("stty cols 80 </dev/tty; TERM=dumb {JOB}");
    on_a_terminal(&line).into_iter().for_each(is_not_drawn);
}

#[test]
fn terminal_of_another_foreground_job_is_not_drawn_on() {
    // With `-m` each job of the shell has a process group of its own.
    let line = format!("stty cols 80 </dev/tty; sh -mc '{JOB} & wait $!'");
    on_a_terminal(&line).into_iter().for_each(is_not_drawn);
}
