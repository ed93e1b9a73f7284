//! Whether what all ranks have sent and received fits.

use super::mix;
use super::plan::{Action, Collective, members};

/// Whether the histories of all ranks fit each other.
pub(super) fn judge(histories: &[[Vec<u64>; 4]], plan: &[Vec<Action>]) -> Result<(), String> {
    let of = |list: &[u64], other: usize, tag: u64| -> Vec<u64> {
        let messages = list.as_chunks::<3>().0.iter();
        messages.filter(|m| m[0] == other as u64 && m[1] == tag).map(|m| m[2]).collect()
    };
    for (from, [sent, ..]) in histories.iter().enumerate() {
        for (to, [_, received, ..]) in histories.iter().enumerate() {
            let tags = sent.as_chunks::<3>().0.iter().chain(received.as_chunks::<3>().0).map(|m| m[1]);
            let mut tags: Vec<u64> = tags.collect();
            tags.sort_unstable();
            tags.dedup();
            for tag in tags {
                let (sent, received) = (of(sent, to, tag), of(received, from, tag));
                if sent != received {
                    return Err(format!("{from} to {to}, tag {tag}: sent {sent:x?}, received {received:x?}"));
                }
            }
        }
    }
    let together = |action: &Action| match action {
        Action::Together(on, collective) | Action::Begin(on, collective) => Some((*on, *collective)),
        _ => None,
    };
    for (number, (on, collective)) in plan[0].iter().filter_map(together).enumerate() {
        for (world_rank, [.., got]) in histories.iter().enumerate() {
            let members = members(on, world_rank, histories.len());
            let rank = members.iter().take_while(|member| **member != world_rank).count();
            let gave: Vec<u64> = members.iter().map(|member| histories[*member][2][number]).collect();
            let sum = |count: usize| gave[..count].iter().fold(0, |sum: u64, word| sum.wrapping_add(*word));
            let due = match collective {
                Collective::Sum => sum(gave.len()),
                Collective::Reduce(root) => {
                    if root % gave.len() == rank {
                        sum(gave.len())
                    } else {
                        0
                    }
                }
                Collective::Scan => sum(rank + 1),
                Collective::Broadcast(root) => gave[root % gave.len()],
                Collective::Shift => mix(gave[(rank + 2 * gave.len() - 2) % gave.len()]),
                Collective::Barrier => gave[rank],
            };
            if got[number] != due {
                return Err(format!(
                    "collective {number}, {collective:?}, rank {world_rank}: {:x}, not {due:x}",
                    got[number]
                ));
            }
        }
    }
    Ok(())
}
