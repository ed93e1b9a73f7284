//! What a job leaves in files: sets in every phase of being written, from all of which it goes on, and fields that are taken out.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::common::{Run, Running, example};
use crate::resume::{JOBS, answer, complete, due, folder, killed, lasting, resumed};

/// Does something to the folder of a job, of which the number is that of the newest set.
type Undo = fn(&Path, u32);

/// What a folder looks like in each phase of writing its newest set, made from one that is finished: the order of events is that of
/// `disk/writer/order.rs`, and whoever was struck, this is what is left. With each whether the newest set is whole.
const PHASES: [(&str, bool, Undo); 12] = [
    ("before the first file", false, |folder, newest| fs::remove_dir_all(set(folder, newest)).unwrap()),
    ("half a shard", false, |folder, newest| {
        remove(&set(folder, newest), &["manifest", "rank-1", "rank-2"]);
        half(&set(folder, newest).join("rank-0"));
        under_another_name(&set(folder, newest).join("rank-0"));
    }),
    ("a shard that has no name yet", false, |folder, newest| {
        remove(&set(folder, newest), &["manifest", "rank-1", "rank-2"]);
        under_another_name(&set(folder, newest).join("rank-0"));
    }),
    ("shards of some ranks", false, |folder, newest| {
        remove(&set(folder, newest), &["manifest", "rank-0"]);
    }),
    ("shards of all ranks", false, |folder, newest| {
        fs::remove_file(set(folder, newest).join("manifest")).unwrap()
    }),
    ("half a manifest", false, |folder, newest| {
        half(&set(folder, newest).join("manifest"));
        under_another_name(&set(folder, newest).join("manifest"));
    }),
    ("a manifest that has no name yet", false, |folder, newest| {
        under_another_name(&set(folder, newest).join("manifest"));
    }),
    ("the set is whole", true, |_, _| {}),
    ("an old set has lost its manifest", true, |folder, newest| {
        fs::remove_file(set(folder, oldest(folder, newest)).join("manifest")).unwrap();
    }),
    ("an old set has lost some files", true, |folder, newest| {
        let old = set(folder, oldest(folder, newest));
        remove(&old, &["manifest", "rank-0", "rank-2"]);
    }),
    ("an old constant part has lost some files", true, |folder, _| {
        fs::create_dir(folder.join("constant-0")).unwrap();
        fs::copy(folder.join("constant-1/rank-1"), folder.join("constant-0/rank-1")).map(|_| ()).unwrap();
    }),
    ("a constant part of its own is begun", false, |folder, newest| {
        fs::remove_dir_all(set(folder, newest)).unwrap();
        fs::create_dir(folder.join(format!("constant-{newest}"))).unwrap();
        let own = folder.join(format!("constant-{newest}/rank-1"));
        fs::copy(folder.join("constant-1/rank-1"), own).map(|_| ()).unwrap();
    }),
];

fn set(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("epoch-{number}"))
}

/// The oldest set that is complete beside the newest one.
fn oldest(folder: &Path, newest: u32) -> u32 {
    *complete(folder).first().filter(|oldest| **oldest < newest).unwrap()
}

fn remove(folder: &Path, names: &[&str]) {
    names.iter().for_each(|name| fs::remove_file(folder.join(name)).unwrap());
}

fn half(file: &Path) {
    let bytes = fs::read(file).unwrap();
    fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
}

/// As a file is called while it is written.
fn under_another_name(file: &Path) {
    fs::rename(file, file.with_extension("4711.tmp")).unwrap();
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_all(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).map(|_| ()).unwrap();
        }
    }
}

