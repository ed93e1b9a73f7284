//! A team: the caller of a loop and helpers, which share its tasks.
//!
//! A loop that is shared is a *region*. It is opened for helpers to enter, and closed when the caller finds no task left; then
//! it waits for those who are inside. Tasks are dealt out in equal ranges, one for each thread; whoever has finished its own
//! range takes from those of the others.
//!
//! The crate's only `unsafe` is here. A region borrows what its caller has on the stack, and helpers outlive it: the borrow
//! is made `'static` for the time between opening and closing. What makes that right is said where it is done.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::{self, JoinHandle, Thread};

use crate::count;

/// How often a helper looks for the next region before it sleeps: some 50 microseconds, about the time between two loops of
/// a solver's iteration.
const LOOKS: u32 = if cfg!(miri) { 10 } else { 2000 };

/// How often a caller looks whether the last helper has left before it lets other processes run.
const PATIENCE: u32 = 1000;

/// What a region does, task by task.
type Task<'a> = &'a (dyn Fn(usize) + Sync + 'a);

thread_local! {
    static CURRENT: RefCell<Current> = const { RefCell::new(Current::Process) };
}

/// Whose threads share the loops of a thread.
#[derive(Clone)]
enum Current {
    /// Those of the team that all threads of the process have.
    Process,
    /// Those of another team.
    Installed(Team),
    /// Nobody's: the thread is a helper.
    Alone,
}

/// Threads that share loops: see the [crate].
#[derive(Clone)]
pub struct Team(Arc<Threads>);

/// The helpers, and what they share with callers.
struct Threads {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
}

struct Shared {
    /// A caller has the team.
    busy: AtomicBool,
    /// Counts regions, so that a helper sees that there is a new one.
    opened: AtomicUsize,
    /// The region that helpers may enter.
    region: Mutex<Option<Task<'static>>>,
    /// Helpers inside the region.
    inside: AtomicUsize,
    /// What the tasks of the region panicked with, the first one.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// The caller's range of tasks, and each helper's.
    ranges: Vec<Tasks>,
    /// Each helper's sleep.
    sleeps: Vec<Sleep>,
    ends: AtomicBool,
}

/// A range of tasks, from which anybody may take. On a line of the cache of its own.
#[derive(Default)]
#[repr(align(128))]
struct Tasks {
    next: AtomicUsize,
    end: AtomicUsize,
}

#[derive(Default)]
struct Sleep {
    asleep: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Team {
    /// A team of `threads`, the caller of a loop included. Where the system refuses to start that many it has fewer.
    pub fn new(threads: usize) -> Self {
        let threads = threads.max(1);
        let shared = Arc::new(Shared {
            busy: AtomicBool::new(false),
            opened: AtomicUsize::new(0),
            region: Mutex::new(None),
            inside: AtomicUsize::new(0),
            panic: Mutex::new(None),
            ranges: (0..threads).map(|_| Tasks::default()).collect(),
            sleeps: (0..threads).map(|_| Sleep::default()).collect(),
            ends: AtomicBool::new(false),
        });
        let start = |helper: usize| {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name(format!("ft-thread-{helper}")).spawn(move || shared.help(helper))
        };
        let helpers = (1..threads).map_while(|helper| start(helper).ok()).collect();
        Self(Arc::new(Threads { shared, helpers }))
    }

    /// The team whose threads share the loops of the calling thread; none if that is a helper.
    pub(crate) fn current() -> Option<Self> {
        static PROCESS: OnceLock<Team> = OnceLock::new();
        match CURRENT.with_borrow(Clone::clone) {
            // Whoever has to say that `FT_THREADS` makes no sense asks `wanted`.
            Current::Process => Some(PROCESS.get_or_init(|| Self::new(count::wanted().unwrap_or(1))).clone()),
            Current::Installed(team) => Some(team),
            Current::Alone => None,
        }
    }

    /// Calls `f`, whose loops this team shares in the place of the process's.
    pub fn install<T>(&self, f: impl FnOnce() -> T) -> T {
        struct Restore(Current);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.set(std::mem::replace(&mut self.0, Current::Process));
            }
        }
        let _restore = Restore(CURRENT.replace(Current::Installed(self.clone())));
        f()
    }

    /// Threads, the caller of a loop included.
    pub fn threads(&self) -> usize {
        1 + self.0.helpers.len()
    }

    /// As [`crate::run`], on this team.
    pub(crate) fn run(&self, tasks: usize, task: Task<'_>) {
        let shared = &self.0.shared;
        if tasks < 2 || self.threads() == 1 || shared.busy.swap(true, Ordering::Acquire) {
            return (0..tasks).for_each(task);
        }
        shared.deal(tasks, self.threads());
        shared.open(task, self.threads());
        let own = catch_unwind(AssertUnwindSafe(|| shared.work(0, task)));
        shared.close();
        let others = lock(&shared.panic).take();
        shared.busy.store(false, Ordering::Release);
        if let Some(panic) = own.err().or(others) {
            resume_unwind(panic);
        }
    }
}

