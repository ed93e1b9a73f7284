//! The shots of `seismic` through kills: the gathers are, byte for byte, those of the undisturbed survey, each once and
//! whole, whoever dies when; and what is wrong with the input is said before any of it is written.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::common::{Outcome, PATIENT, Run, built};

/// A survey of seven shots on a small model, in short slices, so that there is much to strike at.
const SURVEY: &str = "seismic --synthetic layers --shape 121x81 --shots 7 --time 0.5 --slice 5 --every 2";
/// Four long shots: none is done before the tenth step.
const LONG_SHOTS: &str = "seismic --synthetic layers --shape 241x161 --shots 4 --time 3 --slice 5 --every 1";

/// The files of a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap())).collect()
}

/// Runs a survey into a folder of its own; gives its files.
fn model(options: &str, survey: &str) -> (BTreeMap<String, Vec<u8>>, Outcome) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("gathers");
    let run = Run::ftrun(&format!("--json {survey} {options} --out")).arg(&out).limit(60);
    let outcome = run.finish().expect(0);
    assert_eq!(outcome.report().unfired(), [""; 0], "{outcome}");
    (files(&out), outcome)
}

fn check(options: &[&str], survey: &str) {
    let (undisturbed, outcome) = model("-n 4", survey);
    let answer = outcome.report().answer().to_owned();
    let shots = outcome.report().0["result"]["shots"].as_array().unwrap().len();
    assert_eq!(undisturbed.len(), shots, "{outcome}");
    for options in options {
        let (files, outcome) = model(options, survey);
        let names: Vec<&String> = files.keys().collect();
        assert_eq!(names, undisturbed.keys().collect::<Vec<_>>(), "{outcome}");
        assert!(files == undisturbed, "gathers differ: {outcome}");
        assert_eq!(outcome.report().answer(), answer, "{outcome}");
    }
}

/// The kills that everything must survive, with `extra` options.
fn survives(extra: &str) {
    let options: Vec<String> = [
        "--kill 2@step=3",
        "--kill 0@step=3",
        "--kill 2@step=1",
        "--kill 2@init",
        "--scheme rs:2+2 --kill 1,3@step=4",
        "--scheme rs:2+2 --kill 0,1@step=4",
        "--kill 2@at=gather-write:1",
        "--kill 0@at=gather-write:1",
        "--scheme rs:2+2 --kill 1,2@at=gather-write:1",
        "--kill 1@checkpoint=2/exchange",
        "--kill 0@checkpoint=2/commit",
        "--scheme rs:2+2 --kill 2@step=3 --kill 0@repair=1",
        "--kill 3@step=3 --kill 3@step=6",
        "--kill 2@step=3:exit",
    ]
    .iter()
    .map(|kills| format!("-n 4 {kills} {extra}"))
    .collect();
    check(&options.iter().map(String::as_str).collect::<Vec<_>>(), SURVEY);
}

#[test]
fn gathers_do_not_depend_on_the_ranks() {
    check(&["-n 1", "-n 2", "-n 5", "-n 2 --parity-ranks 1 --scheme xor:3"], SURVEY);
}

/// Survivors keep their shots, whatever level the others go back to.
#[test]
fn gathers_do_not_depend_on_the_level_that_serves() {
    let kills = ["--kill 1,2@step=5", "--kill 0,1@step=4 --kill 2,3@step=7", "--kill 1,2@at=gather-write:1"];
    let options = kills.map(|kills| format!("-n 4 --levels neighbor@2,rs:2+2@4 {kills}"));
    check(&options.each_ref().map(String::as_str), SURVEY.trim_end_matches(" --every 2"));
}

#[test]
fn gathers_do_not_depend_on_failures() {
    survives("");
}

#[test]
fn gathers_do_not_depend_on_failures_with_protected_shots() {
    survives("--protect-shots");
}

#[test]
fn a_protected_shot_goes_on_in_the_middle() {
    let repeated = |options: &str| {
        let (_, outcome) = model(&format!("-n 4 {PATIENT} --kill 2@step=10 {options}"), LONG_SHOTS);
        let report = outcome.report();
        let runs = |shot: usize| report.0["result"]["shots"][shot]["runs"].as_array().unwrap().clone();
        let all: Vec<_> = (0..4).flat_map(runs).collect();
        (report.0["result"]["steps_repeated"].as_u64().unwrap(), all, outcome)
    };
    let (unprotected, runs, outcome) = repeated("");
    assert!(unprotected > 0 && runs.len() == 5, "{outcome}");
    assert_eq!(runs.iter().filter(|run| run["outcome"] == "lost").count(), 1, "{outcome}");
    let (protected, runs, outcome) = repeated("--protect-shots");
    assert!(protected < unprotected && runs.len() == 4, "{protected} of {unprotected}: {outcome}");
    assert_eq!(runs.iter().filter(|run| run["resumed"] == 1).count(), 1, "{outcome}");
}

