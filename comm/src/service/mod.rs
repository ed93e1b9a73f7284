//! The caller's door to the second plane: what a rank says to the launcher and learns from it, while its
//! program computes or is blocked.

use crate::proto::member::News;
use crate::rank::{Generation, Rank};
use crate::time::{Clock, Time};
use crate::wire::control::ToArbiter;
use alarm::Alarm;

pub mod alarm;
pub mod alone;
mod questions;
pub mod thread;

/// The second plane, as the caller sees it. News also wakes a caller that is blocked in its transport.
pub trait Service {
    /// Says something to the launcher.
    fn submit(&self, message: ToArbiter);
    /// This rank has awaited `ranks` of `generation` for long: who of them is not in reach is reported as a broken link.
    fn ask(&self, generation: Generation, ranks: &[Rank]) {
        let _ = (generation, ranks);
    }
    /// The time: by the machine's clock, or a simulated one.
    fn now(&self, clock: &Clock) -> Time {
        clock.now()
    }
    /// Whether there is news; cheap.
    fn has_news(&self) -> bool;
    /// The next news.
    fn take_news(&self) -> Option<News>;
    /// Tells of failures while the program computes.
    fn alarm(&self) -> Alarm;
    /// Everything that was submitted is to leave before this returns; nothing is submitted after it.
    fn close(&mut self);
}
