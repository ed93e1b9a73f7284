//! What protecting one program costs, and which scheme is to be recommended for it: `ftrun advise`.
//!
//! The program is run as jobs of `ftrun`, for a few seconds each (`--trial-seconds`; the resilient loop ends them with a
//! checkpoint): once without protection, which says how long its steps are, then with each scheme, every time through a real
//! kill of one rank. What the program was held for a checkpoint, and how long it took from the kill to the resumption, go into
//! the model of [`ft_checkpoint::interval`], which says what longer runs are to expect.
//!
//! If it is said how often failures of several kinds strike (`--level-mtbf`), the same measurements go into a model of several levels of
//! protection at once, which says which of them to take together, and how often each.
//!
//! If it is asked for (`--ways`), the ways to go back are measured under the scheme that is recommended: all ranks with checkpoints at the same
//! step, all with lines, or the lost one alone. A model of these says what each costs in the long run, and is held against jobs with kills
//! at random.

mod combinations;
mod error;
mod experiment;
mod failures;
mod job;
mod judgment;
mod levels;
mod report;
mod session;
mod tables;
mod times;
mod ways;

pub use self::combinations::{Combination, LevelAdvice, PlannedLevel};
pub use self::error::AdviceError;
pub use self::experiment::{AdviceExperiment, losses_survived, schemes_for};
pub use self::failures::{FailureKind, KindError, Losses, check_kinds};
pub use self::judgment::{Advice, Candidate, Outlook};
pub use self::session::advise;
pub use self::ways::{Check, Refused, Way, WayCandidate, WayCosts, WayOutlook, Ways, WaysAdvice, WaysError};
