//! `--keep-memory`: whoever is replaced on its host finds its checkpoint again, however many are lost at once. `FT_RUNS=1000` makes a
//! soak of the flipped bits.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rustix::fs::{SeekFrom, seek};
use rustix::process::{Pid, Signal};

use crate::common::{LONG, Outcome, PATIENT, POISSON, Run, Running, example, poisson_answer};
use crate::hosts::{HOSTS, LIKE_SSH, kill_host, over};

const ALL: &str = "--kill 0,1,2,3@step=25";

/// The answer is right; gives how many ranks have found their checkpoints again.
fn check(outcome: &Outcome) -> u64 {
    let report = outcome.report();
    assert_eq!(report.answer(), poisson_answer().answer(), "{outcome}");
    kept(outcome)
}

/// Ranks that have found their checkpoints again.
fn kept(outcome: &Outcome) -> u64 {
    let failures = outcome.report().0["failures"].as_array().unwrap().clone();
    failures.iter().filter_map(|failure| failure["restore"]["kept"].as_u64()).sum()
}

fn run(options: &str) -> Outcome {
    Run::ftrun(&format!("--json --keep-memory {options} {POISSON}")).finish().expect(0)
}

#[test]
fn on_one_host_no_loss_is_beyond_the_tolerance() {
    for scheme in
        ["neighbor", "xor", "xor:2", "rs:2+2", "xor --checkpoints asynchronous", "rs:4+2 --parity-ranks 2"]
    {
        let outcome = run(&format!("-n 4 --scheme {scheme} {ALL}"));
        assert!(check(&outcome) >= 3, "{scheme}: {outcome}");
    }
    // Without it this is the end.
    Run::ftrun(&format!("--json -n 4 {ALL} {POISSON}")).finish().expect(3);
    let outcome = Run::ftrun(&format!("-n 4 --keep-memory {ALL} {POISSON}")).finish().expect(0);
    assert!(outcome.stdout.contains("found again in memory"), "{outcome}");
}

/// Two at every moment that has a name, one of them more than the scheme survives; and whoever comes for them dies, too.
#[test]
fn two_die_at_every_moment() {
    for kills in [
        "--kill 1,2@checkpoint=3/copy",
        "--kill 1@checkpoint=3/encode --kill 2@checkpoint=3/exchange",
        "--kill 1@checkpoint=3/exchange --kill 2@checkpoint=3/vote",
        "--kill 1@checkpoint=3/vote --kill 0@checkpoint=3/vote",
        "--kill 1@checkpoint=3/commit --kill 2@checkpoint=3/commit",
        "--kill 3@checkpoint=1/commit --kill 0@checkpoint=2/exchange",
        "--kill 1@step=15 --kill 2@restore=1/plan",
        "--kill 1@step=15 --kill 1@restore=1/plan --kill 1@restore=2/verify",
        "--kill 1@step=15 --kill 2@restore=1/exchange --kill 0@restore=2/verify",
        "--kill 1@step=15 --kill 2@repair=1/agree --kill 3@repair=1/reconnect",
        "--kill 1@step=15 --kill 1@step=16 --kill 1@step=17 --kill 2@step=17",
    ] {
        for more in ["", "--checkpoints asynchronous", "--spares 2"] {
            let outcome = run(&format!("-n 4 --scheme xor --every 5 {more} {kills}"));
            check(&outcome);
            // One may die before the other has come to its moment.
            assert!(!outcome.report().failures().is_empty(), "{outcome}");
        }
    }
}

#[test]
fn spares_find_it_and_sections_and_messages_are_whole() {
    let options = format!("--json -v --keep-memory -n 4 --scheme xor --spares 3 {PATIENT} {POISSON}");
    let mut running = Run::ftrun(&format!("--kill 3@step=15:hang {options}")).start();
    running.await_text("--kill 3@step=15:hang strikes");
    running.await_times("3 of 3 spares are ready", 1);
    let ranks = [2, 3, 4].map(|number| running.started(number));
    ranks.iter().for_each(|rank| rustix::process::kill_process(*rank, Signal::KILL).unwrap());
    let outcome = running.finish().expect(0);
    assert!(check(&outcome) >= 1 && outcome.report().spares_used() == 3, "{outcome}");
    for program in ["sections", "typed_ring"] {
        let with = |options: &str| {
            let run = Run::ftrun(&format!("-n 3 --scheme neighbor {options}")).arg(example(program));
            let stdout = run.finish().expect(0).stdout;
            let is_same = |line: &&str| line.contains("digest") || line.contains(" runs");
            let digest = |line: &str| line.rsplit("digest").next().unwrap_or_default().to_owned();
            let mut lines: Vec<String> = stdout.lines().filter(is_same).map(digest).collect();
            lines.sort_unstable();
            lines
        };
        let kills = "--kill 0,1,2@step=9 --kill 1@step=21";
        assert_eq!(with(&format!("--keep-memory {kills}")), with(""), "{program}");
    }
}

