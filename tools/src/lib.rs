//! The tools of `ftrun` that measure: each runs jobs as child processes, reads their reports and says what it found as text, table and page.
//!
//! - [`recovery`]: `ftrun bench recovery`, what protection costs.
//! - [`collectives`]: `ftrun bench collectives`, which algorithm is the fastest.
//! - [`advice`]: `ftrun advise`, which scheme suits a program.
//! - [`harness`]: what these and comparisons with other libraries share.

#![forbid(unsafe_code)]

pub mod advice;
pub mod collectives;
pub mod harness;
pub mod recovery;