/// In each phase of writing a set the newest whole one is used, the answer has the same bits, and what is left of the torn one is in
/// nobody's way: the job that goes on writes its own sets beside it, to the end.
#[test]
fn everything_is_killed_in_each_phase_of_writing_a_set() {
    let (job, name) = JOBS[0];
    let (dir, due) = (tempdir().unwrap(), due(job, name));
    killed(dir.path(), "-n 3 --keep 3", job, 4);
    let left = folder(dir.path());
    // What the kill itself has left half done is a phase of its own, by chance.
    let numbers = complete(&left);
    let [.., before, newest] = numbers[..] else { panic!("{numbers:?}") };
    for (phase, is_whole, undo) in PHASES {
        let again = tempdir().unwrap();
        let folder = again.path().join(left.file_name().unwrap());
        copy_all(&left, &folder);
        for entry in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let torn =
                entry.file_name().unwrap().to_str().unwrap().strip_prefix("epoch-").map(str::parse::<u32>);
            if torn.is_some_and(|number| number.unwrap() > newest) {
                fs::remove_dir_all(entry).unwrap();
            }
        }
        undo(&folder, newest);
        let (used, other) = if is_whole { (newest, before) } else { (before, newest) };
        let look = Run::ftrun("inspect --all-bytes --json").arg(again.path()).finish().expect(0);
        let found: Value = serde_json::from_str(&look.stdout).unwrap();
        let sets = found["checkpoints"].as_array().unwrap();
        let steps = |number: u32| sets.iter().find(|set| set["number"] == number)?["steps"].as_u64();
        let whole = sets.iter().find(|set| set["whole"] == true).unwrap();
        assert_eq!(whole["number"], used, "{phase}: {look}");
        assert_ne!(steps(used), steps(other), "{phase}: {look}");

        let run = format!("--spill-every 2 --every 2 --spill {}", again.path().display());
        let outcome = resumed(again.path(), &run, job).limit(60).finish().expect(0);
        assert!(!outcome.stderr.contains("is not used"), "{phase}: {outcome}");
        assert_eq!(answer(&outcome, name), due, "{phase}: {outcome}");
        assert_eq!(fs::read_dir(again.path()).unwrap().count(), 0, "{phase}: {outcome}");
    }
}

/// Puts something in the place of a file.
type Put = fn(&Path);

/// What hangs, or takes all memory, where a reader takes it for a file; with a word that the error
/// must have.
const NO_FILES: [(&str, &str, Put, &str); 8] = [
    ("a FIFO as a shard", "rank-0", make_fifo, "it is a pipe"),
    ("a FIFO as the manifest", "manifest", make_fifo, "it is a pipe"),
    ("a FIFO as the command", "../command", make_fifo, "it is a pipe"),
    ("a device as a shard", "rank-1", make_device, "it is a device"),
    ("a device as the manifest", "manifest", make_device, "it is a device"),
    ("a device as the command", "../command", make_device, "it is a device"),
    ("a sparse shard", "rank-0", lengthen, "bytes, "),
    ("a sparse shard whose header agrees", "rank-0", claim, "the manifest names another length"),
];

fn make_fifo(file: &Path) {
    fs::remove_file(file).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, file, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
}

fn make_device(file: &Path) {
    fs::remove_file(file).unwrap();
    std::os::unix::fs::symlink("/dev/zero", file).unwrap();
}

fn lengthen(file: &Path) {
    fs::File::options().write(true).open(file).unwrap().set_len(8 << 40).unwrap();
}

fn claim(file: &Path) {
    lengthen(file);
    let opened = fs::File::options().write(true).open(file).unwrap();
    // After the 64 bytes of the header; the fields are told behind the state.
    let length = (8_u64 << 40) - 64 - 100;
    std::os::unix::fs::FileExt::write_all_at(&opened, &length.to_le_bytes(), 40).unwrap();
}

/// Neither of the two tools waits for such a thing or believes it, and the set before is whole.
#[test]
fn resume_from_a_folder_with_fifos_devices_and_sparse_files_uses_the_set_before() {
    let (job, name) = JOBS[0];
    let (dir, due) = (tempdir().unwrap(), due(job, name));
    killed(dir.path(), "-n 2 --keep 3", job, 3);
    let left = folder(dir.path());
    let newest = *complete(&left).last().unwrap();
    for (what, file, put, why) in NO_FILES {
        let again = tempdir().unwrap();
        let folder = again.path().join(left.file_name().unwrap());
        copy_all(&left, &folder);
        put(&set(&folder, newest).join(file));
        for options in ["", "--all-bytes"] {
            let look = Run::ftrun(&format!("inspect {options}")).arg(again.path()).finish().expect(0);
            assert!(look.stdout.contains(why) || look.stderr.contains(why), "{what}: {look}");
        }
        let outcome = resumed(again.path(), "", job).limit(60).finish().expect(0);
        assert!(outcome.stderr.contains(why), "{what}: {outcome}");
        assert_eq!(answer(&outcome, name), due, "{what}: {outcome}");
    }
}

