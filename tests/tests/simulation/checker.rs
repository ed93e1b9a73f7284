//! What holds for every job, looked up in what the simulator has recorded.

use std::collections::{BTreeMap, BTreeSet};

use ft_comm::{Generation, Membership};
use ft_proto::arbiter::Event as ArbiterEvent;
use ft_sim::{Ending, Event, SimOutcome};

use super::Course;

/// What the launcher recorded, in order.
pub(crate) fn launcher<R>(outcome: &SimOutcome<R>) -> impl Iterator<Item = &ArbiterEvent> {
    outcome.events.iter().map(|(_, Event::Launcher(event))| event)
}

/// What the ranks reported when all were done; none if the job did not get there.
pub(crate) fn outputs<R>(outcome: &SimOutcome<R>) -> Option<&Vec<Vec<u8>>> {
    launcher(outcome).find_map(|event| match event {
        ArbiterEvent::Finished { outputs } => Some(outputs),
        _ => None,
    })
}

/// The status with which the job ended. A process that was killed when all ranks were done already gives the job
/// its status; that is no failure of the job.
pub(crate) fn status<R>(outcome: &SimOutcome<R>) -> Result<(i32, &str), String> {
    if outcome.overslept > 0 {
        return Err(format!("{} times somebody has slept to the end beside bytes for it", outcome.overslept));
    }
    match &outcome.ending {
        Ending::Hung(text) => {
            let accounts = launcher(outcome).filter_map(|event| match event {
                ArbiterEvent::Stalled { account } => Some(&**account),
                _ => None,
            });
            Err(format!("hung: {text}; {}", accounts.last().unwrap_or_default()))
        }
        Ending::Ended { .. } if outputs(outcome).is_some() => Ok((0, "")),
        Ending::Ended { code, message } => Ok((*code, message)),
    }
}

/// How a job went that has done its work.
pub(crate) fn course<R>(outcome: &SimOutcome<R>) -> Course {
    let is_loss = |event: &ArbiterEvent| matches!(event, ArbiterEvent::Decided { generation: 1.., .. });
    if launcher(outcome).any(is_loss) { Course::Repaired } else { Course::Undisturbed }
}

/// Ranks that are lost and not known to be restored at the end.
pub(crate) fn not_restored<R>(outcome: &SimOutcome<R>) -> Vec<usize> {
    let mut missing = BTreeSet::new();
    for event in launcher(outcome) {
        match event {
            ArbiterEvent::Decided { failed, .. } => missing.extend(failed.iter().copied()),
            ArbiterEvent::Resumed { .. } => missing.clear(),
            _ => {}
        }
    }
    missing.into_iter().collect()
}

/// Whether ranks that live could not reach each other, again and again, because a cut never heals, and replacing them did
/// not help.
pub(crate) fn is_cut_for_ever(code: i32, message: &str) -> bool {
    code == 1 && message.contains("broke again and again")
}

/// Invariant 3: all that return from one repair return the same. Gives the memberships by generation.
pub(crate) fn memberships<R>(outcome: &SimOutcome<R>) -> Result<BTreeMap<Generation, Membership>, String> {
    let mut memberships: BTreeMap<Generation, Membership> = BTreeMap::new();
    for seen in &outcome.history {
        let generation = seen.membership.generation;
        let first = memberships.entry(generation).or_insert_with(|| seen.membership.clone());
        if *first != seen.membership {
            return Err(format!(
                "rank {}.{} got another generation {generation} than others: {:?}, not {first:?}",
                seen.rank, seen.incarnation, seen.membership
            ));
        }
        if !seen.membership.seats.iter().any(|seat| seat.peer == seen.peer) {
            return Err(format!("rank {}.{} got a generation without it", seen.rank, seen.incarnation));
        }
    }
    // Whoever is not there any more has failed, and nobody else has; all others know who they were.
    for (generation, membership) in &memberships {
        let Some(before) = generation.checked_sub(1).and_then(|before| memberships.get(&before)) else {
            continue;
        };
        let mut left: Vec<usize> =
            (0..before.seats.len()).filter(|rank| !before.holes.contains(rank)).collect();
        for (seat, was) in membership.seats.iter().zip(&membership.before) {
            let Some(was) = was else { continue };
            if before.seats[*was].peer != seat.peer {
                return Err(format!("generation {generation}: peer {:?} was not rank {was}", seat.peer));
            }
            left.retain(|rank| rank != was);
        }
        if left != membership.failed {
            return Err(format!(
                "generation {generation}: {left:?} are gone, failed are {:?}",
                membership.failed
            ));
        }
    }
    Ok(memberships)
}
