//! What all communicators of a rank share: the driver, and the failures to inject.

use crate::driver::Driver;
use crate::error::CommError;
use crate::fault::Faults;
use crate::rank::Generation;
use crate::wire::control::ToArbiter;

pub(crate) struct Core {
    pub(crate) driver: Driver,
    pub(crate) faults: Faults,
    /// The step that the program is in, while no communication of it was seen.
    pub(crate) armed_step: Option<u64>,
    /// Collective operations that this process has begun.
    pub(crate) collectives: u64,
}

impl Core {
    /// Every communication begins here: an injected failure of the current step strikes.
    pub(crate) fn enter(&mut self) -> Result<(), CommError> {
        match self.armed_step.take() {
            Some(step) => self.fault_point("step", step, None),
            None => Ok(()),
        }
    }

    /// Every collective begins here.
    pub(crate) fn enter_collective(&mut self) -> Result<(), CommError> {
        self.enter()?;
        self.collectives += 1;
        self.fault_point("collective", self.collectives, None)
    }

    /// If a failure is to be injected here, tells the launcher and waits for it.
    pub(crate) fn fault_point(
        &mut self,
        name: &str,
        number: u64,
        phase: Option<&str>,
    ) -> Result<(), CommError> {
        match self.faults.reached(name, number, phase) {
            Some(spec) => {
                self.driver.submit(ToArbiter::Reached { spec });
                self.driver.await_news(|_| None)
            }
            None => Ok(()),
        }
    }

    pub(crate) fn generation(&self) -> Generation {
        self.driver.generation()
    }

    /// Finishes the step: an injected failure of a step without communication strikes at its end.
    pub(crate) fn step(&mut self, next: u64) -> Result<(), CommError> {
        self.enter()?;
        self.armed_step = Some(next);
        Ok(())
    }
}