/// The memory of a host is lost with its agent, and redundancy serves.
#[test]
fn what_a_lost_host_has_kept_is_lost() {
    let options = "-n 6 --scheme rs:4+2 --hosts 127.0.0.2:2,127.0.0.3:2,127.0.0.4:2 --keep-memory --json -v";
    // The one that hangs is there until its host is lost.
    let kills = format!("{PATIENT} --kill 0@step=5 --kill 1@step=5 --kill 3@step=25:hang");
    let (_folder, run) = over(LIKE_SSH, &format!("{options} {kills} {POISSON}"));
    let mut running = run.start();
    running.await_text("--kill 3@step=25:hang strikes");
    kill_host(&running, HOSTS[1]);
    let outcome = running.finish().expect(0);
    assert!(check(&outcome) >= 1, "{outcome}");
    let failures = outcome.report().0["failures"].as_array().unwrap().clone();
    let of_host = failures.last().unwrap();
    assert_eq!(
        (of_host["ranks"].to_string().as_str(), of_host["restore"]["kept"].as_u64()),
        ("[2,3]", Some(0)),
        "{outcome}"
    );
}

/// Whether this open file is memory that outlives processes.
fn is_memory(path: &Path) -> bool {
    fs::read_link(path).is_ok_and(|link| link.to_string_lossy().contains("ftrun-estates"))
}

/// The memory of the job, as the launcher has it open.
fn memory(launcher: Pid) -> File {
    let files = fs::read_dir(format!("/proc/{launcher}/fd")).unwrap();
    let mut paths = files.map(|entry| entry.unwrap().path());
    let path = paths.find(|path| is_memory(path)).expect("the launcher keeps memory");
    File::options().read(true).write(true).open(path).unwrap()
}

/// Where there is something in a file.
fn extents(file: &File) -> Vec<(u64, u64)> {
    let mut found = vec![];
    let mut at = 0;
    while let Ok(start) = seek(file, SeekFrom::Data(at)) {
        at = seek(file, SeekFrom::Hole(start)).unwrap();
        found.push((start, at));
    }
    found
}

/// Bits flip in what is kept, notes and checkpoints, and then a rank is killed: redundancy serves.
#[test]
fn a_flipped_bit_gets_into_no_answer() {
    let runs = std::env::var("FT_RUNS").map_or(10, |runs| runs.parse().unwrap());
    let due =
        Run::ftrun("--json -n 4 cg --poisson 30 --tol 1e-10").finish().expect(0).report().answer().to_owned();
    let (mut found, mut damaged) = (0, 0);
    for number in 0..runs {
        let options = "--json -v -n 4 --scheme rs:2+2 --keep-memory --every 5 --heartbeat-timeout 20000 --kill 1@step=40:hang";
        let mut running: Running = Run::ftrun(&format!("{options} cg --poisson 30 --tol 1e-10")).start();
        running.await_text("strikes");
        let file = memory(running.launcher());
        let extents = extents(&file);
        let bytes: u64 = extents.iter().map(|(start, end)| end - start).sum();
        let mut at = RandomState::new().hash_one(number) % bytes;
        let (start, _) = extents
            .iter()
            .find(|(start, end)| {
                at < end - start || {
                    at -= end - start;
                    false
                }
            })
            .unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, start + at).unwrap();
        file.write_all_at(&[byte[0] ^ 1 << (number % 8)], start + at).unwrap();
        rustix::process::kill_process(running.started(2), Signal::KILL).unwrap();
        let outcome = running.finish().expect(0);
        assert_eq!(outcome.report().answer(), due, "{outcome}");
        found += kept(&outcome);
        damaged += outcome.report().0["checkpoints"]["damaged"].as_u64().unwrap_or(0);
    }
    println!("{found} found their checkpoints again, of which {damaged} were damaged");
}

#[test]
fn nobody_has_the_memory_of_a_job_that_was_killed() {
    let mut running = Run::ftrun(&format!("-v -n 4 --keep-memory --every 5 --kill 1@step=20 {LONG}")).start();
    running.await_text("state restored from memory");
    let file = memory(running.launcher());
    assert!(!extents(&file).is_empty());
    let number = file.metadata().unwrap().ino();
    drop(file);
    let has_it = || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let files =
            processes.filter_map(|process| fs::read_dir(process.path().join("fd")).ok()).flatten().flatten();
        let is_it =
            |path: &Path| is_memory(path) && fs::metadata(path).is_ok_and(|data| data.ino() == number);
        files.filter(|file| is_it(&file.path())).count()
    };
    assert!(has_it() >= 5, "launcher and ranks");
    let watched = running.watched();
    running.signal(Signal::KILL);
    running.finish_killed();
    watched.await_end();
    assert_eq!(has_it(), 0);
}
