//! Files that are not what was written, sets that are not whole, and what a death between any two operations leaves.

use std::fs;
use std::path::Path;

use ft_comm::{Membership, World};
use tempfile::{TempDir, tempdir};

use super::*;
use crate::scheme::Scheme;
use crate::store::Legend;
use crate::{Checkpointer, Restored};

const RANKS: usize = 3;
/// The "epoch" of the constant part, for its contents.
const CONSTANT: u32 = 0;

/// What a file has of some bytes, with what is told of them or nothing.
fn with_legend<'a>(bytes: &'a [u8], legend: &'a Legend) -> Contents<'a> {
    Contents { meta: ShardMeta::of(bytes), bytes, legend }
}

fn outlined(outline: &[u8]) -> Legend {
    Legend { outline: outline.to_vec(), seams: vec![] }
}

/// The shard of `rank` at `epoch`; the epoch 0 is the constant part. Ragged, and empty for rank 1 at epoch 2.
fn shard(epoch: u32, rank: usize) -> Vec<u8> {
    let len = 1000 * rank + 100 * epoch as usize;
    let len = if (epoch, rank) == (2, 1) { 0 } else { len };
    (0..len).map(|at| (at * 31 + epoch as usize * 7 + rank) as u8).collect()
}

fn metas(epoch: u32) -> Vec<[ShardMeta; 2]> {
    (0..RANKS).map(|rank| [0, epoch].map(|part| ShardMeta::of(&shard(part, rank)))).collect()
}

fn open(dir: &TempDir) -> Vec<Disk> {
    (0..RANKS).map(|rank| Disk::open(dir.path(), "job", rank).expect("opens")).collect()
}

fn stage(disk: &Disk, epoch: u32) {
    let write = |part, bytes: Vec<u8>| {
        disk.stage(part, epoch, with_legend(&bytes, &Legend::default())).expect("staged");
    };
    if epoch == 1 {
        write(StatePart::Constant, shard(CONSTANT, disk.rank));
    }
    write(StatePart::Variable, shard(epoch, disk.rank));
}

fn checkpoint(disks: &[Disk], epoch: u32) {
    disks.iter().for_each(|disk| stage(disk, epoch));
    disks.iter().for_each(|disk| disk.complete(epoch, &metas(epoch), epoch == 1).expect("complete"));
}

/// What a fresh process of each rank reads as `epoch`.
fn read_back(disks: &[Disk], epoch: u32) -> Result<(), DiskError> {
    disks.iter().try_for_each(|disk| {
        let mut store = Store::new(0);
        disk.read_back(epoch, &mut store)?;
        assert_eq!(store.constant().shard(), shard(CONSTANT, disk.rank));
        assert_eq!(store.variable(epoch).shard(), shard(epoch, disk.rank));
        assert_eq!((store.variable(epoch).epoch(), store.variable(epoch).verify()), (epoch, Ok(())));
        Ok(())
    })
}

/// The newest set that all ranks can read.
fn newest(disks: &[Disk]) -> u32 {
    let candidates = disks[0].candidates().expect("listed");
    candidates.into_iter().find(|epoch| read_back(disks, *epoch).is_ok()).unwrap_or(0)
}