impl fmt::Debug for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Team").field("threads", &self.threads()).finish()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::SeqCst);
        self.shared.wake(self.helpers.len());
        for helper in self.helpers.drain(..) {
            // A helper that drops the last handle of its team cannot wait for itself; it ends all the same.
            if helper.thread().id() != thread::current().id() {
                let _ = helper.join();
            }
        }
    }
}

impl Shared {
    /// Deals out tasks to `threads`, in ranges of equal length.
    fn deal(&self, tasks: usize, threads: usize) {
        for (thread, range) in self.ranges.iter().take(threads).enumerate() {
            range.next.store(tasks * thread / threads, Ordering::Relaxed);
            range.end.store(tasks * (thread + 1) / threads, Ordering::Relaxed);
        }
    }

    /// Opens a region, which [`Shared::close`] has to end before the borrow of `task` does.
    fn open(&self, task: Task<'_>, threads: usize) {
        // SAFETY: The reference is used by helpers only, each between `enter`, which gets it out of an open region under the
        // lock and counts the helper there, and `leave`. `close` takes it out of the region under the lock, so that nobody
        // enters any more, and waits until all have left. `Team::run` calls `close` before it returns or unwinds: between
        // opening and closing, what may panic is caught.
        #[expect(unsafe_code, reason = "a borrow for the time of a region")]
        let task = unsafe { std::mem::transmute::<Task<'_>, Task<'static>>(task) };
        *lock(&self.region) = Some(task);
        self.wake(threads - 1);
    }

    /// Ends the region: nobody enters, and all have left.
    fn close(&self) {
        *lock(&self.region) = None;
        let mut looks = 0;
        while self.inside.load(Ordering::Acquire) > 0 {
            looks += 1;
            if looks < PATIENCE { std::hint::spin_loop() } else { thread::yield_now() }
        }
    }

    /// Enters the region, if there is one.
    fn enter(&self) -> Option<Task<'static>> {
        let region = lock(&self.region);
        region.inspect(|_| _ = self.inside.fetch_add(1, Ordering::Relaxed))
    }

    fn leave(&self) {
        self.inside.fetch_sub(1, Ordering::Release);
    }

    /// Does tasks until none is left: of its own range first, then of the others.
    fn work(&self, own: usize, task: Task<'_>) {
        let (before, after) = self.ranges.split_at(own);
        for range in after.iter().chain(before) {
            let end = range.end.load(Ordering::Relaxed);
            loop {
                let next = range.next.fetch_add(1, Ordering::Relaxed);
                if next >= end {
                    break;
                }
                task(next);
            }
        }
    }

    /// The life of a helper.
    fn help(&self, helper: usize) {
        CURRENT.set(Current::Alone);
        let sleep = &self.sleeps[helper];
        sleep.thread.get_or_init(thread::current);
        let mut seen = 0;
        loop {
            seen = self.wait(sleep, seen);
            if self.ends.load(Ordering::SeqCst) {
                return;
            }
            let Some(task) = self.enter() else { continue };
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.work(helper, task))) {
                lock(&self.panic).get_or_insert(panic);
            }
            self.leave();
        }
    }

    /// Waits until more than `seen` regions have been opened.
    fn wait(&self, sleep: &Sleep, seen: usize) -> usize {
        let opened = || Some(self.opened.load(Ordering::SeqCst)).filter(|opened| *opened != seen);
        for _ in 0..LOOKS {
            if let Some(opened) = opened() {
                return opened;
            }
            std::hint::spin_loop();
        }
        // Said before the last look: whoever opens a region after that look sees it.
        loop {
            sleep.asleep.store(true, Ordering::SeqCst);
            if let Some(opened) = opened() {
                sleep.asleep.store(false, Ordering::SeqCst);
                return opened;
            }
            thread::park();
        }
    }

    /// Lets helpers see that there is something new, and wakes those who sleep.
    fn wake(&self, helpers: usize) {
        self.opened.fetch_add(1, Ordering::SeqCst);
        for sleep in &self.sleeps[1..=helpers] {
            if sleep.asleep.load(Ordering::SeqCst) && sleep.asleep.swap(false, Ordering::SeqCst) {
                sleep.thread.get().expect("said before it sleeps").unpark();
            }
        }
    }
}

