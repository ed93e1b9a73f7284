//! Threads of one process that share short loops.
//!
//! A rank with several cores computes on all of them: products, sweeps and codes are loops over pieces that do not depend on
//! each other, so which thread takes which piece changes no bit of an answer. The loops are short, some 10 microseconds, and
//! there are several in an iteration of a solver. So helpers that have just had work look for more for a moment before they
//! sleep, and whoever has a loop to share waits for nobody who has not begun: if no helper comes, it does all pieces itself.
//!
//! ```
//! let mut squares = vec![0; 1000];
//! let pieces: Vec<(usize, &mut [usize])> = squares.chunks_mut(100).enumerate().collect();
//! ft_threads::for_each(pieces, |(piece, squares)| {
//!     squares.iter_mut().enumerate().for_each(|(i, square)| *square = (100 * piece + i).pow(2));
//! });
//! assert_eq!(squares[999], 998_001);
//! ```
//!
//! Every process has a team as large as `FT_THREADS` in its environment says, which the launcher sets (`ftrun --threads`), or
//! as there are cores that it may run on. [`Team::install`] has other numbers of threads.

mod count;
mod team;

use std::sync::Mutex;

pub use count::{ENV_THREADS, ThreadsError, read, wanted};
pub use team::Team;

/// Threads that share the loops of the calling thread, itself included.
pub fn threads() -> usize {
    Team::current().map_or(1, |team| team.threads())
}

/// Calls `task` once for each number below `tasks`, on the threads of the current [`Team`], and returns when all are done.
///
/// Neighbors tend to come to the same thread, the same one every time. A call from within a task runs its tasks alone, and so
/// does one that finds the team busy with another thread's.
///
/// # Panics
/// If a task does; others may have been left out then.
pub fn run(tasks: usize, task: impl Fn(usize) + Sync) {
    match Team::current() {
        Some(team) => team.run(tasks, &task),
        None => (0..tasks).for_each(task),
    }
}

/// Calls `work` once for each of `parts`, as [`run`] does.
///
/// # Panics
/// If `work` does.
pub fn for_each<P: Send>(parts: Vec<P>, work: impl Fn(P) + Sync) {
    if parts.len() < 2 || threads() == 1 {
        return parts.into_iter().for_each(work);
    }
    let parts: Vec<Mutex<Option<P>>> = parts.into_iter().map(|part| Mutex::new(Some(part))).collect();
    run(parts.len(), |i| {
        let part = parts[i].lock().expect("it is held for no call").take();
        work(part.expect("each number comes once"));
    });
}
