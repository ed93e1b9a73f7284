//! Jobs over the simulated network: calls, legal orders that must not deadlock, determinism, injected failures.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use super::*;
use ft_comm::EAGER_BYTES_MAX;
use ft_comm::{Graph, Grid, Part};
use ft_proto::arbiter::Event as ArbiterEvent;
use ft_proto::error::CommError;
use ft_proto::fault::KillSpec;
use ft_proto::rank::{Source, TagSel};
use ft_proto::reduction::Op;
use ft_proto::settings::MessageSettings;

fn ended(code: i32) -> Ending {
    Ending::Ended { code, message: String::new() }
}

/// Every collective on one communicator, with `len` elements a rank.
fn collectives(comm: &Communicator, len: usize) {
    let (rank, size) = (comm.rank() as u64, comm.size() as u64);
    let mine = |at: usize| rank * 1000 + at as u64;
    let all = |at: usize| (0..size).map(move |r| r * 1000 + at as u64);

    let mut sum: Vec<u64> = (0..len).map(mine).collect();
    comm.allreduce(&mut sum, Op::Sum).unwrap();
    assert!((0..len).all(|at| sum[at] == all(at).sum::<u64>()));

    for root in 0..comm.size() {
        let mut most: Vec<u64> = (0..len).map(mine).collect();
        comm.reduce(&mut most, Op::Max, root).unwrap();
        assert!(comm.rank() != root || (0..len).all(|at| most[at] == (size - 1) * 1000 + at as u64));

        let mut told: Vec<u64> = (0..len).map(mine).collect();
        comm.bcast(&mut told, root).unwrap();
        assert!((0..len).all(|at| told[at] == root as u64 * 1000 + at as u64));

        let gathered = comm.gather(&[rank, len as u64], root).unwrap();
        let due: Vec<u64> = (0..size).flat_map(|r| [r, len as u64]).collect();
        assert_eq!(gathered, (comm.rank() == root).then_some(due));
    }

    let part: Vec<u64> = (0..len).map(mine).collect();
    let mut whole = vec![0; len * comm.size()];
    comm.allgather(&part, &mut whole).unwrap();
    assert!(
        whole
            .iter()
            .enumerate()
            .all(|(at, word)| *word == (at / len.max(1)) as u64 * 1000 + (at % len) as u64)
    );
    comm.barrier().unwrap();
}

#[test]
fn every_collective_for_small_sizes() {
    for size in 1..=9 {
        ranks(size, |comm| [0, 1, 7].into_iter().for_each(|len| collectives(comm, len)));
    }
}

#[test]
fn every_collective_with_messages_that_are_announced_first() {
    for size in [2, 3, 5, 8] {
        ranks(size, |comm| collectives(comm, EAGER_BYTES_MAX / 8 + 9));
    }
}

#[test]
fn every_collective_on_a_bad_network() {
    for seed in 0..40 {
        let outcome = run(Config::rough(seed, 2 + seed as usize % 4), |mut world| {
            collectives(world.comm(), 5);
            world.finalize(vec![world.rank() as u8]).unwrap();
        });
        assert_eq!(outcome.ending, ended(0), "seed {seed}");
    }
}

#[test]
fn messages_of_all_lengths_arrive_whole_and_in_order() {
    let lengths = [0, 1, 100, EAGER_BYTES_MAX - 1, EAGER_BYTES_MAX, EAGER_BYTES_MAX + 1, 3 * EAGER_BYTES_MAX];
    ranks(2, |comm| {
        for (number, length) in lengths.into_iter().enumerate() {
            let number = number as u8;
            if comm.rank() == 0 {
                comm.send(&vec![number; length], 1, 5).unwrap();
            } else {
                let mut buf = vec![99; length];
                let status = comm.recv(&mut buf, 0, 5).unwrap();
                assert_eq!(status.bytes, length);
                assert!(buf.iter().all(|byte| *byte == number));
            }
        }
    });
}

#[test]
fn wildcards_take_one_message_of_each() {
    for size in 2..=9 {
        let heard = ranks(size, |comm| {
            if comm.rank() > 0 {
                comm.send(&[comm.rank() as u32], 0, 10 + comm.rank() as u32).unwrap();
                return vec![];
            }
            let mut heard = vec![];
            for _ in 1..size {
                let mut buf = [0u32];
                let status = comm.recv(&mut buf, Source::Any, TagSel::Any).unwrap();
                assert_eq!((status.source, status.tag), (buf[0] as usize, 10 + buf[0]));
                heard.push(buf[0]);
            }
            heard.sort_unstable();
            heard
        });
        assert_eq!(heard[0], (1..size as u32).collect::<Vec<_>>());
    }
}

