//! What a rank receives in a part of its program, kept so that it can do that part again without the others (`ft_proto::endpoint`), for layers that keep the states of ranks.

use super::World;
use ft_proto::error::CommError;
use ft_proto::lines;

impl World {
    /// What this rank is sent by others from now on, on the communicator of the ranks that compute and on those that the program makes, is kept. The same on all ranks that compute, at one place, with
    /// lines ([`World::begin_lines`]), and outside of what these are drawn in.
    ///
    /// # Errors
    /// A panic has unwound through a call.
    pub fn record_tape(&self) -> Result<(), CommError> {
        let core = &mut *self.core.enter()?;
        core.tapes = core.tapes.wrapping_add(1);
        core.driver.engine.record_tape();
        Ok(())
    }

    /// What this rank was sent since [`World::record_tape`].
    ///
    /// # Errors
    /// As [`World::record_tape`].
    pub fn take_tape(&self) -> Result<Vec<u8>, CommError> {
        Ok(self.core.enter()?.driver.engine.take_tape())
    }

    /// This rank does that part of its program again, alone: what it was sent then comes again, and what it sends does not leave, as it has come once. The line to which it goes back is
    /// [restored](World::restore_line). A wait for a message that is not on the tape ends with [`CommError::Diverged`].
    ///
    /// # Errors
    /// As [`World::record_tape`]; [`CommError::Line`]: this is no tape.
    pub fn play_tape(&self, tape: &[u8]) -> Result<(), CommError> {
        let tape = lines::read(tape).ok_or(CommError::Line)?;
        let core = &mut *self.core.enter()?;
        core.tapes = core.tapes.wrapping_add(1);
        core.driver.engine.play_tape(tape.late);
        Ok(())
    }

    /// That part of the program is done again.
    ///
    /// # Errors
    /// As [`World::record_tape`]; [`CommError::Diverged`]: it has not received all that it received the first time.
    pub fn end_tape(&self) -> Result<(), CommError> {
        match self.core.enter()?.driver.engine.end_tape() {
            true => Ok(()),
            false => Err(CommError::Diverged),
        }
    }
}
