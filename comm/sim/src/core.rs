//! One core for all threads of a simulation: one of them runs at a time, and to wake another core for each turn takes longer than most turns.

use std::sync::{Mutex, PoisonError};

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// How many simulations there are on each core.
static TAKEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// While this lives, its thread and those that it starts are on one core, where the fewest other simulations of this process are. Of several such cores it is the one on which the thread is already: if
/// all processes took the first, those that simulate at the same time would share it.
pub(super) struct Core {
    number: usize,
    before: CpuSet,
}

impl Core {
    /// None where the system does not let a thread choose; then it goes on as it was.
    pub(super) fn take() -> Option<Self> {
        let before = sched_getaffinity(None).ok()?;
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        taken.resize(CpuSet::MAX_CPU, 0);
        let here = sched_getcpu();
        let number = (0..CpuSet::MAX_CPU)
            .filter(|core| before.is_set(*core))
            .min_by_key(|core| (taken[*core], *core != here))?;
        let mut one = CpuSet::new();
        one.set(number);
        sched_setaffinity(None, &one).ok()?;
        taken[number] += 1;
        Some(Self { number, before })
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        TAKEN.lock().unwrap_or_else(PoisonError::into_inner)[self.number] -= 1;
        // Where it fails the thread stays on one core, which is slower and no more.
        let _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_on_one_core_until_the_simulation_ends() {
        let cores = || sched_getaffinity(None).unwrap();
        let before = cores();
        let core = Core::take().unwrap();
        assert_eq!(cores().count(), 1);
        assert!(before.is_set(core.number) && cores().is_set(core.number));
        let of_another = std::thread::spawn(move || cores().count()).join().unwrap();
        assert_eq!(of_another, 1);
        drop(core);
        assert_eq!(cores(), before);
    }
}
