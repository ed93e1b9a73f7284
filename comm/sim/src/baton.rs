//! The baton: of the threads of a simulated job, exactly the one that has it runs.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::kernel::{Holder, Kernel};

/// The kernel and the thread that called `run`.
pub(super) struct Shared {
    pub(super) kernel: Mutex<Kernel>,
    pub(super) main: Condvar,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Kernel> {
        self.kernel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the baton on, without waiting to get it again.
    pub(super) fn release(&self, kernel: &mut Kernel) {
        kernel.schedule();
        self.signal(kernel);
    }

    pub(super) fn signal(&self, kernel: &Kernel) {
        match kernel.holder {
            Holder::Main => self.main.notify_one(),
            Holder::Process(peer) => {
                kernel.processes.get(peer).into_iter().for_each(|process| process.turn.notify_one());
            }
        }
    }

    /// Gives the baton on and waits until it comes back to `me`.
    pub(super) fn pass<'a>(
        &self,
        mut kernel: MutexGuard<'a, Kernel>,
        me: Holder,
        turn: &Condvar,
    ) -> MutexGuard<'a, Kernel> {
        kernel.schedule();
        if kernel.holder != me {
            self.signal(&kernel);
        }
        self.await_turn(kernel, me, turn)
    }

    pub(super) fn await_turn<'a>(
        &self,
        mut kernel: MutexGuard<'a, Kernel>,
        me: Holder,
        turn: &Condvar,
    ) -> MutexGuard<'a, Kernel> {
        while kernel.holder != me {
            kernel = turn.wait(kernel).unwrap_or_else(PoisonError::into_inner);
        }
        kernel
    }
}

pub(super) type Handle = Arc<Shared>;
