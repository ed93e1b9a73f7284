//! Bad usage and bad input: the status, one clear line, and no panic.

use std::path::Path;

use crate::common::{Outcome, POISSON, Run};
use crate::hosts::{LIKE_SSH, over};

/// What may follow the complaint: how it is written.
const HELP: &[&str] =
    &["See 'ftrun ", "  [possible values: ", "SPEC:  ", "POINT: ", "PHASE: ", "CUT:  ", "SLOW:  "];

/// One line on standard error, with all of `parts`; nothing on standard output.
fn check(outcome: &Outcome, parts: &[&str]) {
    let is_help = |line: &str| HELP.iter().any(|start| line.starts_with(start));
    let lines: Vec<&str> = outcome.stderr.lines().filter(|line| !is_help(line)).collect();
    assert_eq!(lines.len(), 1, "{outcome}");
    assert!(lines[0].starts_with("ftrun: "), "{outcome}");
    assert!(parts.iter().all(|part| lines[0].contains(part)), "{parts:?}: {outcome}");
    assert!(!outcome.stderr.contains("panicked") && !outcome.stderr.contains("RUST_BACKTRACE"), "{outcome}");
    assert_eq!(outcome.stdout, "", "{outcome}");
}

#[test]
fn of_the_launcher() {
    for (arguments, parts) in [
        ("-n 4 --scheme rs:9+9 cg --poisson 16", &["rs:9+9", "18 ranks", "there are 4"][..]),
        ("-n 4 --scheme best cg --poisson 16", &["best"]),
        ("-n 4 --kill 9@step=1 cg --poisson 16", &["9@step=1", "rank 9 does not exist", "0 to 3"]),
        ("-n 4 --parity-ranks 1 --kill 5@step=1 cg --poisson 16", &["rank 5 does not exist", "0 to 4"]),
        ("-n 4 --kill 1@lunch cg --poisson 16", &["1@lunch", "no point 'lunch'"]),
        (
            "-n 4 --parity-ranks 1 --cut 0-5@step=1 cg --poisson 16",
            &["--cut", "rank 5 does not exist", "0 to 4"],
        ),
        ("-n 4 --cut 0@init cg --poisson 16", &["0@init", "no '-'"]),
        ("-n 4 cg --poisson 16 --slow 0-1", &["0-1", "factor"]),
        (
            "-n 4 --heartbeat-timeout 100 --heartbeat-interval 50 cg --poisson 16",
            &["100", "three times", "50"],
        ),
        ("-n 4 --watchdog 0 cg --poisson 16", &["'0'", "--watchdog", "above 0"]),
        ("-n 4 cg --poisson 16 --watchdog soon", &["'soon'", "--watchdog"]),
        ("-n 0 cg --poisson 16", &["'0'", "at least 1"]),
        ("-n 4 no-such-app", &["'no-such-app'", "bundled apps: cg"]),
        ("-n 4", &["PROGRAM"]),
        ("-n 4 --on-failure hope cg --poisson 16", &["'hope'", "--on-failure"]),
        ("-n 4 --transport udp cg --poisson 16", &["'udp'", "--transport"]),
        ("-n 4 cg --poisson 16 --wait nap", &["'nap'", "--wait"]),
        ("-n 4 cg", &["--matrix", "--poisson"]),
        ("-n 2 cg --poisson 8 --precond ilu", &["--precond", "\"ilu\" is no preconditioner", "bjacobi"]),
        ("-n 2 cg --poisson 8 --precond ssor:2", &["--precond", "between 0 and 2"]),
        ("-n 2 cg --poisson 8 --precond bjacobi:domains=0", &["--precond", "domains is a number from 1"]),
        ("-n 2 cg --poisson 8 --precond bjacobi:ilu0", &["--precond", "not symmetric positive definite"]),
        ("-n 4 --interval 1 ring", &["--interval", "--checkpoint-rounds"]),
        ("-n 4 --levels neighbor@3,rs:2+2@6 ring", &["--levels", "--scheme"]),
        ("-n 4 simulator --procfail 5 --numloops 4", &["--procfail 5", "--numloops 4"]),
        ("-n 1 simulator --procfail 1", &["--procfail 1", "scheme none"]),
        ("-n 4 heat --grid 3", &["--grid 3", "4"]),
        ("-n 4 heat --picture plate.jpg", &["plate.jpg", ".svg", ".png"]),
        ("-n 4 heat --picture no-such-folder/plate.png", &["no-such-folder", "does not exist"]),
        ("-n 4 collective --rounds 0", &["'0'", "--rounds"]),
    ] {
        check(&Run::ftrun(arguments).finish().expect(2), parts);
    }
}