fn names(folder: &Path) -> Vec<String> {
    let entries =
        fs::read_dir(folder).expect("a directory").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn path(dir: &TempDir, name: &str) -> std::path::PathBuf {
    dir.path().join("job").join(name)
}

#[test]
fn what_was_written_is_read() {
    let dir = tempdir().unwrap();
    let disks = open(&dir);
    checkpoint(&disks, 1);
    read_back(&disks, 1).expect("whole");
    assert_eq!(names(&path(&dir, "epoch-1")), ["manifest", "rank-0", "rank-1", "rank-2"]);
    assert_eq!(names(&path(&dir, "constant-1")), ["manifest", "rank-0", "rank-1", "rank-2"]);
    checkpoint(&disks, 2);
    read_back(&disks, 2).expect("whole, the empty shard too");
}

#[test]
fn every_flipped_byte_is_noticed() {
    let dir = tempdir().unwrap();
    let disks = open(&dir);
    checkpoint(&disks, 1);
    for name in ["epoch-1/rank-0", "epoch-1/manifest", "constant-1/rank-1", "constant-1/manifest"] {
        let file = path(&dir, name);
        let right = fs::read(&file).unwrap();
        for at in 0..right.len() {
            let mut wrong = right.clone();
            wrong[at] ^= 1 << (at % 8);
            fs::write(&file, wrong).unwrap();
            let error = read_back(&disks, 1).expect_err("noticed").to_string();
            assert!(error.contains(name) && error.contains("damaged"), "byte {at}: {error}");
        }
        fs::write(&file, right).unwrap();
    }
    read_back(&disks, 1).expect("whole again");
}

#[test]
fn shorter_longer_and_missing_files_are_noticed() {
    let dir = tempdir().unwrap();
    let disks = open(&dir);
    checkpoint(&disks, 1);
    let file = path(&dir, "epoch-1/rank-2");
    let right = fs::read(&file).unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        read_back(&disks, 1).expect_err("noticed").to_string()
    };
    assert!(refused(&right[..right.len() - 1]).ends_with("rank-2 is damaged: 2099 bytes, 2100 were written"));
    assert!(refused(&[&right[..], &[0]].concat()).ends_with("2101 bytes, 2100 were written"));
    assert!(refused(&right[..63]).ends_with("63 bytes, the header alone has 64"));
    assert!(refused(&[]).ends_with("0 bytes, the header alone has 64"));
    fs::remove_file(&file).unwrap();
    let error = read_back(&disks, 1).expect_err("missing").to_string();
    assert!(error.starts_with("cannot read /") && error.contains("rank-2: No such file"), "{error}");
}

/// Damage in an outline is damage to nothing else.
#[test]
fn an_outline_is_read_as_it_was_written_or_refused() {
    let dir = tempdir().unwrap();
    let disks = open(&dir);
    checkpoint(&disks, 1);
    let (sets, set) = (&disks[2].sets, Set::Epoch(1));
    assert_eq!(sets.read_outline(set, 2), Ok(None), "files without one are as they always were");
    let (file, bytes) = (path(&dir, "epoch-1/rank-2"), shard(1, 2));
    let plain = fs::read(&file).unwrap().len();
    sets.write_shard(set, None, 2, with_legend(&bytes, &outlined(b"the fields"))).unwrap();
    read_back(&disks, 1).expect("the manifest names the same bytes");
    assert_eq!(sets.read_outline(set, 2), Ok(Some(b"the fields".to_vec())));

    let right = fs::read(&file).unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        read_back(&disks, 1).expect("the bytes are whole");
        assert!(sets.is_there(set, 2, ShardMeta::of(&shard(1, 2))));
        let error = sets.read_outline(set, 2).expect_err("noticed").to_string();
        assert!(error.contains("epoch-1/rank-2 is damaged: its outline does not match"), "{error}");
    };
    for at in plain..right.len() {
        let mut wrong = right.clone();
        wrong[at] ^= 1 << (at % 8);
        refused(&wrong);
        if at > plain + 16 {
            refused(&right[..at]);
        }
    }
    refused(&[&right[..], &[0]].concat());
    fs::write(&file, &right[..plain - 1]).unwrap();
    read_back(&disks, 1).expect_err("a byte of the shard is missing");
    sets.read_outline(set, 2).expect_err("likewise");
}