#[test]
fn a_later_message_may_be_received_before_a_long_one() {
    let length = EAGER_BYTES_MAX + 1;
    ranks(2, |comm| {
        if comm.rank() == 0 {
            let long = comm.isend(vec![1u8; length], 1, 1).unwrap();
            let short = comm.isend(vec![2u8; length], 1, 2).unwrap();
            long.wait().unwrap();
            short.wait().unwrap();
        } else {
            let mut buf = vec![0u8; length];
            comm.recv(&mut buf, 0, 2).unwrap();
            assert!(buf.iter().all(|byte| *byte == 2));
            comm.recv(&mut buf, 0, 1).unwrap();
            assert!(buf.iter().all(|byte| *byte == 1));
        }
    });
}

/// The envelope of a long message does not stand in the way of what comes behind it.
#[test]
fn a_short_message_is_received_before_the_long_one_that_was_sent_first() {
    for seed in 0..20 {
        let outcome = run(Config::rough(seed, 2), |mut world| {
            let comm = world.comm();
            let short = [0, 1, 1000, EAGER_BYTES_MAX][seed as usize % 4];
            if comm.rank() == 0 {
                let long = comm.isend(vec![1u8; 2 * EAGER_BYTES_MAX], 1, 1).unwrap();
                let short = comm.isend(vec![2u8; short], 1, 2).unwrap();
                long.wait().unwrap();
                short.wait().unwrap();
            } else {
                let mut buf = vec![0u8; 2 * EAGER_BYTES_MAX];
                assert_eq!(comm.recv(&mut buf, 0, 2).unwrap().bytes, short);
                assert!(buf[..short].iter().all(|byte| *byte == 2));
                assert_eq!(comm.recv(&mut buf, 0, 1).unwrap().bytes, buf.len());
                assert!(buf.iter().all(|byte| *byte == 1));
            }
            world.finalize(vec![]).unwrap();
        });
        assert_eq!(outcome.ending, ended(0), "seed {seed}");
    }
}

/// More than there is credit for, from all at once, to one that asks for the last message of one of them first.
#[test]
fn seven_ranks_flood_one_that_receives_late() {
    const MESSAGES: u32 = 24;
    ranks(8, |comm| {
        if comm.rank() > 0 {
            let sends: Vec<_> = (0..MESSAGES)
                .map(|number| comm.isend(vec![number as u8; EAGER_BYTES_MAX], 0, 0).unwrap())
                .collect();
            comm.send(&[comm.rank() as u8], 0, 1).unwrap();
            sends.into_iter().for_each(|send| drop(send.wait().unwrap()));
            return;
        }
        let mut buf = vec![0u8; EAGER_BYTES_MAX];
        (1..8).rev().for_each(|rank| assert_eq!(comm.recv(&mut buf, rank, 1).unwrap().bytes, 1));
        let mut next = [0; 8];
        for _ in 0..7 * MESSAGES {
            let status = comm.recv(&mut buf, Source::Any, TagSel::Any).unwrap();
            let next = &mut next[status.source];
            assert!(status.bytes == EAGER_BYTES_MAX && buf.iter().all(|byte| byte == next));
            *next += 1;
        }
    });
}

#[test]
fn all_may_send_long_messages_to_all_before_anybody_receives() {
    ranks(4, |comm| {
        let others = || (0..comm.size()).filter(|rank| *rank != comm.rank());
        let message = |from: usize| vec![from as u8; 2 * EAGER_BYTES_MAX];
        let sends: Vec<_> = others().map(|to| comm.isend(message(comm.rank()), to, 0).unwrap()).collect();
        for from in others() {
            let mut buf = vec![0; 2 * EAGER_BYTES_MAX];
            comm.recv(&mut buf, from, 0).unwrap();
            assert_eq!(buf, message(from));
        }
        sends.into_iter().for_each(|send| drop(send.wait().unwrap()));
    });
}

