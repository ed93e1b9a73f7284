//! Ranks that compute for ever and make no call hear of a failure nevertheless:
//!
//! `ftrun -n 4 --kill 2@at=computing:1 target/release/examples/busy`
//!
//! Each prints how it heard, repairs, and is done.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ft_comm::{CommError, MainError, World};

fn main() -> Result<(), MainError> {
    let mut world = World::init()?;
    let losses = Arc::new(AtomicUsize::new(0));
    let counted = losses.clone();
    world.on_failure(move |ranks| counted.store(ranks.len(), Ordering::Release));
    if !world.is_replacement() {
        // The rank that is to die does so here.
        world.fault_point("computing", 1, None)?;
        let alarm = world.alarm();
        let mut rounds = 0u64;
        while !alarm.is_raised() {
            rounds = std::hint::black_box(rounds.wrapping_add(1));
        }
        match world.check() {
            Err(CommError::PeerFailed { ranks, .. }) => println!(
                "rank {} was computing, {} told and {ranks:?} lost",
                world.rank(),
                losses.load(Ordering::Acquire)
            ),
            other => other?,
        }
        world.repair(0)?;
        assert!(!alarm.is_raised());
    }
    world.comm().barrier()?;
    Ok(world.finalize(vec![])?)
}
