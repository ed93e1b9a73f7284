//! A process that a rank has forked calls the library: each call is refused, and the sums of the
//! ranks are right.
//!
//! `ftrun -n 3 target/release/examples/forked`
#![expect(unsafe_code, reason = "a fork has no safe interface")]

use ft_comm::{CommError, MainError, Op, World};

fn main() -> Result<(), MainError> {
    let mut world = World::init()?;
    let comm = world.comm().clone();
    let sum = |value: u64| {
        let mut sum = [value];
        comm.allreduce(&mut sum, Op::Sum).map(|()| sum[0])
    };
    let due = comm.size() as u64;
    for _ in 0..20 {
        assert_eq!(sum(1)?, due);
    }
    // SAFETY: the child makes calls that are refused, drops its handles, and returns from `main`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = sum(1000) == Err(CommError::Forked)
            && world.repair(0).is_err_and(|error| error == CommError::Forked)
            && world.finalize(Vec::new()) == Err(CommError::Forked);
        world.mark(7);
        return if refused { Ok(()) } else { Err("a call of a forked process was not refused".into()) };
    }
    for _ in 0..2000 {
        assert_eq!(sum(1)?, due);
    }
    let mut status = 0;
    // SAFETY: it waits for a child of this process and writes its status to a number of its own.
    let waited = unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!((waited, status), (child, 0), "the child ends well");
    assert_eq!(sum(1)?, due);
    println!("rank {}: {due}", comm.rank());
    Ok(world.finalize(Vec::new())?)
}