#[test]
fn a_job_that_fails_while_writing_leaves_whole_gathers_only() {
    let (undisturbed, _) = model("-n 4", SURVEY);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("gathers");
    let options = "-n 4 --scheme none --json --kill 2@at=gather-write:1 --out";
    let outcome = Run::ftrun(&format!("{SURVEY} {options}")).arg(&out).finish().expect(3);
    assert_eq!(outcome.report().unfired(), [""; 0], "{outcome}");
    for (name, bytes) in files(&out) {
        assert!(undisturbed.get(&name) == Some(&bytes), "{name}: {outcome}");
    }
}

#[test]
fn random_kills() {
    check(
        &["-n 4 --scheme rs:2+2 --mtbf 1 --max-restarts 10000"],
        "seismic --synthetic salt --shape 161x101 --shots 9 --time 1.5 --slice 5",
    );
}

#[test]
fn all_files_of_a_survey() {
    let (files, outcome) = model(
        "-n 2",
        "seismic --synthetic salt --shape 81x61 --time 0.3 --shots 2 --su --pictures --receiver-spacing 50",
    );
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    let expected = [
        "model.png",
        "shot_0001.png",
        "shot_0001.sgy",
        "shot_0001.su",
        "shot_0002.png",
        "shot_0002.sgy",
        "shot_0002.su",
    ];
    assert_eq!(names, expected, "{outcome}");
    assert!(files["model.png"].starts_with(b"\x89PNG") && files["shot_0002.png"].starts_with(b"\x89PNG"));
    // 16 x 50 m: 17 receivers; SEG-Y has 3600 bytes more than Seismic Unix.
    let traces = 17 * (240 + 4 * outcome.report().0["result"]["samples"].as_u64().unwrap() as usize);
    assert_eq!((files["shot_0001.su"].len(), files["shot_0001.sgy"].len()), (traces, 3600 + traces));
}

/// Bytes of SEG-Y are counted from 1, as the standard does; of trace headers in the trace.
#[test]
fn headers_say_when_and_where() {
    let survey = "seismic --synthetic homogeneous --shape 101x61 --time 0.4 --freq 15 --source-first 509 --receiver-spacing 50";
    let (files, outcome) = model("-n 2", survey);
    let moved = "ftrun: positions are points of a grid of 10 m: source_first_m 509 is 510\n";
    assert_eq!(outcome.stderr, moved, "{outcome}");
    let (quiet, outcome) = model("-n 2 -q", survey);
    assert!(outcome.stderr.is_empty() && quiet == files, "{outcome}");

    let bytes = &files["shot_0001.sgy"];
    let short = |byte: usize| i16::from_be_bytes([bytes[byte - 1], bytes[byte]]);
    let (interval_us, samples) = (short(3217), usize::try_from(short(3221)).unwrap());
    assert_eq!((interval_us, samples), (4000, 101), "{outcome}");
    for (channel, trace) in bytes[3600..].chunks_exact(240 + 4 * samples).enumerate() {
        let long = |byte: usize| i32::from_be_bytes(trace[byte - 1..byte + 3].try_into().unwrap());
        let receiver_x = 50_000 * channel as i32;
        assert_eq!((long(73), long(81)), (510_000, receiver_x));
        // The common depth point: its number, in halves of 10 m from 1, and its position.
        assert_eq!((long(21), long(181)), (51 + 5 * channel as i32 + 1, (510_000 + receiver_x) / 2));
        // 1.5 periods of 15 Hz before the peak of the wavelet.
        assert_eq!(i16::from_be_bytes([trace[108], trace[109]]), -100);
    }
    // The upper case of code page 037, as far as it is asked for here.
    let text: String = bytes[..3200]
        .iter()
        .map(|byte| match byte {
            0xc1..=0xc9 => char::from(byte - 0xc1 + b'A'),
            0xd1..=0xd9 => char::from(byte - 0xd1 + b'J'),
            0xe2..=0xe9 => char::from(byte - 0xe2 + b'S'),
            0xf0..=0xf9 => char::from(byte - 0xf0 + b'0'),
            0x4b => '.',
            0x60 => '-',
            _ => ' ',
        })
        .collect();
    for fact in [
        "FIRST SAMPLE AT -100.000 MS",
        "WAVELET  RICKER  PEAK FREQUENCY 15 HZ",
        "MODEL  SYNTHETIC HOMOGENEOUS",
        "101 X 61 POINTS",
    ] {
        assert!(text.contains(fact), "{text}");
    }
}

