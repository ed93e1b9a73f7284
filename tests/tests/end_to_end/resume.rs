//! A job of which no process is left goes on from the files that it has written beside its work: the same bits, on as many ranks as
//! then and on others; what is damaged, foreign or not finished is refused by name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::common::{Outcome, Run, Running, example};

/// A job that takes a while, and what is compared of its result.
pub(crate) const JOBS: [(&str, &str); 4] = [
    ("cg --poisson2d 120 --tol 1e-10", "answer_hash"),
    ("solve --poisson 30 --solver gmres --restart 9 --precond jacobi --tol 1e-12", "answer_hash"),
    ("heat --grid 300 --steps 600", "answer_hash"),
    ("pi --samples 240000000", "hits"),
];

/// Does something to a file.
type Spoil = fn(&Path);

/// With files for every second checkpoint, of which there are many.
fn spilling(dir: &Path, options: &str, job: &str) -> Run {
    let run = Run::ftrun(&format!("-v --every 2 --spill-every 2 {options} --spill"));
    job.split_whitespace().fold(run.arg(dir), Run::arg)
}

/// The same so slowly that it does not come to its end before it is killed, however slow the disk is. Checkpoints follow one another
/// closely, so that there is no long wait for them.
pub(crate) fn lasting(dir: &Path, options: &str, job: &str) -> Run {
    let run = Run::ftrun(&format!("-v --every 1 --spill-every 2 --pace 0.1 {options} --spill"));
    job.split_whitespace().fold(run.arg(dir), Run::arg)
}

pub(crate) fn resumed(dir: &Path, options: &str, job: &str) -> Run {
    let run = Run::ftrun(&format!("--json {options} --resume"));
    job.split_whitespace().fold(run.arg(dir), Run::arg)
}

/// What a job without failures, and without files, comes to.
pub(crate) fn due(job: &str, name: &str) -> String {
    let outcome = Run::ftrun(&format!("--json -n 2 {job}")).finish().expect(0);
    outcome.report().0["result"][name].to_string()
}

pub(crate) fn answer(outcome: &Outcome, name: &str) -> String {
    outcome.report().0["result"][name].to_string()
}

/// The folder of the one job in there; one that was to be removed does not count.
pub(crate) fn folder(dir: &Path) -> PathBuf {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut folders = entries.filter(|path| !path.file_name().unwrap().as_encoded_bytes().starts_with(b"."));
    let folder = folders.next().expect("a job has left something");
    assert_eq!(folders.next(), None, "the only one");
    folder
}

