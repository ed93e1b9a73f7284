//! What the suites of ULFM (ulfm-testing) and of MPICH (test/mpi/ft) demand of survivors, by the names that they have there.

use ft_comm::{CommError, Communicator, MessageMode, OnFailure, Op, Source, World};
use ft_sim::{self as sim, Config, Ending};

const RANKS: usize = 4;
/// It dies.
const DEAD: usize = RANKS - 1;
const SEEDS: u64 = 40;

/// Runs `survivor` on the ranks that are left; with `dies` the last rank dies as soon as `before` is done.
fn on_survivors<B>(
    dies: bool,
    before: impl Fn(&World) -> Result<B, CommError> + Sync,
    survivor: impl Fn(&World, B) -> Result<(), CommError> + Sync,
) {
    for seed in 0..SEEDS {
        let kills = if dies { vec![format!("{DEAD}@at=death:1").parse().expect("a spec")] } else { vec![] };
        let config = Config { kills, on_failure: OnFailure::Blank, ..Config::rough(seed, RANKS) };
        let outcome = sim::run(config, |mut world| -> Result<(), CommError> {
            world.set_message_mode(MessageMode::Continue);
            let made = before(&world)?;
            if dies && world.rank() != DEAD {
                world.comm().send(&[1u8], DEAD, 99)?;
            } else if dies {
                // Not before all have come that far.
                for _ in 1..RANKS {
                    world.comm().recv(&mut [0u8], Source::Any, 99)?;
                }
                world.fault_point("death", 1, None)?;
            }
            survivor(&world, made)?;
            world.finalize(vec![])
        });
        let well = Ending::Ended { code: 0, message: String::new() };
        assert_eq!(outcome.ending, well, "seed {seed}: {:?}", outcome.finished);
        let done = outcome.finished.iter().filter(|f| matches!(f.result, Ok(Ok(())))).count();
        assert_eq!(done, RANKS - usize::from(dies), "seed {seed}: {:?}", outcome.finished);
    }
}

fn after_a_death(survivor: impl Fn(&World) -> Result<(), CommError> + Sync) {
    on_survivors(true, |_| Ok(()), |world, ()| survivor(world));
}

#[track_caller]
fn fails<T: std::fmt::Debug>(result: Result<T, CommError>) {
    assert!(matches!(&result, Err(CommError::PeerFailed { ranks, .. }) if *ranks == [DEAD]), "{result:?}");
}

#[track_caller]
fn is_revoked<T: std::fmt::Debug>(result: Result<T, CommError>) {
    assert!(matches!(result, Err(CommError::Revoked { .. })), "{result:?}");
}

#[test]
fn recvdead_irecvdead_senddead_isenddead() {
    after_a_death(|world| {
        let comm = world.comm();
        let pending = comm.irecv(vec![0u8], DEAD, 2)?;
        fails(comm.recv(&mut [0u8], DEAD, 1));
        fails(pending.wait());
        fails(comm.send(&[1u8], DEAD, 1));
        fails(comm.isend(vec![1u8], DEAD, 1)?.wait());
        fails(comm.probe(DEAD, 1));
        Ok(())
    });
}

#[test]
fn sendalive_isendalive_multi_isendalive() {
    after_a_death(|world| {
        let (comm, left) = (world.comm(), RANKS - 1);
        let (to, from) = ((comm.rank() + 1) % left, (comm.rank() + left - 1) % left);
        for round in 0..20u64 {
            let sends = [comm.isend(vec![round], to, 1)?, comm.isend(vec![round + 100], to, 2)?];
            let mut got = [0u64; 2];
            comm.recv(&mut got[1..], from, 2)?;
            comm.recv(&mut got[..1], from, 1)?;
            assert_eq!(got, [round, round + 100]);
            for send in sends {
                send.wait()?;
            }
        }
        Ok(())
    });
}

#[test]
fn anysource_err_any_getack_failure_ack() {
    after_a_death(|world| {
        let comm = world.comm();
        // An old wildcard, posted before the death is known, and a new one.
        fails(comm.recv(&mut [0u64], Source::Any, 1));
        fails(comm.recv(&mut [0u64], Source::Any, 1));
        assert_eq!(comm.failed_ranks(), [DEAD]);
        assert_eq!(comm.ack_failed(), [DEAD]);
        // From now on it waits for the others.
        let left = RANKS - 1;
        comm.send(&[comm.rank() as u64], (comm.rank() + 1) % left, 2)?;
        let mut got = [0u64];
        let status = comm.recv(&mut got, Source::Any, 2)?;
        assert_eq!(status.source as u64, got[0]);
        fails(comm.recv(&mut [0u64], DEAD, 1));
        Ok(())
    });
}

#[test]
fn barrier_bcast_reduce_gather_scatter_err_returns() {
    after_a_death(|world| {
        let (comm, root) = (world.comm(), DEAD - 1);
        fails(comm.barrier());
        fails(comm.bcast(&mut [0u8; 9], DEAD));
        fails(comm.reduce(&mut [1u64], Op::Sum, root));
        fails(comm.gather(&[1u8], root));
        fails(comm.scatter(&[0u8; RANKS], &mut [0u8], root));
        fails(comm.allreduce(&mut [1u64], Op::Sum));
        Ok(())
    });
}

