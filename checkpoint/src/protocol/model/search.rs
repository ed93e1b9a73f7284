//! All interleavings of a small job, random ones of a larger one, and each rule switched off, which both must find.

use std::collections::HashSet;

use super::*;

/// Visits every reachable state; returns their number and the newest epoch that all ranks have committed.
fn exhaust(bounds: &Bounds) -> Result<(usize, u32), String> {
    let start = Job::new(bounds);
    let mut seen = HashSet::from([fingerprint(&start)]);
    let mut open = vec![start];
    let mut newest = 0;
    while let Some(job) = open.pop() {
        newest = newest.max(job.floor);
        for step in job.steps(bounds) {
            let mut next = job.clone();
            next.take(step, bounds.bug);
            next.check().map_err(|text| format!("{step:?}: {text}\n{job:#?}"))?;
            if seen.insert(fingerprint(&next)) {
                open.push(next);
            }
        }
    }
    Ok((seen.len(), newest))
}

/// 64 bits in place of the state: among 10^6 states a collision, which would hide one of them, has odds of 1 to 10^7.
fn fingerprint(job: &Job) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    job.hash(&mut hasher);
    hasher.finish()
}

/// Takes random steps until none is left; the same seed takes the same ones.
fn wander(bounds: &Bounds, seed: u64) -> Result<u32, String> {
    let mut random = seed;
    let mut next = move || {
        // splitmix64: Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014
        random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (random ^ random >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    let mut job = Job::new(bounds);
    loop {
        let mut steps = job.steps(bounds);
        if steps.len() > 1 && !next().is_multiple_of(8) {
            // Crashes are always possible and would use up their number at once.
            let calm: Vec<Step> = steps.iter().copied().filter(|s| !matches!(s, Step::Crash(_))).collect();
            steps = if calm.is_empty() { steps } else { calm };
        }
        let Some(&step) = steps.get(next() as usize % steps.len().max(1)) else { return Ok(job.floor) };
        job.take(step, bounds.bug);
        job.check().map_err(|text| format!("seed {seed}, {step:?}: {text}\n{job:#?}"))?;
    }
}

const SMALL: Bounds = Bounds {
    ranks: 3,
    epochs: 2,
    crashes: 1,
    failed_votes: 0,
    tolerance: 1,
    on_disk: false,
    saves_memory: false,
    bug: Bug::None,
};

#[test]
fn every_interleaving_keeps_a_whole_checkpoint() {
    let on_disk = Bounds { on_disk: true, ..SMALL };
    let saving = Bounds { saves_memory: true, ..SMALL };
    let cases = [
        Bounds { ranks: 2, epochs: 4, crashes: 3, failed_votes: 2, ..saving },
        Bounds { ranks: 3, epochs: 3, crashes: 1, failed_votes: 1, ..saving },
        Bounds { ranks: 3, epochs: 3, crashes: 3, tolerance: 2, ..saving },
        Bounds { ranks: 2, epochs: 4, crashes: 3, failed_votes: 2, ..SMALL },
        Bounds { ranks: 3, epochs: 3, crashes: 1, ..SMALL },
        Bounds { ranks: 3, epochs: 3, crashes: 2, tolerance: 2, ..SMALL },
        Bounds { ranks: 3, epochs: 3, crashes: 1, failed_votes: 1, ..SMALL },
        Bounds { ranks: 4, epochs: 2, crashes: 1, ..SMALL },
        Bounds { ranks: 2, epochs: 4, crashes: 4, failed_votes: 1, tolerance: 2, ..on_disk },
        Bounds { ranks: 3, epochs: 3, crashes: 3, tolerance: 3, ..on_disk },
    ];
    for bounds in cases {
        let (states, newest) = exhaust(&bounds).expect("whole");
        println!("{bounds:?}: {states} states");
        assert_eq!(newest, bounds.epochs, "the job can always go on to its end");
        assert!(states > 1000, "{states}");
    }
}

#[test]
fn random_walks_keep_a_whole_checkpoint() {
    for seed in 0..3000 {
        let ranks = 3 + seed as usize % 3;
        let on_disk = seed % 4 == 3;
        let tolerance = if on_disk { ranks } else { 1 + seed as usize % (ranks - 1) };
        let saves_memory = !on_disk && seed % 2 == 0;
        let bounds = Bounds {
            ranks,
            epochs: 6,
            crashes: 5,
            failed_votes: 2,
            tolerance,
            on_disk,
            saves_memory,
            ..SMALL
        };
        assert_eq!(wander(&bounds, seed).expect("whole"), bounds.epochs, "seed {seed} got stuck");
    }
}

/// All interleavings of a small job, and walks through a larger one.
fn finds(bounds: Bounds) {
    let found = exhaust(&bounds).expect_err("all interleavings find it");
    println!("{:?}: {}", bounds.bug, found.lines().next().unwrap_or_default());
    let larger = Bounds { epochs: 6, crashes: 4, tolerance: bounds.tolerance.max(2), ..bounds };
    let seed = (0..20_000).find(|seed| wander(&larger, *seed).is_err());
    println!("{:?}: found by the walk of seed {:?}", bounds.bug, seed.expect("random walks find it, too"));
}

#[test]
fn a_rank_that_begins_before_its_commit_is_found() {
    finds(Bounds { bug: Bug::BeginsBeforeCommit, epochs: 3, ..SMALL });
}

#[test]
fn a_commit_before_the_vote_is_found() {
    finds(Bounds { bug: Bug::CommitsBeforeVote, epochs: 3, ..SMALL });
}

#[test]
fn blocks_that_are_written_unasked_are_found() {
    finds(Bounds { bug: Bug::WritesUnasked, epochs: 3, ..SMALL });
}

#[test]
fn blocks_of_an_old_generation_are_found() {
    finds(Bounds { bug: Bug::ReadsOldGeneration, epochs: 3, ..SMALL });
}

#[test]
fn blocks_of_a_refused_attempt_are_found() {
    finds(Bounds { bug: Bug::LeavesBlocks, epochs: 3, failed_votes: 1, ..SMALL });
}

#[test]
fn a_rank_that_forgets_what_it_has_staged_is_found() {
    finds(Bounds { bug: Bug::ForgetsStaged, epochs: 3, ..SMALL });
}

#[test]
fn a_commit_before_the_manifest_is_found() {
    finds(Bounds { bug: Bug::CommitsBeforeManifest, on_disk: true, ..SMALL });
}

#[test]
fn a_file_that_is_overwritten_too_early_is_found() {
    let bug = Bug::OverwritesUnheard;
    finds(Bounds { bug, epochs: 3, crashes: 2, tolerance: 2, on_disk: true, ..SMALL });
}

#[test]
fn a_state_that_is_written_over_its_only_copy_before_the_commit_is_found() {
    finds(Bounds { bug: Bug::CopiesBeforeCommit, epochs: 3, saves_memory: true, ..SMALL });
}

#[test]
fn a_state_that_is_written_over_its_only_copy_and_not_counted_as_committed_is_found() {
    let bug = Bug::CopiesWithoutCommit;
    finds(Bounds { bug, epochs: 3, crashes: 2, tolerance: 2, saves_memory: true, ..SMALL });
}
