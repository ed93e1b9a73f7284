//! What a rank receives in a part of its program, kept so that it can do that part again without the others (`ft_proto::endpoint`), for layers that keep the states of ranks.

use super::World;
use ft_proto::error::CommError;
use ft_proto::lines;

/// Before the messages of a tape: the context that the next communicator could have when it began,
/// and when it ended.
const HEAD: usize = 8;

impl World {
    /// What this rank is sent by others from now on, on the communicator of the ranks that compute and on those that the program makes, is kept. The same on all ranks that compute, at one place, with
    /// lines ([`World::begin_lines`]), and outside of what these are drawn in. The tape also has
    /// the contexts of the communicators that are made: other ranks keep theirs, so one that is
    /// made again has to be the same.
    ///
    /// # Errors
    /// A panic has unwound through a call.
    pub fn record_tape(&self) -> Result<(), CommError> {
        let core = &mut *self.core.enter()?;
        core.tapes = core.tapes.wrapping_add(1);
        core.tape_start = core.next_context();
        core.driver.engine.record_tape();
        Ok(())
    }

    /// What this rank was sent since [`World::record_tape`].
    ///
    /// # Errors
    /// As [`World::record_tape`].
    pub fn take_tape(&self) -> Result<Vec<u8>, CommError> {
        let core = &mut *self.core.enter()?;
        let contexts = [core.tape_start, core.next_context()];
        let head = contexts.into_iter().flat_map(u32::to_le_bytes);
        Ok(head.chain(core.driver.engine.take_tape()).collect())
    }

    /// This rank does that part of its program again, alone: what it was sent then comes again, and what it sends does not leave, as it has come once. The line to which it goes back is
    /// [restored](World::restore_line). A wait for a message that is not on the tape ends with [`CommError::Diverged`].
    ///
    /// # Errors
    /// As [`World::record_tape`]; [`CommError::Line`]: this is no tape.
    pub fn play_tape(&self, tape: &[u8]) -> Result<(), CommError> {
        let ((start, end), messages) = contexts(tape).ok_or(CommError::Line)?;
        let tape = lines::read(messages).ok_or(CommError::Line)?;
        let core = &mut *self.core.enter()?;
        core.tapes = core.tapes.wrapping_add(1);
        core.repeat_contexts(start, end);
        core.driver.engine.play_tape(tape.late);
        Ok(())
    }

    /// All ranks do that part of their programs again together, until [`World::end_together`]:
    /// communicators that it makes are those that it made when the `tape` was recorded. The line to
    /// which the ranks go back is [restored](World::restore_line).
    ///
    /// # Errors
    /// As [`World::play_tape`].
    pub fn repeat_together(&self, tape: &[u8]) -> Result<(), CommError> {
        let ((start, end), _) = contexts(tape).ok_or(CommError::Line)?;
        self.core.enter()?.repeat_contexts(start, end);
        Ok(())
    }

    /// That part of the program is done again, by all ranks.
    ///
    /// # Errors
    /// As [`World::record_tape`].
    pub fn end_together(&self) -> Result<(), CommError> {
        self.core.enter()?.end_repeat();
        Ok(())
    }

    /// That part of the program is done again.
    ///
    /// # Errors
    /// As [`World::record_tape`]; [`CommError::Diverged`]: it has not received all that it received the first time.
    pub fn end_tape(&self) -> Result<(), CommError> {
        let core = &mut *self.core.enter()?;
        core.end_repeat();
        match core.driver.engine.end_tape() {
            true => Ok(()),
            false => Err(CommError::Diverged),
        }
    }
}

/// The contexts between which those lie that a tape has made, and the messages behind them.
fn contexts(tape: &[u8]) -> Option<((u32, u32), &[u8])> {
    let (head, messages) = tape.split_first_chunk::<HEAD>()?;
    let [start, end] = [&head[..4], &head[4..]].map(|word| word.try_into().ok().map(u32::from_le_bytes));
    Some(((start?, end?), messages))
}
