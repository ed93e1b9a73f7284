//! The files of `disk:DIR`, changed in any way before a process that has lost its memory reads them: it gets a state that
//! was written, or an error. With checksums made right for arbitrary bytes it may get another state, and nothing worse.

#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use arbitrary::Arbitrary;
use ft_checkpoint::{Checkpointer, Protect, Restored, SavedSets, Scheme, ShardMeta};
use ft_comm::{Membership, World};
use ft_fuzz::{BUFFERS, within};
use libfuzzer_sys::fuzz_target;

/// Bytes of a file that say whose it is; length, checksum and kind follow.
const LABEL_BYTES: usize = 40;
/// Where they have the version of the format, and that of a file without an outline of the fields.
const VERSION: std::ops::Range<usize> = 8..12;
const PLAIN: u32 = 2;
/// Checkpoints that were taken; the files of the last two are there.
const EPOCHS: u64 = 3;

#[derive(Clone, Debug, Default, PartialEq, Protect)]
struct State {
    #[protect(constant)]
    name: String,
    step: u64,
    values: Vec<f32>,
    pairs: Vec<(u32, Option<String>)>,
}

impl State {
    fn after(step: u64) -> Self {
        let values = (0..8 * step).map(|at| at as f32).collect();
        Self { name: "constant".into(), step, values, pairs: vec![(7, None), (8, Some("eight".into()))] }
    }
}

#[derive(Arbitrary, Debug)]
struct Change<'a> {
    file: u8,
    how: How<'a>,
}

#[derive(Arbitrary, Debug)]
enum How<'a> {
    Flip {
        at: u16,
        by: u8,
    },
    Shorten {
        to: u16,
    },
    Append(&'a [u8]),
    Remove,
    /// It is a copy of another one.
    Copy {
        of: u8,
    },
    /// The bytes of a shard are these, and header and manifest agree with that.
    Forge(&'a [u8]),
}

impl Change<'_> {
    fn make(&self, files: &mut [(PathBuf, Vec<u8>)]) {
        let at = usize::from(self.file) % files.len();
        let other = match self.how {
            How::Copy { of } => files[usize::from(of) % files.len()].1.clone(),
            _ => vec![],
        };
        let bytes = &mut files[at].1;
        match self.how {
            How::Flip { at, by } if !bytes.is_empty() => {
                let at = usize::from(at) % bytes.len();
                bytes[at] ^= by;
            }
            How::Flip { .. } => {}
            How::Shorten { to } => bytes.truncate(to.into()),
            How::Append(more) => bytes.extend_from_slice(more),
            How::Remove => bytes.clear(),
            How::Copy { .. } => *bytes = other,
            How::Forge(payload) if bytes.len() >= LABEL_BYTES + ShardMeta::BYTES => forge(files, at, payload),
            How::Forge(_) => {}
        }
    }
}

/// A job of one rank, and the files of its checkpoints by their names.
struct Written {
    world: World,
    files: Vec<(PathBuf, Vec<u8>)>,
}

// The world is that of one rank: nobody else has a part in it, and one thread uses it.
thread_local! {
    static WRITTEN: OnceLock<Written> = const { OnceLock::new() };
}

fn write() -> Written {
    let world = World::init().expect("a job of one rank");
    let folder = tempfile::tempdir().expect("a folder");
    let scheme = Scheme::Disk { dir: folder.path().to_owned() };
    let mut checkpointer = Checkpointer::new(&world, scheme).expect("it fits");
    for step in 1..=EPOCHS {
        checkpointer.checkpoint(&world, &mut State::after(step)).expect("a checkpoint");
    }
    let mut files = vec![];
    let root = folder.path().join(world.job());
    let sets = fs::read_dir(&root).expect("it was written").map(|set| set.expect("it is there").file_name());
    let mut sets: Vec<_> = sets.collect();
    sets.sort();
    for set in sets {
        for name in ["manifest", "rank-0"] {
            let path = Path::new(&set).join(name);
            let bytes = fs::read(root.join(&path)).expect("it was written");
            files.push((path, bytes));
        }
    }
    assert_eq!(files.len(), 6, "a constant part and two epochs: {files:?}");
    Written { world, files }
}

/// The state that comes back from files that were changed so.
fn restored(written: &Written, changes: &[Change<'_>]) -> Option<(Restored, State)> {
    let Written { world, files } = written;
    let mut files = files.clone();
    let mut length = 0;
    changes.iter().for_each(|change| change.make(&mut files));
    let folder = tempfile::tempdir().expect("a folder");
    for (path, bytes) in files.iter().filter(|(_, bytes)| !bytes.is_empty()) {
        let path = folder.path().join(world.job()).join(path);
        fs::create_dir_all(path.parent().expect("it is in a set")).expect("a folder");
        fs::write(path, bytes).expect("written");
        length += bytes.len();
    }
    within(BUFFERS + 100 * length, || look(&folder.path().join(world.job())));
    let mut state = State::default();
    let mut checkpointer =
        Checkpointer::new(world, Scheme::Disk { dir: folder.path().to_owned() }).expect("it fits");
    let repair =
        Membership { generation: 1, failed: vec![0], reports: vec![0], marked: true, ..world.membership() };
    let restored = within(BUFFERS + 100 * length, || checkpointer.restore(world, &repair, Some(&mut state)));
    restored.ok().map(|restored| (restored, state))
}

/// Takes each field out of the newest set that has a manifest; what cannot be taken out is an error.
fn look(folder: &Path) {
    let Ok(sets) = SavedSets::find(folder) else { return };
    let number = sets.complete().ok().and_then(|numbers| numbers.first().copied()).unwrap_or(0);
    for field in sets.fields(number).unwrap_or_default() {
        if let Ok(array) = sets.field(number, &field.name, Some(0)) {
            array.pieces().for_each(drop);
        }
    }
}

/// Puts `payload` into the shard of the set that file `at` belongs to, and makes the manifest fit.
fn forge(files: &mut [(PathBuf, Vec<u8>)], at: usize, payload: &[u8]) {
    let (manifest, shard) = (at & !1, at | 1);
    let label = |bytes: &[u8]| {
        let mut label = bytes.get(..LABEL_BYTES)?.to_vec();
        label[VERSION].copy_from_slice(&PLAIN.to_le_bytes());
        Some(label)
    };
    let (Some(own), Some(whose)) = (label(&files[shard].1), label(&files[manifest].1)) else { return };
    let kind = files[shard].1.get(LABEL_BYTES + 16..LABEL_BYTES + 24).and_then(|kind| kind.try_into().ok());
    let meta = ShardMeta { kind: kind.map_or(0, u64::from_le_bytes), ..ShardMeta::of(payload) };
    let entry = meta.to_bytes();
    files[shard].1 = [&own[..], &entry, payload].concat();
    files[manifest].1 = [&whose[..], &ShardMeta::of(&entry).to_bytes(), &entry].concat();
}

fuzz_target!(|changes: Vec<Change<'_>>| {
    WRITTEN.with(|written| {
        let written = written.get_or_init(write);
        let Some((restored, state)) = restored(written, &changes) else { return };
        if changes.iter().any(|change| matches!(change.how, How::Forge(_))) {
            return;
        }
        match restored {
            Restored::Epoch(epoch) => assert_eq!(state, State::after(epoch.into())),
            Restored::Nothing => assert_eq!(state, State::default()),
        }
    });
});
