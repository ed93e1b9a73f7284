//! The caller's door to the second plane: what a rank says to the launcher and learns from it, while its
//! program computes or is blocked.

use crate::time::{Clock, Time};
use alarm::Alarm;
pub use caller::Calls;
use ft_proto::rank::{Generation, PeerId, Rank};
use ft_proto::wire::control::{News, ToArbiter};
use ready::ReadyMemory;
use saves::Saves;
use verdicts::Verdicts;

pub mod alarm;
pub mod alone;
mod caller;
mod pulse;
mod questions;
pub mod ready;
pub mod saves;
pub mod thread;
pub mod verdicts;

/// Whom a rank has awaited for long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Generation of the membership.
    pub generation: Generation,
    /// The awaited ranks, and who holds them.
    pub awaited: Vec<(Rank, PeerId)>,
    /// The rank goes on without a repair that would renew links.
    pub goes_on: bool,
}

/// The second plane, as the caller sees it. News also wakes a caller that is blocked in its transport.
pub trait Service {
    /// Says something to the launcher.
    fn submit(&self, message: ToArbiter);
    /// Sends it with what is sent next, a sign of life at the latest: nobody waits for it.
    fn submit_with_next(&self, message: ToArbiter) {
        self.submit(message);
    }
    /// This rank has awaited others for long: who of them is not in reach is reported as a broken link.
    fn ask(&self, question: Question) {
        let _ = question;
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
    /// Knows of agreements, for others.
    fn verdicts(&self) -> Verdicts;
    /// Tells when checkpoints are to be written to files, and the launcher what has become of them.
    fn saves(&self) -> Saves {
        Saves::default()
    }
    /// Memory that is there before it is needed.
    fn ready(&self) -> ReadyMemory {
        ReadyMemory::default()
    }
    /// This rank is in this step: the launcher hears of it with the next sign of life.
    fn is_in(&self, step: u64) {
        let _ = step;
    }
    /// Counts the calls of the program, so that the plane knows whether it makes any.
    fn calls(&self) -> Calls {
        Calls::default()
    }
    /// While it rests the plane beats no heart and asks nobody: to measure what that costs.
    fn rest(&self, rests: bool) {
        let _ = rests;
    }
    /// Everything that was submitted is to leave before this returns; nothing is submitted after it.
    fn close(&mut self);
}
