//! The erasure codes beside Intel's ISA-L, on one core.
//!
//! Each side is a program of its own (`examples/codes.rs`, `peers/isal_codes.c`) that measures one cell, a shape and a size, and
//! both take turns in every round. What counts is the median over rounds of the ratio of the two within a round. The
//! redundant blocks of both are compared by a sum.

mod cell;
mod session;
mod summary;

pub use self::cell::Cell;
pub use self::session::{Order, Results, run};