/// What a call borrowed must not be touched after it: neither when an argument is refused, nor when a message
/// has the wrong length.
#[test]
fn a_refused_exchange_leaves_nothing_behind() {
    ranks(3, |comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
        let part = |peer: usize, range| Part { peer, tag: 5, range };
        let bad = comm.exchange(&[0u64; 1], &[part(size, 0..1)], &mut [0; 1], &[part(left, 0..1)]);
        assert_eq!(bad, Err(CommError::RankOutOfRange { rank: size, size }));
        // One sends two elements, the other wants one, while a long message is under way the other way round.
        let long = vec![rank as u64; EAGER_BYTES_MAX];
        let mut room = vec![0u64; 1 + EAGER_BYTES_MAX];
        let sends = [part(right, 0..2), part(left, 0..EAGER_BYTES_MAX)];
        let short =
            comm.exchange(&long, &sends, &mut room, &[part(right, 1..1 + EAGER_BYTES_MAX), part(left, 0..1)]);
        assert!(matches!(short, Err(CommError::Truncated { .. })), "{short:?}");
        // Nothing was consumed of the one that did not fit.
        let mut two = [9u64; 2];
        comm.recv(&mut two, left, 5).unwrap();
        assert_eq!(two, [left as u64; 2]);
        comm.barrier().unwrap();
        let mut got = [9u64; 1];
        comm.exchange(&[rank as u64], &[part(right, 0..1)], &mut got, &[part(left, 0..1)]).unwrap();
        assert_eq!(got, [left as u64]);
    });
}

#[test]
fn a_flood_of_small_messages_waits_for_a_slow_receiver() {
    const MESSAGES: u32 = 40_000;
    ranks(2, |comm| {
        if comm.rank() == 0 {
            (0..MESSAGES).for_each(|number| comm.send(&[number], 1, 0).unwrap());
            return;
        }
        // The last one is asked for first; it comes when the others have been taken in or announced.
        let mut buf = [0u32];
        for number in 0..MESSAGES {
            comm.recv(&mut buf, 0, 0).unwrap();
            assert_eq!(buf[0], number);
        }
    });
}

#[test]
fn a_send_that_nobody_waits_for_ends_behind_finalize() {
    let length = EAGER_BYTES_MAX + 1;
    let outcome = run(Config::calm(2), |mut world| {
        if world.rank() == 0 {
            drop(world.comm().isend(vec![7u8; length], 1, 0).unwrap());
        } else {
            let mut buf = vec![0u8; length];
            world.comm().recv(&mut buf, 0, 0).unwrap();
            assert!(buf.iter().all(|byte| *byte == 7));
        }
        world.finalize(vec![]).unwrap();
    });
    assert_eq!(outcome.ending, ended(0));
}

/// Counts to ten with all others, through repairs.
fn count(mut world: World) -> Result<u64, CommError> {
    let mut done = [0u64];
    let mut attempt = |world: &mut World| -> Result<(), CommError> {
        world.comm().allreduce(&mut done, Op::Max)?;
        while done[0] < 10 {
            world.step(done[0] + 1)?;
            world.comm().barrier()?;
            done[0] += 1;
        }
        world.finalize(vec![done[0] as u8])
    };
    loop {
        match attempt(&mut world) {
            Ok(()) => break,
            Err(error) if error.is_failure() => drop(world.repair(0)?),
            Err(other) => return Err(other),
        }
    }
    Ok(done[0])
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let simulate = |seed| {
        let config = Config { faults: Faults::kills(3, Duration::from_millis(20)), ..Config::rough(seed, 4) };
        run(config, count)
    };
    let mut traces = vec![];
    for seed in 0..20 {
        let (one, two) = (simulate(seed), simulate(seed));
        assert_eq!(
            (one.trace, &one.events, &one.history),
            (two.trace, &two.events, &two.history),
            "seed {seed}"
        );
        traces.push(one.trace);
    }
    traces.sort_unstable();
    traces.dedup();
    assert_eq!(traces.len(), 20);
}

