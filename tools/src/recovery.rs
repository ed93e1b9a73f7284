//! What protection costs: time without failures, one checkpoint, one recovery, memory, and what follows from these for
//! long runs.
//!
//! Jobs of `ftrun load` are run as child processes and their reports are read; nothing is known of `ftrun` but its
//! command line and its report. Everything is measured once in each repetition, in shuffled order. Answers of equal work
//! must be equal.
//!
//! - *Without failures*: seconds from the first step to the last, with and without protection; so the first checkpoint,
//!   before step 1, is not in them.
//! - *A checkpoint*: the report's time in checkpoints divided by their number. The first two take memory from the
//!   system, which makes them slower; they are counted.
//! - *A recovery*: detection, repair and restore as the report has them, of a rank that is killed in a step. The steps
//!   that are done again are counted apart.
//! - *Under failures*: the model of [`ft_checkpoint::interval`], and a few runs with random failures beside it.

mod child;
mod csv;
mod error;
mod experiment;
mod forecast;
mod machine;
mod measurement;
mod page;
mod results;
mod session;
mod stats;
mod summary;
mod tables;
mod trial;
mod units;
mod verdict;

pub use self::child::complaint;
pub use self::error::BenchError;
pub use self::experiment::{Experiment, FRESH_DISK, Kind};
pub use self::forecast::Progress;
pub use self::machine::{Disk, Machine};
pub use self::machine::{FreshFolder, filesystem};
pub use self::measurement::{CHECKPOINT_PHASES, Measurement, RECOVERY_PHASES};
pub use self::results::{Curve, CurvePoint, Results};
pub use self::session::run;
pub use self::stats::Spread;
pub use self::summary::{Protected, Summary, UNPROTECTED};
pub use self::tables::text as table_text;
pub use self::trial::Trial;
pub use self::units::{NO_BREAK, bytes, mib, ms, percent, short, span};