/// Doubles that are kept apart in memory are among the other bytes for who reads the file, or it is refused.
#[test]
fn what_was_taken_apart_is_read_joined() {
    let dir = tempdir().unwrap();
    let disks = open(&dir);
    let (sets, set) = (&disks[2].sets, Set::Epoch(1));
    let seams = [3_u64, 8, 2, 16].map(u64::to_le_bytes).concat();
    let shard = b"abcde\0\0\0doubles1doubles2doubles3";
    let meta = ShardMeta::of(shard);
    let (file, legend) = (path(&dir, "epoch-1/rank-2"), Legend { outline: b"the fields".to_vec(), seams });
    sets.write_shard(set, None, 2, with_legend(shard, &legend)).unwrap();
    let read = || {
        let mut bytes = vec![];
        sets.read_shard(set, 2, meta, &mut bytes).map(|()| bytes)
    };
    assert_eq!(read(), Ok(b"abcdoubles1dedoubles2doubles3".to_vec()));
    assert_eq!(sets.read_outline(set, 2), Ok(Some(b"the fields".to_vec())));
    let right = fs::read(&file).unwrap();
    for at in 0..right.len() {
        let mut wrong = right.clone();
        wrong[at] ^= 1 << (at % 8);
        fs::write(&file, &wrong).unwrap();
        read().expect_err("altered");
        fs::write(&file, &right[..at]).unwrap();
        read().expect_err("cut off");
    }
    // Seams of another shard, with a checksum that is right.
    let legend = Legend { seams: legend.seams[..24].to_vec(), ..legend };
    sets.write_shard(set, None, 2, with_legend(shard, &legend)).unwrap();
    let error = read().expect_err("other seams").to_string();
    assert!(error.ends_with("its doubles do not belong where it says"), "{error}");
    // Fields may be told or not.
    let legend = Legend { outline: vec![], seams: [5_u64, 24].map(u64::to_le_bytes).concat() };
    sets.write_shard(set, None, 2, with_legend(shard, &legend)).unwrap();
    assert_eq!(read(), Ok(b"abcdedoubles1doubles2doubles3".to_vec()));
    assert_eq!(sets.read_outline(set, 2), Ok(None));
}

/// Makes a file that reads as zeros without an end that anybody reaches.
fn lengthen(file: &Path) {
    fs::File::options().write(true).open(file).unwrap().set_len(8 << 40).unwrap();
}

fn make_fifo(path: &Path) {
    let _ = fs::remove_file(path);
    rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
}

#[test]
fn fifos_and_devices_are_refused_by_name_without_waiting() {
    let dir = tempdir().unwrap();
    let disks = open(&dir);
    checkpoint(&disks, 1);
    checkpoint(&disks, 2);
    for name in ["rank-0", "rank-2", "manifest"] {
        let name = format!("epoch-2/{name}");
        let file = path(&dir, &name);
        let right = fs::read(&file).unwrap();
        make_fifo(&file);
        let error = read_back(&disks, 2).expect_err("a FIFO").to_string();
        assert!(
            error.contains(&name) && error.ends_with("it is a pipe, and a regular file is expected"),
            "{error}"
        );
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        let error = read_back(&disks, 2).expect_err("a device").to_string();
        assert!(
            error.contains(&name) && error.ends_with("it is a device, and a regular file is expected"),
            "{error}"
        );
        assert_eq!(newest(&disks), 1, "the set before is whole");
        fs::remove_file(&file).unwrap();
        fs::write(&file, right).unwrap();
    }
    read_back(&disks, 2).expect("whole again");
}

/// A file and its header can agree on a length that was never written.
#[test]
fn lengths_are_compared_before_memory_is_set_aside() {
    let dir = tempdir().unwrap();
    let disks = open(&dir);
    checkpoint(&disks, 1);
    let (sets, set, file) = (&disks[2].sets, Set::Epoch(1), path(&dir, "epoch-1/rank-2"));
    let rewrite =
        |legend: &Legend| sets.write_shard(set, None, 2, with_legend(&shard(1, 2), legend)).unwrap();
    let refused = |why: &str| {
        let error = read_back(&disks, 1).expect_err(why).to_string();
        assert!(error.ends_with(why), "{error}");
    };
    // The file alone, in each version of the format.
    let seamed = Legend { seams: [2100_u64, 0].map(u64::to_le_bytes).concat(), ..outlined(b"fields") };
    for legend in [Legend::default(), outlined(b"fields"), seamed] {
        rewrite(&legend);
        lengthen(&file);
        refused("8796093022144 bytes, 2100 were written");
        sets.read_outline(set, 2).expect_err("too long for an outline");
    }
    // What would be a long outline, if anything said so.
    rewrite(&outlined(b"fields"));
    fs::File::options().write(true).open(&file).unwrap().set_len(15 << 20).unwrap();
    let error = sets.read_outline(set, 2).expect_err("zeros are no lengths").to_string();
    assert!(error.ends_with("its outline does not match its length and checksum"), "{error}");
    // Header and file agree; the manifest does not.
    rewrite(&Legend::default());
    lengthen(&file);
    let claim = |file: &Path, length: u64| {
        let opened = fs::File::options().write(true).open(file).unwrap();
        opened.set_len(length + 64).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&opened, &length.to_le_bytes(), 40).unwrap();
    };
    claim(&file, (8 << 40) - 64);
    refused("the manifest names another length or checksum");
    rewrite(&Legend::default());
    read_back(&disks, 1).expect("whole again");
    let manifest = path(&dir, "epoch-1/manifest");
    claim(&manifest, 24 << 21);
    refused("it has 2097152 ranks, and no job has more than 1048576");
    claim(&manifest, 0);
    refused("it names no rank");
}