#[test]
fn failures_from_the_command_line_strike() {
    let all = ["1@init", "1@step=4", "0,2@step=4:hang", "2@step=3:exit", "1@collective=5", "0@time=0.01"];
    for spec in all {
        let kills: Vec<KillSpec> = vec![spec.parse().unwrap(), "0@repair=1/reconnect".parse().unwrap()];
        let ranks_lost = kills[0].ranks.clone();
        let interval = Duration::from_millis(5);
        let outcome = run(Config { kills, interval, ..Config::rough(1, 3) }, count);
        assert_eq!(outcome.ending, ended(0), "{spec}");
        let results: Vec<_> = (0..3).map(|rank| outcome.result(rank).and_then(|r| r.as_ref().ok())).collect();
        assert_eq!(results, [Some(&10); 3], "{spec}");
        let lost: Vec<Rank> = outcome
            .events
            .iter()
            .filter_map(|(_, Event::Launcher(event))| match event {
                ArbiterEvent::Lost { rank, .. } => Some(*rank),
                _ => None,
            })
            .collect();
        assert!(ranks_lost.iter().all(|rank| lost.contains(rank)), "{spec}: lost {lost:?}");
    }
}

/// Stopped before it has connected, for ever or for a while: at the start of the job and as a replacement.
#[test]
fn a_process_that_hangs_before_it_has_joined_is_replaced() {
    let at_once = Duration::from_micros(1);
    for seed in 0..40 {
        let lasts =
            [None, Some(Duration::from_millis(300)), Some(Duration::from_secs(11))][seed as usize % 3];
        let blow = Blow::Pause(1, lasts);
        let explicit = match seed % 2 {
            0 => vec![Fault { trigger: Trigger::At(at_once), blow }],
            _ => {
                let born = Trigger::AfterLoss { losses: 1, delay: at_once };
                vec![Fault::kill_in_call(1, 0, 10 + seed % 10), Fault { trigger: born, blow }]
            }
        };
        let faults = Faults { explicit, ..Faults::default() };
        let outcome = run(Config { faults, ..Config::rough(seed, 3) }, count);
        assert_eq!(outcome.ending, ended(0), "seed {seed}");
        let results: Vec<_> = (0..3).map(|rank| outcome.result(rank).and_then(|r| r.as_ref().ok())).collect();
        assert_eq!(results, [Some(&10); 3], "seed {seed}");
        let late = |event: &ArbiterEvent| matches!(event, ArbiterEvent::Lost { rank: 1, cause, .. } if cause.contains("had not joined"));
        let times = outcome.events.iter().filter(|(_, Event::Launcher(event))| late(event)).count();
        let hangs = lasts.is_none_or(|lasts| lasts > Duration::from_secs(10));
        assert_eq!(times, usize::from(hangs), "seed {seed}");
    }
}

#[test]
fn a_kill_in_every_call_of_a_rank_is_repaired() {
    for call in 1..200 {
        let faults = Faults { explicit: vec![Fault::kill_in_call(1, 0, call)], ..Faults::default() };
        let outcome = run(Config { faults, ..Config::rough(call, 3) }, count);
        let done =
            outcome.events.iter().any(|(_, Event::Launcher(e))| matches!(e, ArbiterEvent::Finished { .. }));
        assert!(done, "call {call}: {:?}", outcome.ending);
    }
}

#[test]
fn a_deadlock_of_the_program_is_reported_and_not_suffered() {
    let config = Config { time_max: Duration::from_secs(5), ..Config::calm(2) };
    let outcome = run(config, |world| {
        let mut buf = [0u8];
        world.comm().recv(&mut buf, 1 - world.rank(), 0).map(|_| ())
    });
    let Ending::Hung(text) = outcome.ending else { panic!("{:?}", outcome.ending) };
    assert!(text.contains("rank 0.0 waits for links or news"), "{text}");
}

#[test]
fn a_goodbye_ends_the_job_with_its_status() {
    let outcome = run(Config::rough(3, 3), |world| match world.rank() {
        1 => world.abort(42, "enough"),
        _ => world.comm().barrier().unwrap_err(),
    });
    let due = CommError::Ended { code: 42, message: "enough".into() };
    assert_eq!(outcome.ending, Ending::Ended { code: 42, message: "enough".into() });
    assert!(
        outcome.finished.iter().all(|finished| finished.result == Ok(due.clone())),
        "{:?}",
        outcome.finished
    );
}

/// A path that is no text cannot be serialized.
fn unwritable() -> PathBuf {
    PathBuf::from(OsString::from_vec(vec![0xff]))
}