#[test]
fn bad_input_is_said_once_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).unwrap();
        folder.path().join(name).display().to_string()
    };
    let floats = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let good = file("good.bin", &floats(&[2000.0; 1200]));
    let mut velocities = [2000.0; 1200];
    velocities[77] = f32::NAN;
    let nan = file("nan.bin", &floats(&velocities));
    let toml = file("bad.toml", b"shots = 3\ncolor = 1\n");
    let out = folder.path().join("out").display().to_string();
    for (arguments, parts) in [
        ("seismic".to_owned(), &["--model", "--synthetic"][..]),
        ("seismic --model no-such-file --shape 4x4 --spacing 1".into(), &["no-such-file"]),
        (format!("seismic --model {good} --spacing 10"), &["--shape", "1200"]),
        (format!("seismic --model {good} --shape 40x31 --spacing 10"), &["4960", "4800"]),
        (format!("seismic --model {good} --shape 40x30"), &["--spacing"]),
        (format!("seismic --model {good} --shape 40x30 --spacing 10 --freq 90"), &["too coarse", "up to"]),
        (format!("seismic --model {good} --shape 40x30 --spacing 10 --dt 9"), &["unstable", "at most"]),
        (format!("seismic --model {good} --shape 40x30 --spacing 10 --order 7"), &["order", "7"]),
        (format!("seismic --model {good} --shape 40x30 --spacing 10 --receiver-last 900"), &["900", "390"]),
        (format!("seismic --model {good} --shape 40x30 --spacing 10 --source-depth 300"), &["300", "290"]),
        (format!("seismic --model {nan} --shape 40x30 --spacing 10"), &["NaN", "ix 2, iz 17"]),
        (format!("seismic --synthetic salt --geometry {toml}"), &["bad.toml", "line 2", "color"]),
        ("seismic --synthetic sand".into(), &["sand", "salt"]),
        ("seismic --synthetic salt --out /proc/nothing/here".into(), &["/proc/nothing/here"]),
        ("seismic --synthetic salt --time 200".into(), &["samples"]),
    ] {
        let arguments =
            if arguments.contains("--out") { arguments } else { format!("{arguments} --out {out}") };
        let outcome = Run::ftrun(&format!("-n 2 {arguments}")).finish().expect(2);
        let said: Vec<&str> = outcome
            .stderr
            .lines()
            .filter(|line| !line.starts_with("See ") && !line.starts_with("Tip"))
            .collect();
        assert!(said.len() == 1 && said[0].starts_with("ftrun: "), "{outcome}");
        assert!(parts.iter().all(|part| said[0].contains(part)), "{parts:?}: {outcome}");
        assert!(!Path::new(&out).exists() && outcome.stdout.is_empty(), "{outcome}");
    }
}

/// A small file system of its own, in a mount namespace of its own, is full after some gathers.
#[test]
fn a_full_disk_ends_the_job_and_leaves_no_half_file() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("small");
    std::fs::create_dir(&out).unwrap();
    let survey = "seismic --synthetic layers --shape 121x81 --shots 9 --time 0.5";
    let script = format!(
        "mount -t tmpfs -o size=400k none {out} || exit 77; {ftrun} -n 2 {survey} --out {out} </dev/null; \
         echo status $?; ls -a {out}",
        out = out.display(),
        ftrun = built().join("ftrun").display(),
    );
    let output = Command::new("unshare").args(["-rm", "sh", "-c", &script]).output();
    let Ok(output) = output.map_err(|error| eprintln!("skipped: no unshare: {error}")) else { return };
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !stdout.contains("status") {
        eprintln!("skipped: no file system can be mounted here: {stderr}");
        return;
    }
    assert!(stdout.contains("status 1"), "{stdout}{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains("No space left on device") && stderr.contains("shot_"), "{stderr}");
    let names: Vec<&str> = stdout.lines().filter(|line| line.contains("shot")).collect();
    assert!(
        !names.is_empty() && names.iter().all(|name| name.starts_with("shot_") && name.ends_with(".sgy")),
        "{stdout}"
    );
}
