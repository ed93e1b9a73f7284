//! The clock of the campaign: it looks at jobs from outside, in the time of the world.

use std::time::{Duration, Instant};

/// Time since a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    #[expect(
        clippy::disallowed_methods,
        reason = "no simulator steers a campaign, which is outside of all jobs"
    )]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> Duration {
        self.0.elapsed()
    }
}