/// The first set of a job is no set in any phase before its last, and a job does not begin anew unasked.
#[test]
fn everything_is_killed_in_each_phase_of_writing_the_first_set() {
    let (job, name) = JOBS[0];
    let dir = tempdir().unwrap();
    killed(dir.path(), "-n 3 --keep 1", job, 2);
    let left = folder(dir.path());
    let newest = *complete(&left).last().unwrap();
    for entry in fs::read_dir(&left).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir()
            && !["constant-1", &format!("epoch-{newest}")].iter().any(|name| entry.ends_with(name))
        {
            fs::remove_dir_all(entry).unwrap();
        }
    }
    let [constant, variable] = [left.join("constant-1"), set(&left, newest)];
    // Backwards in time.
    let due = due(job, name);
    let outcome = resumed(dir.path(), "", job).finish().expect(0);
    assert_eq!(answer(&outcome, name), due, "{outcome}");
    for last in [
        variable.join("manifest"),
        constant.join("manifest"),
        variable.join("rank-2"),
        variable.join("rank-1"),
        constant.join("rank-0"),
    ] {
        fs::remove_file(&last).unwrap();
        let outcome = resumed(dir.path(), "", job).finish().expect(2);
        assert!(
            outcome.stderr.contains("is complete: the job ended before"),
            "{}: {outcome}",
            last.display()
        );
    }
}

/// Everything is killed as soon as a file of the writers is seen, with the work under way: what is whole then is what the job goes on from,
/// and never an older set than was whole before.
#[test]
fn everything_is_killed_as_soon_as_a_file_is_there() {
    let (job, name) = JOBS[0];
    let due = due(job, name);
    for (file, sets) in [
        ("constant-1/rank-2", 0),
        ("constant-1/manifest", 0),
        ("epoch-2/rank-1", 0),
        ("epoch-2/manifest", 0),
        ("rank-0", 2),
        ("rank-1", 2),
        ("rank-2", 2),
        ("tmp", 2),
        ("manifest", 2),
        ("manifest", 4),
    ] {
        let dir = tempdir().unwrap();
        let mut running = lasting(dir.path(), "-n 3", job).start();
        running.await_times("is in files", sets);
        let before = if sets == 0 { vec![] } else { complete(&folder(dir.path())) };
        // Of a set that was not whole, if it does not say which file it is; a later set says that it was there.
        let is_seen = |path: &Path| {
            let number = || path.parent()?.file_name()?.to_str()?.strip_prefix("epoch-")?.parse::<u32>().ok();
            let is_new = number().is_some_and(|number| !before.contains(&number));
            let is_it = path.file_name().is_some_and(|found| found == file);
            let is_it = is_it || path.extension().is_some_and(|end| end == file);
            path.ends_with(file) && file.contains('/') || is_new && (is_it || number() > Some(8))
        };
        killed_when(running, dir.path(), is_seen);
        let newest = complete(&folder(dir.path())).pop();
        assert!(newest >= before.last().copied(), "{file}: {before:?}, then {newest:?}");
        let outcome =
            resumed(dir.path(), "", job).limit(60).finish().expect(if newest.is_some() { 0 } else { 2 });
        if newest.is_some() {
            assert!(!outcome.stderr.contains("is not used"), "{file}: {outcome}");
            assert_eq!(answer(&outcome, name), due, "{file}: {outcome}");
        }
    }
}

/// Rank 0 has written its few bytes long before the others, and the manifest says nonetheless that theirs are there.
#[test]
fn a_manifest_stands_for_the_files_of_all() {
    let run = |options: &str, dir: &Path| {
        let run =
            Run::ftrun(&format!("-n 3 --every 1 --scheme rs:2+1 {options}")).arg(dir).arg(example("ragged"));
        run.arg("100").arg("3000000").arg("8000000")
    };
    let in_a_set = |path: &Path| path.parent().is_some_and(|set| set.to_string_lossy().contains("/epoch-"));
    for _ in 0..4 {
        let dir = tempdir().unwrap();
        let running = run("--pace 3 --spill-every 1 --spill", dir.path()).start();
        killed_when(running, dir.path(), |path| path.ends_with("manifest") && in_a_set(path));
        let outcome = run("--resume", dir.path()).finish().expect(0);
        assert_eq!(outcome.stdout.matches("all right").count(), 3, "{outcome}");
    }
}