/// A collective that fails spoils no other, and no communicator without the dead.
#[test]
fn nbccoll_err_insulation() {
    let pairs = |world: &World| world.comm().split(Some(u32::from(world.rank() >= 2)), 0);
    on_survivors(true, pairs, |world, pair: Option<Communicator>| {
        let (comm, pair) = (world.comm(), pair.expect("it has a color"));
        let all = comm.ibarrier();
        for _ in 0..20 {
            let sum = pair.iallreduce(vec![1u64], Op::Sum).and_then(|sum| sum.wait());
            match world.rank() < 2 {
                true => assert_eq!(sum?, [2]),
                false => fails(sum),
            }
            if world.rank() >= 2 {
                break;
            }
        }
        fails(all.and_then(|all| all.wait()));
        Ok(())
    });
}

#[test]
fn agree_agree_shrink_shrink() {
    after_a_death(|world| {
        let comm = world.comm();
        let agreed = comm.agree(0b100 | 1 << comm.rank())?;
        assert_eq!((agreed.flags, agreed.failed, agreed.unacknowledged), (0b100, vec![DEAD], vec![DEAD]));
        if comm.rank() > 0 {
            comm.ack_failed();
        }
        assert_eq!(comm.agree(1)?.unacknowledged, [DEAD], "rank 0 has not acknowledged");
        comm.ack_failed();
        let agreed = comm.agree(1)?;
        assert_eq!((agreed.flags, agreed.unacknowledged), (1, vec![]));
        let left = comm.shrink()?;
        assert_eq!((left.size(), left.rank()), (RANKS - 1, comm.rank()));
        let mut sum = [1u64];
        left.allreduce(&mut sum, Op::Sum)?;
        assert_eq!(sum, [3]);
        Ok(())
    });
}

/// Without any failure; calls under way end, and other communicators do not care.
#[test]
fn revoke_revoke_nofail_revshrink() {
    on_survivors(
        false,
        |world| world.comm().dup(),
        |world, comm| {
            let other = world.comm();
            let pending = comm.irecv(vec![0u8], Source::Any, 5)?;
            other.barrier()?;
            if comm.rank() == 1 {
                comm.revoke()?;
            } else {
                is_revoked(comm.recv(&mut [0u8], 1, 6));
            }
            is_revoked(pending.wait());
            is_revoked(comm.barrier());
            assert!(comm.is_revoked() && !other.is_revoked());
            other.barrier()?;
            let mut now = comm;
            for round in 0..100 {
                now = now.shrink()?;
                assert_eq!(now.size(), RANKS);
                let mut sum = [round];
                now.allreduce(&mut sum, Op::Sum)?;
                assert_eq!(sum, [4 * round]);
                // Whoever is first to revoke must not tear others out of the sum.
                now.agree(1)?;
                now.revoke()?;
            }
            Ok(())
        },
    );
}

/// Sub-communicators go with the one that they were made from.
#[test]
fn revoke_reaches_what_was_made_of_it() {
    on_survivors(
        false,
        |world| {
            let copy = world.comm().dup()?;
            let half = copy.split(Some(world.rank() as u32 % 2), 0)?.expect("it has a color");
            Ok((copy, half))
        },
        |world, (copy, half)| {
            let pending = half.irecv(vec![0u8], Source::Any, 1)?;
            world.comm().barrier()?;
            if world.rank() == 0 {
                copy.revoke()?;
            }
            is_revoked(pending.wait());
            is_revoked(half.barrier());
            world.comm().barrier()
        },
    );
}

/// One after the other dies until one is left.
#[test]
fn revshrinkkill() {
    for seed in 0..SEEDS {
        let kills = (1..RANKS).map(|rank| format!("{rank}@at=death:1").parse().expect("a spec")).collect();
        let config = Config { kills, on_failure: OnFailure::Shrink, ..Config::rough(seed, RANKS) };
        let outcome = sim::run(config, |mut world| -> Result<usize, CommError> {
            world.set_message_mode(MessageMode::Continue);
            let mut comm = world.comm().clone();
            while comm.size() > 1 {
                let last = comm.size() - 1;
                if comm.rank() == last {
                    world.fault_point("death", 1, None)?;
                }
                assert!(comm.barrier().is_err());
                comm.revoke()?;
                comm = comm.shrink()?;
                assert_eq!(comm.size(), last);
            }
            world.finalize(vec![]).map(|()| comm.size())
        });
        assert!(
            matches!(outcome.result(0), Some(Ok(1))),
            "seed {seed}: {:?} {:?}",
            outcome.ending,
            outcome.finished
        );
    }
}

/// Communicators without a common rank may have the same context: what is done to one is nothing to the other.
#[test]
fn disjoint_communicators_do_not_meet() {
    let half = |world: &World| world.comm().split(Some(world.rank() as u32 % 2), 0);
    on_survivors(false, half, |world, half: Option<Communicator>| {
        let half = half.expect("it has a color");
        world.comm().barrier()?;
        let odd = world.rank() % 2 == 1;
        if odd {
            half.revoke()?;
            // Both agree by the launcher, with other words.
            assert_eq!(half.agree(0b01)?.flags, 0b01);
            assert_eq!(half.shrink()?.group().ranks(), [1, 3]);
        } else {
            half.barrier()?;
            assert!(!half.is_revoked());
            assert_eq!(half.shrink()?.group().ranks(), [0, 2]);
            half.barrier()?;
        }
        world.comm().barrier()
    });
}
