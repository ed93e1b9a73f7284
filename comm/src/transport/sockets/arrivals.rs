//! Links that others have opened, until their generation is that of this rank.

use std::collections::VecDeque;

use crossbeam_channel::Receiver;

use crate::transport::Accepted;
use ft_proto::rank::Generation;

/// Accepted links: those of the generation that has begun are taken in order, those of one that this rank has not reached yet
/// wait, and older ones are closed.
#[derive(Debug)]
pub(super) struct Arrivals {
    inbox: Receiver<Accepted>,
    generation: Option<Generation>,
    due: VecDeque<Accepted>,
    early: Vec<Accepted>,
}

impl Arrivals {
    pub(super) fn new(inbox: Receiver<Accepted>) -> Self {
        Self { inbox, generation: None, due: VecDeque::new(), early: Vec::new() }
    }

    /// The generation that has begun, if any has.
    pub(super) fn generation(&self) -> Option<Generation> {
        self.generation
    }

    pub(super) fn begin(&mut self, generation: Generation) {
        self.generation = Some(generation);
        self.due.clear();
        std::mem::take(&mut self.early).into_iter().for_each(|accepted| self.sort(accepted));
    }

    /// The next link of this generation.
    pub(super) fn take(&mut self) -> Option<Accepted> {
        // Asked before every look at the links: mostly nothing is there.
        if self.due.is_empty() && self.inbox.is_empty() {
            return None;
        }
        while let Ok(accepted) = self.inbox.try_recv() {
            self.sort(accepted);
        }
        self.due.pop_front()
    }

    fn sort(&mut self, accepted: Accepted) {
        match self.generation {
            Some(generation) if accepted.opening.generation == generation => self.due.push_back(accepted),
            Some(generation) if accepted.opening.generation < generation => {}
            _ => self.early.push(accepted),
        }
    }

    /// Nothing has come that was not taken.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.inbox.is_empty() && self.due.is_empty() && self.early.is_empty()
    }

    /// Nothing is in the channel.
    #[cfg(test)]
    pub(super) fn is_sorted(&self) -> bool {
        self.inbox.is_empty()
    }
}
