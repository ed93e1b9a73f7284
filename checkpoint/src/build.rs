//! Which build of the program this is. Shards are the memory of a program, without names or tags; only the build that
//! wrote them knows what they mean.
//!
//! What the linker wrote says it best: the build ID, a hash of all that it linked, in the first pages of the file, so
//! that it is read in some 50 microseconds. With it counts the length of the file, which changes if somebody adds
//! something or strips it. A file without a build ID is read whole, at about 3 GB/s: the compilers of the common
//! distributions ask for one, so this is rare. Nothing else is asked, neither date nor place of the file: hosts may
//! have copies of their own. A process keeps its file, also when another one has taken its name.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::sync::OnceLock;

use ft_comm::Rank;
use object::Endianness;
use object::elf::{ELF_NOTE_GNU, FileHeader64, NT_GNU_BUILD_ID};
use object::read::ReadCache;
use object::read::elf::{FileHeader as _, ProgramHeader as _};

use crate::crc::{Digest, crc64_nvme};
use crate::error::CheckpointError;
use crate::region::{Protect, fingerprint};
use crate::store::ShardMeta;

/// The file that this process runs.
const SELF: &str = "/proc/self/exe";

/// The number of the build of the program that this process runs: of the linker's build ID and the length of the file, or of all its bytes.
/// Copies of one file have the same; 0 if it cannot be read.
pub fn build_number() -> u32 {
    // Read once; the first checkpoint asks, and a replacement.
    static NUMBER: OnceLock<u32> = OnceLock::new();
    *NUMBER.get_or_init(|| File::open(SELF).and_then(|file| identity_of(&file)).unwrap_or(0))
}

fn identity_of(file: &File) -> io::Result<u32> {
    let crc = match build_id(file) {
        Some(mut bytes) => {
            bytes.extend(file.metadata()?.len().to_le_bytes());
            crc64_nvme(&bytes)
        }
        None => content(file)?,
    };
    Ok(folded(crc))
}

/// What the linker wrote into an ELF file of 64 bits.
fn build_id(file: &File) -> Option<Vec<u8>> {
    let data = ReadCache::new(file);
    let header = FileHeader64::<Endianness>::parse(&data).ok()?;
    let endian = header.endian().ok()?;
    for segment in header.program_headers(endian, &data).ok()? {
        let Ok(Some(mut notes)) = segment.notes(endian, &data) else { continue };
        while let Ok(Some(note)) = notes.next() {
            if note.name() == ELF_NOTE_GNU && note.n_type(endian) == NT_GNU_BUILD_ID {
                return Some(note.desc().to_vec());
            }
        }
    }
    None
}

/// The checksum of all bytes.
fn content(mut file: &File) -> io::Result<u64> {
    file.rewind()?;
    let (mut digest, mut piece) = (Digest::new(), vec![0; 256 << 10]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(digest.finalize()),
            count => digest.update(&piece[..count]),
        }
    }
}

fn folded(crc: u64) -> u32 {
    (crc ^ crc >> 32) as u32
}

/// What is to be written beside shards of such a state ([`ShardMeta::kind`]): build and type, 32 bits each.
pub(crate) fn kind<S: Protect>() -> u64 {
    u64::from(build_number()) << 32 | u64::from(folded(fingerprint::<S>()))
}

/// Refuses the shards of `members` unless they are of this build.
///
/// # Errors
/// [`CheckpointError::OtherBuild`].
pub(crate) fn check_build(members: &[ShardMeta], rank: Rank) -> Result<(), CheckpointError> {
    // Whoever has no shard computes redundancy for those that do.
    match members.iter().any(|member| member.kind != 0 && member.kind >> 32 != u64::from(build_number())) {
        true => Err(CheckpointError::OtherBuild { rank }),
        false => Ok(()),
    }
}

/// Refuses a shard of kind `found` that another job has left, unless it is of such a state, and of this build or of any if that is
/// `accepted`.
///
/// # Errors
/// [`CheckpointError::ResumedBuild`], [`CheckpointError::ResumedState`].
pub(crate) fn check_resumed<S: Protect>(found: u64, accepted: bool) -> Result<(), CheckpointError> {
    let due = kind::<S>();
    if found as u32 != due as u32 {
        return Err(CheckpointError::ResumedState { due: std::any::type_name::<S>() });
    }
    if found != due && !accepted {
        return Err(CheckpointError::ResumedBuild);
    }
    Ok(())
}

/// As [`check_build`], and refuses this rank's own shard, of kind `own` if it has one, unless it is of such a state.
///
/// # Errors
/// [`CheckpointError::OtherBuild`], [`CheckpointError::OtherState`].
pub(crate) fn check<S: Protect>(
    members: &[ShardMeta],
    own: Option<u64>,
    rank: Rank,
) -> Result<(), CheckpointError> {
    check_build(members, rank)?;
    match own {
        Some(own) if own != kind::<S>() => {
            Err(CheckpointError::OtherState { rank, due: std::any::type_name::<S>() })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_copy_is_the_same_build_and_a_changed_copy_is_not() {
        let original = File::open(SELF).unwrap();
        let id = build_id(&original).expect("the linker of the tests writes one");
        let copied = || {
            let mut copy = tempfile::tempfile().unwrap();
            io::copy(&mut File::open(SELF).unwrap(), &mut copy).unwrap();
            copy
        };
        assert_eq!(identity_of(&copied()).unwrap(), build_number());
        let mut longer = copied();
        longer.write_all(&[0]).unwrap();
        assert_eq!(build_id(&longer).unwrap(), id);
        assert_ne!(identity_of(&longer).unwrap(), build_number());
    }

    #[test]
    fn without_a_build_id_every_byte_counts() {
        let file = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            file
        };
        let mut bytes = vec![7; 600_000];
        let was = identity_of(&file(&bytes)).unwrap();
        assert_eq!(identity_of(&file(&bytes)).unwrap(), was);
        assert_eq!(was, folded(crc64_nvme(&bytes)));
        for at in [0, 299_999, 599_999] {
            bytes[at] ^= 1;
            assert_ne!(identity_of(&file(&bytes)).unwrap(), was, "byte {at}");
            bytes[at] ^= 1;
        }
        assert_eq!(identity_of(&file(&[])).unwrap(), 0);
    }

    #[test]
    fn what_does_not_fit_is_said() {
        #[derive(crate::Protect)]
        struct Other(u8);
        let meta = |kind| ShardMeta { kind, ..ShardMeta::of(b"shard") };
        let (own, stranger) = (kind::<()>(), kind::<()>() ^ 1 << 40);
        assert_eq!(check::<()>(&[meta(own), meta(kind::<Other>()), meta(0)], Some(own), 3), Ok(()));
        let other = check::<()>(&[meta(own)], Some(kind::<Other>()), 3).unwrap_err();
        assert_eq!(other, CheckpointError::OtherState { rank: 3, due: "()" });
        for own in [Some(own), None] {
            let other = check::<()>(&[meta(own.unwrap_or(0)), meta(stranger)], own, 3).unwrap_err();
            assert_eq!(other, CheckpointError::OtherBuild { rank: 3 });
        }
    }
}
