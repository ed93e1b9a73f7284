//! Standard output and standard error that nobody reads, that nobody will read, or that are full: the job is none of
//! their business, and what is lost is said.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, PipeWriter};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::common::{POISSON, Run, Running, ends_within, example};
use crate::hosts::{LIKE_SSH, over};

const LINE: &str = "0123456789\n";
/// Of each rank: together more than all pipes and queues on the way to the reader hold.
const LINES: usize = 200_000;
/// Ranks bear a silent launcher for ten timeouts.
const QUICK: &str = "--heartbeat-interval 40 --heartbeat-timeout 300";

/// A rank that prints much while it is a member of the job, which ends when standard input does.
fn talkative() -> String {
    let bytes = LINES * LINE.len();
    format!(
        "yes 0123456789 | head -c {bytes} & talker=$!; {} >&2 && wait $talker",
        example("waiting").display()
    )
}

/// The reader pauses for longer than ranks bear a silent launcher.
fn check_pause(mut running: Running) {
    assert!(!ends_within(running.launcher(), Duration::from_millis(3800)));
    running.end_stdin();
    running.read_stdout();
    let outcome = running.finish();
    let (status, lines) = (outcome.status, outcome.stdout.matches(LINE).count());
    assert!(status == 0 && lines == 2 * LINES, "status {status}, {lines} lines: {}", outcome.stderr);
    assert!(outcome.stderr.contains("replaced [0, 0]"), "{}", outcome.stderr);
}

#[test]
fn a_reader_that_pauses_holds_up_nobody() {
    let run = Run::ftrun(&format!("-n 2 {QUICK} /bin/sh -c")).arg(talkative());
    check_pause(run.open_stdin().held_stdout().start());
}

#[test]
fn a_reader_that_pauses_holds_up_nobody_on_other_hosts() {
    let (_folder, run) = over(LIKE_SSH, &format!("--hosts 127.0.0.2,127.0.0.3 {QUICK} /bin/sh -c"));
    check_pause(run.arg(talkative()).open_stdin().held_stdout().start());
}

/// A rank dies while nobody reads: it is replaced, and what it has printed last is there.
#[test]
fn a_rank_is_replaced_while_the_reader_pauses() {
    let run = Run::ftrun(&format!("-n 2 -v {QUICK} --kill 1@step=12 /bin/sh -c")).arg(talkative());
    let mut running = run.open_stdin().held_stdout().start();
    assert!(!ends_within(running.launcher(), Duration::from_secs(2)));
    running.end_stdin();
    running.await_text("state restored from memory");
    running.read_stdout();
    running.finish().expect(0);
}

#[test]
fn a_signal_ends_the_wait_for_a_reader() {
    for (signal, status, word) in
        [(Signal::INT, 130, "interrupted (SIGINT)"), (Signal::TERM, 143, "terminated (SIGTERM)")]
    {
        let script = "yes 0123456789 | head -c 300000; echo printed >&2";
        let mut running = Run::ftrun("-n 1 /bin/sh -c").arg(script).held_stdout().start();
        running.await_text("printed");
        while running.processes().len() > 1 {
            std::thread::yield_now();
        }
        assert!(!ends_within(running.launcher(), Duration::from_millis(700)), "it waits for the reader");
        running.signal(signal);
        assert!(ends_within(running.launcher(), Duration::from_secs(5)));
        running.read_stdout();
        let outcome = running.finish().expect(status);
        assert!(outcome.stdout.starts_with(LINE));
        let told = format!("ftrun: what was printed is not all read: {word}\n");
        assert!(outcome.stderr.ends_with(&told), "{outcome}");
    }
}

/// Bytes that `yes` has written so far on all ranks of a job.
fn flood(running: &Running) -> u64 {
    let of = |process: Pid| {
        let read = |file| fs::read_to_string(format!("/proc/{}/{file}", process.as_raw_pid())).ok();
        let account = read("io").filter(|_| read("comm").as_deref() == Some("yes\n"))?;
        account.lines().find_map(|line| line.strip_prefix("wchar: ")?.parse::<u64>().ok())
    };
    running.processes().into_iter().filter_map(of).sum()
}