#[test]
fn what_is_no_set_is_in_nobodys_way() {
    let dir = tempdir().unwrap();
    let disks = open(&dir);
    (1..=3).for_each(|epoch| checkpoint(&disks, epoch));
    make_fifo(&path(&dir, "epoch-7"));
    fs::create_dir_all(path(&dir, "epoch-8/manifest/deep")).unwrap();
    std::os::unix::fs::symlink(dir.path(), path(&dir, "epoch-9")).unwrap();
    fs::write(dir.path().join("manifest"), "of another set").unwrap();
    for other in ["epoch-+3", "epoch-003", "epoch-4294967295", "epoch-16777216", "epoch-x"] {
        fs::create_dir(path(&dir, other)).unwrap();
        fs::write(path(&dir, other).join("manifest"), "").unwrap();
    }
    assert_eq!(newest(&disks), 3);
    disks[0].give_up_after(3).expect("everything after it goes");
    assert!(
        ["epoch-7", "epoch-8", "epoch-9"].iter().all(|name| path(&dir, name).symlink_metadata().is_err())
    );
    assert!(dir.path().join("manifest").exists(), "links are not followed");
    checkpoint(&disks, 4);
    assert_eq!(newest(&disks), 4);
    disks[0].remove().expect("with all that is in it");
}

/// Old shards are overwritten in place, but not what only lies where one was, nor a file that has
/// another name too.
#[test]
fn nothing_is_written_through_a_link_or_a_fifo() {
    let dir = tempdir().unwrap();
    let disks = open(&dir);
    checkpoint(&disks, 1);
    checkpoint(&disks, 2);
    let (foreign, copy) = (dir.path().join("foreign"), dir.path().join("copy"));
    fs::write(&foreign, "untouched").unwrap();
    fs::hard_link(path(&dir, "epoch-1/rank-2"), &copy).unwrap();
    let right = fs::read(&copy).unwrap();
    make_fifo(&path(&dir, "epoch-1/rank-0"));
    fs::remove_file(path(&dir, "epoch-1/rank-1")).unwrap();
    std::os::unix::fs::symlink(&foreign, path(&dir, "epoch-1/rank-1")).unwrap();
    // The name under which a shard of this process is written.
    fs::create_dir_all(path(&dir, "epoch-3")).unwrap();
    make_fifo(&path(&dir, &format!("epoch-3/rank-0.{}.tmp", std::process::id())));
    checkpoint(&disks, 3);
    read_back(&disks, 3).expect("whole");
    assert_eq!((fs::read(&foreign).unwrap(), fs::read(&copy).unwrap()), (b"untouched".to_vec(), right));
}

#[test]
fn a_command_that_cannot_be_read_is_named() {
    let dir = tempdir().unwrap();
    let disk = Disk::open(dir.path(), "job", 0).unwrap();
    let command = || disk.sets.command().map_err(|error| error.to_string());
    assert_eq!(command(), Ok(None));
    make_fifo(&path(&dir, "command.tmp"));
    disk.write_command("cg --poisson 9").unwrap();
    assert_eq!(command(), Ok(Some("cg --poisson 9".into())));
    let file = path(&dir, "command");
    let refused = |why: &str| {
        let error = command().expect_err(why);
        assert!(
            error.starts_with(&format!("cannot read {}: ", file.display())) && error.ends_with(why),
            "{error}"
        );
    };
    lengthen(&file);
    refused("it has more than 16777216 bytes");
    make_fifo(&file);
    refused("it is a pipe, and a regular file is expected");
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
    refused("it is a device, and a regular file is expected");
}

