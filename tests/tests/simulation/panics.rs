//! Panics that a program catches around a call, in code that the call runs: nobody gets a result that the rest of that call has
//! spoilt, and nobody waits for it for ever.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};

use ft_checkpoint::checkpointer::Checkpointer;
use ft_checkpoint::{Protect, ProtectError, StatePart, Walk};
use ft_comm::collective::{Space, Span as Bytes, Step};
use ft_comm::{CommError, Communicator, Custom, Op, Schedule, World};
use ft_sim::{self as sim, Config, Ending, SimOutcome};

const RANKS: usize = 3;

/// What a rank says of the call after the panic, and whether it was the one that has panicked.
type Said = (bool, Result<(), CommError>);

/// Runs a call on all ranks, which panics on `careless`, and then others.
fn run(
    seed: u64,
    careless: usize,
    call: impl Fn(&World, bool) -> Result<(), CommError> + Sync,
) -> SimOutcome<Said> {
    let config = if seed == 0 { Config::calm(RANKS) } else { Config::rough(seed, RANKS) };
    sim::run(config, |world| {
        let panics = world.rank() == careless;
        let caught = panic::catch_unwind(AssertUnwindSafe(|| call(&world, panics)));
        (caught.is_err(), further(world))
    })
}

fn further(mut world: World) -> Result<(), CommError> {
    let mut ones = vec![1u64; 2000];
    world.comm().allreduce(&mut ones, Op::Sum)?;
    if ones.iter().any(|sum| *sum != RANKS as u64) {
        return Err(CommError::Count("wrong sums".into()));
    }
    world.finalize(vec![])
}

/// The rank that has panicked is told so, the others that it is gone or that the job has ended. Gives whether it has.
fn check(outcome: &SimOutcome<Said>, careless: usize, what: &str) -> bool {
    let Ending::Ended { code, message } = &outcome.ending else { panic!("{what}: {:?}", outcome.ending) };
    let (has_panicked, _) = outcome.result(careless).unwrap_or_else(|| panic!("{what}: it did not return"));
    if !has_panicked {
        assert_eq!((*code, &**message), (0, ""), "{what}");
        return false;
    }
    assert_eq!(*code, 1, "{what}: {message}");
    // Another rank that leaves because a link broke may have the first word.
    let causes = [format!("rank {careless}: a panic that was caught"), " left the job before all".to_owned()];
    assert!(causes.iter().any(|cause| message.contains(cause)), "{what}: {message}");
    for rank in 0..RANKS {
        // The simulator ends whoever does not end by itself.
        let Some((has_panicked, said)) = outcome.result(rank) else { continue };
        assert_eq!(*has_panicked, rank == careless, "{what}");
        match said {
            Err(CommError::Panicked) if rank == careless => {}
            Err(CommError::Ended { code: 1, .. }) if rank != careless => {}
            // Its links may end before the job is known to have: a repair would say so.
            Err(error) if rank != careless && error.is_failure() => {}
            other => panic!("{what}, rank {rank}: {other:?}"),
        }
    }
    true
}

fn adding(panics: bool) -> Custom<impl Fn(u64, u64) -> u64> {
    let left = Cell::new(2);
    Custom::commutative(move |a: u64, b: u64| {
        // Not at the first element: some of what came is combined already.
        left.set(left.get() - 1);
        assert!(!(panics && left.get() <= 0), "an operation that fails");
        a + b
    })
}

#[test]
fn in_an_operation() {
    type Reduction = fn(&Communicator, Vec<u64>, bool) -> Result<(), CommError>;
    let reductions: [(&str, Reduction); 4] = [
        ("allreduce", |comm, mut buf, panics| comm.allreduce(&mut buf, adding(panics))),
        ("iallreduce", |comm, buf, panics| comm.iallreduce(buf, adding(panics))?.wait().map(drop)),
        ("scan behind a barrier", |comm, buf, panics| {
            let request = comm.iscan(buf, adding(panics))?;
            comm.barrier()?;
            request.wait().map(drop)
        }),
        ("reduce_scatter", |comm, mut buf, panics| {
            let len = buf.len();
            let counts = [len / 3, len / 3, len - 2 * (len / 3)];
            comm.reduce_scatter(&mut buf, &counts, adding(panics))
        }),
    ];
    for (name, reduction) in reductions {
        for elements in [3, 2000, 100_000] {
            let mut panics = 0;
            for seed in 0..if elements > 10_000 { 3 } else { 20 } {
                let careless = seed as usize % RANKS;
                let outcome = run(seed, careless, |world, panics| {
                    reduction(world.comm(), vec![world.rank() as u64; elements], panics)
                });
                let has = check(&outcome, careless, &format!("{name} of {elements}, seed {seed}"));
                panics += u32::from(has);
            }
            // Not all ranks have something to combine in all algorithms.
            assert!(panics > 0, "{name} of {elements}");
        }
    }
}