/// Output that waits for its reader holds up nothing else.
#[test]
fn standard_error_is_seen_although_nobody_reads_standard_output() {
    let here = (None, Run::ftrun("-n 2 /bin/sh -c"));
    let (folder, elsewhere) = over(LIKE_SSH, "--hosts 127.0.0.2,127.0.0.3 /bin/sh -c");
    for (_folder, run) in [here, (Some(folder), elsewhere)] {
        let run = run.arg("yes & read word && echo $word >&2; wait");
        let mut running = run.open_stdin().held_stdout().start();
        // A mebibyte waits in the launcher; the rest is in pipes.
        while flood(&running) < (1 << 20) + (96 << 10) {
            assert!(!ends_within(running.launcher(), Duration::from_millis(5)));
        }
        running.say("heard\n");
        running.await_text("heard");
        running.signal(Signal::TERM);
        running.read_stdout();
        running.finish().expect(143);
    }
}

/// One signal is enough, although nobody reads what was printed.
#[test]
fn a_signal_ends_a_job_whose_reader_pauses() {
    let run = Run::ftrun("-n 2 /bin/sh -c").arg("echo ready >&2; yes").held_stdout();
    let mut running = run.start();
    running.await_times("ready", 2);
    assert!(!ends_within(running.launcher(), Duration::from_millis(500)));
    running.signal(Signal::TERM);
    assert!(ends_within(running.launcher(), Duration::from_secs(10)));
    running.read_stdout();
    running.finish().expect(143);
}

fn nobody() -> PipeWriter {
    std::io::pipe().unwrap().1
}

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

#[test]
fn output_that_is_lost_is_the_error() {
    for arguments in [
        format!("-n 2 {POISSON}"),
        format!("-n 2 --json {POISSON}"),
        "-n 2 /bin/echo hello".to_owned(),
        "--help".to_owned(),
        "picture --help".to_owned(),
        "cg --help".to_owned(),
        "--version".to_owned(),
    ] {
        for (run, why) in [
            (Run::ftrun(&arguments).stdout_to(nobody()), "Broken pipe"),
            (Run::ftrun(&arguments).stdout_to(full()), "No space left on device"),
        ] {
            let outcome = run.finish().expect(1);
            let line = format!("ftrun: what was printed to standard output is not all there: {why}");
            assert!(outcome.stderr.starts_with(&line) && outcome.stderr.lines().count() == 1, "{outcome}");
        }
    }
}

#[test]
fn a_job_whose_output_is_lost_runs_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let (picture, file) = (folder.path().join("heat.png"), folder.path().join("done"));
    let run = Run::ftrun("-n 2 heat --grid 32 --picture").arg(&picture).stdout_to(nobody());
    run.finish().expect(1);
    assert!(std::fs::read(picture).unwrap().starts_with(b"\x89PNG"));

    let script = "yes 0123456789 | head -c 3000000; echo done >\"$0\"";
    Run::ftrun("-n 1 /bin/sh -c").arg(script).arg(&file).stdout_to(full()).finish().expect(1);
    assert_eq!(std::fs::read_to_string(file).unwrap(), "done\n");

    // A failure of the job itself keeps its status.
    Run::ftrun("-n 1 /bin/sh -c").arg("echo; exit 7").stdout_to(full()).finish().expect(7);
}

#[test]
fn an_end_of_standard_error_is_no_panic() {
    for arguments in ["-n 2 /nowhere", "-n 2 nothing", "--nothing", "picture /nowhere"] {
        Run::ftrun(arguments).stderr_to(full()).finish().expect(2);
    }
    Run::ftrun("-n 2 /bin/false").stderr_to(nobody()).finish().expect(1);
    Run::ftrun("-n 1 /bin/sh -c").arg("exit 7").stderr_to(nobody()).finish().expect(7);
    Run::ftrun("-n 1 /bin/sh -c").arg("echo lost >&2").stderr_to(full()).finish().expect(1);
    Run::ftrun(&format!("-n 2 -v --kill 1@step=5 {POISSON}")).stderr_to(full()).finish().expect(1);
}

/// Lines to both streams keep their order where both lead to the same place.
#[test]
fn both_streams_keep_their_order_in_one_place() {
    let (reader, writer) = std::io::pipe().unwrap();
    // Pipes that are read together have no order: the rank goes on when a line was read.
    let script =
        "for i in 1 2 3 4 5 6 7 8 9; do echo out $i; read -r next; echo err $i >&2; read -r next; done";
    let run = Run::ftrun("-n 1 --timeout 25 /bin/sh -c").arg(script).open_stdin();
    let mut running = run.stdout_to(writer.try_clone().unwrap()).stderr_to(writer).start();
    let mut lines = BufReader::new(reader).lines();
    for due in (1..10).flat_map(|i| [format!("out {i}"), format!("err {i}")]) {
        assert_eq!(lines.next().expect("it goes on").unwrap(), due);
        running.say("next\n");
    }
    running.finish().expect(0);
    assert!(lines.next().is_none());
}

