//! Time as a number that a test can make up.

use std::time::Duration;

/// Nanoseconds since the start of the clock that made it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// This time plus `span`.
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Time from `earlier` to this one; zero if it lies later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Seconds since the start of the clock.
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-9
    }
}
