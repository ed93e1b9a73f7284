//! Which algorithm of a collective operation is the fastest, by ranks and bytes.
//!
//! Jobs of `ftrun collective --algorithms` are run as child processes and their reports are read. Within a job the algorithms of
//! an operation take turns; each round starts a job for every number of ranks.
//!
//! The table: `ranges` takes the fewest ranges of bytes in which one algorithm is nowhere slower than the fastest by
//! more than the spread of the rounds; `table` writes it down for `ftrun --collectives`.

mod child;
mod choice;
mod csv;
mod experiment;
mod measured;
mod page;
mod ranges;
mod results;
mod session;
mod table;
mod tables;

pub use self::choice::Choice;
pub use self::experiment::{Experiment, fits, is_offered};
pub use self::measured::{Case, Sample};
pub use self::results::Results;
pub use self::session::run;
pub use crate::recovery::BenchError;