#[test]
fn files_of_others_are_refused() {
    let dir = tempdir().unwrap();
    let disks = open(&dir);
    checkpoint(&disks, 1);
    checkpoint(&disks, 2);
    let elsewhere = Disk::open(dir.path(), "other", 0).unwrap();
    stage(&elsewhere, 2);
    let own = path(&dir, "epoch-2/rank-0");
    let right = fs::read(&own).unwrap();
    let others = [
        "epoch-1/rank-0",
        "constant-1/rank-0",
        "epoch-2/rank-1",
        "epoch-2/manifest",
        "../other/epoch-2/rank-0",
    ];
    for other in others {
        fs::copy(path(&dir, other), &own).unwrap();
        let error = read_back(&disks, 2).expect_err(other).to_string();
        assert!(error.ends_with("its header belongs to another file, job or format"), "{error}");
    }
    // The right name on the bytes of another attempt: only the manifest can tell.
    disks[0]
        .sets
        .write_shard(Set::Epoch(2), None, 0, with_legend(b"something else", &outlined(b"x")))
        .unwrap();
    let error = read_back(&disks, 2).expect_err("another attempt").to_string();
    assert!(error.ends_with("the manifest names another length or checksum"), "{error}");
    fs::write(&own, right).unwrap();
    read_back(&disks, 2).expect("whole again");
    let more = Disk::open(dir.path(), "job", RANKS).unwrap();
    let error = more.read_back(2, &mut Store::new(0)).expect_err("no such rank").to_string();
    assert!(error.ends_with("manifest is damaged: 3 ranks, there is a rank 3"), "{error}");
}

/// Whoever dies, and whenever: what somebody has committed is there, and so is what survivors would choose that have
/// not heard of it.
#[test]
fn at_every_moment_the_sets_that_may_be_chosen_are_whole() {
    let dir = tempdir().unwrap();
    let disks = open(&dir);
    for epoch in 1..=5 {
        for disk in &disks {
            stage(disk, epoch);
            // Nobody has voted for this epoch, so all have committed the one before.
            assert_eq!(newest(&disks), epoch - 1, "rank {} has staged {epoch}", disk.rank);
        }
        // The others must be told after rank 0 is done; before it is, the set does not count.
        for disk in disks[1..].iter().chain(&disks[..1]) {
            assert_eq!(newest(&disks), epoch - 1);
            disk.complete(epoch, &metas(epoch), epoch == 1).unwrap();
        }
        // Rank 0 may be the only one to know; if it dies, the others choose the one before.
        assert_eq!(newest(&disks), epoch);
        if epoch > 1 {
            read_back(&disks, epoch - 1).expect("the one before is whole");
        }
    }
    assert_eq!(names(&path(&dir, "")), ["constant-1", "epoch-4", "epoch-5"], "two sets are kept");
    assert_eq!(names(&path(&dir, "epoch-4")), ["manifest", "rank-0", "rank-1", "rank-2"]);
}