#[test]
fn in_a_computation_of_a_schedule() {
    for seed in 0..20 {
        let outcome = run(seed, 1, |world, panics| {
            let (rank, part) = (world.rank(), |space| Bytes { space, range: 0..1000 });
            let steps = vec![
                Step::send((rank + 1) % RANKS, part(Space::Input)),
                Step::recv((rank + RANKS - 1) % RANKS, 0..1000),
                Step::Apply { number: 0, reads: vec![], changes: vec![part(Space::Buffer)] },
                Step::send((rank + 1) % RANKS, part(Space::Buffer)),
                Step::recv((rank + RANKS - 1) % RANKS, 0..1000),
            ];
            let schedule = Schedule::new(steps, move |_, _| assert!(!panics, "a computation that fails"));
            world.comm().run_schedule(&schedule, &[7; 1000], &mut [0; 1000])
        });
        assert!(check(&outcome, 1, &format!("schedule, seed {seed}")));
    }
}

/// A state whose first field cannot be written.
#[derive(Default)]
struct Careless(bool);

impl Protect for Careless {
    fn walk<W: Walk>(&mut self, part: StatePart, walk: &mut W) -> Result<(), ProtectError> {
        assert!(!self.0, "a state that fails");
        if part == StatePart::Variable { walk.bytes(&mut [1, 2, 3]) } else { Ok(()) }
    }
}

/// The others wait for the metadata of this rank.
#[test]
fn in_a_state_that_is_written() {
    for seed in 0..20 {
        let outcome = run(seed, 1, |world, panics| {
            let scheme = "xor".parse().expect("a scheme");
            let mut checkpointer = Checkpointer::new(world, scheme).expect("it fits");
            let taken = checkpointer.checkpoint(world, &mut Careless(panics));
            assert!(!panics, "it went well");
            taken.map_err(|error| match error {
                ft_checkpoint::CheckpointError::Comm(error) => error,
                other => panic!("{other}"),
            })
        });
        assert!(check(&outcome, 1, &format!("checkpoint, seed {seed}")));
    }
}

/// A state that cannot be walked through once more after so many times.
struct Worn(u32);

impl Protect for Worn {
    fn walk<W: Walk>(&mut self, part: StatePart, walk: &mut W) -> Result<(), ProtectError> {
        if part == StatePart::Constant {
            return Ok(());
        }
        self.0 = self.0.checked_sub(1).expect("a state that fails");
        walk.bytes(&mut [7; 3000])
    }
}

/// The first checkpoint counts and copies the state. The second one, of one copy alone, looks at it, makes redundancy of it while the
/// others wait for that, and copies it when it is committed.
#[test]
fn in_a_state_of_which_redundancy_is_made() {
    for (walks, seed) in (2..5).flat_map(|walks| (0..20).map(move |seed| (walks, seed))) {
        let outcome = run(seed, 1, |world, panics| {
            let mut checkpointer =
                Checkpointer::new(world, "xor".parse().expect("a scheme")).expect("it fits");
            checkpointer.set_saves_memory(true);
            let mut state = Worn(if panics { walks } else { 100 });
            let taken = (0..2).try_for_each(|_| checkpointer.checkpoint(world, &mut state));
            assert!(!panics, "it went well");
            taken.map_err(|error| match error {
                ft_checkpoint::CheckpointError::Comm(error) => error,
                other => panic!("{other}"),
            })
        });
        assert!(check(&outcome, 1, &format!("after {walks} walks, seed {seed}")));
    }
}

/// A call from within another one is refused, and that one goes on.
#[test]
fn a_call_within_a_call_is_refused() {
    let nested = sim::ranks(RANKS, |comm| {
        let inner = comm.clone();
        let adding = Custom::commutative(move |a: u64, b: u64| {
            let refused = [
                inner.allreduce(&mut [a], Op::Sum),
                inner.send(&[b], 0, 1),
                inner.iallreduce(vec![a], Op::Sum).map(drop),
                inner.agree(1).map(drop),
            ];
            assert!(refused.iter().all(|refused| *refused == Err(CommError::Nested)), "{refused:?}");
            a + b + 100 * u64::from(inner.size() != RANKS || inner.rank() >= RANKS)
        });
        let mut sums = vec![comm.rank() as u64; 100];
        comm.allreduce(&mut sums, adding)?;
        let mut again = [1u64];
        comm.allreduce(&mut again, Op::Sum)?;
        Ok::<_, CommError>((sums, again))
    });
    for rank in nested {
        assert_eq!(rank, Ok((vec![3; 100], [3])));
    }
}