/// Kills all of a job as soon as there is such a file.
fn killed_when(running: Running, dir: &Path, is_seen: impl Fn(&Path) -> bool) {
    while !files(dir).iter().any(|path| is_seen(path)) {
        rustix::process::test_kill_process(running.launcher()).expect("the job goes on");
        std::thread::yield_now();
    }
    for process in running.processes() {
        let _ = rustix::process::kill_process(process, Signal::KILL);
    }
    running.finish_killed();
}

/// All files in there; those that go meanwhile may be among them or not.
fn files(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return vec![] };
    let paths = entries.flatten().map(|entry| entry.path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// What `ftrun inspect --field` writes: the dictionary of the header, and the elements.
fn taken_out(dir: &Path, options: &str) -> (String, Vec<u8>) {
    let file = dir.join("taken.npy");
    let run = Run::ftrun("inspect").arg(dir).arg("--npy").arg(&file);
    options.split_whitespace().fold(run, Run::arg).finish().expect(0);
    let bytes = fs::read(&file).unwrap();
    fs::remove_file(file).unwrap();
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let end = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = String::from_utf8(bytes[10..end].to_vec()).unwrap();
    let [_, kind, shape] = header.split("': ").collect::<Vec<_>>()[1..] else { panic!("{header}") };
    assert_eq!(kind, "False, 'shape");
    let kind = header.split('\'').nth(3).unwrap();
    (format!("{kind} {}", shape.trim_end().trim_end_matches(", }")), bytes[end..].to_vec())
}

/// Three ranks have 0, 2 and 5 points; what a field is after a step is known.
#[test]
fn fields_are_taken_out_of_files() {
    let files = ["--spill ", "--scheme disk:"];
    // A replacement has the constant part from others, and writes it.
    let options = ["--every 2 --spill-every 2", "--every 1 --spill-every 30 --kill 2@step=9", "--every 1"];
    for (options, how) in options.into_iter().zip([files[0], files[0], files[1]]) {
        let dir = tempdir().unwrap();
        let run = Run::ftrun(&format!("-v -n 3 {options} {how}{}", dir.path().display()));
        let running = run.arg(example("fields")).arg("100000000").start();
        while fs::read_dir(dir.path()).unwrap().count() == 0 || complete(&folder(dir.path())).len() < 2 {
            std::thread::yield_now();
        }
        running.signal(Signal::KILL);
        running.finish_killed();

        let look = Run::ftrun("inspect --json").arg(dir.path()).finish().expect(0);
        let found: Value = serde_json::from_str(&look.stdout).unwrap();
        let whole = found["checkpoints"].as_array().unwrap().iter().find(|set| set["whole"] == true).unwrap();
        let step = whole["steps"].as_u64().unwrap();
        let field = |name: &str| {
            let fields = whole["fields"].as_array().unwrap();
            let field = fields.iter().find(|field| field["name"] == name);
            field.unwrap_or_else(|| panic!("{options}: no {name} in {whole}")).clone()
        };
        let points = field("cloud.points");
        assert_eq!((&points["part"], &points["spread"]), (&json!("variable"), &json!("distributed")));
        assert_eq!((&points["element"], &points["lengths"]), (&json!("f64"), &json!([7, 3])));
        assert_eq!(points["ranks"][2], json!({ "bytes": 8 + 5 * 24, "lengths": [5, 3] }));
        let ids = field("cloud.ids");
        assert_eq!((&ids["part"], &ids["bytes"]), (&json!("constant"), &json!(3 * 8 + 7 * 8)));
        assert_eq!(field("label")["type"], "String");

        let (kind, bytes) = taken_out(dir.path(), "--field cloud.points");
        let due = (0..7).flat_map(|id| [id as f64, step as f64, (id * step) as f64]);
        assert_eq!(kind, "<f8 (7, 3)", "{options}");
        assert_eq!(bytes, due.flat_map(f64::to_le_bytes).collect::<Vec<u8>>(), "{options}, step {step}");
        let own = due_of_rank_1(step);
        assert_eq!(taken_out(dir.path(), "--field cloud.points --rank 1"), ("<f8 (2, 3)".into(), own));
        let ids: Vec<u8> = (0..7u64).flat_map(u64::to_le_bytes).collect();
        assert_eq!(taken_out(dir.path(), "--field cloud.ids"), ("<u8 (7,)".into(), ids));
        let even = vec![1, 0, 1, 0, 1, 0, 1];
        assert_eq!(taken_out(dir.path(), "--field cloud.is_even"), ("|b1 (7,)".into(), even));
        assert_eq!(
            taken_out(dir.path(), "--field cloud.age"),
            ("<u8 ()".into(), step.to_le_bytes().to_vec())
        );
        let weights = [0.5f32, 1.5, 2.5].iter().flat_map(|weight| weight.to_le_bytes()).collect();
        assert_eq!(taken_out(dir.path(), "--field weights"), ("<f4 (3,)".into(), weights));
        let done = (1..=step.min(8) as u32).flat_map(u32::to_le_bytes).collect();
        let kind = format!("<u4 ({},)", step.min(8));
        assert_eq!(taken_out(dir.path(), "--field done --rank 2"), (kind, done));

        let refused = |options: &str, why: &str| {
            let file = dir.path().join("none.npy");
            let run = Run::ftrun("inspect").arg(dir.path()).arg("--npy").arg(&file);
            let outcome = options.split_whitespace().fold(run, Run::arg).finish().expect(2);
            assert!(outcome.stderr.contains(why) && outcome.stderr.lines().count() == 1, "{outcome}");
            assert!(!file.exists(), "{outcome}");
        };
        refused("--field done", "is private, another one on each of the 3 ranks: say which by --rank");
        refused("--field label", "is of type String, no array of numbers");
        refused("--field cloud", "has no field cloud; there are: weights, cloud.ids, cloud.points");
        refused("--field done --rank 3", "rank 3 has no field done in a checkpoint of 3 ranks");
        refused("--field done --rank 0 --checkpoint 0", "no checkpoint 0 in");
        let outcome = Run::ftrun("inspect --field done").arg(dir.path()).finish().expect(2);
        assert!(outcome.stderr.contains("--npy"), "{outcome}");
        damaged_fields_are_refused(dir.path(), whole["number"].as_u64().unwrap());
    }
}

/// Points 0 and 1.
fn due_of_rank_1(step: u64) -> Vec<u8> {
    [[0.0, step as f64, 0.0], [1.0, step as f64, step as f64]]
        .as_flattened()
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect()
}

/// Damage in what tells the fields is named, and the set is whole nonetheless; damage in the shard is found where it is read.
fn damaged_fields_are_refused(dir: &Path, number: u64) {
    let file = folder(dir).join(format!("epoch-{number}/rank-1"));
    let right = fs::read(&file).unwrap();
    let damage = |at: usize| {
        let mut bytes = right.clone();
        bytes[at] ^= 1;
        fs::write(&file, bytes).unwrap();
    };
    let refused = |why: &str| {
        let taken = dir.join("taken.npy");
        let run = Run::ftrun("inspect --field cloud.points").arg(dir).arg("--npy").arg(&taken);
        let outcome = run.arg("--checkpoint").arg(number.to_string()).finish().expect(2);
        let names_it = outcome.stderr.contains(&format!("epoch-{number}/rank-1 is damaged: "));
        assert!(names_it && outcome.stderr.contains(why), "{outcome}");
        let _ = fs::remove_file(taken);
    };
    damage(right.len() - 1);
    refused("its outline does not match");
    let look = Run::ftrun("inspect --all-bytes").arg(dir).finish().expect(0);
    assert!(look.stdout.contains(&format!("checkpoint {number}: whole")), "{look}");
    assert!(look.stdout.contains("its outline does not match"), "{look}");
    damage(70);
    refused("its bytes do not match their checksum");
    fs::write(&file, right).unwrap();
}