#[test]
fn a_set_that_is_given_up_is_gone_before_the_next_attempt() {
    let dir = tempdir().unwrap();
    let disks = open(&dir);
    (1..=3).for_each(|epoch| checkpoint(&disks, epoch));
    disks.iter().for_each(|disk| disk.give_up_after(2).unwrap());
    assert_eq!(names(&path(&dir, "")), ["constant-1", "epoch-2"]);
    assert_eq!(newest(&disks), 2);
    checkpoint(&disks, 3);
    assert_eq!(newest(&disks), 3);
    // One rank alone has staged the next.
    stage(&disks[1], 4);
    disks.iter().for_each(|disk| disk.give_up_after(3).unwrap());
    assert_eq!((newest(&disks), path(&dir, "epoch-4").exists()), (3, false));
    disks.iter().for_each(|disk| disk.give_up_after(0).unwrap());
    assert_eq!(names(&path(&dir, "")), [""; 0], "the constant part begins anew, too");
    checkpoint(&disks, 1);
    disks.iter().for_each(|disk| disk.remove().unwrap());
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn a_slot_that_is_whole_in_memory_is_not_read() {
    let dir = tempdir().unwrap();
    let disks = open(&dir);
    checkpoint(&disks, 1);
    let mut store = Store::new(0);
    disks[2].read_back(1, &mut store).unwrap();
    fs::remove_file(path(&dir, "epoch-1/rank-2")).unwrap();
    disks[2].read_back(1, &mut store).expect("it is here");
    store.variable_mut(1).shard_mut()[5] ^= 1;
    disks[2].read_back(1, &mut store).expect_err("now it has to be read");
}

#[test]
fn a_directory_that_cannot_be_used_is_named() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let refused = |name: &str| {
        let error = Disk::open(&dir.path().join(name), "job", 0).expect_err(name).to_string();
        assert!(
            error.starts_with(&format!("cannot keep checkpoints in {}", dir.path().display())),
            "{error}"
        );
        error
    };
    assert!(refused("file").contains("exists"));
    assert!(refused("file/below").contains("Not a directory"));
    assert!(refused("missing/below").contains("No such file or directory"));
    Disk::open(&dir.path().join("missing"), "job", 0).expect("one level is made");
}

#[test]
fn a_file_that_cannot_be_written_is_named_with_its_bytes() {
    let dir = tempdir().unwrap();
    let disks = open(&dir);
    checkpoint(&disks, 1);
    fs::create_dir_all(path(&dir, "epoch-2/rank-2/full")).unwrap();
    let bytes = shard(2, 2);
    let error = disks[2]
        .stage(StatePart::Variable, 2, with_legend(&bytes, &Legend::default()))
        .expect_err("a directory is there");
    let text = error.to_string();
    let file = path(&dir, "epoch-2/rank-2");
    let expected = format!("cannot write 2200 bytes to {}: ", file.display());
    assert!(text.starts_with(&expected) && text.contains("directory"), "{text}");
    assert_eq!(newest(&disks), 1);
}

/// Epochs 1 and 3 begin anew: whatever may be chosen has its own constant part, and no other is kept.
#[test]
fn half_a_file_takes_no_room() {
    let dir = tempdir().unwrap();
    let disk = &open(&dir)[1];
    // A file cannot take the name of a folder.
    let folder = dir.path().join("job/epoch-1");
    fs::create_dir_all(folder.join("rank-1")).unwrap();
    let bytes = shard(1, 1);
    disk.stage(StatePart::Variable, 1, with_legend(&bytes, &Legend::default())).unwrap_err();
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1, "that folder alone");
}

#[test]
fn a_constant_part_stays_as_long_as_epochs_that_need_it() {
    let dir = tempdir().unwrap();
    let disk = Disk::open(dir.path(), "job", 0).unwrap();
    let write = |part, epoch: u32, bytes: &[u8]| {
        disk.stage(part, epoch, with_legend(bytes, &Legend::default())).expect("staged");
    };
    let constant_of = |epoch| {
        let mut store = Store::new(0);
        disk.read_back(epoch, &mut store).map(|()| store.constant().shard().to_vec())
    };
    let firsts = [1, 1, 3, 3, 3];
    for (epoch, first) in (1..).zip(firsts) {
        let (constant, variable) = (vec![first as u8; 40], vec![epoch as u8; 30]);
        if epoch == first {
            write(StatePart::Constant, epoch, &constant);
        }
        write(StatePart::Variable, epoch, &variable);
        let before = (epoch > 1).then(|| epoch - 1);
        let is_of_before = |epoch: u32| {
            assert_eq!(constant_of(epoch), Ok(vec![firsts[epoch as usize - 1] as u8; 40]), "{epoch}");
        };
        before.into_iter().for_each(is_of_before);
        let metas = [[ShardMeta::of(&constant), ShardMeta::of(&variable)]];
        disk.complete(epoch, &metas, epoch == first).unwrap();
        before.into_iter().for_each(is_of_before);
        assert_eq!(constant_of(epoch), Ok(constant));
    }
    assert_eq!(names(&path(&dir, "")), ["constant-3", "epoch-4", "epoch-5"]);
    write(StatePart::Constant, 6, b"given up");
    disk.give_up_after(5).unwrap();
    assert_eq!(names(&path(&dir, "")), ["constant-3", "epoch-4", "epoch-5"]);
}

