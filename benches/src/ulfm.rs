//! Recovery from killed ranks beside ULFM, the fault tolerance of Open MPI 5.
//!
//! Ours is a job of `ftrun load`, theirs a program that does the same by hand (`peers/ulfm_recovery.c`): equal ranks, equal
//! states, equal steps, five states of memory a rank on both sides, copies at the next rank, and the same victims. [`run`]
//! starts them in turns, round by round; what counts are ratios of medians over rounds. Every answer is held against that
//! of a run without failures: ours by its closed form, theirs by one such run.
//!
//! Steps differ: ours change the whole state, theirs a slice of it, so that survivors of ours may still compute when a
//! rank dies. That counts against ours.

mod figure;
mod job;
mod marks;
mod plan;
mod report;
mod row;
mod session;
mod summary;
mod tables;

pub use self::figure::Figure;
pub use self::job::{Job, Side, Task};
pub use self::plan::Order;
pub use self::row::Row;
pub use self::session::{Results, Sample, run};
pub use self::summary::{Partings, Reading, Summary};