/// The complaint, and what to do instead.
#[test]
fn tips_that_help() {
    for (arguments, complaint, tip) in [
        (
            "-n -1 cg --poisson 4",
            "invalid value '-1' for '--ranks <N>': must be a whole number, without a sign",
            "",
        ),
        (
            "-np -1 cg --poisson 4",
            "invalid value '-1' for '--ranks <N>': must be a whole number, without a sign",
            "",
        ),
        (
            "cg --poisson -4",
            "invalid value '-4' for '--poisson <N>': must be a whole number, without a sign",
            "See 'ftrun cg --help'.",
        ),
        (
            "cg --poisson 4 --mtbf 1e300",
            "invalid value '1e300' for '--mtbf <SECONDS>': must be at most 1000000000 seconds",
            "See 'ftrun cg --help'.",
        ),
        (
            "advise --seconds 1e300 cg --poisson 4",
            "invalid value '1e300' for '--seconds <SECONDS>': must be at most 1000000000 seconds",
            "See 'ftrun advise --help'.",
        ),
        (
            "kill 4711 zero",
            "invalid value 'zero' for '<RANK>': must be the number of a rank, 0 for the first",
            "See 'ftrun kill --help'.",
        ),
        (
            "status mine",
            "invalid value 'mine' for '[JOB]': must be the number of a job",
            "See 'ftrun status --help'.",
        ),
        ("-n 4 --scheme rs cg --poisson 4", "`rs` cannot be read as rs:K+M: ", "ftrun: `rs` cannot be read"),
        (
            "-n 4 rs:2+2 cg --poisson 4",
            "'rs:2+2' is neither a bundled app nor a file",
            "Tip: 'rs' is a scheme, which --scheme takes",
        ),
        ("gc --poisson 4", "'gc' is neither a bundled app nor a file", "Tip: did you mean 'cg'?"),
        ("stauts", "'stauts' is neither a bundled app nor a file", "Tip: did you mean 'status'?"),
        ("--dry-run cg --poisson 4", "unexpected argument '--dry-run' found", ""),
        ("cg --poisson 4 --dry-run", "unexpected argument '--dry-run' found", "See 'ftrun cg --help'."),
        ("--rank 4 cg --poisson 4", "unexpected argument '--rank' found", "Tip: did you mean '--ranks'?"),
        (
            "--poisson 4 cg",
            "unexpected argument '--poisson' found",
            "Tip: '--poisson' is an option of 'cg' and stands behind that word; see 'ftrun cg --help'.",
        ),
        ("cgg --poisson 4", "'cgg' is neither a bundled app nor a file", "Tip: did you mean 'cg'?"),
        (
            "--keep-memory --scheme none cg --poisson 4",
            "--keep-memory is for checkpoints in the memory of several ranks: --scheme none has none",
            "See 'ftrun cg --help'.",
        ),
        (
            "-n 4 --keep-memory --on-failure shrink cg --poisson 4",
            "--keep-memory is for ranks that are replaced: leave out --on-failure",
            "See 'ftrun cg --help'.",
        ),
        ("bnech", "'bnech' is neither a bundled app nor a file", "Tip: did you mean 'bench'?"),
        ("man no-such-app", "'no-such-app' is neither a bundled app nor a tool", ""),
        (
            "completions",
            "the following required arguments were not provided: <SHELL>",
            "See 'ftrun completions --help'.",
        ),
    ] {
        let outcome = Run::ftrun(arguments).finish().expect(2);
        let lines: Vec<&str> = outcome.stderr.lines().collect();
        assert!(lines[0].starts_with(&format!("ftrun: {complaint}")), "{outcome}");
        let last = lines.last().unwrap();
        assert!(
            last.starts_with(if tip.is_empty() { "See 'ftrun --help'." } else { tip }),
            "{tip}: {outcome}"
        );
    }
}

#[test]
fn option_of_ftrun_after_a_program_gets_one_line_of_warning() {
    let said = |arguments: &str| Run::ftrun(arguments).finish().expect(0).stderr;
    let warning = "ftrun: --kill after true goes to that program. Write options of ftrun before it, or -- before it if this is meant\n";
    assert_eq!(said("-n 4 /bin/true --kill 1@step=40 --scheme xor"), warning);
    for arguments in
        ["-n 4 -- /bin/true --kill 1@step=40", "-n 4 -q /bin/true --kill 1@step=40", "-n 4 /bin/true -n 4"]
    {
        assert_eq!(said(arguments), "", "{arguments}");
    }
}