/// Numbers of the sets that have a manifest, in order.
pub(crate) fn complete(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let number = |path: PathBuf| {
        let number = path.file_name()?.to_str()?.strip_prefix("epoch-")?.parse().ok()?;
        path.join("manifest").exists().then_some(number)
    };
    let mut numbers: Vec<u32> = entries.filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

/// Starts a job, and kills all of it when so many sets are complete.
pub(crate) fn killed(dir: &Path, options: &str, job: &str, sets: usize) {
    let mut running = lasting(dir, options, job).start();
    running.await_times("is in files", sets);
    running.signal(Signal::KILL);
    running.finish_killed();
}

/// Of a killed job of four ranks.
fn left(job: &str) -> TempDir {
    let dir = tempdir().unwrap();
    killed(dir.path(), "-n 4", job, 2);
    dir
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn every_job_goes_on_after_all_of_it_was_killed_on_as_many_ranks_and_on_others() {
    for (job, name) in JOBS {
        let (dir, due) = (left(job), due(job, name));
        let before = complete(&folder(dir.path()));
        // Whoever names no number of ranks has as many as then.
        for options in ["", "-n 4 --kill 1@init", "-n 2", "-n 3 --scheme rs:1+1", "-n 7", "-n 1"] {
            let outcome = resumed(dir.path(), options, job).limit(60).finish().expect(0);
            if options.is_empty() {
                assert_eq!(outcome.report().0["ranks"], 4, "{outcome}");
            }
            assert_eq!(answer(&outcome, name), due, "{options}: {outcome}");
        }
        assert_eq!(complete(&folder(dir.path())), before, "nothing was taken away");
    }
}

/// The files of a folder, with what is in them.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
}

/// The runs of all shots of a survey.
fn runs(outcome: &Outcome) -> Vec<Value> {
    let shots = outcome.report().0["result"]["shots"].as_array().unwrap().clone();
    shots.iter().flat_map(|shot| shot["runs"].as_array().unwrap()).cloned().collect()
}

#[test]
fn a_survey_goes_on_with_as_many_ranks_and_with_others() {
    for protects in ["", "--protect-shots"] {
        let (dir, out) = (tempdir().unwrap(), tempdir().unwrap());
        let out = out.path().join("gathers");
        let survey = format!(
            "seismic --synthetic layers --shape 241x161 --shots 9 --time 2 --slice 5 {protects} --out {}",
            out.display()
        );
        Run::ftrun(&format!("-n 3 {survey}")).limit(60).finish().expect(0);
        let due = contents(&out);
        fs::remove_dir_all(&out).unwrap();

        killed(dir.path(), "-n 4", &survey, 8);
        let left = contents(&out);
        for options in ["", "-n 2", "-n 1", "-n 7 --kill 5@checkpoint=2"] {
            fs::remove_dir_all(&out).unwrap();
            fs::create_dir(&out).unwrap();
            left.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
            let outcome = resumed(dir.path(), options, &survey).limit(60).finish().expect(0);
            assert_eq!(outcome.report().unfired(), [""; 0], "{outcome}");
            assert!(contents(&out) == due, "gathers differ with {options}: {outcome}");
            let runs = runs(&outcome);
            let done = runs.iter().filter(|run| run["outcome"] == "done").count();
            assert_eq!(done, 9, "each shot is done once, {options}: {outcome}");
            let is_resumed = runs.iter().any(|run| run["resumed"] != 0);
            assert_eq!(is_resumed, !protects.is_empty(), "{options}: {outcome}");
        }
    }
}

/// Replacements have the constant part since another epoch than those that were there from the start.
#[test]
fn ranks_were_replaced_before_all_was_killed() {
    let ((job, name), dir) = (JOBS[0], tempdir().unwrap());
    let due = due(job, name);
    for (options, resumed_with) in [
        ("-n 3 --kill 1@step=4", "-n 2"),
        ("-n 3 --spares 1 --kill 0@step=3 --kill 2@step=5", ""),
        ("-n 4 --on-failure shrink --kill 3@step=3", ""),
        ("-n 4 --scheme rs:2+2 --parity-ranks 2 --kill 1@step=4", ""),
        ("-n 3 --kill 0@step=3 --kill 1@step=5 --kill 2@step=7", "-n 5"),
    ] {
        let mut running = lasting(dir.path(), options, job).start();
        running.await_times("strikes", options.matches("--kill").count());
        let before = running.printed("is in files");
        running.await_times("is in files", before + 3);
        running.signal(Signal::KILL);
        running.finish_killed();
        let outcome = resumed(dir.path(), resumed_with, job).finish().expect(0);
        assert!(!outcome.stderr.contains("is not used"), "{options}: {outcome}");
        assert_eq!(answer(&outcome, name), due, "{options}: {outcome}");
        fs::remove_dir_all(folder(dir.path())).unwrap();
    }
}

/// What is done is not done again, and a job that was resumed is as good as any.
#[test]
fn a_job_is_killed_and_resumed_again_and_again() {
    let (job, name) = JOBS[0];
    let (dir, due) = (tempdir().unwrap(), due(job, name));
    killed(dir.path(), "-n 3", job, 1);
    let mut newest = 0;
    for options in ["-n 3", "-n 5", "-n 2"] {
        let folder = folder(dir.path());
        let now = *complete(&folder).last().unwrap();
        assert!(now > newest, "{now} after {newest}");
        newest = now;
        let again = format!("{options} --resume {}", dir.path().display());
        let mut running = lasting(dir.path(), &again, job).start();
        running.await_text("is in files");
        running.signal(Signal::KILL);
        running.finish_killed();
    }
    let last = format!("--spill {}", dir.path().display());
    let outcome = resumed(dir.path(), &last, job).finish().expect(0);
    assert_eq!(answer(&outcome, name), due, "{outcome}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "a job that has ended well leaves nothing");
}

/// A replacement does not know from which set on the others count.
#[test]
fn a_job_that_was_resumed_loses_ranks_and_goes_on_writing() {
    let (job, name) = JOBS[0];
    for kills in ["--kill 1@checkpoint=3/copy", "--kill 0@checkpoint=2/vote --kill 2@checkpoint=5/exchange"] {
        let (dir, due) = (tempdir().unwrap(), due(job, name));
        killed(dir.path(), "-n 3", job, 2);
        let before = *complete(&folder(dir.path())).last().unwrap();
        let again = format!("-n 3 --scheme rs:1+2 {kills} --resume {}", dir.path().display());
        let mut running = lasting(dir.path(), &again, job).start();
        running.await_times("strikes", kills.matches("--kill").count());
        let written = running.printed("is in files");
        running.await_times("is in files", written + 3);
        running.signal(Signal::KILL);
        let killed = running.finish_killed();
        let number =
            |line: &str| line.split_once("checkpoint ")?.1.strip_suffix(" is in files")?.parse().ok();
        let numbers: Vec<u32> = killed.stderr.lines().filter_map(number).collect();
        assert!(numbers.iter().all(|number| *number > before), "{before}, then {numbers:?}");
        let now = *complete(&folder(dir.path())).last().unwrap();
        assert!(now > before + 2, "{before}, then {now}");
        let outcome = resumed(dir.path(), "", job).finish().expect(0);
        assert!(!outcome.stderr.contains("is not used"), "{kills}: {outcome}");
        assert_eq!(answer(&outcome, name), due, "{kills}: {outcome}");
    }
}

#[test]
fn one_job_alone_goes_on_in_a_folder() {
    let job = JOBS[0].0;
    let dir = left(job);
    let again = format!("-n 3 --resume {}", dir.path().display());
    let mut running = lasting(dir.path(), &again, job).start();
    running.await_text("have joined");
    let outcome = spilling(dir.path(), &again, job).finish().expect(2);
    assert!(outcome.stderr.contains("another job goes on in"), "{outcome}");
    running.signal(Signal::KILL);
    running.finish_killed();
}

#[test]
fn signals_have_the_newest_checkpoint_written_at_once() {
    let ((job, name), dir) = (JOBS[0], tempdir().unwrap());
    let run = Run::ftrun("-v -n 3 --every 2 --pace 0.05 --spill-every 1h --spill").arg(dir.path());
    let mut running: Running = job.split_whitespace().fold(run, Run::arg).start();
    running.await_text("have joined");
    // Before the first checkpoint is committed there is nothing to write; it is written then.
    running.signal(Signal::USR1);
    running.await_text("is in files");
    let newest = || *complete(&folder(dir.path())).last().unwrap();
    let (first, mut times) = (newest(), 1);
    while newest() == first {
        running.signal(Signal::USR1);
        times += 1;
        running.await_times("is in files", times);
    }
    let before = newest();
    running.signal(Signal::TERM);
    let outcome = running.finish().expect(143);
    assert!(newest() >= before, "{outcome}");
    assert!(outcome.stderr.contains("goes on from there"), "{outcome}");
    let outcome = resumed(dir.path(), "", job).finish().expect(0);
    assert_eq!(answer(&outcome, name), due(job, name), "{outcome}");
}

/// Ctrl-C does what SIGTERM does. (SIGHUP does, too, but not in a test that runs under `nohup`.)
#[test]
fn first_interrupt_writes_the_newest_checkpoint_and_ends_the_job() {
    let ((job, name), dir) = (JOBS[0], tempdir().unwrap());
    let run = Run::ftrun("-v -n 3 --every 2 --pace 0.05 --spill-every 1h --spill").arg(dir.path());
    let mut running: Running = job.split_whitespace().fold(run, Run::arg).start();
    running.await_text("have joined");
    running.signal(Signal::INT);
    let outcome = running.finish().expect(130);
    assert!(outcome.stderr.contains("a second signal ends it now"), "{outcome}");
    assert!(outcome.stderr.contains("goes on from there"), "{outcome}");
    assert!(!complete(&folder(dir.path())).is_empty(), "{outcome}");
    let outcome = resumed(dir.path(), "", job).finish().expect(0);
    assert_eq!(answer(&outcome, name), due(job, name), "{outcome}");
}

/// The folder that the job writes to is gone, so the answer to the first interrupt never comes.
#[test]
fn second_interrupt_ends_the_job_and_resume_says_that_nothing_was_written() {
    let dir = tempdir().unwrap();
    let job = JOBS[0].0;
    let run = Run::ftrun("-v -n 2 --every 1 --pace 0.05 --spill-every 1h --spill").arg(dir.path());
    let mut running: Running = job.split_whitespace().fold(run, Run::arg).start();
    running.await_text("have joined");
    let is_begun =
        || fs::read_dir(dir.path()).unwrap().any(|job| job.unwrap().path().join("command").exists());
    while !is_begun() {
        std::thread::yield_now();
    }
    fs::rename(folder(dir.path()), dir.path().join("moved")).unwrap();
    running.signal(Signal::INT);
    running.await_text("a second signal ends it now");
    running.signal(Signal::INT);
    running.finish().expect(130);
    for there in [dir.path().to_owned(), dir.path().join("moved")] {
        let outcome = resumed(&there, "", job).finish().expect(2);
        assert!(outcome.stderr.contains("Start it again without --resume"), "{outcome}");
        assert!(!outcome.stderr.contains("name the directory"), "{outcome}");
    }
}

#[test]
fn abort_with_status_zero_is_a_failure_and_leaves_the_files() {
    for status in ["0", "256", "7"] {
        let dir = tempdir().unwrap();
        let run = Run::ftrun("-n 2 --every 1 --spill-every 1 --spill").arg(dir.path());
        let outcome = run.arg(example("abort")).arg(status).finish();
        let due = if status == "7" { 7 } else { 1 };
        let outcome = outcome.expect(due);
        assert!(outcome.stderr.contains("the input makes no sense"), "{outcome}");
        assert!(folder(dir.path()).join("command").exists(), "{outcome}");
    }
}

#[test]
fn program_without_a_result_leaves_the_checkpoints_it_was_resumed_from() {
    let dir = left(JOBS[0].0);
    let before = complete(&folder(dir.path()));
    for program in ["/bin/true", "/bin/false"] {
        let run = Run::ftrun("--accept-arguments --spill").arg(dir.path()).arg("--resume").arg(dir.path());
        run.arg(program).finish().expect(i32::from(program == "/bin/false"));
        assert_eq!(complete(&folder(dir.path())), before, "{program}");
    }
}

#[test]
fn what_is_damaged_is_refused_by_name_and_the_one_before_is_used() {
    let (job, name) = JOBS[0];
    let due = due(job, name);
    let spoil: [(&str, Spoil); 5] = [
        ("do not match their checksum", |file| {
            let mut bytes = fs::read(file).unwrap();
            bytes[1000] ^= 1;
            fs::write(file, bytes).unwrap();
        }),
        ("were written", |file| {
            let bytes = fs::read(file).unwrap();
            fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("No such file", |file| fs::remove_file(file).unwrap()),
        ("another file, job or format", |file| {
            fs::copy(file.with_file_name("rank-0"), file).map(|_| ()).unwrap();
        }),
        ("another file, job or format", |file| {
            let mut bytes = fs::read(file).unwrap();
            bytes[8] = 1; // the version
            fs::write(file, bytes).unwrap();
        }),
    ];
    let dir = left(job);
    let folder = folder(dir.path());
    let newest = *complete(&folder).last().unwrap();
    let file = folder.join(format!("epoch-{newest}/rank-2"));
    let whole = fs::read(&file).unwrap();
    for (why, spoil) in spoil {
        spoil(&file);
        let outcome = resumed(dir.path(), "", job).finish().expect(0);
        assert!(outcome.stderr.contains("is not used") && outcome.stderr.contains(why), "{outcome}");
        assert!(outcome.stderr.contains(&format!("epoch-{newest}")), "{outcome}");
        assert_eq!(answer(&outcome, name), due, "{outcome}");
        fs::write(&file, &whole).unwrap();
    }
    // Without any that is whole there is no answer, and no job that begins anew unasked.
    fs::remove_file(folder.join("constant-1/rank-2")).unwrap();
    let outcome = resumed(dir.path(), "", job).finish().expect(1);
    assert!(outcome.report().message().contains("none of the 2 checkpoints"), "{outcome}");
}

/// A job that is called anything goes on, and writes on under that name.
#[test]
fn renamed_moved_and_copied_folder_goes_on() {
    let (job, name) = JOBS[0];
    let (dir, elsewhere) = (left(job), tempdir().unwrap());
    let (own, due) = (folder(dir.path()), due(job, name));
    let copy = |to: &Path| {
        let status = std::process::Command::new("cp").arg("-r").arg(&own).arg(to).status().unwrap();
        assert!(status.success());
    };
    // A copy beside the whole folder, and one that is not whole.
    copy(&dir.path().join("backup"));
    copy(&dir.path().join("half"));
    let newest = *complete(&own).last().unwrap();
    for number in complete(&own) {
        fs::remove_file(dir.path().join(format!("half/epoch-{number}/rank-2"))).unwrap();
    }
    let (renamed, moved) = (dir.path().join("run-A"), elsewhere.path().join("run-B"));
    let goes_on = |there: &Path, from: &Path| {
        let outcome = resumed(there, "", job).finish().expect(0);
        assert_eq!(answer(&outcome, name), due, "{outcome}");
        assert!(!outcome.stderr.contains("damaged") && !outcome.stderr.contains("not used"), "{outcome}");
        assert!(outcome.stderr.contains(&format!("goes on from {}", from.display())), "{outcome}");
    };
    goes_on(dir.path(), &own);
    fs::remove_dir_all(dir.path().join("half")).unwrap();
    fs::rename(&own, &renamed).unwrap();
    goes_on(&renamed, &renamed);
    fs::remove_dir_all(dir.path().join("backup")).unwrap();
    // Another job writes on in the renamed folder, and is killed too.
    killed(dir.path(), &format!("-n 3 --resume {}", dir.path().display()), job, 2);
    assert!(*complete(&folder(dir.path())).last().unwrap() > newest && folder(dir.path()) == renamed);
    goes_on(dir.path(), &renamed);
    assert!(std::process::Command::new("mv").arg(&renamed).arg(&moved).status().unwrap().success());
    std::os::unix::fs::symlink(&moved, dir.path().join("link")).unwrap();
    goes_on(dir.path(), &moved);
    goes_on(elsewhere.path(), &moved);
}

#[test]
fn what_does_not_fit_is_refused() {
    let (job, _) = JOBS[0];
    let dir = left(job);
    let refused = |options: &str, job: &str, status: i32, why: &str| {
        let outcome = resumed(dir.path(), options, job).finish().expect(status);
        let said = format!("{}{}", outcome.stderr, outcome.stdout);
        assert!(said.contains(why), "{why}: {outcome}");
    };
    refused("", "cg --poisson2d 121 --tol 1e-10", 2, "is that of 'cg --poisson2d 120 --tol 1e-10, seed 1'");
    refused("--accept-arguments", "pi --samples 1000", 1, "does not hold a");
    for (options, why) in [
        ("--spill-every 3", "--spill"),
        ("--keep 2", "--spill"),
        ("--accept-build", "--resume"),
        ("--spill x --spill-every 0", "must be a number of checkpoints"),
        ("--spill x --scheme disk:y", "are files"),
        ("--resume /dev/null", "--resume: "),
    ] {
        let outcome = Run::ftrun(&format!("-n 2 {options} {job}")).finish().expect(2);
        assert!(outcome.stderr.contains(why), "{outcome}");
    }
    let empty = tempdir().unwrap();
    let outcome = resumed(empty.path(), "", job).finish().expect(2);
    assert!(outcome.stderr.contains("no checkpoint is complete in"), "{outcome}");
}

#[test]
fn a_program_of_ones_own_goes_on_but_not_on_other_ranks_unless_it_can() {
    let dir = tempdir().unwrap();
    let run = |options: &str| {
        let run = Run::ftrun(options).arg(dir.path());
        run.arg(example("resilient"))
    };
    let mut running = run("-v -n 3 --pace 0.05 --every 1 --spill-every 1 --spill").start();
    running.await_text("is in files");
    running.signal(Signal::TERM);
    running.finish().expect(143);
    let due = Run::ftrun("-n 3").arg(example("resilient")).finish().expect(0);
    assert_eq!(run("--resume").finish().expect(0).stdout, due.stdout);
    let outcome = run("-n 2 --resume").finish().expect(1);
    assert!(outcome.stderr.contains("cannot go on with another number of ranks"), "{outcome}");
}

#[test]
fn checkpoints_on_disk_are_resumed_in_the_same_way() {
    let (job, name) = JOBS[0];
    let dir = tempdir().unwrap();
    let run =
        Run::ftrun("-v -n 3 --every 2 --pace 0.05 --scheme").arg(format!("disk:{}", dir.path().display()));
    let running = job.replace("1e-10", "1e-200").split_whitespace().fold(run, Run::arg).start();
    while fs::read_dir(dir.path()).unwrap().next().is_none() || complete(&folder(dir.path())).len() < 2 {
        std::thread::yield_now();
    }
    running.signal(Signal::KILL);
    running.finish_killed();
    // The state has the tolerance of then.
    let outcome = resumed(dir.path(), "--accept-arguments", job).finish();
    assert!(outcome.report().0["result"]["iterations"].as_u64() > Some(300), "{name}: {outcome}");
}

#[test]
fn two_jobs_in_one_directory_do_not_touch_each_other() {
    let dir = tempdir().unwrap();
    let ((one, hash), (other, hits)) = (JOBS[0], JOBS[3]);
    let mut first = lasting(dir.path(), "-n 3", one).start();
    let mut second = lasting(dir.path(), "-n 2", other).start();
    first.await_text("is in files");
    second.await_text("is in files");
    for running in [first, second] {
        running.signal(Signal::KILL);
        running.finish_killed();
    }
    let folders: Vec<PathBuf> =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(folders.len(), 2);
    for folder in folders {
        let command = fs::read_to_string(folder.join("command")).unwrap();
        let (job, name) = if command.starts_with("cg") { (one, hash) } else { (other, hits) };
        let outcome = resumed(&folder, "", job).finish().expect(0);
        assert_eq!(answer(&outcome, name), due(job, name), "{outcome}");
    }
}

#[test]
fn a_directory_that_vanishes_is_said_and_the_job_goes_on() {
    let (job, name) = JOBS[0];
    let dir = tempdir().unwrap();
    let mut running = spilling(dir.path(), "-n 3 --json --pace 0.01", job).start();
    running.await_text("is in files");
    fs::rename(folder(dir.path()), dir.path().join(".away")).unwrap();
    let outcome = running.finish().expect(0);
    assert_eq!(answer(&outcome, name), due(job, name), "{outcome}");
    let files = &outcome.report().0["files"];
    let said = outcome.stderr.contains("to files, and the job goes on: cannot");
    assert_eq!(files["failed"].as_u64() > Some(0), said, "{outcome}");
    // One that cannot even begin says so before any work is done.
    let outcome = spilling(Path::new("/dev/null"), "-n 2", job).finish().expect(2);
    assert!(outcome.stderr.contains("/dev/null"), "{outcome}");
}

#[test]
fn the_newest_sets_are_kept_and_looked_at() {
    let (job, _) = JOBS[0];
    let dir = tempdir().unwrap();
    killed(dir.path(), "-n 3 --keep 3", job, 5);
    let sets = complete(&folder(dir.path()));
    assert!((3..=4).contains(&sets.len()), "{sets:?}");
    let newest = sets.last().unwrap();
    let file = folder(dir.path()).join(format!("epoch-{newest}/rank-1"));
    let look = |options: &str| Run::ftrun("inspect").arg(dir.path()).arg(options).finish().expect(0);
    let text = look("--all-bytes").stdout;
    assert!(
        text.contains("cg --poisson2d 120") && text.contains("3 ranks") && !text.contains("not whole"),
        "{text}"
    );
    let mut bytes = fs::read(&file).unwrap();
    bytes[100] ^= 1;
    fs::write(&file, bytes).unwrap();
    assert!(!look("--json").stdout.contains("checksum"), "headers alone");
    let text = look("--all-bytes").stdout;
    assert!(text.contains("rank 1") && text.contains("do not match their checksum"), "{text}");
}

/// Everything is killed at a random moment, again and again, until a job comes to its end. `FT_RESUME_RUNS` says how often.
#[test]
fn everything_is_killed_at_random_moments() {
    let runs = std::env::var("FT_RESUME_RUNS").map_or(4, |text| text.parse().unwrap());
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let dues: Vec<String> = JOBS.iter().map(|(job, name)| due(job, name)).collect();
    for run in 0..runs {
        let which = random(JOBS.len() as u64) as usize;
        let ((job, name), dir) = (JOBS[which], tempdir().unwrap());
        let schemes = ["xor", "neighbor:1", "rs:2+1", "xor --checkpoints asynchronous"];
        let scheme = schemes[random(4) as usize];
        let mut started = false;
        loop {
            // A job that has left nothing begins anew.
            let has_left = started
                && fs::read_dir(dir.path())
                    .unwrap()
                    .any(|old| !old.unwrap().file_name().as_encoded_bytes().starts_with(b"."))
                && !complete(&folder(dir.path())).is_empty();
            let again = if has_left { format!("--resume {}", dir.path().display()) } else { String::new() };
            if !has_left {
                fs::read_dir(dir.path())
                    .unwrap()
                    .for_each(|old| fs::remove_dir_all(old.unwrap().path()).unwrap());
            }
            started = true;
            // Ranks are killed meanwhile, and replaced.
            let failures = ["", "--mtbf 0.2 --max-restarts 10000"][random(2) as usize];
            let options = format!("-n 3 --scheme {scheme} --json {failures} {again}");
            let mut running = spilling(dir.path(), &options, job).limit(60).start();
            if random(4) == 0 {
                let outcome = running.finish().expect(0);
                assert_eq!(answer(&outcome, name), dues[which], "run {run}: {outcome}");
                break;
            }
            running.await_text("have joined");
            std::thread::park_timeout(std::time::Duration::from_micros(random(300_000)));
            // It may have ended.
            let _ = rustix::process::kill_process(running.launcher(), Signal::KILL);
            running.finish_killed();
        }
    }
}