/// What is behind a lock is whole whatever panics: nothing is called while it is held.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    const ROUNDS: usize = if cfg!(miri) { 20 } else { 20_000 };

    /// How often each of `tasks` is done.
    fn counts(team: &Team, tasks: usize) -> Vec<usize> {
        let counts: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
        team.run(tasks, &|task| _ = counts[task].fetch_add(1, Ordering::Relaxed));
        counts.into_iter().map(AtomicUsize::into_inner).collect()
    }

    #[test]
    fn every_task_is_done_once() {
        for threads in 1..=4 {
            let team = Team::new(threads);
            assert_eq!(team.threads(), threads);
            for tasks in [0, 1, 2, 3, 7, 64] {
                assert_eq!(counts(&team, tasks), vec![1; tasks], "{threads} threads");
            }
        }
    }

    #[test]
    fn what_tasks_have_written_is_there_when_all_are_done() {
        let team = Team::new(3);
        for round in 0..ROUNDS {
            // On the stack, and gone after the round.
            let sums = [const { AtomicU64::new(0) }; 5];
            team.run(5, &|task| sums[task].store((round + task) as u64, Ordering::Relaxed));
            let sums = sums.map(AtomicU64::into_inner);
            assert_eq!(sums, [0, 1, 2, 3, 4].map(|task| (round + task) as u64));
        }
    }

    #[test]
    fn helpers_wake_up() {
        let team = Team::new(2);
        for _ in 0..10 {
            // The second task ends only if somebody else does the first.
            let met = AtomicUsize::new(0);
            team.run(2, &|_| {
                met.fetch_add(1, Ordering::SeqCst);
                while met.load(Ordering::SeqCst) < 2 {
                    thread::yield_now();
                }
            });
            while !team.0.shared.sleeps[1].asleep.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        }
    }

    #[test]
    fn a_panic_comes_out_of_the_loop_and_the_team_goes_on() {
        let team = Team::new(3);
        for bad in 0..6 {
            let panic = catch_unwind(AssertUnwindSafe(|| {
                team.run(6, &|task| assert_ne!(task, bad, "task {bad}"));
            }));
            let said = *panic.unwrap_err().downcast::<String>().unwrap();
            assert!(said.contains(&format!("task {bad}")), "{said}");
            assert_eq!(counts(&team, 9), [1; 9]);
        }
    }

    #[test]
    fn loops_within_loops_and_of_several_callers_are_done() {
        let team = Team::new(3);
        let done = AtomicUsize::new(0);
        let nested = || crate::run(4, |_| crate::run(5, |_| _ = done.fetch_add(1, Ordering::Relaxed)));
        thread::scope(|scope| (0..3).for_each(|_| _ = scope.spawn(|| team.install(nested))));
        assert_eq!(done.into_inner(), 3 * 4 * 5);
    }

    #[test]
    fn a_team_is_installed_for_a_call() {
        let before = crate::threads();
        Team::new(3).install(|| {
            assert_eq!(crate::threads(), 3);
            Team::new(2).install(|| assert_eq!(crate::threads(), 2));
            assert_eq!(crate::threads(), 3);
        });
        assert_eq!(crate::threads(), before);
    }

    #[test]
    fn parts_are_moved_to_whoever_takes_them() {
        let mut numbers = vec![0; 1000];
        let parts: Vec<_> = numbers.chunks_mut(7).enumerate().collect();
        Team::new(4).install(|| {
            crate::for_each(parts, |(at, part)| {
                part.iter_mut().enumerate().for_each(|(i, number)| *number = 7 * at + i);
            });
        });
        assert!(numbers.into_iter().eq(0..1000));
    }
}