#[test]
fn a_value_that_its_root_cannot_give_is_an_error_on_all_ranks() {
    for size in 1..=5 {
        ranks(size, |comm| {
            let (rank, root) = (comm.rank(), size / 2);
            for value in [Some(unwritable()), None] {
                let got = comm.bcast_value(value.as_ref().filter(|_| rank == root), root);
                let Err(CommError::Value { from, what }) = got else { panic!("{rank} of {size}: {got:?}") };
                assert_eq!((from, what.contains("cannot be serialized")), (root, value.is_some()), "{what}");
            }
            let path = PathBuf::from("a/b");
            assert_eq!(comm.bcast_value(Some(&path), root), Ok(path));
            comm.barrier().unwrap();
        });
    }
}

/// A rank handles the error of a call that it has made with wrong arguments, and goes on. What the
/// others have sent it in that call is nothing of its next one.
#[test]
fn a_collective_that_one_rank_refuses_takes_no_part_in_the_next_one() {
    ranks(4, |comm| {
        let (rank, counts) = (comm.rank() as u64, [1, 2, 3, 4]);
        let mine = |number: u64| vec![10 * rank + number; comm.rank() + 1];
        let first = match comm.rank() {
            0 => comm.gatherv(&mine(1), &[1; 4][..3], 0),
            _ => comm.gatherv(&mine(1), &[], 0),
        };
        assert_eq!((first.is_err(), comm.rank() == 0), (comm.rank() == 0, first.is_err()));
        let second = comm.gatherv(&mine(2), &counts, 0).unwrap();
        let due = || (0..4).flat_map(|from| vec![10 * from + 2; from as usize + 1]).collect::<Vec<u64>>();
        assert_eq!(second, (comm.rank() == 0).then(due));
    });
}

#[test]
fn a_collective_that_one_rank_refuses_is_a_mismatch_on_the_others_if_calls_are_checked() {
    type Refused = fn(&Communicator) -> Result<(), CommError>;
    let calls: [(&str, Refused, Refused); 4] = [
        ("gatherv", |c| c.gatherv(&[1], &[1; 4], 1).map(drop), |c| c.gatherv(&[1], &[2; 4], 1).map(drop)),
        ("allgather", |c| c.allgather(&[1], &mut [0; 4]), |c| c.allgather(&[1], &mut [0; 5])),
        ("bcast", |c| c.bcast(&mut [1], 0), |c| c.bcast(&mut [1], 4)),
        ("alltoall", |c| c.ialltoall(vec![1; 4])?.wait().map(drop), |c| c.ialltoall(vec![1; 5]).map(drop)),
    ];
    for (name, good, bad) in calls {
        let messages = MessageSettings { check: true, ..MessageSettings::default() };
        let outcome = run(Config { messages, ..Config::calm(4) }, |mut world| {
            let comm = world.comm().clone();
            let said = if comm.rank() == 1 { bad(&comm) } else { good(&comm) };
            comm.barrier().unwrap();
            world.finalize(vec![]).unwrap();
            said.unwrap_err()
        });
        assert_eq!(outcome.ending, ended(0), "{name}");
        for rank in 0..4 {
            let error = outcome.result(rank).unwrap();
            let (is_told, text) = (matches!(error, CommError::Mismatch(_)), error.to_string());
            assert_eq!(is_told, rank != 1, "{name}: {text}");
            let due = format!("rank 1 calls {name} with arguments that it refuses");
            assert!(rank == 1 || text.contains(&due), "{text}");
        }
    }
}

