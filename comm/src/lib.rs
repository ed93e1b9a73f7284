//! (to be written)
pub mod fault;