/// A job of two ranks here, and one on two other hosts.
fn two_ranks(options: &str) -> [(Option<tempfile::TempDir>, Run); 2] {
    let (folder, elsewhere) = over(LIKE_SSH, &format!("{options} --hosts 127.0.0.2,127.0.0.3 /bin/sh -c"));
    [(None, Run::ftrun(&format!("-n 2 {options} /bin/sh -c"))), (Some(folder), elsewhere)]
}

#[test]
fn the_beginning_of_a_line_is_shown_while_the_rank_waits() {
    for (stream, redirection) in [("out", ""), ("err", ">&2")] {
        for (_folder, run) in two_ranks("--tag-output") {
            let script = format!(
                "test $RANK = 1 || {{ printf 'N = ' {redirection}; read n; echo \"got $n\" {redirection}; }}"
            );
            let mut running = run.arg(script).open_stdin().start();
            running.await_text("[0] N = ");
            running.say("42\n");
            let outcome = running.finish().expect(0);
            let printed = if stream == "out" { &outcome.stdout } else { &outcome.stderr };
            assert!(printed.contains("[0] N = got 42\n"), "{stream}: {outcome}");
        }
    }
}

/// One rank has nobody to share lines with.
#[test]
fn bytes_of_one_rank_pass_unchanged() {
    let (folder, elsewhere) = over(LIKE_SSH, "-n 1 --hosts 127.0.0.2 /bin/sh -c");
    for (_folder, run) in [(None, Run::ftrun("-n 1 /bin/sh -c")), (Some(folder), elsewhere)] {
        let script = "printf 'step 1\\r'; read go; printf 'step 2\\r\\n\\0end'";
        let mut running = run.arg(script).open_stdin().start();
        running.await_text("step 1\r");
        running.say("go\n");
        let outcome = running.finish().expect(0);
        assert_eq!(outcome.stdout, "step 1\rstep 2\r\n\0end");
    }
}

#[test]
fn bytes_of_several_ranks_pass_unchanged_if_asked() {
    for (_folder, run) in two_ranks("--output raw") {
        let outcome = run.arg("printf 'a\\rb'").finish().expect(0);
        assert_eq!(outcome.stdout, "a\rba\rb");
    }
    let outcome = Run::ftrun("-n 2 --output raw --tag-output /bin/true").finish().expect(2);
    assert!(
        outcome.stderr.contains("--output raw passes bytes unchanged: leave out --tag-output"),
        "{outcome}"
    );
}

#[test]
fn lines_of_any_length_are_whole_or_marked() {
    const BYTES: usize = 200_000;
    const HUGE: usize = 3 << 20;
    for (_folder, run) in two_ranks("") {
        let script = format!(
            "c=A; [ $RANK = 1 ] && c=B; for i in 1 2 3; do head -c {BYTES} /dev/zero | tr '\\0' $c; echo; done"
        );
        let outcome = run.arg(script).finish().expect(0);
        let lines: Vec<&str> = outcome.stdout.lines().collect();
        let is_whole =
            |line: &&str| line.len() == BYTES && line.bytes().all(|byte| byte == line.as_bytes()[0]);
        assert!(lines.len() == 6 && lines.iter().all(is_whole), "{} lines", lines.len());
    }
    for (_folder, run) in two_ranks("") {
        let script = format!(
            "c=A; [ $RANK = 1 ] && c=B; for i in 1 2 3; do head -c {HUGE} /dev/zero | tr '\\0' $c; echo; done"
        );
        let outcome = run.arg(script).limit(60).finish().expect(0);
        let mut lengths = [vec![], vec![]];
        for line in outcome.stdout.lines() {
            let (piece, is_rest) = line.strip_prefix("... ").map_or((line, false), |rest| (rest, true));
            let letter = piece.as_bytes().first().copied().unwrap_or(b'?');
            assert!(piece.bytes().all(|byte| byte == letter) && b"AB".contains(&letter), "{letter}");
            let of_rank = &mut lengths[usize::from(letter == b'B')];
            match of_rank.last_mut().filter(|_| is_rest) {
                Some(length) => *length += piece.len(),
                None => of_rank.push(piece.len()),
            }
        }
        assert_eq!(lengths, [[HUGE; 3], [HUGE; 3]]);
    }
}