/// A job of one rank, with checkpoints 1 to 3 of two numbers, of which one is constant.
fn alone(dir: &TempDir) -> (World, Scheme) {
    let world = World::init().expect("a job of one rank");
    let scheme = Scheme::Disk { dir: dir.path().to_owned() };
    let mut checkpointer = Checkpointer::new(&world, scheme.clone()).expect("fits");
    for number in 1..=3 {
        checkpointer
            .checkpoint(&world, &mut Numbers { constant: 7, variable: number })
            .expect("a checkpoint");
    }
    (world, scheme)
}

#[derive(Debug, Default, PartialEq, crate::Protect)]
struct Numbers {
    #[protect(constant)]
    constant: u64,
    variable: u64,
}

/// What the process that replaces the only one makes of the disk.
fn replaced(
    world: &World,
    scheme: &Scheme,
    marked: bool,
) -> Result<(Restored, Numbers), crate::CheckpointError> {
    let mut state = Numbers::default();
    let mut checkpointer = Checkpointer::new(world, scheme.clone())?;
    let repair =
        Membership { generation: 1, failed: vec![0], reports: vec![0], marked, ..world.membership() };
    let restored = checkpointer.restore(world, &repair, Some(&mut state))?;
    Ok((restored, state))
}

#[test]
fn when_nobody_is_left_the_newest_whole_set_decides() {
    let dir = tempdir().unwrap();
    let (world, scheme) = alone(&dir);
    let root = dir.path().join(world.job());
    let state = |variable| Numbers { constant: 7, variable };
    assert_eq!(replaced(&world, &scheme, true), Ok((Restored::Epoch(3), state(3))));
    // Torn: what is left of epoch 3 has no manifest.
    fs::create_dir(root.join("epoch-4")).unwrap();
    fs::copy(root.join("epoch-3/rank-0"), root.join("epoch-4/rank-0")).unwrap();
    assert_eq!(replaced(&world, &scheme, true), Ok((Restored::Epoch(3), state(3))));
    assert!(!root.join("epoch-4").exists());
    // Damaged: the one before is taken.
    let file = root.join("epoch-3/rank-0");
    let mut bytes = fs::read(&file).unwrap();
    bytes[64] ^= 1;
    fs::write(&file, bytes).unwrap();
    assert_eq!(replaced(&world, &scheme, true), Ok((Restored::Epoch(2), state(2))));
    assert!(!file.exists(), "given up");
}

#[test]
fn sets_of_which_none_is_whole_are_no_start_from_init() {
    let dir = tempdir().unwrap();
    let (world, scheme) = alone(&dir);
    let root = dir.path().join(world.job());
    fs::remove_file(root.join("constant-1/rank-0")).unwrap();
    let error = replaced(&world, &scheme, true).expect_err("lost").to_string();
    assert_eq!(error, format!("none of the 2 checkpoints in {} is whole", root.display()));
    fs::remove_dir_all(&root).unwrap();
    assert_eq!(replaced(&world, &scheme, true), Ok((Restored::Nothing, Numbers::default())));
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for name in names(from) {
        let (from, to) = (from.join(&name), to.join(&name));
        if from.is_dir() { copy(&from, &to) } else { _ = fs::copy(from, to).unwrap() }
    }
}

fn is_whole(sets: &SavedSets, number: u32) -> bool {
    (0..RANKS).all(|rank| sets.read(number, rank).is_ok())
}

