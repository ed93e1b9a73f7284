//! What the launcher is to do, in order.

use std::collections::VecDeque;

use super::{Effect, Event};
use crate::rank::PeerId;
use crate::wire::control::News;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Outbox(VecDeque<Effect>);

impl Outbox {
    pub(super) fn push(&mut self, effect: Effect) {
        self.0.push_back(effect);
    }

    pub(super) fn pop(&mut self) -> Option<Effect> {
        self.0.pop_front()
    }

    pub(super) fn send(&mut self, to: PeerId, message: News) {
        self.push(Effect::Send { to, message });
    }

    pub(super) fn broadcast(&mut self, to: impl Iterator<Item = PeerId>, message: &News) {
        to.for_each(|peer| self.send(peer, message.clone()));
    }

    pub(super) fn kill(&mut self, peer: PeerId) {
        self.push(Effect::Kill(peer));
    }

    pub(super) fn record(&mut self, event: Event) {
        self.push(Effect::Record(event));
    }
}
