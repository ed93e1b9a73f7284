//! Agreements that outlive failures, made by the launcher.

use super::{Driver, Memory, NAP, State};
use ft_proto::error::CommError;
use ft_proto::wire::control::{Circle, ToArbiter, Verdict, Word};

impl Driver {
    /// An agreement of the communicator with this context is over here without the launcher's help.
    pub(crate) fn agreed_here(&mut self, of: Circle, number: u32, verdict: Verdict) {
        let message = self.service.verdicts().over(of, number, verdict);
        message.into_iter().for_each(|message| self.submit(message));
    }

    /// Gives this rank's word to the launcher and waits for the outcome. Works while calls are interrupted; what is under
    /// way on links goes on, if it can.
    pub(crate) fn agree(&mut self, of: Circle, number: u32, word: Word) -> Result<Verdict, CommError> {
        let generation = self.generation();
        self.submit(ToArbiter::Agree { generation, of, number, word });
        loop {
            while let Some(news) = self.service.take_news() {
                self.note(news);
            }
            match self.agreed.remove(&of.context) {
                Some((over, verdict)) if over == number => {
                    self.moved();
                    return Ok(verdict);
                }
                _ => {}
            }
            match self.state {
                State::Ended { .. } => return Err(self.failure()),
                State::Running => drop(self.progress(NAP, &mut Memory::none())),
                State::Interrupted => self.transport.idle(NAP),
            }
        }
    }

    /// Ranks that the program has acknowledged as failed.
    pub(crate) fn acknowledged(&self) -> Vec<ft_proto::rank::Rank> {
        self.acknowledged.iter().copied().collect()
    }
}
