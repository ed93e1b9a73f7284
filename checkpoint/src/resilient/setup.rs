//! What protects a job, made from what is asked for; and what does not go together.

use ft_comm::{OnFailure, World};

use crate::checkpointer::Checkpointer;
use crate::disk::Writer;
use crate::error::CheckpointError;
use crate::protection::{Checkpoints, Lines, MemoryUse, Protection, Recovery};
use crate::scheme::Scheme;

/// What takes the checkpoints of a job, on its first level.
pub(super) fn checkpointer(world: &World, protection: &Protection) -> Result<Checkpointer, CheckpointError> {
    if let Some(text) = refusal(world, protection) {
        return Err(CheckpointError::Unfit(text.into()));
    }
    world.choose_by_hosts(protection.lines == Lines::Meet)?;
    let mut checkpointer = Checkpointer::new(world, protection.scheme.clone())?;
    checkpointer.set_throttle(protection.throttle);
    checkpointer.set_incremental(protection.incremental);
    checkpointer.set_saves_memory(protection.memory_use == MemoryUse::Least);
    checkpointer.set_scrub(protection.scrub);
    checkpointer.set_memory_limit(protection.memory);
    checkpointer.set_checksum_limit(protection.checksum_limit);
    if let Some(spill) = protection.spill.as_ref().filter(|_| !world.is_parity()) {
        checkpointer.spill(Writer::start(spill, world.job(), world.saves())?, spill.every);
    }
    Ok(checkpointer)
}

/// Why no program can be protected like this, or not with the repair mode of the job.
fn refusal(world: &World, protection: &Protection) -> Option<&'static str> {
    if protection.memory_use == MemoryUse::Least {
        if protection.checkpoints == Checkpoints::Asynchronous {
            return Some(
                "asynchronous checkpoints need a copy of the state: `--memory least` is for blocking ones",
            );
        }
        if protection.incremental {
            return Some("`--memory least` keeps no copy that `--incremental` could compare the state with");
        }
    }
    if let Some(text) = refusal_of_levels(world, protection)
        .or_else(|| refusal_of_checksums(world, protection))
        .or_else(|| refusal_of_lines(world, protection))
    {
        return Some(text);
    }
    match world.repair_mode() {
        OnFailure::Rebuild | OnFailure::Abort => None,
        OnFailure::Blank => {
            Some("the resilient loop knows no holes; `--on-failure shrink` goes on with fewer ranks")
        }
        OnFailure::Shrink if world.total() > world.size() => {
            Some("`--on-failure shrink` is not possible with dedicated parity ranks")
        }
        OnFailure::Shrink if matches!(protection.scheme, Scheme::Disk { .. }) => {
            Some("`--on-failure shrink` is not possible with checkpoints on disk")
        }
        OnFailure::Shrink => None,
    }
}

/// What does not go with a scheme under which doubles come back with rounding, if this is one.
fn refusal_of_checksums(world: &World, protection: &Protection) -> Option<&'static str> {
    if !matches!(protection.scheme, Scheme::Checksum { .. }) {
        return None;
    }
    let others = [
        (protection.incremental, "`--incremental` is not possible with checksums"),
        (protection.memory.is_some(), "`--checkpoint-memory` is not possible with checksums"),
        (
            world.repair_mode() == OnFailure::Shrink,
            "checksums are for lost ranks that are replaced, not for `--on-failure shrink`",
        ),
    ];
    others.into_iter().find(|(is_wanted, _)| *is_wanted).map(|(_, text)| text)
}

/// What does not go with lines that messages may cross, if such are asked for.
fn refusal_of_lines(world: &World, protection: &Protection) -> Option<&'static str> {
    if protection.recovery == Recovery::Local && protection.lines != Lines::Log {
        return Some(
            "`--recovery local` is for `--lines log`, where each rank has its lines when it comes by",
        );
    }
    if protection.log_memory.is_some() && protection.recovery != Recovery::Local {
        return Some("`--log-memory` is for `--recovery local`, where messages are kept for the lost");
    }
    if protection.lines == Lines::Meet {
        return None;
    }
    let others = [
        (
            matches!(world.repair_mode(), OnFailure::Shrink | OnFailure::Blank),
            "messages that cross `--lines` are for lost ranks that are replaced, not for `--on-failure shrink`",
        ),
        (!protection.levels.is_empty(), "`--lines` is for one level of protection, not for `--levels`"),
        (protection.incremental, "`--lines` and `--incremental` do not go together"),
        (
            protection.memory_use == MemoryUse::Least,
            "`--lines` needs a copy of the state, which `--memory least` does not make",
        ),
        (protection.scrub, "`--lines` and `--scrub` do not go together"),
        (
            matches!(protection.scheme, Scheme::Checksum { .. } | Scheme::Disk { .. }),
            "`--lines` is for schemes with exact redundancy in memory",
        ),
        (protection.spill.is_some(), "`--lines` and `--spill` do not go together"),
    ];
    others.into_iter().find(|(is_wanted, _)| *is_wanted).map(|(_, text)| text)
}

/// Why several levels of protection are not possible, if there are any.
fn refusal_of_levels(world: &World, protection: &Protection) -> Option<&'static str> {
    if protection.levels.is_empty() {
        return None;
    }
    let is_of_memory = |scheme: &Scheme| !matches!(scheme, Scheme::None | Scheme::Disk { .. });
    let mut schemes = std::iter::once(&protection.scheme).chain(protection.levels.iter().map(|l| &l.scheme));
    if !schemes.all(is_of_memory) {
        return Some(
            "levels of protection are schemes with redundancy in memory; files go beside them with `--spill`",
        );
    }
    if world.total() > world.size() {
        return Some("several levels of protection are not possible with dedicated parity ranks");
    }
    if world.repair_mode() == OnFailure::Shrink {
        return Some(
            "several levels of protection are for lost ranks that are replaced, not for `--on-failure shrink`",
        );
    }
    if protection.memory.is_some() {
        return Some("`--checkpoint-memory` is for one level of protection");
    }
    None
}