/// A communicator may be freed while operations on it are under way; they end as ever (MPI 4.1,
/// section 7.4.3).
#[test]
fn a_request_whose_communicator_is_dropped_ends_as_ever() {
    for (seed, length) in (0..30).flat_map(|seed| [(seed, 4), (seed, EAGER_BYTES_MAX + 1)]) {
        let outcome = run(Config::rough(seed, 2), |mut world| {
            let (comm, other) = (world.comm().clone(), 1 - world.rank());
            let mine = vec![world.rank() as u8; length];
            let copy = comm.dup().unwrap();
            let receive = copy.irecv(vec![9u8; length], other, 5).unwrap();
            let from_any = copy.irecv(vec![9u8; length], Source::Any, TagSel::Any).unwrap();
            let sends = [5, 6].map(|tag| copy.issend(mine.clone(), other, tag).unwrap());
            let sum = copy.iallreduce(vec![1u64; length], Op::Sum).unwrap();
            let part = |tag| Part { peer: other, tag, range: 0..length };
            let plan = copy.plan::<u8>(&[part(7).into()], &[part(7).into()]).unwrap();
            let exchange = plan.start(mine.clone(), vec![9; length]).unwrap();
            drop((copy, plan));
            if seed.is_multiple_of(2) {
                comm.barrier().unwrap();
            }
            assert_eq!(receive.wait().unwrap().0, vec![other as u8; length]);
            assert_eq!(from_any.wait().unwrap().0, vec![other as u8; length]);
            sends.into_iter().for_each(|send| drop(send.wait().unwrap()));
            assert_eq!(sum.wait().unwrap(), vec![2; length]);
            assert_eq!(exchange.wait().unwrap().1, vec![other as u8; length]);
            // One that nobody waits for goes with its communicator.
            drop(comm.dup().unwrap().irecv(vec![0u8; 4], other, 1).unwrap());
            world.finalize(vec![]).unwrap();
        });
        assert_eq!(outcome.ending, ended(0), "seed {seed}, {length} bytes");
    }
}

#[test]
fn a_call_of_a_rank_that_has_left_the_job_is_refused_by_name() {
    for seed in 0..20 {
        let outcome = run(Config::rough(seed, 3), |mut world| {
            let comm = world.comm().clone();
            let late = comm.irecv(vec![0u8], comm.rank(), 7).unwrap();
            world.finalize(vec![]).unwrap();
            let left = |said: Result<(), CommError>| assert_eq!(said, Err(CommError::Left), "seed {seed}");
            let calls = |comm: &Communicator| {
                left(comm.barrier());
                left(comm.send(&[1u8], 0, 0));
                left(comm.recv(&mut [1u8], Source::Any, TagSel::Any).map(drop));
                left(comm.iprobe(0, 0).map(drop));
                left(comm.isend(vec![1u8], comm.rank(), 0).map(drop));
                left(comm.ibarrier().map(drop));
                left(comm.dup().map(drop));
                left(comm.agree(1).map(drop));
                left(comm.bcast_value(Some(&1), 0).map(drop));
            };
            calls(&comm);
            left(late.test().map(drop));
            left(world.finalize(vec![]));
            left(world.repair(0).map(drop));
            left(world.check());
            left(Err(world.abort(3, "too late")));
            drop(world);
            calls(&comm);
        });
        assert_eq!(outcome.ending, ended(0), "seed {seed}");
    }
}

/// Two ranks in a ring, of which one is replaced: both still receive from below what the other one
/// has sent up.
#[test]
fn a_replacement_has_the_grid_of_a_communicator_that_it_makes_of_a_record() {
    let record = Mutex::new(None);
    let attempt = |world: &mut World| -> Result<(), CommError> {
        let ring = match world.generation() {
            0 => {
                let grid = Grid::new(&[2], &[true]).expect("it is a ring");
                let ring = world.comm().cartesian(grid)?.expect("it has all ranks").comm().clone();
                *record.lock().unwrap() = Some(ring.record());
                ring
            }
            _ => {
                let record = record.lock().unwrap().clone().expect("it was made");
                world.communicator(&record)?.expect("it has all ranks")
            }
        };
        let (rank, other) = (ring.rank(), 1 - ring.rank());
        let graph = Graph::new(2, vec![other; 2], vec![other; 2]).expect("both exist");
        for step in 1..5 {
            world.step(step)?;
            let mut got = [0; 2];
            ring.neighbor_alltoall(&graph, &[10 * rank, 10 * rank + 1], &mut got)?;
            assert_eq!(got, [10 * other + 1, 10 * other], "generation {}", world.generation());
        }
        world.finalize(vec![])
    };
    let kills = vec!["1@step=3".parse().unwrap()];
    let outcome = run(Config { kills, ..Config::rough(1, 2) }, |mut world| {
        loop {
            match attempt(&mut world) {
                Ok(()) => return world.generation(),
                Err(error) if error.is_failure() => drop(world.repair(0).unwrap()),
                Err(other) => panic!("{other}"),
            }
        }
    });
    assert_eq!(outcome.ending, ended(0));
    assert_eq!([0, 1].map(|rank| outcome.result(rank).copied()), [Some(1); 2]);
}