#[test]
fn pages_are_printed() {
    let page = |arguments: &str| Run::ftrun(arguments).finish().expect(0).stdout;
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = page(&format!("completions {shell}"));
        for word in ["seismic", "poisson2d", "heartbeat-timeout", "advise"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ftrun.bash");
    std::fs::write(&file, page("completions bash")).unwrap();
    Run::program(Path::new("/bin/bash"), "-n").arg(&file).finish().expect(0);
    assert!(page("man").contains(".TH ftrun 1") && page("man").contains("heartbeat"));
    assert!(page("man cg").contains("poisson2d"));
    assert_eq!(page("help"), page("--help"));
    assert_eq!(page("help cg"), page("cg --help"));
    assert_eq!(page("help bench recovery"), page("bench recovery --help"));
}

#[test]
fn colors_are_for_those_who_see_them() {
    let wrong = || Run::ftrun("-n 0 ./x");
    let is_colored = |outcome: Outcome| outcome.expect(2).stderr.contains("\u{1b}[");
    assert!(!is_colored(wrong().finish()));
    assert!(is_colored(wrong().variable("CLICOLOR_FORCE", "1").finish()));
    assert!(!is_colored(wrong().variable("CLICOLOR_FORCE", "1").variable("NO_COLOR", "1").finish()));
    let help = Run::ftrun("--help").variable("CLICOLOR_FORCE", "1").finish().expect(0);
    assert!(help.stdout.contains("\u{1b}["), "{help}");
}

#[test]
fn a_program_that_is_not_there_is_said_once() {
    check(&Run::ftrun("-n 4 ./no-such-program").finish().expect(2), &["cannot run ./no-such-program"]);
}

#[test]
fn of_the_environment() {
    for (name, value, meant) in [("FTRUN_CONGESTION", "vegas", "cubic"), ("FTRUN_TRANSPORT", "udp", "tcp")] {
        let outcome = Run::ftrun(POISSON).variable(name, value).finish().expect(2);
        check(&outcome, &[name, &format!("'{value}'"), meant]);
    }
}

/// What is no file, never ends, has nobody at its other end, or is too long for what it should be.
#[test]
fn of_a_file_that_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (pipe, binary, long, sparse) = (path("pipe"), path("binary"), path("long"), path("sparse"));
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    std::fs::write(&binary, b"node1\n\xff\n").unwrap();
    std::fs::write(&long, vec![b'#'; (4 << 20) + 1]).unwrap();
    std::fs::File::create(&sparse).unwrap().set_len(8 << 40).unwrap();
    let here = folder.path().display().to_string();
    let endless = ["/dev/zero", "/dev/null", &pipe];
    for option in [
        "ring --hostfile",
        "ring --collectives",
        "seismic --synthetic salt --geometry",
        "seismic --synthetic salt --wavelet",
    ] {
        let refused = |file: &str, why: &str| {
            check(&Run::ftrun(&format!("-n 2 {option} {file}")).finish().expect(2), &[file, why]);
        };
        endless.iter().for_each(|file| refused(file, if *file == pipe { "a pipe" } else { "a device" }));
        refused(&here, "a directory");
        refused(&binary, "byte 7 is not UTF-8");
        refused(&long, "more than 4 MiB");
        refused(&sparse, "more than 4 MiB");
    }
    for option in
        ["cg --matrix", "cg --poisson 2 --rhs", "seismic --shape 9x9 --spacing 1 --model", "picture"]
    {
        for file in endless.into_iter().chain([&*here]) {
            let job = if option == "picture" { "" } else { "-n 2 " };
            check(
                &Run::ftrun(&format!("{job}{option} {file}")).finish().expect(2),
                &[file, "a regular file is expected"],
            );
        }
        let job = if option == "picture" { "--shape 9x9" } else { "" };
        check(&Run::ftrun(&format!("{option} {job} {sparse}")).finish().expect(2), &[&sparse]);
    }
}

fn solve(file: &Path) -> Outcome {
    Run::ftrun("-n 4 cg --matrix").arg(file).finish()
}

