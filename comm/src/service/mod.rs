//! The caller's door to the second plane: what a rank says to the launcher and learns from it, while its
//! program computes or is blocked.

use crate::proto::member::News;
use crate::wire::control::ToArbiter;
use alarm::Alarm;
use verdicts::Verdicts;

pub mod alarm;
pub mod alone;
pub mod thread;
pub mod verdicts;

/// The second plane, as the caller sees it. News also wakes a caller that is blocked in its transport.
pub trait Service {
    /// Says something to the launcher.
    fn submit(&self, message: ToArbiter);
    /// Whether there is news; cheap.
    fn has_news(&self) -> bool;
    /// The next news.
    fn take_news(&self) -> Option<News>;
    /// Tells of failures while the program computes.
    fn alarm(&self) -> Alarm;
    /// Knows of agreements, for others.
    fn verdicts(&self) -> Verdicts;
    /// Everything that was submitted is to leave before this returns; nothing is submitted after it.
    fn close(&mut self);
}