#[test]
fn renamed_moved_and_linked_folder_is_read_as_before() {
    let dir = tempdir().unwrap();
    let disks = open(&dir);
    (1..=2).for_each(|epoch| checkpoint(&disks, epoch));
    let elsewhere = tempdir().unwrap();
    let (renamed, moved) = (dir.path().join("run-A"), elsewhere.path().join("x"));
    fs::rename(dir.path().join("job"), &renamed).unwrap();
    assert!(is_whole(&SavedSets::find(dir.path()).unwrap(), 2));
    fs::rename(&renamed, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &renamed).unwrap();
    for there in [&moved, &renamed, &dir.path().to_owned()] {
        let sets = SavedSets::find(there).unwrap();
        assert!(is_whole(&sets, 2) && is_whole(&sets, 1));
        assert!(sets.inspect(true).unwrap().iter().all(crate::inspect::SavedSet::is_whole));
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the time of a file is not that of the library")]
fn copy_beside_a_whole_folder_is_used_only_if_it_is_farther() {
    let dir = tempdir().unwrap();
    let disks = open(&dir);
    checkpoint(&disks, 1);
    let (job, backup) = (dir.path().join("job"), dir.path().join("backup"));
    let found = || SavedSets::find(dir.path()).unwrap().folder().file_name().unwrap().to_owned();
    // A copy is newer than what it was made of.
    copy(&job, &backup);
    assert_eq!(found(), "job", "of two that are equal the one that is no copy");
    checkpoint(&disks, 2);
    fs::write(backup.join("epoch-1/later"), "").unwrap();
    fs::File::open(backup.join("epoch-1/manifest"))
        .unwrap()
        .set_modified(std::time::SystemTime::now())
        .unwrap();
    assert_eq!(found(), "job");
    fs::remove_dir_all(job.join("epoch-2")).unwrap();
    fs::remove_dir_all(&backup).unwrap();
    checkpoint(&disks, 2);
    copy(&job, &backup);
    fs::remove_dir_all(job.join("epoch-2")).unwrap();
    assert_eq!(found(), "backup");
    // Half a copy, and one of which a file is damaged.
    fs::remove_file(backup.join("epoch-2/rank-1")).unwrap();
    fs::remove_dir_all(backup.join("constant-1")).unwrap();
    assert_eq!(found(), "job");
}

#[test]
fn files_and_sets_of_another_job_are_noticed_without_the_name_of_the_folder() {
    let dir = tempdir().unwrap();
    let disks = open(&dir);
    checkpoint(&disks, 1);
    let others: Vec<_> = (0..RANKS).map(|rank| Disk::open(dir.path(), "other", rank).unwrap()).collect();
    checkpoint(&others, 1);
    let sets = || SavedSets::find(&dir.path().join("job")).unwrap();
    let file = |job: &str, name: &str| dir.path().join(job).join(name);
    assert!(is_whole(&sets(), 1));
    fs::copy(file("other", "epoch-1/rank-1"), file("job", "epoch-1/rank-1")).unwrap();
    let error = sets().read(1, 1).unwrap_err().to_string();
    assert!(error.ends_with("epoch-1/rank-1 is damaged: its header belongs to another file, job or format"));
    // A whole set of it, too.
    for name in names(&file("job", "epoch-1")) {
        fs::copy(file("other", "epoch-1").join(&name), file("job", "epoch-1").join(&name)).unwrap();
    }
    let error = sets().read(1, 1).unwrap_err().to_string();
    assert!(
        error.ends_with("constant-1/manifest is damaged: it is of another job than checkpoint 1"),
        "{error}"
    );
}

#[test]
fn the_end_needs_no_certain_rank() {
    for last in 0..RANKS {
        let dir = tempdir().unwrap();
        let disks = open(&dir);
        checkpoint(&disks, 1);
        disks[last].remove().unwrap();
        assert!(!dir.path().join("job").exists(), "rank {last} is the only one that is left");
    }
}

#[test]
fn all_ranks_remove_the_files_at_one_time() {
    for _ in 0..20 {
        let dir = tempdir().unwrap();
        let disks = open(&dir);
        (1..=4).for_each(|epoch| checkpoint(&disks, epoch));
        std::thread::scope(|scope| {
            let ranks: Vec<_> = disks.iter().map(|disk| scope.spawn(move || disk.remove())).collect();
            ranks.into_iter().for_each(|rank| rank.join().unwrap().unwrap());
        });
        assert!(!dir.path().join("job").exists());
    }
}