#[test]
fn of_a_matrix() {
    let folder = tempfile::tempdir().unwrap();
    let header = "%%MatrixMarket matrix coordinate real";
    let garbage: Vec<u8> = (0..5000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for (name, content, parts) in [
        (
            "truncated",
            format!("{header} symmetric\n3 3 4\n1 1 2\n2 2 2\n").into_bytes(),
            &["2 of 4 entries"][..],
        ),
        ("long", format!("{header} symmetric\n2 2 1\n1 1 2\n2 2 2\n").into_bytes(), &["line 4"]),
        ("wide", format!("{header} general\n2 3 2\n1 1 2\n2 2 2\n").into_bytes(), &["2", "3", "square"]),
        ("skew", format!("{header} general\n2 2 3\n1 1 2\n2 2 2\n1 2 1\n").into_bytes(), &["symmetric"]),
        ("outside", format!("{header} symmetric\n2 2 1\n3 1 2\n").into_bytes(), &["line 3"]),
        ("words", format!("{header} symmetric\n2 2 1\none one two\n").into_bytes(), &["line 3"]),
        ("huge", format!("{header} symmetric\n99999999999999999999 2 1\n1 1 1\n").into_bytes(), &["line 2"]),
        ("garbage", garbage, &["line 1"]),
        ("empty", Vec::new(), &["line 1"]),
        ("fake.gz", b"no gzip at all".to_vec(), &["fake.gz"]),
    ] {
        let file = folder.path().join(name);
        std::fs::write(&file, content).unwrap();
        let outcome = solve(&file).expect(2);
        check(&outcome, parts);
    }
    let missing = folder.path().join("missing.mtx");
    check(&solve(&missing).expect(2), &["missing.mtx", "No such file"]);
    check(&solve(folder.path()).expect(2), &[&folder.path().display().to_string()]);
}

#[test]
fn a_right_hand_side_that_does_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("short.mtx");
    std::fs::write(&file, "%%MatrixMarket matrix array real general\n3 1\n1\n2\n3\n").unwrap();
    let outcome = Run::ftrun("-n 4 cg --poisson 2 --rhs").arg(&file).finish().expect(2);
    check(&outcome, &["3", "8"]);
}

#[test]
fn a_system_that_cannot_be_solved_is_a_failed_job() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("indefinite.mtx");
    std::fs::write(&file, "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 2\n2 2 -3\n").unwrap();
    let outcome = Run::ftrun("-n 2 --json cg --matrix").arg(&file).finish().expect(1);
    let report = outcome.report();
    assert_eq!(report.0["exit"], "failed", "{outcome}");
    assert!(report.message().contains("not positive definite"), "{outcome}");
    assert_eq!(outcome.stderr, format!("ftrun: {}\n", report.message()));
}

#[test]
fn too_few_iterations_are_a_failed_job() {
    let outcome = Run::ftrun(&format!("-n 4 --json {POISSON} --max-iter 3")).finish().expect(1);
    let report = outcome.report();
    assert_eq!(report.0["result"]["converged"], false, "{outcome}");
    assert_eq!(report.iterations(), 3);
    assert!(report.message().contains("not converged after 3 iterations"), "{outcome}");
}

/// Hours of work would be lost if that were found out at the end.
#[test]
fn output_that_cannot_be_written_is_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let (file, old) = (folder.path().join("file"), folder.path().join("old.npy"));
    std::fs::write(&file, "").unwrap();
    std::fs::write(&old, "old").unwrap();
    let under_file = |name: &str| file.join(name).display().to_string();
    let job = "-n 2 cg --poisson 8 --tol 1e-300 --max-iter 1000000000";
    for (arguments, file) in [
        (format!("{job} --timeline"), "/proc/a.svg".to_owned()),
        (format!("{job} --out"), "/proc/x.npy".into()),
        (format!("{job} --out"), under_file("x.mtx")),
        (format!("{job} --out"), folder.path().join("none/x.npy").display().to_string()),
        (format!("{job} --residuals"), "/proc/r.csv".into()),
        (format!("{job} --residuals"), "/proc/r.svg".into()),
        (format!("{job} --residuals"), under_file("r.csv")),
        ("-n 2 heat --grid 1000 --steps 1000000000 --picture".into(), "/proc/a.png".into()),
    ] {
        let outcome = Run::ftrun(&arguments).arg(&file).finish().expect(2);
        check(&outcome, &[&file]);
    }
    // What is there stays until there is an answer.
    let outcome =
        Run::ftrun("-n 2 cg --poisson 8 --precond none --timeout 0.000001 --out").arg(&old).finish();
    assert_eq!(outcome.expect(124).stdout, "");
    assert_eq!(std::fs::read(&old).unwrap(), b"old");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left of trying");
}

/// Of a file on another host only rank 0 knows, which tries it before it computes.
#[test]
fn output_that_rank_0_cannot_write_is_refused_before_the_first_iteration() {
    let job = "-n 2 --hosts 127.0.0.2,127.0.0.3 cg --poisson 8 --tol 1e-300 --max-iter 1000000000 --monitor";
    let (_folder, run) = over(LIKE_SSH, job);
    let outcome = run.arg("--out").arg("/proc/x.npy").finish();
    assert!(outcome.status != 0 && outcome.stderr.contains("/proc/x.npy"), "{outcome}");
    assert!(!outcome.stderr.contains(" 1.000000e0"), "no iteration was done: {outcome}");
}
